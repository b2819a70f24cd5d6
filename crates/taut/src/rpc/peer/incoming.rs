//! What the other side asks: the table of requests, the queue behind it, batches, withdrawal.

use std::borrow::Cow;

use super::table::Table;
use super::{Event, NoId, Peer, PeerRequest, TroubleKind};
use crate::json::JsonBuf;
use crate::rpc::error::{ErrorObject, code};
use crate::rpc::id::Id;
use crate::rpc::params::Params;
use crate::rpc::write;
use crate::wire::Framing;

/// Places in the queue that are made at a time, and kept when it is empty.
const SPARE: usize = 64;

/// The duty to answer one request. It cannot be copied; answering consumes it.
#[derive(Debug)]
#[must_use = "a request must be answered"]
pub struct Ticket {
    id: Id,
    serial: u64,
    framing: Framing,
    batch: Option<u64>,
    slot: Slot,
}

/// What a request takes up until its ticket returns.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Slot {
    Running,
    Open,
    Nothing,
}

impl Ticket {
    /// The request's id.
    #[must_use]
    pub fn id(&self) -> &Id {
        &self.id
    }

    /// A number that no other request of this connection has, unlike the id.
    #[must_use]
    pub fn serial(&self) -> u64 {
        self.serial
    }
}

/// A request in the table.
#[derive(Debug)]
pub(super) struct OpenRequest {
    serial: u64,
    firm: bool,
    framing: Framing,
    batch: Option<u64>,
}

/// A request that waits its turn.
#[derive(Debug)]
pub(super) struct Queued {
    ticket: Ticket,
    method: Box<str>,
    params: Params<'static>,
}

impl Queued {
    /// What any costs: its place in the queue, which has a quarter to spare, and its entry in the
    /// table.
    const PLACE: usize = size_of::<Self>() * 5 / 4 + Table::<OpenRequest>::PLACE;

    /// What it costs to keep. The id is kept twice.
    fn size(&self) -> usize {
        let params = self.params.raw().map_or(0, |params| params.get().len());
        let id = self.ticket.id.allocated().map(allocation).into_iter().sum::<usize>();
        Self::PLACE + allocation(self.method.len()) + allocation(params) + 2 * id
    }
}

/// What an allocator takes for so many bytes. The figures are glibc's; others differ by little.
fn allocation(bytes: usize) -> usize {
    if bytes == 0 { 0 } else { (bytes + 8).next_multiple_of(16).max(32) }
}

/// The answers to a batch, until the last has come.
#[derive(Debug)]
pub(super) struct Batch {
    /// Entries that may still be answered.
    missing: usize,
    /// `[`, then the answers so far, separated by commas.
    body: Vec<u8>,
    framing: Framing,
}

impl Peer {
    /// The next request that waited for its turn.
    pub fn poll_request(&mut self) -> Option<PeerRequest<'static>> {
        while self.running < self.config.running {
            let queued = self.queue.pop_front()?;
            if self.queue.is_empty() {
                self.shrink();
            }
            self.queued_bytes -= queued.size();
            if self.is_live(&queued.ticket) {
                self.running += 1;
                let Queued { ticket, method, params } = queued;
                let method = Cow::Owned(method.into());
                return Some(PeerRequest { ticket, method, params });
            }
            // Withdrawn while it waited; its batch was told then.
        }
        None
    }

    /// Whether a request waits for its turn.
    #[cfg(feature = "tokio")]
    pub(crate) fn has_queued(&self) -> bool {
        !self.queue.is_empty()
    }

    /// How many requests are unanswered, running or waiting.
    #[must_use]
    pub fn unanswered(&self) -> usize {
        self.requests.len()
    }

    /// The ids of requests that are unanswered, the first few by name.
    #[cfg(feature = "tokio")]
    pub(crate) fn unanswered_in_words(&self) -> String {
        const NAMED: usize = 10;
        let ids: Vec<_> = self.requests.ids().take(NAMED).map(Id::as_json).collect();
        let more = self.unanswered() - ids.len();
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        format!("{}{more}", ids.join(", "))
    }

    /// Whether an answer would still be written.
    #[must_use]
    pub fn is_live(&self, ticket: &Ticket) -> bool {
        self.is_live_serial(&ticket.id, ticket.serial)
    }

    pub(crate) fn is_live_serial(&self, id: &Id, serial: u64) -> bool {
        self.requests.get(id).is_some_and(|entry| entry.serial == serial)
    }

    /// A buffer to write an answer into. It comes back with the answer, so most answers allocate none.
    #[must_use]
    pub fn answer_buffer(&mut self) -> JsonBuf {
        std::mem::take(&mut self.spare)
    }

    /// Answers a request, with the JSON of its result or with an error. Nothing is written if it was
    /// withdrawn (CAN-10). A long text is not copied.
    pub fn answer(&mut self, ticket: Ticket, outcome: Result<JsonBuf, ErrorObject>) {
        let wanted = self.settle(&ticket);
        let before = self.out.len();
        match outcome {
            Ok(mut json) => {
                if wanted {
                    let (head, tail) = write::around_result(&ticket.id);
                    let (message, start) = json.enclose(&head, tail);
                    match self.batch_of(&ticket) {
                        None => {
                            self.relations.add(Some(&ticket.id));
                            self.out.add(ticket.framing, message, start);
                        }
                        Some(batch) => self.keep_in_batch(batch, Ok(&ticket.id), |body| {
                            body.extend_from_slice(&message[start..]);
                        }),
                    }
                }
                json.clear();
                self.spare = json;
            }
            Err(error) if wanted => self.write_error(&ticket, &error),
            Err(_) => {}
        }
        if !self.config.serving {
            self.count_answer(before);
        }
        self.close_ticket(&ticket);
    }

    /// A side that only calls reads on whatever waits, so a peer that asks and reads nothing would fill memory.
    fn count_answer(&mut self, before: usize) {
        if before == 0 {
            self.answered_bytes = 0;
        }
        self.answers_stuck |= self.answered_bytes > self.config.answers;
        self.answered_bytes += self.out.len().saturating_sub(before);
    }

    /// The handler is done. Says whether the other side still waits for the answer.
    fn settle(&mut self, ticket: &Ticket) -> bool {
        match ticket.slot {
            Slot::Running => self.running = self.running.saturating_sub(1),
            Slot::Open => self.open = self.open.saturating_sub(1),
            Slot::Nothing => {}
        }
        match self.requests.remove(&ticket.id) {
            Some(entry) if entry.serial == ticket.serial => return true,
            // The request was withdrawn, and another one uses its id by now.
            Some(other) => self.requests.insert(ticket.id.clone(), other),
            None => {}
        }
        false
    }

    /// Forgets a request: whatever its handler comes to, nothing is written.
    #[cfg(feature = "tokio")]
    pub(crate) fn forget(&mut self, id: &Id) {
        self.requests.remove(id);
    }

    pub(super) fn take_request<'a>(
        &mut self,
        id: Id,
        method: Cow<'a, str>,
        params: Params<'a>,
        framing: Framing,
        offset: u64,
        batch: Option<u64>,
    ) -> Option<Event<'a>> {
        let dialect = self.config.dialect;
        let (slot, full) = if dialect.urgent.contains(&&*method) {
            (Slot::Nothing, false)
        } else if dialect.open_ended.contains(&&*method) {
            (Slot::Open, self.open >= self.config.open_ended)
        } else {
            (Slot::Running, self.is_full(self.config.output_busy))
        };
        let serial = self.next_serial;
        self.next_serial += 1;
        let ticket = Ticket { id, serial, framing, batch, slot };
        // C6: the first keeps its place.
        if self.requests.get(&ticket.id).is_some() {
            self.note(TroubleKind::DuplicateId, offset, ticket.id.as_json().as_bytes());
            self.refuse(ticket, ErrorObject::invalid_request("id is already in use"));
            return None;
        }
        if full {
            self.note(TroubleKind::Busy, offset, ticket.id.as_json().as_bytes());
            self.refuse(ticket, self.busy());
            return None;
        }
        let firm = dialect.firm.contains(&&*method);
        self.requests.insert(ticket.id.clone(), OpenRequest { serial, firm, framing, batch });
        let waits = self.running >= self.config.running || !self.queue.is_empty();
        match slot {
            Slot::Running if waits => {
                let params = params.into_owned();
                let queued = Queued { ticket, method: method.into(), params };
                self.enqueue(queued);
                return None;
            }
            Slot::Running => self.running += 1,
            Slot::Open => self.open += 1,
            Slot::Nothing => {}
        }
        Some(Event::Request(PeerRequest { ticket, method, params }))
    }

    fn enqueue(&mut self, queued: Queued) {
        self.queued_bytes += queued.size();
        if self.queue.len() == self.queue.capacity() {
            // Doubling would keep twice what is counted.
            self.queue.reserve_exact((self.queue.len() / 4).max(SPARE));
        }
        self.queue.push_back(queued);
    }

    /// Gives back what a long queue has taken, once nothing waits. Moving those costs no more than
    /// filling the queue did.
    fn shrink(&mut self) {
        if self.queue.capacity() > 2 * SPARE {
            self.queue.shrink_to(SPARE);
            self.requests.shrink_to(SPARE);
        }
    }

    fn busy(&self) -> ErrorObject {
        ErrorObject::internal(format!(
            "busy: {} requests are running, {} stay open and {} bytes wait; try again when one ends",
            self.running, self.open, self.queued_bytes
        ))
        .with_data(&serde_json::json!({
            "limits": {
                "running": self.config.running,
                "openEnded": self.config.open_ended,
                "queueBytes": self.config.queue,
            }
        }))
    }

    /// Answers a request that never entered the table.
    fn refuse(&mut self, ticket: Ticket, error: ErrorObject) {
        let before = self.out.len();
        self.write_error(&ticket, &error);
        if !self.config.serving {
            self.count_answer(before);
        }
        self.close_ticket(&ticket);
    }

    /// The other side no longer wants an answer.
    pub(super) fn withdraw(&mut self, params: &Params<'_>) -> Option<Event<'static>> {
        let dialect = self.config.dialect;
        // CAN-07: what names no request is ignored, and so is what names one that has ended.
        let id = Id::from_json(params.member(dialect.cancel_member)?.text())?;
        self.requests.get(&id).filter(|entry| !entry.firm)?;
        let OpenRequest { serial, framing, batch, .. } = self.requests.remove(&id)?;
        if dialect.cancel_is_answered {
            let error = ErrorObject::new(code::CANCELLED, "request cancelled");
            // The ticket itself is still out; when it comes back it finds nothing left to answer.
            let ticket = Ticket { id, serial, framing, batch, slot: Slot::Nothing };
            self.write_error(&ticket, &error);
        } else {
            self.relations.withdrawn(&id);
        }
        // A request that is still in the queue was never given out, so no event is needed.
        if self.empty_queued(serial) { None } else { Some(Event::Withdrawn(serial)) }
    }

    /// Drops what a queued request holds but its place: whether there was one. The queue is in the
    /// order of serials, and leaving the place is what makes this cheap.
    fn empty_queued(&mut self, serial: u64) -> bool {
        let at = self.queue.binary_search_by_key(&serial, |queued| queued.ticket.serial);
        let Some(queued) = at.ok().and_then(|at| self.queue.get_mut(at)) else { return false };
        self.queued_bytes -= queued.size();
        queued.method = Box::default();
        queued.params = Params::ABSENT;
        self.queued_bytes += queued.size();
        if let Some(batch) = queued.ticket.batch.take() {
            self.shrink_batch(batch);
        }
        true
    }

    /// The batch whose answer is to hold the answer to this request, if it is part of one.
    fn batch_of(&self, ticket: &Ticket) -> Option<u64> {
        ticket.batch.filter(|batch| self.batches.contains_key(batch))
    }

    fn write_error(&mut self, ticket: &Ticket, error: &ErrorObject) {
        let write = |out: &mut Vec<u8>| write::error(out, Ok(&ticket.id), error);
        match self.batch_of(ticket) {
            None => {
                self.relations.add(Some(&ticket.id));
                self.out.frame(ticket.framing, write);
            }
            Some(batch) => self.keep_in_batch(batch, Ok(&ticket.id), write),
        }
    }

    /// Adds an answer to those that wait for the last of their batch, or says that it is too much.
    pub(super) fn keep_in_batch(
        &mut self,
        batch: u64,
        id: Result<&Id, NoId>,
        write: impl FnOnce(&mut Vec<u8>),
    ) {
        let Some(batch) = self.batches.get_mut(&batch) else { return };
        let (before, limit) = (batch.body.len(), self.config.batch);
        if before > 1 {
            batch.body.push(b',');
        }
        let start = batch.body.len();
        write(&mut batch.body);
        if self.batched_bytes + batch.body.len() - before > limit {
            batch.body.truncate(start);
            let error = ErrorObject::internal(format!(
                "the answers of a batch have more than {limit} bytes; ask for this one alone"
            ));
            write::error(&mut batch.body, id, &error);
        }
        self.batched_bytes += batch.body.len() - before;
    }

    /// Nothing more will come of this request; its batch may be complete.
    fn close_ticket(&mut self, ticket: &Ticket) {
        if let Some(batch) = ticket.batch {
            self.shrink_batch(batch);
        }
    }

    pub(super) fn open_batch(&mut self, entries: usize, framing: Framing) -> u64 {
        let batch = self.next_serial;
        self.next_serial += 1;
        self.batches.insert(batch, Batch { missing: entries, body: vec![b'['], framing });
        batch
    }

    /// One entry less to wait for. RPC-25: a batch without answers is not answered by an empty array.
    pub(super) fn shrink_batch(&mut self, key: u64) {
        let Some(batch) = self.batches.get_mut(&key) else { return };
        batch.missing -= 1;
        if batch.missing > 0 {
            return;
        }
        if let Some(Batch { body, framing, .. }) = self.batches.remove(&key)
            && body.len() > 1
        {
            self.batched_bytes = self.batched_bytes.saturating_sub(body.len() - 1);
            self.relations.add(None);
            self.out.frame(framing, |out| {
                out.extend_from_slice(&body);
                out.push(b']');
            });
        }
    }
}
