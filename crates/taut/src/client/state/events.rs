//! What happens on a connection besides answers: broken messages, notifications, restarts.
//!
//! Counts them for [`Diagnostics`] and passes them to the hook of `ClientBuilder::on_event`. Must not
//! know what is done about them.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use serde_json::value::RawValue;

use crate::driver::{Flag, isolated};
use crate::error::ConnectPhase;
use crate::lock::lock;
use crate::mcp::Revision;
use crate::process::{PipeEvents, StdinGauge};
use crate::rpc::{ErrorObject, Fault, Trouble, TroubleKind};
use crate::wire::Framing;

/// Something that happened on a connection besides answers:
/// [`ClientBuilder::on_event`](crate::ClientBuilder::on_event).
#[derive(Debug)]
#[non_exhaustive]
pub enum ClientEvent<'a> {
    /// The server's process was started.
    ProcessStarted {
        /// Its process id.
        pid: u32,
    },
    /// One of the two opening requests was sent.
    OpeningSent {
        /// Which of the two.
        phase: ConnectPhase,
        /// The revision that it offers.
        revision: Revision,
    },
    /// One of the two opening requests was answered.
    OpeningAnswered {
        /// Which of the two.
        phase: ConnectPhase,
        /// The error, if the answer is one.
        error: Option<&'a ErrorObject>,
    },
    /// The first bytes came from the server's stdout.
    FirstOutput,
    /// The server sent a notification.
    Notification {
        /// Its method.
        method: &'a str,
        /// Its params, as JSON.
        params: Option<&'a RawValue>,
    },
    /// The server printed something that is no message, such as a line of text. Reported each time.
    InvalidMessage(&'a InvalidMessage),
    /// The server reports an error that belongs to no request.
    StrayError(&'a ErrorObject),
    /// The server asked for something that this client does not offer, and was refused.
    Refused {
        /// The method that it asked for.
        method: &'a str,
    },
    /// The process did not survive the first opening request; a fresh one is started in its place.
    Restarting {
        /// The framing that the fresh one is spoken to in.
        framing: Framing,
    },
    /// The process is silent; a second one is started beside it, and the first that answers is used.
    StartingSecond {
        /// The framing that the second one is spoken to in.
        framing: Framing,
    },
}

/// Something that the server sent and that is no message.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct InvalidMessage {
    /// What is wrong with it.
    pub fault: Fault,
    /// Where in the server's output it began, in bytes.
    pub offset: u64,
    /// Its first characters, with control characters escaped.
    pub excerpt: String,
}

/// What was noticed about a connection so far: [`Client::diagnostics`](crate::Client::diagnostics).
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Diagnostics {
    /// Bytes that came from the server's process. Not counted for other streams.
    pub bytes: u64,
    /// How many messages could not be read; a line of text counts as one.
    pub invalid_messages: u64,
    /// The first of them.
    pub first_invalid: Option<InvalidMessage>,
    /// A byte-order mark stood before a message.
    pub byte_order_mark: bool,
    /// A carriage return stood before a newline.
    pub carriage_return: bool,
    /// The server no longer reads its stdin, although it runs.
    pub stdin_closed: bool,
    /// The server has closed its stderr, although it runs.
    pub stderr_closed: bool,
    /// Answers to requests that had been given up.
    pub late_answers: u64,
    /// Answers to requests that were never made.
    pub unknown_answers: u64,
    /// The id of the first of them, as JSON.
    pub first_unknown: Option<String>,
    /// Requests of the server that were refused.
    pub refused: u64,
    /// What the answer to `initialize` should have had, and did not: `capabilities`, `serverInfo`, or a
    /// member of that. Other clients refuse such an answer.
    pub missing: Vec<&'static str>,
}

/// How many lines of what is no message are kept for errors: what a server says when it gives up. Each is
/// an excerpt, at most some hundred bytes.
const LAST_LINES: usize = 10;

/// Counts what happens on one connection, and tells the hook.
#[derive(Default)]
pub(crate) struct Monitor {
    kept: Mutex<Diagnostics>,
    /// The last excerpts of what is no message.
    last_invalid: Mutex<VecDeque<String>>,
    bytes: AtomicU64,
    /// What the process has read, once there is one.
    stdin: OnceLock<Arc<StdinGauge>>,
    /// Raised when our own request came back (L16).
    pub(crate) echo: Flag,
    hook: Option<EventHook>,
}

impl Monitor {
    pub(crate) fn new(hook: Option<EventHook>) -> Self {
        Self { hook, ..Self::default() }
    }

    pub(crate) fn diagnostics(&self) -> Diagnostics {
        let kept = lock(&self.kept).clone();
        Diagnostics { bytes: self.bytes.load(Ordering::Relaxed), ..kept }
    }

    /// Whether any byte came from the process.
    pub(crate) fn heard_any(&self) -> bool {
        self.bytes.load(Ordering::Relaxed) > 0
    }

    /// Whether the process has read no byte of what it was sent; `false` where that is not known.
    pub(crate) fn read_nothing(&self) -> bool {
        self.stdin.get().is_some_and(|stdin| stdin.read_nothing())
    }

    /// The last lines on stdout that are no messages, shortened.
    pub(crate) fn last_invalid(&self) -> String {
        let mut last = lock(&self.last_invalid);
        last.make_contiguous().join("\n")
    }

    fn keep_line(&self, line: &str) {
        let mut last = lock(&self.last_invalid);
        if last.len() == LAST_LINES {
            last.pop_front();
        }
        last.push_back(line.to_owned());
    }

    pub(crate) fn tell(&self, event: &ClientEvent<'_>) {
        if let Some(hook) = &self.hook {
            isolated(|| hook(event));
        }
    }

    pub(crate) fn refused(&self, method: &str) {
        self.with(|kept| kept.refused += 1);
        tracing::debug!(method, "the server asked for something that this client does not do");
        self.tell(&ClientEvent::Refused { method });
    }

    pub(crate) fn trouble(&self, trouble: &Trouble) {
        let Trouble { kind, offset, excerpt, .. } = trouble;
        match kind {
            TroubleKind::Malformed(fault) => {
                let (fault, offset, excerpt) = (*fault, *offset, excerpt.clone());
                // A message that was cut off is not what the server has to say.
                if !excerpt.starts_with(['{', '[']) {
                    self.keep_line(&excerpt);
                }
                let invalid = InvalidMessage { fault, offset, excerpt };
                let first = self.with(|kept| {
                    kept.invalid_messages += 1;
                    let first = kept.first_invalid.is_none();
                    kept.first_invalid.get_or_insert_with(|| invalid.clone());
                    first
                });
                if first {
                    let excerpt = &invalid.excerpt;
                    tracing::warn!(%fault, offset, excerpt, "the server printed something that is no message");
                }
                self.tell(&ClientEvent::InvalidMessage(&invalid));
            }
            TroubleKind::ByteOrderMark => self.with(|kept| kept.byte_order_mark = true),
            TroubleKind::CarriageReturn => self.with(|kept| kept.carriage_return = true),
            TroubleKind::Late => {
                self.with(|kept| kept.late_answers += 1);
                tracing::debug!(call = excerpt, "late answer dropped");
            }
            TroubleKind::Unknown => {
                self.with(|kept| {
                    kept.unknown_answers += 1;
                    kept.first_unknown.get_or_insert_with(|| excerpt.clone());
                });
                tracing::debug!(id = excerpt, "answer to a request that was never made; dropped");
            }
            _ => tracing::debug!(?kind, offset, excerpt, "trouble"),
        }
    }

    fn with<T>(&self, change: impl FnOnce(&mut Diagnostics) -> T) -> T {
        change(&mut lock(&self.kept))
    }
}

impl PipeEvents for Monitor {
    fn read(&self, bytes: usize) {
        if self.bytes.fetch_add(bytes as u64, Ordering::Relaxed) == 0 && bytes > 0 {
            self.tell(&ClientEvent::FirstOutput);
        }
    }

    fn stdin_unread(&self) {
        self.with(|kept| kept.stdin_closed = true);
    }

    fn joined(&self, stdin: &Arc<StdinGauge>) {
        let _ = self.stdin.set(stdin.clone());
    }
}

/// What the caller has set with `ClientBuilder::on_event`.
pub(crate) type EventHook = Arc<dyn Fn(&ClientEvent<'_>) + Send + Sync>;
