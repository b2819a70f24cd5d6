//! Gives a page to whatever opens pages on this system.
//!
//! Knows one program for each system. No shell is in between: addresses come from servers. Whether a page may be
//! opened is for the caller to decide.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

/// The process groups of the programs that were started.
static STARTED: Mutex<Vec<u32>> = Mutex::new(Vec::new());

/// Whether this process group is that of a browser that was started here.
#[cfg(all(target_os = "linux", not(taut_portable)))]
pub(crate) fn has_started(group: u32) -> bool {
    STARTED.lock().unwrap_or_else(PoisonError::into_inner).contains(&group)
}

/// The program that opens pages, and what stands before the address.
fn opener() -> (PathBuf, &'static [&'static str]) {
    if cfg!(target_os = "macos") {
        ("open".into(), &[])
    } else if cfg!(windows) {
        // `start` is a word of the command interpreter, which would read the address itself, and `explorer` opens
        // a folder for an address that it does not understand.
        let root = std::env::var_os("SystemRoot").unwrap_or_else(|| r"C:\Windows".into());
        let program = PathBuf::from(root).join(r"System32\rundll32.exe");
        (program, &["url.dll,FileProtocolHandler"])
    } else {
        ("xdg-open".into(), &[])
    }
}

/// Opens a page. The address begins with `http`, so it is no option.
pub(crate) fn open(url: &str) -> Result<(), String> {
    let (program, before) = opener();
    let mut command = Command::new(&program);
    command.args(before).arg(url);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // The browser that it may become is not ours to end with Ctrl-C.
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    // Nor with the command: it may make a session of its own (decision 0023).
    command.env(crate::leftovers::LIVES_ON, "1");
    let started = command.spawn();
    let mut child =
        started.map_err(|error| format!("{} does not start: {error}", program.display()))?;
    STARTED.lock().unwrap_or_else(PoisonError::into_inner).push(child.id());
    // Waited for, so that it leaves no zombie behind.
    std::thread::spawn(move || child.wait());
    Ok(())
}

// What opens pages elsewhere is looked for in the PATH; there it is a file, which has to be where it is said to be.
#[cfg(all(test, windows))]
mod tests {
    #[test]
    fn what_opens_pages_is_there() {
        let (program, _) = super::opener();
        assert!(program.is_file(), "{}", program.display());
    }
}
