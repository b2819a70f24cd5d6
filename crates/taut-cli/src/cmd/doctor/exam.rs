//! Starts a server as a host would, and writes down what it does.
//!
//! Knows what to try: open, list, perhaps call, close; then SIGTERM on a second one; then, if the first
//! ended at once, a third with the whole environment. Must not judge any of it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Map, Value};
use taut::wire::Framing;
use taut::{
    Client, ClientEvent, Command, ConnectPhase, ConnectReason, Diagnostics, Ended, Error, Junk,
    Revision,
};

use super::processes::{self, Process};
use crate::args::Options;
use crate::output::Output;
use crate::problem::{Exit, exit_of};
use crate::session::{builder, tell_event};
use crate::spinner::Spinner;

/// How long a server may be silent about the probe: as long as the most impatient host that probes.
const PROBE: Duration = Duration::from_secs(3);

/// How long it may take to be ready: as long as the patient ones of the hosts wait.
const START: Duration = Duration::from_secs(30);

/// How long it may live on after SIGTERM: as long as the official SDKs wait before they kill.
const TERM: Duration = Duration::from_secs(2);

/// How long the other processes of a server may outlive it before they count as left behind.
const LINGER: Duration = Duration::from_millis(300);

/// What was seen, and when, counted from the start.
#[derive(Default)]
pub(super) struct Facts {
    pub(super) pid: Option<u32>,
    pub(super) program: Option<String>,
    pub(super) started: Option<Duration>,
    pub(super) first_stderr: Option<(Duration, String)>,
    pub(super) stderr_bytes: usize,
    pub(super) first_output: Option<Duration>,
    pub(super) probed: Option<Duration>,
    pub(super) shaken: Option<Duration>,
    pub(super) restarts: Vec<Framing>,
    pub(super) junk: Option<Junk>,
    pub(super) opened: Option<Result<Opened, Error>>,
    pub(super) listed: Option<Result<(String, Duration), Error>>,
    pub(super) called: Option<Result<(String, Duration), Error>>,
    pub(super) seen: Diagnostics,
    pub(super) ended: Option<(Ended, Duration)>,
    /// What was still there after the end, and whether it had left the server's group.
    pub(super) left: Vec<Process>,
    pub(super) on_term: Option<Option<Duration>>,
    /// How long a second one took to be ready, which was not probed.
    pub(super) second: Option<Duration>,
    pub(super) stderr: String,
    pub(super) environment: Vec<String>,
    pub(super) withheld: usize,
    /// It works with the whole environment; these names occur in what it said.
    pub(super) full_environment: Option<Vec<String>>,
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

type Shared = Arc<Mutex<Facts>>;

fn lock(facts: &Shared) -> MutexGuard<'_, Facts> {
    facts.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Does all of it. Whatever goes wrong is a fact.
pub(super) async fn examine(
    output: &Output,
    options: &Options,
    command: &Command,
    call: Option<(String, Map<String, Value>)>,
    spinner: &Spinner,
) -> Facts {
    let facts = Shared::default();
    {
        let mut facts = lock(&facts);
        let given = command.effective_env();
        facts.environment = given.keys().map(|name| name.to_string_lossy().into_owned()).collect();
        let ours = std::env::vars_os().filter(|(name, _)| !given.contains_key(name));
        facts.withheld = ours.count();
    }
    let start = options.start_timeout.unwrap_or(START);
    let began = Instant::now();
    let opened = watched(output, options, &facts, began)
        .probe_timeout(PROBE)
        .start_timeout(start)
        .leave_group(true)
        .spawn(command.clone())
        .await;
    match opened {
        Ok(client) => {
            use_it(&facts, began, &client, call, spinner).await;
            spinner.say("starting it again, to see what it does on SIGTERM");
            term(output, options, &facts, command, start).await;
        }
        Err(error) => {
            let early = matches!(&error, Error::Connect(error)
                if matches!(error.reason, ConnectReason::Exited(_) | ConnectReason::Closed));
            if let Error::Connect(error) = &error {
                lock(&facts).stderr = error.stderr.clone();
            }
            lock(&facts).opened = Some(Err(error));
            if early && !options.inherit_env {
                spinner.say("starting it again, with the whole environment");
                whole_environment(output, options, &facts, command, start).await;
            }
        }
    }
    std::mem::take(&mut *lock(&facts))
}

/// A client that writes down what happens while it opens.
fn watched(
    output: &Output,
    options: &Options,
    facts: &Shared,
    began: Instant,
) -> taut::ClientBuilder {
    let (events, lines) = (facts.clone(), facts.clone());
    let (on_event, on_line) = (output.clone(), output.clone());
    builder(output, options)
        .on_stderr(move |line| {
            let mut facts = lock(&lines);
            facts.stderr_bytes += line.len() + 1;
            facts.first_stderr.get_or_insert_with(|| (began.elapsed(), line.to_owned()));
            drop(facts);
            if on_line.verbose {
                crate::session::tell(&on_line, "stderr", line);
            }
        })
        .on_event(move |event| {
            let at = began.elapsed();
            let mut facts = lock(&events);
            match event {
                ClientEvent::Started { pid } => {
                    facts.started.get_or_insert(at);
                    facts.pid = Some(*pid);
                    facts.program = processes::program(*pid).or_else(|| facts.program.take());
                }
                ClientEvent::Asking { phase: ConnectPhase::Probe, .. } => {
                    facts.probed.get_or_insert(at);
                }
                ClientEvent::Asking { .. } => drop(facts.shaken.insert(at)),
                ClientEvent::FirstOutput => drop(facts.first_output.get_or_insert(at)),
                ClientEvent::Restarting { framing } => facts.restarts.push(*framing),
                ClientEvent::Junk(junk) => {
                    facts.junk.get_or_insert_with(|| (*junk).clone());
                }
                _ => {}
            }
            drop(facts);
            if on_event.verbose {
                tell_event(&on_event, event);
            }
        })
}

/// What a host does with a server: list, call, close.
async fn use_it(
    facts: &Shared,
    began: Instant,
    client: &Client,
    call: Option<(String, Map<String, Value>)>,
    spinner: &Spinner,
) {
    let info = client.server_info();
    lock(facts).opened = Some(Ok(Opened {
        revision: client.revision(),
        framing: client.framing().unwrap_or_default(),
        name: info.map(|info| format!("{} {}", info.name, info.version)).unwrap_or_default(),
        ready: began.elapsed(),
    }));
    spinner.say("listing");
    let listed = super::super::list::ask(client, None).await;
    let listed = listed.map(|offer| (offer.counts(), began.elapsed()));
    let went_well = listed.is_ok();
    lock(facts).listed = Some(listed);
    if let Some((tool, arguments)) = call.filter(|_| went_well) {
        spinner.say(format!("calling {tool}"));
        let called = client.call(tool.as_str(), Value::Object(arguments)).await;
        let failed =
            |answer: &taut::Answer| if answer.failed() { "reported failure" } else { "answered" };
        let called = called.map(|answer| (format!("{tool} {}", failed(&answer)), began.elapsed()));
        lock(facts).called = Some(called);
    }
    let family = client.pid().map(processes::family).unwrap_or_default();
    spinner.say("closing its stdin");
    let closing = Instant::now();
    let closed = client.close().await.ok().and_then(|closed| closed.process);
    let took = closing.elapsed();
    let left = match client.pid() {
        Some(pid) => lingering(pid, &family).await,
        None => Vec::new(),
    };
    processes::end(&left);
    let mut facts = lock(facts);
    facts.ended = closed.map(|ended| (ended, took));
    facts.left = left;
    facts.seen = client.diagnostics();
    facts.stderr = client.stderr();
}

/// What is left of a server's processes. What has been told to end too gets a moment for it.
async fn lingering(pid: u32, family: &[Process]) -> Vec<Process> {
    let began = Instant::now();
    loop {
        let left = processes::left(pid, family);
        if left.is_empty() || began.elapsed() > LINGER {
            return left;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// A second one gets SIGTERM while its stdin is open.
async fn term(
    output: &Output,
    options: &Options,
    facts: &Shared,
    command: &Command,
    start: Duration,
) {
    let revision =
        lock(facts).opened.as_ref().and_then(|opened| Some(opened.as_ref().ok()?.revision));
    let Some(revision) = revision else { return };
    let began = Instant::now();
    let quiet = Output { verbose: false, ..output.clone() };
    let opening = builder(&quiet, options).start_timeout(start).known(revision.era());
    let Ok(client) =
        opening.eof_grace(TERM / 20).term_grace(TERM / 20).spawn(command.clone()).await
    else {
        return;
    };
    lock(facts).second = Some(began.elapsed());
    let Some(pid) = client.pid() else { return };
    let asked = Instant::now();
    if !processes::terminate(pid) {
        return;
    }
    let gone = tokio::time::timeout(TERM, async {
        while client.exit().is_none() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    });
    lock(facts).on_term = Some(gone.await.ok().map(|()| asked.elapsed()));
    // What became of it is known; the rest is tidying up.
    let _ = client.close().await;
}

/// One that ended at once may only have missed a variable.
async fn whole_environment(
    output: &Output,
    options: &Options,
    facts: &Shared,
    command: &Command,
    start: Duration,
) {
    let quiet = Output { verbose: false, ..output.clone() };
    let opening = builder(&quiet, options).start_timeout(start).probe_timeout(PROBE);
    let Ok(client) = opening.spawn(command.clone().inherit_env()).await else { return };
    let _ = client.close().await;
    let mut facts = lock(facts);
    let said = facts.stderr.clone();
    let is_word = |name: &str| {
        let part = |c: char| c.is_alphanumeric() || c == '_';
        said.split(|c| !part(c)).any(|word| word == name)
    };
    let given = command.effective_env();
    let names = std::env::vars_os().filter(|(name, _)| !given.contains_key(name));
    let names = names.map(|(name, _)| name.to_string_lossy().into_owned());
    facts.full_environment = Some(names.filter(|name| is_word(name)).collect());
}

impl Facts {
    /// The error that ended it, wherever it did.
    pub(super) fn error(&self) -> Option<&Error> {
        let opened = self.opened.as_ref().and_then(|opened| opened.as_ref().err());
        let listed = self.listed.as_ref().and_then(|listed| listed.as_ref().err());
        opened.or(listed).or_else(|| self.called.as_ref().and_then(|called| called.as_ref().err()))
    }

    pub(super) fn exit(&self) -> Exit {
        self.error().map_or(Exit::NoConnection, exit_of)
    }

    /// Whether the probe was never answered, by a server that was up long before.
    pub(super) fn swallowed(&self) -> bool {
        let waited = |from: Duration, to: Duration| to.saturating_sub(from) >= PROBE;
        let late = self.probed.zip(self.shaken).is_some_and(|(from, to)| waited(from, to));
        late && self.restarts.is_empty() && self.second.is_some_and(|second| second < PROBE / 2)
    }

    /// How long it took to be ready, without what our own probe cost.
    pub(super) fn took(&self) -> Option<Duration> {
        let opened = self.opened.as_ref()?.as_ref().ok()?;
        Some(if self.swallowed() { opened.ready.saturating_sub(PROBE) } else { opened.ready })
    }

    /// The lines of the report.
    pub(super) fn phases(&self) -> Vec<Phase> {
        let mut all = Vec::new();
        let mut add = |name, ok, text: String, at| all.push(Phase { name, ok, text, at });
        let pid = self.pid.map(|pid| format!("process {pid}")).unwrap_or_default();
        let program = self.program.as_ref().map(|path| format!(", {path}")).unwrap_or_default();
        let started = self.started.is_some();
        let text = if started { format!("{pid}{program}") } else { "not at all".to_owned() };
        add("started", Some(started), text, self.started);
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
        match &self.opened {
            Some(Ok(opened)) => {
                let era = if opened.revision.is_modern() { "modern" } else { "legacy" };
                let text =
                    format!("{} ({era}), {}, {}", opened.revision, opened.framing, opened.name);
                add("agreed", Some(true), text, Some(opened.ready));
            }
            Some(Err(error)) if started => add("agreed", Some(false), headline(error), None),
            _ => {}
        }
        for (name, step) in [("listed", &self.listed), ("called", &self.called)] {
            match step {
                Some(Ok((text, at))) => add(name, Some(true), text.clone(), Some(*at)),
                Some(Err(error)) => add(name, Some(false), headline(error), None),
                None => {}
            }
        }
        if let Some((ended, took)) = &self.ended {
            let polite = ended.rung <= taut::Rung::Eof;
            add("on EOF", Some(polite), ended.to_string(), Some(*took));
        }
        match self.on_term {
            Some(Some(took)) => add("on SIGTERM", Some(true), "ended".to_owned(), Some(took)),
            Some(None) => add("on SIGTERM", Some(false), "lived on".to_owned(), None),
            None => {}
        }
        if self.ended.is_some() {
            let names: Vec<_> = self.left.iter().map(Process::to_string).collect();
            let text = if names.is_empty() { "nothing".to_owned() } else { names.join(", ") };
            add("left behind", Some(names.is_empty()), text, None);
        }
        let withheld = match self.withheld {
            0 => String::new(),
            count => format!("; {count} of yours withheld"),
        };
        add("environment", None, format!("{}{withheld}", self.environment.join(" ")), None);
        all
    }
}

/// The first line of an error.
pub(super) fn headline(error: &Error) -> String {
    let text = error.to_string();
    let first = text.lines().next().unwrap_or_default();
    first.trim_end_matches("; its last words on stderr:").to_owned()
}
