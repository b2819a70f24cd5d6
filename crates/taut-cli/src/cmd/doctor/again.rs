//! The later starts of an examination: one without a probe, which gets SIGTERM, and one with the whole environment.
//!
//! Records what came of them in `facts.rs`. Must not judge.

use std::time::{Duration, Instant};

use taut::Client;
use taut::types::Era;
use taut::wire::Framing;

use super::exam::{Exam, TERM, lock};
use crate::output::Output;
use crate::processes;
use crate::session::builder;
use crate::spinner::Spinner;

impl Exam<'_> {
    /// A second one is not probed, and gets SIGTERM while its stdin is open. On Windows, which has no such
    /// signal, it is only closed.
    pub(super) async fn start_second(
        &self,
        early: Option<(Client, Duration)>,
        framing: Framing,
        spinner: &Spinner,
    ) {
        if self.reach.command().is_none() {
            return;
        }
        spinner.say(if cfg!(unix) {
            "starting it again, to see what it does on SIGTERM"
        } else {
            "starting it again, to see what it does without a probe"
        });
        // What did not start beside the first may start alone.
        let opened = match early {
            Some(opened) => Some(opened),
            None => self.open_unprobed(framing).await,
        };
        let Some((client, took)) = opened else { return };
        self.holds(&client);
        {
            let mut facts = lock(&self.facts);
            facts.second = Some(took);
            facts.modern_only = client.revision().is_modern() && self.options.revision.is_none();
        }
        let Some(pid) = client.pid() else { return };
        let asked = Instant::now();
        if processes::terminate(pid) {
            let gone = tokio::time::timeout(TERM, async {
                while client.exit().is_none() {
                    tokio::time::sleep(Duration::from_millis(2)).await;
                }
            });
            let gone = gone.await.ok().map(|()| asked.elapsed());
            lock(&self.facts).on_term = Some(gone);
        }
        // What became of it is known; the rest is tidying up.
        let _ = client.close().await;
    }

    /// A second one that is not probed, and how long it took to be ready.
    pub(super) async fn open_unprobed(&self, framing: Framing) -> Option<(Client, Duration)> {
        let began = Instant::now();
        let quiet = Output { verbose: false, ..self.output.clone() };
        let lines = self.facts.clone();
        let opening = builder(&quiet, self.options)
            .start_timeout(self.start)
            // Known by now; finding it out may cost one more start.
            .framing(framing)
            // Most hosts begin with `initialize`; one that refuses that is asked as before.
            .known(Era::Legacy)
            .on_stderr(move |line| lock(&lines).stderr_unprobed += line.len() + 1)
            .on_event(self.counted())
            .eof_grace(TERM / 20)
            .term_grace(TERM / 20);
        let opened = self.reach.open_unless(opening, self.stop.notified()).await;
        opened.ok().flatten().map(|client| (client, began.elapsed()))
    }

    /// One that does not start may only have missed a variable.
    pub(super) async fn whole_environment(&self, limit: Duration) {
        let quiet = Output { verbose: false, ..self.output.clone() };
        // Without the probe, which may cost one more start.
        let opening = builder(&quiet, self.options).start_timeout(limit).known(Era::Legacy);
        // The other framing was tried beside the first.
        let opening = opening.framing(self.options.framing.unwrap_or_default());
        let opening = opening.on_event(self.counted());
        let Some(command) = self.reach.command().cloned() else { return };
        let given = command.effective_env();
        let command = command.inherit_env();
        let opened = opening.spawn_unless(command, self.stop.notified()).await;
        let Ok(Some(client)) = opened else { return };
        self.holds(&client);
        let _ = client.close().await;
        let mut facts = lock(&self.facts);
        let said = format!("{}\n{}", facts.stderr, facts.stdout);
        let is_word = |name: &str| {
            let part = |c: char| c.is_alphanumeric() || c == '_';
            said.split(|c| !part(c)).any(|word| word == name)
        };
        let names = std::env::vars_os().filter(|(name, _)| !given.contains_key(name));
        let names = names.map(|(name, _)| name.to_string_lossy().into_owned());
        let named: Vec<String> = names.filter(|name| is_word(name)).collect();
        facts.full_environment = Some(named);
    }
}
