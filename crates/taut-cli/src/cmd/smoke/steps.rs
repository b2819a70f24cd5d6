//! The steps of `taut smoke` for one server; each is printed as soon as it is done.
//!
//! Closes the server after every failure and interrupt. The call itself is in `called.rs`.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use taut::types::ServerCapabilities;
use taut::{
    Client, Tool,
    client::{ClientEvent, Closed},
    error::ConnectPhase,
    process::ShutdownStep,
};

use super::pick::{Pick, pick};
use super::transcript::{FORCED, Transcript, millis};
use crate::args::Options;
use crate::asking::Host;
use crate::cmd::list::{Offer, ask};
use crate::output::{GREEN, RED, YELLOW, time};
use crate::own;
use crate::problem::{Exit, Problem};
use crate::reach::Reach;
use crate::session::{builder, hang_up, hear, patient};
use crate::signals::Interrupts;
use crate::strict::{self, Who};
use crate::typed;

/// What was seen while it opened, and when, counted from the start.
#[derive(Clone, Copy, Default)]
struct Opening {
    started: Option<Duration>,
    probed: Option<Duration>,
    answered: bool,
    shaken: Option<Duration>,
    /// Another was started beside it, which begins with a handshake of its own.
    beside: bool,
}

impl Opening {
    fn note(&mut self, event: &ClientEvent<'_>, at: Duration) {
        match event {
            ClientEvent::ProcessStarted { .. } => drop(self.started.get_or_insert(at)),
            ClientEvent::OpeningSent { phase: ConnectPhase::Probe, .. } => self.probed = Some(at),
            ClientEvent::OpeningSent { phase: ConnectPhase::Handshake, .. } if self.beside => {
                self.shaken = Some(at);
            }
            ClientEvent::OpeningSent { phase: ConnectPhase::Handshake, .. } => {
                self.shaken.get_or_insert(at);
            }
            ClientEvent::StartingSecond { .. } => self.beside = true,
            ClientEvent::OpeningAnswered { phase: ConnectPhase::Probe, .. } => self.answered = true,
            // What was not answered is not what cost the time.
            ClientEvent::Restarting { .. } => self.answered = true,
            _ => {}
        }
    }

    /// What a probe has cost that was never answered.
    fn unanswered(&self) -> Option<Duration> {
        let (probed, shaken) = (self.probed?, self.shaken?);
        (!self.answered).then(|| shaken.saturating_sub(probed))
    }
}

impl Transcript<'_> {
    /// All of it: what fails is told here, and decides how to end.
    pub(super) async fn run(
        &mut self,
        options: &Options,
        reach: Reach,
        chosen: Option<(String, Value)>,
        interrupts: &mut Interrupts,
    ) -> Result<Exit, Problem> {
        let opening = Arc::new(Mutex::new(Opening::default()));
        let (seen, output) = (opening.clone(), self.output.clone());
        let began = Instant::now();
        let host = Host::new(self.output, &options.asked)?;
        let builder = host.attach(builder(self.output, options)).on_event(move |event| {
            seen.lock().unwrap_or_else(PoisonError::into_inner).note(event, began.elapsed());
            hear(&output, event);
        });
        let carrier = reach.carrier();
        self.wait("starting the server");
        let opened = reach.open_until(self.output, builder, interrupts);
        let opened = match self.silent {
            true => opened.await,
            false => patient(self.output, options, opened).await,
        };
        let client = match opened {
            Ok(Some(client)) => client,
            Ok(None) => return Err(Problem::Interrupted),
            Err(error) => return self.failed("start", &error, ""),
        };
        let opening = *opening.lock().unwrap_or_else(PoisonError::into_inner);
        self.agreed(&client, carrier, opening.started, began.elapsed())?;
        self.unprobed = opening.unanswered().filter(|_| !client.revision().is_modern());
        if let Some(cost) = self.unprobed {
            let cost = time(cost);
            self.aside("probe", &format!("server/discover was not answered, which cost {cost}"))?;
        }
        let by_us = chosen.is_none();
        tokio::select! {
            exit = self.try_out(&client, chosen) => {
                let exit = exit?;
                let judged = host.judge(exit);
                if judged == exit {
                    return Ok(self.weighed(exit));
                }
                let what = "it asked something that nobody answered";
                // Nobody wanted that call.
                if by_us {
                    self.aside("asked", what)?;
                    return Ok(self.weighed(exit));
                }
                self.summary = vec![what.to_owned()];
                Ok(judged)
            }
            // What was asked is withdrawn by being dropped.
            () = interrupts.next() => {
                self.hush();
                hang_up(self.output, &client, interrupts).await;
                Err(Problem::Interrupted)
            }
        }
    }

    /// How it all ends, by what others say of the server.
    fn weighed(&mut self, exit: Exit) -> Exit {
        if self.refused_by.is_none() || !matches!(exit, Exit::Worked | Exit::ToolFailed) {
            return exit;
        }
        self.next = Some(typed::again("smoke", "doctor", &[]));
        if self.refused_by != Some(Who::Sdks) {
            return exit;
        }
        let words = format!(
            "it answers taut, but {}: see `{taut} doctor`",
            Who::Sdks.words(),
            taut = own::name()
        );
        self.summary = vec![words];
        Exit::Violation
    }

    /// What a host does with a server.
    async fn try_out(
        &mut self,
        client: &Client,
        chosen: Option<(String, Value)>,
    ) -> Result<Exit, Problem> {
        let offer = match self.list(client).await? {
            Ok(offer) => offer,
            Err(exit) => {
                self.besides(client)?;
                return Ok(exit);
            }
        };
        let tools = offer.tools.as_deref().unwrap_or_default();
        let (picked, by_us) = match chosen {
            Some((tool, arguments)) => (Pick::Call(tool, arguments), false),
            None => (pick(tools), true),
        };
        let called = self.call(client, (picked, by_us), tools).await?;
        let closed = self.close(client).await?;
        self.besides(client)?;
        Ok(if called == Exit::Worked { closed } else { called })
    }

    /// What came besides answers, and what came too often: hosts are less patient with it.
    fn besides(&mut self, client: &Client) -> Result<(), Problem> {
        let seen = client.diagnostics();
        if let Some(junk) = &seen.first_invalid {
            let (lines, verdict) = match seen.invalid_messages {
                1 => ("something that is no message".to_owned(), "a stray line".to_owned()),
                count => {
                    (format!("{count} lines that are no messages"), format!("{count} stray lines"))
                }
            };
            let first = if seen.invalid_messages == 1 { "" } else { ", the first" };
            self.aside("stdout", &format!("{lines}{first}: {}", junk.excerpt))?;
            self.summary.push(format!("{verdict} on stdout"));
            self.report.insert(
                "junk".into(),
                json!({ "lines": seen.invalid_messages, "first": junk.excerpt }),
            );
        }
        if let Some(id) = &seen.first_unknown {
            let count = seen.unknown_answers;
            let times = if count == 1 { "once".to_owned() } else { format!("{count} times") };
            self.aside(
                "ids",
                &format!("it answered what nobody asked, {times}; first the id {id}"),
            )?;
            self.report.insert("unknown_answers".into(), json!(count));
        }
        // The probe that was given up may have been answered after all.
        match seen.late_answers.saturating_sub(u64::from(self.unprobed.is_some())) {
            0 => {}
            count => {
                let requests = if count == 1 { "request" } else { "requests" };
                self.aside(
                    "answers",
                    &format!("it answered {count} {requests} twice, or too late"),
                )?;
                self.report.insert("late_answers".into(), json!(count));
            }
        }
        Ok(())
    }

    fn agreed(
        &mut self,
        client: &Client,
        carrier: Option<&str>,
        spawned: Option<Duration>,
        ready: Duration,
    ) -> Result<(), Problem> {
        let how = if client.pid().is_some() { "started" } else { "connected" };
        self.step(how, "", spawned)?;
        let spawned = spawned.unwrap_or_default();
        let revision = client.revision();
        let era = if revision.is_modern() { "modern" } else { "legacy" };
        let framing = client.framing().unwrap_or_default().to_string();
        let framing = carrier.unwrap_or(&framing);
        self.step("agreed", &format!("{revision} ({era}), {framing}"), Some(ready - spawned))?;
        if let Some(info) = client.server_info() {
            let title = info.title.as_ref().map(|title| format!(", {title}")).unwrap_or_default();
            self.step("server", format!("{} {}{title}", info.name, info.version).trim_end(), None)?;
            self.report
                .insert("server".into(), json!({ "name": info.name, "version": info.version }));
        }
        let offers = offers(client.capabilities());
        let shown = if offers.is_empty() { "nothing".to_owned() } else { offers.join(", ") };
        self.step("offers", &shown, None)?;
        self.report.insert("revision".into(), json!(revision.as_str()));
        self.report.insert("era".into(), json!(era));
        self.report.insert("framing".into(), json!(framing));
        self.report.insert("capabilities".into(), json!(offers));
        self.report.insert("started_ms".into(), millis(spawned));
        self.report.insert("ready_ms".into(), millis(ready));
        Ok(())
    }

    async fn list(&mut self, client: &Client) -> Result<Result<Offer, Exit>, Problem> {
        self.wait("listing");
        let began = Instant::now();
        let offer = match ask(client, None).await {
            Ok(offer) => offer,
            Err(error) => {
                let exit = self.failed("list", &error, &client.stderr())?;
                // The failure is reported already, so how the server ends does not matter.
                let _ = client.close().await;
                return Ok(Err(exit));
            }
        };
        let took = began.elapsed();
        let section = |smoke: &mut Self, what: &str, names: Option<Vec<String>>| {
            let Some(names) = names else { return Ok(()) };
            smoke.report.insert(what.to_owned(), json!(names));
            if !names.is_empty() {
                let count = names.len();
                smoke.summary.push(format!(
                    "{count} {}",
                    if count == 1 { &what[..what.len() - 1] } else { what }
                ));
            }
            let shown = match names.len() {
                0 => "none".to_owned(),
                count => format!("{count}: {}", names.join(", ")),
            };
            smoke.step(what, &shown, None)
        };
        let names = |tools: &Vec<Tool>| tools.iter().map(|tool| tool.name.clone()).collect();
        section(self, "tools", offer.tools.as_ref().map(names))?;
        let uris = |all: &Vec<taut::Resource>| all.iter().map(|each| each.uri.clone()).collect();
        section(self, "resources", offer.resources.as_ref().map(uris))?;
        let families = |all: &Vec<taut::ResourceTemplate>| {
            all.iter().map(|each| each.uri_template.clone()).collect()
        };
        section(self, "templates", offer.templates.as_ref().map(families))?;
        let names = |all: &Vec<taut::Prompt>| all.iter().map(|each| each.name.clone()).collect();
        section(self, "prompts", offer.prompts.as_ref().map(names))?;
        self.report.insert("list_ms".into(), millis(took));
        self.objections(client, &offer)?;
        Ok(Ok(offer))
    }

    /// What works here and not with others is told.
    fn objections(&mut self, client: &Client, offer: &Offer) -> Result<(), Problem> {
        let opening = strict::opening(&client.diagnostics().missing);
        let tools = offer.sent.tools.as_deref().unwrap_or_default();
        let tools = strict::tools(client.revision(), tools);
        let all: Vec<_> = opening.into_iter().chain(tools).collect();
        for objection in &all {
            self.aside("hosts", &format!("{}: {}", objection.who.words(), objection.what))?;
        }
        // The worst of them first.
        let worst = [Who::Sdks, Who::TypeScript, Who::Models];
        let by = |who: &Who| all.iter().any(|objection| objection.who == *who);
        self.refused_by = worst.into_iter().find(by);
        if !all.is_empty() {
            let all: Vec<_> = all.iter().map(|objection| &objection.what).collect();
            self.report.insert("objections".into(), json!(all));
        }
        Ok(())
    }

    async fn close(&mut self, client: &Client) -> Result<Exit, Problem> {
        self.wait("waiting for the server to end");
        let began = Instant::now();
        match client.close().await {
            Ok(closed) => {
                let took = began.elapsed();
                let step = closed.process.map(|ended| ended.step);
                // It may have died of the call; that it was asked to end just then proves nothing.
                let unwell = closed.process.map(|ended| ended.exit).filter(|exit| !exit.success());
                let (colour, sign) = match step {
                    Some(step) if step > ShutdownStep::Eof => (RED, "✗"),
                    Some(ShutdownStep::Unasked) => (YELLOW, "·"),
                    Some(_) if unwell.is_some() => (YELLOW, "·"),
                    _ => (GREEN, "✓"),
                };
                let mark = self.output.out.paint(colour, sign);
                self.mark(mark, "ended", &ended(&closed), Some(took))?;
                self.report.insert("ended".into(), json!(ended(&closed)));
                self.report.insert("end_ms".into(), millis(took));
                let polite = closed.process.is_none_or(|ended| ended.step <= ShutdownStep::Eof);
                match unwell.filter(|_| polite) {
                    _ if !polite => self.summary.push(FORCED.to_owned()),
                    Some(exit) => self.summary.push(format!("it {exit}")),
                    None => {}
                }
                Ok(Exit::Worked)
            }
            Err(error) => self.failed("end", &error, ""),
        }
    }
}

fn ended(closed: &Closed) -> String {
    closed.process.map_or_else(|| closed.to_string(), |process| process.to_string())
}

/// What the capabilities say, in words.
pub(crate) fn offers(has: &ServerCapabilities) -> Vec<&'static str> {
    let all = [
        ("tools", has.tools.is_some()),
        ("resources", has.resources.is_some()),
        ("prompts", has.prompts.is_some()),
        ("completions", has.completions.is_some()),
        ("logging", has.logging.is_some()),
        ("tasks", has.tasks.is_some()),
        ("experimental", has.experimental.is_some()),
        ("extensions", has.extensions.is_some()),
    ];
    all.iter().filter(|(_, there)| *there).map(|(name, _)| *name).collect()
}
