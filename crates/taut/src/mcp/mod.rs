//! The vocabulary of MCP: every type of all five revisions, as plain data.
//!
//! Knows what messages look like and which revision knows which member; must not know who sends
//! them when. Reading ignores what it can and keeps what it does not know. Writing is by
//! revision: `tool.at(revision)` leaves out what the reader does not know (LIF-19).

#[cfg(feature = "server")]
mod accept;
mod capabilities;
mod codes;
mod completion;
#[cfg(feature = "client")]
mod connect;
mod content;
#[cfg(feature = "server")]
mod conversation;
mod elicitation;
mod extra;
mod form;
mod http;
#[cfg(feature = "server")]
mod input;
mod lists;
mod logging;
mod macros;
mod meta;
#[cfg_attr(
    not(all(feature = "server", feature = "client")),
    allow(dead_code, reason = "server and client each use a part of it")
)]
mod methods;
#[cfg(feature = "client")]
mod opened;
mod opening;
mod parameter_headers;
mod progress;
mod prompts;
#[cfg_attr(
    not(all(feature = "server", feature = "client")),
    allow(dead_code, reason = "server and client each use a part of it")
)]
mod request_meta;
mod resources;
mod result;
mod revision;
mod roots;
#[cfg(test)]
mod samples;
mod sampling;
mod schema;
mod subscriptions;
#[cfg(test)]
mod tests;
mod tools;
mod write;

#[cfg(feature = "server")]
pub(crate) use accept::{Accept, Asker, Terms, Verdict};
pub use capabilities::*;
pub use codes::*;
pub use completion::*;
#[cfg(feature = "client")]
pub(crate) use connect::{Connect, ConnectAction, Plan};
pub use content::*;
#[cfg(feature = "server")]
pub(crate) use conversation::disorder;
pub use elicitation::*;
pub use extra::Extra;
pub use form::*;
pub use http::*;
#[cfg(feature = "server")]
pub(crate) use input::{InputRequired, Memory, Question, SealKey, binding};
pub use lists::*;
pub use logging::*;
pub use meta::*;
#[cfg(any(feature = "server", feature = "client"))]
pub(crate) use methods::{DIALECT, Method};
#[cfg(feature = "client")]
pub(crate) use opened::{Agreed, ConnectFault, Discovered, Initialized};
pub use opening::*;
pub use parameter_headers::*;
pub use progress::*;
pub use prompts::*;
#[cfg(all(feature = "server", feature = "client"))]
pub(crate) use request_meta::RequestMeta;
pub use request_meta::Trace;
pub use resources::*;
pub use result::*;
pub use revision::*;
pub use roots::*;
pub use sampling::*;
pub use schema::Schema;
pub use subscriptions::*;
pub use tools::*;
#[cfg(feature = "server")]
pub(crate) use write::whole;
pub use write::{AtRevision, Target, WriteJson};

pub use crate::json::{JsonObject, RawJson};
