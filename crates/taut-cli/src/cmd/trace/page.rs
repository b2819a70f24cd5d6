//! Serves the page of a capture on loopback, with a secret in its address.
//!
//! A small HTTP server of its own: two addresses, GET only, one thread for each connection, all bounded.
//! Viewers read the capture's file, so none of them can make the recorder wait, and one that comes back
//! goes on where it was. Whoever does not know the token, or comes under another host's name, gets nothing.

use std::fs::File;
use std::io::{self, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use taut_trace::{document, policy};

use crate::problem::Problem;

/// How many connections there may be at once: a few tabs, each with one that stays open.
const CONNECTIONS: usize = 16;

/// How long a request and its headers may be.
const REQUEST: u64 = 16 << 10;

/// How long a request may take to come.
const PATIENCE: Duration = Duration::from_secs(5);

/// How often the file is looked at while it grows.
const AGAIN: Duration = Duration::from_millis(40);

/// How often a viewer hears that we are there, and we that it is.
const SIGN_OF_LIFE: Duration = Duration::from_secs(10);

/// How much of the file is read at once.
const PIECE: usize = 256 << 10;

struct Site {
    file: File,
    token: String,
    /// What `Host` may say.
    hosts: [String; 2],
    grows: bool,
    connections: AtomicUsize,
}

/// Letters and digits that nobody can guess: 128 bits.
pub(super) fn random() -> Result<String, Problem> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| Problem::File {
        what: "asking the system for randomness".to_owned(),
        error: io::Error::other(error.to_string()),
    })?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Serves the capture in this file from now on, in threads that end with the process. Returns the address.
pub(super) fn serve(file: File, grows: bool) -> Result<String, Problem> {
    let failed = |error| Problem::File { what: "listening on loopback".to_owned(), error };
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(failed)?;
    let port = listener.local_addr().map_err(failed)?.port();
    let token = random()?;
    let address = format!("http://127.0.0.1:{port}/{token}/");
    let hosts = [format!("127.0.0.1:{port}"), format!("localhost:{port}")];
    let site = Arc::new(Site { file, token, hosts, grows, connections: AtomicUsize::new(0) });
    let work = move || {
        for stream in listener.incoming() {
            match stream {
                Ok(stream) => accept(&site, stream),
                // Out of descriptors, perhaps: it passes.
                Err(_) => std::thread::sleep(AGAIN),
            }
        }
    };
    std::thread::Builder::new().name("page".into()).spawn(work).map_err(failed)?;
    Ok(address)
}

fn accept(site: &Arc<Site>, stream: TcpStream) {
    if site.connections.fetch_add(1, Ordering::AcqRel) >= CONNECTIONS {
        site.connections.fetch_sub(1, Ordering::AcqRel);
        let _ = refuse(&stream, "503 Service Unavailable", "too many viewers at once");
        return;
    }
    let own = Arc::clone(site);
    let work = move || {
        // A viewer that goes away is no fault of ours.
        let _ = answer(&own, &stream);
        own.connections.fetch_sub(1, Ordering::AcqRel);
    };
    let thread = std::thread::Builder::new().name("viewer".into()).stack_size(256 << 10);
    if thread.spawn(work).is_err() {
        site.connections.fetch_sub(1, Ordering::AcqRel);
    }
}

/// What a request asks for.
#[derive(Debug, Default, PartialEq, Eq)]
struct Asked {
    method: String,
    path: String,
    host: String,
    origin: Option<String>,
    last: Option<u64>,
}

fn answer(site: &Site, stream: &TcpStream) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_nodelay(true)?;
    let Some(asked) = read(BufReader::new(stream.take(REQUEST)))? else {
        return refuse(stream, "400 Bad Request", "this is not a request");
    };
    let own = |origin: &str| site.hosts.iter().any(|host| origin == format!("http://{host}"));
    // Another site's page may reach loopback under a name of its own.
    let strange = !site.hosts.contains(&asked.host);
    if strange || asked.origin.as_deref().is_some_and(|origin| !own(origin)) {
        return refuse(stream, "403 Forbidden", "not from here");
    }
    let path = asked.path.split('?').next().unwrap_or_default();
    let Some(place) = path.strip_prefix('/').and_then(|path| path.split_once('/')) else {
        return refuse(stream, "404 Not Found", "nothing is here");
    };
    if !same(place.0, &site.token) {
        return refuse(stream, "404 Not Found", "nothing is here");
    }
    match (asked.method.as_str(), place.1) {
        ("GET", "") => page(stream),
        ("GET", "events") => events(site, stream, asked.last.unwrap_or(0)),
        ("GET", _) => refuse(stream, "404 Not Found", "nothing is here"),
        _ => refuse(stream, "405 Method Not Allowed", "only GET"),
    }
}

/// Compares without telling by its time how much is right.
fn same(given: &str, token: &str) -> bool {
    let differ = given.bytes().zip(token.bytes()).fold(0, |differ, (a, b)| differ | (a ^ b));
    given.len() == token.len() && differ == 0
}

fn read(mut input: impl io::BufRead) -> io::Result<Option<Asked>> {
    let mut line = String::new();
    input.read_line(&mut line)?;
    let mut words = line.split_whitespace();
    let (Some(method), Some(path), Some(version)) = (words.next(), words.next(), words.next())
    else {
        return Ok(None);
    };
    if !version.starts_with("HTTP/1.") {
        return Ok(None);
    }
    let mut asked = Asked { method: method.to_owned(), path: path.to_owned(), ..Asked::default() };
    loop {
        let mut line = String::new();
        // Headers that do not end within the limit are no request.
        if input.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        let line = line.trim_end();
        if line.is_empty() {
            return Ok(Some(asked));
        }
        let Some((name, value)) = line.split_once(':') else { return Ok(None) };
        let value = value.trim();
        match name.to_ascii_lowercase().as_str() {
            "host" => asked.host = value.to_ascii_lowercase(),
            "origin" => asked.origin = Some(value.to_ascii_lowercase()),
            "last-event-id" => asked.last = value.parse().ok(),
            _ => {}
        }
    }
}

/// Headers of every answer: nothing is kept, nothing is guessed, nobody may frame it.
const ALWAYS: &str = "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nX-Frame-Options: DENY\r\n\
    Referrer-Policy: no-referrer\r\nCross-Origin-Resource-Policy: same-origin\r\nConnection: close\r\n";

fn refuse(mut stream: &TcpStream, status: &str, words: &str) -> io::Result<()> {
    let length = words.len() + 1;
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {length}\r\n{ALWAYS}\r\n{words}\n"
    )
}

fn page(mut stream: &TcpStream) -> io::Result<()> {
    let nonce = random().map_err(|_| io::Error::other("no randomness"))?;
    let (page, policy) = (document(&nonce, None), policy(&nonce));
    let length = page.len();
    write!(
        stream,
        "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {length}\r\n\
         Content-Security-Policy: {policy}; frame-ancestors 'none'\r\n{ALWAYS}\r\n{page}"
    )
}

/// Every line from a place in the file on, as an event whose id is the place after it.
fn events(site: &Site, mut stream: &TcpStream, from: u64) -> io::Result<()> {
    write!(
        stream,
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n{ALWAYS}\r\nretry: 500\n\n"
    )?;
    let mut at = from;
    let mut line = Vec::new();
    let mut buffer = vec![0; PIECE];
    let mut out = Vec::new();
    let mut told = Instant::now();
    loop {
        let read = read_at(&site.file, &mut buffer, at + line.len() as u64)?;
        out.clear();
        for piece in buffer[..read].split_inclusive(|byte| *byte == b'\n') {
            line.extend_from_slice(piece);
            if line.ends_with(b"\n") {
                at += line.len() as u64;
                out.extend_from_slice(format!("id: {at}\ndata: ").as_bytes());
                out.extend_from_slice(&line);
                out.push(b'\n');
                line.clear();
            }
        }
        if read == 0 {
            if !site.grows {
                out.extend_from_slice(b"event: still\ndata:\n\n");
                stream.write_all(&out)?;
                return Ok(());
            }
            if told.elapsed() > SIGN_OF_LIFE {
                out.extend_from_slice(b": still here\n\n");
            }
        }
        if !out.is_empty() {
            stream.write_all(&out)?;
            told = Instant::now();
        }
        if read == 0 {
            std::thread::sleep(AGAIN);
        }
    }
}

#[cfg(unix)]
fn read_at(file: &File, buffer: &mut [u8], at: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, buffer, at)
}

#[cfg(windows)]
fn read_at(file: &File, buffer: &mut [u8], at: u64) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, buffer, at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_read_within_its_bounds() {
        let asked = read(&b"GET /x/ HTTP/1.1\r\nHost: LOCALHOST:1\r\nLast-Event-ID: 7\r\n\r\n"[..]);
        let asked = asked.unwrap().unwrap();
        assert_eq!(
            (asked.path.as_str(), asked.host.as_str(), asked.last),
            ("/x/", "localhost:1", Some(7))
        );
        for text in [
            "",
            "GET /\r\n\r\n",
            "GET / SPDY/3\r\n\r\n",
            "GET / HTTP/1.1\r\nno colon\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: x\r\n",
        ] {
            assert_eq!(read(text.as_bytes()).unwrap(), None, "{text:?}");
        }
    }

    #[test]
    fn a_token_is_right_only_if_all_of_it_is() {
        assert!(
            same("abc", "abc") && !same("abd", "abc") && !same("ab", "abc") && !same("abcd", "abc")
        );
    }
}
