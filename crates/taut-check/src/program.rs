//! A program and how to start it, so that all that it starts can be ended with it.
//!
//! Knows processes and their environment; must not know what is said to them.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
#[cfg(not(windows))]
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::progress::Progress;

#[cfg(not(windows))]
pub(crate) use std::process::Child;
#[cfg(windows)]
pub(crate) use taut::process::JobChild as Child;

/// A program, and how to start it.
#[derive(Clone, Debug)]
pub struct Program {
    /// The program and its arguments.
    pub words: Vec<OsString>,
    /// Variables set beside our own environment.
    pub env: Vec<(OsString, OsString)>,
    /// Whether nothing of our own environment is passed on, but for what `env` says.
    pub bare: bool,
    /// Where it is started.
    pub dir: Option<PathBuf>,
    /// Whether messages go out with a `Content-Length` header each, and not as lines.
    pub headers: bool,
    /// Memory that is taken by what all processes of this program wrote.
    pub(crate) kept: Arc<AtomicUsize>,
    pub(crate) stopper: Stopper,
    pub(crate) progress: Progress,
}

/// Ends a run before its time, from another thread: no process is started any more, so the run ends as soon as those
/// that are there have ended. Its report is worth nothing then.
#[derive(Clone, Debug, Default)]
pub struct Stopper(Arc<AtomicBool>);

impl Stopper {
    /// Lets no further process start.
    pub fn stop(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

impl Program {
    /// A program with its arguments.
    pub fn new<W: Into<OsString>>(words: impl IntoIterator<Item = W>) -> Self {
        let words = words.into_iter().map(Into::into).collect();
        Self {
            words,
            env: Vec::new(),
            bare: false,
            dir: None,
            headers: false,
            kept: Arc::default(),
            stopper: Stopper::default(),
            progress: Progress::default(),
        }
    }

    /// Counts the memory of a new run: what was kept for the last one is gone.
    pub(crate) fn begin(&self) {
        self.kept.store(0, Ordering::Relaxed);
    }

    /// In a process group of its own, so that all that it starts can be ended with it.
    #[cfg(not(windows))]
    pub(crate) fn spawn(&self) -> io::Result<Child> {
        let (first, rest) = self.words.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let mut command = Command::new(first);
        command.args(rest).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        if self.bare {
            command.env_clear();
        }
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        if let Some(dir) = &self.dir {
            command.current_dir(dir);
        }
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        command.spawn()
    }

    /// In a job of its own, with which all that it starts is ended. Finds `.cmd` files as well (W1).
    #[cfg(windows)]
    pub(crate) fn spawn(&self) -> io::Result<Child> {
        let (first, rest) = self.words.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let command = taut::Command::new(first).args(rest.iter().cloned());
        let command = if self.bare { command.clear_env() } else { command.inherit_env() };
        let env = self.env.iter();
        let command = env.fold(command, |command, (name, value)| command.env(name, value));
        match &self.dir {
            Some(dir) => command.current_dir(dir),
            None => command,
        }
        .start_in_job()
    }
}
