//! The lock of the token store: one process at a time, and nobody waits for it for ever.
//!
//! Knows one file and the time that another process may hold it; must not know what the lock is for. A try never
//! blocks: a thread that waits for a lock could not be stopped, and the process would not end. Who has it for long
//! gives signs of life, the time of the file: without them it is stopped, by a signal or by a debugger.

use std::fs::{self, File, OpenOptions};
use std::future::Future;
use std::io;
use std::path::Path;
use std::pin::pin;
use std::time::{Duration, SystemTime};

/// How often the holder of the lock shows that it is alive.
const SIGN: Duration = Duration::from_millis(500);

/// Without a sign for so long, the holder is taken to be stopped. Some signs may be late on a busy machine.
const SILENT: Duration = Duration::from_secs(2);

/// Held while tokens are read, refreshed and written: one process at a time. Dropping it unlocks.
pub(super) struct StoreLock(File);

impl StoreLock {
    fn new(file: File) -> Self {
        let lock = Self(file);
        lock.sign();
        lock
    }

    /// Where the time cannot be set, others wait for less long: nothing is lost by that but the order.
    fn sign(&self) {
        let _ = self.0.set_modified(SystemTime::now());
    }

    /// Does what may take long while the lock is held.
    pub(super) async fn during<T>(&self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        loop {
            tokio::select! {
                done = &mut work => return done,
                () = tokio::time::sleep(SIGN) => self.sign(),
            }
        }
    }
}

/// Whether the process that has this lock gives no sign of life.
pub(super) fn is_silent(path: &Path) -> bool {
    let signed = fs::metadata(path).and_then(|about| about.modified());
    signed.is_ok_and(|at| at.elapsed().is_ok_and(|since| since >= SILENT))
}

/// Opens a file that one process has at a time; `None` while another has it.
///
/// `File::try_lock` does the same, and needs Rust 1.89.
#[cfg(unix)]
pub(super) fn try_lock(options: &OpenOptions, path: &Path) -> io::Result<Option<StoreLock>> {
    use rustix::fs::{FlockOperation, flock};
    use rustix::io::Errno;
    let file = options.open(path)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(StoreLock::new(file))),
        Err(Errno::WOULDBLOCK | Errno::INTR) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

#[cfg(windows)]
pub(super) fn try_lock(options: &OpenOptions, path: &Path) -> io::Result<Option<StoreLock>> {
    use std::os::windows::fs::OpenOptionsExt as _;
    const SHARING_VIOLATION: i32 = 32;
    match options.clone().share_mode(0).open(path) {
        Ok(file) => Ok(Some(StoreLock::new(file))),
        Err(error) if error.raw_os_error() == Some(SHARING_VIOLATION) => Ok(None),
        Err(error) => Err(error),
    }
}
