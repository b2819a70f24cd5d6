//! A message of JSON-RPC 2.0, and what can be wrong with the frame that should hold one.
//!
//! Knows the codes that answer each fault; must not know any method, nor how a message is read
//! (`read.rs`).

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::error::{ErrorObject, code};
use super::id::Id;
use super::params::Params;

/// A well-formed message.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Message<'a> {
    /// A request: it has an id and is answered.
    Request {
        /// The id, which the answer repeats.
        id: Id,
        /// The name of the method.
        method: Cow<'a, str>,
        /// Its params, not yet parsed.
        params: Params<'a>,
    },
    /// A notification: it has no id and is never answered.
    Notification {
        /// The name of the notification.
        method: Cow<'a, str>,
        /// Its params, not yet parsed.
        params: Params<'a>,
    },
    /// The answer to a request of ours, or an error that belongs to no request.
    Response {
        /// The id of the request that it answers. `None` if it is absent or null in the message.
        id: Option<Id>,
        /// The result, or the error.
        outcome: Result<&'a RawValue, ErrorObject>,
    },
}

/// What one frame held.
#[derive(Debug)]
#[non_exhaustive]
pub enum Messages<'a> {
    /// One message.
    One(Message<'a>),
    /// Several, in an array; each good or bad on its own.
    Batch(Vec<Result<Message<'a>, Malformed>>),
}

/// Why a frame is not a message.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Malformed {
    /// What is wrong with it.
    pub kind: Fault,
    /// Its id, if that can be read.
    pub id: Option<Id>,
}

worded! {
    /// What is wrong with a frame.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[non_exhaustive]
    pub enum Fault {
        /// Not UTF-8.
        Encoding = "not UTF-8",
        /// Not JSON.
        Json = "not JSON",
        /// A value that starts on this line and does not end there.
        SpansLines = "message spans lines: write each message on one line",
        /// JSON, but not an object.
        NotAnObject = "a message is a JSON object",
        /// An array with nothing in it.
        EmptyBatch = "empty batch",
        /// An array with too much in it.
        LongBatch = "batch of more than 1000 messages",
        /// An array where none is allowed.
        BatchRefused = "batches are not allowed here",
        /// `jsonrpc` is missing or not `"2.0"`.
        Version = "jsonrpc is not \"2.0\"",
        /// A member that counts occurs twice.
        Duplicate = "a member occurs twice",
        /// The id is neither a string nor an integer, or too long.
        BadId = "id is not a string or an integer of at most 1024 bytes",
        /// `method` is not a string.
        BadMethod = "method is not a string",
        /// `params` is neither an object nor an array.
        BadParams = "params is not an object or an array",
        /// `method` together with `result` or `error`.
        Hybrid = "method together with result or error",
        /// None of `method`, `result` and `error`.
        Neither = "no method, result or error",
        /// A response that cannot be used: both outcomes, or an `error` without code and message.
        BadResponse = "response without a usable result or error",
        /// A response whose `jsonrpc` is missing or not `"2.0"`.
        ResponseVersion = "jsonrpc is not \"2.0\"",
        /// A notification whose `params` is neither an object nor an array.
        BadNotification = "params of a notification is not an object or an array",
        /// Over the limit.
        TooLong = "message too long",
        /// A header block that names no body.
        Header = "bad header",
        /// A framed message that is shorter or longer than its header says.
        Length = "the length does not fit the payload",
        /// A message in a framing that is not spoken here.
        Framing = "a framing that is not spoken here",
    }
}

impl Malformed {
    pub(crate) fn new(kind: Fault) -> Self {
        Self { kind, id: None }
    }

    /// Whether it may be answered at all: a response, however broken, never is, nor is a
    /// notification.
    #[must_use]
    pub fn is_answerable(&self) -> bool {
        !self.kind.is_response() && self.kind != Fault::BadNotification
    }
}

impl Fault {
    /// Whether it is a response that is broken.
    pub(crate) const fn is_response(self) -> bool {
        matches!(self, Self::BadResponse | Self::ResponseVersion)
    }

    /// The code that answers it.
    #[must_use]
    pub fn code(self) -> i64 {
        match self {
            Self::Encoding
            | Self::Json
            | Self::SpansLines
            | Self::Header
            | Self::Length
            | Self::Framing => code::PARSE_ERROR,
            _ => code::INVALID_REQUEST,
        }
    }
}
