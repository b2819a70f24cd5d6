//! How a server is reached: a command that is started, a socket that somebody listens on, or a URL.
//!
//! Knows how addresses are written (`tcp:HOST:PORT`, `unix:PATH`) and what to say if nobody listens there.
//! Must not know where a server's name leads (`hosts/`), nor what is asked of it.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::future::Future;
use std::io;
#[cfg(unix)]
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
#[cfg(unix)]
use std::time::Duration;

use taut::{Client, ClientBuilder, Command, Ending, Error};

use crate::output::Output;
use crate::own;
use crate::problem::Problem;
use crate::session::told;
use crate::signals::Interrupts;

/// What a connection that was not made was being done; `problem.rs` knows it by that.
pub(crate) const CONNECTING: &str = "connecting";

/// How long to wait for room among those who wait to be accepted.
#[cfg(unix)]
const CROWDED: Duration = Duration::from_secs(5);

/// Where a server is.
#[derive(Clone, Debug)]
pub(crate) enum Reach {
    /// It is started with this command.
    Start(Command),
    /// It listens there.
    Socket(Address),
    /// It is at a URL.
    #[cfg(feature = "http")]
    Http(crate::remote::Remote),
    /// Workers on a broker serve it.
    #[cfg(feature = "fleet")]
    Nats(crate::nats::Service),
}

/// An address of a socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Address {
    /// `tcp:HOST:PORT`; the host without brackets.
    Tcp(String, u16),
    /// `unix:PATH`.
    Unix(PathBuf),
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(host, port) if host.contains(':') => write!(f, "tcp:[{host}]:{port}"),
            Self::Tcp(host, port) => write!(f, "tcp:{host}:{port}"),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

impl Address {
    /// The address that a word means; `None` if it does not look like one.
    pub(crate) fn read(word: &str) -> Option<Result<Self, Problem>> {
        if let Some(rest) = word.strip_prefix("tcp:") {
            // As people write addresses of the web.
            let rest = rest.strip_prefix("//").unwrap_or(rest);
            return Some(host_and_port(rest).ok_or_else(|| Problem::Usage {
                what: format!("{word:?} is no address: expected tcp:HOST:PORT"),
                next: Some(
                    "tcp:127.0.0.1:7000, with the port that the server listens on".to_owned(),
                ),
            }));
        }
        let path = word.strip_prefix("unix:")?;
        Some(match path {
            "" => Err(Problem::Usage {
                what: "unix: needs the path of a socket".to_owned(),
                next: Some("unix:/run/user/1000/server.sock".to_owned()),
            }),
            path => Ok(Self::Unix(path.into())),
        })
    }

    /// Connects.
    #[cfg(unix)]
    async fn connect(&self, builder: ClientBuilder) -> taut::Result<Client> {
        match self {
            Self::Tcp(..) => self.connect_tcp(builder).await,
            Self::Unix(path) => {
                let socket = connect_unix(path).await;
                builder.connect_socket(socket.map_err(|error| self.failed(&error))?).await
            }
        }
    }

    /// Connects.
    #[cfg(not(unix))]
    async fn connect(&self, builder: ClientBuilder) -> taut::Result<Client> {
        match self {
            Self::Tcp(..) => self.connect_tcp(builder).await,
            Self::Unix(_) => Err(self.failed(&io::ErrorKind::Unsupported.into())),
        }
    }

    async fn connect_tcp(&self, builder: ClientBuilder) -> taut::Result<Client> {
        let Self::Tcp(host, port) = self else {
            return Err(self.failed(&io::ErrorKind::InvalidInput.into()));
        };
        let socket = tokio::net::TcpStream::connect((host.as_str(), *port)).await;
        let socket = socket.map_err(|error| self.failed(&error))?;
        // Messages are small and waited for.
        let _ = socket.set_nodelay(true);
        builder.connect_socket(socket).await
    }

    /// Why there is no connection, and what to do.
    fn failed(&self, error: &io::Error) -> Error {
        use io::ErrorKind::{ConnectionRefused, NotFound, PermissionDenied, Unsupported};
        let listen = match self {
            Self::Tcp(host, port) if host.contains(':') => format!("[{host}]:{port}"),
            Self::Tcp(host, port) => format!("{host}:{port}"),
            Self::Unix(_) => self.to_string(),
        };
        let words = match error.kind() {
            NotFound if matches!(self, Self::Unix(_)) => {
                format!(
                    "there is no socket {self}; start who listens there first: {taut} bridge --listen {listen} -- COMMAND",
                    taut = own::name()
                )
            }
            ConnectionRefused => {
                format!(
                    "nobody listens on {self}; start who does: {taut} bridge --listen {listen} -- COMMAND",
                    taut = own::name()
                )
            }
            PermissionDenied => format!(
                "{self} belongs to another user, who has to share the server in another way"
            ),
            Unsupported => {
                format!("{self}: this system has no Unix sockets; use tcp:127.0.0.1:PORT")
            }
            _ => format!("{self}: {error}"),
        };
        let error = Arc::new(io::Error::new(error.kind(), words));
        Error::Ended(Ending::Io { during: CONNECTING, error })
    }
}

/// Connects, and tries again while so many others wait to be accepted that there is no room.
#[cfg(unix)]
async fn connect_unix(path: &Path) -> io::Result<tokio::net::UnixStream> {
    let limit = tokio::time::Instant::now() + CROWDED;
    loop {
        match tokio::net::UnixStream::connect(path).await {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                if tokio::time::Instant::now() > limit {
                    return Err(error);
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            done => return done,
        }
    }
}

/// `127.0.0.1:80`, `localhost:80`, `[::1]:80`.
pub(crate) fn host_and_port_of(text: &str) -> Option<(String, u16)> {
    let (host, port) = text.rsplit_once(':')?;
    let port = port.parse().ok()?;
    let host = match host.strip_prefix('[') {
        Some(rest) => rest.strip_suffix(']')?,
        None if host.contains(':') => return None,
        None => host,
    };
    (!host.is_empty()).then(|| (host.to_owned(), port))
}

fn host_and_port(text: &str) -> Option<Address> {
    host_and_port_of(text).map(|(host, port)| Address::Tcp(host, port))
}

impl Reach {
    /// The same, started with the variables that the plainest hosts pass on.
    pub(crate) fn plain(self) -> Self {
        match self {
            Self::Start(command) => Self::Start(command.network_env(false)),
            other => other,
        }
    }

    /// What carries the messages, where that is no stream of bytes with a framing.
    pub(crate) const fn carrier(&self) -> Option<&'static str> {
        match self {
            #[cfg(feature = "http")]
            Self::Http(_) => Some("HTTP"),
            #[cfg(feature = "fleet")]
            Self::Nats(_) => Some("NATS"),
            Self::Start(_) | Self::Socket(_) => None,
        }
    }

    /// The package runner that starts it, if one does.
    pub(crate) fn package_runner(&self) -> Option<&'static str> {
        match self {
            Self::Start(command) => command.package_runner(),
            _ => None,
        }
    }

    /// Opens a connection.
    pub(crate) async fn open(&self, builder: ClientBuilder) -> taut::Result<Client> {
        match self {
            Self::Start(command) => builder.spawn(command.clone()).await,
            Self::Socket(address) => address.connect(builder).await,
            #[cfg(feature = "http")]
            Self::Http(remote) => remote.open(builder).await,
            #[cfg(feature = "fleet")]
            Self::Nats(service) => service.open(builder).await,
        }
    }

    /// The same, unless `stop` ends first: then the server is ended politely and the result is `None`.
    pub(crate) async fn open_unless(
        &self,
        builder: ClientBuilder,
        stop: impl Future<Output = ()>,
    ) -> taut::Result<Option<Client>> {
        match self {
            Self::Start(command) => builder.spawn_unless(command.clone(), stop).await,
            _ => tokio::select! {
                opened = self.open(builder) => opened.map(Some),
                () = stop => Ok(None),
            },
        }
    }

    /// The same, unless a stop comes first; the next stop kills the server.
    pub(crate) async fn open_until(
        &self,
        output: &Output,
        builder: ClientBuilder,
        interrupts: &mut Interrupts,
    ) -> taut::Result<Option<Client>> {
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let mut opening = std::pin::pin!(self.open_unless(builder, async {
            let _ = stopped.await;
        }));
        tokio::select! {
            opened = &mut opening => return opened,
            () = interrupts.next() => {}
        }
        // Nobody hears it only if it has ended just now.
        let _ = stop.send(());
        output.overheard();
        tokio::select! {
            ended = told(output, opening) => ended.map(|_| None),
            () = interrupts.next() => Ok(None),
        }
    }

    /// The words of its command; none if it is not started from here.
    pub(crate) fn words(&self) -> Vec<String> {
        let Some(command) = self.command() else { return Vec::new() };
        let words =
            [command.program()].into_iter().chain(command.arguments().iter().map(AsRef::as_ref));
        words.map(|word: &OsStr| word.to_string_lossy().into_owned()).collect()
    }

    /// The command that starts it, if that is how it is reached.
    pub(crate) fn command(&self) -> Option<&Command> {
        match self {
            Self::Start(command) => Some(command),
            _ => None,
        }
    }
}

/// A command that carries stdin and stdout to a server that listens, for what can only start programs.
pub(crate) fn carrier(server: &str, config: &[PathBuf]) -> Result<Vec<OsString>, Problem> {
    let own = std::env::current_exe()
        .map_err(|error| Problem::File { what: "finding our own program".into(), error })?;
    let mut words: Vec<OsString> = vec![own.into(), "bridge".into(), server.into()];
    for file in config {
        words.extend(["--config".into(), file.into()]);
    }
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_as_it_is_written() {
        let tcp = |host: &str, port| Some(Address::Tcp(host.to_owned(), port));
        let table = [
            ("tcp:127.0.0.1:7000", tcp("127.0.0.1", 7000)),
            ("tcp:[::1]:80", tcp("::1", 80)),
            ("tcp:localhost:1", tcp("localhost", 1)),
            ("unix:/run/a b.sock", Some(Address::Unix("/run/a b.sock".into()))),
        ];
        for (word, address) in table {
            let read = Address::read(word).unwrap().ok();
            assert_eq!(read.as_ref().map(ToString::to_string).as_deref(), Some(word));
            assert_eq!(read, address);
        }
        assert_eq!(Address::read("tcp://localhost:1").unwrap().ok(), tcp("localhost", 1));
        for word in ["tcp:", "tcp:7000", "tcp:::1:80", "tcp:a:b", "tcp:a:99999", "tcp::80", "unix:"]
        {
            assert!(Address::read(word).unwrap().is_err(), "{word}");
        }
        for word in ["demo", "http://a:1", "tcpx", "Unix:/a"] {
            assert!(Address::read(word).is_none(), "{word}");
        }
    }
}
