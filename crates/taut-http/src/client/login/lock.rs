//! The lock of the token store: one process at a time, and nobody waits for it for ever.
//!
//! Knows one file and the time that another process may hold it; must not know what the lock is for. A try never
//! blocks: a thread that waits for a lock could not be stopped, and the process would not end.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;

/// Held while tokens are read, refreshed and written: one process at a time.
pub(super) struct StoreLock(#[allow(dead_code, reason = "dropping it unlocks")] File);

/// Opens a file that one process has at a time; `None` while another has it.
///
/// `File::try_lock` does the same, and needs Rust 1.89.
#[cfg(unix)]
pub(super) fn try_lock(options: &OpenOptions, path: &Path) -> io::Result<Option<StoreLock>> {
    use rustix::fs::{FlockOperation, flock};
    use rustix::io::Errno;
    let file = options.open(path)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(StoreLock(file))),
        Err(Errno::WOULDBLOCK | Errno::INTR) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

#[cfg(windows)]
pub(super) fn try_lock(options: &OpenOptions, path: &Path) -> io::Result<Option<StoreLock>> {
    use std::os::windows::fs::OpenOptionsExt as _;
    const SHARING_VIOLATION: i32 = 32;
    match options.clone().share_mode(0).open(path) {
        Ok(file) => Ok(Some(StoreLock(file))),
        Err(error) if error.raw_os_error() == Some(SHARING_VIOLATION) => Ok(None),
        Err(error) => Err(error),
    }
}
