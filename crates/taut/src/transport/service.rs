//! What answers requests, whatever carries them.

use std::future::Future;
use std::pin::Pin;

use tokio::io::{AsyncRead, AsyncWrite};

use super::bounds::SocketBounds;
use super::pipe::{MessagePipe, pipe};
use super::principal::Principal;
use crate::driver::{self, HasRoom, InPlace, Intake, Link, Options, Service};
use crate::ending::Ending;
use crate::json::RawJson;
use crate::rpc::{Config, Peer};
use crate::stream::{Reader, Writer};

/// A session that was begun and has nothing to carry it yet.
pub struct Started {
    pub(crate) link: Link,
    pub(crate) service: Box<dyn Service>,
    pub(crate) options: Options,
}

/// How a service begins a session. Only this crate can implement it.
pub trait Answers: Send + Sync + 'static {
    /// Begins a session. `adjust` changes how the peer is made.
    fn start(&self, principal: Principal, adjust: &dyn Fn(Config) -> Config) -> Started;

    /// Whether the service speaks MCP, and not only JSON-RPC.
    fn is_mcp(&self) -> bool {
        true
    }

    /// The input schema of a tool, if it is known without asking anybody.
    fn schema_of_tool(&self, _name: &str) -> Option<RawJson> {
        None
    }
}

impl Started {
    pub(crate) fn new(
        config: Config,
        options: Options,
        service: impl FnOnce(Link) -> Box<dyn Service>,
    ) -> Self {
        let link = Link::new(Peer::new(config));
        Self { service: service(link.clone()), link, options }
    }
}

/// A byte stream in both directions, such as a socket.
pub trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin + 'static {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin + 'static> ByteStream for T {}

/// Whatever answers requests: a [`Server`](crate::Server), a [`Proxy`](crate::Proxy), a plain JSON-RPC
/// [service](crate::service). The [module](crate::transport) says how a transport uses it.
pub trait MessageService: Answers {
    /// Opens a session for `principal`, which lives in a task of its own on the current runtime. It
    /// ends when the [receiver](super::MessageReceiver) is dropped, or when the pipe was
    /// [closed](super::MessageSender::close) and everything accepted is answered.
    fn open(&self, principal: Principal) -> MessagePipe {
        let (pipe, running) = begin(self.start(principal, &messages));
        tokio::spawn(running);
        pipe
    }

    /// Opens a session as [`open`](Self::open) does, but without a task: it lives in the
    /// [receiver](super::MessageReceiver), and goes on only while that is polled. What is answered at once
    /// then needs no switch between tasks. For a transport that keeps waiting for messages; one that does
    /// something else meanwhile lets the session go on with
    /// [`poll_session`](super::MessageReceiver::poll_session).
    fn open_in_place(&self, principal: Principal) -> MessagePipe {
        let (pipe, running) = begin(self.start(principal, &messages));
        pipe.holding(InPlace::new(running))
    }

    /// Serves one connection on a socket until it ends. The first bytes decide on the framing for the
    /// whole connection; anything that does not fit is refused, and the connection closed.
    fn serve_socket(
        &self,
        stream: Box<dyn ByteStream>,
        principal: Principal,
    ) -> Pin<Box<dyn Future<Output = Ending> + Send>> {
        self.serve_socket_within(stream, principal, SocketBounds::new())
    }

    /// The same with bounds on messages that have begun.
    fn serve_socket_within(
        &self,
        stream: Box<dyn ByteStream>,
        principal: Principal,
        bounds: SocketBounds,
    ) -> Pin<Box<dyn Future<Output = Ending> + Send>> {
        let SocketBounds { message_timeout, held } = bounds;
        let room = held.map(|mut held| Box::new(move |bytes| held.resize(bytes)) as HasRoom);
        let intake = Intake::new(message_timeout, room);
        let socket = |config: Config| Config { socket: true, ..config };
        let Started { link, service, options } = self.start(principal, &socket);
        let (reader, writer) = tokio::io::split(stream);
        let (reader, writer) = (Reader(reader), Writer(writer));
        let never = std::future::pending();
        Box::pin(driver::run_within(link, reader, writer, service, (options, intake), never))
    }

    /// Whether it speaks MCP. A plain JSON-RPC [service](crate::service) does not: it has no sessions
    /// and no versions.
    fn speaks_mcp(&self) -> bool {
        self.is_mcp()
    }

    /// The input schema of a tool as it is offered now, for transports that repeat parameters in
    /// headers. `None` if there is no such tool, or if the service would have to ask for it.
    fn tool_schema(&self, name: &str) -> Option<RawJson> {
        self.schema_of_tool(name)
    }
}

impl<T: Answers + ?Sized> MessageService for T {}

/// Whole messages have no framing; in memory each is a line.
fn messages(config: Config) -> Config {
    Config { only_framing: None, ..config }
}

/// A pipe to a session, and the loop that serves it.
fn begin(started: Started) -> (MessagePipe, impl Future<Output = Ending> + Send) {
    let Started { link, service, options } = started;
    link.track_relations();
    let (pipe, source, sink) = pipe(link.limit());
    (pipe, driver::run(link, source, sink, service, options, std::future::pending()))
}
