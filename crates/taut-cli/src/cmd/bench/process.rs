//! A server's process: started on its core with pipes or sockets, its stderr drained, ended with all
//! that it started.
//!
//! Must not know what is said to it.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use super::options::Over;
use super::watch::Watch;

/// How much of its stderr is kept: enough to see why it ended.
const TAIL: usize = 4 << 10;

/// How long it may take to end once its stdin is closed.
const GRACE: Duration = Duration::from_secs(2);

/// How long the end of its stderr is waited for: what it started may hold its stderr for as long as it likes.
const WORDS: Duration = Duration::from_millis(500);

/// How servers are started.
#[derive(Clone, Debug)]
pub(super) struct Start {
    pub(super) over: Over,
    pub(super) env: Vec<(String, String)>,
    pub(super) inherit_env: bool,
    pub(super) cwd: Option<PathBuf>,
    pub(super) patience: Duration,
    pub(super) stop: Arc<AtomicBool>,
}

/// A server that runs.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    pid: Pid,
    pub(super) watch: Arc<Watch>,
    stderr: Arc<Mutex<VecDeque<u8>>>,
    /// Reads it; over when nobody can write there any more.
    draining: JoinHandle<()>,
}

impl Process {
    /// Starts it, and gives our ends of its stdin and stdout.
    pub(super) fn start(words: &[OsString], how: &Start) -> io::Result<(Self, OwnedFd, OwnedFd)> {
        let (program, args) = words.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let ((to, theirs_in), (theirs_out, from)) = match how.over {
            Over::Pipes => {
                let ((reader, to), (from, writer)) = (io::pipe()?, io::pipe()?);
                ((OwnedFd::from(to), OwnedFd::from(reader)), (writer.into(), from.into()))
            }
            // One pair for each, as libuv has it.
            Over::Sockets => {
                let ((to, reader), (writer, from)) = (UnixStream::pair()?, UnixStream::pair()?);
                ((to.into(), reader.into()), (OwnedFd::from(writer), OwnedFd::from(from)))
            }
        };
        let wake = theirs_out.try_clone()?;
        let (errors, theirs_err) = io::pipe()?;
        let mut command = Command::new(program);
        command.args(args).process_group(0);
        command.stdin(theirs_in).stdout(theirs_out).stderr(Stdio::from(theirs_err));
        if !how.inherit_env {
            command.env_clear();
            command.envs(taut::Command::new("").network_env(true).effective_env());
        }
        command.envs(how.env.iter().map(|(name, value)| (name, value)));
        if let Some(dir) = &how.cwd {
            command.current_dir(dir);
        }
        let child = command.spawn()?;
        // It holds the server's ends of everything, and with them open nothing would ever end.
        drop(command);
        let mut started = Started(Some(child));
        let pid = started.pid().ok_or(io::ErrorKind::NotFound)?;
        let watch = Watch::start(pid, wake, how.patience, how.stop.clone())?;
        let stderr = Arc::new(Mutex::new(VecDeque::new()));
        let draining = drain(errors, stderr.clone())?;
        let child = started.0.take().ok_or(io::ErrorKind::NotFound)?;
        Ok((Self { child, pid, watch, stderr, draining }, to, from))
    }

    /// The number of the process, and of the group of all that it starts.
    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    /// How it ended, once it has.
    pub(super) fn ended(&mut self) -> String {
        let began = Instant::now();
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => return exit(status),
                // It is known to be dying.
                Ok(None) if began.elapsed() < GRACE => std::thread::sleep(Duration::from_millis(2)),
                _ => return "it closed its stdout and lives on".to_owned(),
            }
        }
    }

    /// The last line that it wrote to stderr, which may still be on its way when its death is known.
    pub(super) fn last_words(&self) -> String {
        let began = Instant::now();
        while !self.draining.is_finished() && began.elapsed() < WORDS {
            std::thread::sleep(Duration::from_millis(1));
        }
        let tail = self.stderr.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes: Vec<u8> = tail.iter().copied().collect();
        let text = String::from_utf8_lossy(&bytes);
        let last = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
        super::fault::excerpt(last.as_bytes())
    }

    /// Waits until it has ended by itself, its stdin being closed; then ends it and what it started.
    pub(super) fn finish(mut self) {
        let began = Instant::now();
        while began.elapsed() < GRACE && matches!(self.child.try_wait(), Ok(None)) {
            if self.watch.why().is_some() {
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.watch.over();
        let _ = kill_process_group(self.pid, Signal::KILL);
        let _ = self.child.wait();
    }
}

/// A child that is killed unless it is taken over.
struct Started(Option<Child>);

impl Started {
    fn pid(&self) -> Option<Pid> {
        Pid::from_raw(i32::try_from(self.0.as_ref()?.id()).ok()?)
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn exit(status: std::process::ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt as _;
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("it exited with code {code}"),
        (None, Some(signal)) => format!("it was killed by signal {signal}"),
        (None, None) => "it ended".to_owned(),
    }
}

/// Reads its stderr for as long as anybody writes there, and keeps the end.
fn drain(mut from: io::PipeReader, tail: Arc<Mutex<VecDeque<u8>>>) -> io::Result<JoinHandle<()>> {
    let work = move || {
        let mut buffer = [0; 8 << 10];
        while let Ok(read @ 1..) = from.read(&mut buffer) {
            let mut tail = tail.lock().unwrap_or_else(PoisonError::into_inner);
            tail.extend(&buffer[..read]);
            let spare = tail.len().saturating_sub(TAIL);
            tail.drain(..spare);
        }
    };
    std::thread::Builder::new().name("stderr".into()).spawn(work)
}
