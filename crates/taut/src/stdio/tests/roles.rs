//! What the other process does. A role that goes wrong panics, and the harness makes that a failing
//! exit status.

use std::future::poll_fn;
use std::io::{self, BufRead};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::{Duration, Instant};

use rustix::stdio::stdout;
use signal_hook::consts::{SIGINT, SIGTERM};

use super::PATIENCE;
use crate::stdio::signals::{self, Signals};
use crate::stdio::watchdog::watch_signals;
use crate::stdio::{ClaimError, Input, Output, Stdio, claim_stdio, say, take};
use crate::stream::{Sink, Source};

pub(super) fn play(role: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    match role {
        "no-runtime" => no_runtime(),
        _ => runtime.block_on(async {
            match role {
                "echo" => echo().await,
                "noise" => noise().await,
                "outlived" => outlived().await,
                "twice" => twice().await,
                "until-gone" => until_gone(false).await,
                "stalled-until-gone" => until_gone(true).await,
                "half-closed" => half_closed().await,
                "broken-pipe" => broken_pipe().await,
                "opens-a-file" => opens_a_file().await,
                "talkative" => talkative().await,
                "stoppable" => stoppable().await,
                "frozen" => frozen(signals::GUARD).await,
                "frozen-for-an-hour" => frozen(Duration::from_secs(3600)).await,
                "watched-before" => watched_before().await,
                "own-handler" => own_handler().await,
                "ignored-before" => ignored_before().await,
                other => panic!("no such role: {other}"),
            }
        }),
    }
}

async fn read(input: &mut Input, buf: &mut Vec<u8>) -> io::Result<usize> {
    poll_fn(|cx| input.poll_read(cx, buf)).await
}

async fn write(output: &mut Output, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        let n = poll_fn(|cx| output.poll_write(cx, bytes)).await?;
        bytes = &bytes[n..];
    }
    poll_fn(|cx| output.poll_flush(cx)).await
}

async fn gone(output: &mut Output) {
    poll_fn(|cx| output.poll_gone(cx)).await;
}

/// Upper case, so that a terminal that echoes is not mistaken for us. Says first how it is driven.
async fn echo() {
    let Stdio { mut input, mut output, .. } = take().unwrap();
    let driven = match (&input, &output) {
        (Input::Ready(_), Output::Ready(_)) => "ready\n",
        (Input::Thread(_), Output::Thread(_)) => "thread\n",
        (Input::Ready(_), Output::Thread(_)) => "ready thread\n",
        (Input::Thread(_), Output::Ready(_)) => "thread ready\n",
        (Input::Closed, _) | (_, Output::Closed) => "closed\n",
    };
    write(&mut output, driven.as_bytes()).await.unwrap();
    let mut buf = Vec::new();
    loop {
        buf.clear();
        match read(&mut input, &mut buf).await {
            Ok(0) => return,
            Ok(n) => assert_eq!(n, buf.len()),
            Err(e) if e.kind() == io::ErrorKind::ConnectionReset => return,
            Err(e) => panic!("{e}"),
        }
        buf.make_ascii_uppercase();
        write(&mut output, &buf).await.unwrap();
    }
}

async fn noise() {
    claim_stdio().unwrap();
    claim_stdio().unwrap();
    println!("printed");
    rustix::io::write(stdout(), b"written\n").unwrap();
    let child = Command::new("sh").arg("-c").arg("echo from a child >&1; cat; cat <&0").status();
    assert!(child.unwrap().success());
    assert_eq!(io::stdin().lock().read_line(&mut String::new()).unwrap(), 0, "stdin is at its end");
    let Stdio { mut input, mut output, .. } = take().unwrap();
    let mut buf = Vec::new();
    while read(&mut input, &mut buf).await.unwrap() > 0 {}
    write(&mut output, &buf).await.unwrap();
    drop((input, output));
    println!("printed later");
}

#[expect(clippy::zombie_processes, reason = "that it is left behind is the point")]
async fn outlived() {
    let Stdio { mut output, .. } = take().unwrap();
    let child = Command::new("sleep").arg("600").spawn().unwrap();
    write(&mut output, format!("{}\n", child.id()).as_bytes()).await.unwrap();
}

fn no_runtime() {
    assert!(matches!(take(), Err(ClaimError::NoRuntime)));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    // That it was refused once does not use it up.
    runtime.block_on(echo());
}

async fn twice() {
    let Stdio { mut output, .. } = take().unwrap();
    assert!(matches!(take(), Err(ClaimError::Taken)));
    let Err(refusal) = claim_stdio() else { panic!("claimed again") };
    write(&mut output, format!("{refusal}\n").as_bytes()).await.unwrap();
}

/// Waits for input and for the reader's end, both idle, as the loop does.
async fn until_gone(stalled: bool) {
    let Stdio { mut input, mut output, .. } = take().unwrap();
    read(&mut input, &mut Vec::new()).await.unwrap();
    write(&mut output, b"waiting\n").await.unwrap();
    if stalled {
        poll_fn(|cx| {
            while let Poll::Ready(n) = output.poll_write(cx, &[b'x'; 1000]) {
                n.unwrap();
            }
            Poll::Ready(())
        })
        .await;
        eprintln!("stalled");
    }
    poll_fn(|cx| {
        while let Poll::Ready(n) = input.poll_read(cx, &mut Vec::new()) {
            assert_ne!(n.unwrap(), 0, "the input has not ended");
        }
        output.poll_gone(cx)
    })
    .await;
}

async fn half_closed() {
    let Stdio { mut input, mut output, .. } = take().unwrap();
    write(&mut output, b"waiting\n").await.unwrap();
    assert_eq!(read(&mut input, &mut Vec::new()).await.unwrap(), 0);
    let mut turns = 0;
    // A few turns of the reactor, so that an event that is there would be seen.
    let early = poll_fn(|cx| {
        turns += 1;
        match output.poll_gone(cx) {
            Poll::Pending if turns < 100 => {
                cx.waker().wake_by_ref();
                Poll::Pending
            }
            seen => Poll::Ready(seen.is_ready()),
        }
    });
    assert!(!early.await, "half a hang-up is none");
    write(&mut output, b"still here\n").await.unwrap();
    gone(&mut output).await;
}

async fn broken_pipe() {
    let Stdio { mut input, mut output, .. } = take().unwrap();
    write(&mut output, b"waiting\n").await.unwrap();
    // The tester closes its reading end, then ours.
    while read(&mut input, &mut Vec::new()).await.unwrap() > 0 {}
    let error = write(&mut output, b"into the void").await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
}

async fn opens_a_file() {
    use std::os::fd::AsRawFd;
    let Stdio { mut output, .. } = take().unwrap();
    let file = std::fs::File::open("/dev/zero").unwrap();
    assert!(file.as_raw_fd() > 2);
    say("something");
    eprintln!("something else");
    write(&mut output, b"fine\n").await.unwrap();
}

/// Fills stderr, then says one line for each that comes in.
async fn talkative() {
    let Stdio { mut input, mut output, .. } = take().unwrap();
    for n in 0..3000 {
        say(&format!("line {n} {}", "x".repeat(90)));
    }
    write(&mut output, b"full\n").await.unwrap();
    let mut buf = Vec::new();
    while read(&mut input, &mut buf).await.unwrap() > 0 {
        say("back again");
        write(&mut output, b"said\n").await.unwrap();
    }
}

fn watch() -> io::Result<Signals> {
    watch_with(signals::GUARD)
}

fn watch_with(patience: Duration) -> io::Result<Signals> {
    let (signals, guard) = signals::register(patience)?;
    watch_signals(guard)?;
    Ok(signals)
}

async fn stoppable() {
    let Stdio { mut output, .. } = take().unwrap();
    let signals = watch().unwrap();
    write(&mut output, b"waiting\n").await.unwrap();
    let signal = signals.stopped().await;
    assert_eq!(signal, signals.stopped().await, "it stays told");
    write(&mut output, format!("{signal}\n").as_bytes()).await.unwrap();
}

/// A loop that is told and does not end.
async fn frozen(patience: Duration) {
    let Stdio { mut output, .. } = take().unwrap();
    let signals = watch_with(patience).unwrap();
    write(&mut output, b"waiting\n").await.unwrap();
    signals.stopped().await;
    write(&mut output, b"told\n").await.unwrap();
    loop {
        std::thread::park();
    }
}

fn count(what: &str) -> usize {
    std::fs::read_dir(format!("/proc/self/{what}")).unwrap().count()
}

async fn watched_before() {
    let Stdio { mut input, mut output, .. } = take().unwrap();
    drop(watch().unwrap());
    let deadline = Instant::now() + PATIENCE;
    let settled = |what: &str, at_most: usize| {
        while count(what) > at_most {
            assert!(Instant::now() < deadline, "{} left in {what}", count(what));
            std::thread::yield_now();
        }
    };
    // The harness's own thread and this one.
    settled("task", 2);
    let descriptors = count("fd");
    for _ in 0..50 {
        let first = watch().unwrap();
        let second = watch().unwrap();
        drop(first);
        drop(second);
    }
    settled("task", 2);
    settled("fd", descriptors);
    write(&mut output, b"waiting\n").await.unwrap();
    while read(&mut input, &mut Vec::new()).await.unwrap() > 0 {}
}

async fn own_handler() {
    signal_hook::flag::register(SIGTERM, &SEEN).unwrap();
    drop(watch().unwrap());
    survives().await;
}

/// Started with SIGINT ignored. The handler only tells that the signal has come.
async fn ignored_before() {
    drop(watch().unwrap());
    signal_hook::flag::register(SIGINT, &SEEN).unwrap();
    survives().await;
}

static SEEN: AtomicBool = AtomicBool::new(false);

async fn survives() {
    let Stdio { mut output, .. } = take().unwrap();
    write(&mut output, b"waiting\n").await.unwrap();
    let deadline = Instant::now() + PATIENCE;
    while !SEEN.load(Ordering::SeqCst) {
        assert!(Instant::now() < deadline, "no signal came");
        std::thread::yield_now();
    }
    write(&mut output, b"seen\n").await.unwrap();
}
