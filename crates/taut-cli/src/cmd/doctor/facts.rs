//! What `exam.rs` saw of a server, and the lines of the report about it.
//!
//! Plain data. Must not start anything, nor judge (`findings/` does).

use std::time::Duration;

use taut::wire::Framing;
use taut::{
    Ending, Error, Revision,
    client::{ClientEvent, Diagnostics, InvalidMessage},
    error::ConnectPhase,
    process::{ProcessEnd, ShutdownStep},
};
use taut_check::lint::Lint;

use super::exam::PROBE;
use crate::own;
use crate::problem::{Exit, Problem, exit_of};
use crate::processes::{self, Process};
use crate::reach::CONNECTING;
use crate::strict::Objection;

/// What was seen, and when, counted from the start.
#[derive(Default)]
pub(super) struct Facts {
    pub(super) pid: Option<u32>,
    /// Where it listens, if it was not started but connected to.
    pub(super) socket: Option<String>,
    /// What carries the messages, where that is no stream of bytes.
    pub(super) carrier: Option<&'static str>,
    /// Every process that was started, also the second and the third.
    pub(super) pids: Vec<u32>,
    pub(super) program: Option<String>,
    pub(super) started: Option<Duration>,
    pub(super) first_stderr: Option<(Duration, String)>,
    pub(super) stderr_bytes: usize,
    /// The same of a second one, which was not probed.
    pub(super) stderr_unprobed: usize,
    /// What it wrote there came without line ends.
    pub(super) stderr_endless: bool,
    /// It closed its stderr and lived on.
    pub(super) stderr_closed: bool,
    pub(super) first_output: Option<Duration>,
    pub(super) probed: Option<Duration>,
    /// When the probe was answered, and with which refusal.
    pub(super) probe_answered: Option<(Duration, Option<i64>)>,
    pub(super) shaken: Option<Duration>,
    /// What it asked for, and was refused.
    pub(super) refused: Vec<String>,
    pub(super) restarts: Vec<Framing>,
    /// Another was started beside it, which was silent.
    pub(super) beside: Option<Duration>,
    pub(super) junk: Option<InvalidMessage>,
    pub(super) opened: Option<Result<Opened, Error>>,
    /// What others refuse.
    pub(super) objections: Vec<Objection>,
    /// What is wrong with the schemas of its tools.
    pub(super) lints: Vec<Lint>,
    /// Whether those are told, too, that only make a tool hard to use.
    pub(super) lints_wanted: bool,
    pub(super) listed: Option<Result<(String, Duration), Error>>,
    /// The tool that was called is not listed and was refused.
    pub(super) mistyped: Option<Problem>,
    pub(super) called: Option<Result<(String, Duration), Error>>,
    /// Whether it was still there after the call.
    pub(super) after_call: Option<Error>,
    /// How it was when it did not answer in time.
    pub(super) mute: Option<Mute>,
    pub(super) seen: Diagnostics,
    /// Bytes that came once its stdin was closed.
    pub(super) backlog: u64,
    pub(super) ended: Option<(ProcessEnd, Duration)>,
    /// What was still there after the end, and whether it had left the server's group.
    pub(super) left: Vec<Process>,
    pub(super) on_term: Option<Option<Duration>>,
    /// It refuses `initialize`.
    pub(super) modern_only: bool,
    /// How long a second one took to be ready, which was not probed.
    pub(super) second: Option<Duration>,
    /// The end of what it wrote on stdout that is no message.
    pub(super) stdout: String,
    pub(super) stderr: String,
    pub(super) environment: Vec<String>,
    pub(super) withheld: usize,
    /// Those among the withheld that are about certificates, proxies and registries.
    pub(super) network: Vec<String>,
    /// It works with the whole environment; these names occur in what it said.
    pub(super) full_environment: Option<Vec<String>>,
}

/// What a server did while an answer was waited for in vain.
#[derive(Default)]
pub(super) struct Mute {
    /// Its process is stopped, as by SIGSTOP.
    pub(super) stopped: bool,
    /// Reports of progress that came instead.
    pub(super) reports: u64,
    /// Bytes that came instead.
    pub(super) bytes: u64,
}

#[derive(Clone)]
pub(super) struct Opened {
    pub(super) revision: Revision,
    pub(super) framing: Framing,
    pub(super) name: String,
    pub(super) ready: Duration,
}

/// One line of the report.
pub(super) struct Phase {
    pub(super) name: &'static str,
    pub(super) ok: Option<bool>,
    pub(super) text: String,
    pub(super) at: Option<Duration>,
}

impl Facts {
    /// Writes down one event of a client that opens.
    pub(super) fn note(&mut self, at: Duration, event: &ClientEvent<'_>) {
        match event {
            ClientEvent::ProcessStarted { pid } => {
                self.pids.push(*pid);
                self.started.get_or_insert(at);
                // One beside it is another.
                if self.beside.is_none() {
                    self.pid = Some(*pid);
                    self.program = processes::program(*pid).or_else(|| self.program.take());
                }
            }
            ClientEvent::OpeningSent { phase: ConnectPhase::Probe, .. } => {
                self.probed.get_or_insert(at);
            }
            ClientEvent::OpeningSent { .. } => drop(self.shaken.insert(at)),
            ClientEvent::OpeningAnswered { phase: ConnectPhase::Probe, error } => {
                self.probe_answered.get_or_insert_with(|| (at, error.map(|error| error.code)));
            }
            ClientEvent::FirstOutput => drop(self.first_output.get_or_insert(at)),
            ClientEvent::Restarting { framing } => self.restarts.push(*framing),
            ClientEvent::StartingSecond { .. } => self.beside = Some(at),
            ClientEvent::Refused { method } => self.refused.push((*method).to_owned()),
            ClientEvent::InvalidMessage(junk) => {
                self.junk.get_or_insert_with(|| (*junk).clone());
            }
            _ => {}
        }
    }

    /// The error that ended it, wherever it did.
    pub(super) fn error(&self) -> Option<&Error> {
        let opened = self.opened.as_ref().and_then(|opened| opened.as_ref().err());
        let listed = self.listed.as_ref().and_then(|listed| listed.as_ref().err());
        let called = self.called.as_ref().and_then(|called| called.as_ref().err());
        opened.or(listed).or(called).or(self.after_call.as_ref())
    }

    /// What it said on stdout first that was no message.
    pub(super) fn said_on_stdout(&self) -> &str {
        self.junk.as_ref().map_or("", |junk| junk.excerpt.as_str())
    }

    /// What was agreed.
    pub(super) fn revision(&self) -> Option<Revision> {
        Some(self.opened.as_ref()?.as_ref().ok()?.revision)
    }

    pub(super) fn is_modern(&self) -> bool {
        self.revision().is_some_and(Revision::is_modern)
    }

    pub(super) fn exit(&self) -> Exit {
        let nowhere = if self.objections.is_empty() { Exit::NoConnection } else { Exit::Violation };
        self.error().map_or(nowhere, exit_of)
    }

    /// How long the answer to the probe took if somebody had lost patience by then.
    pub(super) fn probe_late(&self) -> Option<Duration> {
        let (answered, _) = self.probe_answered.filter(|_| self.quick_unprobed())?;
        self.shaken.filter(|shaken| *shaken < answered)?;
        Some(answered.saturating_sub(self.probed?))
    }

    /// Whether the probe was never answered, by a server that was up long before.
    pub(super) fn swallowed(&self) -> bool {
        let asked = self.probed.is_some() && self.shaken.is_some();
        asked && self.probe_answered.is_none() && self.restarts.is_empty() && self.quick_unprobed()
    }

    /// Whether the handshake was done before the probe was answered. Its answer is late then, if it comes.
    pub(super) fn probe_given_up(&self) -> bool {
        let answered = self.probe_answered.map(|(answered, _)| answered);
        let before = |shaken| answered.is_none_or(|answered| shaken < answered);
        self.probed.is_some() && self.restarts.is_empty() && self.shaken.is_some_and(before)
    }

    /// Whether it is only the probe that it is slow about. One that did not understand the framing was slow about
    /// everything.
    fn quick_unprobed(&self) -> bool {
        let opened = self.opened.as_ref().and_then(|opened| opened.as_ref().ok());
        let lines = opened.is_none_or(|opened| opened.framing == Framing::Lines);
        lines && self.second.is_some_and(|second| second < PROBE / 2)
    }

    /// How long it took to be ready, without what our own probe cost.
    pub(super) fn took(&self) -> Option<Duration> {
        let opened = self.opened.as_ref()?.as_ref().ok()?;
        let by_probe = self.swallowed() || self.probe_late().is_some();
        // It was asked in lines before, which it does not read: that time was ours.
        let beside = self.beside.filter(|_| opened.framing == Framing::Headers);
        let ready = opened.ready.saturating_sub(beside.unwrap_or_default());
        Some(self.second.filter(|_| by_probe).unwrap_or(ready))
    }

    /// The lines of the report.
    pub(super) fn phases(&self) -> Vec<Phase> {
        let mut all = Vec::new();
        let mut add = |name, ok, text: String, at| all.push(Phase { name, ok, text, at });
        let pid = self.pid.map(|pid| format!("process {pid}")).unwrap_or_default();
        let program = self.program.as_ref().map(|path| format!(", {path}")).unwrap_or_default();
        let started = match &self.socket {
            Some(socket) => {
                let there = self.error().is_none_or(|error| exit_of(error) != Exit::NoConnection);
                add("connected", Some(there), socket.clone(), None);
                there
            }
            None => self.started.is_some(),
        };
        if self.socket.is_none() {
            let text = if started { format!("{pid}{program}") } else { "not at all".to_owned() };
            add("started", Some(started), text, self.started);
        }
        if let Some((at, line)) = &self.first_stderr {
            add("stderr", None, line.clone(), Some(*at));
        }
        if let Some(at) = self.first_output {
            let text = self
                .junk
                .as_ref()
                .map_or_else(|| "first byte".to_owned(), |junk| junk.excerpt.clone());
            add("stdout", self.junk.is_some().then_some(false), text, Some(at));
        }
        for framing in &self.restarts {
            add("again", None, format!("started once more, speaking {framing}"), None);
        }
        if let Some(at) = self.beside {
            let text = "another started beside it, speaking Content-Length".to_owned();
            add("again", None, text, Some(at));
        }
        match &self.opened {
            Some(Ok(opened)) => {
                let era = if opened.revision.is_modern() { "modern" } else { "legacy" };
                let framing = opened.framing.to_string();
                let framing = self.carrier.unwrap_or(&framing);
                let mut text = format!("{} ({era}), {framing}", opened.revision);
                if !opened.name.is_empty() {
                    text = format!("{text}, {}", opened.name);
                }
                add("agreed", Some(true), text, Some(opened.ready));
            }
            Some(Err(error)) if started => add("agreed", Some(false), headline(error), None),
            _ => {}
        }
        if self.listed.is_some() {
            let text = "nothing: no sampling, elicitation or roots, as the plainest hosts; `taut list` may show \
                        more tools";
            add("offered", None, own::named(text), None);
        }
        for (name, step) in [("listed", &self.listed), ("called", &self.called)] {
            match step {
                Some(Ok((text, at))) => add(name, Some(true), text.clone(), Some(*at)),
                Some(Err(error)) => add(name, Some(false), headline(error), None),
                None => {}
            }
        }
        if let Some(error) = &self.after_call {
            add("afterwards", Some(false), headline(error), None);
        }
        if let Some((ended, took)) = &self.ended {
            let polite = ended.step <= ShutdownStep::Eof;
            add("on EOF", Some(polite), ended.to_string(), Some(*took));
        }
        match self.on_term {
            Some(Some(took)) => add("on SIGTERM", Some(true), "ended".to_owned(), Some(took)),
            Some(None) => add("on SIGTERM", Some(false), "lived on".to_owned(), None),
            None => {}
        }
        if processes::LISTED && (self.ended.is_some() || !self.left.is_empty()) {
            let names: Vec<String> = self.left.iter().map(Process::to_string).collect();
            let text = match names.is_empty() {
                true => "nothing".to_owned(),
                false => format!("{}; taut ends them", names.join(", ")),
            };
            add("left behind", Some(self.left.is_empty()), text, None);
        }
        let withheld = match self.withheld {
            0 => String::new(),
            count if self.network.is_empty() || !matches!(self.opened, Some(Err(_))) => {
                format!("; {count} of yours withheld")
            }
            count => format!("; {count} of yours withheld, also {}", few(&self.network)),
        };
        if self.socket.is_none() {
            add("environment", None, format!("{}{withheld}", few(&self.environment)), None);
        }
        all
    }
}

/// Names on one row: the first few, and how many more there are.
pub(super) fn few(names: &[String]) -> String {
    /// More say no more.
    const SHOWN: usize = 8;
    let more = match names.len().saturating_sub(SHOWN) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{}{more}", names.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(" "))
}

/// The first line of an error.
pub(super) fn headline(error: &Error) -> String {
    let text = match error {
        // It says all of it, in our own words.
        Error::Ended(Ending::Io { during: CONNECTING, error }) => error.to_string(),
        error => error.to_string(),
    };
    let first = text.lines().next().unwrap_or_default();
    first.split("; its last lines on ").next().unwrap_or(first).to_owned()
}
