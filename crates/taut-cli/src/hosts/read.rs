//! Reads a file whose name comes from a configuration, with a limit on its size and without blocking.
//!
//! A project's file may name `/dev/zero`, or a pipe without a writer (A4). Must not know what the file is
//! for.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

/// The largest file that a host's file may name: an `.env` file or one secret, and no more.
const LARGEST: u64 = 1 << 20;

/// What is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Only {
    /// Regular files; others could keep us waiting for ever.
    Files,
    /// Pipes and devices too, because a person has named it.
    Anything,
}

/// All bytes of a file, if they are not more than `most`.
pub(super) fn file(path: &Path, most: u64, only: Only) -> io::Result<Vec<u8>> {
    // Looked at before it is opened: opening a pipe waits for its writer.
    if only == Only::Files && !std::fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut all = Vec::new();
    File::open(path)?.take(most + 1).read_to_end(&mut all)?;
    if all.len() as u64 > most {
        return Err(io::Error::other(format!("it is larger than {} MiB", most >> 20)));
    }
    Ok(all)
}

/// The text of a file that a host's file names.
pub(super) fn text_file(path: &Path) -> io::Result<String> {
    let bytes = file(path, LARGEST, Only::Files)?;
    String::from_utf8(bytes).map_err(|_| io::Error::other("it is not UTF-8"))
}

// About Unix itself: a device.
#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_no_file_and_what_is_too_large_is_refused() {
        let error = |path: &Path, most, only| file(path, most, only).unwrap_err().to_string();
        let zero = Path::new("/dev/zero");
        assert_eq!(error(zero, 10, Only::Files), "it is not a regular file");
        assert_eq!(error(zero, 1 << 20, Only::Anything), "it is larger than 1 MiB");
        assert!(text_file(Path::new("Cargo.toml")).is_ok());
    }
}
