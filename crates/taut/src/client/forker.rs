//! Starts processes, all from one thread that never ends.
//!
//! Why one thread: Linux sends the parent-death signal when the *thread* that forked ends, not when
//! the process does. A worker of a runtime ends with its runtime, and would take the children along.
//! Knows how to isolate a process; must not know what it is for. See docs/decisions/0004-children.md.
//!
//! Obeys the scars P1, P2 (own session), P14 (parent-death signal), P18 and P19.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::Duration;

use rustix::process::Pid;
use tokio::sync::oneshot;

use super::command::Command;
use super::lookup;
use super::reaper::{Leader, Leash};
use crate::error::SpawnError;

/// A process that runs, and our ends of its pipes. Dropping it kills it, so that a caller who went
/// away while it was being started leaves nothing behind (P19).
#[derive(Debug)]
pub(crate) struct Spawned {
    pub(crate) leash: Leash,
    pub(crate) stdin: OwnedFd,
    pub(crate) stdout: OwnedFd,
    pub(crate) stderr: OwnedFd,
}

type Reply = Result<Spawned, SpawnError>;

struct Job {
    command: Command,
    reply: oneshot::Sender<Reply>,
}

/// The way to the thread. Each job has a caller who waits for it, so the callers bound the queue.
static JOBS: Mutex<Option<mpsc::Sender<Job>>> = Mutex::new(None);

/// Another thread's fork may hold a just-written program open for writing until its own exec. It is
/// over in a moment; without trying again a freshly installed server fails now and then.
const BUSY_TRIES: u32 = 20;
const BUSY_PAUSE: Duration = Duration::from_millis(5);

/// Asks for a process. The receiver may be dropped at any time; the process then dies.
pub(crate) fn request(command: &Command) -> Result<oneshot::Receiver<Reply>, SpawnError> {
    let (reply, answer) = oneshot::channel();
    let mut job = Job { command: command.clone(), reply };
    let mut jobs = JOBS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(thread) = jobs.as_ref() {
        match thread.send(job) {
            Ok(()) => return Ok(answer),
            Err(mpsc::SendError(back)) => job = back,
        }
    }
    let (thread, inbox) = mpsc::channel();
    // The thread is new and its inbox is in our hands: this cannot fail.
    let _ = thread.send(job);
    std::thread::Builder::new()
        .name("taut-fork".into())
        .spawn(move || inbox.into_iter().for_each(serve))
        .map_err(|source| SpawnError::Io { program: command.program().to_owned(), source })?;
    // Kept for ever, so the thread's loop never ends.
    *jobs = Some(thread);
    Ok(answer)
}

fn serve(job: Job) {
    if job.reply.is_closed() {
        return;
    }
    // A reply that nobody takes comes back and is dropped here, which kills the process (P19).
    let _ = job.reply.send(start(&job.command));
}

fn start(command: &Command) -> Reply {
    let found = lookup::find(command)?;
    let io = |source| SpawnError::Io { program: command.program().to_owned(), source };
    let mut process = std::process::Command::new(&found.program);
    process
        // What a shell would pass on: programs that go by the name they are called by see it.
        .arg0(command.program())
        .args(command.arguments())
        .env_clear()
        .envs(&found.env)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    if let Some(dir) = command.directory() {
        process.current_dir(dir);
    }
    isolate(&mut process);

    let mut busy = 0;
    let mut child = loop {
        match process.spawn() {
            Ok(child) => break child,
            Err(e) if e.kind() == io::ErrorKind::ExecutableFileBusy && busy < BUSY_TRIES => {
                busy += 1;
                std::thread::sleep(BUSY_PAUSE);
            }
            Err(error) => return Err(lookup::explain(command, &found.program, error)),
        }
    };
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let pid = pid.ok_or_else(|| io(io::Error::other("the system gave no usable process id")))?;
    // From here on an early return kills the process.
    let leash = Leash(Arc::new(Leader::new(pid)));
    let (Some(stdin), Some(stdout), Some(stderr)) =
        (child.stdin.take(), child.stdout.take(), child.stderr.take())
    else {
        return Err(io(io::Error::other("the system gave no pipes")));
    };
    Ok(Spawned { leash, stdin: stdin.into(), stdout: stdout.into(), stderr: stderr.into() })
}

/// Gives the process a session of its own, and on Linux ties its life to ours.
#[allow(unsafe_code, reason = "no safe way: docs/decisions/0004-children.md")]
fn isolate(process: &mut std::process::Command) {
    #[cfg(target_os = "linux")]
    let us = rustix::process::getpid();
    let in_child = move || -> io::Result<()> {
        rustix::process::setsid()?;
        #[cfg(target_os = "linux")]
        {
            use rustix::process::{Signal, getppid, set_parent_process_death_signal};
            set_parent_process_death_signal(Some(Signal::KILL))?;
            // If we died before the line above took effect, no signal will come any more.
            if getppid() != Some(us) {
                return Err(rustix::io::Errno::SRCH.into());
            }
        }
        Ok(())
    };
    // SAFETY: the closure runs in the forked child before exec, where only async-signal-safe calls
    // are allowed. It makes three or four system calls (setsid, prctl, getppid), allocates nothing,
    // takes no lock, and holds one integer. An `io::Error` made from a system code does not allocate.
    unsafe { process.pre_exec(in_child) };
}
