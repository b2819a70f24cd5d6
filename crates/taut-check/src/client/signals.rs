//! How a played server sees SIGTERM: a shell stands in its place, ignores the signal and leaves a file.
//!
//! A handler of our own would need `unsafe`. Unix only: elsewhere the server is started as it is.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The scenario that is played behind the shell.
const DEAF: &str = "deaf";

/// Leaves a file at SIGTERM, and stays for as long as the player does. The player ignores the signal, which may be sent
/// to the whole group.
const SHELL: &str = r#"told=$1; shift
trap ': > "$told"' TERM
exec 3<&0
( trap '' TERM; exec "$@" <&3 3<&- ) &
player=$!
exec 3<&- 0</dev/null
while kill -0 "$player" 2>/dev/null; do wait "$player"; done"#;

/// The file that says that the signal came: not in the folder, whose files are read as what players wrote.
fn file(folder: &Path) -> PathBuf {
    folder.with_extension("term")
}

/// The command of a player in a scenario.
pub(super) fn command(scenario: &str, folder: &Path, player: Vec<OsString>) -> Vec<OsString> {
    if scenario != DEAF || !cfg!(unix) {
        return player;
    }
    let shell = ["/bin/sh", "-c", SHELL, "sh"].into_iter().map(OsString::from);
    shell.chain([file(folder).into_os_string()]).chain(player).collect()
}

/// What a player asks about the shell before it.
pub(super) struct Guard {
    file: Option<PathBuf>,
    #[cfg(unix)]
    shell: Option<rustix::process::Pid>,
}

impl Guard {
    pub(super) fn new(scenario: &str, folder: &Path) -> Self {
        let behind = scenario == DEAF && cfg!(unix);
        Self {
            file: behind.then(|| file(folder)),
            #[cfg(unix)]
            shell: rustix::process::getppid().filter(|_| behind),
        }
    }

    /// When the signal came, if it did since the last time.
    pub(super) fn told(&self) -> Option<SystemTime> {
        let file = self.file.as_ref()?;
        let at = std::fs::metadata(file).ok()?.modified().ok()?;
        std::fs::remove_file(file).is_ok().then_some(at)
    }

    /// Whether the shell was killed, which the client meant for the server.
    pub(super) fn is_gone(&self) -> bool {
        #[cfg(unix)]
        let gone = self.shell.is_some() && rustix::process::getppid() != self.shell;
        #[cfg(not(unix))]
        let gone = false;
        gone
    }
}
