//! The messages of one session, carried over HTTP.
//!
//! Knows which message goes how: a request is a POST of its own in a task of its own, and so is an answer or a
//! cancellation, which must not wait for anything; notifications leave one after the other, in order. Must not know how an answer is read (`exchange`), how a
//! stream is taken up again (`stream`), nor how a session is renewed (`session`). HTP-02, HCN-02.

mod exchange;
mod old;
mod send;
mod session;
mod stream;
mod tools;

use std::collections::HashMap;
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use taut::rpc::{ErrorObject, Id};
use taut::transport::{MessageReceiver, MessageSender};
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::task::{AbortHandle, JoinSet};

use super::annotations::Annotations;
use super::error::HttpError;
use super::http::Http;
use super::message::{Message, method};
use super::url::Url;
use exchange::Asked;
use session::SessionState;

/// How long saying goodbye may take. Somebody waits for it.
const GOODBYE: Duration = Duration::from_secs(3);

/// What is done when a server refuses the token of a request that opens the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusals {
    /// The opening ends, and the caller gets another token: a person may have to log in, which takes
    /// longer than an opening may.
    EndTheOpening,
    /// Another token is asked for at once, as later in the session.
    AskAtOnce,
}

/// What one session shares.
pub(crate) struct Carrier {
    http: Http,
    url: Url,
    sender: MessageSender,
    refusals: Refusals,
    /// Whether the server has answered one of the two opening requests.
    opened: AtomicBool,
    session: Mutex<SessionState>,
    /// Held while a lost session is renewed.
    renewing: tokio::sync::Mutex<()>,
    annotations: Mutex<Annotations>,
    /// The requests that are being made.
    open: Mutex<HashMap<Id, OpenRequest>>,
    /// One permit for each connection that requests may use.
    places: Semaphore,
    /// The same for answers and cancellations: those that requests wait for must not wait for requests.
    quick_places: Semaphore,
    /// The bytes of all messages that are on their way.
    waiting: AtomicUsize,
    /// Where messages go in the transport of 2024-11-05, once it turned out to be that.
    old: OnceLock<Url>,
    failed: mpsc::Sender<HttpError>,
    tasks: Mutex<JoinSet<()>>,
}

struct OpenRequest {
    task: AbortHandle,
    modern: bool,
}

/// A notification on its way.
struct Note {
    json: Bytes,
    /// Told when the server has it.
    done: Option<oneshot::Sender<()>>,
    _counted: Waiting,
}

/// What a message takes in memory beside its bytes while it waits.
const BESIDE: usize = 512;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Carrier {
    pub(crate) fn new(
        http: Http,
        url: Url,
        sender: MessageSender,
        refusals: Refusals,
    ) -> (Self, mpsc::Receiver<HttpError>) {
        let (failed, failures) = mpsc::channel(1);
        let most = http.options.max_requests.min(Semaphore::MAX_PERMITS);
        let (places, quick_places) = (Semaphore::new(most), Semaphore::new(most));
        let carrier = Self {
            http,
            url,
            sender,
            refusals,
            opened: AtomicBool::new(false),
            session: Mutex::default(),
            renewing: tokio::sync::Mutex::default(),
            annotations: Mutex::default(),
            open: Mutex::default(),
            places,
            quick_places,
            waiting: AtomicUsize::new(0),
            old: OnceLock::new(),
            failed,
            tasks: Mutex::default(),
        };
        (carrier, failures)
    }

    /// Carries messages until the session is over, or the server cannot be used any more.
    pub(crate) async fn run(
        self: Arc<Self>,
        mut receiver: MessageReceiver,
        mut failures: mpsc::Receiver<HttpError>,
    ) {
        let _stops = StopTasks(self.clone());
        // They are bounded in bytes.
        let (notes, waiting_notes) = mpsc::unbounded_channel();
        self.spawn(self.clone().carry_notes(waiting_notes));
        let failure = loop {
            let next = poll_fn(|cx| match failures.poll_recv(cx) {
                Poll::Ready(error) => Poll::Ready(Err(error)),
                Poll::Pending => receiver.poll_recv(cx).map(|message| message.ok_or(None)),
            });
            match next.await {
                Ok(message) => self.take(message.json, &notes).await,
                Err(failure) => break failure,
            }
        };
        lock(&self.tasks).abort_all();
        if let Some(error) = failure {
            tracing::debug!(%error, "the connection failed");
            self.sender.fail(error);
            while receiver.recv().await.is_some() {}
        }
        self.say_goodbye().await;
        self.sender.close();
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> AbortHandle {
        let mut tasks = lock(&self.tasks);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(task)
    }

    /// The connection cannot go on.
    fn fail(&self, error: HttpError) {
        // Only the first reason counts.
        let _ = self.failed.try_send(error);
    }

    fn is_opened(&self) -> bool {
        self.opened.load(Ordering::Relaxed)
    }

    async fn take(self: &Arc<Self>, json: Vec<u8>, notes: &mpsc::UnboundedSender<Note>) {
        // Only says that a request of the server was withdrawn.
        if json.is_empty() {
            return;
        }
        let json = Bytes::from(json);
        let message = Message::read(&json);
        if let Some(message) = message.as_ref().filter(|message| message.is_request())
            && let Some(asked) = Asked::read(message, json.clone())
        {
            return self.start(asked).await;
        }
        let withdraws = match &message {
            Some(message) if message.method.as_deref() == Some(method::CANCELLED) => {
                message.params().withdrawn()
            }
            _ => None,
        };
        // HCN-02: the end of the connection says it, and nothing else does.
        if let Some(id) = &withdraws
            && lock(&self.open).get(id).is_some_and(|open| open.modern)
        {
            return self.drop_request(id);
        }
        let Ok(counted) = Waiting::count(self, json.len() + BESIDE) else {
            tracing::warn!("too many bytes wait for the server: a message to it is left out");
            return;
        };
        if withdraws.is_some() || message.as_ref().is_some_and(Message::is_response) {
            self.send_at_once(json.clone(), withdraws, counted);
            return;
        }
        let method = message.as_ref().and_then(|message| message.method.as_deref());
        let (done, confirmed) = oneshot::channel();
        let opens = method == Some(method::INITIALIZED);
        let note = Note { json: json.clone(), done: opens.then_some(done), _counted: counted };
        if notes.send(note).is_ok() && opens {
            // No request overtakes it.
            let _ = confirmed.await;
            self.open_server_stream();
        }
    }

    /// Sends an answer, or the cancellation of `withdraws`, in a task of its own: the server may be unable to confirm
    /// a notification before it has this.
    fn send_at_once(self: &Arc<Self>, json: Bytes, withdraws: Option<Id>, counted: Waiting) {
        let carrier = self.clone();
        self.spawn(async move {
            let _place = carrier.quick_places.acquire().await.ok();
            if let Err(error) = carrier.send_note(&json, withdraws.is_some()).await {
                tracing::debug!(%error, "an answer or a cancellation was not taken");
            }
            if let Some(id) = withdraws {
                carrier.drop_request(&id);
            }
            drop(counted);
        });
    }

    async fn start(self: &Arc<Self>, asked: Asked) {
        let counted = match Waiting::count(self, asked.json.len()) {
            Ok(counted) => counted,
            Err(before) => {
                let why = format!("{before} bytes of requests wait for the server already");
                return self.answer_error(&asked.id, &ErrorObject::internal(why)).await;
            }
        };
        let carrier = self.clone();
        let (id, modern) = (asked.id.clone(), asked.version.is_some());
        // Held until the request is entered, so that its end cannot come before.
        let mut open = lock(&self.open);
        let task = self.spawn(async move {
            carrier.request(asked).await;
            drop(counted);
        });
        open.insert(id, OpenRequest { task, modern });
    }

    fn drop_request(&self, id: &Id) {
        if let Some(open) = lock(&self.open).remove(id) {
            open.task.abort();
        }
    }

    /// Sends notifications, one after the other.
    async fn carry_notes(self: Arc<Self>, mut notes: mpsc::UnboundedReceiver<Note>) {
        while let Some(note) = notes.recv().await {
            if let Err(error) = self.send_note(&note.json, false).await {
                tracing::debug!(%error, "a notification was not taken");
            }
            if let Some(done) = note.done {
                let _ = done.send(());
            }
        }
    }

    /// Gives a request an error of our own for an answer.
    async fn answer_error(&self, id: &Id, error: &ErrorObject) {
        let error = serde_json::to_string(error).unwrap_or_default();
        let json = format!(r#"{{"jsonrpc":"2.0","id":{},"error":{error}}}"#, id.as_json());
        // A session that is over needs no answer.
        let _ = self.sender.send(json.into_bytes()).await;
    }
}

/// Ends the tasks of a session with it, also if it is dropped half-way.
struct StopTasks(Arc<Carrier>);

impl Drop for StopTasks {
    fn drop(&mut self) {
        lock(&self.0.tasks).abort_all();
    }
}

/// Counts the bytes of a message until it is over, however that comes.
struct Waiting(Arc<Carrier>, usize);

impl Waiting {
    /// Fails with what waits already if there is no room. One that is longer than the bound passes alone.
    fn count(carrier: &Arc<Carrier>, bytes: usize) -> Result<Self, usize> {
        let before = carrier.waiting.fetch_add(bytes, Ordering::Relaxed);
        let counted = Self(carrier.clone(), bytes);
        let limit = carrier.http.options.max_waiting_bytes;
        if before > 0 && before.saturating_add(bytes) > limit { Err(before) } else { Ok(counted) }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(self.1, Ordering::Relaxed);
    }
}
