//! The width of text on a terminal, in cells: measuring, padding and cutting.
//!
//! A letter takes one cell, most Chinese, Japanese and Korean characters and most emoji take two, a
//! combining accent takes none.

use std::borrow::Cow;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// How many cells it takes.
pub(crate) fn wide(text: &str) -> usize {
    text.width()
}

/// What has to follow it in a column of this width.
pub(crate) fn pad(text: &str, column: usize) -> String {
    " ".repeat(column.saturating_sub(wide(text)))
}

/// Cuts the end off what is too wide.
pub(crate) fn cut(text: &str, width: usize) -> Cow<'_, str> {
    if wide(text) <= width {
        return Cow::Borrowed(text);
    }
    let end = fitting(text.char_indices().map(|(at, c)| (at + c.len_utf8(), c)), width);
    Cow::Owned(format!("{}…", text[..end.unwrap_or(0)].trim_end()))
}

/// Cuts the beginning off: of a path, the end says which it is.
pub(crate) fn cut_front(text: &str, width: usize) -> Cow<'_, str> {
    if wide(text) <= width {
        return Cow::Borrowed(text);
    }
    let start = fitting(text.char_indices().rev(), width);
    Cow::Owned(format!("…{}", &text[start.unwrap_or(text.len())..]))
}

/// Where the last of these characters stands that still fits, with a cell to spare for the mark.
fn fitting(chars: impl Iterator<Item = (usize, char)>, width: usize) -> Option<usize> {
    let mut used = 1;
    chars
        .take_while(|(_, c)| {
            used += c.width().unwrap_or(0);
            used <= width
        })
        .last()
        .map(|(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_cut_at_a_character() {
        assert_eq!(cut("größe", 5), "größe");
        assert_eq!(cut("größe x", 6), "größe…");
        assert_eq!(cut("ab", 0), "…");
        assert_eq!(cut_front("~/größe/x", 9), "~/größe/x");
        assert_eq!(cut_front("~/größe/x", 5), "…ße/x");
        assert_eq!(cut_front("ab", 0), "…");
    }

    #[test]
    fn what_takes_two_cells_counts_twice_and_an_accent_not_at_all() {
        assert_eq!((wide("日本"), wide("e\u{301}"), wide("🙂")), (4, 1, 2));
        assert_eq!((pad("日本", 6).len(), pad("日本", 3).len()), (2, 0));
        assert_eq!(cut("日本語です", 10), "日本語です");
        assert_eq!(cut("日本語です", 9), "日本語で…");
        assert_eq!(cut("日本語です", 8), "日本語…");
        assert_eq!(cut_front("日本語です", 8), "…語です");
        for width in 1..12 {
            assert!(wide(&cut("a日b本c語d", width)) <= width);
            assert!(wide(&cut_front("a日b本c語d", width)) <= width);
        }
    }
}
