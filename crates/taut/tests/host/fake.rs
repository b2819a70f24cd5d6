//! A server in memory whose every line is seen: what the client sends is what is tested.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use taut::{Client, ClientBuilder};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream};

use super::{eventually, in_time};

/// What a fake server was sent.
#[derive(Clone, Default)]
pub(super) struct Fake(Arc<Mutex<Vec<Value>>>);

pub(super) const MODERN: &str = "2026-07-28";
pub(super) const LEGACY: &str = "2025-11-25";

impl Fake {
    /// A client of a server that speaks `revision` and answers as the script says; what opens the
    /// connection is answered by itself.
    pub(super) async fn connect(
        builder: ClientBuilder,
        revision: &'static str,
        script: impl FnMut(&Value) -> Vec<Value> + Send + 'static,
    ) -> (Self, Client) {
        let (near, far) = tokio::io::duplex(64 << 10);
        let fake = Self::default();
        tokio::spawn(fake.clone().run(far, revision, script));
        let (reader, writer) = tokio::io::split(near);
        let client = in_time(builder.connect(reader, writer)).await.unwrap();
        (fake, client)
    }

    async fn run(
        self,
        stream: DuplexStream,
        revision: &'static str,
        mut script: impl FnMut(&Value) -> Vec<Value>,
    ) {
        let (reader, mut writer) = tokio::io::split(stream);
        let mut lines = BufReader::new(reader).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            let message: Value = serde_json::from_str(&line).unwrap();
            let answers = opening(revision, &message).map_or_else(|| script(&message), |a| vec![a]);
            self.0.lock().unwrap().push(message);
            for answer in answers {
                let _ = writer.write_all(format!("{answer}\n").as_bytes()).await;
            }
        }
    }

    /// What was sent so far.
    pub(super) fn got(&self) -> Vec<Value> {
        self.0.lock().unwrap().clone()
    }

    /// The messages with this method so far.
    pub(super) fn of(&self, method: &str) -> Vec<Value> {
        self.got().into_iter().filter(|message| message["method"] == method).collect()
    }

    /// The response to the server's own request, once it has come.
    pub(super) async fn response(&self, id: &str) -> Value {
        let find = || self.got().into_iter().find(|m| m["id"] == id && m.get("method").is_none());
        eventually("a response", || find().is_some()).await;
        find().unwrap()
    }

    /// Waits for so many messages with this method.
    pub(super) async fn wait(&self, method: &str, count: usize) -> Vec<Value> {
        eventually(method, || self.of(method).len() >= count).await;
        self.of(method)
    }
}

fn opening(revision: &str, message: &Value) -> Option<Value> {
    let capabilities = json!({ "tools": { "listChanged": true }, "prompts": { "listChanged": true },
        "resources": { "listChanged": true, "subscribe": true }, "logging": {} });
    match message["method"].as_str()? {
        "server/discover" if revision == MODERN => Some(result(
            message,
            json!({ "supportedVersions": [revision], "capabilities": capabilities }),
        )),
        "server/discover" => Some(error(message, -32601)),
        "initialize" => Some(result(
            message,
            json!({ "protocolVersion": revision, "capabilities": capabilities,
                "serverInfo": { "name": "fake", "version": "1" } }),
        )),
        _ => None,
    }
}

pub(super) fn result(request: &Value, result: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": request["id"], "result": result })
}

pub(super) fn error(request: &Value, code: i64) -> Value {
    json!({ "jsonrpc": "2.0", "id": request["id"], "error": { "code": code, "message": "no" } })
}

pub(super) fn text(request: &Value, text: &str) -> Value {
    result(request, json!({ "content": [{ "type": "text", "text": text }] }))
}

pub(super) fn question(method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": "q", "method": method, "params": params })
}

pub(super) fn form(message: &str) -> Value {
    let schema = json!({ "type": "object", "properties": { "n": { "type": "string" } } });
    json!({ "message": message, "requestedSchema": schema })
}
