//! Splits a line into words as a shell does: at blanks, except within quotes; JSON stays one word.
//!
//! Pure. Must not know what a word means.

use serde::de::IgnoredAny;

/// One word, and where it stood.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) text: String,
    /// Where it begins in the line, in bytes.
    pub(super) start: usize,
}

/// A quote that nobody has closed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unclosed(pub(super) char);

/// Splits a line. A value that begins with `{` or `[` and is JSON keeps its quotes, because people
/// paste it.
pub(super) fn split(line: &str) -> Result<Vec<Word>, Unclosed> {
    let mut words = Vec::new();
    let mut rest = line.trim_start();
    while !rest.is_empty() {
        let start = line.len() - rest.len();
        let (text, after) = word(rest)?;
        words.push(Word { text, start });
        rest = after.trim_start();
    }
    Ok(words)
}

/// As [`split`], of a line that is still being typed; with the quote that is open at its end.
pub(super) fn split_open(line: &str) -> Result<(Vec<Word>, Option<char>), Unclosed> {
    match split(line) {
        Ok(words) => Ok((words, None)),
        Err(Unclosed(quote)) => Ok((split(&format!("{line}{quote}"))?, Some(quote))),
    }
}

/// A text as it has to be typed to be one word, in the quotes that were begun.
pub(super) fn quoted(text: &str, begun: Option<char>) -> String {
    let special = |letter: char| letter.is_whitespace() || "'\"\\".contains(letter);
    match begun {
        Some('"') => format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")),
        None if !text.is_empty()
            && !text.starts_with(['{', '[', '#'])
            && !text.contains(special) =>
        {
            text.to_owned()
        }
        _ => format!("'{}'", text.replace('\'', "'\\''")),
    }
}

/// The first word, and what follows it.
fn word(line: &str) -> Result<(String, &str), Unclosed> {
    let mut text = String::new();
    let mut rest = line;
    let mut value_begins = true;
    while let Some(letter) = rest.chars().next() {
        if std::mem::take(&mut value_begins)
            && let Some(length) = json(rest)
        {
            text.push_str(&rest[..length]);
            rest = &rest[length..];
            continue;
        }
        rest = &rest[letter.len_utf8()..];
        match letter {
            _ if letter.is_whitespace() => return Ok((text, rest)),
            '\'' => {
                let end = rest.find('\'').ok_or(Unclosed('\''))?;
                text.push_str(&rest[..end]);
                rest = &rest[end + 1..];
            }
            '"' => rest = closed(rest, &mut text)?,
            '\\' => {
                if let Some(next) = rest.chars().next() {
                    text.push(next);
                    rest = &rest[next.len_utf8()..];
                }
            }
            _ => {
                value_begins = letter == '=';
                text.push(letter);
            }
        }
    }
    Ok((text, rest))
}

/// Reads up to the closing quote.
fn closed<'a>(line: &'a str, into: &mut String) -> Result<&'a str, Unclosed> {
    let mut letters = line.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return Ok(&line[at + 1..]),
            '\\' => match letters.next() {
                Some((_, next @ ('"' | '\\'))) => into.push(next),
                Some((_, 'n')) => into.push('\n'),
                Some((_, 't')) => into.push('\t'),
                Some((_, other)) => into.extend(['\\', other]),
                None => break,
            },
            _ => into.push(letter),
        }
    }
    Err(Unclosed('"'))
}

/// How long the JSON is that `line` begins with, if it does and nothing clings to it.
fn json(line: &str) -> Option<usize> {
    if !line.starts_with(['{', '[']) {
        return None;
    }
    let mut values = serde_json::Deserializer::from_str(line).into_iter::<IgnoredAny>();
    values.next()?.ok()?;
    let length = values.byte_offset();
    let free = line[length..].chars().next().is_none_or(char::is_whitespace);
    free.then_some(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_split_as_shells_do_and_json_stays_whole() {
        let table: [(&str, &[&str]); 12] = [
            ("", &[]),
            ("  a  b ", &["a", "b"]),
            ("echo text='hello there'", &["echo", "text=hello there"]),
            (r#"echo text="a \"b\" \\ \n \x""#, &["echo", "text=a \"b\" \\ \n \\x"]),
            (r"a\ b c\\", &["a b", "c\\"]),
            (r#"f tags=["a", "b c"] n=1"#, &["f", r#"tags=["a", "b c"]"#, "n=1"]),
            (r#"f {"a": {"b": "c d"}}"#, &["f", r#"{"a": {"b": "c d"}}"#]),
            // No JSON, or something clings to it: words as ever.
            ("f [a b]", &["f", "[a", "b]"]),
            (r#"f ["a"]x"#, &["f", "[a]x"]),
            ("a=''", &["a="]),
            ("größe=ä 'ö ü'", &["größe=ä", "ö ü"]),
            ("it\\'s", &["it's"]),
        ];
        for (line, words) in table {
            let split: Vec<String> = split(line).unwrap().into_iter().map(|w| w.text).collect();
            assert_eq!(split, words, "{line}");
        }
        for text in ["a", "two words", "it's", "a \"b\" \\", "", "{}", "[a", "#1", "a=b?c&d"] {
            for begun in [None, Some('\''), Some('"')] {
                let word = quoted(text, begun);
                assert_eq!(split(&word).unwrap()[0].text, text, "{word}");
                assert!(begun.is_none_or(|quote| word.starts_with(quote)), "{word}");
            }
        }
        let (words, open) = split_open("a \"b c").unwrap();
        assert_eq!((words[1].text.as_str(), open), ("b c", Some('"')));
        assert_eq!(split_open("a 'b'").unwrap().1, None);
        assert_eq!(split("a 'b").unwrap_err(), Unclosed('\''));
        assert_eq!(split("a \"b\\").unwrap_err(), Unclosed('"'));
        let starts: Vec<usize> =
            split("  ab 'c d'  e").unwrap().iter().map(|word| word.start).collect();
        assert_eq!(starts, [2, 5, 12]);
    }
}
