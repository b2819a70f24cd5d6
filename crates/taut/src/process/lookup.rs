//! Which file a command means, and why it could not be started if the system says no.
//!
//! Asks the file system, starts nothing. The rule is on [`Command`](super::Command): the child's
//! `PATH`, and paths that count from the child's directory (W10). Obeys the scars P17, P18, W1, W4, W10.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::command::Command;
use super::error::{NotFoundHint, SpawnError};

/// Where the C library looks when there is no `PATH`.
#[cfg(not(windows))]
fn default_path() -> OsString {
    "/bin:/usr/bin".into()
}

/// Where Windows itself looks when there is no `PATH`.
#[cfg(windows)]
fn default_path() -> OsString {
    let root = std::env::var_os("SystemRoot").unwrap_or_else(|| r"C:\Windows".into());
    let mut path = root.clone();
    path.push(r"\System32;");
    path.push(root);
    path
}

/// How much of a file is read to see what it is: Linux looks at the first 256 bytes for `#!`.
const HEAD: u64 = 256;

/// What a command means on this machine.
pub(crate) struct Found {
    pub(crate) program: PathBuf,
    pub(crate) env: BTreeMap<OsString, OsString>,
}

/// Finds the file that `command` means.
pub(crate) fn find(command: &Command) -> Result<Found, SpawnError> {
    let io = |source| SpawnError::Io { program: command.program().to_owned(), source };
    let env = command.effective_env();
    if let Some(name) = env.keys().find(|name| !is_name(name)) {
        let text = format!("{name:?} cannot be the name of an environment variable");
        return Err(io(io::Error::new(io::ErrorKind::InvalidInput, text)));
    }
    let base = match command.directory() {
        Some(dir) if !dir.is_dir() => {
            return Err(SpawnError::MissingDirectory { dir: dir.to_owned() });
        }
        Some(dir) => std::path::absolute(dir).map_err(io)?,
        None => std::env::current_dir().map_err(io)?,
    };
    let program = Path::new(command.program());
    let searched = if is_bare(program) { path_dirs(&env, &base) } else { vec![base.clone()] };

    let mut blocked = None;
    for dir in &searched {
        match judge(dir, program, &env) {
            Candidate::Ready(program) => return Ok(Found { program, env }),
            // As execvp does: something that may not be executed hides nothing behind it.
            Candidate::Blocked(path) => blocked = blocked.or(Some(path)),
            Candidate::Absent => {}
        }
    }
    if let Some(path) = blocked {
        return Err(SpawnError::NotExecutable { path });
    }
    let hint = hint(program, &env);
    let searched = if is_bare(program) { searched } else { vec![base.join(program)] };
    Err(SpawnError::NotFound { program: command.program().to_owned(), searched, hint })
}

/// Puts a refusal by the system into words: `error` came from starting the existing file `program`.
pub(crate) fn explain(command: &Command, program: &Path, error: io::Error) -> SpawnError {
    if let Some(dir) = command.directory().filter(|dir| !dir.is_dir()) {
        return SpawnError::MissingDirectory { dir: dir.to_owned() };
    }
    let path = program.to_owned();
    match error.kind() {
        _ if is_no_program(&error) => SpawnError::NotExecutable { path },
        io::ErrorKind::PermissionDenied => SpawnError::NotExecutable { path },
        // The file is there, so what is missing is something that the file asks for.
        io::ErrorKind::NotFound => match wants(program) {
            Some(NeededFile::Interpreter(interpreter)) => {
                SpawnError::BadInterpreter { path, interpreter }
            }
            Some(NeededFile::Loader) => SpawnError::MissingLoader { path },
            None => SpawnError::Io { program: command.program().to_owned(), source: error },
        },
        _ => SpawnError::Io { program: command.program().to_owned(), source: error },
    }
}

/// Whether Windows finds no program in the file (`ERROR_BAD_EXE_FORMAT`, `ERROR_EXE_MACHINE_TYPE_MISMATCH`).
fn is_no_program(error: &io::Error) -> bool {
    cfg!(windows) && matches!(error.raw_os_error(), Some(193 | 216))
}

enum Candidate {
    Ready(PathBuf),
    Blocked(PathBuf),
    Absent,
}

#[cfg(unix)]
fn judge(dir: &Path, program: &Path, _env: &BTreeMap<OsString, OsString>) -> Candidate {
    use rustix::fs::{Access, AtFlags, CWD, accessat};

    if program.as_os_str().is_empty() {
        return Candidate::Absent;
    }
    let path = dir.join(program);
    match path.metadata() {
        Err(_) => Candidate::Absent,
        // A directory of that name on PATH is nothing; one that was asked for by path is a mistake.
        Ok(meta) if meta.is_dir() && is_bare(program) => Candidate::Absent,
        Ok(meta) if meta.is_file() => {
            match accessat(CWD, &path, Access::EXEC_OK, AtFlags::EACCESS) {
                Ok(()) => Candidate::Ready(path),
                Err(_) => Candidate::Blocked(path),
            }
        }
        Ok(_) => Candidate::Blocked(path),
    }
}

#[cfg(windows)]
fn judge(dir: &Path, program: &Path, env: &BTreeMap<OsString, OsString>) -> Candidate {
    let pathext = env.iter().find(|(name, _)| name.eq_ignore_ascii_case("PATHEXT"));
    let pathext = pathext.and_then(|(_, value)| value.to_str());
    match resolve(dir, program, pathext, Path::is_file) {
        Some(path) => Candidate::Ready(path),
        // A directory that was asked for by path is a mistake that can be told.
        None if !is_bare(program) && dir.join(program).is_dir() => {
            Candidate::Blocked(dir.join(program))
        }
        None => Candidate::Absent,
    }
}

/// What the system takes for `PATHEXT` when the environment has none, as far as it can be started
/// without a script host.
#[cfg(any(windows, test))]
const DEFAULT_PATHEXT: &str = ".COM;.EXE;.BAT;.CMD";

/// The first file that `program` can mean in `dir`: itself if it carries a known extension, else
/// with each extension of `pathext` in turn. A bare `npx` beside `npx.cmd` is a shell script that
/// Windows cannot start, so the name as it stands comes last (W1).
#[cfg(any(windows, test))]
fn resolve(
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

fn hint(program: &Path, env: &BTreeMap<OsString, OsString>) -> NotFoundHint {
    if program.as_os_str().as_encoded_bytes().contains(&b' ') {
        return NotFoundHint::Spaces;
    }
    if !is_bare(program) {
        return NotFoundHint::GivenPath;
    }
    let ours = std::env::var_os("PATH").unwrap_or_default();
    let on_ours = std::env::split_paths(&ours)
        .find(|dir| dir.is_absolute() && matches!(judge(dir, program, env), Candidate::Ready(_)));
    match on_ours {
        Some(dir) => NotFoundHint::OnOurPath(dir),
        None if path_of(env).is_none() => NotFoundHint::NoPath,
        None => NotFoundHint::NotOnPath,
    }
}

/// Whether the program is a mere name, to be looked up in `PATH`.
fn is_bare(program: &Path) -> bool {
    let bytes = program.as_os_str().as_encoded_bytes();
    !bytes.iter().any(|byte| std::path::is_separator(char::from(*byte)))
}

fn is_name(name: &OsStr) -> bool {
    is_name_on(cfg!(windows), name.as_encoded_bytes())
}

/// A name ends at the first `=`. Only Windows has names that begin with one: it keeps a directory per drive in
/// variables named like `=C:`.
fn is_name_on(windows: bool, name: &[u8]) -> bool {
    let rest = if windows { name.strip_prefix(b"=").unwrap_or(name) } else { name };
    !rest.is_empty() && !rest.contains(&b'=')
}

fn path_of(env: &BTreeMap<OsString, OsString>) -> Option<&OsString> {
    if cfg!(windows) {
        return env.iter().find(|(k, _)| k.eq_ignore_ascii_case("PATH")).map(|(_, v)| v);
    }
    env.get(OsStr::new("PATH"))
}

fn path_dirs(env: &BTreeMap<OsString, OsString>, base: &Path) -> Vec<PathBuf> {
    let path = path_of(env).cloned().unwrap_or_else(default_path);
    // An empty entry would mean the working directory, which is hardly ever meant.
    let dirs = std::env::split_paths(&path).filter(|dir| !dir.as_os_str().is_empty());
    dirs.map(|dir| base.join(dir)).collect()
}

enum NeededFile {
    Interpreter(PathBuf),
    Loader,
}

/// What a file asks the kernel to load beside it, if that can be told.
fn wants(program: &Path) -> Option<NeededFile> {
    let mut head = Vec::new();
    File::open(program).ok()?.take(HEAD).read_to_end(&mut head).ok()?;
    if head.starts_with(b"\x7fELF") {
        return Some(NeededFile::Loader);
    }
    let line = head.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    // The kernel ends the name at a blank, and at a blank only: a carriage return belongs to it.
    let mut words = line.split(|byte| matches!(byte, b' ' | b'\t')).filter(|word| !word.is_empty());
    Some(NeededFile::Interpreter(os_path(words.next()?)))
}

#[cfg(unix)]
fn os_path(bytes: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt as _;
    PathBuf::from(OsStr::from_bytes(bytes))
}

#[cfg(not(unix))]
fn os_path(bytes: &[u8]) -> PathBuf {
    PathBuf::from(String::from_utf8_lossy(bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_of_a_variable_has_no_equals_sign_but_for_the_first_on_windows() {
        let table = [
            ("A", true, true),
            ("", false, false),
            ("=", false, false),
            ("A=B", false, false),
            ("A=", false, false),
            ("=C:", false, true),
            ("=C:=", false, false),
        ];
        for (name, unix, windows) in table {
            let judged = [false, true].map(|windows| is_name_on(windows, name.as_bytes()));
            assert_eq!(judged, [unix, windows], "{name}");
        }
    }

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
}
