//! The client: starts servers, finds out what they speak, calls them, leaves no process behind.
//!
//! [`Client`] is one server, [`SupervisedClient`] one that is started again when it dies. The names that most
//! programs need are in the root of the crate as well.

// Each name below knows only what stands above it.
//
// | | |
// |---|---|
// | `state` | what one connection remembers: events, streams of changes, kept lists |
// | `connection` | [`Client`], its settings and handlers, its session with the loop and the process |
// | `answering` | what a server asks of us and tells us: who answers, who hears of it |
// | `request` | one request, from its params to its answer, in as many rounds as it takes |
// | `lists` | lists page by page, kept ones, and the check of answers against output schemas |
// | `methods` | what a server can be asked, one function each |
// | `listen` | streams of changes |
// | `open` | starting a server and agreeing with it on a revision |
// | `supervise` | a server that is started again when it dies |

mod answering;
mod connection;
mod listen;
mod lists;
mod methods;
mod open;
mod request;
mod state;
mod supervise;

pub use connection::{Client, ClientBuilder, Closed, IntoResponse, RequestContext};
#[cfg(feature = "server")]
pub(crate) use connection::{Relay, Relayed, SessionState};
pub use listen::ChangeStream;
#[cfg(feature = "server")]
pub(crate) use listen::list_changes;
pub use lists::Pages;
pub use request::{Answer, Request, RequestFuture};
pub use state::{Change, ClientEvent, Diagnostics, InvalidMessage};
#[cfg(feature = "server")]
pub(crate) use supervise::Backoff;
pub use supervise::{RestartPolicy, SupervisedCall, SupervisedClient, SupervisorEvent};
