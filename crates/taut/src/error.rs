//! Every error of the library: first whose fault it is, then what ended.
//!
//! [`Error`], [`Reject`] and [`Result`] are in the root of the crate as well.

#[cfg(feature = "client")]
mod connect;
#[cfg(feature = "client")]
mod lost;
#[cfg(feature = "validate")]
mod output;
#[cfg(feature = "client")]
mod words;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
#[cfg(feature = "client")]
use serde_json::{Value, value::RawValue};

use crate::ending::Ending;
#[cfg(feature = "client")]
use crate::mcp::{Method, RESOURCE_NOT_FOUND};
#[cfg(feature = "client")]
use crate::process::SpawnError;
#[cfg(feature = "client")]
use crate::rpc::code;
use crate::rpc::{ErrorObject, Failure, SendError};

pub use crate::stdio::ClaimError;
#[cfg(feature = "client")]
pub use connect::{ConnectError, ConnectPhase, ConnectReason, SecondProcess};
#[cfg(feature = "client")]
pub use lost::ConnectionLost;
#[cfg(feature = "validate")]
pub use output::{BadOutput, OutputFault};

/// `Result` with our [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong. `Display` says it in a sentence; `Debug` shows the fields.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Error {
    /// The other side answered with an error.
    Refused {
        /// The method of the request.
        method: Cow<'static, str>,
        /// The error that it answered.
        error: ErrorObject,
    },
    /// No answer came in time; the request was withdrawn.
    TimedOut {
        /// The method of the request.
        method: Cow<'static, str>,
        /// The time that it was given.
        after: Duration,
        /// Whether progress was reported until the hard maximum.
        ceiling: bool,
    },
    /// The other side broke a rule of the protocol.
    Violation {
        /// The method of the request.
        method: Cow<'static, str>,
        /// What is wrong with what came.
        what: Cow<'static, str>,
    },
    /// What came is larger than this client keeps. Nothing is wrong with it: raise the setting, or take it
    /// piece by piece.
    TooLarge {
        /// The method of the request.
        method: Cow<'static, str>,
        /// How many bytes had come.
        bytes: usize,
        /// How many are allowed.
        limit: usize,
        /// The setting that allows more.
        setting: &'static str,
    },
    /// The connection is over.
    Ended(Ending),
    /// The caller's params or arguments have no JSON form. Nothing was sent.
    Encode {
        /// The method of the request.
        method: Cow<'static, str>,
        /// What serialising them said.
        reason: String,
    },
    /// The server has mistakes in its definition; nothing was read.
    Build {
        /// Each mistake, in a sentence.
        mistakes: Vec<String>,
    },
    /// The process's stdin and stdout cannot be taken over.
    Stdio(Arc<ClaimError>),
    /// The server's program could not be started.
    #[cfg(feature = "client")]
    Spawn(Arc<SpawnError>),
    /// The server was reached, and no connection could be opened.
    #[cfg(feature = "client")]
    Connect(Arc<ConnectError>),
    /// The server is gone, and the answer with it.
    #[cfg(feature = "client")]
    Lost(Arc<ConnectionLost>),
    /// The server's process has not ended, not even after SIGKILL: the kernel holds it.
    StillRunning {
        /// The process.
        pid: u32,
    },
    /// The server does not offer this, so the request was not sent.
    // LIF-12
    NotOffered {
        /// The method of the request.
        method: Cow<'static, str>,
        /// The capability that it did not declare.
        capability: &'static str,
    },
    /// The tool was run and failed; its own text says why.
    Tool {
        /// The tool.
        name: String,
        /// Its text.
        text: String,
    },
    /// The answer is valid, but cannot be read as the type that the caller wants.
    Unfit {
        /// The tool, or the method of the request.
        name: String,
        /// What does not fit.
        what: Cow<'static, str>,
    },
    /// What a tool answered is not what its own schema promises, or cannot be checked. The answer
    /// itself is inside.
    #[cfg(feature = "validate")]
    Output(Arc<BadOutput>),
    /// A supervised server was started again as often as allowed, and ended each time.
    #[cfg(feature = "client")]
    GaveUp {
        /// How often it was started again in a row.
        restarts: u32,
        /// What happened the last time.
        last: Box<Self>,
    },
    /// The server asked for input first, and did not get it from this client.
    InputRequired {
        /// The method of the request.
        method: Cow<'static, str>,
        /// The method that the server asked for.
        asked: String,
        /// Why it did not get an answer.
        error: Box<ErrorObject>,
    },
}

impl Error {
    /// Whether a resource was asked for that the server does not have. The code for that has changed
    /// with the revisions, and servers do not always change with them.
    // ERR-04
    #[cfg(feature = "client")]
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        let Self::Refused { method, error } = self else { return false };
        // Invalid params are many things; with the address beside them they are this.
        let uri = |data: &RawValue| {
            Some(serde_json::from_str::<Value>(data.get()).ok()?["uri"].is_string())
        };
        let named = || error.data.as_deref().and_then(uri) == Some(true);
        let code = error.code;
        *method == Method::ReadResource.as_str()
            && (code == RESOURCE_NOT_FOUND || code == code::INVALID_PARAMS && named())
    }

    pub(crate) fn from_failure(
        method: Cow<'static, str>,
        failure: Failure,
        ended: impl FnOnce() -> Self,
    ) -> Self {
        match failure {
            Failure::Refused(error) => Self::Refused { method, error },
            Failure::TimedOut { after, ceiling } => Self::TimedOut { method, after, ceiling },
            Failure::Violation(fault) => Self::Violation { method, what: fault.to_string().into() },
            Failure::Ended => ended(),
        }
    }

    pub(crate) fn from_send(
        method: Cow<'static, str>,
        error: SendError,
        ended: impl FnOnce() -> Self,
    ) -> Self {
        match error {
            SendError::Closed => ended(),
            SendError::Json(error) => Self::Encode { method, reason: error.to_string() },
        }
    }
}

#[cfg(feature = "server")]
impl Error {
    /// What a connection on stdio comes to: one that has ended in order is no error.
    pub(crate) fn unless_orderly(ending: Ending) -> Result<()> {
        match ending {
            Ending::Io { .. } | Ending::Stuck { .. } | Ending::DrainTimedOut { .. } => {
                Err(Self::Ended(ending))
            }
            _ => Ok(()),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused { method, error } => write!(f, "{method} was refused: {error}"),
            Self::TimedOut { method, after, ceiling: false } => {
                write!(f, "{method} was not answered within {after:?}")
            }
            Self::TimedOut { method, after, ceiling: true } => {
                write!(f, "{method} was still reporting progress after {after:?}, its hard maximum")
            }
            Self::Violation { method, what } => {
                write!(f, "the other side broke the protocol in its answer to {method}: {what}")
            }
            Self::TooLarge { method, bytes, limit, setting } => write!(
                f,
                "the answer to {method} is too large: {bytes} bytes, and {setting} allows {limit}"
            ),
            Self::Ended(ending) => write!(f, "the connection is over: {ending}"),
            Self::Encode { method, reason } => {
                write!(f, "what {method} should send has no JSON form: {reason}")
            }
            Self::Build { mistakes } => {
                write!(f, "this server cannot be served: {}", mistakes.join("; "))
            }
            Self::Stdio(error) => write!(f, "stdin and stdout cannot be used: {error}"),
            #[cfg(feature = "client")]
            Self::Spawn(error) => error.fmt(f),
            #[cfg(feature = "client")]
            Self::Connect(error) => error.fmt(f),
            #[cfg(feature = "client")]
            Self::Lost(lost) => lost.fmt(f),
            Self::StillRunning { pid } => {
                write!(f, "the server's process ({pid}) has not ended, not even after SIGKILL")
            }
            #[cfg(feature = "client")]
            Self::GaveUp { restarts: 0, last } => write!(f, "the server is given up: {last}"),
            #[cfg(feature = "client")]
            Self::GaveUp { restarts, last } => {
                write!(f, "the server is given up after {restarts} restarts; the last time: {last}")
            }
            Self::NotOffered { method, capability } => {
                write!(f, "the server offers no {capability}, so {method} was not asked")
            }
            Self::Tool { name, text } => write!(f, "the tool {name} failed: {text}"),
            #[cfg(feature = "validate")]
            Self::Output(bad) => bad.fmt(f),
            Self::Unfit { name, what } => write!(f, "the answer of {name} does not fit: {what}"),
            Self::InputRequired { method, asked, error } => write!(
                f,
                "the server wants {asked} before it finishes {method}, and did not get it: {error}"
            ),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Refused { error, .. } => Some(error),
            #[cfg(feature = "client")]
            Self::Spawn(error) => error.source(),
            _ => None,
        }
    }
}

/// `From` for the errors that are shared, because an [`Error`] can be cloned.
macro_rules! from_shared {
    ($($(#[$cfg:meta])? $Variant:ident($T:ty);)*) => {$(
        $(#[$cfg])?
        impl From<$T> for Error {
            fn from(error: $T) -> Self {
                Self::$Variant(Arc::new(error))
            }
        }
    )*};
}

from_shared! {
    Stdio(ClaimError);
    #[cfg(feature = "client")] Spawn(SpawnError);
    #[cfg(feature = "client")] Connect(ConnectError);
    #[cfg(feature = "client")] Lost(ConnectionLost);
    #[cfg(feature = "validate")] Output(BadOutput);
}

/// A JSON-RPC error that a handler returns to have it sent as it is.
///
/// ```
/// use taut::Reject;
///
/// let reject = Reject::invalid_params("`depth` must be at most 5");
/// assert_eq!(reject.error().code, -32602);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Reject(ErrorObject);

impl Reject {
    /// An error with a code of your own, outside −32768 to −32000.
    pub fn new(code: i64, message: impl Into<Cow<'static, str>>) -> Self {
        Self(ErrorObject::new(code, message))
    }

    /// −32601: there is no such method.
    #[must_use]
    pub fn method_not_found(method: &str) -> Self {
        Self(ErrorObject::method_not_found(method))
    }

    /// −32602: the params do not fit.
    pub fn invalid_params(message: impl Into<Cow<'static, str>>) -> Self {
        Self(ErrorObject::invalid_params(message))
    }

    /// −32603: an internal error.
    pub fn internal(message: impl Into<Cow<'static, str>>) -> Self {
        Self(ErrorObject::internal(message))
    }

    /// Adds `data`.
    #[must_use]
    pub fn data(self, data: &impl Serialize) -> Self {
        Self(self.0.with_data(data))
    }

    /// The error that is sent.
    #[must_use]
    pub fn error(&self) -> &ErrorObject {
        &self.0
    }
}

impl std::error::Error for Reject {}

impl From<ErrorObject> for Reject {
    fn from(error: ErrorObject) -> Self {
        Self(error)
    }
}

impl From<Reject> for ErrorObject {
    fn from(reject: Reject) -> Self {
        reject.0
    }
}

impl fmt::Display for Reject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
