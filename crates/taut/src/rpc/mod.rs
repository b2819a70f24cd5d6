//! Plain JSON-RPC 2.0: messages, ids, errors, and the engine that knows who waits for what.
//! Pure: no I/O, no clock, no runtime.

mod error;
mod id;
mod message;
mod params;
mod peer;
mod quick;
mod salvage;
mod write;

pub use crate::json::{JsonBuf, JsonRef};
#[cfg(feature = "server")]
pub(crate) use error::excerpt;
pub use error::{ErrorObject, code};
pub use id::{Id, MAX_ID};
pub use message::{Fault, Incoming, MAX_BATCH, Malformed, Message, read};
pub use params::Params;
pub(crate) use params::{ParamsError, without_place};
#[cfg(feature = "tokio")]
pub(crate) use peer::Seed;
pub use peer::{
    CallId, Config, Dialect, Event, Events, Failure, Hold, Patience, Peer, Request, SendError,
    Ticket, Trouble, TroubleKind,
};
pub use write::{Body, NoId};
