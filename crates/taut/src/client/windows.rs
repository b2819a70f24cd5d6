//! What differs on Windows about finding a program and about its environment.
//!
//! Pure: the file system is a question passed in, so that the rules are tested everywhere. Written
//! for Windows and not yet run there. Obeys the scars W1 (`npx` is `npx.cmd`) and W3.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The variables that the official SDKs pass on, plus those without which programs fail to start
/// or to find their own parts (W3). Compared case-blind.
pub(crate) const SAFE: [&str; 16] = [
    "APPDATA",
    "COMSPEC",
    "HOMEDRIVE",
    "HOMEPATH",
    "LOCALAPPDATA",
    "PATH",
    "PATHEXT",
    "PROCESSOR_ARCHITECTURE",
    "PROGRAMDATA",
    "PROGRAMFILES",
    "SYSTEMDRIVE",
    "SYSTEMROOT",
    "TEMP",
    "USERNAME",
    "USERPROFILE",
    "WINDIR",
];

/// What the system takes for `PATHEXT` when the environment has none, as far as it can be started
/// without a script host.
const DEFAULT_PATHEXT: &str = ".COM;.EXE;.BAT;.CMD";

/// The first file that `program` can mean in `dir`: itself if it carries a known extension, else
/// with each extension of `pathext` in turn. A bare `npx` beside `npx.cmd` is a shell script that
/// Windows cannot start, so the name as it stands comes last (W1).
pub(crate) fn resolve(
    dir: &Path,
    program: &Path,
    pathext: Option<&str>,
    is_file: impl Fn(&Path) -> bool,
) -> Option<PathBuf> {
    let extensions =
        || pathext.unwrap_or(DEFAULT_PATHEXT).split(';').map(str::trim).filter(|e| e.len() > 1);
    let plain = dir.join(program);
    let has_known_extension = plain.extension().is_some_and(|own| {
        extensions().any(|known| own.eq_ignore_ascii_case(known.trim_start_matches('.')))
    });
    let with_extension = extensions().map(|extension| {
        let mut path = OsString::from(&plain);
        path.push(extension.to_ascii_lowercase());
        PathBuf::from(path)
    });
    let first = has_known_extension.then(|| plain.clone());
    first.into_iter().chain(with_extension).chain([plain.clone()]).find(|path| is_file(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn w1_a_name_without_extension_finds_the_cmd_file() {
        type Case<'a> = (&'a str, Option<&'a str>, &'a [&'a str], Option<&'a str>);
        let cases: &[Case<'_>] = &[
            ("npx", None, &["npx", "npx.cmd"], Some("npx.cmd")),
            ("npx", None, &["npx.exe", "npx.cmd"], Some("npx.exe")),
            ("npx", Some(".CMD;.EXE"), &["npx.exe", "npx.cmd"], Some("npx.cmd")),
            ("npx.cmd", None, &["npx.cmd", "npx.cmd.exe"], Some("npx.cmd")),
            ("my.server", None, &["my.server.exe"], Some("my.server.exe")),
            ("tool", None, &["tool"], Some("tool")),
            ("tool", Some(""), &["tool"], Some("tool")),
            ("gone", None, &["npx.cmd"], None),
        ];
        for (program, pathext, files, found) in cases {
            let is_file = |path: &Path| files.iter().any(|file| path == Path::new("d").join(file));
            let answer = resolve(Path::new("d"), Path::new(program), *pathext, is_file);
            assert_eq!(answer, found.map(|f| Path::new("d").join(f)), "{program} {pathext:?}");
        }
    }

    #[test]
    fn w3_the_safe_list_has_what_windows_programs_need() {
        for name in ["PATHEXT", "COMSPEC", "WINDIR", "PROGRAMDATA", "PROGRAMFILES", "SYSTEMROOT"] {
            assert!(SAFE.contains(&name), "{name}");
        }
    }
}
