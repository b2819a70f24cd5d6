//! Sessions that wait for their next call.
//!
//! To open a session costs more than a quick call does. Calls of 2026-07-28 share no state, so a session whose
//! call was answered has nothing of it any more, and takes the next one. Must not know a call: who uses a
//! session says whether it may be used again.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Waker};

use taut::transport::{MessagePipe, MessageService, Principal};

pub(super) struct Sessions {
    service: Arc<dyn MessageService>,
    idle: Mutex<Vec<MessagePipe>>,
    /// How many wait, at most.
    most: usize,
}

impl Sessions {
    pub(super) fn new(service: Arc<dyn MessageService>, most: usize) -> Self {
        Self { service, idle: Mutex::default(), most }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<MessagePipe>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The one that was used last, so that few are used at all; otherwise a new one.
    pub(super) fn take(&self) -> MessagePipe {
        let mut idle = self.lock();
        while let Some(mut session) = idle.pop() {
            if is_quiet(&mut session) {
                return session;
            }
        }
        drop(idle);
        self.service.open(Principal::ANONYMOUS)
    }

    /// Keeps a session whose only call was answered.
    pub(super) fn put_back(&self, session: MessagePipe) {
        let mut idle = self.lock();
        if idle.len() < self.most {
            idle.push(session);
        }
    }
}

/// Whether it is open and has said nothing: what it says now would reach the wrong call.
fn is_quiet(session: &mut MessagePipe) -> bool {
    session.poll_recv(&mut Context::from_waker(Waker::noop())).is_pending()
}
