//! A server in memory whose every line is seen: what the client sends is what is tested.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, ReadHalf, WriteHalf,
};

use super::*;

/// What a fake server answers: nothing, or a message.
type Script = Box<dyn FnMut(&Value) -> Vec<Value> + Send>;

/// A fake server, and what it was sent.
#[derive(Clone, Default)]
pub(super) struct Fake(Arc<Mutex<Vec<Value>>>);

impl Fake {
    /// A client and the streams to reach it by.
    pub(super) fn new(
        script: impl FnMut(&Value) -> Vec<Value> + Send + 'static,
    ) -> (Self, ReadHalf<DuplexStream>, WriteHalf<DuplexStream>) {
        let (near, far) = tokio::io::duplex(64 << 10);
        let fake = Self::default();
        tokio::spawn(fake.clone().run(far, Box::new(script)));
        let (reader, writer) = tokio::io::split(near);
        (fake, reader, writer)
    }

    /// A client that is connected to a server of this revision; what opens the connection is
    /// answered by itself.
    pub(super) async fn connect(
        revision: &'static str,
        mut script: impl FnMut(&Value) -> Vec<Value> + Send + 'static,
    ) -> (Self, Client) {
        let (fake, reader, writer) = Self::new(move |message| {
            opening(revision, message).map_or_else(|| script(message), |answer| vec![answer])
        });
        let client = in_time(quick().connect(reader, writer)).await.unwrap();
        (fake, client)
    }

    async fn run(self, stream: DuplexStream, mut script: Script) {
        let (reader, mut writer) = tokio::io::split(stream);
        let mut lines = BufReader::new(reader).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            let message: Value = serde_json::from_str(&line).unwrap();
            let answers = script(&message);
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

    pub(super) fn methods(&self) -> Vec<String> {
        let name = |message: &Value| message["method"].as_str().unwrap_or("(response)").to_owned();
        self.got().iter().map(name).collect()
    }

    /// The first message with this method, once it has come.
    pub(super) async fn message(&self, method: &str) -> Value {
        let find = || self.got().into_iter().find(|message| message["method"] == method);
        eventually(method, || find().is_some()).await;
        find().unwrap()
    }
}

fn opening(revision: &str, message: &Value) -> Option<Value> {
    let modern = revision == "2026-07-28";
    let capabilities =
        json!({ "tools": {}, "prompts": {}, "resources": {}, "completions": {}, "logging": {} });
    match message["method"].as_str()? {
        "server/discover" if modern => Some(result(
            message,
            json!({ "supportedVersions": [revision], "capabilities": capabilities }),
        )),
        "server/discover" => Some(error(message, -32601)),
        "initialize" => Some(result(
            message,
            json!({ "protocolVersion": revision, "capabilities": capabilities,
                "serverInfo": { "name": "fake", "version": "1" }, "instructions": "be kind" }),
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
