//! Records a session to a file, beside those who carry its bytes.
//!
//! [`Tap::bytes`] copies bytes into a bounded queue and returns; one thread turns them into a capture.
//! What does not fit, or cannot be written, is counted in a gap record. Nobody who carries bytes ever
//! waits for the file, and neither does the end of the session, beyond a second.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use crate::format::{self, End, Event, Framing, Gap, Header, Sent, Side, Stream, VERSION};
use crate::intake::Intake;
use crate::ours::Masker;
use crate::queue::{Batch, Queue, What};
use crate::stamp;

/// How long the end of a session waits for a disk, or a watch, that takes no more records. What needs longer loses
/// the last of them.
const PATIENCE: Duration = Duration::from_secs(1);

/// How long it waits in all.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// Lines are written in pieces of about this size while a batch is turned into lines.
const PIECE: usize = 256 << 10;

/// What is recorded.
#[derive(Debug, Default)]
pub struct Session {
    /// The server's name, if it has one.
    pub name: Option<String>,
    /// The server's program and arguments, as they may be shown.
    pub command: Vec<String>,
    /// The program that records, such as `taut 0.1.0`.
    pub recorder: String,
    /// The file gets no larger than this, in bytes; what comes after is counted as missing.
    pub limit: Option<u64>,
}

/// Hears of every piece of a capture that was written, in the recorder's thread.
pub trait Watch: Send {
    /// Whole lines, the header among them. Must return soon: the recorder waits for it.
    fn lines(&mut self, lines: &[u8]);
}

/// A recording that goes on until this is finished or dropped.
#[derive(Debug)]
pub struct Recorder {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    queue: Queue,
    began: Instant,
    /// Grows when the recorder begins to hand lines to the disk and to the watch, and when it has: odd while it waits for
    /// them. Turning a large message into a line may take long on a busy machine, and is no reason to lose it.
    writes: AtomicU64,
}

/// Where the bytes of one stream are handed over.
#[derive(Clone, Debug)]
pub struct Tap {
    shared: Arc<Shared>,
    stream: Stream,
}

impl Tap {
    /// Hands over a copy of bytes that are about to be passed on.
    pub fn bytes(&self, bytes: &[u8]) {
        self.shared.queue.bytes(self.shared.now(), self.stream, bytes);
    }

    /// The stream has ended.
    pub fn closed(&self) {
        self.shared.queue.event(self.shared.now(), What::Closed(self.stream));
    }
}

/// Where the messages of several connections are handed over.
#[derive(Clone, Debug)]
pub struct Links {
    shared: Arc<Shared>,
}

impl Links {
    /// Hands over a copy of a whole message of the connection that has this name.
    pub fn message(&self, link: String, from: Side, framing: Framing, body: &[u8]) {
        self.shared.queue.message(self.shared.now(), link, from, framing, body);
    }

    /// Hands over a line that a server wrote to stderr.
    pub fn stderr(&self, line: &str) {
        let line = format!("{line}\n");
        self.shared.queue.bytes(self.shared.now(), Stream::Stderr, line.as_bytes());
    }

    /// A server's process was started.
    pub fn started(&self, pid: u32) {
        self.shared.queue.event(self.shared.now(), What::Started(pid));
    }

    /// A connection to a server has ended by itself.
    pub fn lost(&self) {
        self.shared.queue.event(self.shared.now(), What::Closed(Stream::Server));
    }
}

impl Shared {
    fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX)
    }
}

impl Recorder {
    /// Starts to record. Without a file, only the watch hears of it.
    ///
    /// # Errors
    ///
    /// If there is no thread to be had.
    pub fn start(
        file: Option<File>,
        session: Session,
        masker: Masker,
        watch: Option<Box<dyn Watch>>,
    ) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            queue: Queue::default(),
            began: Instant::now(),
            writes: AtomicU64::new(0),
        });
        let header = Header {
            version: VERSION,
            started: stamp::rfc3339(SystemTime::now()),
            recorder: session.recorder,
            name: session.name,
            command: session.command,
            masked: masker.is_on(),
        };
        let sink = Sink { file, watch, limit: session.limit, ..Sink::default() };
        let own = Arc::clone(&shared);
        std::thread::Builder::new()
            .name("taut-recorder".into())
            .spawn(move || record(&own, &header, Intake::new(masker), sink))?;
        Ok(Self { shared })
    }

    /// Where a stream's bytes are handed over.
    #[must_use]
    pub fn tap(&self, stream: Stream) -> Tap {
        Tap { shared: Arc::clone(&self.shared), stream }
    }

    /// Where the messages of several connections are handed over.
    #[must_use]
    pub fn links(&self) -> Links {
        Links { shared: Arc::clone(&self.shared) }
    }

    /// The process was started.
    pub fn started(&self, pid: u32) {
        self.shared.queue.event(self.shared.now(), What::Started(pid));
    }

    /// The process has ended.
    pub fn ended(&self, end: End) {
        self.shared.queue.event(self.shared.now(), What::Ended(end));
    }

    /// Writes what is left, and waits for that as long as it goes on: a second in which nothing can be written is
    /// too long. Says whether all was written.
    pub fn finish(self) -> bool {
        self.shared.queue.close();
        let until = Instant::now() + LONGEST_WAIT;
        loop {
            let before = self.shared.writes.load(Ordering::Acquire);
            if self.shared.queue.wait_finished(PATIENCE) {
                return true;
            }
            let stuck = before % 2 == 1 && self.shared.writes.load(Ordering::Acquire) == before;
            if stuck || Instant::now() > until {
                return false;
            }
        }
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.shared.queue.close();
    }
}

fn record(shared: &Shared, header: &Header, mut intake: Intake, mut sink: Sink) {
    let mut batch = Batch::default();
    header.write(&mut sink.lines);
    sink.flush(shared);
    while shared.queue.take(&mut batch) {
        let mut bytes = batch.bytes.as_slice();
        let mut last = 0;
        for (at, what) in batch.marks.drain(..) {
            last = at;
            match what {
                What::Bytes(stream, len) => {
                    let (piece, rest) = bytes.split_at(len);
                    bytes = rest;
                    intake.bytes(at, stream, piece, &mut sink.lines);
                }
                What::Message { link, from, framing, len } => {
                    let (body, rest) = bytes.split_at(len);
                    bytes = rest;
                    let link = Some(link.as_str());
                    let sent = Sent { from, framing, bom: false, cr: false, cut: false, link };
                    intake.message(at, sent, body, &mut sink.lines);
                }
                What::Missed(stream, missed) => intake.gap(at, stream, &missed, &mut sink.lines),
                What::Closed(stream) => intake.closed(at, stream, &mut sink.lines),
                What::Started(pid) => intake.started(at, pid, &mut sink.lines),
                What::Ended(end) => intake.ended(at, &end, &mut sink.lines),
            }
            if sink.lines.len() > PIECE {
                sink.flush(shared);
            }
        }
        for stream in Stream::ALL {
            let missed = &batch.dropped[stream as usize];
            if missed.bytes > 0 {
                intake.gap(last, stream, missed, &mut sink.lines);
            }
        }
        sink.flush(shared);
    }
    sink.flush(shared);
    sink.last(shared);
    shared.queue.finish();
}

/// The file, and what could not be written to it.
#[derive(Default)]
struct Sink {
    file: Option<File>,
    watch: Option<Box<dyn Watch>>,
    limit: Option<u64>,
    lines: Vec<u8>,
    /// Bytes of whole lines that are in the file.
    good: u64,
    /// Records that could not be written, and why.
    lost: u64,
    why: String,
    /// The file ends in the middle of a line that cannot be taken back.
    torn: bool,
}

impl Sink {
    fn flush(&mut self, shared: &Shared) {
        if self.lines.is_empty() {
            return;
        }
        shared.writes.fetch_add(1, Ordering::Release);
        if let Some(watch) = &mut self.watch {
            watch.lines(&self.lines);
        }
        if self.file.is_some() {
            self.write(shared);
        }
        shared.writes.fetch_add(1, Ordering::Release);
        self.lines.clear();
        self.lines.shrink_to(2 * PIECE);
    }

    /// Says what is missing at the end, where nothing was written after it.
    fn last(&mut self, shared: &Shared) {
        if self.lost > 0 {
            // A line that says so may stand beyond the limit.
            self.limit = None;
            self.write(shared);
        }
    }

    fn write(&mut self, shared: &Shared) {
        let mut first = Vec::new();
        if self.torn {
            first.push(b'\n');
        }
        if self.lost > 0 {
            let gap = Gap { records: self.lost, why: self.why.clone(), ..Gap::default() };
            format::write_gap(&mut first, shared.now(), &gap);
        }
        let Some(file) = &mut self.file else { return };
        let size = self.good + (first.len() + self.lines.len()) as u64;
        if self.limit.is_some_and(|limit| size > limit) {
            self.lost += records(&self.lines);
            self.why = "the file has reached its limit".to_owned();
            return;
        }
        let all = write_all(file, &first).and_then(|()| write_all(file, &self.lines));
        match all {
            Ok(()) => {
                self.good += (first.len() + self.lines.len()) as u64;
                (self.lost, self.torn) = (0, false);
            }
            Err(error) => {
                self.lost += records(&self.lines);
                self.why = format!("it could not be written: {error}");
                // Half a line would spoil the next one.
                let back = file.set_len(self.good).and_then(|()| {
                    io::Seek::seek(file, io::SeekFrom::Start(self.good)).map(|_| ())
                });
                self.torn = back.is_err();
            }
        }
    }
}

/// How many records these lines stand for: a gap that cannot be written stands for those that it counts.
fn records(lines: &[u8]) -> u64 {
    let counts = |line: &[u8]| match crate::read::record(line).map(|record| record.event) {
        Some(Event::Gap(gap)) => gap.records,
        _ => 1,
    };
    lines.split_inclusive(|byte| *byte == b'\n').map(counts).sum()
}

/// Writes everything. A pipe whose reader is slow is waited for: this is the recorder's own thread.
fn write_all(file: &mut File, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match file.write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => bytes = &bytes[written..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                std::thread::sleep(Duration::from_millis(5));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Makes the file for a capture, readable by its owner only. A file of that name is replaced, so that two
/// recorders never write into one; a folder gets a new file in it, named after the server and the time.
/// Returns the file and where it is.
///
/// # Errors
///
/// If it cannot be made.
pub fn create(path: &Path, name: &str) -> io::Result<(File, PathBuf)> {
    // A name that ends with a slash is a folder that may not be there yet.
    let is_folder = path.is_dir() || path.as_os_str().to_string_lossy().ends_with('/');
    if is_folder {
        std::fs::create_dir_all(path)?;
        return create_in(path, name);
    }
    if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        std::fs::create_dir_all(parent)?;
    }
    match std::fs::symlink_metadata(path) {
        Ok(about) if about.is_file() => std::fs::remove_file(path)?,
        // A pipe or a device is what was asked for.
        Ok(_) => return Ok((open_other(path)?, path.to_owned())),
        Err(_) => {}
    }
    Ok((create_new(path)?, path.to_owned()))
}

fn create_in(folder: &Path, name: &str) -> io::Result<(File, PathBuf)> {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
    let name: String = name.chars().take(64).map(plain).collect();
    let time = stamp::compact(SystemTime::now());
    let id = std::process::id();
    for again in 0..100 {
        let more = if again == 0 { String::new() } else { format!("-{again}") };
        let path = folder.join(format!("{name}-{time}-{id}{more}.jsonl"));
        match create_new(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => return Ok((made?, path)),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

fn create_new(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.read(true).write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

fn open_other(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.write(true);
    // A pipe that nobody reads is an error here, and not a wait without end.
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(
        &mut options,
        rustix::fs::OFlags::NONBLOCK.bits().cast_signed(),
    );
    options.open(path)
}

#[cfg(test)]
#[path = "recorder_tests.rs"]
mod tests;
