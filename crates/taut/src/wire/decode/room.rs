//! How much room a read gets: little at first, and twice as much after a read that filled its own. So thousands of
//! connections that say little take little memory, and one that says much is read as a pipe is filled.

/// What the first read gets; most messages fit.
const FIRST: usize = 8 << 10;

/// The most that a read gets: the capacity of a Linux pipe.
pub(super) const MOST: usize = 64 << 10;

/// A message that is longer than this gets room for any that may come, up to [`AMPLE`]: pages that
/// nobody touches cost nothing, while growing by doubling copies, and leaves holes of the same size.
pub(super) const LONG: usize = 1 << 20;

/// The most room that is made at a stroke: the usual limit. Allocators give so much back to the
/// system at once.
pub(super) const AMPLE: usize = 64 << 20;

#[derive(Debug, Default)]
pub(super) struct Room {
    bytes: usize,
    /// The length of the buffer at which the last read has filled its room.
    filled: usize,
}

impl Room {
    /// The room for a read into a buffer that has this length, with what the last read has brought.
    pub(super) fn after(&mut self, length: usize) -> usize {
        if length >= self.filled {
            self.bytes = (2 * self.bytes).clamp(FIRST, MOST);
        }
        self.bytes
    }

    /// The next read appends to a buffer of this length.
    pub(super) fn offered(&mut self, length: usize) {
        self.filled = length + self.bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_grows_with_reads_that_fill_it_and_with_no_others() {
        let mut room = Room::default();
        assert_eq!(room.after(0), FIRST);
        room.offered(0);
        // A short read, of which half a message is left.
        assert_eq!(room.after(FIRST - 1), FIRST);
        room.offered(100);
        assert_eq!(room.after(100 + FIRST), 2 * FIRST);
        room.offered(0);
        for _ in 0..100 {
            let bytes = room.after(MOST);
            room.offered(0);
            assert!(bytes <= MOST);
        }
        assert_eq!(room.after(0), MOST);
    }
}
