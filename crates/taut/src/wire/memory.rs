//! Whether there is memory for a message, asked before anything is made of it.
//!
//! Types are read into memory that cannot be refused: a process that has none ends. So a long message
//! is let in only if what will be made of it finds room. Knows the allocator; must not know JSON.

/// What is made of a message, each about as long as itself: the arguments, the answer, and the output
/// that the answer waits in.
const COPIES: usize = 3;

/// Whether a message of so many bytes can be read and answered.
pub(super) fn is_there_for(bytes: usize) -> bool {
    let mut room: Vec<u8> = Vec::new();
    let is_there = room.try_reserve_exact(bytes.saturating_mul(COPIES)).is_ok();
    // Or the compiler leaves it out, because nothing is written to it.
    std::hint::black_box(&room);
    is_there
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_machine_has_is_not_there() {
        assert!(is_there_for(1 << 20));
        assert!(!is_there_for(usize::MAX / 4));
        assert!(!is_there_for(usize::MAX));
    }
}
