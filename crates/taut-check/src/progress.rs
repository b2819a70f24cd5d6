//! What a run does now, and how much is left: told to whoever shows it.

use std::sync::{Arc, Mutex, PoisonError};

/// What a run does now. A clone shows the same run.
#[derive(Clone, Debug, Default)]
pub struct Progress(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    part: String,
    what: String,
    done: usize,
    all: usize,
}

impl Progress {
    /// Begins a part of the run that has so many steps; its name may be empty.
    pub(crate) fn begin(&self, part: &str, all: usize) {
        *self.state() = State { part: part.to_owned(), what: String::new(), done: 0, all };
    }

    /// Says what is tried now.
    pub(crate) fn tries(&self, what: String) {
        self.state().what = what;
    }

    /// So many steps of this part are done.
    pub(crate) fn step(&self, count: usize) {
        self.state().done += count;
    }

    /// What is tried, with how many steps of this part are done; empty before the run begins.
    #[must_use]
    pub fn words(&self) -> String {
        let state = self.state();
        let mut parts = vec![state.part.clone(), state.what.clone()];
        parts.retain(|part| !part.is_empty());
        let mut words = vec![parts.join(": ")];
        if state.all > 0 {
            words.push(format!("{} of {}", state.done.min(state.all), state.all));
        }
        words.retain(|part| !part.is_empty());
        words.join(", ")
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_try_is_called_one() {
        let progress = Progress::default();
        assert_eq!(progress.words(), "");
        progress.begin("", 359);
        assert_eq!(progress.words(), "0 of 359");
        progress.tries("ping in 2025-11-25".to_owned());
        progress.step(1);
        assert_eq!(progress.words(), "ping in 2025-11-25, 1 of 359");
        progress.begin("once more, alone", 9);
        progress.tries("rpc-big-id in 2025-11-25".to_owned());
        progress.step(12);
        assert_eq!(progress.words(), "once more, alone: rpc-big-id in 2025-11-25, 9 of 9");
    }
}
