//! A stand-in for the Responses API on loopback: answers as told, remembers what it was asked.
//!
//! Knows just enough HTTP/1.1 to be rude in the ways that real services are.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;

/// How long a test waits for something that must happen.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// What the service does with one request.
#[derive(Clone)]
pub(crate) enum Does {
    /// Answers with a status, more headers (each with its line end) and a body.
    Says(u16, &'static str, String),
    /// Promises more than it sends, and hangs up.
    CutsOff(String),
    /// Sends bytes for as long as they are taken.
    NeverEnds,
    /// Says nothing until the other side hangs up.
    Waits,
}

/// One request, as it came.
pub(crate) struct Asked {
    pub(crate) head: String,
    pub(crate) body: Value,
    pub(crate) at: Instant,
}

pub(crate) struct Service {
    pub(crate) url: String,
    asked: Receiver<Asked>,
    hung_up: Receiver<()>,
}

impl Service {
    /// Does these things, one for each request; the last one for all that follow.
    pub(crate) fn that(script: impl IntoIterator<Item = Does>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let script = Arc::new(Mutex::new(script.into_iter().collect::<VecDeque<_>>()));
        let ((tell, asked), (close, hung_up)) = (channel(), channel());
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (script, tell, close) = (script.clone(), tell.clone(), close.clone());
                std::thread::spawn(move || serve(stream, &script, &tell, &close));
            }
        });
        Self { url, asked, hung_up }
    }

    /// Answers every request with this response.
    pub(crate) fn answering(response: &Value) -> Self {
        Self::that([Does::Says(200, "", response.to_string())])
    }

    pub(crate) fn next(&self) -> Asked {
        self.asked.recv_timeout(PATIENCE).expect("the service was not asked")
    }

    pub(crate) fn was_asked_no_more(&self) -> bool {
        self.asked.try_recv().is_err()
    }

    pub(crate) fn wait_for_hang_up(&self) {
        self.hung_up.recv_timeout(PATIENCE).expect("the connection stayed open");
    }
}

fn serve(
    stream: TcpStream,
    script: &Mutex<VecDeque<Does>>,
    tell: &Sender<Asked>,
    close: &Sender<()>,
) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let Some((head, body)) = read_request(&mut reader) else { return };
    let does = {
        let mut script = script.lock().unwrap();
        if script.len() > 1 { script.pop_front() } else { script.front().cloned() }
    };
    let _ = tell.send(Asked { head, body, at: Instant::now() });
    let mut stream = stream;
    match does.unwrap() {
        Does::Says(status, headers, body) => {
            let length = body.len();
            let _ = write!(
                stream,
                "HTTP/1.1 {status} Said\r\nConnection: close\r\nContent-Length: {length}\r\n\
                 {headers}\r\n{body}"
            );
        }
        Does::CutsOff(body) => {
            let length = body.len() + 100;
            let _ = write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{body}");
        }
        Does::NeverEnds => {
            let _ = write!(stream, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
            let chunk = format!("10000\r\n{}\r\n", " ".repeat(0x10000));
            while stream.write_all(chunk.as_bytes()).is_ok() {}
            let _ = close.send(());
        }
        Does::Waits => {
            let _ = reader.read(&mut [0]);
            let _ = close.send(());
        }
    }
}

fn read_request(reader: &mut impl BufRead) -> Option<(String, Value)> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let length = head.to_lowercase();
    let length =
        length.split_once("content-length:")?.1.split_once("\r\n")?.0.trim().parse().ok()?;
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some((head, serde_json::from_slice(&body).ok()?))
}
