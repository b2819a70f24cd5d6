//! Where a line ends: a search that is mostly short.
//!
//! Knows bytes. The end of a message mostly stands within a few hundred bytes of its beginning, where a
//! plain loop is as quick as memchr; what is longer is memchr's. So memchr does not ask the processor
//! what it can before the first answer has left, which in a virtual machine takes longer than that
//! answer.

/// So far the plain loop goes.
const NEAR: usize = 512;

/// Bytes looked at together: what fits into a register of every machine.
pub(crate) const WIDTH: usize = 16;

/// How many bytes stand before the first for which `miss` is zero.
#[inline]
pub(crate) fn before(bytes: &[u8], miss: impl Fn(u8) -> u8) -> usize {
    let (strides, _) = bytes.as_chunks::<{ 2 * WIDTH }>();
    // Without a way out half-way, so that all are compared at once.
    let any =
        |stride: &[u8; 2 * WIDTH]| stride.iter().fold(false, |any, byte| any | (miss(*byte) == 0));
    let strides = strides.iter().position(any).unwrap_or(strides.len());
    let mut rest = &bytes[strides * 2 * WIDTH..];
    while let Some((chunk, after)) = rest.split_first_chunk() {
        let count = before_in(chunk, &miss);
        if count < WIDTH {
            return bytes.len() - rest.len() + count;
        }
        rest = after;
    }
    match bytes.last_chunk() {
        // Some of these were looked at before, and are not it.
        Some(last) => bytes.len() - WIDTH + before_in(last, miss),
        None => bytes.iter().take_while(|byte| miss(**byte) != 0).count(),
    }
}

/// The same for so few that they are looked at together.
///
/// Said in arithmetic that registers do for all their bytes at once: of `==` and "or" the compiler
/// makes several times as much.
#[inline]
pub(crate) fn before_in(bytes: &[u8; WIDTH], miss: impl Fn(u8) -> u8) -> usize {
    let marks = u128::from_le_bytes(bytes.map(|byte| 1u8.saturating_sub(miss(byte))));
    marks.trailing_zeros() as usize / 8
}

/// The first newline.
#[inline]
pub(super) fn newline(bytes: &[u8]) -> Option<usize> {
    find(bytes, |byte| byte ^ b'\n', |far| memchr::memchr(b'\n', far))
}

/// The first byte that may end a line for anybody: a newline, a carriage return, or the first of
/// those that spell U+2028.
#[inline]
pub(super) fn line_end(bytes: &[u8]) -> Option<usize> {
    let miss = |byte: u8| (byte ^ b'\n').min(byte ^ b'\r').min(byte ^ 0xE2);
    find(bytes, miss, |far| memchr::memchr3(b'\n', b'\r', 0xE2, far))
}

#[inline]
fn find(
    bytes: &[u8],
    miss: impl Fn(u8) -> u8,
    far: impl FnOnce(&[u8]) -> Option<usize>,
) -> Option<usize> {
    let (near, rest) = bytes.split_at(bytes.len().min(NEAR));
    match before(near, miss) {
        at if at < near.len() => Some(at),
        _ if rest.is_empty() => None,
        passed => far(rest).map(|at| passed + at),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_is_found_wherever_it_stands_and_nothing_else() {
        for length in (0..70).chain(NEAR - 20..NEAR + 50) {
            let mut text = vec![b'x'; length];
            assert_eq!((newline(&text), line_end(&text)), (None, None));
            for at in (0..length.min(40)).chain(length.saturating_sub(40)..length) {
                for (end, is_newline) in [(b'\n', true), (b'\r', false), (0xE2, false)] {
                    text[at] = end;
                    text[length - 1] = end;
                    assert_eq!(line_end(&text), Some(at), "{end} at {at} of {length}");
                    assert_eq!(newline(&text), is_newline.then_some(at));
                    (text[at], text[length - 1]) = (b'x', b'x');
                }
            }
        }
    }
}
