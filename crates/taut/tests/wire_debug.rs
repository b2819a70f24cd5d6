//! Wire-level debug: a person can follow one message, and no secret with it. In a process of its own.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::fmt::Write;
use std::sync::{Arc, Mutex};

use serde_json::Value;
use taut::service::{Failed, RequestParams, ServiceRequest, serve};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// Keeps every line of the wire, with its level.
struct Lines(Arc<Mutex<Vec<(Level, String)>>>);

impl Subscriber for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "taut::wire"
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
        self.0.lock().unwrap().push((*event.metadata().level(), text.0));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

async fn echo(_: String, params: RequestParams, _: ServiceRequest) -> Result<Value, Failed> {
    Ok(params.read()?)
}

/// What the wire says while one request in each framing goes through.
async fn lines() -> Vec<(Level, String)> {
    let lines = Arc::new(Mutex::new(Vec::new()));
    tracing::subscriber::set_global_default(Lines(lines.clone())).unwrap();
    let (mut near, far) = tokio::io::duplex(1 << 16);
    let served = tokio::spawn(async move {
        let (reader, writer) = tokio::io::split(far);
        serve(echo).serve(reader, writer).await
    });
    let body = r#"{"jsonrpc":"2.0","id":"a","method":"echo","params":{"apiKey":"hunter2"}}"#;
    near.write_all(format!("{body}\n").as_bytes()).await.unwrap();
    near.write_all(format!("Content-Length: {}\r\n\r\n{body}", body.len()).as_bytes())
        .await
        .unwrap();
    near.shutdown().await.unwrap();
    let mut answers = String::new();
    near.read_to_string(&mut answers).await.unwrap();
    assert_eq!(answers.matches("hunter2").count(), 2, "{answers}");
    served.await.unwrap();
    std::mem::take(&mut *lines.lock().unwrap())
}

/// One test, because a process has one subscriber that sees everything.
#[tokio::test]
async fn one_message_can_be_followed_in_both_framings_and_no_secret_with_it() {
    let lines = lines().await;
    let text = |least: Level| -> Vec<&str> {
        lines.iter().filter(|(level, _)| *level <= least).map(|(_, line)| line.as_str()).collect()
    };
    let steps = text(Level::DEBUG);
    let all = steps.join("\n");
    for wanted in ["read", "recv", "send", "echo", "(result)", r#"id="\"a\"""#] {
        assert!(all.contains(wanted), "{wanted} in\n{all}");
    }
    let framings = |way: &str| -> Vec<bool> {
        let of_way = steps.iter().filter(|line| line.contains(way) && line.contains("frame"));
        of_way.map(|line| line.contains("Content-Length")).collect()
    };
    assert_eq!(framings("recv"), [false, true], "{all}");
    assert_eq!(framings("send"), [false, true], "{all}");
    assert!(!all.contains("apiKey"), "the JSON is off unless asked for");

    let everything = text(Level::TRACE).join("\n");
    assert!(everything.contains("apiKey"), "{everything}");
    assert!(!everything.contains("hunter2"), "{everything}");
}
