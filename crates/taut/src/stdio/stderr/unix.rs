//! One write to descriptor 2 that does not wait.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::SendFlags;
use rustix::stdio::stderr;

pub(super) fn offer(bytes: &[u8]) -> rustix::io::Result<()> {
    match rustix::net::send(stderr(), bytes, SendFlags::DONTWAIT) {
        Err(Errno::NOTSOCK) => {}
        done => return done.map(drop),
    }
    let stderr = stderr();
    let mut fds = [PollFd::new(&stderr, PollFlags::OUT)];
    poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }))?;
    if !fds[0].revents().contains(PollFlags::OUT) {
        return Err(Errno::AGAIN);
    }
    write_at_once(bytes)
}

/// Between the look and the write another thread may have filled the pipe, so the write itself is
/// told not to wait, where the system has a way to say so.
#[cfg(all(target_os = "linux", not(taut_portable)))]
fn write_at_once(bytes: &[u8]) -> rustix::io::Result<()> {
    use rustix::io::{ReadWriteFlags, pwritev2, write};
    use std::io::IoSlice;

    /// As an offset: wherever the file is.
    const HERE: u64 = u64::MAX;
    match pwritev2(stderr(), &[IoSlice::new(bytes)], HERE, ReadWriteFlags::NOWAIT) {
        // An older system, or a kind of file that knows no such flag (a terminal, a log file).
        Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => write(stderr(), bytes).map(drop),
        done => done.map(drop),
    }
}

#[cfg(not(all(target_os = "linux", not(taut_portable))))]
fn write_at_once(bytes: &[u8]) -> rustix::io::Result<()> {
    rustix::io::write(stderr(), bytes).map(drop)
}
