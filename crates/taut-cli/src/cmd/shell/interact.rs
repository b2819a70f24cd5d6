//! The shell on a terminal: reads a line, runs it, shows the result.
//!
//! Ctrl-C cancels the running call, or clears the line; Ctrl-D leaves. Notifications of the server appear
//! above the line that is typed.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use taut::Client;
use tokio::runtime::Handle;

use super::complete::{Question, complete, question};
use super::order::{self, Order};
use super::running::Running;
use crate::desk::{Complete, Line, Typed};
use crate::gate::escape;
use crate::output::{CYAN, DIM, YELLOW};
use crate::problem::{Exit, Problem};
use crate::signals::{Interrupts, Stop};

/// Reads and does, until the person leaves.
pub(super) async fn run(
    running: &mut Running<'_>,
    interrupts: &mut Interrupts,
) -> Result<Exit, Problem> {
    running.greet();
    let output = running.output;
    output.note(&output.err.paint(DIM, "help shows what to type, Tab completes, Ctrl-D leaves"));
    loop {
        let typed = match line(running, interrupts).await {
            Ok(Typed::Line(typed)) => typed,
            Ok(Typed::Interrupted) => {
                output.note(&output.err.paint(DIM, "Ctrl-D or quit leaves"));
                continue;
            }
            Ok(Typed::End) => return Ok(Exit::Worked),
            Err(problem) => return Err(problem),
        };
        let order = match order::read(&typed) {
            Ok(Some(order)) => order,
            Ok(None) => continue,
            Err(meaningless) => {
                running.report(&meaningless.into(), &typed)?;
                continue;
            }
        };
        if obey(running, interrupts, order, &typed).await? {
            return Ok(Exit::Worked);
        }
    }
}

/// Does it and shows what comes of it; says whether to leave.
async fn obey(
    running: &mut Running<'_>,
    interrupts: &mut Interrupts,
    order: Order,
    typed: &str,
) -> Result<bool, Problem> {
    let output = running.output;
    match running.perform(order, interrupts).await {
        Ok(done) => {
            running.tell(&done, typed)?;
            return Ok(done.leave);
        }
        Err(over @ (Problem::NobodyReads | Problem::Ended)) => return Err(over),
        Err(Problem::Interrupted) => output.note(&output.err.paint(YELLOW, "withdrawn")),
        Err(problem) => running.report(&problem, typed)?,
    }
    Ok(false)
}

/// The next line. Meanwhile lists that have changed are looked at, and a server that ends is told of.
async fn line(running: &mut Running<'_>, interrupts: &mut Interrupts) -> Result<Typed, Problem> {
    let host = running.host.clone();
    let catalog = running.catalog.clone();
    let (client, runtime) = (running.client.clone(), Handle::current());
    let completing: Complete = Arc::new(move |line, at| {
        // The catalog is not locked while the server is asked.
        let question = question(&catalog.lock(), line, at);
        let answers =
            question.as_ref().and_then(|question| ask(client.as_ref()?, &runtime, question));
        let answered = question.as_ref().zip(answers.as_deref());
        complete(&catalog.lock(), line, at, answered)
    });
    let line = Line { prompt: prompt(running), complete: Some(completing), remembered: true };
    let mut reading = pin!(host.desk().read(line));
    loop {
        let changed = running.changed.clone();
        let client = running.client.clone();
        let over = async {
            match &client {
                Some(client) => client.ended().await.to_string(),
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            typed = &mut reading => return Ok(typed),
            () = changed.notified() => running.look().await,
            how = over => running.tell_end(&how),
            stop = interrupts.next_stop() => match stop {
                // The terminal takes Ctrl-C for a key here; this one came from elsewhere.
                Stop::Interrupt => {}
                Stop::End => return Err(Problem::Ended),
            },
        }
    }
}

/// How long Tab waits for the server.
const TAB: Duration = Duration::from_secs(2);

/// What the server suggests. Called on the editor's thread; nothing if it does not answer in time.
fn ask(client: &Client, runtime: &Handle, question: &Question) -> Option<Vec<String>> {
    client.capabilities().completions.as_ref()?;
    let Question { reference, argument, value, chosen, .. } = question;
    let request = client.complete_with(reference.clone(), argument, value, chosen.iter().cloned());
    let (reply, answer) = std::sync::mpsc::sync_channel(1);
    runtime.spawn(async move {
        // Nobody may wait for it any more.
        let _ = reply.send(tokio::time::timeout(TAB, request.into_future()).await);
    });
    Some(answer.recv_timeout(TAB).ok()?.ok()?.ok()?.values)
}

/// Names longer than this leave no room to type.
const NAME: usize = 24;

fn prompt(running: &Running<'_>) -> String {
    let name = running.client.as_ref().and_then(|client| client.server_info());
    let name = name.map_or("server", |info| info.name.as_str());
    let name: String = escape::line(name).chars().take(NAME).collect();
    let colour = if running.client.is_some() { CYAN } else { YELLOW };
    format!("{} › ", running.output.err.paint(colour, &name))
}
