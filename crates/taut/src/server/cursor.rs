//! Where the next page of a list begins, as text that only we can read. PAG-01, PAG-04.
//!
//! A cursor says how many items came before, and for which list of which length; one that we did
//! not write, or wrote for a list that has changed since, is refused.

/// The list that a cursor belongs to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Position {
    pub(super) list: u8,
    pub(super) total: usize,
}

/// The cursor of the page that begins at `start`.
pub(super) fn write(start: usize, position: Position) -> String {
    format!("{start:x}-{:08x}", check(start, position))
}

/// Where the page begins, if this cursor is ours.
pub(super) fn read(cursor: &str, position: Position) -> Option<usize> {
    let (start, _) = cursor.split_once('-')?;
    let start = usize::from_str_radix(start, 16).ok()?;
    (start < position.total && write(start, position) == cursor).then_some(start)
}

fn check(start: usize, position: Position) -> u32 {
    let words = [start as u64, u64::from(position.list), position.total as u64];
    words.iter().fold(0x811C_9DC5, |hash, word| {
        word.to_le_bytes()
            .iter()
            .fold(hash, |hash: u32, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pag_04_only_our_own_cursors_for_the_same_list_are_read() {
        let here = Position { list: 1, total: 50 };
        assert_eq!(read(&write(20, here), here), Some(20));
        assert_eq!(read(&write(20, here), Position { list: 2, ..here }), None);
        assert_eq!(read(&write(20, here), Position { total: 49, ..here }), None);
        for bad in ["", "bogus", "14", "14-", "14-00000000", "-1"] {
            assert_eq!(read(bad, here), None, "{bad}");
        }
    }
}
