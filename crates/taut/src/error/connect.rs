//! Why a connection could not be opened.
//!
//! Knows the words. Must not know how a connection is opened: `client/open` makes these errors. Each
//! reason has words of its own (L16, P16, P17), with the phase and the last lines that were printed.

use std::fmt;
use std::time::Duration;

use super::words::{LastLines, last_lines};
use crate::ending::Ending;
use crate::mcp::{Method, Revision};
use crate::process::ExitStatus;
use crate::rpc::{ErrorObject, Fault};

/// Why a connection could not be opened.
#[derive(Clone)]
#[non_exhaustive]
pub struct ConnectError {
    /// What was being done.
    pub phase: ConnectPhase,
    /// Why it failed.
    pub reason: ConnectReason,
    /// The last lines that the server wrote to stdout and that are no messages, shortened.
    pub stdout: String,
    /// The end of what the server wrote to stderr.
    pub stderr: String,
}

/// How far a connection had come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConnectPhase {
    /// It was asked which revisions it speaks (`server/discover`).
    Probe,
    /// It was asked to shake hands (`initialize`).
    Handshake,
}

/// Why a connection could not be opened.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ConnectReason {
    /// The process ended.
    Exited(ExitStatus),
    /// It closed the stream that it should answer on, and lives on.
    Closed,
    /// Reading, writing or the transport failed. The ending is [`Ending::Io`] and says why.
    Failed(Ending),
    /// It said nothing.
    Silent {
        /// For how long.
        after: Duration,
        /// What became of another, which was started beside it and asked with `Content-Length` headers.
        second: Option<SecondProcess>,
        /// The program, if it is one that downloads the server before it starts it: `npx`, for example.
        package_runner: Option<&'static str>,
    },
    /// It said nothing until its stdin was closed: it does not flush its output.
    Unflushed {
        /// For how long it was given time.
        after: Duration,
    },
    /// It said something, and none of it was a message: text, or JSON that is not quite one.
    NotJson {
        /// For how long it was given time.
        after: Duration,
        /// How many lines came.
        lines: u64,
        /// What was wrong with the first.
        fault: Fault,
        /// The first of them, or its beginning.
        first: String,
    },
    /// It said things, and none of them was an answer.
    NoAnswer {
        /// For how long it was given time.
        after: Duration,
        /// The id, as JSON, of an answer to something that was never asked.
        stray: Option<String>,
    },
    /// It sends back what it is sent.
    Echo,
    /// It said no.
    Refused(ErrorObject),
    /// Its answer cannot be read.
    Malformed(String),
    /// Its answer to `initialize` names a revision that is not spoken here, or not the pinned one.
    Version(String),
    /// None of the revisions that it lists is spoken here.
    NoCommonVersion(Vec<String>),
}

/// What became of a second process that was asked with `Content-Length` headers, beside a silent one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SecondProcess {
    /// When it was started, counted from the start of the first.
    pub at: Duration,
    /// How it ended, if it did by itself.
    pub exit: Option<ExitStatus>,
    /// Whether it said anything at all.
    pub heard: bool,
    /// What was wrong with the first thing that it said and that is no message, and its beginning.
    pub fault: Option<(Fault, String)>,
}

impl fmt::Display for SecondProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Tenths of a second are exact enough.
        let tenths = u64::try_from(self.at.as_millis() / 100).unwrap_or(u64::MAX);
        let at = Duration::from_millis(tenths.saturating_mul(100));
        write!(f, "another, asked with Content-Length headers after {at:?}, ")?;
        match (self.exit, &self.fault) {
            (_, Some((fault @ (Fault::Length | Fault::Header), first))) => {
                write!(f, "answered in a frame that cannot be read ({fault}): {first}")
            }
            (Some(exit), _) => exit.fmt(f),
            (None, _) if self.heard => f.write_str("did not answer either"),
            (None, _) => f.write_str("said nothing either"),
        }
    }
}

impl fmt::Debug for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectError")
            .field("phase", &self.phase)
            .field("reason", &self.reason)
            .field("stdout", &LastLines(&self.stdout))
            .field("stderr", &LastLines(&self.stderr))
            .finish()
    }
}

impl fmt::Display for ConnectPhase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Probe => Method::Discover.as_str(),
            Self::Handshake => Method::Initialize.as_str(),
        })
    }
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let phase = self.phase;
        match &self.reason {
            ConnectReason::Exited(exit) => {
                write!(f, "the server {exit} before it answered {phase}")?
            }
            ConnectReason::Closed => {
                write!(f, "the server closed its output before it answered {phase}")?;
            }
            ConnectReason::Failed(ending) => ending.fmt(f)?,
            ConnectReason::Silent { after, second, package_runner } => {
                write!(f, "the server did not answer {phase} within {after:?}: it said nothing")?;
                if let Some(second) = second {
                    write!(f, "; {second}")?;
                }
                if let Some(runner) = package_runner {
                    write!(
                        f,
                        "; {runner} may still be downloading the package: try again, or set a longer \
                         start timeout"
                    )?;
                }
            }
            ConnectReason::Unflushed { after } => write!(
                f,
                "the server did not answer {phase} within {after:?}: its answer came only when its \
                 stdin was closed, so it does not flush its output"
            )?,
            ConnectReason::NotJson { after, lines, fault, first } => {
                write!(f, "the server did not answer {phase} within {after:?}: it printed ")?;
                let text = matches!(fault, Fault::Json | Fault::Encoding);
                match (text, lines) {
                    (true, 1) => write!(f, "text instead of JSON: {first}")?,
                    (true, _) => write!(
                        f,
                        "{lines} lines of text instead of JSON, the first of which is: {first}"
                    )?,
                    _ if matches!(fault, Fault::Length | Fault::Header) => {
                        write!(f, "a frame that cannot be read ({fault}): {first}")?
                    }
                    (false, _) => write!(f, "JSON that is no message ({fault}): {first}")?,
                }
            }
            ConnectReason::NoAnswer { after, stray } => {
                write!(f, "the server did not answer {phase} within {after:?}, ")?;
                match stray {
                    None => f.write_str("although it said other things")?,
                    Some(id) => write!(
                        f,
                        "although it answered something that was never asked: the id is {id}{}",
                        if id.starts_with('"') { ", a string, and ours are numbers" } else { "" }
                    )?,
                }
            }
            ConnectReason::Echo => write!(
                f,
                "the program sends back what it is sent ({phase} came back as it left): it is an \
                 echo, not a server"
            )?,
            ConnectReason::Refused(error) => write!(f, "the server refused {phase}: {error}")?,
            ConnectReason::Malformed(what) => {
                write!(f, "the server's answer to {phase} cannot be read: {what}")?;
            }
            ConnectReason::Version(version) => write!(
                f,
                "the server wants to speak version {version:?}, which this client does not"
            )?,
            ConnectReason::NoCommonVersion(versions) => {
                write!(f, "the server speaks only {versions:?}; spoken here: ")?;
                for (at, revision) in Revision::ALL.iter().enumerate() {
                    write!(f, "{}{revision}", if at == 0 { "" } else { ", " })?;
                }
            }
        }
        // A proxy that says why it refuses has passed its server's words on to its own stderr as well.
        let told = match &self.reason {
            ConnectReason::Refused(error) => {
                let last = self.stderr.lines().rfind(|line| !line.trim().is_empty());
                last.is_some_and(|last| error.message.contains(last.trim()))
            }
            _ => false,
        };
        let stderr = if told { "" } else { &self.stderr };
        // The first line is in the reason already.
        let stdout = match &self.reason {
            ConnectReason::NotJson { first, .. } => {
                self.stdout.strip_prefix(first.as_str()).unwrap_or(&self.stdout)
            }
            _ => &self.stdout,
        };
        last_lines(f, stdout, stderr)
    }
}

impl std::error::Error for ConnectError {}
