//! Where the browser comes back to: a listener on this machine that takes one address and is gone.
//!
//! Knows just enough HTTP to read one request line and to answer with a page.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};

use super::metadata::refuse;
use crate::client::HttpError;

/// The longest request line with its headers. A code and a state have a few hundred characters; the cookies
/// of other programs on this machine may come along.
const MAX_HEAD: usize = 64 << 10;

/// How long a browser may take for its request.
const PATIENCE: Duration = Duration::from_secs(10);

/// How many connections are read at once: browsers open a handful. The oldest makes way for another.
const MAX_OPEN: usize = 64;

const PATH: &str = "/callback";

/// A listener for the address that a browser is sent back to.
#[derive(Debug)]
pub struct Listener {
    listener: TcpListener,
    port: u16,
}

impl Listener {
    /// Listens on this machine, on `port` if it is free, and otherwise on any.
    pub(super) async fn bind(port: Option<u16>) -> Result<Self, HttpError> {
        let failed = |error: std::io::Error| refuse(format!("nothing can be listened on: {error}"));
        let wanted = TcpListener::bind(("127.0.0.1", port.unwrap_or(0))).await;
        let listener = match wanted {
            Ok(listener) => listener,
            Err(_) => TcpListener::bind(("127.0.0.1", 0)).await.map_err(failed)?,
        };
        let port = listener.local_addr().map_err(failed)?.port();
        Ok(Self { listener, port })
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// The address that a browser is to be sent to.
    #[must_use]
    pub fn address(&self) -> String {
        format!("http://127.0.0.1:{}{PATH}", self.port)
    }

    /// Waits for a browser, and returns the address that it came to. Requests that `is_ours` does not want
    /// are answered and forgotten: any page and any program can make some. Connections are read side by side:
    /// browsers open some in advance, and send nothing on them.
    pub(super) async fn wait(&self, is_ours: impl Fn(&str) -> bool) -> Result<String, HttpError> {
        let mut failures = 0;
        let mut asked: JoinSet<Option<(TcpStream, String)>> = JoinSet::new();
        let mut open = VecDeque::new();
        loop {
            let accepted = tokio::select! {
                accepted = self.listener.accept() => accepted,
                Some(read) = asked.join_next() => {
                    let Ok(Some((stream, target))) = read else { continue };
                    let address = self.ours(&target, &is_ours);
                    answer(stream, address.is_some()).await;
                    match address {
                        Some(address) => return Ok(address),
                        None => continue,
                    }
                }
            };
            match accepted {
                Ok((stream, _)) => open.push_back(asked.spawn(read(stream))),
                Err(error) => {
                    failures += 1;
                    if failures > 100 {
                        return Err(refuse(format!("nothing can be listened on: {error}")));
                    }
                }
            }
            open.retain(|task: &AbortHandle| !task.is_finished());
            if open.len() > MAX_OPEN
                && let Some(oldest) = open.pop_front()
            {
                oldest.abort();
            }
        }
    }

    /// The whole address of a request, if it is the one that is waited for.
    fn ours(&self, target: &str, is_ours: impl Fn(&str) -> bool) -> Option<String> {
        let is_callback = target.split('?').next() == Some(PATH);
        let address = format!("http://127.0.0.1:{}{target}", self.port);
        (is_callback && is_ours(&address)).then_some(address)
    }
}

/// Reads the head of a request; returns what it asks for, and is none for what is no request.
async fn read(stream: TcpStream) -> Option<(TcpStream, String)> {
    tokio::time::timeout(PATIENCE, read_head(stream)).await.ok()?
}

async fn read_head(mut stream: TcpStream) -> Option<(TcpStream, String)> {
    let mut head = Vec::new();
    while !head.windows(4).any(|four| four == b"\r\n\r\n") {
        if head.len() > MAX_HEAD || stream.read_buf(&mut head).await.ok()? == 0 {
            return None;
        }
    }
    let line = String::from_utf8_lossy(head.split(|byte| *byte == b'\r').next()?).into_owned();
    let target = line.strip_prefix("GET ").and_then(|line| line.split(' ').next());
    Some((stream, target.unwrap_or_default().to_owned()))
}

async fn answer(mut stream: TcpStream, is_ours: bool) {
    let (status, words) = match is_ours {
        true => ("200 OK", "You can close this window and go back to your program."),
        false => ("404 Not Found", "This page belongs to no login that is under way."),
    };
    let page = format!("<!doctype html><meta charset=utf-8><title>taut</title><p>{words}</p>");
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\n\
         Cache-Control: no-store\r\nReferrer-Policy: no-referrer\r\nConnection: close\r\n\r\n{page}",
        page.len()
    );
    // Whether the browser shows it or not, the address is known. It fits into the buffer of any connection.
    let _ = stream.write_all(answer.as_bytes()).await;
    let _ = stream.shutdown().await;
}
