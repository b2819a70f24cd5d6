//! A thousand connections at once to a server of the library, on a Unix socket and on TCP (must show 8).

use std::io::{BufRead as _, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::json;
use taut::transport::{MessageService as _, Principal};

use super::*;

/// The server of `taut serve`.
#[path = "../../src/demo.rs"]
#[allow(dead_code, reason = "not all of it is used here")]
mod demo;

const CLIENTS: usize = 1_000;

/// What one connection may cost when it is idle.
const EACH: usize = 40 << 10;

/// Lets this process have a descriptor for each connection.
fn raise_limit() {
    let limit = getrlimit(Resource::Nofile);
    let wanted = 4 * CLIENTS as u64;
    assert!(limit.maximum.is_none_or(|maximum| maximum >= wanted), "{limit:?}");
    if limit.current.is_some_and(|current| current < wanted) {
        setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum: limit.maximum })
            .unwrap();
    }
}

/// The demo server on a socket: `crowd unix PATH` or `crowd tcp`. Prints where it listens.
pub(super) fn serve(role: &str) {
    raise_limit();
    let path = role.strip_prefix("crowd unix ");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let server = demo::server().build().unwrap();
        let serve = |stream: Box<dyn taut::transport::ByteStream>| {
            tokio::spawn(server.serve_socket(stream, Principal::ANONYMOUS));
        };
        match path {
            Some(path) => {
                let listener = tokio::net::UnixListener::bind(path).unwrap();
                println!("listening {path}");
                loop {
                    serve(Box::new(listener.accept().await.unwrap().0));
                }
            }
            None => {
                let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
                println!("listening {}", listener.local_addr().unwrap());
                loop {
                    serve(Box::new(listener.accept().await.unwrap().0));
                }
            }
        }
    });
}

/// Its process, ended with the test.
struct Crowded(std::process::Child, String);

impl Crowded {
    fn start(role: &str) -> Self {
        let (program, args) = rude::player(role);
        let mut command = Command::new(program);
        command.args(args).env("TAUT_ROLE", role).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stdout.as_mut().unwrap()).lines();
        let place = lines
            .map_while(Result::ok)
            .find_map(|line| line.split_once("listening ").map(|(_, place)| place.to_owned()));
        Self(child, place.expect("it listens"))
    }

    fn resident(&self) -> usize {
        bridge::resident(self.0.id())
    }
}

impl Drop for Crowded {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

trait Stream: Read + Write {}
impl<T: Read + Write> Stream for T {}

fn ask(stream: &mut dyn Stream, id: usize) {
    let hello = json!({ "jsonrpc": "2.0", "id": "open", "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "h", "version": "1" } } });
    let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    let call = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call",
        "params": { "name": "echo", "arguments": { "text": format!("client {id}") } } });
    stream.write_all(format!("{hello}\n{ready}\n{call}\n").as_bytes()).unwrap();
}

/// Reads two lines, and checks that the second is the answer to this client's own call.
fn answered(stream: &mut dyn Stream, id: usize) {
    let mut lines = BufReader::with_capacity(512, stream).lines();
    let opened: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
    assert_eq!(opened["id"], "open");
    let answer: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
    assert_eq!(answer["id"], id, "{answer}");
    assert_eq!(answer["result"]["content"][0]["text"], format!("client {id}"));
}

fn crowd(role: &str, connect: impl Fn(&str) -> Box<dyn Stream>) {
    raise_limit();
    let server = Crowded::start(role);
    // What the first one costs is the server's.
    let mut first = connect(&server.1);
    ask(&mut *first, 0);
    answered(&mut *first, 0);
    let before = server.resident();
    let mut clients: Vec<_> = (0..CLIENTS).map(|_| connect(&server.1)).collect();
    for (id, client) in clients.iter_mut().enumerate() {
        ask(&mut **client, id);
    }
    for (id, client) in clients.iter_mut().enumerate() {
        answered(&mut **client, id);
    }
    let each = server.resident().saturating_sub(before) / CLIENTS;
    eprintln!("{role}: {each} bytes for each idle connection");
    assert!(each <= EACH, "{each} bytes");
    // All of them are still served.
    for (id, client) in clients.iter_mut().enumerate() {
        let ping = json!({ "jsonrpc": "2.0", "id": id, "method": "ping" });
        client.write_all(format!("{ping}\n").as_bytes()).unwrap();
    }
    for (id, client) in clients.iter_mut().enumerate() {
        let mut line = String::new();
        BufReader::with_capacity(512, &mut **client).read_line(&mut line).unwrap();
        assert_eq!(serde_json::from_str::<Value>(&line).unwrap()["id"], id);
    }
}

#[test]
fn a_thousand_clients_at_once_on_a_unix_socket() {
    let path = std::env::temp_dir().join(format!("taut-crowd-{}", std::process::id()));
    crowd(&format!("crowd unix {}", path.display()), |place| {
        let stream = UnixStream::connect(place).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        Box::new(stream)
    });
    let _ = std::fs::remove_file(path);
}

#[test]
fn a_thousand_clients_at_once_on_tcp() {
    crowd("crowd tcp", |place| {
        let stream = TcpStream::connect(place.parse::<SocketAddr>().unwrap()).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        Box::new(stream)
    });
}
