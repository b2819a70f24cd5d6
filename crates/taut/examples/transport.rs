//! A transport of our own, both sides: each message is a length of four bytes and then JSON, over TCP.
//!
//! `cargo run --example transport` serves one tool on a free port of the loopback, connects to it and
//! calls the tool. A real transport would add authentication and limits on connections.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "an example talks to a person")]

use serde_json::json;
use taut::transport::{MessagePipe, MessageService, Principal};
use taut::{Client, JsonSchema, Server};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Moves messages between a socket and a pipe until one of the two is over.
async fn carry(stream: TcpStream, pipe: MessagePipe) -> std::io::Result<()> {
    let (mut reader, mut writer) = stream.into_split();
    let (sender, mut receiver) = pipe.split();
    let incoming = async {
        let mut length = [0; 4];
        while reader.read_exact(&mut length).await.is_ok() {
            let length = u32::from_be_bytes(length);
            // The length is the peer's word: memory is taken as the bytes arrive.
            let mut message = Vec::new();
            (&mut reader).take(length.into()).read_to_end(&mut message).await?;
            sender.send(message).await.map_err(std::io::Error::other)?;
        }
        // What was accepted is still answered.
        sender.close();
        std::future::pending().await
    };
    let outgoing = async {
        while let Some(message) = receiver.recv().await {
            // An empty one only says that a request was withdrawn.
            if !message.json.is_empty() {
                writer.write_u32(message.json.len() as u32).await?;
                writer.write_all(&message.json).await?;
            }
        }
        writer.shutdown().await
    };
    tokio::select! {
        done = incoming => done,
        done = outgoing => done,
    }
}

/// Add two numbers.
#[derive(serde::Deserialize, JsonSchema)]
struct Add {
    a: f64,
    b: f64,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server =
        Server::builder("calc", "1.0").tool("add", async |Add { a, b }, _call| a + b).build()?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(carry(stream, server.open(Principal::ANONYMOUS)));
        }
    });

    let (pipe, client) = Client::builder().connect_messages();
    tokio::spawn(carry(TcpStream::connect(address).await?, pipe));
    let client = client.await?;
    let sum = client.call("add", json!({ "a": 2, "b": 3 })).await?;
    println!("{} over {}: {}", client.revision(), address, sum.text()?);
    client.close().await?;
    Ok(())
}
