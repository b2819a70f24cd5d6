//! The host's end of a connection: lines out, lines in, on virtual or on real time.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use taut::{Ending, Server};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// Far above what anything here needs. On a paused clock it costs nothing.
const PATIENCE: Duration = Duration::from_secs(3600);

/// As much as a pipe holds.
const CAPACITY: usize = 64 << 10;

pub(crate) struct Wire {
    reader: BufReader<Box<dyn AsyncRead + Unpin + Send>>,
    writer: Option<Box<dyn AsyncWrite + Unpin + Send>>,
    served: Option<JoinHandle<Ending>>,
    patience: Duration,
}

impl Wire {
    /// A connection to `server`, which runs beside the test.
    pub(crate) fn to<S: Send + Sync + 'static>(server: Server<S>) -> Self {
        Self::to_shared(&Arc::new(server))
    }

    /// One of several connections to the same server.
    pub(crate) fn to_shared<S: Send + Sync + 'static>(server: &Arc<Server<S>>) -> Self {
        let (ours_out, theirs_in) = tokio::io::duplex(CAPACITY);
        let (theirs_out, ours_in) = tokio::io::duplex(CAPACITY);
        let server = server.clone();
        let served = tokio::spawn(async move { server.serve(theirs_in, theirs_out).await });
        let mut wire = Self::over(ours_in, ours_out, PATIENCE);
        wire.served = Some(served);
        wire
    }

    pub(crate) fn over(
        reader: impl AsyncRead + Unpin + Send + 'static,
        writer: impl AsyncWrite + Unpin + Send + 'static,
        patience: Duration,
    ) -> Self {
        Self {
            reader: BufReader::new(Box::new(reader)),
            writer: Some(Box::new(writer)),
            served: None,
            patience,
        }
    }

    pub(crate) async fn send_bytes(&mut self, bytes: &[u8]) {
        let writer = self.writer.as_mut().expect("the input is closed already");
        writer.write_all(bytes).await.unwrap();
        writer.flush().await.unwrap();
    }

    pub(crate) async fn send(&mut self, message: Value) {
        self.send_bytes(format!("{message}\n").as_bytes()).await;
    }

    pub(crate) async fn notify(&mut self, method: &str, params: Value) {
        self.send(json!({ "jsonrpc": "2.0", "method": method, "params": params })).await;
    }

    /// A request of the newest revision; `meta` is added to what every request must say.
    pub(crate) async fn ask_with(
        &mut self,
        id: impl Into<Value>,
        method: &str,
        mut params: Value,
        meta: Value,
    ) {
        let mut envelope = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        envelope.as_object_mut().unwrap().extend(meta.as_object().unwrap().clone());
        params["_meta"] = envelope;
        let id = id.into();
        self.send(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })).await;
    }

    pub(crate) async fn ask(&mut self, id: impl Into<Value>, method: &str, params: Value) {
        self.ask_with(id, method, params, json!({})).await;
    }

    pub(crate) async fn call(&mut self, id: impl Into<Value>, tool: &str, arguments: Value) {
        self.ask(id, "tools/call", json!({ "name": tool, "arguments": arguments })).await;
    }

    /// Opens a legacy session.
    pub(crate) async fn shake_hands(&mut self, revision: &str) -> Value {
        let client = json!({ "name": "host", "version": "1" });
        let params =
            json!({ "protocolVersion": revision, "capabilities": {}, "clientInfo": client });
        let id = "hello";
        self.send(json!({ "jsonrpc": "2.0", "id": id, "method": "initialize", "params": params }))
            .await;
        let answer = self.next().await;
        self.send(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
        answer["result"].clone()
    }

    /// The next line, without its newline; nothing at the end of the stream.
    pub(crate) async fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        let read = timeout(self.patience, self.reader.read_line(&mut line)).await;
        let read = read.expect("nothing came").unwrap();
        (read > 0).then(|| line.strip_suffix('\n').expect("a line without its end").to_owned())
    }

    pub(crate) async fn next(&mut self) -> Value {
        let line = self.line().await.expect("the stream ended");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }

    /// Whether nothing is written for so long. Loses no bytes: a line that came is whole.
    pub(crate) async fn is_silent(&mut self, span: Duration) -> bool {
        timeout(span, self.reader.fill_buf()).await.is_err()
    }

    pub(crate) fn close_input(&mut self) {
        self.writer = None;
    }

    /// Closes the input and returns what was still written, and how the server's side ended.
    pub(crate) async fn finish(mut self) -> (Vec<Value>, Option<Ending>) {
        self.close_input();
        let mut rest = Vec::new();
        while let Some(line) = self.line().await {
            rest.push(serde_json::from_str(&line).unwrap());
        }
        let ending = match self.served.take() {
            Some(served) => Some(served.await.unwrap()),
            None => None,
        };
        (rest, ending)
    }
}
