//! What is to be checked of a server, within which times, and how that becomes a report.
//!
//! `carry.rs` carries it out, `judge.rs` judges. Knows no rule.

use std::ffi::OsString;
use std::sync::atomic::AtomicUsize;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::carry::{Shared, Surveys};
use super::checks::short;
use super::judge::{explain, scans};
use super::session::Times;
use super::survey::even_out;
use crate::check::Check;
use crate::cx::{Called, Survey};
use crate::ours::Revision;
use crate::program::{Program, Stopper};
use crate::progress::Progress;
use crate::report::{IdleCall, Report, Row};
use crate::seen::Session;

/// How many processes are started at most, all together.
pub const MAX_STARTS: usize = 100;

/// Checks a server: set it up, then [`run`](Self::run).
#[derive(Clone, Debug)]
pub struct ServerCheck {
    pub(super) program: Program,
    pub(super) calls: Vec<(String, Value)>,
    pub(super) fixture: bool,
    pub(super) revisions: Vec<Revision>,
    only: Vec<String>,
    strict: bool,
    pub(super) start: Duration,
    pub(super) request: Duration,
}

impl ServerCheck {
    /// Checks the server that this program is.
    #[must_use]
    pub fn new<W: Into<OsString>>(words: impl IntoIterator<Item = W>) -> Self {
        Self::program(Program::new(words))
    }

    /// The same, with an environment and a directory.
    #[must_use]
    pub fn program(program: Program) -> Self {
        Self {
            program,
            calls: Vec::new(),
            fixture: false,
            revisions: Vec::new(),
            only: Vec::new(),
            strict: false,
            start: Duration::from_secs(30),
            request: Duration::from_secs(10),
        }
    }

    /// Allows a tool to be called with these arguments, more than once. Without it nothing is called.
    #[must_use]
    pub fn call(mut self, tool: impl Into<String>, args: Value) -> Self {
        self.calls.push((tool.into(), args));
        self
    }

    /// Allows the tools of the official conformance fixture to be called.
    #[must_use]
    pub fn fixture(mut self) -> Self {
        self.fixture = true;
        self
    }

    /// Checks this revision, and not all that the server speaks; may be given again.
    #[must_use]
    pub fn revision(mut self, revision: Revision) -> Self {
        self.revisions.push(revision);
        self
    }

    /// Carries out this check, or those whose names begin with it and a dash; may be given again.
    #[must_use]
    pub fn only(mut self, id: impl Into<String>) -> Self {
        self.only.push(id.into());
        self
    }

    /// A broken SHOULD fails the run as well, and what the server's SDK breaks. They are warnings if not said.
    #[must_use]
    pub fn strict(mut self) -> Self {
        self.strict = true;
        self
    }

    /// What the run does now.
    #[must_use]
    pub fn progress(&self) -> Progress {
        self.program.progress.clone()
    }

    /// How long the server may take until its first answer. 30 seconds if not said.
    #[must_use]
    pub fn start_timeout(mut self, time: Duration) -> Self {
        self.start = time;
        self
    }

    /// How long an answer may take. 10 seconds if not said.
    #[must_use]
    pub fn request_timeout(mut self, time: Duration) -> Self {
        self.request = time;
        self
    }

    /// How long things may take while many probes share a process.
    pub(super) fn shared_times(&self) -> Times {
        let short = Duration::from_millis(400);
        let quiet = Duration::from_millis(12);
        let exit = Duration::from_secs(5);
        let pause = Duration::from_millis(60);
        Times { start: self.start, request: self.request, late: short, pause, quiet, exit }
    }

    /// How long they may take alone, when a verdict counts.
    pub(super) fn alone_times(&self) -> Times {
        let late = self.request.min(Duration::from_secs(4));
        let quiet = Duration::from_millis(300);
        let exit = Duration::from_secs(8);
        let pause = Duration::from_millis(350);
        Times { start: self.start, request: self.request, late, pause, quiet, exit }
    }

    /// What ends the run before its time.
    #[must_use]
    pub fn stopper(&self) -> Stopper {
        self.program.stopper.clone()
    }

    /// Carries out all checks.
    #[must_use]
    pub fn run(&self) -> Report {
        let began = Instant::now();
        self.program.begin();
        let checks = super::all();
        let shared = Shared {
            settings: self,
            checks: &checks,
            slowest: AtomicUsize::new(0),
            hung: AtomicUsize::new(0),
            stayed: AtomicUsize::new(0),
            starts: AtomicUsize::new(0),
            sessions: Mutex::default(),
            idle: Mutex::default(),
        };
        let (mut surveys, closed) = shared.surveys();
        even_out(&mut surveys);
        let mut outcomes = shared.probes(&mut surveys);
        let sessions = shared.sessions.into_inner().unwrap_or_else(PoisonError::into_inner);
        scans(&checks, self, &surveys, &closed, &sessions, &mut outcomes);
        let mut rows: Vec<Row> = Vec::new();
        for (revision, outcome) in outcomes {
            let check = &checks[outcome.check];
            let row = Row::new(check, revision, outcome.verdict, outcome.exchange);
            rows.push(Row { took: outcome.took, ..row });
        }
        rows.sort_by_key(|row| (row.revision, checks.iter().position(|check| check.id == row.id)));
        explain(&checks, &mut rows);
        let starts = shared.starts.into_inner();
        let report = Report::new(self.program.words.clone(), rows, closed, starts, began.elapsed());
        let errors =
            sessions.iter().flat_map(Session::received).map(|(_, value, _)| &value["error"]);
        let modern = surveys.iter().any(|(revision, _)| revision.is_modern());
        let sdk = crate::report::sdk::of(errors, modern);
        let report = report.blamed(sdk).strict(self.strict);
        Report { idle: self.idle(&surveys), ..report }
    }

    /// The allowed calls that worked in no revision, if one opened.
    fn idle(&self, surveys: &Surveys) -> Vec<IdleCall> {
        let mut idle: Vec<IdleCall> = Vec::new();
        for (tool, args) in self.calls.iter().filter(|_| !surveys.is_empty()) {
            let all = || surveys.iter().map(|(_, survey)| survey);
            let same = |call: &&Called| call.tool == *tool && call.args == *args;
            let calls = || all().flat_map(|survey| &survey.calls).filter(same);
            // A call that asks back works for a client that can answer.
            let works = |call: &Called| {
                call.worked()
                    || !call.asks.is_empty()
                    || call.result().is_some_and(|it| it["resultType"] == "input_required")
                    || call.reply.as_ref().is_some_and(|it| it["error"]["code"] == -32021)
            };
            // One that is a task only is called as one by the checks of tasks.
            let tasks_only = |survey: &Survey| {
                let listed = survey.tool(tool);
                listed.is_some_and(|it| it["execution"]["taskSupport"] == "required")
            };
            let works = calls().any(works) || all().any(tasks_only);
            if works || idle.iter().any(|call| call.tool == *tool) {
                continue;
            }
            let listed = all().any(|survey| survey.tool(tool).is_some());
            let came = match calls().next_back().and_then(|call| call.reply.as_ref()) {
                None => "no answer".to_owned(),
                Some(reply) => {
                    let told = ["/error/message", "/result/content/0/text", "/result"];
                    let told = told.iter().find_map(|place| reply.pointer(place));
                    short(told.unwrap_or(reply))
                }
            };
            idle.push(IdleCall { tool: tool.clone(), came: listed.then_some(came) });
        }
        idle
    }

    pub(super) fn wants(&self, check: &Check) -> bool {
        self.only.is_empty()
            || self.only.iter().any(|only| {
                check.id == only
                    || check
                        .id
                        .strip_prefix(only.as_str())
                        .is_some_and(|rest| rest.starts_with('-'))
            })
    }
}
