//! What we ask: calls, their deadlines, and the answers to them.

use std::time::{Duration, Instant};

use serde_json::value::RawValue;

use super::{CallId, Event, Failure, Patience, Peer, SendError, TroubleKind};
use crate::rpc::error::ErrorObject;
use crate::rpc::id::Id;
use crate::rpc::message::Fault;
use crate::rpc::part::Part;
use crate::rpc::write::{self, Body};

/// A call that waits for its answer.
#[derive(Debug)]
pub(super) struct Pending {
    firm: bool,
    deadline: Option<Deadline>,
}

#[derive(Clone, Copy, Debug)]
struct Deadline {
    due: Instant,
    began: Instant,
    patience: Patience,
    /// Since when it does not run, and for how many reasons.
    held: Option<(Instant, u32)>,
}

impl Deadline {
    /// The moment after which no progress helps.
    fn ceiling(&self) -> Option<Instant> {
        self.began.checked_add(self.patience.ceiling?)
    }

    /// How long it was given, and whether only the ceiling ended it.
    fn given(&self) -> (Duration, bool) {
        let Patience { timeout, ceiling } = self.patience;
        match ceiling {
            Some(ceiling) if Some(self.due) == self.ceiling() => (ceiling, ceiling > timeout),
            _ => (timeout, false),
        }
    }
}

impl Peer {
    /// An id for a call that is about to be made with [`call_as`](Self::call_as), for putting its
    /// progress token into the params.
    pub fn reserve_call(&mut self) -> CallId {
        let call = CallId(self.next_call);
        self.next_call += 1;
        call
    }

    /// How many calls of ours are unanswered.
    #[must_use]
    pub fn calls(&self) -> usize {
        self.calls.len()
    }

    /// Calls the other side. The answer comes as [`Event::Reply`], or its loss from
    /// [`poll_lost`](Self::poll_lost).
    ///
    /// # Errors
    /// The connection has ended, or the params have no JSON form. Then nothing was written.
    pub fn call(
        &mut self,
        now: Instant,
        method: &str,
        params: Option<&dyn Body>,
        patience: Option<Patience>,
    ) -> Result<CallId, SendError> {
        let call = self.reserve_call();
        let sent = self.call_as(now, call, method, params, patience);
        if sent.is_err() {
            self.next_call = call.0;
        }
        sent.map(|()| call)
    }

    /// As [`call`](Self::call), with an id that was [reserved](Self::reserve_call) for it.
    ///
    /// # Errors
    /// As for [`call`](Self::call).
    pub fn call_as(
        &mut self,
        now: Instant,
        call: CallId,
        method: &str,
        params: Option<&dyn Body>,
        patience: Option<Patience>,
    ) -> Result<(), SendError> {
        if self.ended {
            return Err(SendError::Closed);
        }
        let id = Id::from(call.0);
        self.out
            .try_frame(self.framing, |out| write::request(out, &id, method, params))
            .map_err(SendError::Json)?;
        // A time beyond all clocks is no deadline.
        let deadline = patience.and_then(|patience| {
            let ceiling = patience.ceiling.unwrap_or(patience.timeout);
            let due = now.checked_add(patience.timeout.min(ceiling))?;
            self.next_due = Some(self.next_due.map_or(due, |next| next.min(due)));
            Some(Deadline { due, began: now, patience, held: None })
        });
        let firm = self.config.dialect.firm.contains(&method);
        self.calls.insert(call.0, Pending { firm, deadline });
        Ok(())
    }

    /// Tells the other side something.
    ///
    /// A serving side may do so after the input has ended, while it finishes what it accepted.
    ///
    /// # Errors
    /// As for [`call`](Self::call) (L18).
    pub fn notify(&mut self, method: &str, params: Option<&dyn Body>) -> Result<(), SendError> {
        if self.ended && !self.config.serving {
            return Err(SendError::Closed);
        }
        self.out
            .try_frame(self.framing, |out| write::notification(out, method, params))
            .map_err(SendError::Json)
    }

    /// Gives up a call: it is withdrawn on the wire, once, and a late answer is dropped.
    pub fn cancel(&mut self, call: CallId, reason: &str) {
        if let Some(pending) = self.calls.remove(&call.0) {
            self.write_cancel(call, &pending, reason);
        }
    }

    /// The next call that ended without an answer, and why.
    pub fn poll_lost(&mut self) -> Option<(CallId, Failure)> {
        self.lost.pop_front()
    }

    /// Time has passed: calls that are due have timed out and are withdrawn (C10).
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.next_due.is_none_or(|due| now < due) {
            return;
        }
        let mut due: Vec<u64> = Vec::new();
        self.next_due = None;
        for (call, pending) in &self.calls {
            let Some(deadline) = pending.deadline else { continue };
            if deadline.held.is_some() {
                continue;
            }
            if deadline.due <= now {
                due.push(*call);
            } else {
                self.next_due =
                    Some(self.next_due.map_or(deadline.due, |next| next.min(deadline.due)));
            }
        }
        due.sort_unstable();
        for call in due.into_iter().map(CallId) {
            let Some(pending) = self.calls.remove(&call.0) else { continue };
            let (after, ceiling) =
                pending.deadline.map_or((Duration::ZERO, false), |deadline| deadline.given());
            self.write_cancel(call, &pending, "timed out");
            self.lost.push_back((call, Failure::TimedOut { after, ceiling }));
        }
    }

    /// The other side waits for us before it can answer, for instance because a person is to be
    /// asked: no time runs for the calls under way until [`resume`](Self::resume).
    pub fn hold(&mut self, now: Instant) {
        for deadline in self.calls.values_mut().filter_map(|pending| pending.deadline.as_mut()) {
            let (_, reasons) = deadline.held.get_or_insert((now, 0));
            *reasons += 1;
        }
    }

    /// One reason less to [`hold`](Self::hold): what was left of the time is left now.
    pub fn resume(&mut self, now: Instant) {
        for deadline in self.calls.values_mut().filter_map(|pending| pending.deadline.as_mut()) {
            let Some((since, reasons)) = &mut deadline.held else { continue };
            *reasons -= 1;
            if *reasons > 0 {
                continue;
            }
            let pause = now.saturating_duration_since(*since);
            deadline.held = None;
            deadline.began = deadline.began.checked_add(pause).unwrap_or(deadline.began);
            deadline.due = deadline.due.checked_add(pause).unwrap_or(deadline.due);
            self.next_due = Some(self.next_due.map_or(deadline.due, |due| due.min(deadline.due)));
        }
    }

    fn write_cancel(&mut self, call: CallId, pending: &Pending, reason: &str) {
        // CAN-01; LIF-16, L14: what is firm is left to itself.
        if pending.firm || self.ended {
            return;
        }
        let dialect = self.config.dialect;
        let params = serde_json::json!({ dialect.cancel_member: call.0, "reason": reason });
        self.out.frame(self.framing, |out| {
            // Numbers and strings always have a JSON form.
            let _ = write::notification(out, dialect.cancel, Some(&params));
        });
    }

    pub(super) fn take_progress<'a>(
        &mut self,
        now: Instant,
        params: Option<&'a RawValue>,
    ) -> Option<Event<'a>> {
        // C5: a token that is nobody's is ignored; it often races the answer.
        let params = params?;
        let call = Part::from(params).member("progressToken")?.text().parse().ok()?;
        let pending = self.calls.get_mut(&call)?;
        if let Some(deadline) = &mut pending.deadline
            && deadline.patience.ceiling.is_some()
        {
            let ends = [now.checked_add(deadline.patience.timeout), deadline.ceiling()];
            deadline.due = ends.into_iter().flatten().min().unwrap_or(deadline.due);
        }
        Some(Event::Progress { call: CallId(call), params })
    }

    pub(super) fn take_response<'a>(
        &mut self,
        id: Option<Id>,
        outcome: Result<&'a RawValue, ErrorObject>,
        offset: u64,
    ) -> Option<Event<'a>> {
        let Some(id) = id else { return outcome.err().map(Event::StrayError) };
        let call = self.end_call(&id, offset)?;
        Some(Event::Reply { call, outcome: outcome.map_err(Failure::Refused) })
    }

    /// A response that cannot be used fails the call that it names.
    pub(super) fn take_bad_response(
        &mut self,
        id: Option<&Id>,
        fault: Fault,
    ) -> Option<Event<'static>> {
        let call = id?.as_u64()?;
        self.calls.remove(&call)?;
        Some(Event::Reply { call: CallId(call), outcome: Err(Failure::Violation(fault)) })
    }

    /// Whether a call of ours has this id.
    pub(super) fn awaits(&self, id: &Id) -> bool {
        id.as_u64().is_some_and(|call| self.calls.contains_key(&call))
    }

    fn end_call(&mut self, id: &Id, offset: u64) -> Option<CallId> {
        let call = id.as_u64();
        if let Some(call) = call
            && self.calls.remove(&call).is_some()
        {
            return Some(CallId(call));
        }
        // Ids only rise, so one that we gave out and no longer know has been answered, has timed
        // out or was cancelled.
        let ours = call.is_some_and(|call| (1..self.next_call).contains(&call));
        let kind = if ours { TroubleKind::Late } else { TroubleKind::Unknown };
        self.note(kind, offset, id.as_json().as_bytes());
        None
    }
}
