//! A port or a Unix socket on which lines, headers and HTTP are all understood.
//!
//! Knows connections; what is said on them is for others. The first bytes decide once for the whole
//! connection.

use std::convert::Infallible;
use std::fmt;
use std::future::{Future, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use taut::Ending;
use taut::rpc::ErrorObject;
use taut::transport::{ByteStream, MessageService, Principal, SocketBounds};
use taut::wire::Opening;
use tokio::net::TcpListener;
#[cfg(unix)]
use tokio::net::UnixListener;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use super::auth;
use super::body::Body;
use super::guard::check_source;
use super::io::{Draining, Sniffed, refuse};
use super::options::Options;
use super::refusal::{Refusal, error_message};
use super::service::HttpService;

/// Where connections come from.
#[derive(Debug)]
#[non_exhaustive]
pub enum Listener {
    /// A TCP port.
    Tcp(TcpListener),
    /// A Unix socket.
    #[cfg(unix)]
    Unix(UnixListener),
}

impl From<TcpListener> for Listener {
    fn from(listener: TcpListener) -> Self {
        Self::Tcp(listener)
    }
}

#[cfg(unix)]
impl From<UnixListener> for Listener {
    fn from(listener: UnixListener) -> Self {
        Self::Unix(listener)
    }
}

/// Why nothing is served.
#[derive(Debug)]
#[non_exhaustive]
pub enum ServeError {
    /// The address can be reached from other machines, and nobody would be asked for a token.
    Exposed {
        /// The address.
        address: SocketAddr,
    },
    /// The listener does not say its address.
    Address(io::Error),
}

impl fmt::Display for ServeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exposed { address } => write!(
                f,
                "{address} can be reached from other machines: set a token, listen on 127.0.0.1 or \
                 a Unix socket, or say that everyone may use it (serve_everyone_unsafely)"
            ),
            Self::Address(error) => write!(f, "the listener has no address: {error}"),
        }
    }
}

impl std::error::Error for ServeError {}

/// Listens on a Unix socket that only the own user can reach (mode 0600). A socket that nobody listens
/// on any more is replaced.
///
/// # Errors
/// Something else is at `path`, somebody listens on it, or the directory cannot be written.
#[cfg(unix)]
pub fn bind_unix(path: impl AsRef<std::path::Path>) -> io::Result<UnixListener> {
    use std::os::unix::fs::{FileTypeExt, PermissionsExt};
    let path = path.as_ref();
    if let Ok(there) = std::fs::symlink_metadata(path) {
        let message = match there.file_type().is_socket() {
            false => "something else than a socket is there: remove it or use another path",
            true if std::os::unix::net::UnixStream::connect(path).is_ok() => {
                "another process listens there: end it or use another path"
            }
            true => "",
        };
        if !message.is_empty() {
            let message = format!("{}: {message}", path.display());
            return Err(io::Error::new(io::ErrorKind::AddrInUse, message));
        }
    }
    // Nobody can connect to a socket that does not listen yet, so its mode is set before that. Until it
    // listens it has another name, so that whoever finds it at `path` can connect.
    let mut number = [0; 4];
    getrandom::fill(&mut number).map_err(io::Error::other)?;
    let mut hidden = path.as_os_str().to_owned();
    hidden.push(format!(".{:08x}", u32::from_ne_bytes(number)));
    let socket = tokio::net::UnixSocket::new_stream()?;
    socket.bind(&hidden)?;
    let set = std::fs::set_permissions(&hidden, std::fs::Permissions::from_mode(0o600));
    let listening = set.and_then(|()| socket.listen(BACKLOG));
    let placed = listening.and_then(|listener| {
        std::fs::rename(&hidden, path)?;
        Ok(listener)
    });
    if placed.is_err() {
        // It is ours and of no use.
        let _ = std::fs::remove_file(&hidden);
    }
    placed
}

/// How many connections beyond the limit are told so at once.
const REFUSALS: usize = 64;

/// How many connections may wait to be accepted: what the standard library's listeners have on Linux and
/// more than one burst of a team's hosts. The system may allow fewer.
#[cfg(unix)]
const BACKLOG: u32 = 1024;

/// Serves `service` on every connection, until the future is dropped. See [`serve_until`].
///
/// # Errors
/// As [`serve_until`].
pub async fn serve(
    listener: impl Into<Listener>,
    service: Arc<dyn MessageService>,
    options: Options,
) -> Result<(), ServeError> {
    serve_until(listener, service, options, std::future::pending()).await
}

/// Serves `service` on every connection, until `stop` is ready. Then no connection is accepted any
/// more, what is being answered may finish within [`Options::drain`], and all sessions end.
///
/// On each connection the first bytes decide: JSON lines and framed JSON-RPC are served as on stdio,
/// HTTP as [`HttpService`] does at the path of the options. Lines and framed messages have no place for
/// a token: they are served only on Unix sockets and on the loopback, and only while no token is set.
///
/// # Errors
/// The address can be reached from elsewhere, and neither a token nor an explicit permission is set.
pub async fn serve_until(
    listener: impl Into<Listener>,
    service: Arc<dyn MessageService>,
    mut options: Options,
    stop: impl Future<Output = ()>,
) -> Result<(), ServeError> {
    let listener = listener.into();
    let loopback = match &listener {
        Listener::Tcp(tcp) => {
            let address = tcp.local_addr().map_err(ServeError::Address)?;
            let loopback = address.ip().is_loopback();
            if !loopback && !options.authenticates() && !options.exposed {
                return Err(ServeError::Exposed { address });
            }
            options = options.listening_on(address.ip());
            loopback
        }
        #[cfg(unix)]
        Listener::Unix(_) => {
            // No web page reaches a Unix socket.
            options = options.allow_any_host();
            true
        }
    };
    let places = Arc::new(Semaphore::new(options.connections.min(Semaphore::MAX_PERMITS)));
    let refusals = Arc::new(Semaphore::new(REFUSALS));
    let drain = options.drain;
    let lines = loopback && !options.authenticates();
    let port = Arc::new(Port { http: HttpService::shared(service, options), lines });
    let (stopping, stopped) = watch::channel(false);
    let mut connections = JoinSet::new();
    let mut stop = std::pin::pin!(stop);
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            Some(_) = connections.join_next() => continue,
            () = &mut stop => break,
        };
        let stream = match accepted {
            Ok(stream) => stream,
            Err(error) => {
                tracing::warn!(%error, "a connection cannot be accepted");
                // Out of descriptors, most likely: others have to end first.
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let Ok(place) = places.clone().try_acquire_owned() else {
            // More than these at once are closed without a word.
            if let Ok(place) = refusals.clone().try_acquire_owned() {
                connections.spawn(async move {
                    refuse(&mut stream.boxed(), &too_many()).await;
                    drop(place);
                });
            }
            continue;
        };
        let (port, stopped) = (port.clone(), stopped.clone());
        connections.spawn(async move {
            port.connection(stream.boxed(), stopped).await;
            drop(place);
        });
    }
    drop(listener);
    stopping.send_replace(true);
    // Those that do not finish are dropped.
    let ended = async { while connections.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(drain, ended).await;
    Ok(())
}

/// A connection that was accepted.
enum Accepted {
    Tcp(tokio::net::TcpStream),
    #[cfg(unix)]
    Unix(tokio::net::UnixStream),
}

impl Accepted {
    fn boxed(self) -> Box<dyn ByteStream> {
        match self {
            Self::Tcp(stream) => {
                // Small messages leave at once. Where it cannot be set, they leave a little later.
                let _ = stream.set_nodelay(true);
                Box::new(stream)
            }
            #[cfg(unix)]
            Self::Unix(stream) => Box::new(stream),
        }
    }
}

impl Listener {
    async fn accept(&self) -> io::Result<Accepted> {
        match self {
            Self::Tcp(listener) => listener.accept().await.map(|(stream, _)| Accepted::Tcp(stream)),
            #[cfg(unix)]
            Self::Unix(listener) => {
                listener.accept().await.map(|(stream, _)| Accepted::Unix(stream))
            }
        }
    }
}

/// What all connections share.
struct Port {
    http: HttpService,
    /// Whether lines and headers are served as well.
    lines: bool,
}

/// What a connection beyond the limit is told.
fn too_many() -> String {
    let text = "too many connections are open: close one, or try again later";
    let response = plain_response(StatusCode::SERVICE_UNAVAILABLE, text);
    response.replacen("\r\n", "\r\nRetry-After: 10\r\n", 1)
}

/// A whole HTTP response for connections that are closed after it.
fn plain_response(status: StatusCode, text: &str) -> String {
    format!(
        "HTTP/1.1 {} {}\r\nContent-Type: text/plain\r\nContent-Length: {}\r\nConnection: close\r\n\
         \r\n{text}\n",
        status.as_u16(),
        status.canonical_reason().unwrap_or_default(),
        text.len() + 1
    )
}

impl Port {
    async fn connection(&self, stream: Box<dyn ByteStream>, stopped: watch::Receiver<bool>) {
        let mut over = stopped.clone();
        let limit = self.http.options().header_timeout;
        let opened = tokio::select! {
            opened = tokio::time::timeout(limit, self.open(stream)) => opened,
            // Nothing was asked yet.
            _ = over.wait_for(|stopped| *stopped) => return,
        };
        match opened {
            Ok(Ok(Some((opening, stream)))) => self.speak(opening, stream, stopped).await,
            Ok(Ok(None)) => {}
            Ok(Err(error)) => tracing::debug!(%error, "a connection ended before it began"),
            Err(_) => tracing::debug!("a connection said nothing in time"),
        }
    }

    /// The first bytes of a connection, inside TLS if that is spoken here.
    async fn open(&self, stream: Box<dyn ByteStream>) -> io::Result<Option<(Opening, Sniffed)>> {
        let (opening, stream) = Sniffed::read(stream).await?;
        #[cfg(feature = "tls")]
        if let Some(certificate) = &self.http.options().certificate {
            return match opening {
                Opening::Tls => Sniffed::read(certificate.accept(stream).await?).await.map(Some),
                Opening::Http | Opening::Http2 => {
                    let text = "this port speaks TLS: use https://";
                    stream.refuse(&plain_response(StatusCode::BAD_REQUEST, text)).await;
                    Ok(None)
                }
                _ => Ok(None),
            };
        }
        Ok(Some((opening, stream)))
    }

    async fn speak(&self, opening: Opening, stream: Sniffed, stopped: watch::Receiver<bool>) {
        match opening {
            Opening::Http => self.http(stream, stopped).await,
            Opening::Lines | Opening::Headers if self.lines => {
                self.socket(stream, stopped).await;
            }
            Opening::Lines | Opening::Headers => {
                let text = "this port serves HTTP only: send POST with a token";
                let error = ErrorObject::invalid_request(text);
                let mut line = error_message(None, &error, !self.http.service().speaks_mcp());
                line.push(b'\n');
                stream.refuse(&String::from_utf8_lossy(&line)).await;
            }
            Opening::Http2 => {
                let text = "HTTP/2 is not served: use HTTP/1.1";
                stream.refuse(&plain_response(StatusCode::HTTP_VERSION_NOT_SUPPORTED, text)).await;
            }
            Opening::Tls => {
                let text = "this port does not speak TLS: use http://, or start the server with a \
                            certificate";
                stream.refuse(&plain_response(StatusCode::BAD_REQUEST, text)).await;
            }
            // Nobody knows in which form an answer would be understood.
            _ => tracing::debug!("a connection is neither JSON-RPC nor HTTP, and is closed"),
        }
    }

    /// Lines or headers, as on stdio.
    async fn socket(&self, stream: Sniffed, stopped: watch::Receiver<bool>) {
        let options = self.http.options();
        let bounds = SocketBounds::new().message_timeout(options.body_timeout);
        let bounds = bounds.budget(self.http.bodies());
        // Once the server stops nothing more is read, and what was accepted is answered.
        let (stream, given_back) = Draining::new(stream, stopped);
        let (service, who) = (self.http.service(), Principal::ANONYMOUS);
        let ending = service.serve_socket_within(Box::new(stream), who, bounds).await;
        tracing::debug!(%ending, "a socket connection ended");
        if matches!(ending, Ending::Refused | Ending::Unfinished)
            && let Ok(stream) = given_back.await
        {
            stream.linger().await;
        }
    }

    async fn http(&self, stream: Sniffed, mut stopped: watch::Receiver<bool>) {
        let options = self.http.options();
        // Boxed, because hyper wants to move it between polls.
        let service = service_fn(|request| Box::pin(self.at_path(request)));
        let io = TokioIo::new(stream.patience(options.stall_timeout));
        let mut connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(options.header_timeout)
            // Longer heads are answered 431.
            .max_buf_size(64 << 10)
            .serve_connection(io, service);
        let mut stopping = false;
        let served = loop {
            let served = tokio::select! {
                biased;
                served = poll_fn(|cx| connection.poll_without_shutdown(cx)) => Some(served),
                _ = stopped.wait_for(|stopped| *stopped), if !stopping => None,
            };
            match served {
                Some(served) => break served,
                None => Pin::new(&mut connection).graceful_shutdown(),
            }
            stopping = true;
        };
        if let Err(error) = &served {
            tracing::debug!(%error, "an HTTP connection ended with an error");
        }
        connection.into_parts().io.into_inner().linger().await;
    }

    /// Serves a request if it is for the endpoint, or for the metadata.
    async fn at_path(&self, request: Request<Incoming>) -> Result<Response<Body>, Infallible> {
        let options = self.http.options();
        let wanted = options.path.trim_end_matches('/');
        let path = request.uri().path();
        if path.trim_end_matches('/') == wanted || auth::is_well_known(path) {
            return Ok(self.http.handle(request).await);
        }
        // A page of another site is told that, not which path would be right.
        let refused = check_source(options, &request.into_parts().0).err();
        let elsewhere = || {
            let text = format!("nothing is served here: the endpoint is {wanted}");
            Refusal::new(StatusCode::NOT_FOUND, text)
        };
        Ok(self.http.refused(refused.unwrap_or_else(elsewhere).closing()))
    }
}
