//! What a connection over HTTP can be told before it begins.
//!
//! Knows defaults and the reason for each number. Must not know what is done with them.

use std::fmt;
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use hyper::HeaderMap;
use hyper::header::{HeaderName, HeaderValue};
use taut::secrets::MASK;
use taut::transport::bounded;

use super::{Challenge, HttpError};

/// A future that an [`Authorize`] returns.
pub type AuthorizeFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, HttpError>> + Send + 'a>>;

/// What has a token for a server, and gets another when the server refuses it.
pub trait Authorize: Send + Sync + 'static {
    /// The token for the next request; `None` to send none. Called before each request, so it has to be
    /// quick when a token is there.
    fn token(&self) -> AuthorizeFuture<'_, Option<Secret>>;

    /// The server refused a request. Says whether there is another token now, with which it is worth trying
    /// again.
    fn refused<'a>(&'a self, refusal: TokenRefusal<'a>) -> AuthorizeFuture<'a, bool>;

    /// What a user can do about a refusal that stays one, such as the command that logs in. It is part of
    /// the error.
    fn advice(&self) -> Option<String> {
        None
    }
}

/// A request that a server refused because of who asks.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct TokenRefusal<'a> {
    /// The status: 401 or 403.
    pub status: u16,
    /// What the server said about it.
    pub challenge: Option<&'a Challenge>,
    /// The token that was sent.
    pub token: Option<&'a Secret>,
    /// Whether a user may be asked. Nobody waits for what a connection does by itself, such as its end.
    pub may_ask: bool,
}

/// Text that is never shown: a token, a password. `Debug` shows only that there is one.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Arc<str>);

impl Secret {
    /// Keeps `text` out of sight.
    pub fn new(text: impl Into<Arc<str>>) -> Self {
        Self(text.into())
    }

    /// The text itself.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

/// Where requests pass on their way.
#[derive(Clone, Debug, Default)]
pub(crate) enum Proxies {
    /// As `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY` say.
    #[default]
    Environment,
    Given(Secret),
    None,
}

/// How a server is reached over HTTP.
#[derive(Clone)]
#[must_use]
pub struct HttpOptions {
    pub(crate) headers: HeaderMap,
    pub(crate) bad_setting: Option<HttpError>,
    pub(crate) authorize: Option<Arc<dyn Authorize>>,
    pub(crate) ca_file: Option<PathBuf>,
    pub(crate) proxies: Proxies,
    pub(crate) max_message_bytes: usize,
    pub(crate) max_waiting_bytes: usize,
    pub(crate) max_requests: usize,
    pub(crate) connect_timeout: Duration,
    pub(crate) body_timeout: Duration,
    pub(crate) reconnects: u32,
    pub(crate) reconnect_delay: Duration,
    pub(crate) old_transport: bool,
}

/// A shorter pause would be none.
const SHORTEST: Duration = Duration::from_millis(10);

impl Default for HttpOptions {
    fn default() -> Self {
        Self {
            headers: HeaderMap::new(),
            bad_setting: None,
            authorize: None,
            ca_file: None,
            proxies: Proxies::default(),
            // As long as the longest message on stdio.
            max_message_bytes: 64 << 20,
            // One such message, and as much beside it.
            max_waiting_bytes: 128 << 20,
            // Each has a connection of its own; common limits of open files are 1024 and 256.
            max_requests: 200,
            // As long as a lost packet is repeated a few times.
            connect_timeout: Duration::from_secs(20),
            // A server that has begun to answer has its answer.
            body_timeout: Duration::from_secs(60),
            reconnects: 5,
            // What the official SDKs wait first.
            reconnect_delay: Duration::from_secs(1),
            old_transport: true,
        }
    }
}

impl HttpOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sends this header with every request to the server. The value is taken for a secret: it is never
    /// shown, and never sent to another origin.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        let name_read = HeaderName::from_bytes(name.as_bytes());
        match (name_read, HeaderValue::from_str(value)) {
            (Ok(name), Ok(mut value)) => {
                value.set_sensitive(true);
                self.headers.append(name, value);
            }
            (Err(_), _) => self.bad(format!("{name:?} is no name for a header")),
            (_, Err(_)) => {
                self.bad(format!("the value of the header {name} has a line break in it"))
            }
        }
        self
    }

    fn bad(&mut self, why: String) {
        self.bad_setting.get_or_insert(HttpError::Setting { why });
    }

    /// Sends this token as `Authorization: Bearer`.
    pub fn bearer(self, token: &str) -> Self {
        self.header("authorization", &format!("Bearer {token}"))
    }

    /// Asks this for tokens. A header `authorization` that was given goes first.
    pub fn authorize(mut self, authorize: Arc<dyn Authorize>) -> Self {
        self.authorize = Some(authorize);
        self
    }

    /// Trusts the certificates in this PEM file, and no others: those that the system trusts are not used.
    pub fn ca_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.ca_file = Some(path.into());
        self
    }

    /// Passes through this proxy, an `http://` address, whatever `HTTPS_PROXY` and `HTTP_PROXY` say. A
    /// user and a password may stand in it.
    pub fn proxy(mut self, url: &str) -> Self {
        self.proxies = Proxies::Given(Secret::new(url));
        self
    }

    /// Goes straight to the server, whatever `HTTPS_PROXY` and `HTTP_PROXY` say.
    pub fn no_proxy(mut self) -> Self {
        self.proxies = Proxies::None;
        self
    }

    /// Sets how long one message of the server may be, in bytes. 64 MiB.
    pub fn max_message_bytes(mut self, bytes: usize) -> Self {
        self.max_message_bytes = bytes;
        self
    }

    /// Sets how many bytes of messages may be on their way at once. 128 MiB. A request beyond that fails
    /// at once; a notification or an answer beyond it is left out, with a warning in the log.
    pub fn max_waiting_bytes(mut self, bytes: usize) -> Self {
        self.max_waiting_bytes = bytes;
        self
    }

    /// Sets how many requests are made at once, each on a connection of its own. 200. Others wait.
    pub fn max_requests(mut self, requests: usize) -> Self {
        self.max_requests = requests.max(1);
        self
    }

    /// Sets how long it may take to connect, TLS included. 20 s.
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = bounded(timeout);
        self
    }

    /// Sets how long an answer that has begun may pause, and how long the server may take to confirm a
    /// notification, an answer or a cancellation. 60 s. Streams of events may pause for as long as they like, and the answer to a
    /// request may begin as late as it likes: the client's own timeouts bound that.
    pub fn body_timeout(mut self, timeout: Duration) -> Self {
        self.body_timeout = bounded(timeout);
        self
    }

    /// Sets how often in a row a broken stream is taken up again without a message. 5. A stream that the server ends
    /// after it has asked for a pause of half a second or more is not broken: it is to be polled.
    pub fn reconnects(mut self, times: u32) -> Self {
        self.reconnects = times;
        self
    }

    /// Sets how long to wait before a broken stream is taken up again, if the server does not say. 1 s,
    /// and twice as long each time it fails. At least 10 ms. A server may ask for a shorter pause, but for none that
    /// is shorter than this or 200 ms.
    pub fn reconnect_delay(mut self, delay: Duration) -> Self {
        self.reconnect_delay = bounded(delay).max(SHORTEST);
        self
    }

    /// Whether the transport of 2024-11-05 (HTTP+SSE) is tried where a server knows no other. On.
    pub fn old_transport(mut self, on: bool) -> Self {
        self.old_transport = on;
        self
    }
}

impl fmt::Debug for HttpOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpOptions")
            .field("headers", &self.headers.keys().map(HeaderName::as_str).collect::<Vec<_>>())
            .field("ca_file", &self.ca_file)
            .finish_non_exhaustive()
    }
}
