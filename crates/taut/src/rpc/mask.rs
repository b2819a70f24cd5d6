//! JSON for a log: secrets hidden, length bounded.

use serde_json::Value;

/// Names of members whose values are never shown, in lower case; a name that contains one counts.
const SECRET: [&str; 9] = [
    "token",
    "secret",
    "password",
    "passwd",
    "authorization",
    "api_key",
    "apikey",
    "credential",
    "cookie",
];

/// Longer texts are cut: a log is for following messages, not for storing them.
const LONGEST: usize = 4 << 10;

/// The frame as a log may show it.
pub(crate) fn masked(bytes: &[u8]) -> String {
    let mut text = match serde_json::from_slice::<Value>(bytes) {
        Ok(mut value) => {
            hide(&mut value);
            value.to_string()
        }
        Err(_) => String::from_utf8_lossy(&bytes[..bytes.len().min(LONGEST)]).into_owned(),
    };
    if text.len() > LONGEST {
        let end = (0..=LONGEST).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        text.truncate(end);
        text.push('…');
    }
    text
}

fn hide(value: &mut Value) {
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                let lower = name.to_ascii_lowercase();
                // A progress token is a number that one follows a call by.
                let secret =
                    lower != "progresstoken" && SECRET.iter().any(|word| lower.contains(word));
                if secret && !value.is_object() && !value.is_array() {
                    *value = Value::from("***");
                } else {
                    hide(value);
                }
            }
        }
        Value::Array(values) => values.iter_mut().for_each(hide),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_hidden_by_the_name_of_their_member_at_any_depth() {
        let line = br#"{"a":{"API_KEY":"k1","list":[{"accessToken":"k2"}]},"progressToken":7}"#;
        let text = masked(line);
        assert!(!text.contains("k1") && !text.contains("k2") && text.contains("7"), "{text}");
    }

    #[test]
    fn a_long_text_is_cut_at_a_character() {
        let text = masked(format!("\"{}\"", "é".repeat(9000)).as_bytes());
        assert!(text.len() <= LONGEST + 3 && text.ends_with('…'));
    }
}
