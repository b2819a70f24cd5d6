//! The bare pipeline: lines over NATS and nothing else. What a fleet costs is measured beside it.
//!
//! `bare edge URL` publishes each line of stdin and prints what comes back. `bare worker URL COMMAND…` writes
//! what comes to a child, and publishes each line of the child to the edge that it heard last. No slots, no
//! heartbeats, no cancellation, no long messages, and one edge: this is the least that can be done.

use std::error::Error;
use std::os::fd::AsFd;
use std::process::Stdio;

use futures_util::StreamExt;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::unix::pipe;

const SUBJECT: &str = "bare.call";

type Result = std::result::Result<(), Box<dyn Error>>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["edge", url] => edge(url).await,
        ["worker", url, program, arguments @ ..] => worker(url, program, arguments).await,
        _ => Err("usage: bare edge URL | bare worker URL COMMAND…".into()),
    }
}

async fn edge(url: &str) -> Result {
    let client = async_nats::connect(url).await?;
    let inbox = client.new_inbox();
    let mut answers = client.subscribe(inbox.clone()).await?;
    client.flush().await?;
    let stdin = pipe::Receiver::from_owned_fd(std::io::stdin().as_fd().try_clone_to_owned()?)?;
    let mut out = pipe::Sender::from_owned_fd(std::io::stdout().as_fd().try_clone_to_owned()?)?;
    let mut lines = BufReader::new(stdin).lines();
    loop {
        tokio::select! {
            line = lines.next_line() => match line? {
                Some(line) => client.publish_with_reply(SUBJECT, inbox.clone(), line.into()).await?,
                None => return Ok(()),
            },
            answer = answers.next() => {
                let mut line = answer.ok_or("the connection has ended")?.payload.to_vec();
                line.push(b'\n');
                out.write_all(&line).await?;
            }
        }
    }
}

async fn worker(url: &str, program: &str, arguments: &[&str]) -> Result {
    let client = async_nats::connect(url).await?;
    let mut calls = client.queue_subscribe(SUBJECT, "bare".to_owned()).await?;
    client.flush().await?;
    let mut child = tokio::process::Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let (Some(mut to), Some(from)) = (child.stdin.take(), child.stdout.take()) else {
        return Err("the child has no pipes".into());
    };
    let mut lines = BufReader::new(from).lines();
    let mut reply = None;
    loop {
        tokio::select! {
            call = calls.next() => {
                let call = call.ok_or("the connection has ended")?;
                let mut line = call.payload.to_vec();
                line.push(b'\n');
                reply = call.reply;
                to.write_all(&line).await?;
            }
            line = lines.next_line() => {
                let line = line?.ok_or("the child has ended")?;
                if let Some(reply) = &reply {
                    client.publish(reply.clone(), line.into()).await?;
                }
            }
        }
    }
}
