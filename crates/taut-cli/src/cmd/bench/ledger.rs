//! Which requests of a phase were sent when, and that each is answered exactly once.

use super::fault::Fault;

/// Set once a request is answered; the rest is then how long that took.
const ANSWERED: u64 = 1 << 63;

/// The requests of one phase: eight bytes for each.
#[derive(Debug)]
pub(super) struct Ledger {
    first: u32,
    times: Vec<u64>,
    answered: usize,
}

impl Ledger {
    /// From this number on, with room for so many.
    pub(super) fn new(first: u32, room: usize) -> Self {
        Self { first, times: Vec::with_capacity(room), answered: 0 }
    }

    /// The number of the next request, which is sent now. Times are in nanoseconds of any one clock.
    pub(super) fn sent(&mut self, now: u64) -> u32 {
        let id = self.next();
        self.times.push(now);
        id
    }

    pub(super) fn next(&self) -> u32 {
        // There is room for 4 million in a phase, and for 90 million in a number.
        self.first + self.times.len() as u32
    }

    pub(super) fn answered(&mut self, id: u32, now: u64) -> Result<(), Fault> {
        let Some(at) = id.checked_sub(self.first) else {
            // All phases before this one ended with everything answered.
            return Err(Fault::Twice(id));
        };
        let Some(time) = self.times.get_mut(at as usize) else {
            return Err(Fault::Stranger(id.to_string()));
        };
        if *time & ANSWERED != 0 {
            return Err(Fault::Twice(id));
        }
        *time = now.saturating_sub(*time) | ANSWERED;
        self.answered += 1;
        Ok(())
    }

    pub(super) fn count(&self) -> usize {
        self.times.len()
    }

    pub(super) fn open(&self) -> usize {
        self.times.len() - self.answered
    }

    /// How long each took, all being answered.
    pub(super) fn latencies(mut self) -> Vec<u64> {
        self.times.retain_mut(|time| {
            let answered = *time & ANSWERED != 0;
            *time &= !ANSWERED;
            answered
        });
        self.times
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_request_is_answered_exactly_once_in_any_order() {
        let mut ledger = Ledger::new(100, 3);
        assert_eq!((ledger.sent(5), ledger.sent(6), ledger.sent(7)), (100, 101, 102));
        assert_eq!(ledger.answered(101, 10), Ok(()));
        assert_eq!(ledger.answered(101, 11), Err(Fault::Twice(101)));
        assert_eq!(ledger.answered(99, 11), Err(Fault::Twice(99)));
        assert_eq!(ledger.answered(103, 11), Err(Fault::Stranger("103".into())));
        assert_eq!((ledger.answered(100, 15), ledger.open(), ledger.count()), (Ok(()), 1, 3));
        assert_eq!(ledger.latencies(), [10, 4]);
    }
}
