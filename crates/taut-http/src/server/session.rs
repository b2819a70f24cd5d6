//! One legacy session: a pipe to the service, and the streams on which its messages leave.
//!
//! Knows which request belongs to which stream; must not know HTTP. A lost connection cancels nothing
//! (HCN-01): the pipe lives until the client ends the session, the service does, or nobody has used it
//! for the idle limit (SES-04, SES-09).

use std::collections::{HashMap, VecDeque};
use std::future::{Future, poll_fn};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use bytes::Bytes;
use taut::Revision;
use taut::rpc::{ErrorObject, Id, Message, Messages};
use taut::transport::{
    MessageReceiver, MessageSender, Outgoing, Principal, Relation, SendMessageError,
};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::options::Options;
use super::refusal::error_message;
use super::registry::Registry;
use super::stream::{EventKind, EventLog};
use super::turn::Turn;

/// The number of the stream that belongs to no request.
pub(super) const GENERAL: u64 = 0;

/// How many finished streams are kept for clients that come back, besides the bound on their bytes.
const KEPT: usize = 32;

/// One session.
pub(super) struct Session {
    pub(super) id: String,
    pub(super) principal: Principal,
    sender: MessageSender,
    state: Mutex<SessionState>,
    /// Told when the session is to end.
    end: Notify,
    /// Moves what leaves the service to its streams, and runs the service's side.
    turn: Turn,
}

struct SessionState {
    /// What the answer to that request agreed on. `None` before, and for a revision that is not known.
    revision: Option<Revision>,
    /// The request that opens the session, until it is answered.
    opening: Option<Id>,
    streams: HashMap<u64, Arc<EventLog>>,
    next_stream: u64,
    /// Requests that wait for their answer.
    open: HashMap<Id, Arc<OpenPost>>,
    /// Finished streams, oldest first.
    finished: VecDeque<u64>,
    users: usize,
    used: Instant,
    ended: bool,
}

/// A POST whose requests are not all answered.
struct OpenPost {
    log: Arc<EventLog>,
    missing: Mutex<usize>,
}

impl OpenPost {
    /// One request less is missing. Says whether it was the last.
    fn one_less(&self) -> bool {
        let mut missing = self.missing.lock().unwrap_or_else(PoisonError::into_inner);
        *missing = missing.saturating_sub(1);
        *missing == 0
    }
}

/// Why requests cannot be added.
pub(super) enum NotAdded {
    /// The session is over.
    Ended,
    /// A request with this id waits for its answer already.
    InUse(Id),
}

impl Session {
    pub(super) fn new(
        id: String,
        principal: Principal,
        sender: MessageSender,
        replay: usize,
    ) -> Arc<Self> {
        let state = SessionState {
            revision: None,
            opening: None,
            streams: HashMap::from([(GENERAL, EventLog::new(GENERAL, replay))]),
            next_stream: GENERAL + 1,
            open: HashMap::new(),
            finished: VecDeque::new(),
            users: 0,
            used: Instant::now(),
            ended: false,
        };
        Arc::new(Self {
            id,
            principal,
            sender,
            state: Mutex::new(state),
            end: Notify::new(),
            turn: Turn::default(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, SessionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The revision that was agreed on, once it is.
    pub(super) fn agreed(&self) -> Option<Revision> {
        self.lock().revision
    }

    /// Says which request opens the session.
    pub(super) fn opens_with(&self, id: &Id) {
        self.lock().opening = Some(id.clone());
    }

    /// The answer to the request that opens the session: the revision that was agreed on, or the end.
    fn opened(&self, answer: &[u8]) {
        #[derive(serde::Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Agreed {
            protocol_version: String,
        }
        self.lock().opening = None;
        let read = taut::rpc::read(answer);
        let Ok(Messages::One(Message::Response { outcome: Ok(result), .. })) = read else {
            return self.end();
        };
        let agreed = serde_json::from_str::<Agreed>(result.get());
        let revision = agreed.ok().and_then(|agreed| Revision::parse(&agreed.protocol_version));
        self.lock().revision = revision;
    }

    /// Hands one message to the service, and does what comes of it on the spot if that is possible.
    pub(super) async fn send(&self, message: Vec<u8>) -> Result<(), SendMessageError> {
        match self.turn.take(|| self.sender.try_send(message))? {
            None => Ok(()),
            Some(message) => self.sender.send(message).await,
        }
    }

    /// Ends the session.
    pub(super) fn end(&self) {
        self.lock().ended = true;
        self.end.notify_one();
    }

    pub(super) fn is_ended(&self) -> bool {
        self.lock().ended
    }

    /// Notes that a connection uses the session, until the note is dropped.
    pub(super) fn used(self: &Arc<Self>) -> SessionUse {
        self.lock().users += 1;
        SessionUse(self.clone())
    }

    /// The stream with this number.
    pub(super) fn stream(&self, number: u64) -> Option<Arc<EventLog>> {
        self.lock().streams.get(&number).cloned()
    }

    /// Opens a stream for requests that are about to be sent.
    pub(super) fn add(&self, ids: &[Id], replay: usize) -> Result<Arc<EventLog>, NotAdded> {
        let mut state = self.lock();
        if state.ended {
            return Err(NotAdded::Ended);
        }
        let twice = |at: usize| ids[..at].contains(&ids[at]) || state.open.contains_key(&ids[at]);
        if let Some(at) = (0..ids.len()).find(|at| twice(*at)) {
            return Err(NotAdded::InUse(ids[at].clone()));
        }
        let log = EventLog::new(state.next_stream, replay);
        state.next_stream += 1;
        state.streams.insert(log.number(), log.clone());
        let post = Arc::new(OpenPost { log: log.clone(), missing: Mutex::new(ids.len()) });
        state.open.extend(ids.iter().map(|id| (id.clone(), post.clone())));
        Ok(log)
    }

    /// Forgets requests that could not be sent, and their stream.
    pub(super) fn forget(&self, ids: &[Id], log: &EventLog) {
        let mut state = self.lock();
        ids.iter().for_each(|id| drop(state.open.remove(id)));
        state.streams.remove(&log.number());
        drop(state);
        log.finish();
    }

    /// The stream of a finished POST is kept while there is room.
    fn finished(&self, log: &Arc<EventLog>, replay: usize) {
        log.finish();
        let mut state = self.lock();
        if log.is_abandoned() {
            state.streams.remove(&log.number());
            return;
        }
        state.finished.push_back(log.number());
        let bytes = |state: &SessionState| -> usize {
            let kept = state.finished.iter().filter_map(|number| state.streams.get(number));
            kept.map(|log| log.bytes()).sum()
        };
        while state.finished.len() > KEPT || (state.finished.len() > 1 && bytes(&state) > replay) {
            let Some(oldest) = state.finished.pop_front() else { break };
            state.streams.remove(&oldest);
        }
    }

    /// A finished stream whose only answer left as JSON is not needed any more.
    pub(super) fn delivered(&self, log: &EventLog) {
        let mut state = self.lock();
        state.streams.remove(&log.number());
        state.finished.retain(|number| *number != log.number());
    }

    /// How long nobody has used it; `None` while somebody does.
    fn idle(&self) -> Option<Duration> {
        let state = self.lock();
        (state.users == 0).then(|| state.used.elapsed())
    }

    /// Delivers one message of the service to its stream. Gives messages that had to go unread.
    async fn deliver(&self, message: Outgoing, options: &Options) -> Vec<Bytes> {
        let json = Bytes::from(message.json);
        let general = || self.stream(GENERAL);
        match message.relation {
            Relation::Answer(id) => {
                let Some(post) = self.lock().open.remove(&id) else { return Vec::new() };
                if self.lock().opening.as_ref() == Some(&id) {
                    self.opened(&json);
                }
                let log = &post.log;
                if !log.is_abandoned() {
                    log.push(EventKind::Answer, json, options.stall_timeout).await;
                }
                if post.one_less() {
                    self.finished(log, options.replay);
                }
                Vec::new()
            }
            Relation::Withdrawn(id) => {
                let post = self.lock().open.remove(&id);
                if let Some(post) = post.filter(|post| post.one_less()) {
                    self.finished(&post.log, options.replay);
                }
                Vec::new()
            }
            relation => {
                // SSE-02: what belongs to a request leaves on its stream, unless its client is gone.
                let own = match &relation {
                    Relation::About(id) => self.lock().open.get(id).map(|post| post.log.clone()),
                    _ => None,
                };
                let own = own.filter(|log| !log.is_abandoned());
                let Some(log) = own.or_else(general) else { return Vec::new() };
                log.push(EventKind::Other, json, options.stall_timeout).await
            }
        }
    }

    /// The session is over: who waits for an answer is told.
    async fn close(&self, reason: &'static str, options: &Options) {
        let (open, streams) = {
            let mut state = self.lock();
            state.ended = true;
            (std::mem::take(&mut state.open), std::mem::take(&mut state.streams))
        };
        for (id, post) in open {
            let error = error_message(Some(&id), &ErrorObject::internal(reason), false);
            post.log.push(EventKind::Answer, error.into(), options.stall_timeout).await;
            post.one_less();
        }
        streams.values().for_each(|log| log.finish());
    }
}

/// A session is in use as long as this lives.
pub(super) struct SessionUse(Arc<Session>);

impl Drop for SessionUse {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.users = state.users.saturating_sub(1);
        state.used = Instant::now();
    }
}

/// Returns the future that does the session's work: it moves what leaves the service to its streams until the
/// session ends. `receiver` holds the service's side.
pub(super) fn begin(
    session: Arc<Session>,
    receiver: MessageReceiver,
    registry: Weak<Registry>,
    options: Arc<Options>,
) -> impl Future<Output = ()> + Send + 'static {
    let work = run(session.clone(), receiver, registry, options);
    Turn::begin(session, |session| &session.turn, work)
}

async fn run(
    session: Arc<Session>,
    mut receiver: MessageReceiver,
    registry: Weak<Registry>,
    options: Arc<Options>,
) {
    // Set anew only when it rings: a session that is used need not move its timer for each message.
    let mut idle_timer = std::pin::pin!(tokio::time::sleep(options.session_idle));
    let mut end = std::pin::pin!(session.end.notified());
    let reason = loop {
        let message = tokio::select! {
            biased;
            message = receiver.recv() => message,
            () = &mut end => break "the session was ended",
            () = &mut idle_timer => {
                let idle = session.idle().unwrap_or_default();
                if idle >= options.session_idle {
                    break "the session was idle";
                }
                idle_timer.as_mut().reset(Instant::now() + (options.session_idle - idle));
                continue;
            }
        };
        let Some(message) = message else {
            break "the server ended the session; send initialize again";
        };
        let delivered = async {
            for question in session.deliver(message, &options).await {
                refuse_question(&session, &question).await;
            }
        };
        tokio::select! {
            biased;
            () = meanwhile(&mut receiver, delivered) => {}
            () = &mut end => break "the session was ended",
        }
    };
    if let Some(registry) = registry.upgrade() {
        registry.remove(&session.id);
    }
    // First the service's side, which may be a process.
    drop(receiver);
    session.close(reason, &options).await;
}

/// Waits for `work`. Meanwhile the service's side goes on: it hears of a cancellation, and makes room for what is
/// sent to it.
async fn meanwhile(receiver: &mut MessageReceiver, work: impl Future<Output = ()>) {
    let mut work = std::pin::pin!(work);
    poll_fn(|cx| {
        let done = work.as_mut().poll(cx);
        if done.is_pending() {
            receiver.poll_session(cx);
        }
        done
    })
    .await;
}

/// Answers a request of the service that no client has read.
async fn refuse_question(session: &Session, message: &[u8]) {
    if let Ok(Messages::One(Message::Request { id, .. })) = taut::rpc::read(message) {
        let error = ErrorObject::internal("the client reads no stream on which it could be asked");
        // A session that is over needs no answer.
        let _ = session.sender.send(error_message(Some(&id), &error, false)).await;
    }
}
