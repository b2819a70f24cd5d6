//! The sockets of `taut bridge --listen`: TCP on loopback, and Unix sockets with mode 0600.
//!
//! Knows who can connect; must not know what is said (`http.rs`).

use std::net::{IpAddr, SocketAddr};

use tokio::net::TcpListener;

use crate::problem::Problem;
use crate::reach::{Address, host_and_port_of};

/// A socket that clients connect to.
pub(super) struct Listener {
    pub(super) kind: Kind,
    /// How the other commands write it.
    pub(super) address: Address,
}

pub(super) enum Kind {
    Tcp(TcpListener),
    #[cfg(unix)]
    Unix(
        tokio::net::UnixListener,
        #[allow(dead_code, reason = "removes the file")] unix::SocketFile,
    ),
}

impl Listener {
    pub(super) async fn bind(word: &str) -> Result<Self, Problem> {
        match Address::read(word).transpose()? {
            Some(Address::Unix(path)) => unix::bind(path),
            Some(Address::Tcp(host, port)) => tcp(&host, port).await,
            None => match host_and_port_of(word) {
                Some((host, port)) => tcp(&host, port).await,
                None => Err(Problem::Usage {
                    what: format!("--listen {word}: expected HOST:PORT or unix:PATH"),
                    next: Some(
                        "--listen unix:PATH, or --listen 127.0.0.1:0 for any free port".to_owned(),
                    ),
                }),
            },
        }
    }
}

/// Listens on loopback. Nobody else is let in: there is no place for a token in lines and headers.
async fn tcp(host: &str, port: u16) -> Result<Listener, Problem> {
    let ip = match host {
        "localhost" => IpAddr::from([127, 0, 0, 1]),
        _ => match host.parse::<IpAddr>() {
            Ok(ip) if ip.is_loopback() => ip,
            _ => {
                return Err(Problem::Usage {
                    what: format!(
                        "--listen {host}:{port}: only clients on this machine are served, because nothing \
                         here asks them who they are"
                    ),
                    next: Some(format!(
                        "--token-file FILE, or --listen 127.0.0.1:{port} and from another machine: \
                         ssh -L {port}:127.0.0.1:{port} THIS"
                    )),
                });
            }
        },
    };
    let listener = TcpListener::bind(SocketAddr::new(ip, port)).await;
    let listener = listener.and_then(|listener| Ok((listener.local_addr()?, listener)));
    let (bound, listener) = listener.map_err(|error| Problem::Usage {
        what: format!("cannot listen on {host}:{port}: {error}"),
        next: Some("another port, or 0 for any free one".to_owned()),
    })?;
    let address = Address::Tcp(bound.ip().to_string(), bound.port());
    Ok(Listener { kind: Kind::Tcp(listener), address })
}

#[cfg(not(unix))]
mod unix {
    use super::*;

    pub(super) fn bind(path: std::path::PathBuf) -> Result<Listener, Problem> {
        Err(Problem::Usage {
            what: format!("--listen unix:{}: this system has no Unix sockets", path.display()),
            next: Some("--listen 127.0.0.1:0".to_owned()),
        })
    }
}

#[cfg(unix)]
mod unix {
    use std::fs::Metadata;
    use std::io;
    use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
    use std::os::unix::net::{UnixListener, UnixStream};
    use std::path::{Path, PathBuf};

    use rustix::fs::Mode;
    use rustix::process::{getuid, umask};

    use super::{Address, Kind, Listener, Problem};

    /// The file of a socket, removed at the end unless it is another's by then.
    pub(in crate::cmd::bridge) struct SocketFile {
        path: PathBuf,
        inode: (u64, u64),
    }

    impl Drop for SocketFile {
        fn drop(&mut self) {
            if about(&self.path).is_ok_and(|about| inode(&about) == self.inode) {
                let _ = std::fs::remove_file(&self.path);
            }
        }
    }

    fn about(path: &Path) -> io::Result<Metadata> {
        std::fs::symlink_metadata(path)
    }

    fn inode(about: &Metadata) -> (u64, u64) {
        (about.dev(), about.ino())
    }

    /// Listens on a socket that nobody but this user can connect to, from its first moment on.
    pub(super) fn bind(path: PathBuf) -> Result<Listener, Problem> {
        make_room(&path)?;
        let failed = |error: io::Error| Problem::Usage {
            what: format!("cannot listen on unix:{}: {error}", path.display()),
            next: Some("a path of less than 100 bytes in a folder of yours".to_owned()),
        };
        let before = umask(Mode::from_raw_mode(0o177));
        let bound = UnixListener::bind(&path);
        umask(before);
        let listener = bound.map_err(failed)?;
        let inode = about(&path).map(|about| inode(&about)).map_err(failed)?;
        let file = SocketFile { path: path.clone(), inode };
        let listener = listener
            .set_nonblocking(true)
            .and_then(|()| tokio::net::UnixListener::from_std(listener));
        let listener = listener.map_err(failed)?;
        Ok(Listener { kind: Kind::Unix(listener, file), address: Address::Unix(path) })
    }

    /// Removes a socket that one of us has left behind. Anything else in this place is not touched.
    fn make_room(path: &Path) -> Result<(), Problem> {
        let refused = |what: &str, next: String| {
            let what = format!("--listen unix:{}: {what}", path.display());
            Err(Problem::Usage { what, next: Some(next) })
        };
        let about = match about(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => {
                return Err(Problem::File {
                    what: format!("looking at {}", path.display()),
                    error,
                });
            }
            Ok(about) => about,
        };
        let another = || "another path".to_owned();
        if !about.file_type().is_socket() {
            return refused("there is a file that is no socket, and it is left alone", another());
        }
        if about.uid() != getuid().as_raw() {
            return refused("there is a socket of another user", another());
        }
        match UnixStream::connect(path) {
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                std::fs::remove_file(path).map_err(|error| Problem::File {
                    what: format!("removing {}, which nobody listens on", path.display()),
                    error,
                })
            }
            _ => refused(
                "somebody listens there already",
                format!(
                    "another path, or use who listens: {taut} list unix:{}",
                    path.display(),
                    taut = crate::own::name()
                ),
            ),
        }
    }
}
