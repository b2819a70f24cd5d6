//! Where the next page of a list begins, as text that only this server can make. PAG-01, PAG-04.
//!
//! A cursor says how many items came before, and carries a keyed code over that number and over the
//! list and its length. One that we did not write, or wrote for another list or for a list of another
//! length, is refused.

use crate::mcp::SealKey;

/// The list that a cursor belongs to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ListState {
    pub(crate) list: u8,
    pub(crate) total: usize,
}

/// The cursor of the page that begins at `start`.
pub(crate) fn write(key: &SealKey, start: usize, state: ListState) -> String {
    let text = format!("cursor {} {} {start}", state.list, state.total);
    format!("{start:x}-{}", key.code(&text))
}

/// Where the page begins, if this cursor is ours.
pub(crate) fn read(key: &SealKey, cursor: &str, state: ListState) -> Option<usize> {
    let (start, _) = cursor.split_once('-')?;
    let start = usize::from_str_radix(start, 16).ok()?;
    // Need not be in constant time: whoever may guess a cursor may also read the whole list.
    (start < state.total && write(key, start, state) == cursor).then_some(start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pag_04_only_our_own_cursors_for_the_same_list_are_read() {
        let key = SealKey::new(*b"key");
        let here = ListState { list: 1, total: 50 };
        let ours = write(&key, 20, here);
        assert_eq!(read(&key, &ours, here), Some(20));
        assert_eq!(read(&key, &ours, ListState { list: 2, ..here }), None);
        assert_eq!(read(&key, &ours, ListState { total: 49, ..here }), None);
        for bad in ["", "bogus", "14", "14-", "14-00000000", "-1", &ours.replace("14-", "15-")] {
            assert_eq!(read(&key, bad, here), None, "{bad}");
        }
    }

    #[test]
    fn pag_04_a_cursor_cannot_be_forged_without_the_key() {
        let here = ListState { list: 1, total: 50 };
        let forged = write(&SealKey::new(*b"guess"), 20, here);
        assert_eq!(read(&SealKey::new(*b"key"), &forged, here), None);
    }
}
