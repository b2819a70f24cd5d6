//! One call at an edge: from the client's request to the answer, or to an error that is true.
//!
//! Only a bounce, "no responders" and a worker that says so prove that nothing ran. After any silence the call may
//! have run: it is repeated only if it may run twice, and otherwise fails with words and data that say so.

use std::time::Duration;

use bytes::Bytes;
use serde_json::json;
use taut::transport::{MessageSender, SendMessageError};
use tokio::sync::watch;
use tokio::time::Instant;

use super::inbox::Inbox;
use super::offers::Offers;
use super::{Edge, listen};
use crate::discovery;
use crate::due;
use crate::message::{self, Request};

/// How long after a connection was opened again workers may take to do the same.
const RETURN: Duration = Duration::from_secs(5);

/// How often a call is repeated after a loss, if it may run twice, or after a worker said that it did not run.
const REPEATS: usize = 2;

pub(super) struct EdgeCall {
    pub(super) edge: Edge,
    pub(super) request: Request,
    client: MessageSender,
    pub(super) cancelled: watch::Receiver<()>,
    pub(super) listen: bool,
    /// Whether a stream of changes was acknowledged once.
    opened: bool,
    /// When it waits no longer for a worker with a free slot, or for the broker: at its deadline at the latest.
    give_up: Instant,
    /// Whether an attempt before this one may have run.
    repeated: bool,
    pub(super) deadline: Option<Instant>,
    /// The attempt that was published before the call had a task, and when.
    pub(super) begun: Option<(Inbox, Instant)>,
    pub(super) offers: Offers,
    /// The worker that has offered a free slot.
    offered: Option<String>,
}

/// How one attempt ended.
pub(super) enum Ended {
    /// The client has its answer, or wants none any more.
    Done,
    /// No worker took it; nothing ran.
    Bounced,
    Nobody,
    /// Nobody has answered at all.
    Silent,
    /// A worker took it and was not heard of again, or what it said was not whole.
    Lost(String),
    /// A worker took it, and there was no connection to the broker for too long.
    Cut,
    /// The worker that kept the stream of changes leaves.
    Moved,
    /// A worker says that there is no answer.
    Failed {
        worker: Option<String>,
        words: String,
        may_have_run: bool,
    },
    Deadline,
}

impl EdgeCall {
    pub(super) fn new(
        edge: Edge,
        request: Request,
        client: MessageSender,
        cancelled: watch::Receiver<()>,
    ) -> Self {
        let listen = request.method == "subscriptions/listen";
        let (now, options) = (Instant::now(), &edge.0.options);
        let deadline = options.deadline.filter(|_| !listen).map(|limit| now + limit);
        let give_up = now + options.wait;
        let give_up = deadline.map_or(give_up, |deadline| deadline.min(give_up));
        Self {
            edge,
            request,
            client,
            cancelled,
            listen,
            opened: false,
            give_up,
            repeated: false,
            deadline,
            begun: None,
            offers: Offers::default(),
            offered: None,
        }
    }

    /// It goes on with what was published already.
    pub(super) fn begun(mut self, inbox: Inbox, published: Instant) -> Self {
        self.give_up = published + self.edge.0.options.wait;
        self.begun = Some((inbox, published));
        self
    }

    pub(super) async fn run(mut self) {
        self.try_until_it_ends().await;
        self.offers.close(&self.edge).await;
    }

    async fn try_until_it_ends(&mut self) {
        let mut pinned = self.request.worker.clone();
        let (mut pauses, mut repeats) = (0, 0);
        loop {
            if pauses > 0 && self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return self.out_of_time().await;
            }
            // The other end is dropped when the call is withdrawn.
            if self.begun.is_none()
                && (self.cancelled.has_changed().is_err() || !self.wait_for_broker().await)
            {
                return;
            }
            let offered = self.offered.take();
            let ended = self.attempt(offered.as_deref().or(pinned.as_deref())).await;
            let shared = self.edge.0.clone();
            let service = &shared.service;
            match ended {
                Ended::Done => return,
                Ended::Nobody if offered.is_some() => continue,
                Ended::Nobody if pinned.is_some() => {
                    // The worker is gone. A state that does not depend on it works elsewhere.
                    pinned = None;
                    continue;
                }
                Ended::Nobody if !self.may_return().await => {
                    let words = format!(
                        "nobody serves {service} at {}; start a worker: taut worker {service} -- COMMAND",
                        self.edge.0.connection.url()
                    );
                    return self.fail("nobody", &words, None, self.repeated).await;
                }
                Ended::Bounced | Ended::Nobody
                    if !self.opened && Instant::now() >= self.give_up =>
                {
                    return self.out_of_time().await;
                }
                Ended::Bounced | Ended::Nobody | Ended::Moved => {}
                Ended::Silent | Ended::Lost(_) | Ended::Cut | Ended::Failed { .. }
                    if self.listen && self.opened => {}
                Ended::Silent => {
                    if !self.go_on_after(true, &mut repeats).await {
                        let words = format!(
                            "no worker of {service} has said that it took the call within {:?}; it may have run",
                            self.edge.0.options.accept
                        );
                        return self.fail("silent", &words, None, true).await;
                    }
                }
                Ended::Lost(worker) => {
                    if !self.go_on_after(true, &mut repeats).await {
                        let words = format!(
                            "worker {worker} of {service} took the call and was lost; it may have run"
                        );
                        return self.fail("lost", &words, Some(&worker), true).await;
                    }
                }
                Ended::Cut => {
                    let words = format!(
                        "the connection to the broker at {} was lost while a worker had the call; it may have run",
                        self.edge.0.connection.url()
                    );
                    return self.fail("disconnected", &words, None, true).await;
                }
                Ended::Failed { worker, mut words, may_have_run } => {
                    if !self.go_on_after(may_have_run, &mut repeats).await {
                        if self.repeated && !may_have_run {
                            words += "; an attempt before this one may have run";
                        }
                        return self.fail("worker", &words, worker.as_deref(), self.repeated).await;
                    }
                }
                Ended::Deadline => {
                    let words = "the call's deadline has passed; it was cancelled and may have run";
                    return self.fail("deadline", words, None, true).await;
                }
            }
            pauses += 1;
            if !self.pause(pauses).await {
                return;
            }
        }
    }

    /// No worker had a free slot in time. If an attempt before may have run, that is not the whole story.
    async fn out_of_time(&self) {
        if self.repeated {
            let words = "the call was lost and could not be repeated in time; it may have run";
            return self.fail("deadline", words, None, true).await;
        }
        let (service, options) = (&self.edge.0.service, &self.edge.0.options);
        let limit = options.deadline.map_or(options.wait, |limit| limit.min(options.wait));
        let words = format!(
            "busy: no worker of {service} had a free slot within {limit:?}; nothing ran, try again later or start more workers"
        );
        self.fail("busy", &words, None, false).await;
    }

    /// Waits until there is a connection: nothing is published without one. Returns whether to go on.
    async fn wait_for_broker(&mut self) -> bool {
        let connection = self.edge.0.connection.clone();
        if connection.link().connected {
            return true;
        }
        let limit = if self.opened { None } else { Some(self.give_up) };
        tokio::select! {
            biased;
            () = connection.connected() => true,
            _ = self.cancelled.changed() => false,
            () = due(limit) => {
                let ran = if self.repeated { "the call may have run" } else { "nothing ran" };
                let words = format!(
                    "no connection to the broker at {}; {ran}. It is opened again by itself",
                    connection.url()
                );
                self.fail("disconnected", &words, None, self.repeated).await;
                false
            }
        }
    }

    /// After "no responders": whether a worker may come yet, or is there after all.
    async fn may_return(&self) -> bool {
        let connection = &self.edge.0.connection;
        self.opened
            || connection.link().reopened.is_some_and(|when| when.elapsed() < RETURN)
            || discovery::is_served(connection, &self.edge.0.service).await
    }

    /// Whether to try again after an attempt that has no answer. One that may have run is repeated only if it may run
    /// twice; one that did not run, as long as the call would wait for a free slot. At most [`REPEATS`] times either way.
    async fn go_on_after(&mut self, may_have_run: bool, repeats: &mut usize) -> bool {
        *repeats += 1;
        self.repeated |= may_have_run;
        *repeats <= REPEATS
            && match may_have_run {
                true => self.may_repeat().await,
                false => Instant::now() < self.give_up,
            }
    }

    async fn may_repeat(&self) -> bool {
        match message::tool(&self.request) {
            Some(tool) => self.edge.may_repeat(tool).await,
            None => message::only_reads(&self.request.method),
        }
    }

    /// Waits before the next attempt: for a worker that offers a free slot, and each time longer, up to a
    /// quarter of a second. Returns whether to go on.
    async fn pause(&mut self, pauses: u32) -> bool {
        let limit = Duration::from_millis(1 << pauses.min(8)).min(Duration::from_millis(250));
        // Not all at the same time.
        let mut random = [0; 1];
        let _ = getrandom::fill(&mut random);
        tokio::select! {
            () = tokio::time::sleep(limit * (128 + u32::from(random[0])) / 384) => true,
            () = due(self.deadline) => true,
            worker = self.offers.next() => {
                self.offered = Some(worker);
                true
            }
            _ = self.cancelled.changed() => false,
        }
    }

    /// Passes on progress, a log line or a change.
    pub(super) async fn pass(&mut self, json: Bytes) -> Result<(), SendMessageError> {
        if self.listen {
            if self.opened
                && let Some(changes) = listen::reopened(&json)
            {
                for change in changes {
                    self.client.send(change).await?;
                }
                return Ok(());
            }
            self.opened = true;
        }
        match self.client.send(json.into()).await {
            Err(error @ SendMessageError::Closed) => Err(error),
            // Not worth more than a note: the answer says how the call went.
            Err(error) => {
                tracing::warn!("a message of a worker was left out: {error}");
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }

    pub(super) async fn answer(&self, json: Vec<u8>) {
        pass_answer(&self.client, &self.request.id, Ok(json)).await;
    }

    /// Answers with an error of the fleet's own.
    async fn fail(&self, reason: &str, words: &str, worker: Option<&str>, may_have_run: bool) {
        let data = json!({ "fleet": reason, "worker": worker, "mayHaveRun": may_have_run });
        let json = message::error_answer(&self.request.id, words, &data);
        // A client that has closed wants no answer.
        let _ = self.client.send(json).await;
    }
}

/// Passes the answer to the request `id` on to its client. One that cannot be passed on, perhaps seen before, is told as
/// an error.
pub(super) async fn pass_answer(
    client: &MessageSender,
    id: &str,
    json: Result<Vec<u8>, SendMessageError>,
) {
    let sent = match json {
        Ok(json) => client.send(json).await,
        Err(error) => Err(error),
    };
    match sent {
        Ok(()) | Err(SendMessageError::Closed) => {}
        Err(error) => {
            let words = format!("the call ran, but its answer cannot be passed on: {error}");
            let data = json!({ "fleet": "answer", "worker": null, "mayHaveRun": true });
            // As above: a client that has closed wants no answer.
            let _ = client.send(message::error_answer(id, &words, &data)).await;
        }
    }
}
