//! What went wrong, which exit code that is, and what to try next.
//!
//! Knows every error that the command can end with. Must not print.

use std::collections::HashSet;
use std::fmt;
use std::io;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use taut::error::{ConnectReason, SecondProcess};
use taut::rpc::Fault;
use taut::{Ending, Error, process::SpawnError};

use crate::cells::cut;
use crate::own;
use crate::reach::CONNECTING;
use crate::secrets;
use crate::sent::Sent;
use crate::variables;

/// How the command ends: the one list of exit codes (docs/command.md).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// It worked.
    Worked = 0,
    /// The tool was run and reported failure.
    ToolFailed = 1,
    /// The command line is wrong.
    Usage = 2,
    /// The server said no.
    Refused = 3,
    /// The server could not be started, or no connection came of it.
    NoConnection = 4,
    /// The server broke the protocol, or went away.
    Violation = 5,
    /// A request was not answered in time.
    TimedOut = 6,
    /// The result is there, and could not be written.
    Unwritten = 7,
    /// Interrupted by a signal: 128 and the number of SIGINT, as shells say it.
    Interrupted = 130,
}

impl From<Exit> for std::process::ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// Columns of the data of an error that are shown: the whole of it is in the document of `--json`.
const DATA: usize = 2000;

/// What went wrong.
#[derive(Debug)]
pub(crate) enum Problem {
    /// With the server. `stdout` and `stderr` are the end of what it wrote there (on stdout what is no message), if
    /// the error does not say it.
    Server { error: Error, stdout: Box<str>, stderr: Box<str> },
    /// Another, of which it is known better what to try.
    Hinted { problem: Box<Self>, next: String },
    /// With the command line: what, and what to try.
    Usage { what: String, next: Option<String> },
    /// With a login.
    #[cfg_attr(
        not(feature = "login"),
        allow(dead_code, reason = "without logins nobody makes one")
    )]
    Login { what: String, next: Option<String>, exit: Exit },
    /// With a file that is read or made ready before anything is asked.
    File { what: String, error: io::Error },
    /// With our own output, after the server answered.
    Unwritten { what: String, error: io::Error },
    /// The reader of stdout has closed it; not reported.
    NobodyReads,
    /// A signal came.
    Interrupted,
    /// A signal came that wants more than what is being done to end.
    Ended,
    /// The time of `--max-time` is over.
    Over(Duration),
}

impl Problem {
    pub(crate) fn usage(what: impl Into<String>) -> Self {
        Self::Usage { what: what.into(), next: None }
    }

    /// The same with another hint.
    pub(crate) fn hinted(self, next: String) -> Self {
        Self::Hinted { problem: Box::new(self), next }
    }

    pub(crate) fn output(error: io::Error) -> Self {
        // Windows has a second name for it: a pipe whose other end is gone (`ERROR_PIPE_NOT_CONNECTED`).
        let gone = cfg!(windows) && error.raw_os_error() == Some(233);
        match error.kind() {
            _ if gone => return Self::NobodyReads,
            io::ErrorKind::BrokenPipe => return Self::NobodyReads,
            io::ErrorKind::Interrupted => return crate::signals::problem(),
            _ => {}
        }
        Self::Unwritten { what: "writing the result".to_owned(), error }
    }

    pub(crate) fn exit(&self) -> Exit {
        match self {
            Self::Server { error, .. } => exit_of(error),
            Self::Hinted { problem, .. } => problem.exit(),
            Self::Usage { .. } | Self::File { .. } => Exit::Usage,
            Self::Login { exit, .. } => *exit,
            Self::Unwritten { .. } => Exit::Unwritten,
            Self::NobodyReads => Exit::Worked,
            Self::Interrupted | Self::Ended => Exit::Interrupted,
            Self::Over(_) => Exit::TimedOut,
        }
    }

    /// The end of the server's stderr, where the error itself does not show it.
    pub(crate) fn stderr(&self) -> &str {
        match self {
            Self::Server {
                error: Error::Spawn(_) | Error::Connect(_) | Error::Lost(_), ..
            } => "",
            Self::Server { stderr, .. } => stderr,
            Self::Hinted { problem, .. } => problem.stderr(),
            _ => "",
        }
    }

    /// What the server wrote on stdout that is no message, where the error itself does not show it.
    pub(crate) fn stdout(&self) -> &str {
        match self {
            Self::Server { stdout, .. } => stdout,
            Self::Hinted { problem, .. } => problem.stdout(),
            _ => "",
        }
    }

    /// What an error of the server says beside its message, for people: as JSON on one line, and not without end.
    pub(crate) fn data(&self) -> Option<String> {
        let refused = match self {
            Self::Hinted { problem, .. } => return problem.data(),
            Self::Server { error: Error::Refused { error, .. }, .. } => error,
            Self::Server { error: Error::Connect(failed), .. } => match &failed.reason {
                ConnectReason::Refused(error) => error,
                _ => return None,
            },
            _ => return None,
        };
        let data = refused.data.as_ref()?.get();
        // A server that pretty-prints it has line ends between the members.
        let line = serde_json::from_str::<Sent>(data).ok()?;
        let line = serde_json::to_string(&line).ok().filter(|line| line != "null")?;
        // Before it is cut: no one knows a secret by its half.
        Some(cut(&secrets::masked(&line), DATA).into_owned())
    }

    /// What to try next.
    pub(crate) fn next(&self) -> Option<String> {
        match self {
            Self::Usage { next, .. } | Self::Login { next, .. } => next.clone(),
            Self::Hinted { next, .. } => Some(next.clone()),
            Self::Server { error: Error::Spawn(error), .. } => match &**error {
                SpawnError::NotFound { program, hint, .. } => {
                    let url = program.to_str().filter(|program| program.contains("://"));
                    let next = url.map(url_as_command).or_else(|| beside_us(program.as_ref()));
                    Some(next.unwrap_or_else(|| hint.to_string()))
                }
                _ => None,
            },
            Self::Server {
                error: Error::Ended(Ending::Io { during: CONNECTING, error }), ..
            } => error.to_string().split_once("; ").map(|(_, next)| next.to_owned()),
            Self::Server { error, .. } => {
                variables::hint(error).or_else(|| next_of(error).map(own::named))
            }
            Self::File { what, error } | Self::Unwritten { what, error } => {
                next_of_file(what.starts_with("reading"), error.kind()).map(str::to_owned)
            }
            _ => None,
        }
    }

    /// The document that stands in for a result.
    pub(crate) fn json(&self) -> Value {
        if let Self::Hinted { problem, next } = self {
            let mut document = problem.json();
            document["error"]["next"] = json!(next);
            return document;
        }
        let mut error = json!({ "kind": self.kind(), "message": self.to_string() });
        if let Self::Server { error: Error::Refused { error: refused, .. }, .. } = self {
            error["code"] = json!(refused.code);
            error["message"] = json!(refused.message);
            if let Some(data) = &refused.data {
                error["data"] = serde_json::from_str(data.get()).unwrap_or(Value::Null);
            }
        }
        if let Some(next) = self.next() {
            error["next"] = json!(next);
        }
        if !self.stderr().is_empty() {
            error["stderr"] = json!(self.stderr());
        }
        let stdout = match self {
            Self::Server { error: Error::Connect(failed), .. } => failed.stdout.as_str(),
            other => other.stdout(),
        };
        if !stdout.is_empty() {
            error["stdout"] = json!(stdout);
        }
        json!({ "error": error, "exit": self.exit() as u8 })
    }

    fn kind(&self) -> &'static str {
        match self.exit() {
            Exit::Worked => "output",
            Exit::ToolFailed => "tool",
            Exit::Usage => "usage",
            Exit::Refused => "refused",
            Exit::NoConnection => "connection",
            Exit::Violation => "violation",
            Exit::TimedOut => "timeout",
            Exit::Unwritten => "output",
            Exit::Interrupted => "interrupted",
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Server { error: Error::Spawn(error), .. } => match &**error {
                SpawnError::NotFound { program, searched, .. } => {
                    write!(f, "the program {program:?} was not found; looked in:")?;
                    let mut told = HashSet::new();
                    let mut searched = searched.iter().filter(|folder| told.insert(*folder));
                    searched.try_for_each(|folder| write!(f, "\n  {}", folder.display()))
                }
                error => error.fmt(f),
            },
            // It says all of it, in our own words.
            Self::Server {
                error: Error::Ended(Ending::Io { during: CONNECTING, error }), ..
            } => {
                let text = error.to_string();
                f.write_str(text.split_once("; ").map_or(&text, |(what, _)| what))
            }
            Self::Server { error, .. } => error.fmt(f),
            Self::Hinted { problem, .. } => problem.fmt(f),
            Self::Usage { what, .. } | Self::Login { what, .. } => f.write_str(what),
            Self::File { what, error } | Self::Unwritten { what, error } => {
                write!(f, "{what}: {error}")
            }
            Self::NobodyReads => f.write_str("nobody reads the output"),
            Self::Interrupted | Self::Ended => f.write_str("interrupted"),
            Self::Over(time) => {
                write!(f, "it was not done within {time:?}, the time of --max-time")
            }
        }
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        Self::Server { error, stdout: "".into(), stderr: "".into() }
    }
}

/// What to do if the program that was not found is a file in this folder.
fn beside_us(program: &Path) -> Option<String> {
    let here = program.parent().is_some_and(|folder| folder.as_os_str().is_empty());
    let name = program.display();
    (here && program.is_file()).then(|| {
        format!("{name} is in this folder: -- ./{name}, or its interpreter first, as in -- python3 {name}")
    })
}

/// What to do with a URL that stands where a command is expected.
pub(crate) fn url_as_command(url: &str) -> String {
    format!("a URL is no command: leave out the -- before {url}")
}

pub(crate) fn exit_of(error: &Error) -> Exit {
    match error {
        Error::Tool { .. } => Exit::ToolFailed,
        Error::Encode { .. } | Error::Build { .. } => Exit::Usage,
        Error::Refused { .. } | Error::NotOffered { .. } | Error::InputRequired { .. } => {
            Exit::Refused
        }
        Error::Spawn(_) | Error::Connect(_) | Error::Stdio(_) => Exit::NoConnection,
        Error::Ended(Ending::Io { during: CONNECTING, .. }) => Exit::NoConnection,
        Error::TimedOut { .. } => Exit::TimedOut,
        _ => Exit::Violation,
    }
}

/// What to do about a file that cannot be read, or written.
const fn next_of_file(reads: bool, kind: io::ErrorKind) -> Option<&'static str> {
    Some(match kind {
        io::ErrorKind::NotFound if reads => "name a file that exists",
        io::ErrorKind::NotFound => "name a file in a folder that exists",
        io::ErrorKind::PermissionDenied => "name another file, or change its permissions",
        io::ErrorKind::IsADirectory => "name a file, not a folder",
        io::ErrorKind::NotADirectory => "name a file in a folder; a part of the path is a file",
        io::ErrorKind::StorageFull => "make room on the disk, or name a file on another one",
        _ => return None,
    })
}

fn next_of(error: &Error) -> Option<&'static str> {
    Some(match error {
        // Its own words say what to try.
        Error::Spawn(_) => return None,
        Error::Connect(error) => match &error.reason {
            ConnectReason::Version(_) | ConnectReason::NoCommonVersion(_) => {
                "leave --revision out, or update the server"
            }
            ConnectReason::Refused(_)
                if std::env::args_os()
                    .take_while(|word| word != "--")
                    .any(|word| word == "--revision") =>
            {
                "read why it refuses, or try without --revision; `taut doctor` shows more"
            }
            ConnectReason::Refused(_) => "read why it refuses; `taut doctor` shows more",
            ConnectReason::Unflushed { .. } => {
                "flush stdout after each message; in Python: print(…, flush=True)"
            }
            ConnectReason::Silent {
                second: Some(SecondProcess { fault: Some((Fault::Length | Fault::Header, _)), .. }),
                ..
            }
            | ConnectReason::NotJson { fault: Fault::Length | Fault::Header, .. } => {
                "write one message per line; a Content-Length counts the bytes of the message, and an empty line ends \
                 the header; `taut doctor` shows more"
            }
            ConnectReason::Silent { .. } => {
                "see that it serves stdio and flushes its output; it may still be downloading (npx, uvx, docker): \
                 install it first, or give it longer with --start-timeout; `taut doctor` shows more"
            }
            ConnectReason::NoAnswer { stray: Some(_), .. } => {
                "answer with the id of the request, and with its JSON type"
            }
            _ => "see what it does with `taut doctor`, and what it says with -v",
        },
        Error::TimedOut { .. } => "give it longer with --timeout, or see what it says with -v",
        Error::Lost(_) | Error::Violation { .. } => "see each message with --debug",
        Error::NotOffered { .. } => "see what it offers with `taut list`",
        Error::Refused { error, .. } if error.code == taut::types::MISSING_CLIENT_CAPABILITY => {
            "answer what it asks: on a terminal, with --answer FILE, or with --root DIR for folders"
        }
        // What the Python SDK 2 says to a question for which 2026-07-28 has another way.
        Error::Refused { error, .. } if error.message.contains("back-channel") => {
            "let it ask in an older way: --revision 2025-11-25"
        }
        Error::Refused { method, error } => {
            return crate::nats::next_of(error).or_else(|| match &**method {
                "tools/call" => Some("see what it takes with `taut list --only TOOL`"),
                "prompts/get" => Some("see what it takes with `taut list --only PROMPT`"),
                "resources/read" => Some("see what it offers with `taut list resources`"),
                // It offers what it then refuses, so a list shows no more.
                method if method.ends_with("/list") => {
                    Some("`taut doctor` shows which hosts that hurts; --debug shows each message")
                }
                _ => Some("see each message with --debug"),
            });
        }
        _ => return None,
    })
}

/// The message of a parser without the place, for places that are shown separately.
pub(crate) fn without_place(words: &str) -> &str {
    words.split_once(" at line ").map_or(words, |(what, _)| what)
}

#[cfg(test)]
mod tests {
    use taut::Error;
    use taut::rpc::ErrorObject;

    use super::Problem;

    /// The Python SDK 2 asks back as 2025-11-25 does, and cannot in 2026-07-28.
    #[test]
    fn who_cannot_ask_back_is_to_be_asked_in_an_older_revision() {
        let next = |message: &'static str| {
            let error = ErrorObject::new(-32600, message);
            Problem::from(Error::Refused { method: "tools/call".into(), error }).next().unwrap()
        };
        let hint = next("Cannot send 'elicitation/create': … has no back-channel for …");
        assert_eq!(hint, "let it ask in an older way: --revision 2025-11-25");
        assert!(next("no such tool").contains(" list --only"));
    }

    /// An edge of a fleet says itself why a call failed; the server's tools have nothing to do with it.
    #[test]
    fn what_to_try_after_an_error_of_the_fleet_depends_on_its_reason() {
        let next = |reason: &str| {
            let data = serde_json::json!({ "fleet": reason, "mayHaveRun": reason == "lost" });
            let error = ErrorObject::new(-32603, "…").with_data(&data);
            Problem::from(Error::Refused { method: "tools/call".into(), error }).next().unwrap()
        };
        assert!(next("busy").contains("more workers"));
        assert!(next("lost").contains("whether it ran"));
        assert!(next("nobody").contains(" worker"));
    }
}
