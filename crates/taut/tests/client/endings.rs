//! How connections end: closed, dropped, killed from outside.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;
use std::time::Instant;

use serde_json::json;
use taut::process::ShutdownStep;

use super::*;

/// STD-18.
#[tokio::test]
async fn p8_a_polite_server_is_closed_at_once_and_without_a_signal() {
    let client = start("2025-11-25").await;
    let began = Instant::now();
    let closed = in_time(client.close()).await.unwrap();
    assert_eq!(closed.process.unwrap().step, ShutdownStep::Eof);
    assert!(began.elapsed() < ms(1_500), "the grace is not used up");
}

/// STD-18
#[tokio::test]
async fn p7_a_server_that_ignores_eof_is_terminated() {
    let builder = quick().eof_grace(ms(150));
    let client = in_time(builder.spawn(server("2025-11-25 ignore-eof"))).await.unwrap();
    let closed = in_time(client.close()).await.unwrap();
    // W5
    let expected = if cfg!(windows) {
        (ShutdownStep::Kill, "the server exited with code 1 after it was terminated")
    } else {
        (ShutdownStep::Term, "the server was killed by signal 15 (SIGTERM) after SIGTERM")
    };
    assert_eq!((closed.process.unwrap().step, closed.to_string().as_str()), expected);
}

/// STD-18.
#[tokio::test]
async fn p7_a_server_that_ignores_eof_and_term_is_killed() {
    let builder = quick().eof_grace(ms(150)).term_grace(ms(150));
    let role = "2025-11-25 ignore-eof ignore-term";
    let client = in_time(builder.spawn(server(role))).await.unwrap();
    let pid = client.pid().unwrap();
    let (first, second) = (client.clone(), client.clone());
    // Two at once: both learn the same.
    let first = tokio::spawn(async move { first.close().await.unwrap() });
    let second = in_time(second.close()).await.unwrap();
    assert_eq!(second.process.unwrap().step, ShutdownStep::Kill);
    assert_eq!(in_time(first).await.unwrap().process, second.process);
    assert!(!alive(pid));
    assert_eq!(client.exit().unwrap().to_string(), KILLED);
}

/// Stopped while it waits for the answer to the probe: stdin is closed, and that suffices.
#[tokio::test]
async fn a_start_that_is_given_up_ends_as_politely_as_a_session() {
    // It has a quarter of a second for it. A busy machine may be slow once, but not each time.
    let mut polite = false;
    for _ in 0..5 {
        polite = polite || ends_when_its_start_is_stopped().await;
    }
    assert!(polite);

    let never = std::future::pending();
    let opened = in_time(quick().spawn_unless(server("2025-11-25"), never)).await.unwrap();
    assert!(opened.is_some());
}

/// Whether it said that its stdin has ended.
async fn ends_when_its_start_is_stopped() -> bool {
    let lines = Seen::default();
    let (sink, heard) = (lines.clone(), lines.clone());
    let builder = quick().probe_timeout(ms(20_000)).on_stderr(move |line| sink.push(line));
    let asked =
        eventually("it is asked", move || heard.all().iter().any(|line| line.contains("discover")));
    let role = server("2025-11-25 log-stdin say-pid swallow-probe");
    let opened = in_time(builder.spawn_unless(role, asked)).await.unwrap();
    assert!(opened.is_none());
    let lines = lines.all();
    assert!(!alive(lines[0].parse().unwrap()));
    lines.last().unwrap() == "got the end"
}

#[tokio::test]
async fn p10_a_server_with_output_to_get_rid_of_is_drained_and_leaves_by_itself() {
    // Ten mebibytes through Wine's narrow pipes take longer than the usual grace.
    let builder = quick().eof_grace(ms(20_000));
    let client = in_time(builder.spawn(server("2025-11-25 backlog"))).await.unwrap();
    let closed = in_time(client.close()).await.unwrap();
    assert_eq!(closed.process.unwrap().step, ShutdownStep::Eof, "{closed}");
}

#[tokio::test]
async fn p11_what_was_said_just_before_the_close_arrives() {
    let client = start("2025-11-25 log-stdin").await;
    client.notify("notifications/roots/list_changed", json!({ "last": "word" })).unwrap();
    in_time(client.close()).await.unwrap();
    let stderr = client.stderr();
    assert!(stderr.contains(r#""method":"notifications/roots/list_changed""#), "{stderr}");
    assert!(stderr.contains(r#""last":"word""#), "{stderr}");
}

/// ERR-18.
#[tokio::test]
async fn after_the_close_everything_says_so() {
    let client = start("2025-11-25").await;
    in_time(client.close()).await.unwrap();
    let error = client.call("add", ()).await.unwrap_err();
    assert_eq!(error.to_string(), "tools/call was not answered: this client is closed");
    let error = client.notify("x", ()).unwrap_err();
    assert_eq!(error.to_string(), "x was not answered: this client is closed");
}

/// C12: ten calls are pending when the server is killed. The bound is the contract's; on a busy machine
/// one of three tries has to keep it.
/// Also L18.
#[tokio::test]
async fn c12_calls_that_are_pending_when_the_server_dies_fail_at_once_with_its_status() {
    let mut took = Vec::new();
    for _ in 0..3 {
        took.push(ten_calls_lost().await);
        if took.last() < Some(&ms(100)) {
            return;
        }
    }
    panic!("too slow three times: {took:?}");
}

async fn ten_calls_lost() -> Duration {
    let client = start("2025-11-25 log-stdin").await;
    let calls: Vec<_> = (0..10)
        .map(|_| {
            let client = client.clone();
            tokio::spawn(async move { client.call("never", ()).await.unwrap_err() })
        })
        .collect();
    eventually("all ten are on their way", || client.stderr().matches("never").count() == 10).await;
    let began = Instant::now();
    kill(client.pid().unwrap());
    let mut errors = Vec::new();
    for call in calls {
        errors.push(in_time(call).await.unwrap().to_string());
    }
    let took = began.elapsed();
    for text in errors {
        let killed = format!("tools/call was not answered: the server {KILLED}");
        assert!(text.starts_with(&killed), "{text}");
        assert!(text.contains("; its last lines on stderr:\n  got {"), "{text}");
    }
    // L18, P16
    let error = client.notify("x", ()).unwrap_err();
    assert!(error.to_string().contains(KILLED), "{error}");
    let error = client.call("add", ()).await.unwrap_err();
    assert!(error.to_string().contains(KILLED), "{error}");
    assert_eq!(in_time(client.ended()).await.process.unwrap().step, ShutdownStep::Unasked);
    took
}

/// STD-19.
#[tokio::test]
async fn p25_pid_and_status_can_be_asked_at_any_time() {
    let client = start("2025-11-25").await;
    let pid = client.pid().unwrap();
    assert!(alive(pid));
    assert_eq!(client.exit(), None);
    let error = in_time(client.call("exit", ())).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "tools/call was not answered: the server exited with code 7; its last lines on stderr:\n  \
         giving up"
    );
    assert_eq!(client.exit().unwrap().code, Some(7));
}

/// P5: the runtime is gone when the client is dropped.
#[test]
fn p5_a_client_may_outlive_its_runtime() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let client = runtime.block_on(start("2025-11-25 ignore-eof"));
    let pid = client.pid().unwrap();
    drop(runtime);
    let other = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    other.block_on(async {
        let error = in_time(client.call("never", ())).await.unwrap_err();
        assert!(error.to_string().starts_with("tools/call was not answered"), "{error}");
        in_time(client.close()).await.unwrap();
    });
    drop(client);
    other.block_on(eventually("the server is gone", || !alive(pid)));
}

/// What the killed host does: starts a server that would live for ever, and tells its number.
pub(super) fn host() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let client = start("2025-11-25 ignore-eof ignore-term").await;
        println!("{}", client.pid().unwrap());
        std::future::pending::<()>().await;
    });
}

/// P14: also a server that ignores the end of its input.
#[tokio::test]
// About Linux itself, and Windows: elsewhere the system does not kill a server with its host.
#[cfg(not(taut_portable))]
async fn p14_kill_9_on_the_host_leaves_no_server() {
    let mut host = bystander("host").stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(host.stdout.take().unwrap()).lines();
    let pid: u32 = lines.map_while(Result::ok).find_map(|line| line.parse().ok()).unwrap();
    assert!(alive(pid));
    host.kill().unwrap();
    let killed = Instant::now();
    host.wait().unwrap();
    eventually("the server is gone", || !alive(pid)).await;
    // A second is asked for; the kernel takes none, and a busy machine some.
    assert!(killed.elapsed() < ms(5000), "{:?}", killed.elapsed());
}

/// E5: in a process of its own, where nobody else uses the processor.
#[tokio::test]
// About Unix itself: `/proc` tells how much a process has used.
#[cfg(unix)]
async fn e5_an_idle_client_costs_no_cpu() {
    passes("idle").await;
}

/// A host with two clients, one of whose servers has closed its stderr, and nothing to do. It lets time
/// pass, because that is what is measured.
#[cfg(unix)]
pub(super) fn idle() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let clients = [start("2025-11-25").await, start("2026-07-28 close-stderr").await];
        for client in &clients {
            in_time(client.call("echo", json!({ "text": "up" }))).await.unwrap();
        }
        tokio::time::sleep(ms(200)).await;
        let before = processor_time();
        tokio::time::sleep(ms(4000)).await;
        let used = processor_time() - before;
        // 10 ms are asked for in 10 s. What spins would use all four seconds.
        assert!(used < ms(10), "{used:?}");
        for client in clients {
            in_time(client.close()).await.unwrap();
        }
    });
}

/// What all threads of this process have used so far.
#[cfg(unix)]
fn processor_time() -> Duration {
    let threads = std::fs::read_dir("/proc/self/task").unwrap();
    let used = threads.filter_map(|thread| {
        let stat = std::fs::read_to_string(thread.ok()?.path().join("schedstat")).ok()?;
        stat.split(' ').next()?.parse::<u64>().ok()
    });
    Duration::from_nanos(used.sum())
}
