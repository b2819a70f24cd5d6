//! Why a program could not be started, and what to try.
//!
//! Knows the words. Must not know how a program is found or started: `lookup.rs` and `start.rs`
//! make these errors. Obeys the scars P17 (each reason has its own words), P18 and W4.

use std::error::Error;
use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::PathBuf;

/// Why a program could not be started.
///
/// Each reason has its own words, and they say what to try next.
#[derive(Debug)]
#[non_exhaustive]
pub enum SpawnError {
    /// There is no such program.
    NotFound {
        /// The program as it was given.
        program: OsString,
        /// The directories of the child's `PATH` that were searched; or, for a program given with
        /// a path, the one place that was looked at.
        searched: Vec<PathBuf>,
        /// What is likely to be wrong.
        hint: NotFoundHint,
    },
    /// The program was found and may not be executed.
    NotExecutable {
        /// The file, or the directory that was given in its place.
        path: PathBuf,
    },
    /// The program is a script, and the interpreter in its first line does not exist.
    BadInterpreter {
        /// The script.
        path: PathBuf,
        /// What its first line asks for.
        interpreter: PathBuf,
    },
    /// The program is a binary, and the loader that it asks for does not exist.
    MissingLoader {
        /// The binary.
        path: PathBuf,
    },
    /// The directory to start the program in does not exist.
    MissingDirectory {
        /// The directory.
        dir: PathBuf,
    },
    /// The system refused for another reason.
    Io {
        /// The program as it was given.
        program: OsString,
        /// What the system said.
        source: io::Error,
    },
}

/// What is likely to be wrong when a program is not found.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NotFoundHint {
    /// The program's name holds a space: probably a whole command line.
    Spaces,
    /// The child's environment has no `PATH`.
    NoPath,
    /// Our own `PATH` has it in this directory, the child's has not.
    OnOurPath(PathBuf),
    /// It was given with a path, so `PATH` played no role.
    GivenPath,
    /// It is not installed, or lies outside a short `PATH`, as desktop programs have it.
    NotOnPath,
}

impl fmt::Display for NotFoundHint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Spaces => f.write_str(
                "the name holds a space: give the program and each of its arguments separately",
            ),
            Self::NoPath => {
                f.write_str("the child's environment has no PATH: set one, or give the full path")
            }
            Self::OnOurPath(dir) => write!(
                f,
                "it is in {}, which is on our own PATH but not on the child's: set PATH for the \
                 child, or give the full path",
                dir.display()
            ),
            Self::GivenPath => f.write_str(
                "check the path; a relative one counts from the directory the program starts in",
            ),
            // W4: version managers extend PATH in shell start-up files that desktop programs skip.
            Self::NotOnPath => f.write_str(
                "install it, or give the full path (desktop programs do not see the PATH of your \
                 shell)",
            ),
        }
    }
}

impl fmt::Display for SpawnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound { program, searched, hint } => {
                write!(f, "program {program:?} not found")?;
                for (at, dir) in searched.iter().enumerate() {
                    let joint = if at == 0 { "; looked in " } else { ", " };
                    let joint =
                        if *hint == NotFoundHint::GivenPath { "; looked for " } else { joint };
                    write!(f, "{joint}{}", dir.display())?;
                }
                write!(f, "; {hint}")
            }
            Self::NotExecutable { path } if path.is_dir() => {
                write!(f, "{} is a directory, not a program", path.display())
            }
            Self::NotExecutable { path } if cfg!(windows) => write!(
                f,
                "{} is not a program that Windows can start; name its interpreter as the program \
                 and the file as its argument",
                path.display()
            ),
            Self::NotExecutable { path } => write!(
                f,
                "{} may not be executed; try chmod +x, or name its interpreter as the program and \
                 the file as its argument",
                path.display()
            ),
            Self::BadInterpreter { path, interpreter } => {
                let shown = path.display();
                write!(
                    f,
                    "{shown} asks for the interpreter {interpreter:?}, which does not exist"
                )?;
                // The kernel takes the carriage return for a part of the name.
                if interpreter.as_os_str().as_encoded_bytes().ends_with(b"\r") {
                    f.write_str("; save the file with Unix line ends")
                } else {
                    f.write_str("; install it, or correct the first line")
                }
            }
            Self::MissingLoader { path } => write!(
                f,
                "{} asks for a loader that does not exist here; it was built for another system \
                 (glibc or musl, 32 or 64 bit): install one built for this system",
                path.display()
            ),
            Self::MissingDirectory { dir } => write!(
                f,
                "the directory {} to start the program in does not exist; create it, or correct \
                 the path",
                dir.display()
            ),
            Self::Io { program, source } => write!(f, "could not start {program:?}: {source}"),
        }
    }
}

impl Error for SpawnError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}
