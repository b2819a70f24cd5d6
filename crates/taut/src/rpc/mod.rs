//! Plain JSON-RPC 2.0: messages, ids, errors, and the engine that knows who waits for what.
//! Pure: no I/O, no clock, no runtime.

mod error;
mod id;
#[cfg_attr(not(feature = "tokio"), allow(dead_code, reason = "only the loop shows whole frames"))]
mod mask;
mod message;
mod name;
mod part;
mod peer;
mod places;
mod plain;
mod quick;
mod quote;
mod result;
mod salvage;
mod scan;
mod write;

#[cfg(feature = "server")]
pub(crate) use error::excerpt;
pub use error::{ErrorObject, code};
pub use id::{Id, MAX_ID};
#[cfg(feature = "tokio")]
pub(crate) use mask::masked;
pub use message::{Fault, Incoming, MAX_BATCH, Malformed, Message, read};
pub(crate) use name::Name;
pub(crate) use part::Part;
#[cfg(feature = "tokio")]
pub(crate) use peer::Seed;
pub use peer::{
    CallId, Config, Dialect, Event, Events, Failure, Patience, Peer, Request, SendError, Ticket,
    Trouble, TroubleKind,
};
pub(crate) use places::Places;
pub(crate) use quote::quote;
pub use result::ResultJson;
pub use write::{Body, NoId};
