//! One process: its bytes in and out, with times, and an end that always comes.
//!
//! Knows threads, pipes and signals; must not know what a message means. Reading and writing happen in
//! threads of their own, so that a peer that does not read, or does not stop writing, blocks nothing.

use std::io::{self, Read as _, Write as _};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::program::{Child, Program};
use crate::wire::{Frame, Splitter};

/// How much memory the output of one peer may take. A peer that writes more is ended.
const MAX_OUTPUT: usize = 48 << 20;

/// How much memory the output of all peers of one run may take: every check looks at all of them at the end.
const MAX_RUN: usize = 192 << 20;

/// How much a peer may take when the run has used up its memory: enough for every honest answer but the longest.
const MAX_LATE: usize = 1 << 20;

/// From how much memory on long messages are let go once they are judged, and what is a long message, in bytes. A list
/// of tools of half a megabyte is asked for a hundred times in a run.
const MAX_JUDGED: usize = 4 << 20;
const LONG: usize = 32 << 10;

/// What a part of a JSON value takes in memory, roughly: a number in a list is the smallest, a member the largest.
const PART: usize = 48;

/// How many messages of a peer are kept. One that writes more is ended, too: every check reads them all.
const MAX_ENTRIES: usize = 20_000;

/// How much of stderr is kept, in bytes: its end.
const MAX_STDERR: usize = 16 << 10;

/// Chunks that the reader may be ahead of us.
const AHEAD: usize = 64;

/// Something that happened on the wire.
#[derive(Clone, Debug)]
pub enum What {
    /// We wrote these bytes.
    Sent(Vec<u8>),
    /// The peer wrote this.
    Got(Frame),
    /// We closed its stdin.
    Closed,
    /// Its stdout ended.
    Eof,
}

/// What happened, and when.
#[derive(Clone, Debug)]
pub struct Entry {
    /// How long after the start.
    pub at: Duration,
    /// What.
    pub what: What,
}

impl Entry {
    /// The JSON that was received, if any.
    pub(crate) fn value(&self) -> Option<&serde_json::Value> {
        match &self.what {
            What::Got(frame) => frame.value.as_ref(),
            _ => None,
        }
    }
}

enum Event {
    Bytes(Vec<u8>),
    Eof,
}

/// What is answered to a request of the peer; nothing if it is left alone.
pub(crate) type Responder = Box<dyn FnMut(&serde_json::Value) -> Vec<Vec<u8>> + Send>;

/// A process that runs.
pub(crate) struct Process {
    pub(crate) responder: Option<Responder>,
    child: Child,
    input: Option<Sender<Vec<u8>>>,
    output: Receiver<Event>,
    splitter: Splitter,
    /// What is not yet a whole message, where messages have headers.
    part: Option<Vec<u8>>,
    began: Instant,
    /// Memory that its output takes, and that of all processes of the program.
    taken: usize,
    kept: Arc<AtomicUsize>,
    stderr: Arc<Mutex<Vec<u8>>>,
    pub(crate) log: Vec<Entry>,
    pub(crate) ended: bool,
    /// Why we ended it, if it wrote too much.
    pub(crate) stopped: Option<Stopped>,
    /// Whether we have killed it, so that its last line may be torn.
    killed: bool,
}

/// Why a peer was ended that wrote too much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stopped {
    /// It wrote more than any honest peer.
    Flood,
    /// The memory of the run was used up: no fault of this process.
    Memory,
}

impl Process {
    pub(crate) fn start(program: &Program) -> io::Result<Self> {
        if program.stopper.is_stopped() {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let mut child = program.spawn()?;
        let began = Instant::now();
        let stderr = Arc::new(Mutex::new(Vec::new()));
        let (input, output) = threads(&mut child, &stderr);
        let splitter = Splitter::new(program.headers);
        let log = Vec::new();
        Ok(Self {
            responder: None,
            child,
            input,
            output,
            splitter,
            part: program.headers.then(Vec::new),
            began,
            taken: 0,
            kept: Arc::clone(&program.kept),
            stderr,
            log,
            ended: false,
            stopped: None,
            killed: false,
        })
    }

    fn note(&mut self, what: What) {
        let at = self.began.elapsed();
        self.log.push(Entry { at, what });
    }

    /// Writes bytes. They may never be read; that is the peer's affair.
    pub(crate) fn send(&mut self, bytes: Vec<u8>) {
        let framed = self.framed(&bytes);
        if let Some(input) = &self.input {
            let _ = input.send(framed.unwrap_or_else(|| bytes.clone()));
        }
        self.note(What::Sent(bytes));
    }

    /// The lines in these bytes with a header each; nothing if messages are lines.
    fn framed(&mut self, bytes: &[u8]) -> Option<Vec<u8>> {
        let part = self.part.as_mut()?;
        let mut out = Vec::new();
        for byte in bytes {
            match byte {
                b'\n' if part.is_empty() => {}
                b'\n' => out.extend(headed(&std::mem::take(part))),
                byte => part.push(*byte),
            }
        }
        Some(out)
    }

    /// Whether its stdin was closed.
    pub(crate) fn is_closed(&self) -> bool {
        self.input.is_none()
    }

    /// Closes the peer's stdin, after what was written.
    pub(crate) fn close_input(&mut self) {
        if let Some(input) = self.input.take() {
            if let Some(part) = self.part.take().filter(|part| !part.is_empty()) {
                let _ = input.send(headed(&part));
            }
            self.note(What::Closed);
        }
    }

    /// Takes in what the peer writes until an entry of the log is found, from `mark` on, or a time is
    /// over, or the stream ended. Says whether it was found. Each entry is looked at once, so that a peer
    /// that writes without end costs no more than its bytes.
    pub(crate) fn wait(
        &mut self,
        limit: Duration,
        mark: usize,
        mut found: impl FnMut(&Entry) -> bool,
    ) -> bool {
        let until = Instant::now() + limit;
        let mut next = mark;
        loop {
            while let Some(entry) = self.log.get(next) {
                next += 1;
                if found(entry) {
                    return true;
                }
            }
            if self.ended {
                return false;
            }
            let left = until.saturating_duration_since(Instant::now());
            match self.output.recv_timeout(left) {
                Ok(Event::Bytes(bytes)) => self.take(&bytes),
                Ok(Event::Eof) | Err(RecvTimeoutError::Disconnected) => self.end(),
                Err(RecvTimeoutError::Timeout) => return false,
            }
            // One that never stops must not keep us here.
            if left.is_zero() {
                let rest = self.log.iter().skip(next);
                return rest.into_iter().any(found);
            }
        }
    }

    /// Takes in what comes for a while.
    pub(crate) fn listen(&mut self, time: Duration) {
        self.wait(time, usize::MAX, |_| false);
    }

    fn take(&mut self, bytes: &[u8]) {
        let weight = weight(bytes);
        self.taken += weight;
        let all = self.kept.fetch_add(weight, Ordering::Relaxed) + weight;
        for frame in self.splitter.push(bytes) {
            let lines = match (&frame.value, &mut self.responder) {
                (Some(value), Some(responder)) => responder(value),
                _ => Vec::new(),
            };
            self.note(What::Got(frame));
            lines.into_iter().for_each(|line| self.send(line));
        }
        let stopped = if self.taken > MAX_OUTPUT || self.log.len() > MAX_ENTRIES {
            Some(Stopped::Flood)
        } else {
            (all > MAX_RUN && self.taken > MAX_LATE).then_some(Stopped::Memory)
        };
        if stopped.is_some() {
            self.stopped = stopped;
            self.kill();
            self.end();
        }
    }

    /// Lets long messages go, which were judged already, if they take much memory.
    pub(crate) fn lighten(&mut self) {
        if self.taken <= MAX_JUDGED {
            return;
        }
        let mut freed = 0;
        self.log.retain(|entry| match &entry.what {
            What::Got(frame) if frame.raw.len() > LONG && frame.fault.is_none() => {
                freed += weight(&frame.raw);
                false
            }
            _ => true,
        });
        let freed = freed.min(self.taken);
        self.taken -= freed;
        self.kept.fetch_sub(freed, Ordering::Relaxed);
    }

    fn end(&mut self) {
        // What is left of a line that we have torn is no fault of the peer.
        let killed = self.killed;
        for frame in self.splitter.finish().into_iter().filter(|_| !killed) {
            self.note(What::Got(frame));
        }
        if !self.ended {
            self.ended = true;
            self.note(What::Eof);
        }
    }

    /// Waits until the process is gone. Says how long that took, or nothing if it stayed.
    pub(crate) fn gone_within(&mut self, limit: Duration) -> Option<Duration> {
        let began = Instant::now();
        loop {
            if matches!(self.child.try_wait(), Ok(Some(_))) {
                let took = began.elapsed();
                self.listen(Duration::from_millis(200));
                return Some(took);
            }
            if began.elapsed() >= limit {
                return None;
            }
            self.listen(Duration::from_millis(5));
            if self.ended {
                std::thread::sleep(Duration::from_millis(2));
            }
        }
    }

    /// Ends it and all that it started.
    pub(crate) fn kill(&mut self) {
        self.killed = true;
        #[cfg(unix)]
        if let Some(group) =
            i32::try_from(self.child.id()).ok().and_then(rustix::process::Pid::from_raw)
        {
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// The end of what it wrote to stderr.
    pub(crate) fn stderr(&self) -> String {
        let bytes = self.stderr.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.input = None;
        self.kill();
    }
}

/// The memory that these bytes take once they are read: themselves, and the parts of the JSON in them.
fn weight(bytes: &[u8]) -> usize {
    let parts = bytes.iter().filter(|byte| matches!(byte, b',' | b'[' | b'{' | b':')).count();
    2 * bytes.len() + PART * parts
}

fn headed(body: &[u8]) -> Vec<u8> {
    [format!("Content-Length: {}\r\n\r\n", body.len()).as_bytes(), body].concat()
}

fn threads(
    child: &mut Child,
    tail: &Arc<Mutex<Vec<u8>>>,
) -> (Option<Sender<Vec<u8>>>, Receiver<Event>) {
    let (written, to_write) = channel::<Vec<u8>>();
    if let Some(mut stdin) = child.stdin.take() {
        std::thread::spawn(move || {
            for bytes in to_write {
                if stdin.write_all(&bytes).and_then(|()| stdin.flush()).is_err() {
                    break;
                }
            }
        });
    }
    let (read, received) = sync_channel(AHEAD);
    if let Some(stdout) = child.stdout.take() {
        std::thread::spawn(move || pump(stdout, &read));
    }
    if let Some(mut stderr) = child.stderr.take() {
        let tail = tail.clone();
        std::thread::spawn(move || {
            let mut chunk = [0; 4096];
            while let Ok(count @ 1..) = stderr.read(&mut chunk) {
                let mut kept = tail.lock().unwrap_or_else(PoisonError::into_inner);
                kept.extend_from_slice(&chunk[..count]);
                let over = kept.len().saturating_sub(MAX_STDERR);
                kept.drain(..over);
            }
        });
    }
    (Some(written), received)
}

fn pump(mut stdout: impl io::Read, read: &SyncSender<Event>) {
    let mut chunk = vec![0; 64 << 10];
    while let Ok(count @ 1..) = stdout.read(&mut chunk) {
        if read.send(Event::Bytes(chunk[..count].to_vec())).is_err() {
            return;
        }
    }
    let _ = read.send(Event::Eof);
}

#[cfg(all(test, windows))]
mod tests {
    use super::*;

    /// W7: the program in the `.cmd` file holds stdout. Its end comes only when that program is gone, too.
    #[test]
    fn a_kill_ends_what_the_server_started() {
        let file = std::env::temp_dir().join(format!("taut-check-{}.cmd", std::process::id()));
        std::fs::write(&file, "@cmd /c \"echo ready&& set /p x=\"\r\n").unwrap();
        let mut process = Process::start(&Program::new([file.as_os_str()])).unwrap();
        let limit = Duration::from_secs(30);
        let said = |entry: &Entry| matches!(&entry.what, What::Got(_));
        assert!(process.wait(limit, 0, said), "{:?}", process.log);
        process.kill();
        let ended = |entry: &Entry| matches!(entry.what, What::Eof);
        assert!(process.wait(limit, 0, ended), "{:?}", process.log);
        std::fs::remove_file(&file).unwrap();
    }
}
