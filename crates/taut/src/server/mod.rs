//! The MCP server: tools, resources and prompts for any host, whatever revision it speaks.
//!
//! [`Server::builder`] makes one. The names that most programs need are in the root of the crate as well.

// | folder or file | what it knows |
// |---|---|
// | `settings` | what a server is told while it is built, as data |
// | `catalog` | what is offered: lists, pages, templates |
// | `schema` | from Rust types to JSON schemas and forms |
// | `pool` | threads for handlers that block |
// | `subscriber` | what one connection wants to hear of |
// | `call` | a call as its handler sees it, and asking back |
// | `handler` | typed handlers: arguments read, results written |
// | `session` | one connection: a request is judged, routed, answered |
// | `builder`, `changes` | the verbs that add to the catalog, before and while it is served |
//
// Each knows only those above it.

mod builder;
mod call;
mod catalog;
mod changes;
mod handler;
mod pool;
mod schema;
mod session;
mod settings;
mod subscriber;
mod test_call;

use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite};

use crate::driver::{self, Link};
use crate::ending::Ending;
use crate::error::{Error, Result};
use crate::mcp::RawJson;
use crate::rpc::{Config, Peer};
use crate::service::run_stdio;
use crate::stdio;
use crate::stream::{Reader, Writer};
use crate::transport::{Answers, Principal, Started};

use call::ServerShared;
use session::ServerSession;

pub use builder::ServerBuilder;
pub use call::{AskError, BlockingCall, Call, ClientInfo, Progress, UserReply};
pub use changes::Changes;
pub use handler::{CompletionRequest, IntoContents, IntoMessages, IntoReply, Json};
pub use schema::NoArgs;
pub use settings::{BadArguments, CallEvent};

/// A server that is ready to serve, on as many connections as it is asked to. [`Server::builder`]
/// makes one.
pub struct Server<S = ()> {
    shared: Arc<ServerShared<S>>,
}

/// The same server: what is changed through one is changed for all.
impl<S> Clone for Server<S> {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone() }
    }
}

impl<S: Send + Sync + 'static> Server<S> {
    /// Serves this process's stdin and stdout until the host closes stdin.
    ///
    /// From the first call on, and for as long as the process lives, file descriptors 0 and 1 no longer
    /// reach the host: stdin reads as empty and stdout is redirected to stderr, so that a stray print
    /// cannot break the protocol. SIGINT and SIGTERM end serving; half a second later they end the
    /// process if it is still there
    /// ([`leave_signals`](ServerBuilder::leave_signals) switches that off).
    ///
    /// # Errors
    /// Something else has stdin and stdout already, reading or writing failed, or the input ended and some calls took
    /// longer than the [drain limit](ServerBuilder::drain): a line on stderr says which.
    pub async fn serve_stdio(&self) -> Result<()> {
        let wire = stdio::take()?;
        let (link, session) = self.start(true);
        let settings = &self.shared.settings;
        let running = run_stdio(wire, link, session, settings.options, settings.signals);
        Error::unless_orderly(running.await)
    }

    /// Serves a pair of byte streams until the other side is done, and says why it ended.
    pub async fn serve<R, W>(&self, reader: R, writer: W) -> Ending
    where
        R: AsyncRead + Unpin + Send,
        W: AsyncWrite + Unpin + Send,
    {
        let (link, session) = self.start(false);
        let (options, never) = (self.shared.settings.options, std::future::pending());
        driver::run(link, Reader(reader), Writer(writer), Box::new(session), options, never).await
    }

    fn start(&self, on_stdio: bool) -> (Link, ServerSession<S>) {
        let link = Link::new(Peer::new(self.shared.settings.config));
        let shared = self.shared.clone();
        let session = ServerSession::new(shared, link.clone(), on_stdio, Principal::ANONYMOUS);
        (link, session)
    }
}

impl<S: Send + Sync + 'static> Answers for Server<S> {
    fn start(&self, principal: Principal, adjust: &dyn Fn(Config) -> Config) -> Started {
        let settings = &self.shared.settings;
        Started::new(adjust(settings.config), settings.options, |link| {
            Box::new(ServerSession::new(self.shared.clone(), link, false, principal))
        })
    }

    fn schema_of_tool(&self, name: &str) -> Option<RawJson> {
        let catalog = self.shared.catalog.borrow().clone();
        let (_, tool) = catalog.tool(name)?;
        Some(tool.spec.whole().input_schema.json().clone())
    }
}
