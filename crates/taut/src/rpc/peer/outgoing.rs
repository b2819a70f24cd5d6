//! What we ask: calls, their deadlines, and the answers to them.

use std::time::{Duration, Instant};

use serde_json::value::RawValue;

use super::{CallId, Event, Failure, Patience, Peer, SendError, TroubleKind, take};
use crate::json::{JsonBuf, JsonRef};
use crate::rpc::error::ErrorObject;
use crate::rpc::id::Id;
use crate::rpc::message::Fault;
use crate::rpc::params::Params;
use crate::rpc::write;

/// A call that waits for its answer.
#[derive(Debug)]
pub(super) struct OpenCall {
    firm: bool,
    deadline: Option<Deadline>,
    /// The request that it belongs to, where that is [tracked](Peer::track_relations).
    about: Option<Id>,
}

/// Keeps the deadlines of the calls that were under way from running. [`Peer::hold`] makes it,
/// [`Peer::resume`] takes it back.
#[derive(Debug)]
#[must_use = "the deadlines stand still until it is given to `resume`"]
pub struct HoldId(u64);

#[derive(Clone, Copy, Debug)]
struct Deadline {
    due: Instant,
    began: Instant,
    patience: Patience,
    /// When a [`HoldId`] stopped it, if one did.
    held: Option<Instant>,
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
        self.calls_made += 1;
        CallId(self.calls_made)
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
    /// The connection has ended. Then nothing was written.
    pub fn call(
        &mut self,
        now: Instant,
        method: &str,
        params: Option<JsonRef<'_>>,
        patience: Option<Patience>,
    ) -> Result<CallId, SendError> {
        let call = self.reserve_call();
        self.call_as(now, call, method, params, patience)?;
        Ok(call)
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
        params: Option<JsonRef<'_>>,
        patience: Option<Patience>,
    ) -> Result<(), SendError> {
        self.call_written(now, call, method, patience, |out, id| {
            write::request(out, id, method, params);
        })
    }

    /// As [`call_as`](Self::call_as), with a message that `write` appends whole.
    pub(crate) fn call_written(
        &mut self,
        now: Instant,
        call: CallId,
        method: &str,
        patience: Option<Patience>,
        write: impl FnOnce(&mut Vec<u8>, &Id),
    ) -> Result<(), SendError> {
        if self.ended {
            return Err(SendError::Closed);
        }
        let id = Id::from(call.0);
        let about = self.relations.next.clone();
        self.relations.add(None);
        self.out.frame(self.framing, |out| write(out, &id));
        // A time beyond all clocks is no deadline.
        let deadline = patience.and_then(|patience| {
            let ceiling = patience.ceiling.unwrap_or(patience.timeout);
            let due = now.checked_add(patience.timeout.min(ceiling))?;
            self.next_due = Some(self.next_due.map_or(due, |next| next.min(due)));
            Some(Deadline { due, began: now, patience, held: None })
        });
        let firm = self.config.dialect.firm.contains(&method);
        self.calls.insert(call.0, OpenCall { firm, deadline, about });
        Ok(())
    }

    /// Tells the other side something.
    ///
    /// A serving side may do so after the input has ended, while it finishes what it accepted.
    ///
    /// # Errors
    /// As for [`call`](Self::call) (L18).
    pub fn notify(&mut self, method: &str, params: Option<JsonRef<'_>>) -> Result<(), SendError> {
        if self.ended && !self.config.serving {
            return Err(SendError::Closed);
        }
        self.relations.add(None);
        self.out.frame(self.framing, |out| write::notification(out, method, params));
        Ok(())
    }

    /// Gives up a call: it is withdrawn on the wire, once, and a late answer is dropped.
    pub fn cancel(&mut self, call: CallId, reason: &str) {
        if let Some(pending) = take(&mut self.calls, &call.0) {
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
            let Some(pending) = take(&mut self.calls, &call.0) else { continue };
            let (after, ceiling) =
                pending.deadline.map_or((Duration::ZERO, false), |deadline| deadline.given());
            self.write_cancel(call, &pending, "timed out");
            self.lost.push_back((call, Failure::TimedOut { after, ceiling }));
        }
    }

    /// Stops the deadlines of all calls under way, until [`resume`](Self::resume) is given the hold
    /// that this returns. Call it when the other side has to wait for us before it can answer, for
    /// instance while a person is asked.
    ///
    /// A call made later is not affected. A call that several holds affect stays stopped until the
    /// last of them is resumed.
    pub fn hold(&mut self, now: Instant) -> HoldId {
        let hold = HoldId(self.next_hold);
        self.next_hold += 1;
        self.holds.push((hold.0, self.calls_made));
        for deadline in self.calls.values_mut().filter_map(|pending| pending.deadline.as_mut()) {
            deadline.held.get_or_insert(now);
        }
        hold
    }

    /// Ends a hold. The deadlines that no other hold stops run on, with the time that they had left
    /// when they were stopped.
    pub fn resume(&mut self, now: Instant, hold: HoldId) {
        self.holds.retain(|(open, _)| *open != hold.0);
        // Call numbers rise, so the newest open hold is the one that affects most calls.
        let still_held = self.holds.last().map_or(0, |(_, last_call)| *last_call);
        for (call, pending) in &mut self.calls {
            let Some(deadline) = &mut pending.deadline else { continue };
            if *call <= still_held {
                continue;
            }
            let Some(since) = deadline.held.take() else { continue };
            let pause = now.saturating_duration_since(since);
            deadline.began = deadline.began.checked_add(pause).unwrap_or(deadline.began);
            deadline.due = deadline.due.checked_add(pause).unwrap_or(deadline.due);
            self.next_due = Some(self.next_due.map_or(deadline.due, |due| due.min(deadline.due)));
        }
    }

    fn write_cancel(&mut self, call: CallId, pending: &OpenCall, reason: &str) {
        // CAN-01; LIF-16, L14: what is firm is left to itself.
        if pending.firm || self.ended {
            return;
        }
        let dialect = self.config.dialect;
        let params = serde_json::json!({ dialect.cancel_member: call.0, "reason": reason });
        // Numbers and strings always have a JSON form.
        let params = JsonBuf::of(&params).unwrap_or_default();
        let params = Some(params.as_json());
        self.relations.about(pending.about.as_ref());
        self.relations.add(None);
        self.out.frame(self.framing, |out| write::notification(out, dialect.cancel, params));
    }

    pub(super) fn take_progress<'a>(
        &mut self,
        now: Instant,
        params: Params<'a>,
    ) -> Option<Event<'a>> {
        // C5: a token that belongs to no call is ignored: the report may arrive after the answer.
        let call = params.member("progressToken")?.text().parse().ok()?;
        let pending = self.calls.get_mut(&call)?;
        if let Some(deadline) = &mut pending.deadline
            && deadline.patience.ceiling.is_some()
        {
            let clock = deadline.held.unwrap_or(now);
            let ends = [clock.checked_add(deadline.patience.timeout), deadline.ceiling()];
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
        let call = id.as_u64();
        if let Some(call) = call
            && take(&mut self.calls, &call).is_some()
        {
            let outcome = outcome.map_err(Failure::Refused);
            return Some(Event::Reply { call: CallId(call), outcome });
        }
        // Ids only rise, so one that we gave out and no longer know has been answered, has timed
        // out or was cancelled.
        let ours = call.is_some_and(|call| (1..=self.calls_made).contains(&call));
        let kind = if ours { TroubleKind::Late } else { TroubleKind::Unknown };
        self.note(kind, offset, id.as_json().as_bytes());
        None
    }

    /// A response that cannot be used fails the call that it names.
    pub(super) fn take_bad_response(
        &mut self,
        id: Option<&Id>,
        fault: Fault,
    ) -> Option<Event<'static>> {
        let call = id?.as_u64()?;
        take(&mut self.calls, &call)?;
        Some(Event::Reply { call: CallId(call), outcome: Err(Failure::Violation(fault)) })
    }

    /// Whether a call of ours has this id.
    pub(super) fn awaits(&self, id: &Id) -> bool {
        id.as_u64().is_some_and(|call| self.calls.contains_key(&call))
    }
}
