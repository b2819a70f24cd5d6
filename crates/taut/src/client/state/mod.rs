//! What one connection remembers: what was noticed, who hears of which change, which lists are kept.
//!
//! Tables behind locks, each bounded in bytes. Must not know how a request is made nor how a
//! connection is opened.

mod changes;
mod events;
mod lists;

pub use changes::Change;
pub(crate) use changes::{ChangeQueue, QueueKind, StreamEnd, Streams};
pub use events::{ClientEvent, Diagnostics, InvalidMessage};
pub(crate) use events::{EventHook, Monitor};
pub(crate) use lists::KeptLists;
#[cfg(feature = "validate")]
pub(crate) use lists::OutputSchema;
