//! What a client can be told before it starts.
//!
//! Knows defaults and the reason for each number. Must not know what is done with them.

use std::sync::Arc;
use std::time::Duration;

use super::handlers::Handlers;
use super::session::SessionState;
use crate::client::state::{ClientEvent, EventHook};
use crate::driver::{AnswerFuture, IncomingRequest};
use crate::json::RawJson;
use crate::mcp::{ClientCapabilities, Era, Implementation, Revision};
use crate::process::{ChildOptions, GracePeriods};
use crate::rpc::Params;
use crate::secrets::Secrets;
pub(crate) use crate::transport::bounded;
use crate::wire::{Framing, Limits};

with_defaults! {
    /// Everything that can be set.
    #[derive(Clone)]
    pub(crate) struct ClientSettings {
        pub(crate) info: Implementation = Implementation::new("taut", env!("CARGO_PKG_VERSION")),
        pub(crate) capabilities: ClientCapabilities,
        pub(crate) revision: Option<Revision>,
        pub(crate) known: Option<Era>,
        pub(crate) only_legacy: bool,
        pub(crate) framing: Option<Framing>,
        /// Whether the connection is a socket, on which the first bytes decide.
        pub(crate) socket: bool,
        // Between what hosts wait (3 s and 10 s); each silent legacy server costs this much.
        pub(crate) probe: Duration = Duration::from_secs(5),
        // A first run may install its program (L15).
        pub(crate) start: Duration = Duration::from_secs(60),
        // What every official SDK waits.
        pub(crate) request: Duration = Duration::from_secs(60),
        // C9: the end comes at the latest then, however often progress is reported.
        pub(crate) ceiling: Duration = Duration::from_secs(600),
        pub(crate) grace: GracePeriods,
        pub(crate) child: ChildOptions,
        pub(crate) on_event: Option<EventHook>,
        pub(crate) limits: Limits,
        // As long as the longest message: one page of that length is a list, too.
        pub(crate) max_list_bytes: usize = 64 << 20,
        // Thousands of tools with their schemas.
        pub(crate) max_kept_bytes: usize = 16 << 20,
        // Thousands of resources at a time.
        pub(crate) max_change_bytes: usize = 1 << 20,
        // Real lists have a few pages; only a server whose cursors lead in a circle has so many.
        pub(crate) max_pages: usize = 10_000,
        pub(crate) handlers: Handlers,
        // MRTR-16: as many as the official SDKs allow.
        pub(crate) rounds: usize = 10,
        pub(crate) keep_lists: bool,
        /// A proxy in place of the handlers.
        pub(crate) relay: Option<Relayed>,
        pub(crate) output_in_errors: bool = true,
        #[cfg(feature = "validate")]
        pub(crate) check_answers: bool,
    }
}

/// What a proxy makes of a connection: it takes all that the server asks and tells, and it opens the
/// connection in the words of the client that it stands for.
#[derive(Clone)]
pub(crate) struct Relayed {
    pub(crate) relay: Arc<dyn Relay>,
    /// The params of that client's own `initialize`, and the revision that they offer.
    pub(crate) initialize: Option<(Revision, RawJson)>,
}

/// Takes what a server asks and tells, instead of handlers.
pub(crate) trait Relay: Send + Sync {
    /// Answers a request of the server.
    fn request(self: Arc<Self>, request: IncomingRequest<'_>) -> AnswerFuture;

    /// Takes in a notification that came on the connection `from`. While a server is opened there may be
    /// two, and one of them is given up.
    fn notification(&self, from: &Arc<SessionState>, method: &str, params: &Params<'_>);

    /// The server has answered a call after it was withdrawn.
    fn late(&self, call: u64);

    /// Called on every pass of the loop.
    fn pump(&self);

    /// Whether more may be read from the server.
    fn has_room(&self) -> bool;
}

impl ClientSettings {
    /// The settings of one client: its own, complete, and every duration one that a clock can count.
    pub(crate) fn settle(mut self) -> Arc<Self> {
        self.handlers.own_roots();
        self.handlers.declare(&mut self.capabilities);
        let GracePeriods { after_eof, after_term, after_kill } = &mut self.grace;
        let waits = [after_eof, after_term, after_kill];
        let limits = [&mut self.probe, &mut self.start, &mut self.request, &mut self.ceiling];
        waits.into_iter().chain(limits).for_each(|duration| *duration = bounded(*duration));
        Arc::new(self)
    }
}

/// A client about to be connected: [`Client::builder`](crate::Client::builder).
///
/// ```no_run
/// # async fn run() -> taut::Result<()> {
/// use std::time::Duration;
///
/// let calc = taut::Client::builder()
///     .info(taut::types::Implementation::new("my-host", "1.0"))
///     .start_timeout(Duration::from_secs(20))
///     .on_stderr(|line| eprintln!("calc: {line}"))
///     .spawn(taut::Command::new("calc"))
///     .await?;
/// # Ok(()) }
/// ```
#[derive(Clone, Default)]
#[must_use = "a builder does nothing until it is told to spawn or connect"]
pub struct ClientBuilder {
    pub(crate) settings: ClientSettings,
}

setters! { ClientBuilder;
    /// Gets each line that the server writes to stderr. It must not block.
    on_stderr(sink: impl Fn(&str) + Send + Sync + 'static)
        => settings.child.on_stderr = Some(Arc::new(sink));

    /// Hides these values in what the server writes to stderr, in every spelling, before it is cut into lines or
    /// kept for errors. Values that are added later are hidden from then on.
    secrets(secrets: Secrets) => settings.child.secrets = Some(secrets);

    /// Gets what happens besides answers: notifications, broken messages, restarts. It must not block.
    on_event(hook: impl Fn(&ClientEvent<'_>) + Send + Sync + 'static)
        => settings.on_event = Some(Arc::new(hook));

    /// Sets the name and version that this client gives itself.
    info(info: Implementation) => settings.info;

    /// Declares what this client can do for a server, beside what its handlers declare.
    capabilities(capabilities: ClientCapabilities) => settings.capabilities;

    /// Speaks this revision and no other.
    revision(revision: Revision) => settings.revision = Some(revision);

    /// Sets the era that an earlier connection to the same server found, see [`Client::revision`].
    /// Saves the probe of a legacy server; a wrong one costs time and does no harm.
    ///
    /// [`Client::revision`]: crate::Client::revision
    // PRB-06
    known(era: Era) => settings.known = Some(era);

    /// Speaks in this framing and no other. Unless set: lines; if a server says nothing for two seconds,
    /// another is started beside it and spoken to with `Content-Length` headers.
    framing(framing: Framing) => settings.framing = Some(framing);

    /// Sets whether errors have the end of what the server printed: the cause stands there more often than not. On.
    /// Off where an error goes to people who must not read the logs of the server.
    output_in_errors(shown: bool) => settings.output_in_errors;

    /// Sets how long a server may leave the probe unanswered before it is taken for a legacy one. 5 s.
    probe_timeout(timeout: Duration) => settings.probe;

    /// Sets how long it may take until a server is ready for requests, however often it has to be
    /// started for that. 60 s. A server that is not ready by then is ended, which takes up to the
    /// [grace period](Self::term_grace) after SIGTERM more.
    start_timeout(timeout: Duration) => settings.start;

    /// Sets how long a request may go without an answer or a report of progress, unless the request
    /// says otherwise. 60 s.
    request_timeout(timeout: Duration) => settings.request;

    /// Sets how long a request may take in all when reports of progress keep it alive. 10 min.
    ceiling(ceiling: Duration) => settings.ceiling;

    /// Sets how long each step of ending a process waits before the next.
    grace_periods(grace: GracePeriods) => settings.grace;

    /// Sets the time from closed stdin to SIGTERM. 2 s.
    eof_grace(wait: Duration) => settings.grace.after_eof;

    /// Sets the time from SIGTERM to SIGKILL. 2 s.
    term_grace(wait: Duration) => settings.grace.after_term;

    /// Leaves alone what a server that ended by itself has left running in its process group. Off
    /// unless set: such processes are killed.
    // P12
    leave_group(leave: bool) => settings.child.leave_group;

    /// Sets how much of the end of stderr is kept, in bytes. 64 KiB.
    stderr_tail(bytes: usize) => settings.child.tail_limit;

    /// Checks the `structuredContent` of what a tool answers against the tool's `outputSchema`. What
    /// does not fit, or cannot be checked, is [`Error::Output`](crate::Error::Output), with the answer
    /// inside. Off unless set.
    ///
    /// A tool that was not listed yet is looked up first, with a request of its own; a name that the
    /// list does not have is not checked, nor is the answer of a tool that failed, or one that came
    /// after the list had changed. References in a schema lead nowhere but to the schema itself: nothing
    /// is fetched. The check runs where the answer is awaited, and takes a bounded number of steps.
    #[cfg(feature = "validate")]
    check_answers(check: bool) => settings.check_answers;

    /// Sets how often one request may be answered with questions before it is given up. 10.
    rounds(rounds: usize) => settings.rounds;

    /// Keeps lists for as long as the server allows (`ttlMs`), and until it says that they have
    /// changed. Off unless set: not every server that gives a time tells of changes.
    keep_lists(keep: bool) => settings.keep_lists;

    /// Sets how long one message of a server may be.
    limits(limits: Limits) => settings.limits;

    /// Sets how many bytes a list may have on the wire when it is awaited as a whole. 64 MiB. A longer
    /// one is an error; [`Pages::next`](crate::client::Pages::next) reads it piece by piece, unless its cursors alone
    /// have so many.
    max_list_bytes(bytes: usize) => settings.max_list_bytes;

    /// Sets how many pages a list may have, however it is read. 10,000. A longer one is an error.
    max_pages(pages: usize) => settings.max_pages;

    /// Sets how many bytes of lists are kept ([`keep_lists`](Self::keep_lists)), and how many bytes of
    /// output schemas for the check of answers, as they were on the wire. 16 MiB each. What has no room
    /// is asked for again, or not checked.
    max_kept_bytes(bytes: usize) => settings.max_kept_bytes;

    /// Sets how many bytes of changes may wait in one [`ChangeStream`](crate::client::ChangeStream). 1 MiB. When
    /// there is no room for another, all become one
    /// [`Change::Anything`](crate::Change::Anything).
    max_change_bytes(bytes: usize) => settings.max_change_bytes;
}

impl ClientBuilder {
    /// Speaks revisions of this era and no others.
    pub fn era(mut self, era: Era) -> Self {
        self.settings.only_legacy = era == Era::Legacy;
        self.settings.revision = (era == Era::Modern).then_some(Revision::MODERN);
        self
    }
}
