//! Servers with bad habits, one test each. Each is a process of its own, and each ends in time.

use std::time::Instant;

use serde_json::json;
use taut::wire::Limits;
use taut::{client::ClientEvent, process::ShutdownStep};

use super::*;

async fn works(client: &Client) {
    let sum = client.call("add", json!({ "a": 2, "b": 3 })).await.unwrap();
    assert_eq!(sum.text().unwrap(), "5");
}

/// F1: counted, and told.
#[tokio::test]
async fn f1_a_banner_and_lines_of_junk_cost_nothing_but_a_note() {
    let events = Seen::default();
    let sink = events.clone();
    let builder = quick().on_event(move |event| {
        if let ClientEvent::InvalidMessage(junk) = event {
            sink.push(junk.excerpt.clone());
        }
    });
    let client = in_time(builder.spawn(server("2025-11-25 banner"))).await.unwrap();
    works(&client).await;
    let first = "Welcome to the rude server!";
    let told = events.all();
    assert_eq!((told[0].as_str(), told.len()), (first, 38));
    let seen = client.diagnostics();
    assert_eq!(seen.invalid_messages, 38);
    let junk = seen.first_invalid.unwrap();
    assert_eq!((junk.offset, junk.excerpt.as_str()), (0, first));
}

/// F3, F4, F14
#[tokio::test]
async fn answers_in_any_framing_are_understood() {
    for role in ["2025-11-25 crlf", "2025-11-25 bom", "2025-11-25 headers", "2026-07-28 headers"] {
        let client = start(role).await;
        works(&client).await;
        let seen = client.diagnostics();
        assert_eq!(
            (seen.invalid_messages, seen.byte_order_mark),
            (0, role.ends_with("bom")),
            "{role}"
        );
        assert_eq!(seen.carriage_return, role.ends_with("crlf"), "{role}");
    }
}

/// STD-06.
#[tokio::test]
async fn e1_ten_mebibytes_on_stderr_before_the_first_answer_freeze_nobody() {
    let builder = quick().start_timeout(DEADLINE).stderr_tail(1_000);
    let client = in_time(builder.spawn(server("2025-11-25 flood"))).await.unwrap();
    works(&client).await;
    assert_eq!(client.stderr().len(), 1_000);
}

/// SEC-05.
#[tokio::test]
async fn e2_a_hundred_mebibytes_of_stderr_without_a_newline_stay_bounded() {
    let client = start_flooding("2025-11-25 flood-line").await;
    works(&client).await;
    assert!(client.stderr().len() <= 64 << 10);
}

#[tokio::test]
// About Unix itself: under Wine the console's own process holds a copy of the handle.
#[cfg(unix)]
async fn e3_a_stderr_that_is_closed_early_is_nobodys_problem() {
    let client = start("2025-11-25 close-stderr").await;
    works(&client).await;
    eventually("it is noticed", || client.diagnostics().stderr_closed).await;
    let closed = in_time(client.close()).await.unwrap();
    assert_eq!(closed.process.unwrap().step, ShutdownStep::Eof);
}

/// What ends a server that does not mind a closed stdin: Windows has no signal in between (W5).
const ASKED_TWICE: ShutdownStep =
    if cfg!(windows) { ShutdownStep::Kill } else { ShutdownStep::Term };

/// C11: a server that never reads cannot hold the call, nor the close.
#[tokio::test]
async fn c11_a_server_that_never_reads_does_not_defeat_a_timeout() {
    let builder = quick().eof_grace(ms(200)).term_grace(ms(200));
    let client = in_time(builder.spawn(server("2025-11-25 deaf"))).await.unwrap();
    let began = Instant::now();
    let text = "x".repeat(1 << 20);
    let call = client.call("echo", json!({ "text": text })).timeout(ms(1_000));
    let error = in_time(call).await.unwrap_err();
    assert_eq!(error.to_string(), "tools/call was not answered within 1s");
    assert!(began.elapsed() < ms(5_000));
    let closed = in_time(client.close()).await.unwrap();
    assert_eq!(closed.process.unwrap().step, ASKED_TWICE);
}

/// P23, C11
#[tokio::test]
async fn a_server_that_stops_itself_times_out_and_is_killed() {
    let builder = quick().eof_grace(ms(100)).term_grace(ms(100));
    let client = in_time(builder.spawn(server("2025-11-25"))).await.unwrap();
    let error = in_time(client.call("stop", ()).timeout(ms(300))).await.unwrap_err();
    assert_eq!(error.to_string(), "tools/call was not answered within 300ms");
    let error = in_time(client.ping().timeout(ms(300))).await.unwrap_err();
    assert_eq!(error.to_string(), "ping was not answered within 300ms");
    let closed = in_time(client.close()).await.unwrap();
    assert_eq!(closed.process.unwrap().step, ShutdownStep::Kill);
    let kill = if cfg!(windows) { "it was terminated" } else { "SIGKILL" };
    assert_eq!(closed.to_string(), format!("the server {KILLED} after {kill}"));
}

/// P17
#[tokio::test]
async fn a_server_that_dies_in_the_middle_of_an_answer_is_named_with_its_signal() {
    let client = start("2025-11-25").await;
    let error = in_time(client.call("die", ())).await.unwrap_err();
    let text = error.to_string();
    let crashed =
        if cfg!(windows) { "exited with code" } else { "was killed by signal 6 (SIGABRT)" };
    let expected = format!("tools/call was not answered: the server {crashed}");
    assert!(text.starts_with(&expected), "{text}");
    assert!(text.ends_with("its last lines on stderr:\n  about to die"), "{text}");
    let Error::Lost(lost) = error else { panic!("{error}") };
    assert_eq!(lost.exit.unwrap().signal, cfg!(unix).then_some(6));
}

/// STD-19.
#[tokio::test]
async fn an_answer_that_was_written_before_the_exit_is_not_lost() {
    for _ in 0..20 {
        let client = start("2025-11-25").await;
        let answer = in_time(client.call("answer-and-exit", ())).await.unwrap();
        assert_eq!(answer.text().unwrap().len(), 400_000);
    }
}

#[tokio::test]
async fn a_server_that_answers_twice_is_heard_once() {
    let client = start("2025-11-25 twice").await;
    for _ in 0..5 {
        works(&client).await;
    }
    let seen = client.diagnostics();
    assert!(seen.late_answers >= 5 && seen.unknown_answers == 0, "{seen:?}");
}

#[tokio::test]
async fn an_answer_to_nothing_is_counted_and_dropped() {
    let client = start("2025-11-25 unknown-id").await;
    works(&client).await;
    works(&client).await;
    assert!(client.diagnostics().unknown_answers >= 4);
}

/// TMO-05.
#[tokio::test]
async fn c9_progress_for_ever_ends_at_the_ceiling() {
    let client = start("2025-11-25").await;
    let reports = Seen::default();
    let sink = reports.clone();
    let call = client
        .call("progress", ())
        .timeout(ms(400))
        .ceiling(ms(1_200))
        .progress(move |report| sink.push(report.progress.to_string()));
    let began = Instant::now();
    let error = in_time(call).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "tools/call was still reporting progress after 1.2s, its hard maximum"
    );
    assert!(began.elapsed() >= ms(1_200));
    assert!(reports.all().len() > 10);
}

/// F9: the line is skipped unbuffered, and the call ends at its timeout.
/// Also SEC-05.
#[tokio::test]
async fn f9_a_line_without_end_fills_nothing() {
    let builder =
        quick().limits(Limits::default().message(1 << 20)).eof_grace(ms(100)).term_grace(ms(100));
    let client = in_time(builder.spawn(server("2025-11-25"))).await.unwrap();
    let error = in_time(client.call("endless", ()).timeout(ms(500))).await.unwrap_err();
    assert_eq!(error.to_string(), "tools/call was not answered within 500ms");
    eventually("the junk is counted", || client.diagnostics().invalid_messages == 1).await;
    in_time(client.close()).await.unwrap();
}

#[tokio::test]
// About Unix itself: under Wine the console's own process holds a copy of the handle.
#[cfg(unix)]
async fn a_server_that_closes_its_stdout_and_lives_on_is_told_apart_and_ended() {
    let builder = quick().eof_grace(ms(100)).term_grace(ms(100));
    let client = in_time(builder.spawn(server("2025-11-25"))).await.unwrap();
    let pid = client.pid().unwrap();
    let began = Instant::now();
    let error = in_time(client.call("close-stdout", ())).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "tools/call was not answered: the other side closed the connection, although its \
             process ({pid}) still runs"
        )
    );
    assert!(began.elapsed() < ms(5_000));
    let closed = in_time(client.ended()).await;
    assert_eq!(closed.process.unwrap().step, ASKED_TWICE);
    assert!(!alive(pid));
}

/// P16.
#[tokio::test]
// About Unix itself: under Wine the console's own process holds a copy of the handle.
#[cfg(unix)]
async fn a_server_that_closes_its_stdin_is_noticed_by_the_next_call() {
    let builder = quick().eof_grace(ms(100)).term_grace(ms(100));
    let client = in_time(builder.spawn(server("2025-11-25"))).await.unwrap();
    let answer = in_time(client.call("close-stdin", ())).await.unwrap();
    assert_eq!(answer.text().unwrap(), "closed");
    let began = Instant::now();
    let error = in_time(client.call("echo", ())).await.unwrap_err();
    assert!(error.to_string().contains("still runs"), "{error}");
    assert!(client.diagnostics().stdin_closed);
    assert!(began.elapsed() < ms(5_000));
}

/// P9, P3: the grandchild holds all three pipes open.
/// Also SEC-10.
#[tokio::test]
async fn p9_a_grandchild_that_holds_the_pipes_holds_up_nobody() {
    let client = start("2025-11-25").await;
    let answer = in_time(client.call("grandchild", ())).await.unwrap();
    let grandchild: u32 = answer.text().unwrap().parse().unwrap();
    assert!(alive(grandchild));
    let began = Instant::now();
    let closed = in_time(client.close()).await.unwrap();
    assert_eq!(closed.to_string(), "the server exited with code 0 once its stdin was closed");
    assert!(began.elapsed() < ms(1_500), "the grace is not used up");
    eventually("the grandchild is gone", || !alive(grandchild)).await;
}

/// PAG-06.
#[tokio::test]
async fn a_list_that_goes_round_in_circles_is_given_up() {
    let client = start("2025-11-25 circular").await;
    let error = in_time(async { client.tools().await }).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the other side broke the protocol in its answer to tools/list: its list never ends: the \
         next page is the one before"
    );
    works(&client).await;
}
