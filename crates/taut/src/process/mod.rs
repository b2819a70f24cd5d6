//! Child processes: found, started, looked after, ended.
//!
//! [`Command`] says what to start; [`Client::spawn`](crate::Client::spawn) starts it. The other types say how a process ended,
//! or why it could not be started.

// Knows programs, pipes and signals; no JSON, no MCP and no frame. `Child::spawn` starts a command. The files: `command` and
// `lookup` (which program, which environment; `network`: which variables are about certificates and proxies), `start` (the thread that starts), `leader` and `task` (one process and the
// task that looks after it), `shutdown` (pure: when to send which signal), `pipes` and `stderr` (its streams), `exit` and
// `error` (how it ended, why it could not start), `job` (Windows: pipes left to the caller), `unix` and `windows` (the
// system, as `sys`).
// docs/decisions/0004-children.md; invariants 8 and 9.

mod command;
mod error;
mod exit;
#[cfg(windows)]
mod job;
mod leader;
mod lookup;
mod network;
mod pipes;
#[cfg(any(windows, test))]
mod quoting;
mod running;
mod shutdown;
mod start;
mod stderr;
#[cfg(unix)]
#[path = "unix.rs"]
mod sys;
#[cfg(not(unix))]
#[path = "windows.rs"]
mod sys;
mod task;

use std::future::Future;
use std::io;
use std::path::Path;
use std::sync::Arc;

use tokio::sync::{mpsc, watch};

use crate::secrets::Secrets;

use leader::KillOnDrop;
use shutdown::Shutdown;
use start::SpawnedProcess;
use stderr::{LineSink, Stderr, TAIL_LIMIT, Tail};
use sys::{ExitWatch, ReadPipe, WritePipe};
use task::ChildTask;

pub use command::Command;
pub use error::{NotFoundHint, SpawnError};
pub use exit::ExitStatus;
#[cfg(windows)]
pub use job::JobChild;
pub(crate) use pipes::{ChildStdin, ChildStdout, PipeEvents, StdinGauge};
pub use running::running;
pub use shutdown::{GracePeriods, ProcessEnd, ShutdownStep};

/// Marks every descriptor of this process above stderr to be closed in the programs that it starts.
///
/// [`Client::spawn`](crate::Client::spawn) takes care of that for the servers that it starts. A program that also starts
/// others, by [`std::process::Command`] say, calls this first in `main`: descriptors that its own parent left open
/// then reach none of them. Windows passes on only the handles that are named, so there is nothing to do.
pub fn close_inherited_on_exec() {
    #[cfg(unix)]
    sys::close_inherited_on_exec();
}

/// Requests to end one child that may be under way at once; further ones wait for their turn.
const ASKS: usize = 4;

with_defaults! {
    /// How a child is looked after.
    #[derive(Clone)]
    pub(crate) struct ChildOptions {
        /// How much of the end of stderr is kept, in bytes.
        pub(crate) tail_limit: usize = TAIL_LIMIT,
        /// Gets each line of stderr, on the runtime's thread; it must not block.
        pub(crate) on_stderr: Option<LineSink>,
        /// Values that are hidden in stderr before anything of it is kept or passed on.
        pub(crate) secrets: Option<Secrets>,
        /// Leaves alone what the child left running in its group, provided that it ended without a
        /// signal from us (P12). Our ends of the pipes are closed all the same.
        pub(crate) leave_group: bool,
        /// Waits in a thread although the kernel offers better.
        #[cfg(test)]
        #[cfg(unix)]
        pub(crate) wait_in_thread: bool,
    }
}

impl ChildOptions {
    fn watch(&self, process: &Arc<sys::Process>) -> io::Result<ExitWatch> {
        #[cfg(test)]
        #[cfg(unix)]
        if self.wait_in_thread {
            return ExitWatch::by_thread(process);
        }
        ExitWatch::new(process)
    }
}

/// A child process. Dropping it kills its whole group at once; [`Child::end`] is the polite way.
#[derive(Debug)]
pub(crate) struct Child {
    leader: KillOnDrop,
    asks: mpsc::Sender<GracePeriods>,
    tail: Arc<Tail>,
    ended: watch::Receiver<Option<ProcessEnd>>,
}

/// A child that was just started, and its streams.
pub(crate) struct StartedChild {
    pub(crate) child: Child,
    pub(crate) stdout: ChildStdout,
    pub(crate) stdin: ChildStdin,
    /// Hears, by an error, when `stdin` was dropped.
    pub(crate) stdin_closed: watch::Receiver<()>,
}

impl Child {
    /// Starts a process. Dropped half-way, the future leaves nothing behind (P19).
    pub(crate) async fn spawn(
        command: &Command,
        options: ChildOptions,
        events: Arc<dyn PipeEvents>,
    ) -> Result<StartedChild, SpawnError> {
        let (child, stdout, stdin) = Self::start(command, options).await?;
        let (stdout, stdin, stdin_closed) = pipes::join((stdout, stdin), child.wait(), events);
        Ok(StartedChild { child, stdout, stdin, stdin_closed })
    }

    /// The same, with the pipes as the system has them.
    async fn start(
        command: &Command,
        options: ChildOptions,
    ) -> Result<(Self, ReadPipe, WritePipe), SpawnError> {
        let io = |source| SpawnError::Io { program: command.program().to_owned(), source };
        let runtime =
            tokio::runtime::Handle::try_current().map_err(|error| io(io::Error::other(error)))?;
        let spawned = start::request(command)?.await;
        let spawned = spawned.map_err(|_| io(io::Error::other("the forking thread is gone")))??;
        let SpawnedProcess { leader, stdin, stdout, stderr } = spawned;

        let stdin = WritePipe::new(stdin).map_err(io)?;
        let stdout = ReadPipe::new(stdout).map_err(io)?;
        let tail = Arc::new(Tail::new(options.tail_limit));
        let watch = options.watch(&leader.0.process).map_err(io)?;
        let (pid, program) = (leader.0.process.id(), command.program());
        tracing::debug!(pid, ?program, "started");
        let (sink, secrets) = (options.on_stderr.clone(), options.secrets.as_ref());
        let stderr = Stderr::new(stderr, Arc::clone(&tail), pid, sink, secrets).map_err(io)?;
        let (asks, inbox) = mpsc::channel(ASKS);
        runtime.spawn(ChildTask {
            leader: Arc::clone(&leader.0),
            watch,
            stderr,
            shutdown: Shutdown::new(options.leave_group, sys::HAS_TERM),
            asks: Some(inbox),
            timer: None,
            container: container(command),
            done: false,
        });
        let ended = leader.0.ended.subscribe();
        Ok((Self { leader, asks, tail, ended }, stdout, stdin))
    }

    /// The process id (P25). For people to look at: it may belong to another process once the child has
    /// ended.
    pub(crate) fn pid(&self) -> u32 {
        self.leader.0.process.id()
    }

    /// How it ended, if it has (P22, P25).
    pub(crate) fn exit(&self) -> Option<ExitStatus> {
        self.ended.borrow().map(|ended| ended.exit)
    }

    /// Waits for its end, as often and from as many places as wanted. By then the end of stderr is in
    /// [`Child::tail`] (E4).
    #[cfg(test)]
    #[cfg(all(target_os = "linux", not(taut_portable)))]
    fn exited(&self) -> impl Future<Output = ExitStatus> + Send + 'static {
        let ended = self.wait();
        async move { ended.await.exit }
    }

    /// The end of what it wrote to stderr so far.
    pub(crate) fn tail(&self) -> String {
        self.tail.text()
    }

    /// Whether nothing more can come from its stderr.
    pub(crate) fn stderr_closed(&self) -> bool {
        self.tail.is_closed()
    }

    /// Waits for the child to end now that its stdin is closed; ends it if it takes too long.
    ///
    /// The caller has dropped the [`ChildStdin`] and goes on draining the [`ChildStdout`] (P10).
    /// May be called again, also while the first call waits: the shorter grace counts. Dropping the
    /// future changes nothing about the child's fate; nor does it hold the child.
    pub(crate) fn end(
        &self,
        grace: GracePeriods,
    ) -> impl Future<Output = ProcessEnd> + Send + 'static {
        let asks = self.asks.clone();
        let ended = self.wait();
        async move {
            // The task is gone once the child has ended.
            let _ = asks.send(grace).await;
            ended.await
        }
    }

    fn wait(&self) -> impl Future<Output = ProcessEnd> + Send + 'static {
        let mut ended = self.ended.clone();
        async move {
            let seen = ended.wait_for(Option::is_some).await.ok().and_then(|ended| *ended);
            // The sender publishes before it is dropped.
            seen.unwrap_or(ProcessEnd { step: ShutdownStep::Kill, exit: ExitStatus::UNSEEN })
        }
    }
}

/// The program's name if it is a client of a container engine (P13).
fn container(command: &Command) -> Option<String> {
    let name = Path::new(command.program()).file_stem()?.to_str()?;
    matches!(name, "docker" | "podman" | "nerdctl").then(|| name.to_owned())
}

// About Linux itself: signals, sessions and `/proc`. Windows: `tests/client/windows.rs`.
#[cfg(test)]
#[cfg(all(target_os = "linux", not(taut_portable)))]
mod tests;
