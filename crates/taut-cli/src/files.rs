//! Files that an option names: read up to a bound, and never for ever.
//!
//! An option may name a device that has no end, or a pipe whose writer sends nothing. So a thread of its own reads, and
//! a signal or `--max-time` ends the wait. Must not know what a file is for.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

use crate::problem::Problem;
use crate::signals;

/// The largest file of settings, keys, certificates or secrets: four times the largest bundle of authorities.
pub(crate) const SETTINGS: u64 = 1 << 20;

/// The largest file that becomes a message, or a part of one: the longest message.
pub(crate) const MESSAGE: u64 = 64 << 20;

/// How often a wait looks for signals.
const LOOK: Duration = Duration::from_millis(20);

/// The text of a file that has at most `most` bytes. The outer error is a signal.
pub(crate) fn try_text(path: &Path, most: u64) -> Result<io::Result<String>, Problem> {
    let path = path.to_owned();
    match std::fs::metadata(&path) {
        // Nothing to wait for.
        Ok(about) if about.is_file() => Ok(File::open(path).and_then(|file| read(file, most))),
        Ok(_) => bounded(move || File::open(path), most),
        Err(error) => Ok(Err(error)),
    }
}

/// The same, where there is nothing to do without it.
pub(crate) fn text(path: &Path, most: u64) -> Result<String, Problem> {
    let what = || format!("reading {}", path.display());
    try_text(path, most)?.map_err(|error| Problem::File { what: what(), error })
}

/// The text of stdin.
pub(crate) fn stdin(most: u64) -> Result<io::Result<String>, Problem> {
    bounded(|| Ok(io::stdin()), most)
}

/// The name of a file that others read by it: a regular one, and no larger than settings may be. One that is missing is
/// their affair.
pub(crate) fn plain(name: &str) -> Result<PathBuf, String> {
    match std::fs::metadata(name) {
        Ok(about) if !about.is_file() => {
            Err("it is not a regular file: write it to one".to_owned())
        }
        Ok(about) if about.len() > SETTINGS => Err(too_large(SETTINGS).to_string()),
        _ => Ok(name.into()),
    }
}

fn bounded<R: Read>(
    open: impl FnOnce() -> io::Result<R> + Send + 'static,
    most: u64,
) -> Result<io::Result<String>, Problem> {
    let (done, came) = sync_channel(1);
    let before = signals::count();
    std::thread::spawn(move || {
        // Opening a pipe waits for its writer, too. Nobody waits any more if a signal came.
        let _ = done.send(open().and_then(|from| read(from, most)));
    });
    loop {
        match came.recv_timeout(LOOK) {
            Ok(read) => return Ok(read),
            Err(RecvTimeoutError::Timeout) if signals::count() == before => {}
            Err(RecvTimeoutError::Timeout) => {
                signals::take();
                return Err(signals::problem());
            }
            Err(RecvTimeoutError::Disconnected) => {
                return Ok(Err(io::Error::other("it could not be read")));
            }
        }
    }
}

fn read(from: impl Read, most: u64) -> io::Result<String> {
    let mut all = Vec::new();
    from.take(most + 1).read_to_end(&mut all)?;
    if all.len() as u64 > most {
        return Err(too_large(most));
    }
    String::from_utf8(all)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8"))
}

fn too_large(most: u64) -> io::Error {
    io::Error::other(format!("it is larger than {} MiB", most >> 20))
}

// About Unix itself: devices.
#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;

    #[test]
    fn a_device_without_an_end_is_too_large_and_no_file_for_others() {
        let zero = Path::new("/dev/zero");
        let error = try_text(zero, SETTINGS).unwrap().unwrap_err().to_string();
        assert_eq!(error, "it is larger than 1 MiB");
        assert!(plain("/dev/zero").unwrap_err().contains("regular file"));
        assert_eq!(plain("Cargo.toml").unwrap(), Path::new("Cargo.toml"));
        assert_eq!(plain("/nowhere").unwrap(), Path::new("/nowhere"));
        assert!(text(Path::new("Cargo.toml"), SETTINGS).unwrap().contains("[package]"));
        assert!(text(Path::new("/nowhere"), SETTINGS).is_err());
    }
}
