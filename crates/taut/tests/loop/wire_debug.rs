//! Wire-level debug: a person can follow one message, and no secret with it.

use std::fmt::Write;
use std::sync::{Arc, Mutex};

use serde_json::Value;
use taut::service::{Call, Failed, Params, serve};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use super::memory::serving;

/// Keeps every line of the wire up to a level.
struct Lines(Arc<Mutex<Vec<String>>>, Level);

impl Subscriber for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "taut::wire" && *metadata.level() <= self.1
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        struct Text(String);
        impl Visit for Text {
            fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
                let _ = write!(self.0, " {field}={value:?}");
            }
        }
        let mut text = Text(String::new());
        event.record(&mut text);
        self.0.lock().unwrap().push(text.0);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

async fn echo(_: String, params: Params, _: Call) -> Result<Value, Failed> {
    Ok(params.read()?)
}

/// What the wire says while one request in each framing goes through.
fn lines(level: Level) -> Vec<String> {
    let lines = Arc::new(Mutex::new(Vec::new()));
    let subscriber = Lines(lines.clone(), level);
    tracing::subscriber::with_default(subscriber, || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            use tokio::io::AsyncWriteExt;
            let mut wire = serving(serve(echo));
            let body =
                r#"{"jsonrpc":"2.0","id":"a","method":"echo","params":{"apiKey":"hunter2"}}"#;
            wire.ask(body).await;
            let framed = format!("Content-Length: {}\r\n\r\n{body}", body.len());
            wire.to.write_all(framed.as_bytes()).await.unwrap();
            wire.to.shutdown().await.unwrap();
            assert!(wire.line().await.starts_with("Content-Length"));
            wire.served.await.unwrap();
        });
    });
    Arc::into_inner(lines).unwrap().into_inner().unwrap()
}

#[test]
fn one_message_can_be_followed_in_both_framings() {
    let lines = lines(Level::DEBUG);
    let all = lines.join("\n");
    for wanted in ["read", "recv", "send", "echo", "(result)", r#"id="\"a\"""#] {
        assert!(all.contains(wanted), "{wanted} in\n{all}");
    }
    let framings = |way: &str| -> Vec<bool> {
        let of_way = lines.iter().filter(|line| line.contains(way) && line.contains("frame"));
        of_way
            .map(|line| line.to_lowercase().contains("content-length") || line.contains("header"))
            .collect()
    };
    assert_eq!(framings("recv"), [false, true], "{all}");
    assert_eq!(framings("send"), [false, true], "{all}");
    assert!(!all.contains("apiKey"), "the JSON is off unless asked for");
}

#[test]
fn the_json_is_there_for_who_asks_and_secrets_are_masked() {
    let all = lines(Level::TRACE).join("\n");
    assert!(all.contains("apiKey"), "{all}");
    assert!(!all.contains("hunter2"), "{all}");
}
