//! What the parts of a proxy are made of, as data.
//!
//! Knows who owns whom: the proxy owns slots, a slot owns a connection to the server, a connection knows
//! whose calls are open on it, and a client's connection knows its session. What is done with each is in
//! the file that is named after it.

use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::RandomState;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::{Duration, Instant};

use tokio::sync::{Notify, Semaphore, mpsc, oneshot, watch};
use tokio::task::AbortHandle;

use super::connector::{Connector, ProxyEvent};
use super::followed::Followed;
use crate::client::{Backoff, Client, ClientBuilder, RestartPolicy, SessionState};
use crate::driver::{Flag, Link, Options, Outcome, PendingCall};
use crate::json::RawJson;
use crate::mcp::{
    Asker, ClientCapabilities, Era, Implementation, Level, Method, Revision, SubscriptionFilter,
};
use crate::rpc::{CallId, Config, ErrorObject, Id, Seed};
use crate::transport::Principal;

/// Everything that can be set.
#[derive(Clone)]
pub(super) struct ProxySettings {
    pub(super) client: ClientBuilder,
    pub(super) config: Config,
    pub(super) options: Options,
    pub(super) signals: bool,
    pub(super) restart: RestartPolicy,
    /// Shares so many connections among all clients; otherwise each legacy session has its own.
    pub(super) children: Option<usize>,
    pub(super) serial: bool,
    /// The only era that clients may speak.
    pub(super) front_era: Option<Era>,
    /// The only revision that clients may speak. It is one of that era.
    pub(super) front_revision: Option<Revision>,
    pub(super) idle: Duration,
    pub(super) max_parked: usize,
    pub(super) max_parked_bytes: usize,
    pub(super) parked_for: Duration,
    pub(super) attribution: Duration,
    pub(super) max_held: usize,
    pub(super) max_held_bytes: usize,
    pub(super) max_waiting_bytes: usize,
    pub(super) max_subscription_bytes: usize,
    pub(super) max_routes: usize,
    pub(super) on_event: Option<ProxyHook>,
}

/// What all connections of a proxy share.
pub(super) struct ProxyShared {
    pub(super) connector: Arc<dyn Connector>,
    pub(super) settings: ProxySettings,
    /// For modern requests: the connections of each principal, or of all in one pool.
    pub(super) slots: Mutex<HashMap<Principal, Vec<Arc<BackSlot>>>>,
    /// All slots, those of legacy sessions included, by their numbers.
    pub(super) all: Mutex<HashMap<u64, Weak<BackSlot>, Seed>>,
    pub(super) next_slot: AtomicU64,
    pub(super) parked: Mutex<ParkedCalls>,
    pub(super) routes: Mutex<Routes>,
    /// Has a receiver for each connection to the server, so that the end of all of them can be waited for.
    pub(super) open: watch::Sender<()>,
}

pub(super) type ProxyHook = Arc<dyn Fn(&ProxyEvent) + Send + Sync>;

/// Who a connection is opened for: the first client that needs it.
#[derive(Clone)]
pub(super) struct Identity {
    pub(super) era: Era,
    /// The params of its own `initialize`, and the revision that they offer.
    pub(super) initialize: Option<(Revision, RawJson)>,
    pub(super) info: Option<Implementation>,
    pub(super) capabilities: ClientCapabilities,
}

/// Something to be done with the connection, or with the error that there is none.
pub(super) type BackJob = Box<dyn FnOnce(Result<&Arc<Back>, &ErrorObject>) + Send>;

/// A place for a connection to the server.
pub(super) struct BackSlot {
    pub(super) shared: Weak<ProxyShared>,
    pub(super) number: u64,
    pub(super) dedicated: bool,
    pub(super) identity: Identity,
    /// The streams of changes of modern clients, where the server is legacy. They outlive a lost
    /// connection.
    pub(super) streams: Arc<LocalStreams>,
    /// The legacy sessions that use it. They outlive a lost connection, too.
    pub(super) sessions: Arc<SlotSessions>,
    pub(super) max_waiting_bytes: usize,
    /// Raised when it is closed: a connection that is being opened is given up.
    pub(super) closing: Flag,
    pub(super) state: Mutex<SlotState>,
}

#[derive(Default)]
pub(super) struct SlotState {
    pub(super) phase: SlotPhase,
    pub(super) backoff: Backoff,
    /// Whether there was a connection before: the next one takes up what clients have said to it.
    pub(super) had: bool,
    /// When somebody last asked for it.
    pub(super) used: Option<Instant>,
}

#[derive(Default)]
pub(super) enum SlotPhase {
    #[default]
    Idle,
    Opening {
        waiting: Vec<BackJob>,
        bytes: usize,
        /// The connection before, which has ended without a word of its watcher so far: that one opens the next.
        ended: Option<Arc<Back>>,
    },
    Ready(Arc<Back>),
    Closed,
}

/// The legacy sessions that use one slot.
#[derive(Default)]
pub(super) struct SlotSessions {
    pub(super) fronts: Mutex<Vec<Weak<FrontState>>>,
    /// The client's connection, where one session has the slot to itself.
    pub(super) owner: OnceLock<Link>,
}

/// A connection to the server.
pub(super) struct Back {
    pub(super) client: Client,
    pub(super) link: Link,
    pub(super) state: Arc<BackState>,
    /// One request at a time, if that is wanted.
    pub(super) gate: Option<Semaphore>,
    /// The server's name and version as JSON, as the modern revision has it.
    pub(super) info: String,
}

/// A call of ours under way. Dropped, it is withdrawn.
pub(super) struct BackCall {
    pub(super) pending: Option<PendingCall<Outcome>>,
    pub(super) guard: Option<OpenGuard>,
    pub(super) back: Arc<Back>,
}

/// How many questions of a legacy server wait for their answers, and how many bytes they have.
#[derive(Default)]
pub(super) struct HeldQuestions {
    pub(super) count: usize,
    pub(super) bytes: usize,
}

/// A question that counts while this lives.
pub(super) struct HeldQuestion {
    pub(super) state: Arc<BackState>,
    pub(super) size: usize,
}

/// A question of a legacy server, on its way to a modern client.
pub(super) struct Asked {
    pub(super) _held: HeldQuestion,
    pub(super) method: Method,
    pub(super) params: Option<String>,
    pub(super) reply: oneshot::Sender<Outcome>,
}

/// How the client of a call is asked what a legacy server wants to know meanwhile.
#[derive(Clone)]
pub(super) enum WayToAsk {
    /// By a request of its own: the client is legacy.
    Requests,
    /// Inside the result: the client is modern. The questions are sent here, and each is a [`HeldQuestion`],
    /// so they are bounded.
    Inside(mpsc::UnboundedSender<Asked>),
    /// Not at all: the client is modern, and the result of this method has no place for questions.
    Refused,
}

/// A request of a client.
#[derive(Clone)]
pub(super) struct FrontRequest {
    pub(super) front: Arc<FrontState>,
    pub(super) id: Id,
    pub(super) serial: u64,
}

/// A call that is open on a connection, and whose it is.
#[derive(Clone)]
pub(super) struct ProxiedCall {
    pub(super) request: FrontRequest,
    /// The least severe log line that a modern request wants to see.
    pub(super) level: Option<Level>,
    pub(super) questions: WayToAsk,
    pub(super) kind: CallKind,
    /// Whether its client, a modern one, has roots.
    pub(super) roots: bool,
    /// Whether it waits for an answer of its client, and so asks nothing else meanwhile.
    pub(super) parked: bool,
}

/// What a call is for.
#[derive(Clone)]
pub(super) enum CallKind {
    Request,
    /// A stream of changes that a modern client has opened itself.
    Listen,
    /// A stream of changes that the proxy keeps for a legacy session; told when it was acknowledged.
    SessionListen(Arc<SessionStream>),
}

/// A stream of changes of a legacy session.
pub(super) struct SessionStream {
    /// Told what the server has acknowledged.
    pub(super) ack: Mutex<Option<oneshot::Sender<String>>>,
    /// Raised when the server ends the stream by a notification.
    pub(super) ended: Flag,
}

/// An open call; dropped, it is over.
pub(super) struct OpenGuard {
    pub(super) state: Arc<BackState>,
    pub(super) number: u64,
    /// Whether the server has answered. A call that ends otherwise was withdrawn, and may go on there.
    pub(super) answered: bool,
}

/// What belongs to a connection and has to be known where messages come in.
#[derive(Default)]
pub(super) struct BackState {
    pub(super) shared: Weak<ProxyShared>,
    pub(super) link: OnceLock<Link>,
    pub(super) revision: OnceLock<Revision>,
    pub(super) calls: Mutex<HashMap<u64, ProxiedCall, Seed>>,
    pub(super) changed: Notify,
    /// Calls that were withdrawn.
    pub(super) ghosts: Mutex<Ghosts>,
    /// What the server said before there was anybody to tell.
    pub(super) early: Mutex<Early>,
    /// Whether log lines of that are left, so that nearly always nothing has to be locked.
    pub(super) early_lines: AtomicBool,
    /// Raised when all of that was told.
    pub(super) opened: Flag,
    /// Whether the server was told of roots, so that it may ask for them at any time.
    pub(super) promised_roots: bool,
    /// Those of its slot.
    pub(super) sessions: Arc<SlotSessions>,
    /// Those of its slot.
    pub(super) streams: Arc<LocalStreams>,
    /// Clients that wait until less has to be sent.
    pub(super) waiting: WakeList,
    pub(super) over: AtomicBool,
    pub(super) held: Mutex<HeldQuestions>,
    /// The level that a legacy server was told for the sake of modern requests.
    pub(super) level: Mutex<Option<Level>>,
}

/// Connections that wait for something, each once.
#[derive(Default)]
pub(super) struct WakeList {
    pub(super) links: Mutex<Vec<Link>>,
    /// Whether there are any, so that nearly always nothing has to be locked.
    pub(super) any: AtomicBool,
}

/// What becomes of a request while it is under way.
pub(super) enum InFlight {
    /// It was relayed.
    Call(Link, CallId),
    /// A task works on it.
    Task(AbortHandle),
}

/// What the parts of one connection share.
pub(super) struct FrontState {
    pub(super) shared: Arc<ProxyShared>,
    pub(super) link: Link,
    pub(super) principal: Principal,
    pub(super) session: Mutex<Option<Arc<LegacySession>>>,
    pub(super) targets: Mutex<HashMap<u64, InFlight, Seed>>,
    /// Connections to the server that wait until the client has read more.
    pub(super) unread: WakeList,
    /// Raised when the client has closed its end: streams of changes end.
    pub(super) closing: Flag,
}

/// A legacy session.
pub(super) struct LegacySession {
    pub(super) slot: Arc<BackSlot>,
    pub(super) asker: Arc<Asker>,
    /// What was agreed, once it was.
    pub(super) revision: OnceLock<Revision>,
    pub(super) level: Mutex<Option<Level>>,
    /// Whether the client has said that it is ready.
    pub(super) initialized: AtomicBool,
    /// Whether no connection came of it.
    pub(super) failed: AtomicBool,
    /// The addresses that the client follows.
    pub(super) followed: Mutex<Followed>,
    /// The changes to them that a modern server has not acknowledged yet.
    pub(super) changes: Mutex<FollowChanges>,
    /// The stream whose changes are passed on: the one that was acknowledged last. While one takes the place of
    /// another, both tell of the same changes.
    pub(super) heard: Mutex<Option<Arc<SessionStream>>>,
    /// The stream of changes, and the turn to change it.
    pub(super) stream: tokio::sync::Mutex<Option<AbortOnDrop>>,
}

/// Ends a task when who waits for it is gone.
pub(super) struct AbortOnDrop(pub(super) AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Where reports of progress on a call go now.
pub(super) struct Reports {
    pub(super) request: FrontRequest,
    /// The client's own token; without one it wants no reports.
    pub(super) token: Option<String>,
}

/// A call on a legacy server, over all requests of the client that belong to it.
pub(super) struct Flow {
    /// Nothing if the call has to be made anew.
    pub(super) call: Option<BackCall>,
    pub(super) asked: mpsc::UnboundedReceiver<Asked>,
    /// What the client has been asked and has not answered, by key.
    pub(super) open: Vec<(String, Asked)>,
    pub(super) keys: usize,
    pub(super) reports: Arc<Mutex<Reports>>,
    pub(super) back: Arc<Back>,
    /// What the client would have to offer for a question that was refused.
    pub(super) missing: Option<ClientCapabilities>,
}

/// A stream of changes of a modern client, where the server is legacy.
pub(super) struct LocalStream {
    pub(super) request: FrontRequest,
    pub(super) filter: SubscriptionFilter,
}

/// The streams of changes that are open at one slot.
#[derive(Default)]
pub(super) struct LocalStreams(pub(super) Mutex<LocalStreamsState>);

#[derive(Default)]
pub(super) struct LocalStreamsState {
    pub(super) open: Vec<Arc<LocalStream>>,
    pub(super) followed: Followed,
    /// The connection that is subscribed to what they follow.
    pub(super) back: Weak<Back>,
    /// Raised when there will be no further connection.
    pub(super) given_up: Flag,
}

/// A call that waits.
pub(super) struct ParkedCall {
    pub(super) flow: Flow,
    pub(super) principal: Principal,
    pub(super) bound_to: String,
    /// Ends the call when its time is over.
    pub(super) _timer: AbortOnDrop,
    pub(super) bytes: usize,
}

/// The calls that wait, by their handles.
#[derive(Default)]
pub(super) struct ParkedCalls {
    pub(super) calls: HashMap<String, ParkedCall>,
    pub(super) bytes: usize,
}

/// Which slot a `requestState` of a modern server came from. Only the hash of each is kept.
#[derive(Default)]
pub(super) struct Routes {
    pub(super) hasher: RandomState,
    pub(super) slots: HashMap<u64, Weak<BackSlot>>,
    /// The oldest first.
    pub(super) order: VecDeque<u64>,
}

/// The notifications that came too early.
#[derive(Default)]
pub(super) struct Early {
    pub(super) notes: Vec<EarlyNote>,
    /// Log lines that belong to no session: for the first request.
    pub(super) lines: Vec<EarlyNote>,
    pub(super) bytes: usize,
    pub(super) dropped: usize,
    pub(super) open: bool,
}

pub(super) struct EarlyNote {
    /// The connection that it came on.
    pub(super) from: Weak<SessionState>,
    pub(super) method: String,
    pub(super) params: Option<RawJson>,
}

/// The withdrawn calls of one connection, each until the server answers it or its time is over.
#[derive(Default)]
pub(super) struct Ghosts {
    pub(super) calls: HashMap<u64, Ghost, Seed>,
    /// Until when there may be more than can be told apart.
    pub(super) crowd: Option<Instant>,
}

pub(super) struct Ghost {
    pub(super) front: Weak<FrontState>,
    pub(super) until: Instant,
}

/// The changes of a session that wait for the server.
#[derive(Default)]
pub(super) struct FollowChanges {
    pub(super) waiting: Vec<FollowChange>,
    /// The addresses that no stream has named yet.
    pub(super) untried: HashSet<String>,
    /// Whether a task works on them.
    pub(super) working: bool,
    pub(super) refused: usize,
    /// What the server says to one more address, and until when it is not asked again.
    pub(super) full: Option<(ErrorObject, Instant)>,
}

/// An address that is followed or left.
pub(super) struct FollowChange {
    pub(super) uri: String,
    pub(super) adds: bool,
    pub(super) front: Arc<FrontState>,
    pub(super) back: Arc<Back>,
    pub(super) done: oneshot::Sender<Outcome>,
}
