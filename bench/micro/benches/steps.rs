//! What each step of a request costs by itself: decode, classify, dispatch, encode, and all of them.
//!
//! `cargo bench` in this directory. Times are for comparing two states of the code on one machine;
//! `../instructions` is what a change is judged by.

use std::hint::black_box;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;

use divan::Bencher;
use divan::counter::{BytesCount, ItemsCount};
use taut::rpc::{Config, Dialect, Event, JsonBuf, Peer};
use taut::wire::{Decoder, Encoder, Framing, Limits};
use taut::{CallToolResult, JsonSchema, Revision, Server};
use taut::types::{WriteJson, Target};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

fn main() {
    divan::main();
}

/// The messages that are looked at.
const MESSAGES: [&str; 4] = ["legacy", "modern", "result", "megabyte"];

const META: &str = concat!(
    r#","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","#,
    r#""io.modelcontextprotocol/clientCapabilities":{},"#,
    r#""io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1.0"}}"#
);

fn message(name: &str) -> String {
    let text = "0123456789abcdef".repeat(if name == "megabyte" { 1 << 16 } else { 4 });
    match name {
        "result" => format!(
            r#"{{"jsonrpc":"2.0","id":7,"result":{{"content":[{{"type":"text","text":"{text}"}}]}}}}"#
        ),
        _ => format!(
            r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"echo","arguments":{{"text":"{text}"}}{}}}}}"#,
            if name == "modern" { META } else { "" }
        ),
    }
}

/// Bytes → frames, for as many messages as fit into a read.
#[divan::bench(args = MESSAGES)]
fn decode(bencher: Bencher<'_, '_>, name: &str) {
    let line = message(name) + "\n";
    let count = ((64 << 10) / line.len()).max(1);
    let bytes = line.repeat(count).into_bytes();
    let mut decoder = Decoder::new(Limits::default());
    bencher.counter(ItemsCount::new(count)).bench_local(move || {
        decoder.push(black_box(&bytes));
        while let Some(frame) = decoder.poll_frame() {
            black_box(&frame);
        }
    });
}

/// A frame → a message.
#[divan::bench(args = MESSAGES)]
fn classify(bencher: Bencher<'_, '_>, name: &str) {
    let text = message(name);
    bencher
        .counter(BytesCount::of_str(&text))
        .bench_local(|| black_box(taut::rpc::read(black_box(text.as_bytes())).is_ok()));
}

/// A frame → a request → its answer in the output.
#[divan::bench(args = ["legacy", "modern"])]
fn dispatch(bencher: Bencher<'_, '_>, name: &str) {
    let line = message(name) + "\n";
    let mut decoder = Decoder::new(Limits::default());
    let mut peer = Peer::new(Config::new(Dialect::PLAIN, true));
    let now = Instant::now();
    bencher.bench_local(move || {
        decoder.push(black_box(line.as_bytes()));
        let Some(frame) = decoder.poll_frame() else { return };
        for event in peer.handle_frame(now, frame) {
            if let Event::Request(request) = event {
                let json = JsonBuf::of(&true).expect("true has a JSON form");
                peer.answer(request.ticket, Ok(json));
            }
        }
        let written = peer.output().len();
        peer.output().consume(written);
    });
}

/// A result → a line.
#[divan::bench(args = [64, 1 << 20], consts = [false, true])]
fn encode<const MODERN: bool>(bencher: Bencher<'_, '_>, size: usize) {
    let revision = if MODERN { Revision::MODERN } else { Revision::LATEST_LEGACY };
    let result = CallToolResult::with_text("0123456789abcdef".repeat(size / 16));
    let mut encoder = Encoder::default();
    bencher.counter(BytesCount::new(size)).bench_local(move || {
        encoder
            .frame(Framing::Lines, |out| black_box(&result).write_json(Target::of(revision), out));
        encoder.consume(encoder.len());
    });
}

/// Say it again.
#[derive(serde::Deserialize, JsonSchema)]
#[schemars(crate = "taut::schemars")]
struct Echo {
    text: String,
}

/// So many requests as one stream, and nowhere for the answers to go.
struct Replay {
    bytes: Vec<u8>,
    at: usize,
}

impl AsyncRead for Replay {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let rest = &self.bytes[self.at..];
        let taken = rest.len().min(buf.remaining());
        buf.put_slice(&rest[..taken]);
        self.at += taken;
        Poll::Ready(Ok(()))
    }
}

struct Nowhere;

impl AsyncWrite for Nowhere {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(black_box(bytes).len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// All of it: a thousand calls of a tool, from bytes to bytes.
#[divan::bench(args = ["legacy", "modern"])]
fn serve(bencher: Bencher<'_, '_>, name: &str) {
    const CALLS: usize = 1_000;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime");
    let server = Server::builder("echo", "1.0").tool("echo", async |Echo { text }, _call| text);
    let server = server.build().expect("a server");
    let mut lines = String::new();
    if name == "legacy" {
        lines += concat!(
            r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","#,
            r#""capabilities":{},"clientInfo":{"name":"bench","version":"1.0"}}}"#,
            "\n"
        );
    }
    lines += &(message(name) + "\n").repeat(CALLS);
    bencher
        .counter(ItemsCount::new(CALLS))
        .with_inputs(|| Replay { bytes: lines.clone().into_bytes(), at: 0 })
        .bench_local_values(|replay| runtime.block_on(server.serve(replay, Nowhere)));
}
