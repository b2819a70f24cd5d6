//! Where a recording goes: its file, how large that may get, and the page that shows it.
//!
//! For `taut trace` and `taut bridge`. Must not know what is recorded.

use std::fs::File;
use std::path::Path;

use taut_trace::create;

use super::page;
use crate::problem::Problem;

/// How large a capture may get that nobody asked to keep.
const TEMPORARY: u64 = 1 << 30;

/// Where a recording goes.
#[derive(Default)]
pub(crate) struct Kept {
    /// The file, if something is kept.
    pub(crate) file: Option<File>,
    /// How large it may get.
    pub(crate) limit: Option<u64>,
    /// What to say about it on stderr.
    pub(crate) told: Vec<String>,
}

/// Makes the file, and serves the page if one is wanted. `name` is part of a file's name that is made up.
pub(crate) fn keep(record: Option<&Path>, page: bool, name: &str) -> Result<Kept, Problem> {
    let mut kept = match record {
        Some(path) => {
            let (file, path) = create(path, name).map_err(failed(path))?;
            let told = vec![format!("recording to {}", path.display())];
            Kept { file: Some(file), limit: None, told }
        }
        None if page => {
            // The page reads a file; one that nobody asked for has no name, and is gone with us.
            let folder = std::env::temp_dir();
            let (file, path) = create(&folder, name).map_err(failed(&folder))?;
            let _ = std::fs::remove_file(path);
            Kept { file: Some(file), limit: Some(TEMPORARY), told: Vec::new() }
        }
        None => Kept::default(),
    };
    if let (true, Some(file)) = (page, &kept.file) {
        let failed = |error| Problem::File { what: "opening the capture".to_owned(), error };
        let address = page::serve(file.try_clone().map_err(failed)?, true)?;
        kept.told.push(format!("the page is at {address}"));
    }
    Ok(kept)
}

fn failed(path: &Path) -> impl FnOnce(std::io::Error) -> Problem {
    let what = format!("making {}", path.display());
    move |error| Problem::File { what, error }
}
