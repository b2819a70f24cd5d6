//! The legacy sessions that are open: found by id, bound to who opened them, bounded in number.
//!
//! Knows ids and principals; must not know messages. SES-01, SES-04, SES-08.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::StatusCode;
use taut::transport::{MessageService, Principal};
use tokio::task::AbortHandle;

use super::options::Options;
use super::refusal::Refusal;
use super::session::{self, Session};

/// All open sessions. Dropping it ends them.
#[derive(Default)]
pub(super) struct Registry {
    sessions: Mutex<HashMap<String, Open>>,
}

struct Open {
    session: Arc<Session>,
    task: AbortHandle,
}

impl Registry {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Open>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens a session.
    pub(super) fn open(
        self: &Arc<Self>,
        service: &dyn MessageService,
        principal: Principal,
        options: &Arc<Options>,
    ) -> Result<Arc<Session>, Refusal> {
        let full = || {
            Refusal::busy(format!(
                "{} sessions are open, which is the limit: end one with DELETE, try again later, or \
                 allow more (sessions, --max-sessions)",
                options.sessions
            ))
        };
        if self.lock().len() >= options.sessions {
            return Err(full());
        }
        let id = random_id()?;
        let (sender, receiver) = service.open_in_place(principal.clone()).split();
        let session = Session::new(id.clone(), principal, sender, options.replay);
        let mut sessions = self.lock();
        if sessions.len() >= options.sessions {
            return Err(full());
        }
        let work = session::begin(session.clone(), receiver, Arc::downgrade(self), options.clone());
        let task = tokio::spawn(work).abort_handle();
        sessions.insert(id, Open { session: session.clone(), task });
        Ok(session)
    }

    /// The session with this id, if it is open and the principal's own. Somebody else's is as unknown
    /// as one that never was (SES-08).
    pub(super) fn find(&self, id: &str, principal: &Principal) -> Result<Arc<Session>, Refusal> {
        let sessions = self.lock();
        let session = sessions.get(id).map(|open| &open.session);
        let own = session.filter(|session| session.principal == *principal && !session.is_ended());
        own.cloned().ok_or_else(|| {
            // SES-04
            Refusal::new(
                StatusCode::NOT_FOUND,
                "no such session, or it has ended: send initialize again, without Mcp-Session-Id",
            )
        })
    }

    pub(super) fn remove(&self, id: &str) {
        let mut sessions = self.lock();
        sessions.remove(id);
        // A table for thousands of sessions is given back with them.
        if sessions.capacity() > 64 && sessions.len() < sessions.capacity() / 8 {
            let room = 2 * sessions.len();
            sessions.shrink_to(room);
        }
    }

    pub(super) fn len(&self) -> usize {
        self.lock().len()
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        for open in self.lock().values() {
            open.task.abort();
        }
    }
}

/// 128 random bits, in visible ASCII (SES-01).
fn random_id() -> Result<String, Refusal> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)
        .map_err(|_| Refusal::busy("the system gives no random numbers for a session id"))?;
    let mut id = String::with_capacity(32);
    for byte in bytes {
        // Writing to a string cannot fail.
        let _ = write!(id, "{byte:02x}");
    }
    Ok(id)
}
