//! Processes where there is no Unix: none can be started yet, and the error says so.
//!
//! Has the items that the files beside it need of a system, as `unix.rs` has them. A process that
//! cannot be started has no pipes and no end, which the empty types say.

use std::convert::Infallible;
use std::ffi::OsStr;
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::exit::ExitStatus;
use crate::stream::{Sink, Source};

/// Our end of a pipe, before a runtime knows it.
#[derive(Debug)]
pub(super) struct PipeEnd(Infallible);

/// Nothing is to be set.
pub(super) fn prepare(_: &mut std::process::Command, _: &OsStr) {}

/// Ends what was just started: nobody could look after it.
pub(super) fn adopt(mut child: std::process::Child) -> io::Result<(Process, [PipeEnd; 3])> {
    let _ = child.kill();
    let _ = child.wait();
    Err(io::ErrorKind::Unsupported.into())
}

/// A process that cannot be.
#[derive(Debug)]
pub(super) struct Process(Infallible);

impl Process {
    pub(super) fn id(&self) -> u32 {
        match self.0 {}
    }

    pub(super) fn terminate_group(&self) -> io::Result<()> {
        match self.0 {}
    }

    pub(super) fn kill_group(&self) -> io::Result<()> {
        match self.0 {}
    }

    pub(super) fn is_taken(&self) -> bool {
        match self.0 {}
    }

    pub(super) fn reap(&self) -> Option<ExitStatus> {
        match self.0 {}
    }

    pub(super) fn wait(&self) {
        match self.0 {}
    }
}

/// Notices the exit of a process.
pub(super) struct ExitWatch(Infallible);

impl ExitWatch {
    pub(super) fn new(process: &Arc<Process>) -> io::Result<Self> {
        match process.0 {}
    }

    pub(super) fn poll_exit(&mut self, _: &mut Context<'_>) -> Poll<()> {
        match self.0 {}
    }
}

/// The end of a pipe that we read.
#[derive(Debug)]
pub(super) struct ReadPipe(Infallible);

impl ReadPipe {
    pub(super) fn new(end: PipeEnd) -> io::Result<Self> {
        match end.0 {}
    }

    pub(super) fn waiting(&self) -> u64 {
        match self.0 {}
    }

    pub(super) fn read_now(&mut self, _: &mut Vec<u8>) -> io::Result<usize> {
        match self.0 {}
    }
}

impl Source for ReadPipe {
    fn poll_read(&mut self, _: &mut Context<'_>, _: &mut Vec<u8>) -> Poll<io::Result<usize>> {
        match self.0 {}
    }
}

/// The end of a pipe that we write.
pub(super) struct WritePipe(Infallible);

impl WritePipe {
    pub(super) fn new(end: PipeEnd) -> io::Result<Self> {
        match end.0 {}
    }
}

impl Sink for WritePipe {
    fn poll_write(&mut self, _: &mut Context<'_>, _: &[u8]) -> Poll<io::Result<usize>> {
        match self.0 {}
    }
}
