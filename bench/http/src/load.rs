//! A load over HTTP: one session, so many calls of `echo` at a time, each on a connection of its own.
//!
//! `load calls URL COUNT AT_ONCE`  prints p50 and p99 in microseconds and the calls in a second, as JSON
//! `load modern URL COUNT AT_ONCE` the same with requests of 2026-07-28, which need no session
//! `load floor URL COUNT AT_ONCE`  the same without a session, for a server that answers with what it got
//! `load idle URL COUNT`           opens so many sessions with a stream each, says so, and waits for its stdin to end
//!
//! Every answer is read to its end, whether it is JSON or a stream of events, and must have the text that was sent.

use std::io::Read as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::SendRequest;
use hyper::{Method, Request, Response, Uri};
use hyper_util::rt::TokioIo;
use serde_json::json;

const REVISION: &str = "2025-06-18";
const MODERN: &str = "2026-07-28";
const TEXT: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
/// Calls that are not counted, on each connection.
const WARM_UP: usize = 50;
const PATIENCE: Duration = Duration::from_secs(60);

type Fallible<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// One connection to the server, and the session on it.
struct Line {
    uri: Uri,
    sender: SendRequest<Full<Bytes>>,
    session: Option<Arc<str>>,
    speaks: Speaks,
}

/// What is spoken on a connection.
#[derive(Clone, Copy, PartialEq)]
enum Speaks {
    /// HTTP and nothing else; also MCP before a session is open.
    Http,
    /// MCP in a session.
    Session,
    /// MCP of 2026-07-28.
    Modern,
}

impl Line {
    async fn open(uri: &Uri) -> Fallible<Self> {
        let address = uri.authority().ok_or("the URL has no host and port")?.as_str();
        let stream = tokio::net::TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let (sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        Ok(Self { uri: uri.clone(), sender, session: None, speaks: Speaks::Http })
    }

    async fn send(&mut self, method: Method, body: String) -> Fallible<Response<Incoming>> {
        let mut request = Request::builder()
            .method(method)
            .uri(self.uri.path())
            .header("host", self.uri.authority().map_or("", |authority| authority.as_str()))
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream");
        match self.speaks {
            Speaks::Http => {}
            Speaks::Session => request = request.header("mcp-protocol-version", REVISION),
            Speaks::Modern => {
                request = request
                    .header("mcp-protocol-version", MODERN)
                    .header("mcp-method", "tools/call")
                    .header("mcp-name", "echo");
            }
        }
        if let Some(session) = &self.session {
            request = request.header("mcp-session-id", &**session);
        }
        self.sender.ready().await?;
        let response = self.sender.send_request(request.body(Full::new(body.into()))?);
        Ok(tokio::time::timeout(PATIENCE, response).await??)
    }

    /// Sends one message and reads all of the answer.
    async fn ask(&mut self, body: String) -> Fallible<Bytes> {
        let response = self.send(Method::POST, body).await?;
        let status = response.status();
        if let Some(session) = response.headers().get("mcp-session-id") {
            self.session = Some(session.to_str()?.into());
        }
        let body = tokio::time::timeout(PATIENCE, response.into_body().collect()).await??.to_bytes();
        if !status.is_success() {
            return Err(format!("{status}: {}", String::from_utf8_lossy(&body)).into());
        }
        Ok(body)
    }

    async fn initialize(&mut self) -> Fallible<()> {
        let params = json!({
            "protocolVersion": REVISION, "capabilities": {}, "clientInfo": { "name": "bench", "version": "1" },
        });
        self.ask(json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params }).to_string())
            .await?;
        self.speaks = Speaks::Session;
        self.ask(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string()).await?;
        Ok(())
    }

    async fn call(&mut self, id: usize) -> Fallible<()> {
        let meta = match self.speaks {
            Speaks::Modern => concat!(
                r#","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","#,
                r#""io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"},"#,
                r#""io.modelcontextprotocol/clientCapabilities":{}}"#
            ),
            Speaks::Http | Speaks::Session => "",
        };
        let call = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"echo","arguments":{{"text":"{TEXT}"}}{meta}}}}}"#
        );
        let answer = self.ask(call).await?;
        let found = answer.windows(TEXT.len()).any(|part| part == TEXT.as_bytes());
        if found { Ok(()) } else { Err(format!("no echo: {}", String::from_utf8_lossy(&answer)).into()) }
    }
}

/// Calls again and again, and says how long each call took.
async fn work(mut line: Line, first: usize, count: usize) -> Fallible<Vec<Duration>> {
    let mut took = Vec::with_capacity(count);
    for id in first..first + count {
        let began = Instant::now();
        line.call(id).await?;
        took.push(began.elapsed());
    }
    Ok(took)
}

async fn calls(uri: &Uri, count: usize, at_once: usize, speaks: Speaks) -> Fallible<()> {
    let mut lines = vec![Line::open(uri).await?];
    match speaks {
        Speaks::Session => lines[0].initialize().await?,
        Speaks::Http | Speaks::Modern => lines[0].speaks = speaks,
    }
    while lines.len() < at_once {
        let mut line = Line::open(uri).await?;
        (line.session, line.speaks) = (lines[0].session.clone(), lines[0].speaks);
        lines.push(line);
    }
    for (n, line) in lines.iter_mut().enumerate() {
        for call in 0..WARM_UP {
            line.call(1_000_000 + n * WARM_UP + call).await?;
        }
    }
    let began = Instant::now();
    let each = count / at_once;
    let tasks: Vec<_> =
        lines.into_iter().enumerate().map(|(n, line)| tokio::spawn(work(line, 1 + n * each, each))).collect();
    let mut took = Vec::new();
    for task in tasks {
        took.extend(task.await??);
    }
    let seconds = began.elapsed().as_secs_f64();
    took.sort_unstable();
    let micros = |part: usize| took[took.len() * part / 100].as_nanos() as f64 / 1e3;
    println!("{}", json!({ "p50": micros(50), "p99": micros(99), "rate": took.len() as f64 / seconds }));
    Ok(())
}

async fn idle(uri: &Uri, count: usize) -> Fallible<()> {
    let mut kept = Vec::new();
    for _ in 0..count {
        let mut line = Line::open(uri).await?;
        line.initialize().await?;
        let stream = line.send(Method::GET, String::new()).await?;
        if !stream.status().is_success() {
            return Err(format!("GET: {}", stream.status()).into());
        }
        kept.push((line, stream));
    }
    println!("{}", json!({ "sessions": kept.len() }));
    tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new())).await??;
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Fallible<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        [what @ ("calls" | "modern" | "floor"), url, count, at_once] => {
            let speaks = match what {
                "calls" => Speaks::Session,
                "modern" => Speaks::Modern,
                _ => Speaks::Http,
            };
            calls(&url.parse()?, count.parse()?, at_once.parse()?, speaks).await
        }
        ["idle", url, count] => idle(&url.parse()?, count.parse()?).await,
        _ => Err("usage: load calls|modern|floor URL COUNT AT_ONCE, load idle URL COUNT".into()),
    }
}
