//! Whether a server that listens can be reached, told before the host asks anything of it.
//!
//! `taut bridge` carries the messages, and connects only once there is one. This only opens a connection and
//! closes it again. Must not send anything, nor make the host wait.

use std::io::ErrorKind;
use std::net::{TcpStream, ToSocketAddrs as _};
use std::path::PathBuf;
use std::time::Duration;

use crate::hosts::{How, Surroundings, find};
use crate::mask;
use crate::reach::{Address, host_and_port_of};
use crate::remote::is_url;

/// How long a connection may take before it is told of.
const LIMIT: Duration = Duration::from_secs(3);

/// A server that listens somewhere.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Elsewhere {
    /// Where, without secrets.
    pub(super) shown: String,
    /// The host and the port, if they can be told from the address.
    at: Option<(String, u16)>,
}

/// Where the server is that a word means; nothing if it is started here.
pub(super) fn elsewhere(word: &str, config: &[PathBuf]) -> Option<Elsewhere> {
    if let Some(address) = Address::read(word) {
        let at = match address {
            Ok(Address::Tcp(host, port)) => Some((host, port)),
            _ => None,
        };
        return Some(Elsewhere { shown: word.to_owned(), at });
    }
    if is_url(word) {
        return Some(Elsewhere { shown: mask::url(word), at: of_url(word) });
    }
    let found = find(Surroundings::here(), config);
    match &found.named(word)?.how {
        How::Remote { url, .. } => Some(Elsewhere { shown: mask::url(url), at: of_url(url) }),
        _ => None,
    }
}

/// The host and the port of a URL.
fn of_url(url: &str) -> Option<(String, u16)> {
    let (scheme, rest) = url.split_once("://")?;
    let host = rest.split(['/', '?', '#']).next()?;
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    // A variable of a host's file.
    if host.contains('$') {
        return None;
    }
    let port = if scheme.eq_ignore_ascii_case("https") { 443 } else { 80 };
    host_and_port_of(host).or_else(|| host_and_port_of(&format!("{host}:{port}")))
}

impl Elsewhere {
    /// Why there is no connection, if there is none.
    pub(super) fn unreachable(&self) -> Option<String> {
        let (host, port) = self.at.as_ref()?;
        let Ok(addresses) = (host.as_str(), *port).to_socket_addrs() else {
            return Some(format!("cannot be reached: nobody knows the name {host}"));
        };
        let mut why = None;
        for address in addresses {
            match TcpStream::connect_timeout(&address, LIMIT) {
                Ok(_) => return None,
                Err(error) => why = why.or(Some(error)),
            }
        }
        Some(match why {
            Some(error) if error.kind() == ErrorKind::ConnectionRefused => {
                "cannot be reached: nobody listens there".to_owned()
            }
            Some(error) if error.kind() == ErrorKind::TimedOut => {
                format!("cannot be reached: no connection within {LIMIT:?}")
            }
            Some(error) => format!("cannot be reached: {error}"),
            None => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_of_a_url_is_its_host_and_port() {
        let table = [
            ("http://a.b/mcp", Some(("a.b", 80))),
            ("HTTPS://a.b", Some(("a.b", 443))),
            ("https://u:p@a.b:8443/x?y#z", Some(("a.b", 8443))),
            ("http://[::1]:7/x", Some(("::1", 7))),
            ("http://[::1]/x", Some(("::1", 80))),
            ("http://${HOST}/x", None),
            ("nothing", None),
        ];
        for (url, place) in table {
            assert_eq!(of_url(url), place.map(|(host, port)| (host.to_owned(), port)), "{url}");
        }
    }
}
