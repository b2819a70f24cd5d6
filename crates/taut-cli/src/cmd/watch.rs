//! `taut watch`: the notifications of a server, as they come.
//!
//! Knows what can be subscribed to, and when to end. Calls nothing.

use std::ffi::OsString;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;
use taut::types::SubscriptionFilter;
use taut::{Client, Error, Level, client::ChangeStream};
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::args::{Options, duration};
use crate::arguments::closest;
use crate::asking::Host;
use crate::events::{Event, is_told};
use crate::hosts::resolve;
use crate::output::{BOLD, DIM, Output, YELLOW};
use crate::problem::{Exit, Problem};
use crate::session::{builder, hang_up, hear, patient};
use crate::signals::Interrupts;
use crate::spinner::Spinner;
use crate::stamp;

/// Log messages that wait to be shown at most. A server that floods its log is not waited for; how
/// many were left out is told.
const WAITING: usize = 4_096;

/// How long the lists may take that a hint is made from: nobody watches for its sake.
const LISTED: Duration = Duration::from_secs(2);

const HELP: &str = "\
Shows changes of lists, changes of resources that --resource names, and log messages, each with the \
time (UTC) at which it came; with --json one document per line. In 2026-07-28 a server logs only in \
answer to calls, so its log is in `taut shell`.

Ends with Ctrl-C (exit 130), when the server ends (5, with the reason), after --for or after --count \
(0). With both, 6 if the time is over before so many have come: to wait for a change in a script.

Examples:
  taut watch -- taut serve                        until Ctrl-C
  taut watch --resource demo://touched demo       a resource, too
  taut watch --json --for 1m -- taut serve        a minute, for a program
  taut watch --count 1 --for 5m -- taut serve     wait for a change";

#[derive(clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Watch {
    /// A server by name (see `taut servers`), a URL, tcp:HOST:PORT or unix:PATH.
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// Show changes of this resource; can be repeated.
    #[arg(long, value_name = "URI")]
    resource: Vec<String>,
    /// Show log messages from this level on: debug, info, notice, warning, error and so on.
    #[arg(long, value_name = "LEVEL", value_parser = level, default_value = "info")]
    level: Level,
    /// End after this time.
    #[arg(long = "for", value_name = "TIME", value_parser = duration)]
    time: Option<Duration>,
    /// End after so many changes and log messages.
    #[arg(long, value_name = "N", value_parser = count)]
    count: Option<u64>,
    #[command(flatten)]
    pub(crate) options: Options,
    /// The server's program and its arguments, untouched.
    #[arg(last = true, value_name = "COMMAND")]
    server: Vec<OsString>,
}

fn level(text: &str) -> Result<Level, String> {
    let level = Level::from(text);
    if level.is_known() {
        return Ok(level);
    }
    Err("expected debug, info, notice, warning, error, critical, alert or emergency".to_owned())
}

/// Log messages on their way from the connection to the screen.
struct Logs {
    waiting: mpsc::Receiver<Event>,
    lost: Arc<AtomicUsize>,
}

fn count(text: &str) -> Result<u64, String> {
    text.parse().ok().filter(|count| *count > 0).ok_or_else(|| "expected 1 or more".to_owned())
}

pub(crate) async fn run(output: &Output, args: &Watch) -> Result<Exit, Problem> {
    let reach = resolve(output, &args.options, args.name.as_deref(), &args.server)?.reach;
    crate::leftovers::keep_swept();
    let host = Host::new(output, &args.options.asked)?;
    let mut interrupts = Interrupts::new()?;
    let (log, waiting) = mpsc::channel(WAITING);
    let logs = Logs { waiting, lost: Arc::default() };
    let lost = logs.lost.clone();
    let told = output.clone();
    let builder = host
        .attach(builder(output, &args.options))
        .on_log(move |message| {
            if log.try_send(Event::Log(message)).is_err() {
                lost.fetch_add(1, Ordering::Relaxed);
            }
        })
        .on_event(move |event| {
            if !is_told(event) {
                hear(&told, event);
            }
        });
    let spinner = Spinner::start(output, "starting the server");
    let opening = reach.open_until(output, builder, &mut interrupts);
    let client = patient(output, &args.options, opening).await?.ok_or(Problem::Interrupted)?;
    drop(spinner);
    let watched = tokio::select! {
        watched = watch(output, args, &client, logs) => watched,
        () = interrupts.next() => {
            hang_up(output, &client, &mut interrupts).await;
            // The usual way to end it, and no error.
            return Ok(Exit::Interrupted);
        }
    };
    client.close().await?;
    watched
}

async fn watch(
    output: &Output,
    args: &Watch,
    client: &Client,
    mut logs: Logs,
) -> Result<Exit, Problem> {
    let mut changes = listen(client, &args.resource).await?;
    let logged = log(client, &args.level).await?;
    tell_start(output, client, changes.as_ref(), logged.then_some(&args.level))?;
    tell_unlisted(output, client, &args.resource).await;
    let until = args.time.and_then(|time| Instant::now().checked_add(time));
    let mut seen = 0;
    loop {
        let event = tokio::select! {
            // What was told before the end comes before the end.
            biased;
            Some(log) = logs.waiting.recv() => log,
            change = next(changes.as_mut()) => match change {
                Ok(Some(change)) => Event::Change(change),
                // The server tells no more of changes; it may still log.
                Ok(None) => {
                    changes = None;
                    continue;
                }
                Err(_) => Event::Ended(client.ended().await.to_string()),
            },
            closed = client.ended() => Event::Ended(closed.to_string()),
            () = sleep_until(until) => {
                let enough = args.count.is_none();
                return Ok(if enough { Exit::Worked } else { Exit::TimedOut });
            }
        };
        let lost = logs.lost.swap(0, Ordering::Relaxed);
        if lost > 0 {
            let words = format!("{lost} log messages came faster than they could be shown");
            output.note(&output.err.paint(YELLOW, words));
        }
        show(output, &event)?;
        if let Event::Ended(_) = event {
            output.last_words("stderr", &client.stderr());
            return Ok(Exit::Violation);
        }
        seen += 1;
        if args.count == Some(seen) {
            return Ok(Exit::Worked);
        }
    }
}

/// Says which resources the server does not list.
pub(crate) async fn tell_unlisted(output: &Output, client: &Client, resources: &[String]) {
    for (uri, meant) in unlisted(client, resources).await {
        let meant = meant.map_or_else(String::new, |meant| format!("; did you mean {meant}?"));
        let words =
            format!("{uri} is none of the resources that the server lists; it agreed to it{meant}");
        output.note(&output.err.paint(YELLOW, output.err.line(&words)));
    }
}

/// Opens the stream of changes; nothing if the server tells of none and none was asked for.
async fn listen(client: &Client, resources: &[String]) -> Result<Option<ChangeStream>, Problem> {
    let mut filter = SubscriptionFilter::new()
        .tools_list_changed(true)
        .prompts_list_changed(true)
        .resources_list_changed(true);
    if !resources.is_empty() {
        filter = filter.resource_subscriptions(resources.to_vec());
    }
    let changes = match client.listen(filter).await {
        Err(Error::NotOffered { .. }) if resources.is_empty() => return Ok(None),
        Err(Error::NotOffered { .. }) => return Err(untold(client).into()),
        changes => changes?,
    };
    let honoured = changes.honoured().resource_subscriptions.as_deref().unwrap_or_default();
    match resources.iter().find(|uri| !honoured.contains(uri)) {
        Some(_) => Err(untold(client).into()),
        None => Ok(Some(changes)),
    }
}

/// A server that does not tell of changes of resources, in the words of its revision.
pub(crate) fn untold(client: &Client) -> Error {
    let modern = client.revision().is_modern();
    let method = if modern { "subscriptions/listen" } else { "resources/subscribe" };
    Error::NotOffered { method: method.into(), capability: "changes of resources" }
}

/// Those of the resources that the server does not list, though it has agreed to tell of them: most
/// servers agree to whatever they are given.
async fn unlisted(client: &Client, resources: &[String]) -> Vec<(String, Option<String>)> {
    if resources.is_empty() {
        return Vec::new();
    }
    let lists = async {
        let listed = client.resources().await.ok()?;
        Some((listed, client.resource_templates().await.unwrap_or_default()))
    };
    let Ok(Some((listed, families))) = tokio::time::timeout(LISTED, lists).await else {
        return Vec::new();
    };
    let known = |uri: &str| {
        let family = |template: &str| uri.starts_with(template.split('{').next().unwrap_or(""));
        listed.iter().any(|resource| resource.uri == uri)
            || families.iter().any(|template| family(&template.uri_template))
    };
    let meant = |uri: &str| closest(uri, listed.iter().map(|resource| resource.uri.as_str()));
    let unknown = resources.iter().filter(|uri| !known(uri));
    unknown.map(|uri| (uri.clone(), meant(uri).map(str::to_owned))).collect()
}

/// Asks for the log; says whether it will come.
async fn log(client: &Client, level: &Level) -> Result<bool, Problem> {
    // SUB-10: in the modern revision it comes with calls, and none is made here.
    if client.capabilities().logging.is_none() || client.revision().is_modern() {
        return Ok(false);
    }
    client.set_level(level.clone()).await?;
    Ok(true)
}

/// The next change; for ever, if there is no stream.
async fn next(changes: Option<&mut ChangeStream>) -> Result<Option<taut::Change>, Error> {
    match changes {
        Some(changes) => changes.next().await,
        None => std::future::pending().await,
    }
}

async fn sleep_until(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment).await,
        None => std::future::pending().await,
    }
}

/// Says that the server listens to us, and what it will tell.
fn tell_start(
    output: &Output,
    client: &Client,
    changes: Option<&ChangeStream>,
    level: Option<&Level>,
) -> Result<(), Problem> {
    let name = client.server_info().map_or("the server", |info| info.name.as_str());
    let mut told: Vec<String> = Vec::new();
    if let Some(honoured) = changes.map(ChangeStream::honoured) {
        let lists = [
            ("tools", honoured.tools_list_changed),
            ("prompts", honoured.prompts_list_changed),
            ("resources", honoured.resources_list_changed),
        ];
        told.extend(
            lists.iter().filter(|(_, on)| *on == Some(true)).map(|(what, _)| (*what).into()),
        );
        told.extend(honoured.resource_subscriptions.iter().flatten().cloned());
    }
    if output.json {
        let level = level.map(Level::as_str);
        return output.json_line(&json!({ "time": stamp::now(), "event": "watching",
            "server": name, "revision": client.revision().as_str(), "changes": told, "log": level }));
    }
    if let Some(level) = level {
        told.push(format!("log from {level} on"));
    }
    let err = output.err;
    if told.is_empty() {
        let words = format!("{name} tells of no changes and has no log; -v shows its stderr");
        output.note(&err.paint(YELLOW, err.line(&words)));
        return Ok(());
    }
    let words = err.paint(BOLD, err.line(&format!("watching {name}:")));
    output.note(&format!("{words} {}", err.line(&told.join(", "))));
    Ok(())
}

fn show(output: &Output, event: &Event) -> Result<(), Problem> {
    if output.json {
        let mut document = event.json();
        document["time"] = json!(stamp::now());
        return output.json_line(&document);
    }
    let time = output.out.paint(DIM, stamp::now());
    // It is the result here, so whoever reads stdout judges the colours.
    let reader = Output { err: output.out, ..output.clone() };
    output.print(&format!("{time} {}\n", event.line(&reader)))
}
