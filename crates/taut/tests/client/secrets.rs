//! What a secret in an environment reaches: the child that it was given to, and nobody else.

use std::fmt::Write as _;

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Metadata, Subscriber};

use super::*;

/// Keeps all that is logged, at every level.
struct Log(Seen);

impl Subscriber for Log {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        struct Text(String);
        impl Visit for Text {
            fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
                let _ = write!(self.0, " {field}={value:?}");
            }
        }
        let mut text = Text(String::new());
        event.record(&mut text);
        self.0.push(text.0);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// P20: what this process has in its environment, cargo's variables for instance, stays here.
/// Also SEC-04.
#[tokio::test]
async fn p20_a_server_sees_the_short_list_and_what_it_was_given() {
    let ours = std::env::vars().map(|(name, _)| name).any(|name| name.starts_with("CARGO"));
    assert!(ours, "there is something to keep from the server");
    let client = start("2025-11-25 say-secrets").await;
    let names = client.stderr();
    let mut seen: Vec<_> = names.split_whitespace().collect();
    // What the shell of the wrapper adds by itself.
    seen.retain(|name| !["PWD", "OLDPWD", "SHLVL", "_"].contains(name));
    let safe = ["HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "TAUT_ROLE"];
    assert!(seen.contains(&"TAUT_ROLE"), "{seen:?}");
    assert!(seen.iter().all(|name| safe.contains(name)), "{seen:?}");
}

const SECRET: &str = "s3cret-value";

/// Plays the test below, and panics if the secret shows anywhere.
pub(super) fn play() {
    let log = Seen::default();
    tracing::subscriber::set_global_default(Log(log.clone())).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut shown = runtime.block_on(async {
        let mut shown = Vec::new();
        let works = server("2025-11-25").env("API_TOKEN", SECRET);
        shown.push(format!("{works:?}"));
        let client = in_time(quick().spawn(works)).await.unwrap();
        let error = client.call("exit", ()).await.unwrap_err();
        shown.extend([format!("{client:?}"), error.to_string(), format!("{error:?}")]);
        for broken in [sh("echo oh >&2; exit 1"), Command::new("no-such-server")] {
            let (error, text) = failure(quick(), broken.env("API_TOKEN", SECRET)).await;
            shown.extend([text, format!("{error:?}")]);
        }
        shown
    });
    let logged = log.all();
    assert!(logged.iter().any(|line| line.contains("tools/call")), "the log is listened to");
    shown.extend(logged);
    assert!(shown.iter().all(|text| !text.contains(SECRET)));
}

/// SEC-04: a server that works, one that does not, and one that cannot be started. In a process of
/// its own, because who listens to the log is decided for the whole process.
/// Also SEC-11.
#[tokio::test]
async fn a_secret_given_to_a_server_is_in_no_log_and_no_error() {
    passes("secrets").await;
}
