//! Processes on Unix: sessions, signals, waiting, and pipes driven by readiness.
//!
//! The only file here that names the system. Must not know when to signal, nor what goes through a
//! pipe. `windows.rs` has the same items; the files beside them use nothing else of the system.
//!
//! Obeys the scars P1, P2 (own session), P9, P14 (parent-death signal) and P22.

use std::ffi::OsStr;
use std::future::Future;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::pin::Pin;
use std::process::Stdio;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, WaitIdStatus, waitid};
use tokio::io::Interest;
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::sync::oneshot;

use super::command::Command;
use super::exit::ExitStatus;
use super::lookup::Found;
use crate::stream::{Sink, Source};
use crate::width::Width;

/// Our end of a pipe, before a runtime knows it.
pub(super) type PipeEnd = OwnedFd;

/// Whether a process can be asked to end otherwise than by closing its stdin.
pub(super) const HAS_TERM: bool = true;

/// Starts a process: the process, and our ends of stdin, stdout and stderr.
pub(super) fn start(command: &Command, found: &Found) -> io::Result<(Process, [PipeEnd; 3])> {
    let mut process = std::process::Command::new(&found.program);
    process
        .args(command.arguments())
        .env_clear()
        .envs(&found.env)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    if let Some(dir) = command.directory() {
        process.current_dir(dir);
    }
    prepare(&mut process, command.program());
    adopt(process.spawn()?)
}

/// What is set on a process before it is started: the name that it sees itself called by, a session of
/// its own, no descriptor of ours but its three pipes, and on Linux an end together with ours.
#[allow(unsafe_code, reason = "no safe way: docs/decisions/0004-children.md")]
fn prepare(process: &mut std::process::Command, name: &OsStr) {
    // What a shell would pass on: programs that go by the name they are called by see it.
    process.arg0(name);
    #[cfg(all(target_os = "linux", not(taut_portable)))]
    let us = rustix::process::getpid();
    #[cfg(not(all(target_os = "linux", not(taut_portable))))]
    let open = open_descriptors();
    let in_child = move || -> io::Result<()> {
        rustix::process::setsid()?;
        #[cfg(all(target_os = "linux", not(taut_portable)))]
        close_all_on_exec();
        #[cfg(not(all(target_os = "linux", not(taut_portable))))]
        open.iter().copied().for_each(close_on_exec);
        #[cfg(all(target_os = "linux", not(taut_portable)))]
        {
            use rustix::process::{getppid, set_parent_process_death_signal};
            set_parent_process_death_signal(Some(Signal::KILL))?;
            // If we died before the line above took effect, no signal will come any more.
            if getppid() != Some(us) {
                return Err(Errno::SRCH.into());
            }
        }
        Ok(())
    };
    // SAFETY: the closure runs in the forked child before exec, where only async-signal-safe calls
    // are allowed. It makes system calls (setsid, open, getdents, fcntl, close, prctl, getppid), allocates
    // nothing, takes no lock, and holds one integer or a list made before the fork. An `io::Error` made
    // from a system code does not allocate.
    unsafe { process.pre_exec(in_child) };
}

/// Marks every descriptor above stderr to be closed by exec. Rust opens its own that way; those that
/// this process was given by its parent, or that other languages opened, may not be.
#[cfg(all(target_os = "linux", not(taut_portable)))]
fn close_all_on_exec() {
    use rustix::fs::{Mode, OFlags, RawDir, open};
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    // Without /proc there is no list; nothing is lost but tidiness.
    let Ok(list) = open(c"/proc/self/fd", flags, Mode::empty()) else { return };
    let mut buffer = [std::mem::MaybeUninit::<u8>::uninit(); 1024];
    let mut entries = RawDir::new(list, &mut buffer);
    while let Some(Ok(entry)) = entries.next() {
        let digits = entry.file_name().to_bytes();
        if let Some(fd) = str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok()) {
            close_on_exec(fd);
        }
    }
}

/// The same for this process itself, before it starts others.
pub(super) fn close_inherited_on_exec() {
    #[cfg(all(target_os = "linux", not(taut_portable)))]
    close_all_on_exec();
    #[cfg(not(all(target_os = "linux", not(taut_portable))))]
    open_descriptors().into_iter().for_each(close_on_exec);
}

/// The descriptors that are open now.
#[cfg(not(all(target_os = "linux", not(taut_portable))))]
fn open_descriptors() -> Vec<std::os::fd::RawFd> {
    let entries = std::fs::read_dir("/dev/fd").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// Marks a descriptor above stderr to be closed by exec, if it is open.
#[allow(unsafe_code, reason = "no safe way: docs/decisions/0004-children.md")]
fn close_on_exec(fd: std::os::fd::RawFd) {
    if fd > 2 {
        // SAFETY: used for one call, which changes no more than this mark. One that is not open is an error of that
        // call. If another thread has closed it, and opened another in its place, that one is marked: Rust marks all
        // that it opens.
        let fd = unsafe { std::os::fd::BorrowedFd::borrow_raw(fd) };
        let _ = rustix::io::fcntl_setfd(fd, rustix::io::FdFlags::CLOEXEC);
    }
}

/// Takes over a process that was just started: the process, and our ends of stdin, stdout and stderr.
fn adopt(mut child: std::process::Child) -> io::Result<(Process, [PipeEnd; 3])> {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    match (pid, child.stdin.take(), child.stdout.take(), child.stderr.take()) {
        (Some(pid), Some(stdin), Some(stdout), Some(stderr)) => {
            Ok((Process { pid }, [stdin.into(), stdout.into(), stderr.into()]))
        }
        _ => {
            let _ = child.kill();
            let _ = child.wait();
            Err(io::Error::other("the system gave no process id or no pipes"))
        }
    }
}

/// A process that leads its own session and group. Dropping it changes nothing about the process.
#[derive(Debug)]
pub(super) struct Process {
    pid: Pid,
}

impl Process {
    /// Its number.
    pub(super) fn id(&self) -> u32 {
        self.pid.as_raw_pid().unsigned_abs()
    }

    /// Sends SIGTERM to the whole group.
    pub(super) fn terminate_group(&self) -> io::Result<()> {
        Ok(rustix::process::kill_process_group(self.pid, Signal::TERM)?)
    }

    /// Sends SIGKILL to the whole group.
    pub(super) fn kill_group(&self) -> io::Result<()> {
        Ok(rustix::process::kill_process_group(self.pid, Signal::KILL)?)
    }

    /// Whether the status was collected elsewhere: another part of this program may wait for any
    /// child, or ignore SIGCHLD. Then the number may belong to another process.
    pub(super) fn is_taken(&self) -> bool {
        matches!(self.waitid(WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT), Err(Errno::CHILD))
    }

    /// Collects the status; `None` if it still runs.
    pub(super) fn reap(&self) -> Option<ExitStatus> {
        match self.waitid(WaitIdOptions::NOHANG) {
            Ok(None) => None,
            Ok(Some(status)) => Some(ExitStatus {
                code: status.exit_status(),
                signal: status.terminating_signal(),
                core_dumped: status.dumped(),
            }),
            Err(_) => Some(ExitStatus::UNSEEN),
        }
    }

    /// Blocks until it has exited, without collecting the status.
    pub(super) fn wait(&self) {
        // The number may be reaped and given to another child of ours while we wait. NOWAIT keeps
        // us from taking that one's status; we merely wait a little longer.
        let _ = self.waitid(WaitIdOptions::NOWAIT);
    }

    fn waitid(&self, options: WaitIdOptions) -> Result<Option<WaitIdStatus>, Errno> {
        loop {
            match waitid(WaitId::Pid(self.pid), options | WaitIdOptions::EXITED) {
                Err(Errno::INTR) => {}
                other => return other,
            }
        }
    }
}

/// Notices the exit of a process: the process itself, never its pipes, which a descendant may hold
/// open (P9).
pub(super) enum ExitWatch {
    /// The kernel makes a descriptor readable. It is no pipe and is never read: this is the one
    /// type that has a safe way to wait for any descriptor we own.
    #[cfg(all(target_os = "linux", not(taut_portable)))]
    Pidfd(Receiver),
    /// A thread waits: macOS, the BSDs, and Linux before 5.3.
    Thread(oneshot::Receiver<()>),
}

impl ExitWatch {
    /// Watches a process, in the best way there is.
    pub(super) fn new(process: &Arc<Process>) -> io::Result<Self> {
        #[cfg(all(target_os = "linux", not(taut_portable)))]
        {
            use rustix::process::{PidfdFlags, pidfd_open};
            if let Ok(fd) = pidfd_open(process.pid, PidfdFlags::empty()) {
                return Ok(Self::Pidfd(Receiver::from_owned_fd_unchecked(fd)?));
            }
        }
        Self::by_thread(process)
    }

    /// Watches a process by waiting for it in a thread.
    pub(super) fn by_thread(process: &Arc<Process>) -> io::Result<Self> {
        let (tell, told) = oneshot::channel();
        let process = Arc::clone(process);
        std::thread::Builder::new().name("taut-wait".into()).spawn(move || {
            process.wait();
            let _ = tell.send(());
        })?;
        Ok(Self::Thread(told))
    }

    /// Ready once the process has exited.
    pub(super) fn poll_exit(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match self {
            #[cfg(all(target_os = "linux", not(taut_portable)))]
            // An error means that the reactor goes down. The task that polls this goes down with it.
            Self::Pidfd(fd) => match ready!(fd.poll_read_ready(cx)) {
                Ok(()) => Poll::Ready(()),
                Err(_) => Poll::Pending,
            },
            Self::Thread(told) => Pin::new(told).poll(cx).map(drop),
        }
    }
}

/// Room made when the caller offers none: a read into no room would look like the end.
const MIN_ROOM: usize = 4096;

/// What a pipe can hold at most without privileges.
const PIPE_MAX: u64 = 1024 * 1024;

/// The end of a pipe that we read. Dropping it closes it.
///
/// The pipes are ours alone: the other end has a file description of its own, so the non-blocking
/// flag that is set here is not seen there.
#[derive(Debug)]
pub(super) struct ReadPipe {
    pipe: Receiver,
    width: Width,
}

impl ReadPipe {
    /// Takes the read end of a pipe.
    pub(super) fn new(end: PipeEnd) -> io::Result<Self> {
        Ok(Self { pipe: Receiver::from_owned_fd(end)?, width: Width::Usual })
    }

    /// How many bytes are there to be read at this moment.
    pub(super) fn waiting(&self) -> u64 {
        // Where the kernel will not tell: as much as a pipe can hold.
        rustix::io::ioctl_fionread(&self.pipe).unwrap_or(PIPE_MAX)
    }

    /// Reads what is there past the reactor, which may not have heard yet. Nothing there is
    /// `Ok(0)`, as the end is.
    pub(super) fn read_now(&mut self, buf: &mut Vec<u8>) -> io::Result<usize> {
        buf.reserve(MIN_ROOM);
        loop {
            match rustix::io::read(&self.pipe, rustix::buffer::spare_capacity(buf)) {
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(0),
                done => return Ok(done?),
            }
        }
    }
}

impl Source for ReadPipe {
    fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut Vec<u8>) -> Poll<io::Result<usize>> {
        if buf.len() == buf.capacity() {
            buf.reserve(MIN_ROOM);
        }
        loop {
            ready!(self.pipe.poll_read_ready(cx))?;
            match self.pipe.try_read_buf(buf) {
                Ok(bytes) => {
                    self.width.note(bytes);
                    return Poll::Ready(Ok(bytes));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.width.settle(&self.pipe);
                }
                Err(error) if again(&error) => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}

/// The end of a pipe that we write. Dropping it closes it.
pub(super) struct WritePipe {
    pipe: Arc<Sender>,
    width: Width,
    /// Finishes when the last reader is gone; none once it has.
    gone: Option<Pin<Box<dyn Future<Output = io::Result<()>> + Send>>>,
}

impl WritePipe {
    /// Takes the write end of a pipe.
    pub(super) fn new(end: PipeEnd) -> io::Result<Self> {
        let pipe = Arc::new(Sender::from_owned_fd(end)?);
        let watched = Arc::clone(&pipe);
        // A pipe's write end reports an error once its last read end is closed, and never before.
        let gone = async move { watched.ready(Interest::ERROR).await.map(|_| ()) };
        Ok(Self { pipe, width: Width::Usual, gone: Some(Box::pin(gone)) })
    }

    /// What tells how many bytes have been written and not read, as long as this is open. Linux counts them at either
    /// end of a pipe; other systems do not, and nothing is known there.
    pub(super) fn gauge(&self) -> impl Fn() -> Option<u64> + Send + Sync + 'static {
        let pipe = Arc::downgrade(&self.pipe);
        move || {
            let counts = cfg!(all(target_os = "linux", not(taut_portable)));
            let pipe = pipe.upgrade().filter(|_| counts)?;
            rustix::io::ioctl_fionread(&*pipe).ok()
        }
    }
}

impl Sink for WritePipe {
    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.width.note(bytes.len());
        self.width.settle(&*self.pipe);
        loop {
            ready!(self.pipe.poll_write_ready(cx))?;
            match self.pipe.try_write(bytes) {
                Err(error) if again(&error) => {}
                done => return Poll::Ready(done),
            }
        }
    }

    fn poll_gone(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(gone) = &mut self.gone else { return Poll::Ready(()) };
        // An error means that the reactor goes down: nothing will ever be written here again.
        let _ = ready!(gone.as_mut().poll(cx));
        self.gone = None;
        Poll::Ready(())
    }
}

fn again(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}
