//! Forms and queries: names and values as `application/x-www-form-urlencoded`.
//!
//! Pure.

/// Writes names and values.
pub(super) fn encode<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let mut text = String::new();
    for (name, value) in pairs {
        if !text.is_empty() {
            text.push('&');
        }
        escape(name, &mut text);
        text.push('=');
        escape(value, &mut text);
    }
    text
}

pub(super) fn escape(text: &str, into: &mut String) {
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                into.push(byte.into());
            }
            _ => into.push_str(&format!("%{byte:02X}")),
        }
    }
}

/// The value with this name in a query, decoded.
pub(super) fn find(query: &str, name: &str) -> Option<String> {
    query.split('&').find_map(|pair| {
        let (found, value) = pair.split_once('=').unwrap_or((pair, ""));
        (decode(found) == name).then(|| decode(value))
    })
}

fn decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, behind @ ..] = rest {
        let escaped = match behind {
            [high, low, ..] if *first == b'%' => hex(*high).zip(hex(*low)),
            _ => None,
        };
        match (escaped, first) {
            (Some((high, low)), _) => {
                bytes.push(high << 4 | low);
                rest = &behind[2..];
            }
            (None, b'+') => {
                bytes.push(b' ');
                rest = behind;
            }
            (None, other) => {
                bytes.push(*other);
                rest = behind;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        let text = encode([("a b", "x&y=z"), ("ü", "%+ \n"), ("empty", "")]);
        assert_eq!(text, "a%20b=x%26y%3Dz&%C3%BC=%25%2B%20%0A&empty=");
        assert_eq!(find(&text, "a b").as_deref(), Some("x&y=z"));
        assert_eq!(find(&text, "ü").as_deref(), Some("%+ \n"));
        assert_eq!(find(&text, "empty").as_deref(), Some(""));
        assert_eq!(find(&text, "none"), None);
        assert_eq!(find("a=%zz%4&b=c+d", "a").as_deref(), Some("%zz%4"));
        assert_eq!(find("a=%zz%4&b=c+d", "b").as_deref(), Some("c d"));
    }
}
