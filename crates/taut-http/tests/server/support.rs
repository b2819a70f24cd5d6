//! A server with a tool for each case, and two clients: one calls the service, one has a socket.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use taut::transport::MessageService;
use taut::types::{FormField, FormSchema, Schema};
use taut::{Call, Level, NoArgs, Server, Tool, UserReply};
use taut_http::server::{Body, HttpService, Options, serve_until};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, oneshot};

/// Waits for something that must happen. The limit is only there so that a test ends.
pub(crate) async fn within<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), what).await.expect("it did not happen in time")
}

/// Waits until something holds.
pub(crate) async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = std::time::Instant::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_secs(60), "never: {what}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// What the tools share with a test.
pub(crate) struct Shared {
    pub(crate) cancelled: AtomicUsize,
    pub(crate) running: AtomicUsize,
    pub(crate) gate: Semaphore,
}

/// One run of a tool: counted as cancelled if it is dropped before its end.
struct Run(Arc<Shared>, bool);

impl Run {
    fn new(shared: Arc<Shared>) -> Self {
        shared.running.fetch_add(1, Ordering::SeqCst);
        Self(shared, false)
    }

    fn through(mut self) {
        self.1 = true;
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        if !self.1 {
            self.0.cancelled.fetch_add(1, Ordering::SeqCst);
        }
    }
}

pub(crate) fn fixture() -> (Server<Arc<Shared>>, Arc<Shared>) {
    type Of = Call<Arc<Shared>>;
    let shared = Arc::new(Shared {
        cancelled: AtomicUsize::new(0),
        running: AtomicUsize::new(0),
        gate: Semaphore::new(0),
    });
    let regional = json!({ "type": "object", "properties": {
        "region": { "type": "string", "x-mcp-header": "Region" },
        "count": { "type": "integer", "x-mcp-header": "Count" },
    }});
    let mut region = Tool::new("region").description("Repeated in headers.");
    region.input_schema = Schema::from(regional);
    let server = Server::with_state("http", "1", shared.clone())
        .logging()
        .changing()
        .tool(("echo", "Say something."), async |_: NoArgs, _: Of| "echoed")
        .tool(("talk", "Log and answer."), async |_: NoArgs, call: Of| {
            call.log(Level::Warning, "a line");
            "said"
        })
        .tool(("gated", "Wait for the test."), async |_: NoArgs, call: Of| {
            let run = Run::new(call.state().clone());
            call.state().gate.acquire().await.unwrap().forget();
            run.through();
            "through"
        })
        .tool(("lines", "Log, wait, log."), async |_: NoArgs, call: Of| {
            call.log(Level::Warning, "first");
            call.state().gate.acquire().await.unwrap().forget();
            call.log(Level::Warning, "second");
            "done"
        })
        .tool(("big", "Log a lot."), async |_: NoArgs, call: Of| {
            for _ in 0..64 {
                call.log(Level::Warning, "0123456789abcdef".repeat(1024));
            }
            "done"
        })
        .tool(("ask", "Ask the user."), async |_: NoArgs, call: Of| {
            let form = FormSchema::new().required("name", FormField::text());
            Ok::<_, taut::AskError>(match call.ask_form("Who?", form).await? {
                UserReply::Accepted(answer) => format!("hello {}", answer["name"]),
                _ => "nobody".to_owned(),
            })
        })
        .tool(("ask_loudly", "Ask and log."), async |_: NoArgs, call: Of| {
            call.state().gate.acquire().await.unwrap().forget();
            let form = FormSchema::new().required("name", FormField::text());
            let log = async {
                for _ in 0..64 {
                    call.log(Level::Warning, "0123456789abcdef".repeat(1024));
                }
            };
            let (answer, ()) = tokio::join!(call.ask_form("Who?", form), log);
            call.state().running.fetch_add(1, Ordering::SeqCst);
            answer.map(|_| "answered")
        })
        .tool(("who", "Tell who asks."), async |_: NoArgs, call: Of| {
            call.principal().id().unwrap_or("nobody").to_owned()
        })
        .tool(("change", "Add a tool."), async |_: NoArgs, call: Of| {
            call.changes().add_tool(("more", "Be more."), async |_: NoArgs, _: Of| "more").unwrap();
            "changed"
        })
        .raw_tool(region, async |arguments, _: Of| arguments.text().to_owned())
        .build()
        .unwrap();
    (server, shared)
}

/// The service without a socket.
pub(crate) struct Direct(pub(crate) HttpService);

pub(crate) fn direct(options: Options) -> (Direct, Arc<Shared>) {
    let (server, shared) = fixture();
    (Direct(HttpService::new(server, options)), shared)
}

/// The headers that every good POST has. A name that is given again replaces one of these.
const USUAL: [(&str, &str); 3] = [
    ("host", "localhost"),
    ("accept", "application/json, text/event-stream"),
    ("content-type", "application/json"),
];

impl Direct {
    pub(crate) async fn send(
        &self,
        method: Method,
        headers: &[(&str, &str)],
        body: impl ToString,
    ) -> Reply {
        let given = |name: &str| headers.iter().any(|(other, _)| *other == name);
        let mut request = Request::builder().method(method).uri("/mcp");
        for (name, value) in USUAL.iter().filter(|(name, _)| !given(name)).chain(headers) {
            if *value != "-" {
                request = request.header(*name, *value);
            }
        }
        let body = Full::new(Bytes::from(body.to_string()));
        let response = within(self.0.handle(request.body(body).unwrap())).await;
        let (head, body) = response.into_parts();
        Reply { status: head.status, headers: head.headers, body, buffer: String::new() }
    }

    pub(crate) async fn post(&self, headers: &[(&str, &str)], body: impl ToString) -> Reply {
        self.send(Method::POST, headers, body).await
    }

    /// Opens a session of this revision and gives its id.
    pub(crate) async fn open(&self, revision: &str) -> String {
        self.open_as(revision, &[]).await
    }

    pub(crate) async fn open_as(&self, revision: &str, headers: &[(&str, &str)]) -> String {
        let reply = self.post(headers, initialize(revision)).await;
        assert_eq!(reply.status, 200);
        let id = reply.header("mcp-session-id").unwrap();
        let headers = [headers, &[("mcp-session-id", id.as_str())]].concat();
        let note = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        assert_eq!(self.post(&headers, note).await.status, 202);
        id
    }

    /// A GET on a session, after an event if one is given.
    pub(crate) async fn get(&self, session: &str, after: Option<&str>) -> Reply {
        let mut headers = vec![("mcp-session-id", session), ("accept", "text/event-stream")];
        headers.extend(after.map(|after| ("last-event-id", after)));
        self.send(Method::GET, &headers, "").await
    }

    /// A modern request with all its headers.
    pub(crate) async fn modern(&self, method: &str, params: Value) -> Reply {
        let (headers, body) = modern(method, params);
        let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        self.post(&headers, body).await
    }
}

pub(crate) fn initialize(revision: &str) -> Value {
    request(
        "i",
        "initialize",
        json!({
            "protocolVersion": revision, "capabilities": { "elicitation": {}, "roots": {} },
            "clientInfo": { "name": "test", "version": "1" }
        }),
    )
}

pub(crate) fn request(id: impl Into<Value>, method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id.into(), "method": method, "params": params })
}

pub(crate) fn call(id: impl Into<Value>, tool: &str) -> Value {
    request(id, "tools/call", json!({ "name": tool, "arguments": {} }))
}

/// A modern request, and the headers that repeat what it says.
pub(crate) fn modern(method: &str, mut params: Value) -> (Vec<(&'static str, String)>, Value) {
    let mut headers =
        vec![("mcp-protocol-version", "2026-07-28".to_owned()), ("mcp-method", method.to_owned())];
    let name = params.get("name").or_else(|| params.get("uri")).and_then(Value::as_str);
    headers.extend(name.map(|name| ("mcp-name", name.to_owned())));
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": { "elicitation": {} },
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
    });
    let given = params["_meta"].take();
    params["_meta"] = meta;
    for (key, value) in given.as_object().into_iter().flatten() {
        params["_meta"][key] = value.clone();
    }
    (headers, request(1, method, params))
}

pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    body: Body,
    buffer: String,
}

/// One event of a stream.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Event {
    pub(crate) id: Option<String>,
    pub(crate) retry: Option<u64>,
    pub(crate) data: Value,
}

impl Reply {
    pub(crate) fn header(&self, name: &str) -> Option<String> {
        self.headers.get(name).map(|value| value.to_str().unwrap().to_owned())
    }

    pub(crate) fn is_stream(&self) -> bool {
        self.header("content-type").as_deref() == Some("text/event-stream")
    }

    pub(crate) async fn text(self) -> String {
        let bytes = within(self.body.collect()).await.unwrap().to_bytes();
        String::from_utf8(bytes.to_vec()).unwrap()
    }

    pub(crate) async fn json(self) -> Value {
        assert_eq!(self.header("content-type").as_deref(), Some("application/json"));
        serde_json::from_str(&self.text().await).unwrap()
    }

    /// The code of the error that the body holds.
    pub(crate) async fn code(self) -> i64 {
        self.json().await["error"]["code"].as_i64().unwrap()
    }

    /// The next piece of a stream: an event, or a comment as its text.
    pub(crate) async fn piece(&mut self) -> Option<Result<Event, String>> {
        while !self.buffer.contains("\n\n") {
            let frame = within(self.body.frame()).await?.unwrap().into_data().unwrap();
            self.buffer += std::str::from_utf8(&frame).unwrap();
        }
        let (piece, rest) = self.buffer.split_once("\n\n").unwrap();
        let (piece, rest) = (piece.to_owned(), rest.to_owned());
        self.buffer = rest;
        if let Some(comment) = piece.strip_prefix(':') {
            return Some(Err(comment.trim().to_owned()));
        }
        let mut event = Event::default();
        for line in piece.lines() {
            let (name, value) = line.split_once(": ").unwrap();
            match name {
                "id" => event.id = Some(value.to_owned()),
                "retry" => event.retry = Some(value.parse().unwrap()),
                "data" if value.is_empty() => {}
                "data" => event.data = serde_json::from_str(value).unwrap(),
                "event" => assert_eq!(value, "message"),
                other => panic!("{other}"),
            }
        }
        Some(Ok(event))
    }

    /// The next event; `None` at the end of the stream.
    pub(crate) async fn event(&mut self) -> Option<Event> {
        for _ in 0..100 {
            if let Ok(event) = self.piece().await? {
                return Some(event);
            }
        }
        panic!("only comments come")
    }
}

/// A server on a port of the loopback.
pub(crate) struct Running {
    pub(crate) address: std::net::SocketAddr,
    pub(crate) shared: Arc<Shared>,
    stop: Option<oneshot::Sender<()>>,
    served: tokio::task::JoinHandle<()>,
}

pub(crate) async fn running(options: Options) -> Running {
    let (server, shared) = fixture();
    start(Arc::new(server), shared, options).await
}

/// Serves something else than the fixture.
pub(crate) async fn serving(service: Arc<dyn MessageService>, options: Options) -> Running {
    start(service, fixture().1, options).await
}

async fn start(service: Arc<dyn MessageService>, shared: Arc<Shared>, options: Options) -> Running {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let served = tokio::spawn(async move {
        let stopped = async {
            // Dropped or told, it stops.
            let _ = stopped.await;
        };
        serve_until(listener, service, options, stopped).await.unwrap();
    });
    Running { address, shared, stop: Some(stop), served }
}

impl Running {
    pub(crate) async fn connect(&self) -> Wire {
        Wire::new(TcpStream::connect(self.address).await.unwrap())
    }

    pub(crate) async fn stop(mut self) {
        self.stop.take().unwrap().send(()).unwrap();
        within(&mut self.served).await.unwrap();
    }
}

/// A client that writes bytes.
pub(crate) struct Wire {
    pub(crate) stream: TcpStream,
    read: Vec<u8>,
}

impl Wire {
    pub(crate) fn new(stream: TcpStream) -> Self {
        Self { stream, read: Vec::new() }
    }

    pub(crate) async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        within(self.stream.write_all(bytes.as_ref())).await.unwrap();
    }

    /// Everything until the other side closes.
    pub(crate) async fn rest(&mut self) -> String {
        // A reset is an end as well.
        let _ = within(self.stream.read_to_end(&mut self.read)).await;
        String::from_utf8_lossy(&std::mem::take(&mut self.read)).into_owned()
    }

    async fn more(&mut self) {
        let mut some = [0; 4096];
        let length = within(self.stream.read(&mut some)).await.unwrap();
        assert!(length > 0, "closed after {:?}", String::from_utf8_lossy(&self.read));
        self.read.extend_from_slice(&some[..length]);
    }

    /// One line without its newline.
    pub(crate) async fn line(&mut self) -> String {
        loop {
            if let Some(at) = self.read.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.read.drain(..=at).collect();
                return String::from_utf8(line).unwrap().trim_end().to_owned();
            }
            self.more().await;
        }
    }

    /// One response with a length: its status and its body.
    pub(crate) async fn response(&mut self) -> (u16, String) {
        let status = self.line().await.split(' ').nth(1).unwrap().parse().unwrap();
        let mut length = 0;
        loop {
            let line = self.line().await.to_ascii_lowercase();
            if line.is_empty() {
                break;
            }
            if let Some(value) = line.strip_prefix("content-length: ") {
                length = value.parse().unwrap();
            }
        }
        while self.read.len() < length {
            self.more().await;
        }
        let body: Vec<u8> = self.read.drain(..length).collect();
        (status, String::from_utf8(body).unwrap())
    }
}

/// A whole POST of a modern request, as bytes.
pub(crate) fn modern_post(method: &str, params: Value) -> String {
    let (headers, body) = modern(method, params);
    let lines: Vec<_> = headers.iter().map(|(name, value)| format!("{name}: {value}")).collect();
    post_bytes(&lines.join("\r\n"), &body.to_string())
}

/// A whole POST with more headers, as bytes.
pub(crate) fn post_bytes(headers: &str, body: &str) -> String {
    let headers = if headers.is_empty() { String::new() } else { format!("{headers}\r\n") };
    format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: application/json, text/event-stream\r\n\
         Content-Type: application/json\r\n{headers}Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
}
