//! Bytes as base64 text and back, for what is not UTF-8. The standard alphabet, with padding.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Appends the text of these bytes.
pub(crate) fn encode(bytes: &[u8], out: &mut Vec<u8>) {
    for group in bytes.chunks(3) {
        let byte = |at: usize| u32::from(group.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for place in 0..4 {
            let index = (bits >> (18 - 6 * place) & 63) as usize;
            out.push(if place <= group.len() { ALPHABET[index] } else { b'=' });
        }
    }
}

/// The bytes of a text, or nothing if it is not base64.
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    let text = text.trim_end_matches('=').as_bytes();
    let mut out = Vec::with_capacity(text.len() / 4 * 3 + 2);
    for group in text.chunks(4) {
        let mut bits = 0;
        for place in 0..4 {
            let value = match group.get(place) {
                Some(letter) => ALPHABET.iter().position(|known| known == letter)?,
                None => 0,
            };
            bits = bits << 6 | u32::try_from(value).ok()?;
        }
        let [_, bytes @ ..] = bits.to_be_bytes();
        match group.len() {
            1 => return None,
            len => out.extend_from_slice(bytes.get(..len - 1)?),
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_back_as_they_were() {
        for (bytes, text) in [
            (&b""[..], ""),
            (b"f", "Zg=="),
            (b"fo", "Zm8="),
            (b"foo", "Zm9v"),
            (b"\xff\xfe", "//4="),
        ] {
            let mut out = Vec::new();
            encode(bytes, &mut out);
            assert_eq!(out, text.as_bytes());
            assert_eq!(decode(text).unwrap(), bytes);
        }
        assert_eq!(decode("A"), None);
        assert_eq!(decode("Zm9*"), None);
    }
}
