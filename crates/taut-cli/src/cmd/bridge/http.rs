//! `taut bridge --listen` with HTTP: lines, framed messages and HTTP on one port.
//!
//! Knows who may connect, and what to say to who may not; `taut_http` serves. Must not know messages.

use std::net::{IpAddr, SocketAddr};
#[cfg(unix)]
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use taut::Proxy;
use taut_http::server::{Certificate, Options, ServeError, serve_until};
use tokio::net::TcpListener;

use super::listen::{Kind, Listener};
use crate::files;
use crate::memory::GiveBack;
use crate::output::Output;
use crate::own;
use crate::problem::{Exit, Problem};
use crate::reach::{Address, host_and_port_of};
use crate::secrets;
use crate::signals::Interrupts;

/// How clients are served.
pub(super) struct Clients {
    pub(super) at_once: usize,
    /// How many legacy sessions may be open, each with a server.
    pub(super) sessions: usize,
    /// How long a session may be without any use.
    pub(super) idle: Duration,
    /// How long open calls may take at the end.
    pub(super) limit: Duration,
    pub(super) token: Option<String>,
    pub(super) hosts: Vec<String>,
    pub(super) origins: Vec<String>,
    pub(super) certificate: Option<(PathBuf, PathBuf)>,
    pub(super) everyone: bool,
    /// Told when a large body is gone.
    pub(super) memory: GiveBack,
}

/// A host name as `Host` has it: what could match none is refused, because it would be taken without a word.
pub(super) fn host_name(text: &str) -> Result<String, String> {
    let words = "write a name such as mcp.example.com; there are no wildcards";
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '.' | '-' | '_' | ':' | '[' | ']');
    match !text.is_empty() && text.chars().all(plain) {
        true => Ok(text.to_owned()),
        false => Err(words.to_owned()),
    }
}

/// An origin as `Origin` has it. `null` is the origin of every sandboxed page, so it names none.
pub(super) fn origin(text: &str) -> Result<String, String> {
    let words = "write a scheme, a host and perhaps a port, such as https://app.example or \
                 http://localhost:3000; there are no wildcards";
    let (scheme, host) = text.split_once("://").unwrap_or_default();
    let host = host.strip_suffix('/').unwrap_or(host);
    // Extensions of browsers have schemes of their own.
    let named = !scheme.is_empty() && scheme.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    match named && host_name(host).is_ok() {
        true => Ok(text.to_owned()),
        false if text == "null" => {
            Err("every sandboxed page of any site has this origin; name the site's".to_owned())
        }
        false => Err(words.to_owned()),
    }
}

/// The token in a file, which nobody else should be able to read.
pub(super) fn token_in_file(output: &Output, path: &Path) -> Result<String, Problem> {
    let text = files::text(path, files::SETTINGS)?;
    // Containers mount secrets so, and there are no other users in them: it is told, not refused.
    #[cfg(unix)]
    if std::fs::metadata(path).is_ok_and(|about| about.permissions().mode() & 0o004 != 0) {
        let path = path.display();
        output.note(&format!("{path}: every user of this machine can read the token"));
        output.note(&format!("  try: chmod 600 {path}"));
    }
    #[cfg(not(unix))]
    let _ = output;
    let next = "openssl rand -hex 32 > FILE; chmod 600 FILE";
    good_token(&path.display().to_string(), &text, next)
}

/// The token in a variable of the environment.
pub(super) fn token_in_variable(name: &str) -> Result<String, Problem> {
    let next = format!(
        "{name}=$(openssl rand -hex 32) {taut} bridge --token-env {name} …",
        taut = own::name()
    );
    match std::env::var(name) {
        Ok(text) => good_token(&format!("--token-env {name}"), &text, &next),
        Err(_) => Err(Problem::Usage {
            what: format!("--token-env {name}: {name} is not set, or is no text"),
            next: Some(next),
        }),
    }
}

fn good_token(place: &str, text: &str, next: &str) -> Result<String, Problem> {
    let token = text.trim();
    // Shorter ones can be guessed, and are more likely a slip than a secret.
    if token.len() < 16 || token.contains(char::is_whitespace) {
        return Err(Problem::Usage {
            what: format!("{place}: a token has at least 16 characters and no blanks"),
            next: Some(next.to_owned()),
        });
    }
    secrets::hide("token", token);
    Ok(token.to_owned())
}

impl Clients {
    fn options(&self) -> Result<Options, Problem> {
        let mut options = Options::new().connections(self.at_once).sessions(self.sessions);
        let memory = self.memory.clone();
        options = options.on_release(move || memory.soon());
        options = options.session_idle(self.idle);
        // `drain::finish` keeps the limit; clients then still read the errors of what was cut off.
        options = options.drain(self.limit.saturating_add(Duration::from_secs(5)));
        if let Some(token) = &self.token {
            options = options.token(token);
        }
        for host in &self.hosts {
            options = options.allow_host(host);
        }
        for origin in &self.origins {
            options = options.allow_origin(origin);
        }
        if self.everyone {
            options = options.serve_everyone_unsafely();
        }
        if let Some((chain, key)) = &self.certificate {
            let certificate =
                Certificate::from_files(chain, key).map_err(|error| Problem::Usage {
                    what: error.to_string(),
                    next: Some("--certificate and --key: two files in PEM".to_owned()),
                })?;
            options = options.certificate(certificate);
        }
        Ok(options)
    }
}

/// Serves everybody who connects until a signal comes, then lets open calls finish.
pub(super) async fn run(
    output: &Output,
    proxy: &Proxy,
    word: &str,
    clients: Clients,
) -> Result<Exit, Problem> {
    let options = clients.options()?;
    let listener = bind(word, &clients).await?;
    let mut interrupts = Interrupts::new()?;
    output.print(&format!("{}\n", shown(&listener.address, &clients)))?;
    let plain = clients.token.is_none() && clients.certificate.is_none();
    if plain && (output.err.terminal || matches!(listener.address, Address::Tcp(..))) {
        let more = if output.err.terminal { "; Ctrl-C ends it" } else { "" };
        let words = match &listener.address {
            Address::Tcp(host, port) => {
                let host = if host.contains(':') { format!("[{host}]") } else { host.clone() };
                format!(
                    "serves lines and headers there, and HTTP at http://{host}:{port}/mcp{more}"
                )
            }
            Address::Unix(_) => {
                format!("serves lines, headers and HTTP there, HTTP at the path /mcp{more}")
            }
        };
        output.note(&words);
    }
    // Removes the file of a Unix socket at the end of this function.
    #[cfg(unix)]
    let _file;
    let listener = match listener.kind {
        Kind::Tcp(listener) => taut_http::server::Listener::from(listener),
        #[cfg(unix)]
        Kind::Unix(listener, file) => {
            _file = file;
            listener.into()
        }
    };
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let serving = serve_until(listener, Arc::new(proxy.clone()), options, async {
        let _ = stopped.await;
    });
    let mut serving = std::pin::pin!(serving);
    tokio::select! {
        served = &mut serving => served.map_err(|error| refused(word, &error))?,
        () = interrupts.next() => {
            // Nobody hears it only if it has ended just now.
            let _ = stop.send(());
            super::drain::finish(proxy, clients.limit, &mut interrupts, serving).await;
        }
    }
    tokio::select! {
        () = proxy.close() => {}
        () = interrupts.next() => {}
    }
    Ok(Exit::Worked)
}

/// The address, as other commands take it: a URL for TCP, which lines understand as well.
fn shown(address: &Address, clients: &Clients) -> String {
    match address {
        Address::Tcp(host, port) if clients.token.is_some() || clients.certificate.is_some() => {
            let host = if host.contains(':') { format!("[{host}]") } else { host.clone() };
            let scheme = if clients.certificate.is_some() { "https" } else { "http" };
            format!("{scheme}://{host}:{port}/mcp")
        }
        address => address.to_string(),
    }
}

fn refused(word: &str, error: &ServeError) -> Problem {
    Problem::Usage {
        what: format!("--listen {word}: {error}"),
        next: Some("--token-file FILE, or --listen 127.0.0.1:PORT".to_owned()),
    }
}

/// Listens. Beyond this machine only if clients have to show a token, or if that was given up explicitly.
async fn bind(word: &str, clients: &Clients) -> Result<Listener, Problem> {
    let typed = word.strip_prefix("tcp:").unwrap_or(word);
    let elsewhere = host_and_port_of(typed)
        .and_then(|(host, port)| Some((host.parse::<IpAddr>().ok()?, port)))
        .filter(|(ip, _)| !ip.is_loopback() && (clients.token.is_some() || clients.everyone));
    let Some((ip, port)) = elsewhere else { return Listener::bind(word).await };
    let listener = TcpListener::bind(SocketAddr::new(ip, port)).await;
    let listener = listener.and_then(|listener| Ok((listener.local_addr()?, listener)));
    let (bound, listener) = listener.map_err(|error| Problem::Usage {
        what: format!("cannot listen on {word}: {error}"),
        next: Some("another port, or 0 for any free one".to_owned()),
    })?;
    let address = Address::Tcp(bound.ip().to_string(), bound.port());
    Ok(Listener { kind: Kind::Tcp(listener), address })
}
