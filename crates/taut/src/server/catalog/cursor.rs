//! Where the next page of a list begins, as text that every process of the same server can read.
//! PAG-01, PAG-04, STD-26.
//!
//! A cursor says how many items came before, and carries a code over that number and over the list and
//! its length. One that was made for another list, or for a list of another length, is refused, and so is
//! text that is no cursor. There is no key in it: it opens nothing that a client may not read anyway.

use hmac_sha256::Hash;

/// The list that a cursor belongs to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ListState {
    pub(crate) list: u8,
    pub(crate) total: usize,
    /// How many items a page has; all if nothing.
    pub(crate) page_size: Option<usize>,
}

/// The cursor of the page that begins at `start`.
pub(crate) fn write(start: usize, state: ListState) -> String {
    let text = format!("cursor {} {} {start}", state.list, state.total);
    let code = Hash::hash(text.as_bytes()).into_iter().take(8);
    code.fold(format!("{start:x}-"), |cursor, byte| cursor + &format!("{byte:02x}"))
}

/// Where the page begins, if this cursor belongs to the list as it is now. Only where a page of ours begins: anybody can make
/// a cursor, and each page is kept.
pub(crate) fn read(cursor: &str, state: ListState) -> Option<usize> {
    let (start, _) = cursor.split_once('-')?;
    let start = usize::from_str_radix(start, 16).ok()?;
    let begins =
        start < state.total && state.page_size.is_some_and(|size| start.is_multiple_of(size));
    (begins && write(start, state) == cursor).then_some(start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pag_04_only_cursors_of_the_same_list_are_read() {
        let here = ListState { list: 1, total: 50, page_size: Some(10) };
        let ours = write(20, here);
        assert_eq!(read(&ours, here), Some(20));
        assert_eq!(read(&ours, ListState { list: 2, ..here }), None);
        assert_eq!(read(&ours, ListState { total: 49, ..here }), None);
        for bad in ["", "bogus", "14", "14-", "14-00000000", "-1", &ours.replace("14-", "15-")] {
            assert_eq!(read(bad, here), None, "{bad}");
        }
    }

    #[test]
    fn pag_04_a_cursor_to_the_middle_of_a_page_is_refused() {
        let here = ListState { list: 1, total: 50, page_size: Some(10) };
        let starts = (0..60).filter(|start| read(&write(*start, here), here).is_some());
        assert_eq!(starts.collect::<Vec<_>>(), [0, 10, 20, 30, 40]);
        let whole = ListState { page_size: None, ..here };
        assert!((0..60).all(|start| read(&write(start, whole), whole).is_none()));
    }

    /// Whichever process reads it: the text is the same in each.
    #[test]
    fn std_26_a_cursor_is_the_same_text_in_every_process() {
        assert_eq!(
            write(20, ListState { list: 1, total: 50, page_size: None }),
            "14-678a89ed5a4c7fb1"
        );
    }
}
