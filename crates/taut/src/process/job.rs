//! A process in a job object whose pipes the caller serves itself. Only on Windows.
//!
//! For programs that carry bytes and do not speak the protocol: `taut trace` and `taut check`. Finds the program and
//! quotes its arguments as every start of a server does, and must not know what goes through the pipes.
//! docs/decisions/0013-windows.md. Obeys the scars W1, W2, W7, W9 and P14.

use std::io::{self, PipeReader, PipeWriter};
use std::os::windows::process::ExitStatusExt as _;
use std::process::ExitStatus;

use super::command::Command;
use super::error::SpawnError;
use super::lookup;
use super::sys::{self, PipeEnd, Process};

/// A process that [`Command::start_in_job`] started. Dropping it ends the process and all that it started.
#[derive(Debug)]
pub struct JobChild {
    /// Our end of its stdin, until it is taken.
    pub stdin: Option<PipeWriter>,
    /// Our end of its stdout, until it is taken.
    pub stdout: Option<PipeReader>,
    /// Our end of its stderr, until it is taken.
    pub stderr: Option<PipeReader>,
    process: Process,
}

impl Command {
    /// Starts the program in a job object, without a window, and leaves its pipes to the caller. Only on Windows.
    ///
    /// The program is found by the rules of this type, also a `.cmd` or `.bat` file. When the result is dropped, or
    /// this process ends in whatever way, the system ends the program and all that it started.
    ///
    /// # Errors
    ///
    /// If there is no such program or directory, if an argument cannot be passed to a `.cmd` file, or if the system
    /// refuses. [`Command::find_program`] tells the first two apart from the rest.
    pub fn start_in_job(&self) -> io::Result<JobChild> {
        let found = lookup::find(self).map_err(as_io)?;
        let (process, ends) = sys::start(self, &found)?;
        let [PipeEnd::Write(stdin), PipeEnd::Read(stdout), PipeEnd::Read(stderr)] = ends else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        Ok(JobChild { stdin: Some(stdin), stdout: Some(stdout), stderr: Some(stderr), process })
    }
}

fn as_io(error: SpawnError) -> io::Error {
    match error {
        SpawnError::Io { source, .. } => source,
        SpawnError::NotExecutable { .. } => io::Error::new(io::ErrorKind::PermissionDenied, error),
        missing => io::Error::new(io::ErrorKind::NotFound, missing),
    }
}

impl JobChild {
    /// Its number.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// How it ended; `None` if it still runs.
    ///
    /// # Errors
    ///
    /// If the system does not tell.
    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        Ok(self.process.exit_code()?.map(ExitStatus::from_raw))
    }

    /// Ends it and all that it started. They are gone when this returns.
    ///
    /// # Errors
    ///
    /// If the system refuses.
    pub fn kill(&mut self) -> io::Result<()> {
        self.process.kill_group()?;
        self.process.wait();
        self.process.wait_for_job();
        Ok(())
    }

    /// Waits until it has ended; what it started may run on.
    ///
    /// # Errors
    ///
    /// If the system does not tell how it ended.
    pub fn wait(&mut self) -> io::Result<ExitStatus> {
        self.process.wait();
        self.try_wait()?.ok_or_else(|| io::ErrorKind::WouldBlock.into())
    }
}
