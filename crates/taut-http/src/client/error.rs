//! What can go wrong between a client and a server on HTTP.
//!
//! Knows the words. Must not hold a secret: what a server says is shortened, and what was sent to it in a
//! header is taken out of it before it comes here.

use std::fmt;
use std::time::Duration;

use super::url::Url;

/// Why a request over HTTP failed, or a connection. `Display` says it in a sentence.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum HttpError {
    /// An address cannot be used.
    Address {
        /// The address, without its query.
        address: String,
        /// What is wrong with it.
        why: String,
    },
    /// A setting cannot be used: a header, a file of certificates, a proxy.
    Setting {
        /// What is wrong with it.
        why: String,
    },
    /// No connection to the server came about: its name is unknown, nobody listens, TLS failed.
    Unreachable {
        /// Scheme, host and port.
        origin: String,
        /// What the system said.
        why: String,
    },
    /// The connection broke before the answer was complete.
    Broken {
        /// What the system said.
        why: String,
    },
    /// The server answered with a status that says no.
    Status {
        /// The status.
        status: u16,
        /// What the server said, shortened; empty if it said nothing that can be shown.
        words: String,
        /// The time after which it may be tried again, if the server named one.
        retry_after: Option<Duration>,
    },
    /// The server wants to know who asks (401), or this is not allowed (403).
    Unauthorized {
        /// The status.
        status: u16,
        /// What the server said about it in `WWW-Authenticate`.
        challenge: Option<super::Challenge>,
        /// What the server said, shortened.
        words: String,
        /// What the user can do about it, if [`Authorize::advice`](super::Authorize::advice) says so.
        advice: Option<String>,
    },
    /// The login that the server asked for has failed.
    Login {
        /// Why.
        why: String,
    },
    /// The authorization server, or another server that a login needs, cannot answer now. What is kept of a login
    /// is still there.
    Unavailable {
        /// Which server, and what it answered.
        why: String,
    },
    /// The server serves everyone, and names nobody who gives out tokens.
    LoginNotNeeded {
        /// Its address.
        server: String,
    },
    /// Nobody has logged in within the time that a user may take.
    NobodyLoggedIn {
        /// How long was waited.
        after: Duration,
    },
    /// A login worked, or would, and there is no place to keep its tokens.
    NotKept {
        /// What is wrong with the place, and what to do.
        why: String,
    },
    /// The server sends this client to another address, and it does not go there by itself.
    Redirect {
        /// The status.
        status: u16,
        /// The other address, without its query.
        to: String,
        /// Why it does not go there.
        why: &'static str,
    },
    /// The answer is of a kind that the protocol does not have.
    ContentType {
        /// The kind; empty if the answer has none.
        found: String,
    },
    /// What the server sends is longer than the limit.
    TooLong {
        /// What it is.
        what: &'static str,
        /// The limit in bytes.
        limit: usize,
    },
    /// The server took too long.
    TimedOut {
        /// What was waited for.
        what: &'static str,
        /// How long.
        after: Duration,
    },
    /// The server has broken a rule of the transport.
    Protocol {
        /// Which.
        why: String,
    },
}

impl HttpError {
    /// The error of this transport that is the reason for an error of the client, if there is one.
    #[must_use]
    pub fn of(error: &taut::Error) -> Option<&Self> {
        let ending = match error {
            taut::Error::Ended(ending) => ending,
            taut::Error::Lost(lost) => &lost.ending,
            taut::Error::Connect(connect) => match &connect.reason {
                taut::error::ConnectReason::Failed(ending) => ending,
                _ => return None,
            },
            _ => return None,
        };
        let taut::Ending::Io { error, .. } = ending else { return None };
        error.get_ref()?.downcast_ref()
    }

    /// This error as the client's.
    pub(crate) fn into_taut(self) -> taut::Error {
        let error = std::sync::Arc::new(std::io::Error::other(self));
        taut::Error::Ended(taut::Ending::Io { during: "the connection", error })
    }

    /// The status that the server answered with, if it did.
    #[must_use]
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Status { status, .. }
            | Self::Unauthorized { status, .. }
            | Self::Redirect { status, .. } => Some(*status),
            _ => None,
        }
    }

    pub(crate) fn unreachable(url: &Url, error: &(dyn std::error::Error + 'static)) -> Self {
        Self::Unreachable { origin: url.origin().to_string(), why: causes(error) }
    }
}

/// An error and what caused it, innermost last. The outermost ones of an HTTP client say nothing.
pub(crate) fn causes(error: &(dyn std::error::Error + 'static)) -> String {
    let mut words: Vec<String> = Vec::new();
    let mut next = Some(error);
    while let Some(error) = next {
        let text = error.to_string();
        if !words.last().is_some_and(|last| last.contains(&text)) {
            words.push(text);
        }
        next = error.source();
    }
    if words.len() > 1 {
        words.retain(|text| !text.starts_with("client error"));
    }
    words.join(": ")
}

/// The name that RFC 9110 gives a status.
fn reason(status: u16) -> String {
    let known = hyper::StatusCode::from_u16(status).ok();
    let words = known.and_then(|status| status.canonical_reason()).unwrap_or_default();
    format!("{status} {words}").trim_end().to_owned()
}

impl fmt::Display for HttpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address { address, why } => write!(f, "{address:?} is no usable address: {why}"),
            Self::Setting { why } => f.write_str(why),
            Self::Unreachable { origin, why } => write!(f, "{origin} cannot be reached: {why}"),
            Self::Broken { why } => {
                write!(f, "the connection broke before the answer was complete: {why}")
            }
            Self::Status { status, words, retry_after } => {
                write!(f, "the server answered {}", reason(*status))?;
                if !words.is_empty() {
                    write!(f, ": {words}")?;
                }
                match retry_after {
                    Some(after) => write!(f, "; try again in {} s", after.as_secs()),
                    None => Ok(()),
                }
            }
            Self::Unauthorized { status, words, challenge, advice } => {
                write!(f, "the server answered {}", reason(*status))?;
                if !words.is_empty() {
                    write!(f, ": {words}")?;
                }
                if let Some(description) = challenge
                    .as_ref()
                    .and_then(|c| c.description())
                    // Many servers say it in both places.
                    .filter(|description| !words.contains(description.as_str()))
                {
                    write!(f, ": {description}")?;
                }
                match (status, advice) {
                    (401, Some(advice)) => write!(f, "; it wants a login: {advice}"),
                    (401, None) => f.write_str("; it wants a login or a token"),
                    _ => f.write_str("; the token or the user may not do this"),
                }
            }
            Self::Login { why } => write!(f, "the login failed: {why}"),
            Self::Unavailable { why } => write!(f, "{why}; try again in a moment"),
            Self::LoginNotNeeded { server } => {
                write!(f, "no login is needed: {server} serves everyone")
            }
            Self::NobodyLoggedIn { after } => write!(
                f,
                "nobody has logged in within {after:?}; try again, and leave the browser open until it \
                 says that you are done; should its page show an error, this program registers anew next time"
            ),
            Self::NotKept { why } => write!(f, "the tokens of a login cannot be kept: {why}"),
            Self::Redirect { status, to, why } => {
                write!(f, "the server answered {} and points to {to}: {why}", reason(*status))
            }
            Self::ContentType { found } if found.is_empty() => f.write_str(
                "the answer has no content type; this may not be the address of an MCP server",
            ),
            Self::ContentType { found } => write!(
                f,
                "the answer is {found}, neither application/json nor text/event-stream; this may not \
                 be the address of an MCP server"
            ),
            Self::TooLong { what, limit } => write!(f, "{what} is longer than {limit} bytes"),
            Self::TimedOut { what, after } => write!(f, "{what} did not come within {after:?}"),
            Self::Protocol { why } => f.write_str(why),
        }
    }
}

impl std::error::Error for HttpError {}
