//! What a run does now, and how much is left: told to whoever shows it.

use std::sync::{Arc, Mutex, PoisonError};

/// What a run does now. A clone shows the same run.
#[derive(Clone, Debug, Default)]
pub struct Progress(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    what: String,
    done: usize,
    all: usize,
}

impl Progress {
    /// Begins a part of the run that has so many steps.
    pub(crate) fn begin(&self, what: &str, all: usize) {
        *self.state() = State { what: what.to_owned(), done: 0, all };
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
        match state.all {
            0 => state.what.clone(),
            all => format!("{}, {} of {all}", state.what, state.done.min(all)),
        }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
