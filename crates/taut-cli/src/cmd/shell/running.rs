//! The server of a shell: starts it, listens to its notifications, starts it again on request.
//!
//! Keeps the lists of what the server offers, for completion. Must not know what is typed.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use taut::types::SubscriptionFilter;
use taut::{Client, Error, Level};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use crate::args::Options;
use crate::asking::Host;
use crate::cmd::list::{Offer, ask};
use crate::cmd::watch::untold;
use crate::events::{Event, is_told};
use crate::output::{CYAN, Output};
use crate::problem::Problem;
use crate::reach::Reach;
use crate::session::{builder, hear, patient};
use crate::signals::Interrupts;
use crate::spinner::Spinner;

/// What a server offers, shared with the editor.
#[derive(Clone, Default)]
pub(super) struct Catalog(Arc<Mutex<Offer>>);

impl Catalog {
    pub(super) fn lock(&self) -> MutexGuard<'_, Offer> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Lines that come in a bunch, told once each: a server that changes says so for every list, and some
/// say it several times.
#[derive(Clone, Default)]
struct Gathered(Arc<Mutex<Vec<String>>>);

/// How long a bunch takes.
const BUNCH: Duration = Duration::from_millis(100);

impl Gathered {
    fn add(&self, line: String, output: &Output) {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.contains(&line) {
            return;
        }
        lines.push(line);
        // The first of a bunch waits for the others.
        if lines.len() == 1 {
            let (lines, output) = (self.0.clone(), output.clone());
            tokio::spawn(async move {
                tokio::time::sleep(BUNCH).await;
                let lines =
                    std::mem::take(&mut *lines.lock().unwrap_or_else(PoisonError::into_inner));
                output.note(&lines.join("; "));
            });
        }
    }
}

/// The server, while there is one.
pub(super) struct Running<'a> {
    pub(super) output: &'a Output,
    options: &'a Options,
    pub(super) host: &'a Host,
    reach: Reach,
    pub(super) client: Option<Client>,
    pub(super) catalog: Catalog,
    /// Rings when what it offers has changed.
    pub(super) changed: Arc<Notify>,
    /// From which level on its log is wanted; it outlives a restart.
    level: Level,
    watched: HashMap<String, JoinHandle<()>>,
}

impl<'a> Running<'a> {
    pub(super) fn new(
        output: &'a Output,
        options: &'a Options,
        host: &'a Host,
        reach: Reach,
    ) -> Self {
        Self {
            output,
            options,
            host,
            reach,
            client: None,
            catalog: Catalog::default(),
            changed: Arc::default(),
            level: if output.verbose { Level::Debug } else { Level::Info },
            watched: HashMap::new(),
        }
    }

    /// The connection.
    pub(super) fn client(&self) -> Result<Client, Problem> {
        self.client.clone().ok_or_else(|| Problem::Usage {
            what: "there is no server".to_owned(),
            next: Some("restart starts it again".to_owned()),
        })
    }

    /// Starts the server and looks at what it offers.
    pub(super) async fn start(&mut self, interrupts: &mut Interrupts) -> Result<(), Problem> {
        let spinner = Spinner::start(self.output, "starting the server");
        let (logs, changes) = (self.output.clone(), self.output.clone());
        let output = self.output.clone();
        let builder = self.host.attach(builder(self.output, self.options)).on_event(move |event| {
            if !is_told(event) {
                hear(&output, event);
            }
        });
        let (changed, gathered) = (self.changed.clone(), Gathered::default());
        let builder =
            builder.on_log(move |log| Event::Log(log).tell(&logs)).on_change(move |change| {
                let event = Event::Change(change.clone());
                if changes.json {
                    event.tell(&changes);
                } else {
                    gathered.add(event.line(&changes), &changes);
                }
                changed.notify_one();
            });
        let opening = self.reach.open_until(self.output, builder, interrupts);
        let opened = patient(self.output, self.options, opening).await?;
        let client = opened.ok_or(Problem::Interrupted)?;
        if client.capabilities().logging.is_some() {
            // A server that has no such level logs as it likes.
            let _ = client.set_level(self.level.clone()).await;
        }
        spinner.say("listing");
        self.client = Some(client);
        self.look().await;
        Ok(())
    }

    /// Looks at what it offers. What cannot be listed cannot be completed, and that is all.
    pub(super) async fn look(&self) {
        let Some(client) = &self.client else { return };
        if let Ok(offer) = ask(client, None).await {
            *self.catalog.lock() = offer;
        }
    }

    pub(super) async fn set_level(&mut self, level: Level) -> Result<(), Problem> {
        self.client()?.set_level(level.clone()).await?;
        self.level = level;
        Ok(())
    }

    /// Tells of changes of a resource from now on.
    pub(super) async fn watch(&mut self, uri: &str) -> Result<(), Problem> {
        let filter = SubscriptionFilter::new().resource_subscriptions([uri.to_owned()]);
        let client = self.client()?;
        let mut changes = match client.listen(filter).await {
            Ok(changes) => {
                let honoured = changes.honoured().resource_subscriptions.as_deref();
                let told = honoured.is_some_and(|uris| !uris.is_empty());
                told.then_some(changes).ok_or_else(|| untold(&client))
            }
            Err(Error::NotOffered { .. }) => Err(untold(&client)),
            Err(error) => Err(error),
        }?;
        let output = self.output.clone();
        let task = tokio::spawn(async move {
            while let Ok(Some(change)) = changes.next().await {
                Event::Change(change).tell(&output);
            }
        });
        if let Some(before) = self.watched.insert(uri.to_owned(), task) {
            before.abort();
        }
        Ok(())
    }

    /// Whether it was watched.
    pub(super) fn unwatch(&mut self, uri: &str) -> bool {
        self.watched.remove(uri).map(|task| task.abort()).is_some()
    }

    /// Closes the server; a signal meanwhile kills it.
    pub(super) async fn close(&mut self, interrupts: &mut Interrupts) -> Result<(), Problem> {
        self.watched.drain().for_each(|(_, task)| task.abort());
        *self.catalog.lock() = Offer::default();
        let Some(client) = self.client.take() else { return Ok(()) };
        let _spinner = Spinner::start(self.output, "waiting for the server to end");
        tokio::select! {
            closed = client.close() => closed.map(drop).map_err(Problem::from),
            () = interrupts.next() => Err(Problem::Interrupted),
        }
    }

    /// Says that the server is gone, once.
    pub(super) fn tell_end(&mut self, how: &str) {
        self.watched.drain().for_each(|(_, task)| task.abort());
        *self.catalog.lock() = Offer::default();
        self.client = None;
        Event::Ended(how.to_owned()).tell(self.output);
        if !self.output.json {
            let err = self.output.err;
            self.output.note(&format!("{} restart starts it again", err.paint(CYAN, "  try:")));
        }
    }
}
