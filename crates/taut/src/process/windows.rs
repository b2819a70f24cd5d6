//! Processes on Windows: job objects, handles, and pipes driven by threads.
//!
//! The only file here that names the system. Must not know when a process is to be ended, nor what
//! goes through a pipe. `unix.rs` has the same items; the files beside them use nothing else of the
//! system. There is no polite signal (W5): a closed stdin is the only request, and the job ends what
//! does not follow it. docs/decisions/0013-windows.md.
//!
//! Obeys the scars P1, P9, P14, P22, W1, W2, W5, W7 and W9.

use std::ffi::{OsStr, OsString};
use std::future::Future;
use std::io::{self, PipeReader, PipeWriter, Read};
use std::os::windows::ffi::OsStrExt as _;
use std::os::windows::io::{AsHandle, OwnedHandle};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::command::Command;
use super::exit::ExitStatus;
use super::lookup::Found;
use super::quoting;
use crate::stream::{Sink, Source};
use crate::threaded::{READ_AHEAD, ReadHalf, WriteHalf};
use crate::win32::{self, JobObject, Program};

/// Whether a process can be asked to end otherwise than by closing its stdin (W5).
pub(super) const HAS_TERM: bool = false;

/// Our end of a pipe, before a thread serves it.
#[derive(Debug)]
pub(super) enum PipeEnd {
    Read(PipeReader),
    Write(PipeWriter),
}

/// Starts a process: the process, and our ends of stdin, stdout and stderr.
///
/// It is in its job from the first moment, has no window (W2), and inherits the other ends of these
/// three pipes and nothing else.
pub(super) fn start(command: &Command, found: &Found) -> io::Result<(Process, [PipeEnd; 3])> {
    let (their_stdin, stdin) = io::pipe()?;
    let (stdout, their_stdout) = io::pipe()?;
    let (stderr, their_stderr) = io::pipe()?;
    let args: Vec<Vec<u16>> = command.arguments().iter().map(wide).collect();
    let (path, command_line) = if is_script(&found.program) {
        let cmd = command_interpreter();
        let line = quoting::for_script(&wide(&cmd), &wide(&found.program), &args);
        let line = line.map_err(|refused| refusal(&found.program, &refused))?;
        (cmd, line)
    } else {
        (found.program.clone(), quoting::for_program(&wide(&found.program), &args))
    };
    let job = JobObject::new()?;
    let program = Program {
        path: path.as_os_str(),
        command_line: &command_line,
        env: &environment(found),
        directory: command.directory().map(Path::as_os_str),
        stdin: their_stdin.as_handle(),
        stdout: their_stdout.as_handle(),
        stderr: their_stderr.as_handle(),
    };
    let (process, id) = win32::start(&program, &job)?;
    let process = Process { process, id, job, killed: AtomicBool::new(false) };
    Ok((process, [PipeEnd::Write(stdin), PipeEnd::Read(stdout), PipeEnd::Read(stderr)]))
}

fn wide(text: impl AsRef<OsStr>) -> Vec<u16> {
    text.as_ref().encode_wide().collect()
}

/// Whether only `cmd.exe` can start this file (W1).
fn is_script(program: &Path) -> bool {
    let is = |known| program.extension().is_some_and(|own| own.eq_ignore_ascii_case(known));
    is("cmd") || is("bat")
}

/// The system's own `cmd.exe`: neither `COMSPEC` nor `PATH` may put another in its place.
fn command_interpreter() -> PathBuf {
    let root = std::env::var_os("SystemRoot").unwrap_or_else(|| r"C:\Windows".into());
    PathBuf::from(root).join(r"System32\cmd.exe")
}

fn refusal(script: &Path, refused: &quoting::Unsafe) -> io::Error {
    let text = format!(
        "{} is started by cmd.exe, and {}; start the program behind it instead (for npx: node with \
         the path of the script), or pass the value in an environment variable",
        script.display(),
        refused.reason()
    );
    io::Error::new(io::ErrorKind::InvalidInput, text)
}

/// `NAME=value`, sorted by name without regard to case, as the system keeps it.
fn environment(found: &Found) -> Vec<OsString> {
    let mut names: Vec<_> = found.env.iter().collect();
    names.sort_by_key(|(name, _)| name.to_ascii_uppercase());
    let join = |(name, value): (&OsString, &OsString)| {
        let mut text = name.clone();
        text.push("=");
        text.push(value);
        text
    };
    names.into_iter().map(join).collect()
}

/// How long is waited for the rest of a job after it was told to end. It takes moments: this is for
/// a machine that is very busy.
const LAST: Duration = Duration::from_millis(500);

/// What a process is told to have exited with when the job ends it.
const KILLED: u32 = 1;

/// A process and the job that holds it and its descendants. Dropping it ends them all.
#[derive(Debug)]
pub(super) struct Process {
    process: OwnedHandle,
    id: u32,
    job: JobObject,
    killed: AtomicBool,
}

impl Process {
    /// Its number.
    pub(super) fn id(&self) -> u32 {
        self.id
    }

    /// There is no such request here; see [`HAS_TERM`].
    pub(super) fn terminate_group(&self) -> io::Result<()> {
        Ok(())
    }

    /// Ends every process of the job.
    pub(super) fn kill_group(&self) -> io::Result<()> {
        self.killed.store(true, Ordering::SeqCst);
        self.job.terminate(KILLED)
    }

    /// Nobody else can collect the status: it belongs to the handle (P22).
    pub(super) fn is_taken(&self) -> bool {
        false
    }

    /// The status; `None` if it still runs. What was killed with it is gone by then (W7); what was not
    /// is let go, and outlives the job.
    pub(super) fn reap(&self) -> Option<ExitStatus> {
        let exit = match win32::exit_code(&self.process) {
            Ok(None) => return None,
            Ok(Some(code)) => ExitStatus { code: Some(code.cast_signed()), ..ExitStatus::UNSEEN },
            Err(_) => ExitStatus::UNSEEN,
        };
        if self.killed.load(Ordering::SeqCst) {
            self.wait_for_job();
        } else if let Err(error) = self.job.release() {
            tracing::debug!(pid = self.id, %error, "what the process started is not let go");
        }
        Some(exit)
    }

    /// With what code it ended; `None` if it still runs. Lets nothing go.
    pub(super) fn exit_code(&self) -> io::Result<Option<u32>> {
        win32::exit_code(&self.process)
    }

    /// Waits until nothing of the job is left, for a moment at most.
    pub(super) fn wait_for_job(&self) {
        let deadline = Instant::now() + LAST;
        // A job has no handle to wait for; nearly always the first look is the last.
        while self.job.processes().is_ok_and(|count| count > 0) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Blocks until it has exited.
    pub(super) fn wait(&self) {
        let _ = win32::wait(&self.process);
    }
}

/// Notices the exit of a process, never of its pipes, which a descendant may hold open (P9). A thread
/// waits.
pub(super) struct ExitWatch(oneshot::Receiver<()>);

impl ExitWatch {
    pub(super) fn new(process: &Arc<Process>) -> io::Result<Self> {
        let (tell, told) = oneshot::channel();
        let process = Arc::clone(process);
        std::thread::Builder::new().name("taut-wait".into()).spawn(move || {
            process.wait();
            let _ = tell.send(());
        })?;
        Ok(Self(told))
    }

    /// Ready once the process has exited.
    pub(super) fn poll_exit(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        Pin::new(&mut self.0).poll(cx).map(drop)
    }
}

/// The end of a pipe that we read. Dropping it closes it.
pub(super) struct ReadPipe {
    half: ReadHalf,
    pipe: Arc<PipeReader>,
    /// How long [`ReadPipe::read_now`] may still wait, in all.
    patience: Duration,
}

/// The pipe as the thread reads it.
struct Shared(Arc<PipeReader>);

impl Read for Shared {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        (&*self.0).read(buf)
    }
}

impl ReadPipe {
    /// Takes the read end of a pipe.
    pub(super) fn new(end: PipeEnd) -> io::Result<Self> {
        let PipeEnd::Read(pipe) = end else { return Err(io::ErrorKind::InvalidInput.into()) };
        let pipe = Arc::new(pipe);
        let half = ReadHalf::start(Shared(Arc::clone(&pipe)))?;
        Ok(Self { half, pipe, patience: ALL_REST })
    }

    /// At most this was written before the exit: some of it is in the pipe, some with the thread.
    /// [`ReadPipe::read_now`] finds the end. More comes only from a descendant, which is not waited for (P9).
    pub(super) fn waiting(&self) -> u64 {
        (PIPE + READ_AHEAD) as u64
    }

    /// Reads what is there now that the process has exited. Nothing there is `Ok(0)`, as the end is.
    ///
    /// The end comes by itself unless a descendant holds the other end. It is waited for a moment,
    /// because what was written may just be with the thread. One that writes now and then could draw out the
    /// moments for ever, so all of them together have a bound.
    pub(super) fn read_now(&mut self, buf: &mut Vec<u8>) -> io::Result<usize> {
        let began = Instant::now();
        let read = self.half.read_within(buf, REST.min(self.patience));
        self.patience = self.patience.saturating_sub(began.elapsed());
        read
    }
}

/// How long what was written before an exit may take from the pipe through the thread.
const REST: Duration = Duration::from_millis(100);

/// The same for all that is read after an exit: several pieces on a machine that is very busy.
const ALL_REST: Duration = Duration::from_millis(500);

/// What a pipe of the standard library holds.
const PIPE: usize = 64 * 1024;

impl Source for ReadPipe {
    fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut Vec<u8>) -> Poll<io::Result<usize>> {
        self.half.poll_read(cx, buf)
    }
}

impl Drop for ReadPipe {
    fn drop(&mut self) {
        // The thread may wait in a read that a descendant of the process keeps from ending.
        win32::cancel(&*self.pipe);
    }
}

/// The end of a pipe that we write. Dropping it closes it once all is written.
pub(super) struct WritePipe(WriteHalf);

impl WritePipe {
    /// Takes the write end of a pipe.
    pub(super) fn new(end: PipeEnd) -> io::Result<Self> {
        let PipeEnd::Write(pipe) = end else { return Err(io::ErrorKind::InvalidInput.into()) };
        Ok(Self(WriteHalf::start(pipe)?))
    }

    /// What tells how many bytes have been written and not read: Windows does not.
    pub(super) fn gauge(&self) -> impl Fn() -> Option<u64> + Send + Sync + 'static {
        || None
    }
}

impl Sink for WritePipe {
    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.0.poll_write(cx, bytes)
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.poll_flush(cx)
    }

    fn poll_gone(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.0.poll_gone(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    /// P9: a descendant that holds the other end and goes on writing, now and then or without a pause.
    #[test]
    fn p9_what_a_descendant_goes_on_to_write_is_not_waited_for() {
        for (pause, piece) in [(Duration::from_millis(20), 10), (Duration::ZERO, 4096)] {
            let (reader, mut writer) = io::pipe().unwrap();
            let mut pipe = ReadPipe::new(PipeEnd::Read(reader)).unwrap();
            writer.write_all(b"first").unwrap();
            // Ends when the reader is gone.
            std::thread::spawn(move || {
                while writer.write_all(&vec![b'x'; piece]).is_ok() {
                    std::thread::sleep(pause);
                }
            });
            let began = Instant::now();
            let (mut left, mut seen) = (pipe.waiting(), Vec::new());
            while left > 0
                && let Ok(count @ 1..) = pipe.read_now(&mut seen)
            {
                left = left.saturating_sub(count as u64);
                // Without the bounds it never ends; how long it takes otherwise depends on the machine.
                assert!(began.elapsed() < Duration::from_secs(30), "{} bytes", seen.len());
            }
            assert!(seen.starts_with(b"first"));
        }
    }
}
