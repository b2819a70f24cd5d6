//! A server and a client that keep every rule but one: `--role ID` names the check that must find it.
//!
//! Only the tests start it. Without a role it is a plain, correct server of all five revisions, so
//! each role is one small difference. Must not use `taut` or `taut-check`: a fault there would hide.

mod ask;
mod batch;
mod client;
mod ends;
mod offer;
mod rounds;
mod server;
mod tasks;

use std::io::{self, Read as _, Write as _};
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;

/// How long a role that does not end stays: longer than any check waits, and not for ever.
const STAY: Duration = Duration::from_secs(60);

/// Where messages go, and which role is played.
#[derive(Clone)]
struct Out {
    role: Arc<str>,
    stdout: Arc<Mutex<io::Stdout>>,
}

impl Out {
    fn is(&self, role: &str) -> bool {
        *self.role == *role
    }

    fn bytes(&self, bytes: &[u8]) {
        let mut stdout = self.stdout.lock().unwrap_or_else(PoisonError::into_inner);
        // A client that is gone has ended us, or will.
        let _ = stdout.write_all(bytes).and_then(|()| stdout.flush());
    }

    fn send(&self, message: &Value) {
        let text = match self.is("frame-line") && message["result"].get("prompts").is_some() {
            true => format!("{message:#}"),
            false => message.to_string(),
        };
        let text = match self.is("two-in-a-line") && message["result"].get("prompts").is_some() {
            true => format!("{text}{text}"),
            false => text,
        };
        let text = match self.is("rpc-array") && message["result"].get("prompts").is_some() {
            true => format!("[{text}]"),
            false => text,
        };
        let text = match self.is("raw-newline") {
            true => text.replace("line\\nbreak", "line\nbreak"),
            false => text,
        };
        let mut bytes = text.into_bytes();
        if self.is("long-cut") {
            bytes.truncate(64 << 10);
        }
        if self.is("frame-utf8") {
            let found = bytes.windows(7).position(|part| part == b"Say it ");
            found.into_iter().for_each(|at| bytes[at] = 0xFF);
        }
        if !(self.is("error-unended") && message["error"]["message"] == "no such prompt") {
            bytes.push(b'\n');
        }
        self.bytes(&bytes);
        let twice = self.is("frame-once") && message["result"].get("prompts").is_some()
            || self.is("rpc-once") && message["result"].get("tools").is_some();
        if twice {
            self.bytes(&bytes);
        }
    }
}

fn main() -> ExitCode {
    let mut words: Vec<String> = std::env::args().skip(1).collect();
    let mut take = |name: &str| {
        let at = words.iter().position(|word| word == name)?;
        words.remove(at);
        (at < words.len()).then(|| words.remove(at))
    };
    let role: Arc<str> = take("--role").unwrap_or_default().into();
    let modern_only = take("--era").as_deref() == Some("modern");
    if let Some(at) = words.iter().position(|word| word == "--") {
        return client::run(&role, &words[at + 1..]);
    }
    let out = Out { role, stdout: Arc::new(Mutex::new(io::stdout())) };
    serve(&out, modern_only);
    ExitCode::SUCCESS
}

fn serve(out: &Out, modern_only: bool) {
    if out.is("frame-clean") {
        out.bytes(b"my server 1.0 is starting\n");
    }
    let mut server = server::Server::new(out.clone(), modern_only);
    let (mut buffer, mut chunk) = (Vec::new(), vec![0; 64 << 10]);
    let (mut any, mut stdin) = (false, io::stdin().lock());
    loop {
        let count = match stdin.read(&mut chunk) {
            Ok(0) | Err(_) => break,
            Ok(count) => count,
        };
        any = true;
        buffer.extend_from_slice(&chunk[..count]);
        let mut lines: Vec<Vec<u8>> = Vec::new();
        while let Some(end) = buffer.iter().position(|byte| *byte == b'\n') {
            let mut line: Vec<u8> = buffer.drain(..=end).collect();
            line.pop();
            lines.push(line);
        }
        if out.is("frame-split") {
            buffer.clear();
        }
        if out.is("frame-match") && lines.len() > 30 {
            lines.pop();
        }
        if out.is("repeats") {
            lines.iter().for_each(|line| out.bytes(&[line, &b"\n"[..]].concat()));
            continue;
        }
        lines.iter().for_each(|line| server.line(line));
    }
    if !buffer.is_empty() && !out.is("frame-exit-midline") {
        server.line(&buffer);
    }
    server.release();
    let stays = out.is("frame-exit")
        || out.is("frame-exit-early") && !any
        || out.is("frame-exit-midline") && !buffer.is_empty()
        || (out.is("frame-exit-busy") || out.is("stays-called"))
            && ends::BUSY.load(Ordering::Relaxed) > 0
        || out.is("listen-exit") && server.listens() > 0
        || out.is("stays-two-listens") && server.listens() > 1
        || out.is("frame-exit-asking") && server.waits()
        || out.is("frame-exit-used") && server.has_refused()
        || server.stays_after();
    if out.is("no-last-newline") {
        out.bytes(br#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"bye"}}"#);
    }
    if out.is("listen-end") {
        server.end_streams();
    }
    if stays {
        std::thread::sleep(STAY);
    }
}
