//! Plain JSON-RPC 2.0: messages, ids, errors, and the engine that knows who waits for what.
//! Pure: no I/O, no clock, no runtime.

mod error;
mod id;
mod message;
#[cfg_attr(
    not(feature = "server"),
    allow(dead_code, reason = "only a server reads single members")
)]
mod params;
mod peer;
mod quick;
mod read;
mod write;

pub use crate::json::{JsonBuf, JsonRef};
#[cfg(feature = "server")]
pub(crate) use error::excerpt;
pub use error::{ErrorObject, code};
pub use id::{Id, MAX_ID};
pub use message::{Fault, Malformed, Message, Messages};
pub use params::Params;
#[cfg(any(feature = "server", feature = "client"))]
pub(crate) use params::without_place;
pub use peer::{
    CallId, Config, Dialect, Event, Events, Failure, HoldId, Patience, Peer, PeerRequest, Relation,
    SendError, Ticket, Trouble, TroubleKind,
};
#[cfg(feature = "tokio")]
pub(crate) use peer::{Seed, take};
pub use read::{MAX_BATCH, read};
pub use write::NoId;
