//! The seam for transports outside this crate: connections that carry whole messages.
//!
//! Knows messages, and which request each belongs to; must not know a method, an era or a byte stream.
//! stdio and sockets are byte streams and do not pass here.
//!
//! # Answering
//!
//! Whatever answers requests is a [`MessageService`]: a [`Server`](crate::Server), a
//! [`Proxy`](crate::Proxy), a plain JSON-RPC [service](crate::service). A transport opens a session with
//! [`MessageService::open`] and gets a [`MessagePipe`]. What it [sends](MessageSender::send) into the pipe
//! is handled as if it came over stdio: the same bounds in bytes, the same fairness, deadlines and
//! isolation of panics. What it [receives](MessageReceiver::recv) has to be delivered, and says where:
//! [`Outgoing::relation`] names the request that a message belongs to.
//!
//! - A request is finished when its [answer](Relation::Answer) was received, or a note that it was
//!   [withdrawn](Relation::Withdrawn).
//! - Whether a lost peer means "cancel" is for the transport to say: if it does, it sends
//!   `notifications/cancelled` for each open request, or drops the pipe, which ends the whole session.
//! - [`MessageSender::close`] says that nothing more will come. What was accepted is finished, as on a
//!   pipe whose writer has closed it.
//!
//! # Asking
//!
//! `ClientBuilder::connect_messages` gives a pipe and the `Client` that opens over it. What the
//! transport receives goes to the server; what the server answers is sent into the pipe. A transport that
//! cannot go on says why with [`MessageSender::fail`]. One that has something left to do when the client
//! closes, such as to say goodbye to the server, keeps its sender until that is done: `Client::close` waits
//! for it, as it waits for a process.
//!
//! The example `transport` in the repository is a whole transport in about a hundred lines.

mod bounds;
mod pipe;
mod principal;
mod service;

pub use crate::rpc::Relation;
pub use bounds::{ByteBudget, HeldBytes, SocketBounds, bounded};
#[cfg(feature = "client")]
pub(crate) use pipe::pipe;
pub use pipe::{MessagePipe, MessageReceiver, MessageSender, Outgoing, SendMessageError};
pub use principal::Principal;
pub(crate) use service::{Answers, Started};
pub use service::{ByteStream, MessageService};
