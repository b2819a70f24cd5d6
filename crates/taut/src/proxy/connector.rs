//! How a proxy reaches its server, and what it tells about that.

use std::fmt;
use std::future::Future;
use std::pin::Pin;

use crate::client::{Client, ClientBuilder};
use crate::error::Result;
use crate::mcp::Revision;

/// Opens connections to a server. A closure from a [`ClientBuilder`] to a future of a [`Client`] is one.
pub trait Connector: Send + Sync + 'static {
    /// Opens a connection with this builder, which has the identity, the capabilities and the era of the
    /// client that asks: `builder.spawn(command)`, `builder.connect(reader, writer)`.
    fn connect(
        &self,
        builder: ClientBuilder,
    ) -> Pin<Box<dyn Future<Output = Result<Client>> + Send>>;
}

impl<F, Fut> Connector for F
where
    F: Fn(ClientBuilder) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Client>> + Send + 'static,
{
    fn connect(
        &self,
        builder: ClientBuilder,
    ) -> Pin<Box<dyn Future<Output = Result<Client>> + Send>> {
        Box::pin(self(builder))
    }
}

/// Something that happened to a connection of a [`Proxy`](crate::Proxy), to a client or to its server.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ProxyEvent {
    /// A client has said who it is, in its first request. Over a transport that carries each modern request by
    /// itself, each of them is a client.
    Joined {
        /// The name and version that it gives itself, with control characters escaped.
        client: String,
        /// The revision that it asks for.
        revision: Revision,
    },
    /// The connection to that client has ended.
    Left {
        /// As in [`Joined`](Self::Joined).
        client: String,
    },
    /// A connection is open.
    Opened {
        /// The revision that the server speaks.
        revision: Revision,
        /// The process, if there is one.
        pid: Option<u32>,
    },
    /// No connection came of it.
    Failed {
        /// Why.
        error: String,
    },
    /// A connection ended that was not closed by the proxy.
    Lost {
        /// How it ended.
        reason: String,
    },
    /// A connection was closed by the proxy, because nobody needs it any more.
    Closed,
    /// A client that had more than 512 requests under way at once has none left. What they took of memory can
    /// be given back to the system.
    Calm,
}

impl fmt::Display for ProxyEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Joined { client, revision } => {
                write!(f, "client connected: {client}, revision {revision}")
            }
            Self::Left { client } => write!(f, "client left: {client}"),
            Self::Opened { revision, pid: Some(pid) } => {
                write!(f, "connected to the server, process {pid}, revision {revision}")
            }
            Self::Opened { revision, pid: None } => {
                write!(f, "connected to the server, revision {revision}")
            }
            Self::Failed { error } => write!(f, "no connection to the server: {error}"),
            Self::Lost { reason } => write!(f, "lost the server: {reason}"),
            Self::Closed => f.write_str("closed the connection to the server"),
            Self::Calm => f.write_str("answered all of many requests"),
        }
    }
}
