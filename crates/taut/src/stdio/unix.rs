//! Moving the wire off descriptors 0 and 1, and choosing how each half is driven.
//!
//! Knows what stands where in the descriptor table. Does no reading or writing of its own, except
//! for [`Blocking`], which a thread uses.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{FileType, Mode, OFlags, fstat};
use rustix::io::{Errno, fcntl_dupfd_cloexec, fcntl_getfd};
use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout, stderr, stdin, stdout};

use super::{ClaimError, Input, Output, Stdio, signals};
use crate::threaded;

/// The first number that is no standard descriptor.
pub(super) const FIRST_PRIVATE: i32 = 3;

/// The two ends of the wire on private, close-on-exec descriptors. `None`: it was not open.
pub(super) struct Wire {
    input: Option<OwnedFd>,
    output: Option<OwnedFd>,
}

/// Takes the wire off descriptors 0 and 1 and leaves stand-ins there (S13, S14, S15).
pub(super) fn move_wire() -> Result<Wire, ClaimError> {
    let null = null()?;
    // A hole at 2 would be filled by the next open, and every stray line would land in that file.
    // A host that merges stderr into stdout leaves no place for words at all.
    if fcntl_getfd(stderr()).is_err() || stderr_is_wire() {
        dup2_stderr(&null).map_err(|e| moved(2, e))?;
    }
    let input = set_aside(stdin()).map_err(|e| moved(0, e))?;
    let output = set_aside(stdout()).map_err(|e| moved(1, e))?;
    dup2_stdin(&null).map_err(|e| moved(0, e))?;
    dup2_stdout(stderr()).map_err(|e| moved(1, e))?;
    Ok(Wire { input, output })
}

/// Whether stderr is the very pipe or socket that stdout is. A terminal or a file may well be both.
fn stderr_is_wire() -> bool {
    let (Ok(out), Ok(err)) = (fstat(stdout()), fstat(stderr())) else { return false };
    let kind = FileType::from_raw_mode(out.st_mode);
    matches!(kind, FileType::Fifo | FileType::Socket)
        && (out.st_dev, out.st_ino) == (err.st_dev, err.st_ino)
}

fn moved(fd: u8, source: Errno) -> ClaimError {
    ClaimError::Descriptor { fd, source: source.into() }
}

/// The null device, on a number that is nobody's.
pub(super) fn null() -> Result<OwnedFd, ClaimError> {
    rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())
        // It may have filled a hole among the first three; the copy has not.
        .and_then(|low| fcntl_dupfd_cloexec(&low, FIRST_PRIVATE))
        .map_err(|source| ClaimError::Null { source: source.into() })
}

fn set_aside(fd: impl AsFd) -> rustix::io::Result<Option<OwnedFd>> {
    match fcntl_dupfd_cloexec(fd, FIRST_PRIVATE) {
        Ok(private) => Ok(Some(private)),
        Err(Errno::BADF) => Ok(None),
        Err(other) => Err(other),
    }
}

impl Wire {
    /// Gives each end the means that fit its kind. Needs a runtime around it.
    pub(super) fn open(self) -> io::Result<Stdio> {
        signals::survive_broken_pipes();
        // What cannot be copied is not watched.
        let copy = |fd: &OwnedFd| fcntl_dupfd_cloexec(fd, FIRST_PRIVATE).ok();
        let watched = self.input.as_ref().and_then(copy);
        let input = self.input.map_or(Ok(Input::Closed), open_input)?;
        let output = self.output.map_or(Ok(Output::Closed), open_output)?;
        Ok(Stdio { input, output, watched })
    }
}

fn open_input(fd: OwnedFd) -> io::Result<Input> {
    #[cfg(all(any(target_os = "linux", target_os = "android"), not(taut_portable)))]
    let fd = match super::ready::ReadHalf::open(fd) {
        Ok(half) => return Ok(Input::Ready(half)),
        Err(fd) => fd,
    };
    threaded::ReadHalf::start(Blocking(fd)).map(Input::Thread)
}

fn open_output(fd: OwnedFd) -> io::Result<Output> {
    #[cfg(all(any(target_os = "linux", target_os = "android"), not(taut_portable)))]
    let fd = match super::ready::WriteHalf::open(fd) {
        Ok(half) => return Ok(Output::Ready(half)),
        Err(fd) => fd,
    };
    threaded::WriteHalf::start(Blocking(fd)).map(Output::Thread)
}

/// A descriptor that blocks the caller even if somebody has set the shared non-blocking flag.
pub(super) struct Blocking(pub(super) OwnedFd);

impl Blocking {
    fn until_done(
        &self,
        flags: PollFlags,
        mut call: impl FnMut(&OwnedFd) -> rustix::io::Result<usize>,
    ) -> io::Result<usize> {
        loop {
            match call(&self.0) {
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => match poll(&mut [PollFd::new(&self.0, flags)], None) {
                    Ok(_) | Err(Errno::INTR) => {}
                    Err(other) => return Err(other.into()),
                },
                done => return Ok(done?),
            }
        }
    }
}

impl Read for Blocking {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.until_done(PollFlags::IN, |fd| rustix::io::read(fd, &mut *buf))
    }
}

impl Write for Blocking {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.until_done(PollFlags::OUT, |fd| rustix::io::write(fd, buf))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
