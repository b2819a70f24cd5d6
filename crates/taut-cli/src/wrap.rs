//! Breaks the lines of a help text where the terminal ends.
//!
//! Knows how such a text is laid out: paragraphs are one line each, what stands beside an option or an example
//! stays in its column, and an example is never broken, so that it can be copied. Pure.

use crate::cells::wide;

/// How wide a help text is at most, and where nobody knows how wide the terminal is.
pub(crate) const WIDEST: usize = 100;

/// A description has at least so many cells, or it begins on the next line.
const NARROWEST: usize = 24;

/// The text with no line wider than this, as far as that can be.
pub(crate) fn wrapped(text: &str, width: usize) -> String {
    let mut out = String::with_capacity(text.len() + 64);
    for line in text.split_inclusive('\n') {
        let (words, end) = line.strip_suffix('\n').map_or((line, ""), |words| (words, "\n"));
        wrap(words, width, &mut out);
        out.push_str(end);
    }
    out
}

fn wrap(line: &str, width: usize, out: &mut String) {
    let shown = plain(line);
    if wide(&shown) <= width {
        return out.push_str(line);
    }
    let indent = shown.len() - shown.trim_start().len();
    let column = match column(&shown) {
        Some(column) if column + NARROWEST <= width => column,
        Some(_) => indent + 4,
        // An example, or a paragraph.
        None if indent == 2 => return out.push_str(line),
        None => indent,
    };
    // What stands before the column is kept as it is.
    let mut used = 0;
    let mut fresh = true;
    for (at, word) in line.split(' ').enumerate() {
        let long = wide(&plain(word));
        if at > 0 && used >= column && !fresh && used + 1 + long > width {
            out.push('\n');
            out.push_str(&" ".repeat(column));
            used = column;
        } else if at > 0 {
            out.push(' ');
            used += 1;
        }
        out.push_str(word);
        used += long;
        fresh = used <= column;
    }
}

/// Where the description begins that stands beside something: after the first gap in the line.
fn column(shown: &str) -> Option<usize> {
    let indent = shown.len() - shown.trim_start().len();
    let gap = indent + shown[indent..].find("  ")?;
    let rest = &shown[gap..];
    let begins = gap + (rest.len() - rest.trim_start().len());
    (indent > 0).then(|| wide(&shown[..begins]))
}

/// The text without its colours.
fn plain(text: &str) -> String {
    let mut parts = text.split("\x1b[");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |all, part| all + part.split_once('m').map_or(part, |(_, rest)| rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_broken_where_the_terminal_ends_and_stays_in_its_column() {
        let text = "one two three four five six seven eight nine ten\n\
                    \n\
                    \x20 -s, --server <NAME>  one two three four five six seven\n\
                    \x20 taut smoke --with many --options -- that can be copied\n\
                    \x20 a  b\n";
        let wants = "one two three four five six seven eight nine\n\
                     ten\n\
                     \n\
                     \x20 -s, --server <NAME>  one two three four five\n\
                     \x20                      six seven\n\
                     \x20 taut smoke --with many --options -- that can be copied\n\
                     \x20 a  b\n";
        assert_eq!(wrapped(text, 47), wants);
        let coloured = text.replace("--server", "\x1b[1m\x1b[36m--server\x1b[0m");
        assert_eq!(plain(&wrapped(&coloured, 47)), wants);
        // Too narrow for two columns.
        assert!(wrapped(text, 41).contains("one two three four\n      five six seven\n"));
        assert_eq!(wrapped(text, 100), text);
    }

    #[test]
    fn a_long_word_is_kept_whole() {
        assert_eq!(wrapped("a bbbbbbbbbbbb c", 5), "a\nbbbbbbbbbbbb\nc");
    }
}
