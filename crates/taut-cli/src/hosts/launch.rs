//! A server by name as a process that somebody else starts: its words, environment and folder.
//!
//! For commands that carry bytes and need no client. Masks nothing and starts nothing.

use super::find::{Found, Server, Start};
use super::shape::How;
use super::target::unfilled;
use crate::mask;
use crate::problem::Problem;

/// What a host that gives a short environment gives (docs/guides/servers-by-name.md).
const BASE: [&str; 6] = ["HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER"];

/// A server ready to be started, and what it has of our environment unless it inherits all of it.
pub(crate) struct Launched {
    pub(crate) start: Start,
    pub(crate) base: Vec<(String, String)>,
}

/// How a server that was found is started.
///
/// # Errors
///
/// If it is no program, or lacks a variable; in words that say what to do.
pub(crate) fn launch_of(
    found: &Found,
    server: &Server,
    set: &[(String, String)],
) -> Result<Launched, Problem> {
    let from = || format!("{} in {}", server.name, found.shown(&server.place.path));
    let stdio = match &server.how {
        How::Stdio(stdio) => stdio,
        How::Remote { kind, url } => {
            return Err(Problem::Usage {
                what: format!("{} is not a stdio server: {kind} {}", from(), mask::url(url)),
                next: Some("`taut servers` shows which servers speak stdio".to_owned()),
            });
        }
        How::Wrong(what) => {
            let (file, line, column) =
                (found.shown(&server.place.path), server.line, server.column);
            return Err(Problem::usage(format!("{file}:{line}:{column}: {}: {what}", server.name)));
        }
    };
    let start = server
        .start(stdio, &found.around, set)
        .map_err(|missing| unfilled(&from(), &missing, &stdio.env))?;
    let known =
        |name: &&str| found.around.vars.get(*name).map(|value| ((*name).to_owned(), value.clone()));
    let base = if start.inherit { Vec::new() } else { BASE.iter().filter_map(known).collect() };
    Ok(Launched { start, base })
}
