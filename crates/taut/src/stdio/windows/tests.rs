//! Real processes on real handles: this test binary, run again in a role. What `tests/` is on Linux.

use std::future::poll_fn;
use std::io::{self, BufRead, Read, Write, pipe};
use std::os::windows::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::stdio::console::{GUARD, handle, watch, watch_with};
use crate::stdio::tail::{MARK, PATIENCE, Tail, feed, in_time};
use crate::stdio::{ClaimError, Input, Output, claim_stdio, say, take};
use crate::stream::{Sink, Source};
use crate::win32::ConsoleEvent;
use crate::win32::test::{press_ctrl_c, print_from_c};

const ROLE: &str = "TAUT_STDIO_TEST_ROLE";

/// A console of its own, so that Ctrl-C is for the role alone.
const CREATE_NO_WINDOW: u32 = 0x0800_0000;

/// Not a test: what the other process runs.
#[test]
fn role() {
    let Ok(role) = std::env::var(ROLE) else { return };
    io::stdout().write_all(MARK).unwrap();
    io::stdout().flush().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        match role.as_str() {
            "echo" => echo().await,
            "noise" => noise().await,
            "quiet-child" => quiet_child().await,
            "twice" => twice().await,
            "broken-pipe" => broken_pipe().await,
            "talkative" => talkative().await,
            "stoppable" => stoppable().await,
            "frozen" => frozen(GUARD).await,
            "frozen-for-an-hour" => frozen(Duration::from_secs(3600)).await,
            "blocked" => blocked().await,
            "watched-before" => watched_before().await,
            "closed" => closed().await,
            "closed-and-frozen" => closed_and_frozen().await,
            "service" => service().await,
            other => panic!("no such role: {other}"),
        }
    });
    // Without the harness's closing lines.
    std::process::exit(0);
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

async fn echo() {
    let mut wire = take().unwrap();
    let mut buf = Vec::new();
    while read(&mut wire.input, &mut buf).await.unwrap() > 0 {
        buf.make_ascii_uppercase();
        write(&mut wire.output, &buf).await.unwrap();
        buf.clear();
    }
}

async fn noise() {
    // A C library that printed before has noted the handle.
    print_from_c(c"before");
    io::stdout().write_all(MARK).unwrap();
    io::stdout().flush().unwrap();
    claim_stdio().unwrap();
    claim_stdio().unwrap();
    println!("printed");
    print_from_c(c"from C");
    let child = Command::new("cmd").args(["/c", "echo from a child"]).status();
    assert!(child.unwrap().success());
    assert_eq!(io::stdin().lock().read_line(&mut String::new()).unwrap(), 0, "stdin is at its end");
    let mut wire = take().unwrap();
    let mut buf = Vec::new();
    while read(&mut wire.input, &mut buf).await.unwrap() > 0 {}
    write(&mut wire.output, &buf).await.unwrap();
    drop(wire);
    println!("printed later");
}

/// Starts a process that goes on, and ends.
async fn quiet_child() {
    let mut wire = take().unwrap();
    let exe = std::env::current_exe().unwrap();
    let child = Command::new(exe).args(ARGS).env(ROLE, "echo").stdin(Stdio::piped()).spawn();
    write(&mut wire.output, b"started\n").await.unwrap();
    // Until the tester says so, by the end of input.
    while read(&mut wire.input, &mut Vec::new()).await.unwrap() > 0 {}
    // Its stdin stays open as long as we live, so it does too.
    let held = child.unwrap();
    write(&mut wire.output, b"ending\n").await.unwrap();
    drop(wire);
    std::mem::forget(held);
}

async fn twice() {
    let mut wire = take().unwrap();
    assert!(matches!(take(), Err(ClaimError::Taken)));
    let Err(refusal) = claim_stdio() else { panic!("claimed again") };
    write(&mut wire.output, format!("{refusal}\n").as_bytes()).await.unwrap();
}

async fn broken_pipe() {
    let mut wire = take().unwrap();
    write(&mut wire.output, b"waiting\n").await.unwrap();
    // The tester closes its reading end, then ours.
    while read(&mut wire.input, &mut Vec::new()).await.unwrap() > 0 {}
    let error = write(&mut wire.output, b"into the void").await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    poll_fn(|cx| wire.output.poll_gone(cx)).await;
}

/// Fills stderr, then says one line for each that comes in.
async fn talkative() {
    let mut wire = take().unwrap();
    for n in 0..3000 {
        say(&format!("line {n} {}", "x".repeat(90)));
    }
    write(&mut wire.output, b"full\n").await.unwrap();
    let mut buf = Vec::new();
    while read(&mut wire.input, &mut buf).await.unwrap() > 0 {
        say("back again");
        write(&mut wire.output, b"said\n").await.unwrap();
    }
}

async fn stoppable() {
    let mut wire = take().unwrap();
    let signals = watch().unwrap();
    press_ctrl_c();
    let signal = signals.stopped().await;
    assert_eq!(signal, signals.stopped().await, "it stays told");
    write(&mut wire.output, format!("{signal}\n").as_bytes()).await.unwrap();
}

/// A loop that is told and does not end. The second Ctrl-C comes when the tester says so.
async fn frozen(patience: Duration) {
    let mut wire = take().unwrap();
    let signals = watch_with(patience).unwrap();
    press_ctrl_c();
    signals.stopped().await;
    write(&mut wire.output, b"told\n").await.unwrap();
    if patience > PATIENCE {
        read(&mut wire.input, &mut Vec::new()).await.unwrap();
        press_ctrl_c();
    }
    loop {
        std::thread::park();
    }
}

/// A loop that a handler blocks, so that it never sees the end of its input.
async fn blocked() {
    let mut wire = take().unwrap();
    let (_, watchdog) = wire.watch(Duration::from_millis(50), false);
    let _watchdog = watchdog.unwrap();
    write(&mut wire.output, b"blocked\n").await.unwrap();
    loop {
        std::thread::park();
    }
}

/// Nobody watches any more: Ctrl-C ends the process as it always did.
async fn watched_before() {
    let mut wire = take().unwrap();
    drop(watch().unwrap());
    write(&mut wire.output, b"waiting\n").await.unwrap();
    press_ctrl_c();
    // Only read by us if the process is not ended before.
    while read(&mut wire.input, &mut Vec::new()).await.unwrap() > 0 {}
    write(&mut wire.output, b"survived\n").await.unwrap();
}

/// A loop whose console is closed. The handler returns only when the loop has ended: the system ends the process then.
async fn closed() {
    let mut wire = take().unwrap();
    let signals = watch_with(Duration::from_secs(3600)).unwrap();
    let handler = std::thread::spawn(|| handle(ConsoleEvent::Close));
    let signal = signals.stopped().await;
    write(&mut wire.output, format!("{signal}\n").as_bytes()).await.unwrap();
    assert!(!handler.is_finished(), "the loop still runs");
    drop(signals);
    assert!(handler.join().unwrap(), "the event was taken");
    write(&mut wire.output, b"ended\n").await.unwrap();
}

/// The same with a loop that does not end.
async fn closed_and_frozen() {
    let mut wire = take().unwrap();
    let signals = watch().unwrap();
    std::thread::spawn(|| handle(ConsoleEvent::Close));
    signals.stopped().await;
    write(&mut wire.output, b"told\n").await.unwrap();
    loop {
        std::thread::park();
    }
}

/// A whole service. Its only method presses Ctrl-C and never answers.
async fn service() {
    use crate::service::{Failed, RequestParams, ServiceRequest};

    let press = async |_: String, _: RequestParams, _: ServiceRequest| {
        press_ctrl_c();
        std::future::pending::<Result<(), Failed>>().await
    };
    let ending = crate::service::serve(press).serve_stdio().await.unwrap();
    eprintln!("{ending}");
}

/// A process in a role; killed when dropped.
struct Actor(Child);

const ARGS: [&str; 4] =
    ["--exact", "stdio::windows::tests::role", "--nocapture", "--test-threads=1"];

fn start(role: &str, input: impl Into<Stdio>, error: impl Into<Stdio>) -> Actor {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(ARGS).env(ROLE, role).creation_flags(CREATE_NO_WINDOW);
    Actor(command.stdin(input).stdout(Stdio::piped()).stderr(error).spawn().unwrap())
}

impl Actor {
    fn wire(&mut self) -> Tail {
        Tail::begun(self.0.stdout.take().unwrap())
    }

    fn exit(&mut self) -> ExitStatus {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.0.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < deadline, "the process did not end");
            std::thread::yield_now();
        }
    }

    fn ends_well(mut self) {
        let status = self.exit();
        assert!(status.success(), "{status}");
    }
}

impl Drop for Actor {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn w6_bytes_pass_as_they_are_and_the_end_of_input_ends_it() {
    let mut actor = start("echo", Stdio::piped(), Stdio::null());
    let wire = actor.wire();
    // Neither line ends nor bytes that are no text are touched (W6), also in more than a pipe holds.
    let mut sent = b"a\nb\r\nc\x1a\xff\x00\r".repeat(20_000);
    feed(actor.0.stdin.take().unwrap(), sent.clone());
    let seen = wire.rest_bytes();
    sent.make_ascii_uppercase();
    assert!(seen == sent, "{} bytes of {}", seen.len(), sent.len());
    actor.ends_well();
}

#[test]
fn s13_s14_s15_prints_c_libraries_and_children_reach_stderr_and_never_the_wire() {
    let mut actor = start("noise", Stdio::piped(), Stdio::piped());
    let stderr = Tail::of(actor.0.stderr.take().unwrap());
    let mut wire = actor.wire();
    wire.until(MARK);
    actor.0.stdin.take().unwrap().write_all(b"pure\n").unwrap();
    assert_eq!(wire.rest(), "pure\n");
    actor.ends_well();
    let said = stderr.rest();
    for words in ["printed", "from C", "from a child", "printed later"] {
        assert!(said.contains(words), "{words:?} is missing in {said:?}");
    }
}

#[test]
fn s13_a_stderr_that_is_the_wire_is_silenced() {
    let (mut reader, writer) = pipe().unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(ARGS).env(ROLE, "noise").creation_flags(CREATE_NO_WINDOW);
    command.stdin(Stdio::piped()).stdout(writer.try_clone().unwrap()).stderr(writer);
    let mut actor = Actor(command.spawn().unwrap());
    drop(command);
    actor.0.stdin.take().unwrap().write_all(b"pure\n").unwrap();
    let seen = in_time(move || {
        let mut seen = String::new();
        reader.read_to_string(&mut seen).map(|_| seen)
    });
    let seen = seen.unwrap();
    let mark = std::str::from_utf8(MARK).unwrap();
    assert_eq!(seen.rsplit(mark).next(), Some("pure\n"), "{seen:?}");
    actor.ends_well();
}

#[test]
fn s16_a_child_that_outlives_us_does_not_hold_the_wire() {
    let mut actor = start("quiet-child", Stdio::piped(), Stdio::null());
    let mut wire = actor.wire();
    assert_eq!(wire.line(), "started\n");
    drop(actor.0.stdin.take());
    assert_eq!(wire.rest(), "ending\n");
    actor.ends_well();
}

#[test]
fn s17_a_second_claim_is_refused_with_advice() {
    let mut actor = start("twice", Stdio::null(), Stdio::null());
    let said = actor.wire().rest();
    assert!(said.contains("already carry") && said.contains("of its own"), "{said:?}");
    actor.ends_well();
}

#[test]
fn s6_a_reader_that_vanished_is_told_by_the_next_write() {
    let mut actor = start("broken-pipe", Stdio::piped(), Stdio::null());
    let mut stdout = actor.0.stdout.take().unwrap();
    let mut seen = Vec::new();
    while !seen.ends_with(b"waiting\n") {
        let mut byte = [0];
        assert_eq!(stdout.read(&mut byte).unwrap(), 1);
        seen.push(byte[0]);
    }
    drop(stdout);
    drop(actor.0.stdin.take());
    actor.ends_well();
}

#[test]
fn e9_a_stderr_that_nobody_reads_does_not_hold_the_library_up() {
    let mut actor = start("talkative", Stdio::piped(), Stdio::piped());
    let mut wire = actor.wire();
    assert_eq!(wire.line(), "full\n");
    let mut stderr = Tail::of(actor.0.stderr.take().unwrap());
    let mut host = actor.0.stdin.take().unwrap();
    let said = stderr.until(b"\n");
    assert!(said.starts_with(b"taut: line 0"), "{said:?}");
    // The pipe has room again, so a line comes through, and says how many did not.
    let deadline = Instant::now() + PATIENCE;
    let mut seen = String::new();
    while !seen.contains("were lost") {
        assert!(Instant::now() < deadline, "{seen:?}");
        host.write_all(b"more\n").unwrap();
        assert_eq!(wire.line(), "said\n");
        seen.push_str(&String::from_utf8_lossy(&stderr.so_far()));
    }
    drop(host);
    actor.ends_well();
}

#[test]
fn ctrl_c_is_told_to_the_loop() {
    let mut actor = start("stoppable", Stdio::null(), Stdio::null());
    assert_eq!(actor.wire().rest(), "Ctrl-C\n");
    actor.ends_well();
}

/// What Windows reports for a process that Ctrl-C ended.
const ENDED_BY_CTRL_C: i32 = 0xC000_013A_u32.cast_signed();

#[test]
fn s9_a_loop_that_does_not_stop_after_ctrl_c_is_ended() {
    let mut actor = start("frozen", Stdio::null(), Stdio::piped());
    let stderr = Tail::of(actor.0.stderr.take().unwrap());
    assert_eq!(actor.wire().line(), "told\n");
    assert_eq!(actor.exit().code(), Some(ENDED_BY_CTRL_C));
    let said = stderr.rest();
    assert!(said.contains("Ctrl-C: the loop did not stop in time"), "{said:?}");
}

#[test]
fn s9_a_second_ctrl_c_ends_it_at_once() {
    let mut actor = start("frozen-for-an-hour", Stdio::piped(), Stdio::piped());
    let stderr = Tail::of(actor.0.stderr.take().unwrap());
    assert_eq!(actor.wire().line(), "told\n");
    actor.0.stdin.take().unwrap().write_all(b"again\n").unwrap();
    assert_eq!(actor.exit().code(), Some(ENDED_BY_CTRL_C));
    let said = stderr.rest();
    assert!(said.contains("Ctrl-C: told twice"), "{said:?}");
}

/// Closing the window, logging off and shutting down: `win32` tells them all as this.
#[test]
fn a_closed_console_is_told_to_the_loop_and_waits_for_it() {
    let mut actor = start("closed", Stdio::null(), Stdio::null());
    assert_eq!(actor.wire().rest(), "the console was closed\nended\n");
    actor.ends_well();
}

#[test]
fn s9_a_loop_that_does_not_stop_after_its_console_was_closed_is_ended() {
    let mut actor = start("closed-and-frozen", Stdio::null(), Stdio::piped());
    let stderr = Tail::of(actor.0.stderr.take().unwrap());
    assert_eq!(actor.wire().line(), "told\n");
    assert_eq!(actor.exit().code(), Some(ENDED_BY_CTRL_C));
    let said = stderr.rest();
    assert!(said.contains("the console was closed: the loop did not stop in time"), "{said:?}");
}

/// The way through `run_stdio`: the input stays open, so that nothing but Ctrl-C can end it.
#[test]
fn ctrl_c_ends_a_service_that_serves_stdin_and_stdout() {
    let mut actor = start("service", Stdio::piped(), Stdio::piped());
    let stderr = Tail::of(actor.0.stderr.take().unwrap());
    let wire = actor.wire();
    let mut stdin = actor.0.stdin.take().unwrap();
    stdin.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"press\"}\n").unwrap();
    let said = stderr.rest();
    assert!(said.contains("stopped by signal 2"), "{said:?}");
    assert_eq!(wire.rest(), "", "nothing is answered");
    actor.ends_well();
}

#[test]
fn s9_a_blocked_loop_does_not_outlive_the_end_of_input_by_more_than_the_drain_limit() {
    let mut actor = start("blocked", Stdio::piped(), Stdio::piped());
    let stderr = Tail::of(actor.0.stderr.take().unwrap());
    assert_eq!(actor.wire().line(), "blocked\n");
    assert!(actor.0.try_wait().unwrap().is_none(), "its input is open");
    drop(actor.0.stdin.take());
    assert_eq!(actor.exit().code(), Some(1));
    let said = stderr.rest();
    assert!(said.contains("(the drain limit)"), "{said:?}");
}

#[test]
fn when_nobody_watches_ctrl_c_does_what_it_always_did() {
    // The input stays open, so that nothing else can end it.
    let mut actor = start("watched-before", Stdio::piped(), Stdio::null());
    assert_eq!(actor.wire().rest(), "waiting\n");
    actor.exit();
}
