//! The file of the shell's history: in the user's folder for state, readable only by the user.

use std::ffi::OsString;
use std::path::PathBuf;

/// The file, its folder made; nothing if there is no place for it.
pub(super) fn file() -> Option<PathBuf> {
    let path = if cfg!(windows) {
        place(std::env::var_os("LOCALAPPDATA"), None)?
    } else {
        place(std::env::var_os("XDG_STATE_HOME"), std::env::var_os("HOME"))?
    };
    let mut folder = std::fs::DirBuilder::new();
    folder.recursive(true);
    // It may hold what was typed into arguments.
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut folder, 0o700);
    folder.create(path.parent()?).ok()?;
    Some(path)
}

/// As the XDG base directory specification has it; a relative path does not count. On Windows the
/// folder for state is the one for programs' data that does not travel with the user.
fn place(state: Option<OsString>, home: Option<OsString>) -> Option<PathBuf> {
    let state = state.map(PathBuf::from).filter(|path| path.is_absolute());
    let home = home.map(PathBuf::from).filter(|path| path.is_absolute());
    let folder = state.or_else(|| home.map(|home| home.join(".local/state")))?;
    Some(folder.join("taut/history"))
}

#[cfg(test)]
mod tests {
    use super::*;

    // About Unix itself: its paths, which are not absolute elsewhere.
    #[test]
    #[cfg(unix)]
    fn it_is_in_the_folder_for_state() {
        let at = |state: Option<&str>, home: Option<&str>| {
            place(state.map(Into::into), home.map(Into::into))
        };
        assert_eq!(at(Some("/s"), Some("/h")), Some("/s/taut/history".into()));
        assert_eq!(at(None, Some("/h")), Some("/h/.local/state/taut/history".into()));
        assert_eq!(at(Some("s"), Some("/h")), Some("/h/.local/state/taut/history".into()));
        assert_eq!(at(Some(""), None), None);
    }

    #[test]
    #[cfg(windows)]
    fn it_is_in_the_folder_for_programs_data() {
        let folder = PathBuf::from(r"C:\Users\me\AppData\Local");
        let expected = folder.join("taut/history");
        assert_eq!(place(Some(folder.into()), None), Some(expected));
        assert_eq!(place(None, None), None);
    }
}
