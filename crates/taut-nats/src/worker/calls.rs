//! The calls that a worker has: taking them, running them, telling them what comes for them.
//!
//! Knows slots and the two ways to run a call; must not know the subscriptions.

use std::future::Future;
use std::sync::atomic::Ordering;
use std::time::Duration;

use async_nats::{Message, Subject};
use bytes::Bytes;
use taut::transport::{MessagePipe, Outgoing, Relation, SendMessageError};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::call::{Call, Input, Left, NO_REQUEST, SOON, failed, is_plain_answer, refusal};
use super::kept::plain_answer;
use super::quick::QuickCall;
use super::{Done, Running, Way, Worker};
use crate::frame::{Frame, Kind, Trace};
use crate::message;
use crate::names::CallName;

/// How many messages may wait for one call: two windows, and what is said without JSON.
const WAITING: usize = 16;

/// How many bytes of requests in parts are gathered at once.
const GATHERED: usize = 256 << 20;

/// How many calls that were bounced are told of a free slot; about 64 KiB of names.
const BOUNCED: usize = 1024;

impl Worker {
    /// A call came, to the group or to this worker (`direct`).
    pub(super) fn called(&mut self, message: Message, direct: bool) {
        // What it asks for is in the JSON.
        let (method, trace) = (String::new(), Trace::default());
        let plain = || Kind::Call { method, deadline: None, trace };
        match (Frame::read(&message, plain), message.reply) {
            (Ok(frame), Some(reply)) => self.take(frame, reply, direct),
            (Ok(_), None) => {}
            (Err(error), _) => tracing::warn!("{error} came to {}", message.subject),
        }
    }

    /// Takes a call if it has a slot, and says so otherwise.
    fn take(&mut self, frame: Frame, reply: Subject, direct: bool) {
        let Kind::Call { method, deadline, .. } = &frame.kind else { return };
        let name = CallName(reply.clone());
        if self.calls.contains_key(&name) {
            return;
        }
        // The header is only for who cannot read the JSON yet.
        let method = match frame.length {
            Some(_) => method.as_str().into(),
            None => match message::method_of_request(&frame.payload) {
                Some(method) => method,
                None => return self.fail(name, NO_REQUEST, false),
            },
        };
        let listen = method == "subscriptions/listen";
        let gathered = frame.length.unwrap_or(0);
        let (taken, limit) = if listen {
            (&self.counters.listens, self.options.listens)
        } else {
            (&self.counters.busy, self.options.slots)
        };
        let leaving = self.closing || (!direct && self.counters.leaving.load(Ordering::Relaxed));
        let full = taken.load(Ordering::Relaxed) >= limit || self.gathered + gathered > GATHERED;
        if leaving || full {
            self.counters.bounced.fetch_add(1, Ordering::Relaxed);
            if !leaving && self.bounced.len() < BOUNCED {
                match direct {
                    // It was offered a slot, and another call was quicker.
                    true => self.bounced.push_front(reply.clone()),
                    false => self.bounced.push_back(reply.clone()),
                }
            }
            return self.send(reply, vec![Frame::bare(Kind::Bounce)]);
        }
        let deadline = *deadline;
        let quick = frame.length.is_none() && deadline.is_none();
        let way = if quick && !listen && method != "initialize" {
            match self.start_quick(&reply, &frame.payload) {
                Ok(place) => Way::Quick(place),
                Err(error) => return self.fail(name, &refusal(error), false),
            }
        } else {
            let session = self.sessions.take();
            self.spawn(&name, Instant::now(), deadline, |call| call.run(frame, session, listen))
        };
        let taken = if listen { &self.counters.listens } else { &self.counters.busy };
        taken.fetch_add(1, Ordering::Relaxed);
        self.gathered += gathered;
        self.calls.insert(name, Running { listen, gathered, way });
    }

    /// Says that a call has no answer, and why.
    fn fail(&mut self, name: CallName, words: &str, may_have_run: bool) {
        let frames = vec![failed(words, may_have_run)];
        self.send(name.0.clone(), frames.clone());
        self.kept.keep(name, frames);
    }

    /// Starts a call without a task. Returns its place.
    fn start_quick(&mut self, reply: &Subject, json: &Bytes) -> Result<usize, SendMessageError> {
        let (began, serial) = (Instant::now(), self.serial());
        let call = QuickCall { reply: reply.clone(), began, serial };
        let place = self.sessions.start(call, json.to_vec())?;
        self.soon.push_back((began + SOON.min(self.options.heartbeat), place, serial));
        Ok(place)
    }

    fn serial(&mut self) -> u64 {
        self.next_serial += 1;
        self.next_serial
    }

    /// Gives a call a task.
    fn spawn<F>(
        &mut self,
        name: &CallName,
        began: Instant,
        deadline: Option<Duration>,
        run: impl FnOnce(Call) -> F,
    ) -> Way
    where
        F: Future<Output = Left> + Send + 'static,
    {
        let (inputs, receiver) = mpsc::channel(WAITING);
        let serial = self.serial();
        self.serials.insert(serial, name.clone());
        let call = Call {
            connection: self.connection.clone(),
            worker: self.id.clone(),
            gone: format!("{}.gone.{serial}", self.subject).into(),
            heartbeat: self.options.heartbeat,
            deadline,
            counters: self.counters.clone(),
            reply: name.0.clone(),
            began,
            inputs: receiver,
        };
        // In a box, because it is large, and is moved several times before it runs.
        let (name, run) = (name.clone(), Box::pin(run(call)));
        let task = self.tasks.spawn(async move { Done::Call(name, run.await) });
        Way::Task { inputs, task: task.id(), serial }
    }

    /// The session of a call without a task has said something. If that is the answer, it leaves at once.
    pub(super) fn said(&mut self, call: QuickCall, session: MessagePipe, said: Option<Outgoing>) {
        let QuickCall { reply, began, .. } = call;
        let name = CallName(reply);
        match said {
            Some(Outgoing { json, relation: Relation::Answer(_), .. })
                if is_plain_answer(&json, &self.connection) =>
            {
                let (now, error) = (Instant::now(), message::is_error(&json));
                self.counters.ended(began, now, false, error);
                self.sessions.put_back(session);
                self.finished(&name);
                if error && let Some(none) = message::no_answer(&json) {
                    return self.fail(name, &none.words, none.may_have_run);
                }
                let json = Bytes::from(json);
                if !self.answer(&name, &json) {
                    self.send(name.0.clone(), vec![plain_answer(json.clone())]);
                }
                self.kept.keep_plain(name, json, now);
            }
            said => self.give_task(&name, began, session, said),
        }
    }

    /// Sends an answer without headers, if it can be taken at once. Says whether it was.
    fn answer(&mut self, name: &CallName, json: &Bytes) -> bool {
        match name.answers(self.answers.as_ref()) {
            Some(answers) => {
                let sent = self.connection.publish_now(&answers, Some(&name.0), json);
                self.answers = Some(answers);
                sent
            }
            None => self.connection.publish_now(&name.0, None, json),
        }
    }

    /// Calls that were not answered soon are accepted, each by a task.
    pub(super) fn accept_late(&mut self) {
        let now = Instant::now();
        while let Some((due, place, serial)) = self.soon.front().copied() {
            if self.sessions.has(place, serial) {
                if due > now {
                    return;
                }
                self.take_out(place);
            }
            self.soon.pop_front();
        }
    }

    /// Gives the call in this place a task.
    fn take_out(&mut self, place: usize) {
        if let Some((QuickCall { reply, began, .. }, session)) = self.sessions.remove(place) {
            self.give_task(&CallName(reply), began, session, None);
        }
    }

    /// Gives a call a task that began without one.
    fn give_task(
        &mut self,
        name: &CallName,
        began: Instant,
        session: MessagePipe,
        said: Option<Outgoing>,
    ) {
        let way = self.spawn(name, began, None, |call| call.go_on(session, said));
        if let Some(running) = self.calls.get_mut(name) {
            running.way = way;
        }
    }

    /// Offers a free slot to the call that has waited longest for one.
    fn offer(&mut self) {
        let full = self.counters.busy.load(Ordering::Relaxed) >= self.options.slots;
        if full || self.counters.leaving.load(Ordering::Relaxed) {
            return;
        }
        if let Some(reply) = self.bounced.pop_front() {
            let worker = self.identity.worker.clone();
            self.send(reply, vec![Frame::bare(Kind::Free { worker })]);
        }
    }

    /// Sends messages about a call that no task is there for.
    fn send(&mut self, reply: Subject, frames: Vec<Frame>) {
        let connection = self.connection.clone();
        // Not awaited here: a broker that is away must not stop this worker's own messages.
        self.tasks.spawn(async move {
            for frame in frames {
                connection.send(&reply, None, frame).await;
            }
            Done::Sent
        });
    }

    /// A message for this worker alone.
    pub(super) fn told(&mut self, message: Message) {
        if message.headers.is_none() {
            return self.called(message, true);
        }
        let Some(reply) = message.reply.clone() else { return };
        let frame = match Frame::read(&message, || Kind::Filler) {
            Ok(frame) => frame,
            Err(error) => return tracing::warn!("{error} came to {}", message.subject),
        };
        if matches!(frame.kind, Kind::Call { .. }) {
            return self.take(frame, reply, true);
        }
        if frame.kind == Kind::Declined {
            return self.offer();
        }
        let name = CallName(reply);
        if self.calls.contains_key(&name) {
            return self.tell(&name, Input::Frame(frame.into()));
        }
        if let Kind::Again(count) = frame.kind {
            let unknown = || vec![Frame::bare(Kind::Unknown)];
            let frames = self.kept.after(&name, count).unwrap_or_else(unknown);
            self.send(name.0, frames);
        }
    }

    /// Tells a call something; one without a task gets one for it.
    fn tell(&mut self, name: &CallName, input: Input) {
        if let Some(Running { way: Way::Quick(place), .. }) = self.calls.get(name) {
            self.take_out(*place);
        }
        let Some(Running { way: Way::Task { inputs, .. }, .. }) = self.calls.get_mut(name) else {
            return;
        };
        if let Err(mpsc::error::TrySendError::Full(_)) = inputs.try_send(input) {
            tracing::warn!("an edge sent more than its window; its call is given up");
            // Its task sees that nobody can tell it anything any more.
            *inputs = mpsc::channel(1).0;
        }
    }

    /// The broker says that nobody waits at the inbox of a call.
    pub(super) fn edge_gone(&mut self, subject: &str) {
        let serial = subject.rsplit('.').next().and_then(|serial| serial.parse().ok());
        let name = serial.and_then(|serial: u64| self.serials.get(&serial));
        if let Some(Running { way: Way::Task { inputs, .. }, .. }) =
            name.and_then(|name| self.calls.get(name))
        {
            // It is said again with the next heartbeat.
            let _ = inputs.try_send(Input::Gone);
        }
    }

    /// Tells all calls that have a task; those without one are answered or get one soon.
    pub(super) fn tell_all(&self, input: &Input) {
        for running in self.calls.values() {
            if let Way::Task { inputs, .. } = &running.way {
                // One that is so far behind is ended with the process.
                let _ = inputs.try_send(input.clone());
            }
        }
    }

    pub(super) fn panicked(&mut self, ended: tokio::task::Id) {
        let is_it =
            |running: &Running| matches!(&running.way, Way::Task { task, .. } if *task == ended);
        let call = self.calls.iter().find(|(_, running)| is_it(running));
        if let Some(name) = call.map(|(name, _)| name.clone()) {
            self.finished(&name);
        }
    }

    /// The task of a call has ended.
    pub(super) fn done(&mut self, name: CallName, left: Left) {
        if let Some(session) = left.session {
            self.sessions.put_back(session);
        }
        self.finished(&name);
        self.kept.keep(name, left.unacknowledged);
    }

    fn finished(&mut self, name: &CallName) {
        let Some(running) = self.calls.remove(name) else { return };
        if let Way::Task { serial, .. } = running.way {
            self.serials.remove(&serial);
        }
        self.gathered -= running.gathered;
        let taken = if running.listen { &self.counters.listens } else { &self.counters.busy };
        taken.fetch_sub(1, Ordering::Relaxed);
        self.offer();
    }
}
