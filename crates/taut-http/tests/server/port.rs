//! One port for lines, headers and HTTP; who may use it; how many; and its end.

use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use taut::service::{Failed, RequestParams, ServiceRequest};
use taut::transport::MessageService;
use taut_http::server::{HttpService, Options, ProtectedResource, ServeError, serve, serve_until};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;

use crate::support::{
    Running, Wire, fixture, initialize, modern_post, post_bytes, running, serving, until, within,
};

const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;

fn framed(message: &str) -> String {
    format!("Content-Length: {}\r\n\r\n{message}", message.len())
}

/// One exchange in the way of `kind`: lines, headers or HTTP.
async fn exchange(wire: &mut Wire, kind: usize) {
    match kind {
        0 => {
            wire.send(format!("{PING}\n")).await;
            assert!(wire.line().await.contains("\"result\":{}"));
        }
        1 => {
            wire.send(framed(PING)).await;
            let length = wire.line().await;
            assert!(length.to_ascii_lowercase().starts_with("content-length:"), "{length}");
            assert_eq!(wire.line().await, "");
            // The body has no newline: wait for the next answer's header instead.
            wire.send(framed(PING)).await;
            assert!(wire.line().await.contains("\"result\":{}}Content-Length"));
        }
        _ => {
            wire.send(modern_post("tools/call", json!({ "name": "echo" }))).await;
            let (status, body) = wire.response().await;
            assert!(status == 200 && body.contains("echoed"));
        }
    }
}

/// Two hundred connections of three kinds at once, while a slow writer of each kind holds one.
#[tokio::test]
async fn two_hundred_connections_of_three_kinds_are_served_on_one_port() {
    let server = running(Options::new()).await;
    let mut slow = Vec::new();
    let line = format!("{PING}\n");
    let (framed, post) = (framed(PING), modern_post("tools/call", json!({ "name": "echo" })));
    let halves = [line.split_at(11), framed.split_at(framed.len() - 30), post.split_at(30)];
    for (begin, _) in halves {
        let mut wire = server.connect().await;
        wire.send(begin).await;
        slow.push(wire);
    }
    let mut wires = Vec::new();
    for _ in 0..200 {
        wires.push(server.connect().await);
    }
    let mut tasks = tokio::task::JoinSet::new();
    for (at, mut wire) in wires.into_iter().enumerate() {
        tasks.spawn(async move {
            for _ in 0..3 {
                exchange(&mut wire, at % 3).await;
                if at % 3 == 1 {
                    break;
                }
            }
            wire
        });
    }
    let wires = within(tasks.join_all()).await;
    assert_eq!(wires.len(), 200);
    // The slow ones go on where they were, and are served.
    for (wire, (_, rest)) in slow.iter_mut().zip(halves) {
        wire.send(rest).await;
    }
    assert!(slow[0].line().await.contains("\"result\":{}"));
    // The same as a response with a length: a head and a body.
    assert!(slow[1].line().await.to_ascii_lowercase().starts_with("content-length:"));
    assert_eq!(slow[1].line().await, "");
    // The body has no newline; once nothing more is asked, the connection ends.
    slow[1].stream.shutdown().await.unwrap();
    assert!(slow[1].rest().await.contains("\"result\":{}"));
    let (status, body) = slow[2].response().await;
    assert!(status == 200 && body.contains("echoed"), "{status} {body}");
    drop(wires);
    server.stop().await;
}

/// What a web page can send to a local port runs nothing: HTTP is HTTP for the whole connection, and the
/// origin is looked at before the path.
#[tokio::test]
async fn a_page_cannot_reach_the_lines() {
    let server = running(Options::new()).await;
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"gated"}}"#;
    for path in ["/", "/mcp", "/other", "/.well-known/x"] {
        for kind in ["text/plain", "application/json", "application/x-www-form-urlencoded"] {
            let body = format!("\n{call}\n");
            let post = format!(
                "POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nOrigin: https://evil.example\r\n\
                 Content-Type: {kind}\r\nContent-Length: {}\r\n\r\n{body}",
                body.len()
            );
            let mut wire = server.connect().await;
            wire.send(post).await;
            let (status, answer) = wire.response().await;
            assert_eq!(status, 403, "{path} {kind}: {answer}");
            assert!(answer.contains("allow_origin"), "{path} {kind}: {answer}");
        }
    }
    // A body that is longer than announced is not the next message.
    let post = post_bytes("Origin: https://evil.example", call).replace("Content-Length: ", "X: ");
    let mut wire = server.connect().await;
    wire.send(post.replace("POST /mcp", "POST /")).await;
    wire.stream.shutdown().await.unwrap();
    let answer = wire.rest().await;
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 4"), "{answer}");
    // A name that is not the server's own, as DNS rebinding has it.
    let mut wire = server.connect().await;
    wire.send("GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n").await;
    assert_eq!(wire.response().await.0, 403);
    let post = post_bytes("Origin: https://evil.example", call);
    let mut wire = server.connect().await;
    wire.send(post).await;
    assert_eq!(wire.response().await.0, 403);
    assert_eq!(server.shared.running.load(std::sync::atomic::Ordering::SeqCst), 0);
    server.stop().await;
}

/// A reverse proxy that guards `/mcp` is not bypassed: nothing else is the endpoint.
#[tokio::test]
async fn messages_are_served_at_the_endpoint_only() {
    let resource = ProtectedResource::new("http://localhost/mcp", "https://login.example.com");
    let server = running(Options::new().protected_resource(resource)).await;
    let metadata = "/.well-known/oauth-protected-resource";
    let call = modern_post("tools/call", json!({ "name": "echo" }));
    let open = post_bytes("", &initialize("2025-11-25").to_string());
    for path in ["/.well-known/x", metadata, "/.well-known/oauth-protected-resource/mcp", "/"] {
        for post in [&call, &open] {
            let mut wire = server.connect().await;
            wire.send(post.replace("POST /mcp", &format!("POST {path}"))).await;
            let (status, body) = wire.response().await;
            assert_eq!(status, 404, "{path}: {body}");
            assert!(!body.contains("result"), "{path}: {body}");
        }
    }
    for (line, expected) in [
        (format!("GET {metadata}"), 200),
        (format!("GET {metadata}/mcp"), 200),
        (format!("GET {metadata}/other"), 404),
        ("GET /.well-known/openid-configuration".to_owned(), 404),
        (format!("DELETE {metadata}"), 404),
        (format!("OPTIONS {metadata}"), 404),
    ] {
        let mut wire = server.connect().await;
        wire.send(format!("{line} HTTP/1.1\r\nHost: localhost\r\n\r\n")).await;
        assert_eq!(wire.response().await.0, expected, "{line}");
    }
    // The head of what GET gives.
    let mut wire = server.connect().await;
    let head = format!("HEAD {metadata} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    wire.send(head).await;
    let answer = wire.rest().await;
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("\r\n\r\n"), "{answer}");
    server.stop().await;
}

/// Once a token is set, only HTTP is served: lines and headers have no place for it.
#[tokio::test]
async fn with_a_token_the_port_is_for_http_only() {
    let server = running(Options::new().token("s3cret")).await;
    for bytes in [format!("{PING}\n"), framed(PING)] {
        let mut wire = server.connect().await;
        wire.send(bytes).await;
        let answer = wire.rest().await;
        assert!(answer.contains("HTTP only") && !answer.contains("result"), "{answer}");
    }
    let post = modern_post("tools/call", json!({ "name": "who" }));
    let post = post.replacen("\r\n", "\r\nAuthorization: Bearer s3cret\r\n", 1);
    let mut wire = server.connect().await;
    wire.send(post).await;
    assert!(wire.response().await.1.contains("token 1"));
    server.stop().await;
}

/// HSC-03: an address that others can reach needs a token, or words that say it is unsafe.
#[tokio::test]
async fn hsc_03_an_exposed_address_needs_a_token() {
    let any = || async { TcpListener::bind("0.0.0.0:0").await.unwrap() };
    let server = || Arc::new(fixture().0);
    let refused = serve(any().await, server(), Options::new()).await.unwrap_err();
    assert!(matches!(refused, ServeError::Exposed { .. }));
    assert!(refused.to_string().contains("set a token"), "{refused}");
    for options in [Options::new().token("t"), Options::new().serve_everyone_unsafely()] {
        let served = serve_until(any().await, server(), options, std::future::ready(()));
        assert!(within(served).await.is_ok());
    }
}

/// More connections than the limit are told so; an end makes room.
#[tokio::test]
async fn connections_are_bounded_in_number() {
    let server = running(Options::new().connections(2)).await;
    let mut first = server.connect().await;
    exchange(&mut first, 0).await;
    let mut second = server.connect().await;
    exchange(&mut second, 2).await;
    let mut third = server.connect().await;
    let answer = third.rest().await;
    assert!(answer.starts_with("HTTP/1.1 503 ") && answer.contains("too many"), "{answer}");
    drop(first);
    within(async {
        loop {
            let mut wire = server.connect().await;
            // Writing fails if it is refused meanwhile.
            let _ = wire.stream.write_all(format!("{PING}\n").as_bytes()).await;
            let mut byte = [0];
            if wire.stream.peek(&mut byte).await.is_ok() && byte[0] == b'{' {
                break;
            }
        }
    })
    .await;
    server.stop().await;
}

/// A connection whose call runs until the gate is opened.
async fn gated_call(server: &Running) -> Wire {
    let mut busy = server.connect().await;
    busy.send(modern_post("tools/call", json!({ "name": "gated" }))).await;
    let running = || server.shared.running.load(std::sync::atomic::Ordering::SeqCst) == 1;
    until("the call runs", running).await;
    busy
}

/// Stopping ends idle connections at once and lets answers finish.
#[tokio::test]
async fn stopping_finishes_what_is_being_answered() {
    let server = running(Options::new()).await;
    let mut idle = server.connect().await;
    exchange(&mut idle, 2).await;
    let mut lines = server.connect().await;
    exchange(&mut lines, 0).await;
    let silent = server.connect().await;
    let mut busy = gated_call(&server).await;
    let shared = server.shared.clone();
    let stopping = tokio::spawn(server.stop());
    assert_eq!(idle.rest().await, "");
    assert_eq!(lines.rest().await, "");
    shared.gate.add_permits(1);
    let answer = busy.rest().await;
    assert!(answer.contains("through"), "{answer}");
    within(stopping).await.unwrap();
    drop(silent);
}

/// What is not answered within the limit is cut off: with none it is cut off at once, though the call never ends.
#[tokio::test]
async fn stopping_waits_no_longer_than_it_was_told() {
    for limit in [Duration::ZERO, Duration::from_millis(20)] {
        let server = running(Options::new().drain(limit)).await;
        let mut busy = gated_call(&server).await;
        server.stop().await;
        assert_eq!(busy.rest().await, "");
    }
    // No limit at all is none that is over at once.
    let server = running(Options::new().drain(Duration::MAX)).await;
    let mut busy = gated_call(&server).await;
    let shared = server.shared.clone();
    let stopping = tokio::spawn(server.stop());
    shared.gate.add_permits(1);
    let answer = busy.rest().await;
    assert!(answer.contains("through"), "{answer}");
    within(stopping).await.unwrap();
}

/// A client that does not read what it asked for loses its connection, and nobody else. T12.
#[tokio::test]
async fn a_client_that_does_not_read_is_cut_off() {
    let server = running(Options::new().stall_timeout(Duration::from_millis(300))).await;
    let mut stuck = server.connect().await;
    let level = json!({ "io.modelcontextprotocol/logLevel": "debug" });
    let big = modern_post("tools/call", json!({ "name": "big", "_meta": level }));
    // A megabyte each, sent ahead, never read.
    for _ in 0..40 {
        if stuck.stream.write_all(big.as_bytes()).await.is_err() {
            break;
        }
    }
    let mut other = server.connect().await;
    exchange(&mut other, 2).await;
    // Nothing is read here, so the server gives up.
    let cut = || stuck.stream.try_write(b" ").is_err_and(|e| e.kind() != ErrorKind::WouldBlock);
    let began = std::time::Instant::now();
    until("it is cut off", cut).await;
    // Far below what is waited for a client that may still read.
    assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
    // What is in the buffers still comes; then the end, without the last answers.
    let received = within(stuck.rest()).await;
    assert!(received.matches("\"done\"").count() < 40);
    server.stop().await;
}

/// Adds numbers: a plain JSON-RPC service.
fn adder() -> impl MessageService {
    taut::service::serve(async |method: String, params: RequestParams, _: ServiceRequest| {
        match method.as_str() {
            "add" => Ok::<_, Failed>(params.read::<Vec<f64>>()?.iter().sum::<f64>()),
            _ => Err(taut::Reject::method_not_found(&method).into()),
        }
    })
}

/// A plain JSON-RPC service on a port: lines, headers and HTTP, as for MCP.
#[tokio::test]
async fn a_plain_service_is_served_on_one_port_in_three_ways() {
    let server = serving(Arc::new(adder()), Options::new()).await;
    let add = |id: u64| json!({ "jsonrpc": "2.0", "id": id, "method": "add", "params": [id, 1] });
    let mut lines = server.connect().await;
    lines.send(format!("{}\n{}\n", add(1), add(2))).await;
    let answers = [lines.line().await, lines.line().await].concat();
    assert!(answers.contains(r#""id":1,"result":2.0"#), "{answers}");
    assert!(answers.contains(r#""id":2,"result":3.0"#), "{answers}");
    let mut headers = server.connect().await;
    headers.send(framed(&add(3).to_string())).await;
    headers.stream.shutdown().await.unwrap();
    let answer = headers.rest().await;
    assert!(answer.to_ascii_lowercase().starts_with("content-length: "), "{answer}");
    assert!(answer.contains(r#""id":3,"result":4.0"#), "{answer}");
    let mut http = server.connect().await;
    http.send(post_bytes("", &add(4).to_string())).await;
    let (status, body) = http.response().await;
    assert!(status == 200 && body.contains(r#""id":4,"result":5.0"#), "{status} {body}");
    server.stop().await;
}

/// A plain JSON-RPC service over HTTP: a message or an array, no sessions.
#[tokio::test]
async fn plain_services_are_served_as_well() {
    let http = crate::support::Direct(HttpService::new(adder(), Options::new()));
    let add = |id: u64| json!({ "jsonrpc": "2.0", "id": id, "method": "add", "params": [id, 1] });
    assert_eq!(http.post(&[], add(2)).await.json().await["result"], 3.0);
    let note = json!({ "jsonrpc": "2.0", "method": "add", "params": [] });
    let reply = http.post(&[], &note).await;
    assert_eq!((reply.status.as_u16(), reply.text().await.as_str()), (202, ""));
    let batch = json!([add(1), note, add(2), 5]);
    let answers = http.post(&[], batch).await.json().await;
    assert_eq!(answers.as_array().unwrap().len(), 3, "{answers}");
    let many: Vec<_> = (0..900).map(add).collect();
    let answers = http.post(&[], json!(many)).await.json().await;
    assert_eq!(answers.as_array().unwrap().len(), 900);
    assert_eq!(http.post(&[], "{").await.status, 400);
    assert_eq!(http.send(http::Method::GET, &[], "").await.status, 405);
}

/// A Unix socket that only its owner can reach; any `Host` will do there.
// About Unix itself: such sockets, and the modes of files.
#[cfg(unix)]
#[tokio::test]
async fn a_unix_socket_is_for_its_owner() {
    use std::os::unix::fs::PermissionsExt;
    use taut_http::server::bind_unix;
    let directory = std::env::temp_dir().join(format!("taut-http-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let path = directory.join("socket");
    // One that nobody listens on is replaced; one that somebody listens on is not.
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    let listener = bind_unix(&path).unwrap();
    let error = bind_unix(&path).unwrap_err();
    assert!(error.to_string().contains("another process"), "{error}");
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let stopped = async {
        // Told by the end of the test.
        let _ = stopped.await;
    };
    let server = Arc::new(fixture().0);
    let served = tokio::spawn(serve_until(listener, server, Options::new(), stopped));
    use tokio::io::{AsyncBufReadExt, BufReader};
    let post = post_bytes("", &initialize("2025-11-25").to_string());
    for (bytes, answer) in [
        (post.replace("Host: localhost", "Host: anything"), "HTTP/1.1 200 OK"),
        (format!("{PING}\n"), r#"{"jsonrpc":"2.0","id":1,"result":{}}"#),
    ] {
        let mut stream = tokio::net::UnixStream::connect(&path).await.unwrap();
        stream.write_all(bytes.as_bytes()).await.unwrap();
        let mut line = String::new();
        within(BufReader::new(&mut stream).read_line(&mut line)).await.unwrap();
        assert_eq!(line.trim_end(), answer);
    }
    drop(stop);
    within(served).await.unwrap().unwrap();
    std::fs::write(&path, "").unwrap_err();
    std::fs::remove_dir_all(&directory).unwrap();
}

/// While a Unix socket is made, nobody can connect to it before its mode is set, whatever the umask is.
// About Unix itself: such sockets, and the modes of files.
#[cfg(unix)]
#[tokio::test]
async fn a_unix_socket_has_its_mode_before_anybody_can_connect() {
    use std::os::unix::fs::PermissionsExt;
    use std::sync::atomic::{AtomicBool, Ordering};
    let directory = std::env::temp_dir().join(format!("taut-http-mode-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let over = Arc::new(AtomicBool::new(false));
    let (watched, ended) = (directory.clone(), over.clone());
    // Tries everything that appears in the directory, under whatever name.
    let watching = std::thread::spawn(move || {
        let mut open = Vec::new();
        while !ended.load(Ordering::SeqCst) {
            for entry in std::fs::read_dir(&watched).unwrap().flatten() {
                if std::os::unix::net::UnixStream::connect(entry.path()).is_ok()
                    && let Ok(about) = std::fs::symlink_metadata(entry.path())
                    && about.permissions().mode() & 0o777 != 0o600
                {
                    open.push((entry.path(), about.permissions().mode()));
                }
            }
        }
        open
    });
    for _ in 0..500 {
        let path = directory.join("socket");
        let listener = taut_http::server::bind_unix(&path).unwrap();
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        drop(listener);
        std::fs::remove_file(&path).unwrap();
    }
    over.store(true, Ordering::SeqCst);
    let open = watching.join().unwrap();
    let left: Vec<_> = std::fs::read_dir(&directory).unwrap().flatten().collect();
    std::fs::remove_dir_all(&directory).unwrap();
    assert!(open.is_empty(), "somebody could connect: {open:?}");
    assert!(left.is_empty(), "files are left: {left:?}");
}
