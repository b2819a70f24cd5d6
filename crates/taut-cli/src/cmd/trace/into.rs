//! `taut trace --into NAME` and `--out-of NAME`: edits the file in which a host has the server.
//!
//! Knows files; what is changed in the text is `hosts/wrap.rs`. A copy is made first, the new file takes
//! the place of the old one at once, and anything doubtful is refused.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use taut::secrets::is_secret;

use crate::files;
use crate::hosts::{Found, How, Server, Surroundings, find, unknown, wrap};
use crate::output::Output;
use crate::own;
use crate::problem::{Exit, Problem};

/// What the copy's name ends with.
const BACKUP: &str = ".before-taut-trace";

/// Puts `taut trace` before a server.
pub(super) fn into(
    output: &Output,
    name: &str,
    config: &[PathBuf],
    record: Option<&Path>,
    unmasked: bool,
) -> Result<Exit, Problem> {
    let found = find(Surroundings::here(), config);
    let server = named(&found, name)?;
    let How::Stdio(stdio) = &server.how else {
        return Err(refused(&found, server, "it is not a stdio server"));
    };
    let folder = match record {
        Some(path) => found.around.cwd.join(path),
        None => traces(&found.around)?,
    };
    // A name that ends with a slash is a folder: each session gets a file of its own.
    let mut folder = folder.to_string_lossy().into_owned();
    if record.is_none() {
        folder.push('/');
    }
    let mut options: Vec<String> =
        ["--quiet", "--as", name, "--record", &folder].map(str::to_owned).to_vec();
    if unmasked {
        options.push("--unmasked".to_owned());
    }
    // What is plainly a setting need not be hidden, or nobody could read the capture.
    let hidden = |(name, value): &&(String, String)| value.contains('$') || is_secret(name, value);
    for (variable, _) in stdio.env.iter().filter(hidden) {
        options.extend(["--hide".to_owned(), variable.clone()]);
    }
    let text = read(&server.place.path)?;
    let new = wrap::wrap(&server.place, &text, name, &own::written(), &options)
        .map_err(|why| refused(&found, server, &why))?;
    let backup = backup(&server.place.path);
    // A file in which another server is traced is not what it was before.
    if !wrap::any_traced(&server.place, &text) {
        write(&backup, text.as_bytes(), &server.place.path)?;
    }
    write(&server.place.path, new.as_bytes(), &server.place.path)?;
    let file = found.shown(&server.place.path);
    output.note(&format!("{name} in {file} is traced from its next start on, to {folder}"));
    let copy = match backup.exists() {
        true => format!("a copy is in {}; ", found.shown(&backup)),
        false => String::new(),
    };
    output.note(&format!("{copy}{taut} trace --out-of {name} undoes it", taut = own::name()));
    Ok(Exit::Worked)
}

/// Takes `taut trace` out again.
pub(super) fn out_of(output: &Output, name: &str, config: &[PathBuf]) -> Result<Exit, Problem> {
    let found = find(Surroundings::here(), config);
    let server = named(&found, name)?;
    let path = &server.place.path;
    let text = read(path)?;
    let new =
        wrap::unwrap(&server.place, &text, name).map_err(|why| refused(&found, server, &why))?;
    write(path, new.as_bytes(), path)?;
    let backup = backup(path);
    output.note(&format!("{name} in {} is as it was", found.shown(path)));
    if let Ok(old) = fs::read(&backup)
        && !wrap::any_traced(&server.place, &new)
    {
        // The copy has done its work once the file is again what it was.
        if old == new.as_bytes() {
            let _ = fs::remove_file(&backup);
        } else {
            let copy = found.shown(&backup);
            output.note(&format!(
                "the file was changed meanwhile, so {copy} stays: it may hold secrets"
            ));
        }
    }
    Ok(Exit::Worked)
}

fn named<'f>(found: &'f Found, name: &str) -> Result<&'f Server, Problem> {
    found.named(name).ok_or_else(|| unknown(found, name))
}

fn refused(found: &Found, server: &Server, why: &str) -> Problem {
    let file = found.shown(&server.place.path);
    Problem::Usage {
        what: format!("{file} stays as it is: {why}"),
        next: Some(format!(
            "line {} has {}; by hand: put \"taut\", \"trace\", \"--\" before its command",
            server.line, server.name
        )),
    }
}

/// Where captures go unless somebody says.
fn traces(around: &Surroundings) -> Result<PathBuf, Problem> {
    let state = around.var("XDG_STATE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let state = state.or_else(|| Some(around.home.as_ref()?.join(".local/state")));
    let state = state.ok_or_else(|| Problem::Usage {
        what: "there is no home folder to keep captures in".to_owned(),
        next: Some("--record FOLDER/".to_owned()),
    })?;
    Ok(state.join("taut/traces"))
}

fn backup(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(BACKUP);
    name.into()
}

fn read(path: &Path) -> Result<String, Problem> {
    files::text(path, files::MESSAGE)
}

/// Puts a file in place at once, with the permissions of another; a link is followed.
fn write(path: &Path, bytes: &[u8], like: &Path) -> Result<(), Problem> {
    let put = || -> io::Result<()> {
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".{}", std::process::id()));
        let beside = PathBuf::from(name);
        let permissions = fs::metadata(like)?.permissions();
        let mut options = File::options();
        options.write(true).create_new(true);
        // It may hold secrets, so nobody else may read it before it has its own permissions.
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(&beside)?;
        let written = file
            .write_all(bytes)
            .and_then(|()| file.set_permissions(permissions))
            .and_then(|()| file.sync_all())
            .and_then(|()| fs::rename(&beside, &path));
        if written.is_err() {
            let _ = fs::remove_file(&beside);
        }
        written
    };
    put().map_err(|error| Problem::File { what: format!("writing {}", path.display()), error })
}
