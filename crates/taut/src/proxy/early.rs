//! What a server says before its connection is ready for clients.
//!
//! Knows how much of that is kept, and when it is told; must not know to whom it belongs. A server may log as soon as it
//! has answered the handshake, in the same write even, when the proxy has not taken the answer in yet.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::state::{BackState, EarlyNote};
use crate::client::SessionState;
use crate::json::RawJson;
use crate::lock::lock;
use crate::mcp::{Method, ServerCapabilities};
use crate::rpc::Params;

/// So much is kept: what a server has to say of its start, four pipes full.
const MOST: usize = 256 << 10;

/// What a notification costs beside its text.
const NOTE: usize = 128;

impl EarlyNote {
    fn params(&self) -> Params<'_> {
        Params::from(self.params.as_ref().map(RawJson::raw))
    }
}

impl BackState {
    /// Keeps a notification if it comes too early. Says whether it did.
    pub(super) fn keep_early(
        &self,
        from: &Arc<SessionState>,
        method: &str,
        params: &Params<'_>,
    ) -> bool {
        if self.opened.is_raised() {
            return false;
        }
        let mut early = lock(&self.early);
        if early.open {
            return false;
        }
        let params = params.raw();
        let bytes = NOTE + method.len() + params.map_or(0, |raw| raw.get().len());
        if early.bytes + bytes > MOST {
            early.dropped += 1;
            return true;
        }
        early.bytes += bytes;
        let (from, params) = (Arc::downgrade(from), params.map(RawJson::from));
        early.notes.push(EarlyNote { from, method: method.to_owned(), params });
        true
    }

    /// The connection is ready for clients: tells what came too early, in order. From here on nothing is kept.
    pub(super) fn tell_early(&self, agreed: &Arc<SessionState>, offer: &ServerCapabilities) {
        let dropped = loop {
            let notes = {
                let mut early = lock(&self.early);
                if early.notes.is_empty() {
                    early.open = true;
                    break early.dropped;
                }
                std::mem::take(&mut early.notes)
            };
            // Of a process that was given up while the server was opened nothing is told.
            let told = |note: &EarlyNote| std::ptr::eq(note.from.as_ptr(), Arc::as_ptr(agreed));
            for note in notes.into_iter().filter(told) {
                let is_line = Method::parse(&note.method) == Some(Method::Message);
                if is_line && self.sessions.owner.get().is_none() {
                    let mut early = lock(&self.early);
                    early.lines.push(note);
                    self.early_lines.store(true, Ordering::Release);
                } else {
                    self.hear(&note.method, &note.params());
                }
            }
        };
        if dropped > 0 {
            tracing::warn!(dropped, "the server said too much before its connection was ready");
            self.tell_all_changed(offer);
        }
        self.opened.raise();
    }

    /// The first request is under way: the lines of the start are for the one that the server was started for.
    pub(super) fn tell_early_lines(&self) {
        if !self.early_lines.swap(false, Ordering::AcqRel) {
            return;
        }
        let lines = std::mem::take(&mut lock(&self.early).lines);
        lines.iter().for_each(|line| self.hear(&line.method, &line.params()));
    }
}
