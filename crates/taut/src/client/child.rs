//! A child process: started, looked after, ended.
//!
//! The face of the files beside it: `forker.rs` starts it, `keeper.rs` looks after it. Knows no
//! JSON, no MCP and no frame. docs/decisions/0004-children.md; invariants 8 and 9.

use std::future::Future;
use std::io;
use std::path::Path;
use std::sync::Arc;

use tokio::sync::{mpsc, watch};

use super::command::Command;
use super::forker::{self, Spawned};
use super::keeper::Keeper;
use super::ladder::Ended;
use super::ladder::{Grace, Ladder, Rung};
use super::pipe::{ChildStdin, ChildStdout};
use super::reaper::{Leash, Watch};
use super::stderr::{LineSink, Stderr, TAIL_LIMIT, Tail};
use crate::error::Exit;
use crate::error::SpawnError;

/// Requests to end one child that may be under way at once; further ones wait for their turn.
const ASKS: usize = 4;

/// How a child is looked after.
#[derive(Clone)]
pub(crate) struct Options {
    /// How much of the end of stderr is kept, in bytes.
    pub(crate) tail_limit: usize,
    /// Gets each line of stderr, on the runtime's thread; it must not block.
    pub(crate) on_stderr: Option<LineSink>,
    /// Leaves alone what the child left running in its group, provided that it ended without a
    /// signal from us (P12). Our ends of the pipes are closed all the same.
    pub(crate) leave_group: bool,
    /// Waits in a thread although the kernel offers better.
    #[cfg(test)]
    pub(crate) wait_in_thread: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            tail_limit: TAIL_LIMIT,
            on_stderr: None,
            leave_group: false,
            #[cfg(test)]
            wait_in_thread: false,
        }
    }
}

impl Options {
    fn watch(&self, leash: &Leash) -> io::Result<Watch> {
        #[cfg(test)]
        if self.wait_in_thread {
            return Watch::by_thread(&leash.0);
        }
        Watch::new(&leash.0)
    }
}

/// A child process. Dropping it kills its whole group at once; [`Child::end`] is the polite way.
#[derive(Debug)]
pub(crate) struct Child {
    leash: Leash,
    asks: mpsc::Sender<Grace>,
    tail: Arc<Tail>,
    ended: watch::Receiver<Option<Ended>>,
}

impl Child {
    /// Starts a process. Dropped half-way, the future leaves nothing behind (P19).
    pub(crate) async fn spawn(
        command: &Command,
        options: Options,
    ) -> Result<(Self, ChildStdout, ChildStdin), SpawnError> {
        let io = |source| SpawnError::Io { program: command.program().to_owned(), source };
        let runtime =
            tokio::runtime::Handle::try_current().map_err(|error| io(io::Error::other(error)))?;
        let spawned = forker::request(command)?.await;
        let spawned = spawned.map_err(|_| io(io::Error::other("the forking thread is gone")))??;
        let Spawned { leash, stdin, stdout, stderr } = spawned;

        let stdin = ChildStdin::new(stdin).map_err(io)?;
        let stdout = ChildStdout::new(stdout).map_err(io)?;
        let tail = Arc::new(Tail::new(options.tail_limit));
        let watch = options.watch(&leash).map_err(io)?;
        let stderr =
            Stderr::new(stderr, Arc::clone(&tail), options.on_stderr.clone()).map_err(io)?;
        let (asks, inbox) = mpsc::channel(ASKS);
        runtime.spawn(Keeper::new(
            Arc::clone(&leash.0),
            watch,
            stderr,
            Ladder::new(options.leave_group),
            inbox,
            container(command),
        ));
        let ended = leash.0.subscribe();
        Ok((Self { leash, asks, tail, ended }, stdout, stdin))
    }

    /// The process id (P25). For people to look at: it may be somebody else's once the child ended.
    pub(crate) fn pid(&self) -> u32 {
        self.leash.0.pid().as_raw_pid().unsigned_abs()
    }

    /// How it ended, if it has (P22, P25).
    pub(crate) fn exit(&self) -> Option<Exit> {
        self.ended.borrow().map(|ended| ended.exit)
    }

    /// Waits for its end, as often and from as many places as wanted. By then the last words are in
    /// [`Child::tail`] (E4).
    pub(crate) fn exited(&self) -> impl Future<Output = Exit> + Send + 'static {
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
    pub(crate) fn end(&self, grace: Grace) -> impl Future<Output = Ended> + Send + 'static {
        let asks = self.asks.clone();
        let ended = self.wait();
        async move {
            // Nobody listens any more once it has ended.
            let _ = asks.send(grace).await;
            ended.await
        }
    }

    fn wait(&self) -> impl Future<Output = Ended> + Send + 'static {
        let mut ended = self.ended.clone();
        async move {
            let seen = ended.wait_for(Option::is_some).await.ok().and_then(|ended| *ended);
            // Whoever holds the sender publishes before letting go.
            seen.unwrap_or(Ended { rung: Rung::Kill, exit: Exit::UNSEEN })
        }
    }
}

/// The program's name if it is a client of a container engine (P13).
fn container(command: &Command) -> Option<String> {
    let name = Path::new(command.program()).file_stem()?.to_str()?;
    matches!(name, "docker" | "podman" | "nerdctl").then(|| name.to_owned())
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests;
