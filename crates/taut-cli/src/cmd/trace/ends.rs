//! The outer ends of a traced server: our own stdin, stdout and stderr as plain descriptors.
//!
//! Knows that a descriptor may be set to not block by somebody else who shares it, and how to give one
//! up so that the other side notices. Must not look at the bytes.

use std::io;

/// One of our standard streams.
#[derive(Clone, Copy, Debug)]
pub(super) enum Out {
    Stdout,
    Stderr,
}

#[cfg(unix)]
mod imp {
    use std::io;
    use std::os::fd::BorrowedFd;

    use rustix::event::{PollFd, PollFlags, poll};
    use rustix::io::Errno;
    use rustix::stdio::{dup2_stdin, dup2_stdout, stderr, stdin, stdout};

    use super::Out;

    fn wait(fd: BorrowedFd<'_>, flags: PollFlags) {
        // A failure here leads back to the read or write, which says what is wrong.
        let _ = poll(&mut [PollFd::from_borrowed_fd(fd, flags)], None);
    }

    pub(in super::super) fn read(buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match rustix::io::read(stdin(), &mut *buffer) {
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => wait(stdin(), PollFlags::IN),
                // A terminal that is gone.
                Err(Errno::IO) => return Ok(0),
                other => return Ok(other?),
            }
        }
    }

    pub(in super::super) fn write(to: Out, mut bytes: &[u8]) -> io::Result<()> {
        let fd = match to {
            Out::Stdout => stdout(),
            Out::Stderr => stderr(),
        };
        while !bytes.is_empty() {
            match rustix::io::write(fd, bytes) {
                Ok(written) => bytes = &bytes[written..],
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => wait(fd, PollFlags::OUT),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn nothing() -> io::Result<std::fs::File> {
        std::fs::File::options().read(true).write(true).open("/dev/null")
    }

    /// Whoever writes to us is told that nobody reads any more, as the server would have told them.
    pub(in super::super) fn give_up_stdin() {
        let _ = nothing().and_then(|null| Ok(dup2_stdin(&null)?));
    }

    /// Whoever reads from us is told that no more comes.
    pub(in super::super) fn give_up_stdout() {
        let _ = nothing().and_then(|null| Ok(dup2_stdout(&null)?));
    }
}

#[cfg(not(unix))]
mod imp {
    use std::io::{self, Read as _, Write as _};

    use super::Out;

    pub(in super::super) fn read(buffer: &mut [u8]) -> io::Result<usize> {
        io::stdin().lock().read(buffer)
    }

    pub(in super::super) fn write(to: Out, bytes: &[u8]) -> io::Result<()> {
        match to {
            Out::Stdout => {
                let mut out = io::stdout().lock();
                out.write_all(bytes)?;
                out.flush()
            }
            Out::Stderr => io::stderr().lock().write_all(bytes),
        }
    }

    pub(in super::super) fn give_up_stdin() {}

    pub(in super::super) fn give_up_stdout() {}
}

/// Reads from our stdin; nothing means its end.
pub(super) fn read(buffer: &mut [u8]) -> io::Result<usize> {
    imp::read(buffer)
}

/// Writes all of it.
pub(super) fn write(to: Out, bytes: &[u8]) -> io::Result<()> {
    imp::write(to, bytes)
}

pub(super) use imp::{give_up_stdin, give_up_stdout};
