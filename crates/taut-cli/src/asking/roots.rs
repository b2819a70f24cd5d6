//! Folders that a server may know of: `--root DIR` as a `file://` address (ROO-02).

use std::fmt::Write as _;
use std::path::Path;

use taut::Root;

use crate::problem::Problem;

/// The root that a folder is. It has to be there: a server that is shown a slip of the hand would
/// look for its files in vain (ROO-05).
pub(super) fn root(dir: &Path) -> Result<Root, Problem> {
    let what = || format!("--root {}", dir.display());
    let full = dir.canonicalize().map_err(|error| Problem::File { what: what(), error })?;
    if !full.is_dir() {
        let what = format!("{} is no folder", what());
        return Err(Problem::usage(what));
    }
    let root = Root::new(address(&full));
    Ok(match full.file_name() {
        Some(name) => root.name(name.to_string_lossy()),
        None => root,
    })
}

/// The address of a path. Whatever could be misread in one is written as its number.
fn address(path: &Path) -> String {
    let mut address = "file://".to_owned();
    let bytes = path.as_os_str().as_encoded_bytes();
    if !bytes.starts_with(b"/") {
        address.push('/');
    }
    for byte in bytes {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' | b':' => {
                address.push(char::from(*byte));
            }
            b'\\' if cfg!(windows) => address.push('/'),
            other => {
                let _ = write!(address, "%{other:02X}");
            }
        }
    }
    address
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roo_02_a_folder_is_a_file_address_whatever_its_name() {
        let table = [
            ("/", "file:///"),
            ("/home/ada", "file:///home/ada"),
            ("/a b/ä%#?", "file:///a%20b/%C3%A4%25%23%3F"),
        ];
        for (path, uri) in table {
            assert_eq!(address(Path::new(path)), uri);
        }
    }

    #[test]
    fn roo_05_what_is_no_folder_is_not_shown() {
        let words = |path: &str| root(Path::new(path)).unwrap_err().to_string();
        assert!(words("/nowhere/at/all").starts_with("--root /nowhere/at/all: "));
        let file = std::env::current_exe().unwrap();
        assert!(words(file.to_str().unwrap()).ends_with(" is no folder"));
    }
}
