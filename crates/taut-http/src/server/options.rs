//! What a server over HTTP is told: whom it serves, and its limits.
//!
//! Knows defaults and why they are what they are; must not know how a request is served.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use http::request::Parts;
use taut::transport::{Principal, bounded};

use super::auth::{AuthError, Authenticate, ProtectedResource, Secret};
#[cfg(feature = "tls")]
use super::tls::Certificate;

/// How a service is offered over HTTP. The defaults are safe: loopback only, no web page of another
/// site, everything bounded.
#[derive(Clone)]
#[must_use = "options do nothing until something is served with them"]
pub struct Options {
    pub(super) path: String,
    pub(super) hosts: Vec<String>,
    pub(super) any_host: bool,
    pub(super) origins: Vec<String>,
    pub(super) exposed: bool,
    pub(super) secrets: Vec<Arc<Secret>>,
    pub(super) authenticate: Option<Arc<Authenticate>>,
    pub(super) resource: Option<Arc<ProtectedResource>>,
    #[cfg(feature = "tls")]
    pub(super) certificate: Option<Certificate>,
    pub(super) body_limit: usize,
    pub(super) bodies: usize,
    pub(super) on_release: Option<Arc<dyn Fn() + Send + Sync>>,
    pub(super) header_timeout: Duration,
    pub(super) body_timeout: Duration,
    pub(super) stall_timeout: Duration,
    pub(super) connections: usize,
    pub(super) sessions: usize,
    pub(super) session_idle: Duration,
    pub(super) drain: Duration,
    pub(super) replay: usize,
    pub(super) keep_alive: Duration,
    pub(super) json_window: Duration,
    pub(super) poll_after: Option<Duration>,
    pub(super) retry: Duration,
}

/// A shorter pause would be none.
const SHORTEST: Duration = Duration::from_millis(10);

impl Default for Options {
    fn default() -> Self {
        Self {
            path: "/mcp".to_owned(),
            hosts: Vec::new(),
            any_host: false,
            origins: Vec::new(),
            exposed: false,
            secrets: Vec::new(),
            authenticate: None,
            resource: None,
            #[cfg(feature = "tls")]
            certificate: None,
            // As Python, Go and Rust have it.
            body_limit: 4 << 20,
            // Sixteen of the longest.
            bodies: 64 << 20,
            on_release: None,
            // Also the longest pause between two requests on one connection.
            header_timeout: Duration::from_secs(60),
            body_timeout: Duration::from_secs(60),
            stall_timeout: Duration::from_secs(60),
            // Half of the descriptors that a process may usually have, so that children can start.
            connections: 512,
            sessions: 2048,
            session_idle: Duration::from_secs(30 * 60),
            drain: Duration::from_secs(5),
            replay: 256 << 10,
            // The SDKs do the same; proxies cut silent streams after one or two minutes.
            keep_alive: Duration::from_secs(15),
            // Long enough for most calls, short enough for clients that wait for a first byte.
            json_window: Duration::from_secs(2),
            poll_after: None,
            retry: Duration::from_millis(500),
        }
    }
}

impl Options {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// The path of the endpoint, for [`serve`](super::serve()). `/mcp`. Not below `/.well-known/`.
    pub fn path(mut self, path: impl Into<String>) -> Self {
        self.path = path.into();
        self
    }

    /// Serves requests whose `Host` is this name, in addition to names and addresses of the loopback:
    /// the public name, behind a reverse proxy. Any port will do.
    pub fn allow_host(mut self, name: impl Into<String>) -> Self {
        self.hosts.push(name.into().to_ascii_lowercase());
        self
    }

    /// Serves requests with any `Host`: something in front has checked it, or every request needs a
    /// token.
    pub fn allow_any_host(mut self) -> Self {
        self.any_host = true;
        self
    }

    /// Serves web pages of this origin, such as `https://app.example.com`, and lets browsers know
    /// (CORS). Other pages are refused, unless they come from the same host as the server.
    pub fn allow_origin(mut self, origin: impl Into<String>) -> Self {
        self.origins.push(origin.into().trim_end_matches('/').to_ascii_lowercase());
        self
    }

    /// Serves everybody who can reach the address, without a token, on every interface. Unsafe unless
    /// something else keeps strangers out.
    pub fn serve_everyone_unsafely(mut self) -> Self {
        self.exposed = true;
        self
    }

    /// Serves only requests with `Authorization: Bearer` and this token. Given several times, each
    /// token is a principal of its own.
    pub fn token(mut self, token: impl Into<String>) -> Self {
        let principal = format!("token {}", self.secrets.len() + 1);
        self.secrets.push(Arc::new(Secret::new(principal, token.into())));
        self
    }

    /// Asks `authenticate` who sends each request, before its body is read.
    ///
    /// ```
    /// use taut::transport::{Principal, bounded};
    /// use taut_http::server::{AuthError, Options, bearer};
    ///
    /// let options = Options::new().authenticate(|head| {
    ///     let token = bearer(&head.headers).map(str::to_owned);
    ///     async move {
    ///         match token?.as_str() {
    ///             "ann's token" => Ok(Principal::new("ann")),
    ///             _ => Err(AuthError::invalid("it is nobody's")),
    ///         }
    ///     }
    /// });
    /// ```
    pub fn authenticate<F>(
        mut self,
        authenticate: impl Fn(&Parts) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<Principal, AuthError>> + Send + 'static,
    {
        self.authenticate = Some(Arc::new(move |head| Box::pin(authenticate(head))));
        self
    }

    /// Tells clients where to get a token: serves the metadata of RFC 9728 and names it in 401
    /// and 403.
    pub fn protected_resource(mut self, resource: ProtectedResource) -> Self {
        self.resource = Some(Arc::new(resource));
        self
    }

    /// Speaks TLS, and nothing else, on the port.
    #[cfg(feature = "tls")]
    pub fn certificate(mut self, certificate: Certificate) -> Self {
        self.certificate = Some(certificate);
        self
    }

    /// The longest body of a request, in bytes. 4 MiB. A longer one is answered 413.
    pub fn body_limit(mut self, bytes: usize) -> Self {
        self.body_limit = bytes;
        self
    }

    /// How many bytes all bodies and all unfinished lines and frames may have together, over all connections.
    /// 64 MiB; what is beyond is answered 503. The first 16 KiB of each are not counted, and one that is longer
    /// than this is let in alone.
    pub fn bodies(mut self, bytes: usize) -> Self {
        self.bodies = bytes;
        self
    }

    /// Calls `released` each time that a body, a line or a frame of 256 KiB or more is no longer needed. A program
    /// whose allocator keeps memory can give it back then.
    pub fn on_release(mut self, released: impl Fn() + Send + Sync + 'static) -> Self {
        self.on_release = Some(Arc::new(released));
        self
    }

    /// How long a connection may take for the head of a request, and wait between two. 60 s.
    pub fn header_timeout(mut self, limit: Duration) -> Self {
        self.header_timeout = bounded(limit);
        self
    }

    /// How long the body of a request may take. 60 s; then it is answered 408. A line or a frame that has begun may
    /// take as long; the time between two of them has no limit.
    pub fn body_timeout(mut self, limit: Duration) -> Self {
        self.body_timeout = bounded(limit);
        self
    }

    /// How long a client may leave what is sent to it unread. 60 s; then its connection is closed.
    pub fn stall_timeout(mut self, limit: Duration) -> Self {
        self.stall_timeout = bounded(limit);
        self
    }

    /// How many connections are open at once. 512; further ones are answered 503.
    pub fn connections(mut self, most: usize) -> Self {
        self.connections = most;
        self
    }

    /// How many legacy sessions are open at once. 2048; further ones are answered 503.
    pub fn sessions(mut self, most: usize) -> Self {
        self.sessions = most;
        self
    }

    /// After how long a session without any open connection ends. 30 minutes.
    pub fn session_idle(mut self, limit: Duration) -> Self {
        self.session_idle = bounded(limit).max(SHORTEST);
        self
    }

    /// How long what is being answered may take once [`serve_until`](super::serve_until) is told to stop. 5 s.
    pub fn drain(mut self, limit: Duration) -> Self {
        self.drain = bounded(limit);
        self
    }

    /// How many bytes of a stream are kept for a client that comes back. 256 KiB; one longer message
    /// is kept alone.
    pub fn replay(mut self, bytes: usize) -> Self {
        self.replay = bytes;
        self
    }

    /// How often a silent stream gets a comment line, so that nothing in between closes it. 15 s, and at least
    /// 10 ms.
    pub fn keep_alive(mut self, every: Duration) -> Self {
        self.keep_alive = bounded(every).max(SHORTEST);
        self
    }

    /// How long an answer is awaited before a stream of events is opened for it. 2 s. An answer that
    /// comes first, and within this time, is sent as JSON.
    pub fn json_window(mut self, window: Duration) -> Self {
        self.json_window = bounded(window);
        self
    }

    /// Closes streams of events after this long and lets clients come back for the rest, `retry`
    /// later. Only clients of 2025-11-25 know how; others keep their streams. Off.
    pub fn poll_after(mut self, open: Duration, retry: Duration) -> Self {
        (self.poll_after, self.retry) = (Some(bounded(open)), bounded(retry));
        self
    }

    /// Whether every request has to say who sends it.
    pub(super) fn authenticates(&self) -> bool {
        !self.secrets.is_empty() || self.authenticate.is_some()
    }

    /// Adds what the address of the listener says about the names by which it is reached: an IP
    /// address cannot be taken over by another site's DNS.
    pub(super) fn listening_on(mut self, address: IpAddr) -> Self {
        match address.is_unspecified() {
            true => self.hosts.push(ANY_ADDRESS.to_owned()),
            false => self.hosts.push(match address {
                IpAddr::V4(address) => address.to_string(),
                IpAddr::V6(address) => format!("[{address}]"),
            }),
        }
        self
    }
}

/// Stands for every IP address among the names of hosts.
pub(super) const ANY_ADDRESS: &str = "*ip";

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Nothing secret.
        f.debug_struct("Options")
            .field("path", &self.path)
            .field("hosts", &self.hosts)
            .field("origins", &self.origins)
            .field("authenticates", &self.authenticates())
            .finish_non_exhaustive()
    }
}
