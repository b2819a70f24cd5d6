//! Starts processes, all from one thread that never ends.
//!
//! Why one thread: Linux sends the parent-death signal when the *thread* that forked ends, not when
//! the process does. A worker of a runtime ends with its runtime, and would take the children along.
//! Must not know how a process is kept apart from ours (`unix.rs`, `windows.rs`) nor what it is for.
//! See docs/decisions/0004-children.md. Obeys the scars P18 and P19.

use std::io;
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use tokio::sync::oneshot;

use super::command::Command;
use super::error::SpawnError;
use super::leader::{KillOnDrop, Leader};
use super::lookup;
use super::sys::{self, PipeEnd};
use crate::lock::lock;

/// A process that runs, and our ends of its pipes. Dropping it kills it, so that a caller who went
/// away while it was being started leaves nothing behind (P19).
#[derive(Debug)]
pub(super) struct SpawnedProcess {
    pub(super) leader: KillOnDrop,
    pub(super) stdin: PipeEnd,
    pub(super) stdout: PipeEnd,
    pub(super) stderr: PipeEnd,
}

type Reply = Result<SpawnedProcess, SpawnError>;

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
pub(super) fn request(command: &Command) -> Result<oneshot::Receiver<Reply>, SpawnError> {
    let (reply, answer) = oneshot::channel();
    let mut job = Job { command: command.clone(), reply };
    let mut jobs = lock(&JOBS);
    if let Some(thread) = jobs.as_ref() {
        match thread.send(job) {
            Ok(()) => return Ok(answer),
            Err(mpsc::SendError(back)) => job = back,
        }
    }
    let (thread, inbox) = mpsc::channel();
    // The thread is new and we hold its receiver: this cannot fail.
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
    // A reply whose receiver is gone is dropped here, which kills the process (P19).
    let _ = job.reply.send(start(&job.command));
}

fn start(command: &Command) -> Reply {
    let found = lookup::find(command)?;
    let _starting = super::running::Starting::begin();
    let mut busy = 0;
    let (process, [stdin, stdout, stderr]) = loop {
        match sys::start(command, &found) {
            Ok(started) => break started,
            Err(e) if e.kind() == io::ErrorKind::ExecutableFileBusy && busy < BUSY_TRIES => {
                busy += 1;
                std::thread::sleep(BUSY_PAUSE);
            }
            Err(error) => return Err(lookup::explain(command, &found.program, error)),
        }
    };
    // From here on an early return kills the process.
    let leader = KillOnDrop(Arc::new(Leader::new(process)));
    Ok(SpawnedProcess { leader, stdin, stdout, stderr })
}
