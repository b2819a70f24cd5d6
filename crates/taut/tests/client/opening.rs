//! Opening a connection to servers that make it hard.

use std::time::Instant;

use serde_json::json;
use taut::wire::Framing;
use taut::{Revision, client::ClientEvent, error::ConnectReason};

use super::*;

/// Programs that are no servers.
pub(super) fn play(word: &str) {
    match word {
        "complains" => {
            eprintln!("no license found");
            std::process::exit(42);
        }
        "ends" => {}
        "echoes" => {
            std::io::copy(&mut std::io::stdin(), &mut std::io::stdout()).unwrap();
        }
        "serves-http" => {
            println!("Serving HTTP on 0.0.0.0 port 8000\nmore");
            server::sleep_for_ever();
        }
        "says-hello" => {
            println!("hello");
            server::sleep_for_ever();
        }
        "wants-a-token" => {
            println!("GITHUB_TOKEN is required\nsee the manual");
            std::process::exit(1);
        }
        "fails-on-both" => {
            print!("no token");
            eprintln!("traceback");
            std::process::exit(1);
        }
        other => panic!("no such program: {other}"),
    }
}

fn reason(error: &Error) -> &ConnectReason {
    match error {
        Error::Connect(error) => &error.reason,
        other => panic!("{other}"),
    }
}

async fn works(client: &Client) {
    let sum = client.call("add", json!({ "a": 2, "b": 3 })).await.unwrap();
    assert_eq!(sum.text().unwrap(), "5");
}

/// P16, P17
#[tokio::test]
async fn a_program_that_exits_at_once_is_named_with_its_code_and_last_words() {
    let (error, text) = failure(quick(), server("opening complains")).await;
    assert_eq!(
        text,
        "the server exited with code 42 before it answered initialize; its last lines on stderr:\n  \
         no license found"
    );
    assert!(matches!(reason(&error), ConnectReason::Exited(exit) if exit.code == Some(42)));
    let (_, text) = failure(quick(), server("opening ends")).await;
    assert_eq!(text, "the server exited with code 0 before it answered initialize");
}

/// L4: what it was never told cannot be what it ended of. A second start would take as long as the first.
#[tokio::test]
// About Unix itself: Linux tells how much of a pipe was read, and a shell plays the server.
#[cfg(all(target_os = "linux", not(taut_portable)))]
async fn a_program_that_ends_without_having_read_the_probe_is_started_once() {
    let starts = async |script: &str| {
        let events = Seen::default();
        let sink = events.clone();
        let builder = quick().on_event(move |event| {
            if let ClientEvent::ProcessStarted { pid } = event {
                sink.push(pid.to_string());
            }
        });
        failure(builder, sh(script)).await;
        events.all().len()
    };
    assert_eq!(starts("exit 3").await, 1);
    assert_eq!(starts("sleep 0.1; exit 3").await, 1);
    assert_eq!(starts("read -r line; exit 3").await, 2, "it may have ended of the probe");
}

/// P16
#[tokio::test]
// About Unix itself: signals.
#[cfg(unix)]
async fn a_program_that_a_signal_ended_at_once_is_named_with_the_signal() {
    let (_, text) = failure(quick(), sh("kill -SEGV $$")).await;
    let expected = "the server was killed by signal 11 (SIGSEGV)";
    assert!(text.starts_with(expected), "{text}");
}

/// P18
#[tokio::test]
// About Unix itself: its paths. `w4_a_program_that_is_not_found_is_told_with_where_it_was_looked_for` is
// the same on Windows.
#[cfg(unix)]
async fn a_program_that_does_not_exist_says_where_it_was_looked_for() {
    let began = Instant::now();
    let (error, text) = failure(quick(), Command::new("no-such-server")).await;
    assert!(matches!(error, Error::Spawn(_)));
    assert!(text.starts_with("program \"no-such-server\" not found; looked in /"), "{text}");
    assert!(began.elapsed() < ms(2_000));
}

#[tokio::test]
// About Unix itself: its programs play the server, because they start in a few milliseconds.
#[cfg(unix)]
async fn l16_silence_is_called_silence() {
    let builder = quick().probe_timeout(ms(100)).start_timeout(ms(400));
    let began = Instant::now();
    let silent = sh("echo waiting >&2; read -r line; exec sleep 1000");
    let (error, text) = failure(builder.clone(), silent).await;
    assert_eq!(
        text,
        "the server did not answer initialize within 400ms: it said nothing; another, asked with \
         Content-Length headers after 200ms, said nothing either; its last lines on stderr:\n  waiting"
    );
    assert!(matches!(reason(&error), ConnectReason::Silent { second: Some(_), .. }));
    assert!(began.elapsed() < ms(10_000));
    let (_, text) =
        failure(builder.framing(Framing::Lines), Command::new("sleep").arg("1000")).await;
    assert_eq!(text, "the server did not answer initialize within 400ms: it said nothing");
}

#[tokio::test]
async fn l16_an_echo_is_called_an_echo() {
    let began = Instant::now();
    let (error, text) = failure(quick(), server("opening echoes")).await;
    assert_eq!(
        text,
        "the program sends back what it is sent (server/discover came back as it left): it is an \
         echo, not a server"
    );
    assert!(matches!(reason(&error), ConnectReason::Echo));
    assert!(began.elapsed() < ms(10_000));
}

#[tokio::test]
async fn l16_text_instead_of_json_is_shown() {
    let builder = quick().probe_timeout(ms(100)).start_timeout(ms(5_000));
    let (error, text) = failure(builder.clone(), server("opening serves-http")).await;
    assert!(
        text.starts_with(
            "the server did not answer initialize within 5s: it printed 2 lines of text instead \
             of JSON, the first"
        ),
        "{text}"
    );
    let first = "the first of which is: Serving HTTP on 0.0.0.0 port 8000";
    assert!(text.contains(first), "{text}");
    // What comes after a greeting may be why it hangs.
    let rest = text.split_once("; its last lines on stdout:\n").unwrap().1;
    assert!(!rest.contains("Serving HTTP") && rest.lines().count() == 1, "{text}");
    assert!(matches!(reason(&error), ConnectReason::NotJson { lines: 2, .. }));

    let (_, text) = failure(builder, server("opening says-hello")).await;
    assert!(text.ends_with("it printed text instead of JSON: hello"), "{text}");
}

#[tokio::test]
async fn a_server_that_dies_in_the_handshake_is_named_with_its_last_words() {
    let role = "2025-11-25 exit-on-initialize";
    let (_, text) = failure(quick(), server(role)).await;
    assert_eq!(
        text,
        "the server exited with code 42 before it answered initialize; its last lines on stderr:\n  \
         cannot open the database"
    );
}

#[tokio::test]
// About Unix itself: under Wine the console's own process holds a copy of the handle.
#[cfg(unix)]
async fn a_server_that_closes_its_output_and_lives_is_told_apart_from_one_that_exits() {
    let (error, text) = failure(quick(), sh("exec 1>&-; exec sleep 1000")).await;
    assert_eq!(text, "the server closed its output before it answered initialize");
    assert!(matches!(reason(&error), ConnectReason::Closed));
}

/// DIS-07.
#[tokio::test]
async fn l2_a_server_that_swallows_the_probe_is_reached_after_the_probes_budget() {
    let began = Instant::now();
    let builder = quick().probe_timeout(ms(300));
    let client = in_time(builder.spawn(server("2025-06-18 swallow-probe"))).await.unwrap();
    assert!(began.elapsed() >= ms(300));
    assert_eq!(client.revision(), Revision::V2025_06_18);
    works(&client).await;
}

/// DIS-07, PRB-04.
#[tokio::test]
async fn l3_whatever_the_code_of_the_refusal_an_old_server_is_reached() {
    for code in [32601, 32602, 32600, 32002, 32000, 32020, 32021, 1] {
        let client = start(&format!("2025-03-26 probe-code={code}")).await;
        assert_eq!(client.revision(), Revision::V2025_03_26, "{code}");
        works(&client).await;
    }
}

/// PRB-07.
#[tokio::test]
async fn l4_a_server_that_exits_on_the_probe_is_started_once_more_without_one() {
    let events = Seen::default();
    let sink = events.clone();
    let builder = quick().on_event(move |event| {
        if let ClientEvent::Restarting { framing } = event {
            sink.push(framing.to_string());
        }
    });
    let client = in_time(builder.spawn(server("2024-11-05 exit-on-probe"))).await.unwrap();
    assert_eq!(client.revision(), Revision::V2024_11_05);
    works(&client).await;
    assert_eq!(events.all(), ["lines"]);
}

/// The server is slower than the probe's budget. One that speaks both eras ends up legacy, one that
/// is modern only ends up modern; neither is an error.
/// Also PRB-09.
#[tokio::test]
async fn l5_a_server_that_answers_the_probe_late_is_reached_all_the_same() {
    for (role, revision) in [
        ("both late=700", Revision::LATEST_LEGACY),
        ("2026-07-28 late=700", Revision::MODERN),
        ("2025-06-18 late=700", Revision::V2025_06_18),
    ] {
        let builder = quick().probe_timeout(ms(150));
        let client = in_time(builder.spawn(server(role))).await.unwrap();
        assert_eq!(client.revision(), revision, "{role}");
        works(&client).await;
    }
}

#[tokio::test]
async fn l6_a_server_that_floods_stderr_on_the_probe_is_reached() {
    let client = start("2025-11-25 flood-on-probe").await;
    works(&client).await;
}

#[tokio::test]
async fn l11_a_server_that_talks_before_it_is_asked_is_listened_to() {
    let events = Seen::default();
    let sink = events.clone();
    let builder = quick().on_event(move |event| {
        if let ClientEvent::Notification { method, params } = event {
            sink.push(format!("{method} {}", params.unwrap().get()));
        }
    });
    let client = in_time(builder.spawn(server("2025-11-25 greet"))).await.unwrap();
    works(&client).await;
    let all = events.all();
    assert!(all[0].starts_with("notifications/message {") && all[0].contains("hello"), "{all:?}");
}

/// LIF-07.
#[tokio::test]
async fn l13_a_version_that_is_not_spoken_here_ends_it_and_leaves_nothing() {
    let (error, text) = failure(quick(), server("1999-01-01 say-pid ignore-eof ignore-term")).await;
    let Error::Connect(error) = error else { panic!("{error}") };
    let expected = "the server wants to speak version \"1999-01-01\", which this client does not";
    assert!(text.starts_with(expected), "{text}");
    assert!(matches!(&error.reason, ConnectReason::Version(version) if version == "1999-01-01"));
    // Gone by the time that the error is there, however stubborn.
    let pid = error.stderr.trim().parse().unwrap();
    assert!(!alive(pid));
}

/// Slower than the probe, but within the budget of a start; stderr is being written all the while.
#[tokio::test]
async fn l15_a_slow_start_is_waited_for() {
    let builder = quick().probe_timeout(ms(100));
    let client = in_time(builder.spawn(server("2025-11-25 slow-start=1500"))).await.unwrap();
    works(&client).await;
}

/// The second one, asked with headers after two seconds of silence, does not disturb it.
#[tokio::test]
async fn l15_a_start_that_takes_nearly_all_of_its_time_is_waited_for() {
    let events = Seen::default();
    let sink = events.clone();
    let builder =
        quick().probe_timeout(ms(100)).start_timeout(ms(9_000)).on_event(
            move |event| match event {
                ClientEvent::ProcessStarted { pid } => sink.push(pid.to_string()),
                ClientEvent::StartingSecond { framing } => sink.push(framing.to_string()),
                _ => {}
            },
        );
    let client = in_time(builder.spawn(server("2025-11-25 late=6200"))).await.unwrap();
    let all = events.all();
    assert_eq!((all.len(), all[1].as_str()), (3, "Content-Length"), "{all:?}");
    assert_eq!((client.pid(), client.framing()), (all[0].parse().ok(), Some(Framing::Lines)));
    works(&client).await;
    let other = all[2].parse().unwrap();
    eventually("the other is let go", || !alive(other)).await;
}

/// F13: a server that has not read what it was sent is still starting, and is started once.
#[tokio::test]
// About Unix itself: Linux tells how much of a pipe was read.
#[cfg(all(target_os = "linux", not(taut_portable)))]
async fn a_slow_start_is_one_start() {
    let events = Seen::default();
    let sink = events.clone();
    let builder = quick().start_timeout(ms(9_000)).on_event(move |event| {
        if let ClientEvent::ProcessStarted { pid } = event {
            sink.push(pid.to_string());
        }
    });
    let client = in_time(builder.spawn(server("2025-11-25 slow-start=4500"))).await.unwrap();
    assert_eq!(events.all().len(), 1);
    works(&client).await;
}

/// One that dies of the headers is not the cause: the first was silent.
#[tokio::test]
// About Unix itself: its programs play the server.
#[cfg(unix)]
async fn the_end_of_the_second_try_is_told_as_that() {
    let script = r#"read -r line; case $line in Content*) echo 'no JSON' >&2; exit 9;; esac
        exec sleep 1000"#;
    let builder = quick().probe_timeout(ms(100)).start_timeout(ms(4_500));
    let (error, text) = failure(builder, sh(script)).await;
    assert_eq!(
        text,
        "the server did not answer initialize within 4.5s: it said nothing; another, asked with \
         Content-Length headers after 2s, exited with code 9"
    );
    assert!(matches!(reason(&error), ConnectReason::Silent { second: Some(_), .. }));
}

/// Its answers lie in a buffer until it ends. A server that is given up has a quarter of a second for
/// that, which on a busy machine may be too short; not in one of three tries.
#[tokio::test]
async fn a_server_that_does_not_flush_is_called_that() {
    let mut text = String::new();
    for _ in 0..3 {
        let builder = quick().probe_timeout(ms(100)).start_timeout(ms(2_000));
        let (error, said) = failure(builder, server("2025-11-25 no-flush")).await;
        text = said;
        if matches!(reason(&error), ConnectReason::Unflushed { .. }) {
            break;
        }
    }
    assert_eq!(
        text,
        "the server did not answer initialize within 2s: its answer came only when its stdin was \
         closed, so it does not flush its output"
    );
}

/// F13
#[tokio::test]
async fn a_server_that_reads_only_headers_is_reached_by_another_beside_it() {
    let builder = quick().probe_timeout(ms(100)).start_timeout(ms(6_000));
    let client = in_time(builder.spawn(server("2025-11-25 headers-only"))).await.unwrap();
    works(&client).await;
    let builder = quick().framing(Framing::Headers).revision(Revision::V2025_11_25);
    let client = in_time(builder.spawn(server("2025-11-25 headers-only"))).await.unwrap();
    works(&client).await;
}

#[tokio::test]
async fn a_pinned_revision_is_spoken_or_nothing_is() {
    let builder = quick().revision(Revision::V2025_11_25);
    let client = in_time(builder.clone().spawn(server("both"))).await.unwrap();
    assert_eq!(client.revision(), Revision::V2025_11_25);
    let (_, text) = failure(builder, server("2024-11-05")).await;
    assert!(text.contains("2024-11-05"), "{text}");
    let builder = quick().revision(Revision::MODERN);
    let (_, text) = failure(builder, server("2025-11-25")).await;
    assert_eq!(text, "the server refused server/discover: method not found (-32601)");
}
