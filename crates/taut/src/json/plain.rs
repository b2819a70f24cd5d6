//! How many bytes of a text need no escape in JSON.
//!
//! Knows the three kinds of byte that end plain text inside a string: a quote, a backslash, a control
//! character. Reading and writing strings both start here, so many bytes are looked at at a time.

use crate::wire::find::{WIDTH, before, before_in};

/// How many bytes at the front are plain.
#[inline]
pub(crate) fn plain(text: &[u8]) -> usize {
    near(text).unwrap_or_else(|| far(text))
}

/// The same for short strings, which most are, because most are names. For those a wide search takes
/// longer to set up than to run. `None` if the end is not near.
#[inline]
pub(super) fn near(text: &[u8]) -> Option<usize> {
    let count = before_in(text.first_chunk()?, oddness);
    (count < WIDTH).then_some(count)
}

/// The same for long strings. Not inlined, so that callers that find the end near have little to set up.
#[inline(never)]
pub(super) fn far(text: &[u8]) -> usize {
    before(text, oddness)
}

/// Zero for what is not plain.
#[inline]
fn oddness(byte: u8) -> u8 {
    (byte ^ b'"').min(byte ^ b'\\').min(byte.saturating_sub(b' ' - 1))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The same, one byte after the other.
    fn slowly(text: &[u8]) -> usize {
        text.iter().take_while(|byte| !matches!(byte, b'"' | b'\\' | ..b' ')).count()
    }

    #[test]
    fn every_byte_at_every_place_is_plain_or_not() {
        let edges = [0, 1, 0x1f, 0x20, 0x21, 0x22, 0x23, 0x5b, 0x5c, 0x5d, 0x7f, 0x80, 0xa2, 0xff];
        for around in edges.into_iter().filter(|byte| slowly(&[*byte]) == 1) {
            for length in 1..=4 * WIDTH + 9 {
                for at in 0..length {
                    let mut text = vec![around; length];
                    for odd in edges {
                        text[at] = odd;
                        let expected = if slowly(&[odd]) == 1 { length } else { at };
                        assert_eq!((plain(&text), far(&text)), (expected, expected), "{text:?}");
                    }
                }
            }
        }
        assert_eq!((plain(b""), far(b"")), (0, 0));
    }

    proptest! {
        #[test]
        fn any_bytes_are_plain_up_to_the_first_that_is_not(
            front in prop::collection::vec(b' '.., 0..80),
            text in prop::collection::vec(any::<u8>(), 0..80),
        ) {
            let text = [front, text].concat();
            let expected = slowly(&text);
            prop_assert_eq!((plain(&text), far(&text)), (expected, expected));
            prop_assert!(near(&text).is_none_or(|count| count == expected));
        }
    }
}
