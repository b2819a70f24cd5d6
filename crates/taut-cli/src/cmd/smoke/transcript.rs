//! The output of `taut smoke`: a line for each step with its time, and the summary.
//!
//! Writes text or the JSON document. Must not start, ask or decide anything.

use std::fmt::{Display, Write as _};
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use crate::cells::{cut, pad};
use crate::gate::Style;
use crate::output::{BOLD, CYAN, DIM, GREEN, Output, RED, YELLOW, time};
use crate::problem::{Exit, Problem, exit_of};
use crate::spinner::Spinner;
use crate::strict::Who;

/// How the summary says that a server did not end by itself.
pub(super) const FORCED: &str = "it had to be forced to end";

/// How wide the text of a step may be beside its time.
const TEXT: usize = 56;

/// Columns of a text that is told whole: a server may have names of megabytes.
const LONGEST: usize = 4000;

/// What was done so far, told while it is done.
pub(super) struct Transcript<'a> {
    pub(super) output: &'a Output,
    began: Instant,
    pub(super) report: Map<String, Value>,
    /// What the last line says.
    pub(super) summary: Vec<String>,
    /// Who cannot use a server that works here.
    pub(super) refused_by: Option<Who>,
    /// What to try next.
    pub(super) next: Option<String>,
    /// What a probe has cost that the server did not answer.
    pub(super) unprobed: Option<Duration>,
    spinner: Option<Spinner>,
    /// One of many: what it would tell is told by others, later.
    pub(super) silent: bool,
}

impl<'a> Transcript<'a> {
    pub(super) fn new(output: &'a Output, shown: &str) -> Result<Self, Problem> {
        let smoke = Self { silent: false, ..Self::silent(output, shown) };
        let version = env!("CARGO_PKG_VERSION");
        let shown = output.out.paint(DIM, format!("$ {}", output.out.line(shown)));
        let name = output.out.paint(BOLD, format!("taut {version}"));
        smoke.line(&format!("{name}  {shown}\n"))?;
        Ok(smoke)
    }

    /// The same, but it only keeps the report.
    pub(super) fn silent(output: &'a Output, shown: &str) -> Self {
        let report = Map::from_iter([("command".to_owned(), json!(shown))]);
        let (began, summary) = (Instant::now(), Vec::new());
        Self {
            output,
            began,
            report,
            summary,
            refused_by: None,
            next: None,
            unprobed: None,
            spinner: None,
            silent: true,
        }
    }

    /// What went wrong, in a line.
    pub(super) fn failure(&self) -> String {
        let message = self.report.get("error").and_then(|error| error["message"].as_str());
        message.map_or_else(|| self.summary.join(", "), str::to_owned)
    }

    /// Tells what failed and why; the next step of it all is the end.
    pub(super) fn failed(
        &mut self,
        what: &str,
        error: &taut::Error,
        stderr: &str,
    ) -> Result<Exit, Problem> {
        self.spinner = None;
        let mark = self.output.out.paint(RED, "✗");
        self.line(&format!("  {mark} {what}\n"))?;
        // One line alone is told at the end, and an error at the start already contains all of them.
        let stray = self.output.heard.stray();
        let several = stray.lines().count() > 1 && !matches!(error, taut::Error::Connect(_));
        let stdout = if several { stray.into() } else { "".into() };
        let problem = Problem::Server { error: error.clone(), stdout, stderr: stderr.into() };
        let mut document = problem.json();
        self.report.insert("error".into(), document["error"].take());
        self.summary = vec![format!("it failed to {what}")];
        if !self.silent {
            let quiet = Output { json: false, ..self.output.clone() };
            quiet.report(&problem);
        }
        Ok(exit_of(error))
    }

    pub(super) fn finish(mut self, exit: Exit) -> Result<(), Problem> {
        self.spinner = None;
        let took = self.began.elapsed();
        if self.output.json {
            self.report.insert("ok".into(), json!(exit == Exit::Worked));
            self.report.insert("exit".into(), json!(exit as u8));
            self.report.extend(self.next.map(|next| ("next".to_owned(), json!(next))));
            self.report.insert("total_ms".into(), millis(took));
            return self.output.document(&self.report);
        }
        let reader = self.output.out;
        if let Some(next) = &self.next {
            let next = reader.line(&crate::secrets::masked(next)).into_owned();
            self.line(&format!("{} {next}\n", reader.paint(CYAN, "  try:")))?;
        }
        let (style, words) = self.verdict(exit, &time(took));
        let words = reader.line(&words).into_owned();
        self.line(&format!("\n{}\n", reader.paint(style, words)))
    }

    /// The last line.
    fn verdict(&self, exit: Exit, total: &str) -> (Style, String) {
        let words = self.summary.join(", ");
        let called = self.report.get("called").filter(|called| !called.is_null());
        let failed = called.is_some_and(|called| called["failed"] == true);
        let forced = self.summary.iter().any(|words| words == FORCED);
        match exit {
            Exit::Worked if self.refused_by.is_some() => {
                (YELLOW, format!("! it works here, but not everywhere: {words}, {total} in all"))
            }
            // A server that had to be killed gets no tick.
            Exit::Worked if forced => (YELLOW, format!("! it works: {words}, {total} in all")),
            Exit::Worked if called.is_none() || failed => {
                (YELLOW, format!("✓ it works: {words}, {total} in all"))
            }
            Exit::Worked => (GREEN, format!("✓ it works: {words}, {total} in all")),
            _ => (RED, format!("✗ {words}, after {total}")),
        }
    }

    pub(super) fn wait(&mut self, label: &str) {
        // The old one wipes its line before the new one begins.
        self.spinner = None;
        self.spinner = (!self.silent).then(|| Spinner::start(self.output, label));
    }

    /// Nothing is waited for any more.
    pub(super) fn hush(&mut self) {
        self.spinner = None;
    }

    pub(super) fn step(
        &mut self,
        name: &str,
        text: &str,
        took: Option<Duration>,
    ) -> Result<(), Problem> {
        self.mark(self.output.out.paint(GREEN, "✓"), name, text, took)
    }

    /// Something besides, told whole: neither a success nor a failure.
    pub(super) fn aside(&mut self, name: &str, text: &str) -> Result<(), Problem> {
        self.spinner = None;
        let mark = self.output.out.paint(YELLOW, "·");
        let text = crate::secrets::masked(text);
        let text = self.output.out.line(&text);
        let text = cut(&text, LONGEST);
        self.line(&format!("  {mark} {name:<10}  {text}\n"))
    }

    pub(super) fn mark(
        &mut self,
        mark: impl Display,
        name: &str,
        text: &str,
        took: Option<Duration>,
    ) -> Result<(), Problem> {
        self.spinner = None;
        let took = took.map(time).unwrap_or_default();
        let reader = self.output.out;
        // A time stands in a column of its own, so what stands before it has to be short.
        let room = if took.is_empty() { self.room(0) } else { self.room(11) };
        let text = reader.line(text).into_owned();
        let text = cut(&text, room);
        let pad = pad(&text, room.min(TEXT));
        let mut line = format!("  {mark} {name:<10}  {text}");
        if !took.is_empty() {
            let _ = write!(line, "{pad}{}", reader.paint(DIM, format!("{took:>11}")));
        }
        self.line(&format!("{line}\n"))
    }

    /// How many characters the text of a step may have beside so many others.
    pub(super) fn room(&self, beside: usize) -> usize {
        self.output.width().unwrap_or(100).saturating_sub(16 + beside).max(8)
    }

    pub(super) fn line(&self, text: &str) -> Result<(), Problem> {
        if self.output.json || self.silent { Ok(()) } else { self.output.print(text) }
    }
}

pub(super) fn millis(time: Duration) -> Value {
    json!((time.as_secs_f64() * 1e6).round() / 1e3)
}
