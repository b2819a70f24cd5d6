//! `taut trace mock`, `replay` and `diff`: a capture used again. Carries messages and keeps the time; what
//! is said and what differs is decided by `taut_trace`.

use std::ffi::OsString;
use std::io::{Read, Write as _};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use serde_json::json;
use taut::wire::{Decoder, Encoder, Frame, Framing, Limits};
use taut_trace::{Capture, Event, Finding, Ignore, Mock, Next, Replay, Side, compare, said, steps};

use super::carry::{Child, ChildStdin};
use super::view::load_link;
use super::{ends, for_hosts, server_of};
use crate::args;
use crate::help;
use crate::output::{DIM, GREEN, Output, RED};
use crate::own;
use crate::problem::{Exit, Problem};
use crate::session::quoted;

/// How many messages wait between a reader and whoever plays.
const WAITING: usize = 64;

/// How long a server may take to end once its stdin is closed.
const ENDING: Duration = Duration::from_secs(5);

#[derive(clap::Args)]
#[command(after_help = help::TRACE_MOCK)]
pub(crate) struct MockArgs {
    /// The capture.
    file: PathBuf,
    /// Use this connection of a capture that has several, such as "client 1".
    #[arg(long, value_name = "NAME")]
    link: Option<String>,
}

#[derive(clap::Args)]
#[command(after_help = help::TRACE_REPLAY)]
pub(crate) struct ReplayArgs {
    /// The capture.
    file: PathBuf,
    /// A server by name: see `taut servers`.
    name: Option<String>,
    /// Use this connection of a capture that has several, such as "server 2".
    #[arg(long, value_name = "NAME")]
    link: Option<String>,
    /// Leave this place out of the comparison, such as /result/content/*/text; may be given again.
    #[arg(long, value_name = "PATH", value_parser = Ignore::parse)]
    ignore: Vec<Ignore>,
    /// How long to wait for what the server had said.
    #[arg(long, value_name = "TIME", value_parser = args::duration, default_value = "10s")]
    timeout: Duration,
    /// Read servers from this file, of any host, and from no other; may be given again.
    #[arg(long, value_name = "FILE")]
    config: Vec<PathBuf>,
    /// Set a variable of the server's environment; may be given again.
    #[arg(long, value_name = "KEY=VALUE", value_parser = args::variable)]
    env: Vec<(String, String)>,
    /// Print one JSON document.
    #[arg(long)]
    json: bool,
    /// The server's program and its arguments, untouched.
    #[arg(last = true, value_name = "COMMAND")]
    server: Vec<OsString>,
}

#[derive(clap::Args)]
#[command(after_help = help::TRACE_DIFF)]
pub(crate) struct DiffArgs {
    /// One capture.
    first: PathBuf,
    /// The other.
    second: PathBuf,
    /// Use this connection of captures that have several; twice, for the first and for the second.
    #[arg(long, value_name = "NAME")]
    link: Vec<String>,
    /// Leave this place out of the comparison, such as /result/content/*/text; may be given again.
    #[arg(long, value_name = "PATH", value_parser = Ignore::parse)]
    ignore: Vec<Ignore>,
    /// Print one JSON document.
    #[arg(long)]
    json: bool,
}

/// What comes from the other side.
enum Came {
    Message(Vec<u8>, Framing),
    End,
}

/// Decodes what a stream brings, in a thread of its own, until its end.
fn listen(
    mut stream: impl FnMut(&mut [u8]) -> std::io::Result<usize> + Send + 'static,
) -> Receiver<Came> {
    let (send, receive): (SyncSender<Came>, _) = sync_channel(WAITING);
    std::thread::spawn(move || {
        let mut decoder = Decoder::new(Limits::default());
        let mut buffer = vec![0; 64 << 10];
        loop {
            let read = stream(&mut buffer).unwrap_or(0);
            if read == 0 {
                decoder.finish();
            } else {
                decoder.push(&buffer[..read]);
            }
            while let Some(frame) = decoder.poll_frame() {
                let Frame::Message { bytes, framing, .. } = frame else { continue };
                let sound = serde_json::from_slice::<serde::de::IgnoredAny>(bytes).is_ok();
                if send.send(Came::Message(bytes.to_vec(), framing)).is_err() {
                    return;
                }
                if !sound {
                    // A wrong length must not garble what follows.
                    decoder.distrust();
                }
            }
            if read == 0 {
                let _ = send.send(Came::End);
                return;
            }
        }
    });
    receive
}

fn framed(text: &str, framing: Framing) -> Vec<u8> {
    let mut encoder = Encoder::default();
    match framing {
        // Verbatim: the encoder would mend what was recorded broken.
        Framing::Lines => format!("{text}\n").into_bytes(),
        _ => {
            encoder.frame(framing, |body| body.extend_from_slice(text.as_bytes()));
            encoder.bytes().to_vec()
        }
    }
}

pub(super) fn mock(output: &Output, args: &MockArgs) -> Result<Exit, Problem> {
    let capture = load_link(&args.file, args.link.as_deref())?;
    let file = quoted([args.file.to_string_lossy()]);
    let next = format!("{taut} smoke -- {taut} trace mock {file}", taut = own::name());
    for_hosts(output, "it answers what a host says, as the capture has it", &next);
    let mut mock = Mock::new(&capture);
    let came = listen(ends::read);
    let began = Instant::now();
    let mut framing = Framing::Lines;
    let mut ended = false;
    loop {
        while let Some(text) = mock.poll(began.elapsed()) {
            if ends::write(ends::Out::Stdout, &framed(&text, framing)).is_err() {
                return Ok(Exit::Worked);
            }
        }
        if ended {
            break;
        }
        let wait = mock.deadline().map(|at| at.saturating_sub(began.elapsed()));
        // A little longer, so that the moment is over when it is looked at again.
        let wait = wait.map_or(Duration::from_secs(3600), |wait| wait + Duration::from_millis(1));
        match came.recv_timeout(wait) {
            Ok(Came::Message(bytes, how)) => {
                framing = how;
                mock.handle(began.elapsed(), &bytes);
            }
            Err(RecvTimeoutError::Timeout) => {}
            Ok(Came::End) | Err(RecvTimeoutError::Disconnected) => {
                mock.closed();
                ended = true;
            }
        }
    }
    if mock.unknown() > 0 {
        output.note(&format!("{} requests are not in the capture", mock.unknown()));
    }
    Ok(Exit::Worked)
}

/// The server that is tried, and what it says.
struct Tried {
    child: Child,
    stdin: Option<ChildStdin>,
    came: Receiver<Came>,
}

impl Tried {
    fn send(&mut self, bytes: &[u8]) {
        // A server that reads no more says why by what it does not say.
        if let Some(stdin) = &mut self.stdin
            && stdin.write_all(bytes).and_then(|()| stdin.flush()).is_err()
        {
            self.stdin = None;
        }
    }
}

pub(super) fn replay(output: &Output, args: &ReplayArgs) -> Result<Exit, Problem> {
    let capture = load_link(&args.file, args.link.as_deref())?;
    let launch = server_of(output, args.name.as_deref(), &args.server, &args.config, &args.env)?.0;
    let mut child = launch.start_alone().map_err(|error| launch.not_started(error))?;
    let stdin = child.stdin.take();
    let Some(mut stdout) = child.stdout.take() else {
        return Err(Problem::usage("the system gave no pipes for the server"));
    };
    warn_of_masks(output, &capture);
    let mut tried = Tried { child, stdin, came: listen(move |buffer| stdout.read(buffer)) };
    let mut replay = Replay::new(&capture);
    play(&mut tried, &mut replay, args.timeout);
    end(&mut tried, &mut replay);
    let findings = replay.findings(&args.ignore);
    let told = format!("{} messages sent, {} received", replay.sends(), replay.heard());
    report(output, &findings, args.json, &told)
}

fn warn_of_masks(output: &Output, capture: &Capture) {
    let masked = |record: &&taut_trace::Record| matches!(&record.event, Event::Message(message) if message.from == Side::Client && !message.masked.is_empty());
    let count = capture.records.iter().filter(masked).count();
    if count > 0 {
        output.note(&output.err.paint(
            DIM,
            format!("{count} of the client's messages have *** for a secret, and are sent so"),
        ));
    }
}

fn play(tried: &mut Tried, replay: &mut Replay, timeout: Duration) {
    loop {
        match replay.poll() {
            Next::Send(text, framing) => {
                let framing = match framing {
                    taut_trace::Framing::Headers => Framing::Headers,
                    taut_trace::Framing::Lines => Framing::Lines,
                };
                tried.send(&framed(&text, framing));
            }
            Next::Close => tried.stdin = None,
            Next::Wait(_) => match tried.came.recv_timeout(timeout) {
                Ok(Came::Message(bytes, _)) => replay.handle(&bytes),
                _ => replay.give_up(),
            },
            Next::Done => return,
        }
    }
}

/// Closes, and takes what still comes until the end.
fn end(tried: &mut Tried, replay: &mut Replay) {
    tried.stdin = None;
    let until = Instant::now() + ENDING;
    while let Ok(Came::Message(bytes, _)) =
        tried.came.recv_timeout(until.saturating_duration_since(Instant::now()))
    {
        replay.handle(&bytes);
    }
    while Instant::now() < until {
        if matches!(tried.child.try_wait(), Ok(Some(_))) {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let _ = tried.child.kill();
    let _ = tried.child.wait();
}

pub(super) fn diff(output: &Output, args: &DiffArgs) -> Result<Exit, Problem> {
    let link = |at: usize| args.link.get(at).or_else(|| args.link.last()).map(String::as_str);
    let first = load_link(&args.first, link(0))?;
    let second = load_link(&args.second, link(1))?;
    let [first, second] = [first, second].map(|capture| steps(&capture));
    let [first, second] = [&first, &second].map(|steps| said(steps, None));
    let findings = compare(&first, &second, &args.ignore);
    report(output, &findings, args.json, &format!("{} and {} messages", first.len(), second.len()))
}

fn report(output: &Output, findings: &[Finding], json: bool, told: &str) -> Result<Exit, Problem> {
    let exit = if findings.is_empty() { Exit::Worked } else { Exit::ToolFailed };
    if json {
        let one = |finding: &Finding| json!({ "kind": finding.kind(), "what": finding.key().to_string(), "words": finding.to_string() });
        let all: Vec<_> = findings.iter().map(one).collect();
        output.document(&json!({ "differences": all, "exit": exit as u8 }))?;
        return Ok(exit);
    }
    for finding in findings {
        output.print(&format!("{}\n", output.out.text(&finding.to_string())))?;
    }
    let verdict = match findings.len() {
        0 => output.out.paint(GREEN, format!("✓ no difference: {told}")),
        1 => output.out.paint(RED, format!("✗ 1 difference: {told}")),
        count => output.out.paint(RED, format!("✗ {count} differences: {told}")),
    };
    output.print(&format!("{verdict}\n"))?;
    Ok(exit)
}
