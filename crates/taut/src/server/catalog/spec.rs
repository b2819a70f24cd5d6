//! What is offered, with what its types say about it: worked out when it is first listed.
//!
//! A host wants to know with whom it speaks before it asks for schemas, if it ever does; making them
//! all took longer than the rest of a server's start.

use std::ops::Deref;
use std::sync::{Arc, OnceLock};

/// A description as it was given, and in full once somebody asks. Copies share what was worked out.
#[derive(Clone)]
pub(crate) struct Spec<T>(Arc<Described<T>>);

struct Described<T> {
    given: T,
    /// Nothing if it was given in full.
    complete: Option<fn(T) -> T>,
    whole: OnceLock<T>,
}

impl<T: Clone> Spec<T> {
    /// There is no more to say than this.
    pub(crate) fn new(given: T) -> Self {
        Self(Arc::new(Described { given, complete: None, whole: OnceLock::new() }))
    }

    /// The rest is asked of the types when it is wanted.
    pub(crate) fn later(given: T, complete: fn(T) -> T) -> Self {
        Self(Arc::new(Described { given, complete: Some(complete), whole: OnceLock::new() }))
    }

    /// The description in full.
    pub(crate) fn whole(&self) -> &T {
        let Described { given, complete, whole } = &*self.0;
        match complete {
            Some(complete) => whole.get_or_init(|| complete(given.clone())),
            None => given,
        }
    }

    /// The same, if nothing has to be worked out for it.
    pub(crate) fn known(&self) -> Option<&T> {
        if self.0.complete.is_none() { Some(&self.0.given) } else { self.0.whole.get() }
    }
}

/// As it was given: enough for names.
impl<T> Deref for Spec<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0.given
    }
}
