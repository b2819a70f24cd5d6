//! Starts a server as a host would, and records what it does in `facts.rs`.
//!
//! First open, list, call if asked to, close; then a second start without a probe, for SIGTERM where there is
//! one; and if nothing came of it, a start with the whole environment (`again.rs`). Ends every process that is left. Must not
//! judge.

use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Map, Value};
use taut::{Client, ClientBuilder, Error, client::ClientEvent, error::ConnectReason};
use taut_check::lint::lint;
use tokio::sync::Notify;

use super::facts::{Facts, Mute, Opened};
use crate::args::Options;
use crate::cmd::call::unknown;
use crate::cmd::list;
use crate::hosts::WITHIN;
use crate::output::Output;
use crate::processes::{self, Process};
use crate::reach::Reach;
use crate::session::{builder, hang_up, hear, hear_line, told};
use crate::signals::Interrupts;
use crate::spinner::Spinner;
use crate::strict;

/// How long a server may be silent about the probe: as long as the most impatient host that probes.
pub(super) const PROBE: Duration = Duration::from_secs(3);

/// How long it may take to be ready: as long as the patient ones of the hosts wait.
const START: Duration = Duration::from_secs(30);

/// A start that takes longer is overlapped with the next.
const SLOW: Duration = Duration::from_secs(1);

/// How long a server that was silent in the first start may take with the whole environment: it has had its time, so
/// that what it downloads is there by now.
const WAITED: Duration = Duration::from_secs(15);

/// How long it may live on after SIGTERM: as long as the official SDKs wait before they kill.
pub(super) const TERM: Duration = Duration::from_secs(2);

/// How long the other processes of a server may outlive it before they count as left behind.
const LINGER: Duration = Duration::from_millis(300);

/// A piece of stderr this long has no line end in it: the library passes on longer lines in pieces.
const ENDLESS: usize = 8 << 10;

type Shared = Arc<Mutex<Facts>>;

pub(super) fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One examination.
pub(super) struct Exam<'a> {
    pub(super) output: &'a Output,
    pub(super) options: &'a Options,
    pub(super) reach: &'a Reach,
    pub(super) start: Duration,
    pub(super) facts: Shared,
    /// The server that runs now, so that an interrupt can end it.
    client: Mutex<Option<Client>>,
    pub(super) stop: Notify,
}

impl<'a> Exam<'a> {
    pub(super) fn new(output: &'a Output, options: &'a Options, reach: &'a Reach) -> Self {
        let mut facts = Facts { carrier: reach.carrier(), ..Facts::default() };
        match reach {
            Reach::Start(command) => {
                let given = command.effective_env();
                let ours = std::env::vars_os().filter(|(name, _)| !given.contains_key(name));
                facts.withheld = ours.count();
                let names = given.keys().map(|name| name.to_string_lossy().into_owned());
                facts.environment = names.filter(|name| name != WITHIN).collect();
                let network = command.network_variables().into_iter();
                let network = network.filter(|(_, passed)| !passed);
                facts.network =
                    network.map(|(name, _)| name.to_string_lossy().into_owned()).collect();
            }
            Reach::Socket(address) => facts.socket = Some(address.to_string()),
            #[cfg(feature = "http")]
            Reach::Http(remote) => facts.socket = Some(remote.to_string()),
            #[cfg(feature = "fleet")]
            Reach::Nats(service) => facts.socket = Some(service.to_string()),
        }
        let start = options.start_timeout.unwrap_or(START);
        let facts = Arc::new(Mutex::new(facts));
        Self { output, options, reach, start, facts, client: Mutex::default(), stop: Notify::new() }
    }

    /// Does all of it. Every failure is recorded as a fact.
    pub(super) async fn run(&self, call: Option<(String, Map<String, Value>)>, spinner: &Spinner) {
        processes::adopt_orphans();
        self.start_and_visit(call, spinner).await;
        self.sweep().await;
    }

    /// Ends what is left of every server that was started, and writes it down.
    async fn sweep(&self) {
        let pids = lock(&self.facts).pids.clone();
        for pid in pids {
            let left = self.lingering(pid, &[]).await;
            processes::end(&left);
            let mut facts = lock(&self.facts);
            let new = |process: &Process| !facts.left.iter().any(|known| known.pid == process.pid);
            let new: Vec<Process> = left.into_iter().filter(new).collect();
            facts.left.extend(new);
        }
    }

    /// What is left of a server's processes. What has been told to end too gets a moment for it.
    async fn lingering(&self, pid: u32, family: &[Process]) -> Vec<Process> {
        let began = Instant::now();
        loop {
            let servers = lock(&self.facts).pids.clone();
            let mut left = processes::left(pid, family);
            let known: Vec<u32> = left.iter().map(|process| process.pid).collect();
            let others = processes::adopted(&servers).into_iter();
            left.extend(others.filter(|process| !known.contains(&process.pid)));
            let told = lock(&self.facts).left.clone();
            let new = left.iter().any(|process| !told.contains(process));
            if !new || began.elapsed() > LINGER {
                return left;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    async fn start_and_visit(&self, call: Option<(String, Map<String, Value>)>, spinner: &Spinner) {
        let began = Instant::now();
        let opening = self.watched(began).probe_timeout(PROBE).start_timeout(self.start);
        // Where nothing can be seen of what a server leaves behind, it is ended with the server.
        let opening = opening.leave_group(processes::LISTED);
        match self.reach.open_unless(opening, self.stop.notified()).await {
            Ok(None) => {}
            Ok(Some(client)) => {
                self.holds(&client);
                let framing = client.framing().unwrap_or_default();
                let visit = self.visit(began, &client, call, spinner);
                // Two processes of a fast server would save nothing, and some servers take a lock.
                if self.reach.command().is_some() && began.elapsed() > SLOW {
                    let (_, early) = tokio::join!(visit, self.open_unprobed(framing));
                    self.lets_go();
                    self.start_second(early, framing, spinner).await;
                } else {
                    visit.await;
                    self.lets_go();
                    self.start_second(None, framing, spinner).await;
                }
            }
            Err(error) => {
                let reason = match &error {
                    Error::Connect(failed) => Some(&failed.reason),
                    _ => None,
                };
                let early =
                    matches!(reason, Some(ConnectReason::Exited(_) | ConnectReason::Closed));
                let waits = matches!(
                    reason,
                    Some(ConnectReason::Silent { .. } | ConnectReason::NoAnswer { .. })
                );
                // One that waits for ever may wait for the network.
                let limit = if early { self.start } else { self.start.min(WAITED) };
                if let Error::Connect(error) = &error {
                    let mut facts = lock(&self.facts);
                    facts.stdout.clone_from(&error.stdout);
                    facts.stderr.clone_from(&error.stderr);
                }
                lock(&self.facts).opened = Some(Err(error));
                let withheld = lock(&self.facts).withheld > 0;
                if (early || waits)
                    && withheld
                    && !self.options.inherit_env
                    && self.reach.command().is_some()
                {
                    spinner.say("starting it again, with the whole environment");
                    self.whole_environment(limit).await;
                }
            }
        }
    }

    /// What was seen.
    pub(super) fn facts(self) -> Facts {
        std::mem::take(&mut *lock(&self.facts))
    }

    /// Ends what runs after the first signal, politely; the second kills it.
    pub(super) async fn hang_up(
        &self,
        work: Pin<Box<impl Future<Output = ()>>>,
        interrupts: &mut Interrupts,
    ) {
        let Some(client) = lock(&self.client).take() else {
            // It is still opening, and lets go by itself.
            self.stop.notify_one();
            self.output.overheard();
            tokio::select! {
                () = told(self.output, work) => {}
                () = interrupts.next() => {}
            };
            return self.end_all();
        };
        // What was asked is withdrawn by being dropped.
        drop(work);
        let pid = client.pid().unwrap_or_default();
        let family = processes::family(pid);
        hang_up(self.output, &client, interrupts).await;
        // The client was told to leave those alone, so that they could be seen.
        processes::end(&processes::left(pid, &family));
        self.end_all();
    }

    /// Ends what is left of every server that was started, at once.
    fn end_all(&self) {
        let pids = lock(&self.facts).pids.clone();
        pids.iter().for_each(|pid| processes::end(&processes::left(*pid, &[])));
    }

    /// A hook for a server that is started besides the first.
    pub(super) fn counted(&self) -> impl Fn(&ClientEvent<'_>) + Send + Sync + 'static {
        let facts = self.facts.clone();
        move |event| {
            if let ClientEvent::ProcessStarted { pid } = event {
                lock(&facts).pids.push(*pid);
            }
        }
    }

    pub(super) fn holds(&self, client: &Client) {
        *lock(&self.client) = Some(client.clone());
    }

    pub(super) fn lets_go(&self) {
        lock(&self.client).take();
    }

    /// A client that writes down what happens while it opens.
    fn watched(&self, began: Instant) -> ClientBuilder {
        let (events, lines) = (self.facts.clone(), self.facts.clone());
        let (on_event, on_line) = (self.output.clone(), self.output.clone());
        builder(self.output, self.options)
            .on_stderr(move |line| {
                let mut facts = lock(&lines);
                facts.stderr_bytes += line.len() + 1;
                facts.stderr_endless |= line.len() >= ENDLESS;
                // What comes later may be the words of another, which was asked in another way.
                if facts.beside.is_none() {
                    facts.first_stderr.get_or_insert_with(|| (began.elapsed(), line.to_owned()));
                }
                drop(facts);
                hear_line(&on_line, line);
            })
            .on_event(move |event| {
                lock(&events).note(began.elapsed(), event);
                hear(&on_event, event);
            })
    }

    /// What a host does with a server: list, call, close.
    async fn visit(
        &self,
        began: Instant,
        client: &Client,
        call: Option<(String, Map<String, Value>)>,
        spinner: &Spinner,
    ) {
        let info = client.server_info();
        lock(&self.facts).opened = Some(Ok(Opened {
            revision: client.revision(),
            framing: client.framing().unwrap_or_default(),
            name: info.map_or_else(String::new, |i| {
                format!("{} {}", i.name, i.version).trim_end().into()
            }),
            ready: began.elapsed(),
        }));
        spinner.say("listing");
        let before = client.diagnostics().bytes;
        let listed = list::ask(client, None).await;
        if let Err(error) = &listed {
            self.muted(client, error, before, 0);
        }
        let went_well = listed.is_ok();
        let mut objections: Vec<_> =
            strict::opening(&client.diagnostics().missing).into_iter().collect();
        if let Ok(offer) = &listed {
            let tools = offer.sent.tools.as_deref().unwrap_or_default();
            objections.extend(strict::tools(client.revision(), tools));
            objections.extend(strict::forward(tools));
            let tools: Vec<Value> =
                tools.iter().filter_map(|tool| serde_json::to_value(tool).ok()).collect();
            lock(&self.facts).lints = lint(&tools, offer.first_page);
        }
        // A tool that is not listed may still be there: only if it is refused, it was a slip.
        let unlisted = call.as_ref().and_then(|(tool, _)| {
            let tools = listed.as_ref().ok()?.tools.as_deref().unwrap_or_default();
            let is_listed = tools.iter().any(|each| each.name == *tool);
            let hint = "name one of those after --call".to_owned();
            (!is_listed).then(|| unknown(tool, tools).hinted(hint))
        });
        lock(&self.facts).objections = objections;
        lock(&self.facts).listed = Some(listed.map(|offer| (offer.counts(), began.elapsed())));
        if let Some((tool, arguments)) = call.filter(|_| went_well) {
            spinner.say(format!("calling {tool}"));
            self.call(began, client, &tool, arguments).await;
            let mut facts = lock(&self.facts);
            if let Some(Err(Error::Refused { .. })) = facts.called {
                facts.mistyped = unlisted;
            }
        }
        spinner.say("closing the connection");
        self.close(client).await;
    }

    async fn call(
        &self,
        began: Instant,
        client: &Client,
        tool: &str,
        arguments: Map<String, Value>,
    ) {
        let before = client.diagnostics().bytes;
        let reports = Arc::new(AtomicU64::new(0));
        let counted = reports.clone();
        // The official SDKs wait no longer for a call that reports progress, unless told to.
        let called = client
            .call(tool.to_owned(), Value::Object(arguments))
            .ceiling(self.options.timeout)
            .progress(move |_| {
                counted.fetch_add(1, Ordering::Relaxed);
            })
            .await;
        let after = match &called {
            Ok(_) => still_there(client).await.err(),
            Err(error) => {
                self.muted(client, error, before, reports.load(Ordering::Relaxed));
                None
            }
        };
        let verb =
            |answer: &taut::Answer| if answer.failed() { "reported failure" } else { "answered" };
        let called = called.map(|answer| (format!("{tool} {}", verb(&answer)), began.elapsed()));
        let mut facts = lock(&self.facts);
        facts.called = Some(called);
        facts.after_call = after;
    }

    /// Writes down how a server is that does not answer.
    fn muted(&self, client: &Client, error: &Error, before: u64, reports: u64) {
        if matches!(error, Error::TimedOut { .. }) {
            let stopped = client.pid().is_some_and(processes::is_stopped);
            let bytes = client.diagnostics().bytes - before;
            lock(&self.facts).mute = Some(Mute { stopped, reports, bytes });
        }
    }

    async fn close(&self, client: &Client) {
        let before = client.diagnostics();
        let family = client.pid().map(processes::family).unwrap_or_default();
        let closing = Instant::now();
        let closed = client.close().await.ok().and_then(|closed| closed.process);
        let took = closing.elapsed();
        let left = match client.pid() {
            Some(pid) => self.lingering(pid, &family).await,
            None => Vec::new(),
        };
        processes::end(&left);
        let mut facts = lock(&self.facts);
        facts.ended = closed.map(|ended| (ended, took));
        facts.left = left;
        facts.stderr_closed = before.stderr_closed;
        facts.seen = client.diagnostics();
        facts.backlog = facts.seen.bytes - before.bytes;
        facts.stderr = client.stderr();
    }
}

/// Whether a server can be asked something after a call, whatever it answers.
async fn still_there(client: &Client) -> Result<(), Error> {
    let asked = if client.revision().is_modern() {
        client.tools().await.map(|_| ())
    } else {
        client.ping().await
    };
    match asked {
        Err(error @ (Error::Lost(_) | Error::TimedOut { .. })) => Err(error),
        _ => Ok(()),
    }
}
