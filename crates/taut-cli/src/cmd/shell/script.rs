//! The shell without a terminal: lines from a file or from stdin.
//!
//! The first line that fails ends the session, unless `--keep-going` is given.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read as _};
use std::path::Path;

use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::mpsc;

use super::order;
use super::perform::Done;
use super::running::Running;
use crate::files;
use crate::output::RED;
use crate::problem::{Exit, Problem};
use crate::signals::Interrupts;

/// Lines that wait to be done at most: a script is not read faster than it is run.
const AHEAD: usize = 16;

/// A script, as it comes.
pub(super) struct Script {
    name: String,
    lines: mpsc::Receiver<io::Result<String>>,
}

impl Script {
    pub(super) fn open(path: &Path) -> Result<Self, Problem> {
        let what = || format!("reading {}", path.display());
        let file = File::open(path).map_err(|error| Problem::File { what: what(), error })?;
        Ok(Self::from(path.display().to_string(), BufReader::new(file)))
    }

    pub(super) fn stdin() -> Self {
        Self::from("stdin".to_owned(), BufReader::new(io::stdin()))
    }

    /// Reads in a thread of its own: whoever writes the lines may wait for what the last one said.
    fn from(name: String, mut reader: impl BufRead + Send + 'static) -> Self {
        let (line, lines) = mpsc::channel(AHEAD);
        std::thread::spawn(move || {
            while let Some(read) = next_line(&mut reader).transpose() {
                let failed = read.is_err();
                if line.blocking_send(read).is_err() || failed {
                    return;
                }
            }
        });
        Self { name, lines }
    }

    /// Does each line in turn. The code is that of the first that failed.
    pub(super) async fn run(
        mut self,
        running: &mut Running<'_>,
        interrupts: &mut Interrupts,
        keep_going: bool,
    ) -> Result<Exit, Problem> {
        let mut exit = Exit::Worked;
        let mut number = 0;
        loop {
            let typed = tokio::select! {
                typed = self.lines.recv() => typed,
                () = interrupts.next() => return Err(Problem::Interrupted),
            };
            let Some(typed) = typed else { return Ok(exit) };
            number += 1;
            let what = || format!("reading {}", self.name);
            let typed = typed.map_err(|error| Problem::File { what: what(), error })?;
            let Some(done) = step(running, interrupts, &typed, number).await? else { continue };
            if done.leave {
                return Ok(exit);
            }
            if done.exit == Exit::Worked {
                continue;
            }
            if exit == Exit::Worked {
                exit = done.exit;
            }
            if !running.output.json {
                let words = format!("{}:{number}: exit {}: {typed}", self.name, done.exit as u8);
                running.output.note(&running.output.err.paint(RED, words));
            }
            if !keep_going {
                return Ok(exit);
            }
        }
    }
}

/// The next line without its end, if it is no longer than a message may be.
fn next_line(reader: &mut impl BufRead) -> io::Result<Option<String>> {
    let mut line = Vec::new();
    if reader.by_ref().take(files::MESSAGE + 1).read_until(b'\n', &mut line)? == 0 {
        return Ok(None);
    }
    if line.len() as u64 > files::MESSAGE {
        let words = format!("a line is longer than {} MiB", files::MESSAGE >> 20);
        return Err(io::Error::other(words));
    }
    let end =
        line.strip_suffix(b"\n").map_or(&line[..], |line| line.strip_suffix(b"\r").unwrap_or(line));
    let text = std::str::from_utf8(end);
    text.map(|text| Some(text.to_owned()))
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// Does one line; nothing if there is nothing to do.
async fn step(
    running: &mut Running<'_>,
    interrupts: &mut Interrupts,
    typed: &str,
    number: usize,
) -> Result<Option<Done>, Problem> {
    let order = match order::read(typed) {
        Ok(None) => return Ok(None),
        Ok(Some(order)) => Ok(order),
        Err(meaningless) => Err(Problem::from(meaningless)),
    };
    let done = match order {
        Ok(order) => running.perform(order, interrupts).await,
        Err(problem) => Err(problem),
    };
    match done {
        Ok(done) => {
            let document = done.document.as_deref();
            running.line(Some(number), typed, done.exit, document, None)?;
            Ok(Some(done))
        }
        Err(over @ (Problem::NobodyReads | Problem::Interrupted | Problem::Ended)) => Err(over),
        Err(problem) => {
            let exit = running.fail(&problem, Some(number), typed)?;
            Ok(Some(Done { exit, document: None, leave: false }))
        }
    }
}

/// What a line came to, for a program.
#[derive(Serialize)]
struct Outcome<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
    typed: &'a str,
    exit: u8,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Value>,
}

impl Running<'_> {
    fn line(
        &self,
        line: Option<usize>,
        typed: &str,
        exit: Exit,
        result: Option<&RawValue>,
        error: Option<Value>,
    ) -> Result<(), Problem> {
        if !self.output.json {
            return Ok(());
        }
        self.output.json_line(&Outcome { line, typed, exit: exit as u8, result, error })
    }

    /// Shows what went wrong: in words, or as the outcome of its line.
    fn fail(&self, problem: &Problem, line: Option<usize>, typed: &str) -> Result<Exit, Problem> {
        let exit = problem.exit();
        if self.output.json {
            let error = problem.json()["error"].take();
            self.line(line, typed, exit, None, Some(error))?;
        } else {
            self.output.report(problem);
        }
        Ok(exit)
    }

    /// The outcome of a line that a person typed.
    pub(super) fn tell(&self, done: &Done, typed: &str) -> Result<(), Problem> {
        self.line(None, typed, done.exit, done.document.as_deref(), None)
    }

    /// What is wrong with a line that a person typed.
    pub(super) fn report(&self, problem: &Problem, typed: &str) -> Result<(), Problem> {
        self.fail(problem, None, typed).map(drop)
    }
}
