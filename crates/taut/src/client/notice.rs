//! What happens besides answers: junk on the wire, notifications, restarts.
//!
//! Knows counting and telling, each thing once. Must not know what is done about it.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::value::RawValue;

use crate::driver::Flag;
use crate::error::ConnectPhase;
use crate::mcp::Revision;
use crate::process::PipeEvents;
use crate::rpc::{ErrorObject, Fault, Trouble, TroubleKind};
use crate::wire::Framing;

/// Something that happened besides answers.
#[derive(Debug)]
#[non_exhaustive]
pub enum ClientEvent<'a> {
    /// The server's process was started.
    Started {
        /// Its process.
        pid: u32,
    },
    /// The server is being asked what it speaks, or to shake hands.
    Asking {
        /// Which of the two.
        phase: ConnectPhase,
        /// In which revision.
        revision: Revision,
    },
    /// The server answered what it was asked about itself.
    Answered {
        /// To which of the two.
        phase: ConnectPhase,
        /// What it said, if it refused.
        error: Option<&'a ErrorObject>,
    },
    /// The first bytes came from the server's stdout.
    FirstOutput,
    /// The server tells something.
    Notification {
        /// What.
        method: &'a str,
        /// With what, as JSON.
        params: Option<&'a RawValue>,
    },
    /// The server printed something that is no message, for the first time (F1).
    Junk(&'a Junk),
    /// The server reports an error that belongs to no request (F21).
    StrayError(&'a ErrorObject),
    /// The server asked for something that this client does not do, and was refused.
    Refused {
        /// What it asked for.
        method: &'a str,
    },
    /// A fresh process is started, because the first did not survive the probe.
    Restarting {
        /// How the fresh one is spoken to.
        framing: Framing,
    },
    /// Another process is started beside the first, which is silent; whichever answers first is used.
    StartingBeside {
        /// How the other one is spoken to.
        framing: Framing,
    },
}

/// Something that is no message, where one should have been.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Junk {
    /// What is wrong with it.
    pub fault: Fault,
    /// Where in the server's output it began.
    pub offset: u64,
    /// Its first characters, with control characters escaped.
    pub excerpt: String,
}

/// What was noticed about a connection so far: [`Client::diagnostics`](crate::Client::diagnostics).
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Diagnostics {
    /// Bytes that came, as far as they were counted: from a process, not from other streams.
    pub bytes: u64,
    /// Messages that could not be read, or lines that are none.
    pub junk: u64,
    /// The first of them.
    pub first_junk: Option<Junk>,
    /// A byte-order mark stood before a message.
    pub byte_order_mark: bool,
    /// A carriage return stood before a newline.
    pub carriage_return: bool,
    /// The server no longer reads its stdin, although it runs.
    pub stdin_closed: bool,
    /// The server has closed its stderr, although it runs.
    pub stderr_closed: bool,
    /// Answers to calls that had been given up (C4).
    pub late_answers: u64,
    /// Answers to calls that were never made.
    pub unknown_answers: u64,
    /// The id of the first of them, as JSON.
    pub first_unknown: Option<String>,
    /// Requests of the server that were refused.
    pub refused: u64,
    /// What the answer to `initialize` should have had, and did not: `capabilities`, `serverInfo`, or a
    /// member of that. Other clients refuse such an answer (LIF-03).
    pub missing: Vec<&'static str>,
}

/// What the loop has noticed, shared with whoever asks.
#[derive(Default)]
pub(super) struct Notices {
    kept: Mutex<Diagnostics>,
    bytes: AtomicU64,
    /// Raised when our own request came back (L16).
    pub(super) echo: Flag,
    hook: Option<Hook>,
}

impl Notices {
    pub(super) fn new(hook: Option<Hook>) -> Self {
        Self { hook, ..Self::default() }
    }

    pub(super) fn diagnostics(&self) -> Diagnostics {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Diagnostics { bytes: self.bytes.load(Ordering::Relaxed), ..kept }
    }

    /// Whether anything came at all.
    pub(super) fn heard_any(&self) -> bool {
        self.bytes.load(Ordering::Relaxed) > 0
    }

    pub(super) fn tell(&self, event: &ClientEvent<'_>) {
        if let Some(hook) = &self.hook {
            hook.tell(event);
        }
    }

    pub(super) fn refused(&self, method: &str) {
        self.with(|kept| kept.refused += 1);
        tracing::debug!(method, "the server asked for something that this client does not do");
        self.tell(&ClientEvent::Refused { method });
    }

    pub(super) fn trouble(&self, trouble: &Trouble) {
        let Trouble { kind, offset, excerpt, .. } = trouble;
        match kind {
            TroubleKind::Malformed(fault) => {
                let junk = Junk { fault: *fault, offset: *offset, excerpt: excerpt.clone() };
                let first = self.with(|kept| {
                    kept.junk += 1;
                    let first = kept.first_junk.is_none();
                    kept.first_junk.get_or_insert_with(|| junk.clone());
                    first
                });
                if first {
                    tracing::warn!(%fault, offset, excerpt, "the server printed something that is no message");
                    self.tell(&ClientEvent::Junk(&junk));
                }
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
                tracing::debug!(id = excerpt, "answer to a call that was never made; dropped");
            }
            _ => tracing::debug!(?kind, offset, excerpt, "trouble"),
        }
    }

    fn with<T>(&self, change: impl FnOnce(&mut Diagnostics) -> T) -> T {
        change(&mut self.kept.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl PipeEvents for Notices {
    fn read(&self, bytes: usize) {
        if self.bytes.fetch_add(bytes as u64, Ordering::Relaxed) == 0 && bytes > 0 {
            self.tell(&ClientEvent::FirstOutput);
        }
    }

    fn stdin_unread(&self) {
        self.with(|kept| kept.stdin_closed = true);
    }
}

/// The caller's own ear.
#[derive(Clone)]
pub(super) struct Hook(Arc<dyn Fn(&ClientEvent<'_>) + Send + Sync>);

impl Hook {
    pub(super) fn new(hook: impl Fn(&ClientEvent<'_>) + Send + Sync + 'static) -> Self {
        Self(Arc::new(hook))
    }

    /// A hook that panics must not take the connection down with it.
    fn tell(&self, event: &ClientEvent<'_>) {
        if catch_unwind(AssertUnwindSafe(|| (self.0)(event))).is_err() {
            tracing::warn!("the hook for events panicked");
        }
    }
}

impl fmt::Debug for Hook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hook")
    }
}
