//! A small HTTP server for one test: a function answers each request, and all of them are kept.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::{Body, Frame, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

/// How long a test waits for anything at all.
pub(crate) const LONG: Duration = Duration::from_secs(30);

/// A request as it came.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) text: String,
}

impl Seen {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_default()
    }

    pub(crate) fn rpc(&self) -> String {
        self.json()["method"].as_str().unwrap_or_default().to_owned()
    }

    pub(crate) fn id(&self) -> Value {
        self.json()["id"].clone()
    }
}

/// A body whose pieces are sent while the test runs.
pub(crate) struct Pieces(mpsc::UnboundedReceiver<Option<Bytes>>);

impl Body for Pieces {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, std::io::Error>>> {
        self.0.poll_recv(cx).map(|piece| match piece? {
            Some(piece) => Some(Ok(Frame::data(piece))),
            None => Some(Err(std::io::Error::other("broken on purpose"))),
        })
    }
}

/// Sends the pieces of a body. Dropping it ends the body.
#[derive(Clone)]
pub(crate) struct Feed(mpsc::UnboundedSender<Option<Bytes>>);

impl Feed {
    pub(crate) fn send(&self, text: impl Into<String>) {
        let _ = self.0.send(Some(Bytes::from(text.into())));
    }

    pub(crate) fn event(&self, message: &Value) {
        self.send(format!("data: {message}\n\n"));
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.0.is_closed()
    }

    /// Cuts the connection.
    pub(crate) fn cut(&self) {
        let _ = self.0.send(None);
    }

    /// Waits until nobody reads the body any more.
    pub(crate) async fn closed(&self) {
        tokio::time::timeout(LONG, self.0.closed()).await.expect("the body is still being read");
    }
}

pub(crate) type Reply = Response<Pieces>;

/// A reply with this status, header lines and a body that is fed.
pub(crate) fn feed(status: u16, headers: &[(&str, &str)]) -> (Feed, Reply) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let mut reply = Response::builder().status(status);
    for (name, value) in headers {
        reply = reply.header(*name, *value);
    }
    (Feed(sender), reply.body(Pieces(receiver)).unwrap())
}

pub(crate) fn reply(status: u16, headers: &[(&str, &str)], body: impl Into<String>) -> Reply {
    let (feed, reply) = feed(status, headers);
    feed.send(body);
    reply
}

/// In place of a status: the connection is closed without an answer.
pub(crate) const HANG_UP: u16 = 599;

pub(crate) fn status(status: u16) -> Reply {
    feed(status, &[]).1
}

pub(crate) fn result(seen: &Seen, result: Value) -> Reply {
    let body = json!({ "jsonrpc": "2.0", "id": seen.id(), "result": result });
    reply(200, &[("content-type", "application/json")], body.to_string())
}

pub(crate) fn error(status: u16, seen: &Seen, code: i64, message: &str) -> Reply {
    let error = json!({ "code": code, "message": message });
    let body = json!({ "jsonrpc": "2.0", "id": seen.id(), "error": error });
    reply(status, &[("content-type", "application/json")], body.to_string())
}

pub(crate) fn events() -> (Feed, Reply) {
    feed(200, &[("content-type", "text/event-stream")])
}

/// A server for one test.
pub(crate) struct TestServer {
    pub(crate) url: String,
    pub(crate) seen: Arc<Mutex<Vec<Seen>>>,
    arrived: Arc<tokio::sync::Notify>,
}

impl TestServer {
    pub(crate) async fn start<F, Fut>(answer: F) -> Self
    where
        F: Fn(Seen) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Reply> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let seen: Arc<Mutex<Vec<Seen>>> = Arc::default();
        let arrived = Arc::new(tokio::sync::Notify::new());
        let (answer, kept, told) = (Arc::new(answer), seen.clone(), arrived.clone());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (answer, kept, told) = (answer.clone(), kept.clone(), told.clone());
                let service = service_fn(move |request: Request<Incoming>| {
                    let (answer, kept, told) = (answer.clone(), kept.clone(), told.clone());
                    async move {
                        let seen = read(request).await;
                        kept.lock().unwrap().push(seen.clone());
                        told.notify_waiters();
                        match answer(seen).await {
                            reply if reply.status() == HANG_UP => {
                                Err(std::io::Error::other("gone"))
                            }
                            reply => Ok(reply),
                        }
                    }
                });
                tokio::spawn(
                    hyper::server::conn::http1::Builder::new()
                        .serve_connection(TokioIo::new(stream), service),
                );
            }
        });
        Self { url, seen, arrived }
    }

    /// All requests so far that `is` wants.
    pub(crate) fn all(&self, is: impl Fn(&Seen) -> bool) -> Vec<Seen> {
        self.seen.lock().unwrap().iter().filter(|seen| is(seen)).cloned().collect()
    }

    /// Waits for `count` requests that `is` wants.
    pub(crate) async fn wait(&self, count: usize, is: impl Fn(&Seen) -> bool) -> Vec<Seen> {
        let waiting = async {
            loop {
                let mut arrived = std::pin::pin!(self.arrived.notified());
                arrived.as_mut().enable();
                let found = self.all(&is);
                if found.len() >= count {
                    return found;
                }
                arrived.await;
            }
        };
        tokio::time::timeout(LONG, waiting).await.unwrap_or_else(|_| {
            panic!("{count} requests were awaited: {:#?}", self.seen.lock().unwrap())
        })
    }
}

pub(crate) async fn read(request: Request<Incoming>) -> Seen {
    let (head, body) = request.into_parts();
    let text = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    let headers = head.headers.iter().map(|(name, value)| {
        (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned())
    });
    Seen {
        method: head.method.to_string(),
        path: head.uri.to_string(),
        headers: headers.collect(),
        text: String::from_utf8_lossy(&text).into_owned(),
    }
}

/// What a legacy server says to everything that every session has; `None` for the rest.
pub(crate) fn legacy(seen: &Seen, version: &str) -> Option<Reply> {
    match (seen.method.as_str(), seen.rpc().as_str()) {
        ("GET", _) => Some(status(405)),
        ("DELETE", _) => Some(status(200)),
        (_, "server/discover") => Some(reply(400, &[("content-type", "text/plain")], "what?")),
        (_, "initialize") => Some(initialized(seen, version, Some("s-1"))),
        (_, method) if method.starts_with("notifications/") => Some(status(202)),
        _ => None,
    }
}

pub(crate) fn initialized(seen: &Seen, version: &str, session: Option<&str>) -> Reply {
    let mut reply = result(
        seen,
        json!({ "protocolVersion": version, "serverInfo": { "name": "s", "version": "1" },
                "capabilities": { "tools": { "listChanged": true }, "resources": { "subscribe": true } } }),
    );
    if let Some(session) = session {
        reply.headers_mut().insert("mcp-session-id", session.parse().unwrap());
    }
    reply
}

pub(crate) fn discovered(seen: &Seen) -> Reply {
    result(
        seen,
        json!({ "resultType": "complete", "supportedVersions": ["2026-07-28"],
                "capabilities": { "tools": { "listChanged": true } },
                "ttlMs": 0, "cacheScope": "private",
                "_meta": { "io.modelcontextprotocol/serverInfo": { "name": "s", "version": "1" } } }),
    )
}

/// The result of a tool that says `text`.
pub(crate) fn said(text: &str) -> Value {
    json!({ "resultType": "complete", "content": [{ "type": "text", "text": text }] })
}
