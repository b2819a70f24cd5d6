//! Servers that send more than a client keeps, die while they print, or need time to clean up; and
//! settings at their extremes. The servers are real processes with small bounds.

use std::io::Write as _;
use std::time::Duration;

use serde::ser::SerializeMap as _;
use serde_json::{Value, json};
use taut::types::SubscriptionFilter;
use taut::{Change, Client, Error, Server, memory, process::GracePeriods};

use crate::{in_time, ms, quick, server};

/// What one page, and one URI, of the server below has.
const PAGE: usize = 1 << 20;
const URI: usize = 10 << 10;

/// A server whose list never ends, and whose tool tells of many resources with long URIs.
pub(crate) fn play(kept: bool) {
    let mut pages = 0;
    for line in std::io::stdin().lines() {
        let message: Value = serde_json::from_str(&line.unwrap()).unwrap();
        let result = match message["method"].as_str().unwrap_or_default() {
            "initialize" => json!({
                "protocolVersion": "2025-11-25",
                "capabilities": { "tools": {}, "resources": { "subscribe": true } },
                "serverInfo": { "name": "large", "version": "1" },
            }),
            // A server that is never asked `initialize` is modern: its pages may be kept for an hour.
            "server/discover" if kept => json!({
                "resultType": "complete", "supportedVersions": ["2026-07-28"],
                "capabilities": { "tools": {} }, "ttlMs": 0, "cacheScope": "private",
            }),
            "tools/list" if kept => {
                pages += 1;
                let tool = json!({ "name": pages.to_string(), "description": "x".repeat(PAGE),
                    "inputSchema": { "type": "object" } });
                let place: u64 =
                    message["params"]["cursor"].as_str().map_or(0, |c| c.parse().unwrap());
                json!({ "resultType": "complete", "tools": [tool], "nextCursor": (place + 1).to_string(),
                    "ttlMs": 3_600_000, "cacheScope": "private" })
            }
            "tools/list" => {
                pages += 1;
                let tool = json!({ "name": pages.to_string(), "description": "x".repeat(PAGE),
                    "inputSchema": { "type": "object" } });
                json!({ "tools": [tool], "nextCursor": pages.to_string() })
            }
            "tools/call" if message["params"]["name"] == "die" => {
                print!("out of memory in row 7");
                std::io::stdout().flush().unwrap();
                std::process::exit(3);
            }
            "tools/call" => {
                for n in 0..500 {
                    let uri = format!("a:{}{n}", "x".repeat(URI));
                    say(&json!({ "jsonrpc": "2.0", "method": "notifications/resources/updated",
                        "params": { "uri": uri } }));
                }
                json!({ "content": [] })
            }
            "resources/subscribe" | "resources/unsubscribe" => json!({}),
            _ if message["id"].is_null() => continue,
            _ => {
                let error = json!({ "code": -32601, "message": "no such method" });
                say(&json!({ "jsonrpc": "2.0", "id": message["id"], "error": error }));
                continue;
            }
        };
        say(&json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }));
    }
}

fn say(message: &Value) {
    println!("{message}");
}

/// Issue 19, A2
#[tokio::test]
async fn c18_a_list_without_end_is_given_up_at_its_bound_in_bytes() {
    let client = in_time(quick().max_list_bytes(5 * PAGE).spawn(server("limits"))).await.unwrap();
    match in_time(client.tools()).await.unwrap_err() {
        Error::TooLarge { bytes, limit, setting, .. } => {
            assert!(bytes > limit && bytes < limit + 2 * PAGE, "{bytes}");
            assert_eq!(setting, "ClientBuilder::max_list_bytes");
        }
        other => panic!("{other}"),
    }
    // Piece by piece it may be longer: nothing is kept.
    let mut tools = client.tools();
    for _ in 0..10 {
        assert!(in_time(tools.next()).await.unwrap().is_some());
    }
    in_time(client.close()).await.unwrap();
}

/// Issue 19, A2
#[tokio::test]
async fn c18_a_list_with_too_many_pages_is_given_up_and_names_the_setting() {
    let client = in_time(quick().max_pages(3).spawn(server("limits"))).await.unwrap();
    let mut tools = client.tools();
    assert!(in_time(tools.next_page()).await.unwrap().is_some());
    assert!(in_time(tools.next_page()).await.unwrap().is_some());
    let error = in_time(tools.next_page()).await.unwrap_err();
    assert!(error.to_string().contains("more than 3 pages (ClientBuilder::max_pages)"), "{error}");
    assert!(in_time(tools.next_page()).await.unwrap().is_none());
}

/// Issue 19, A2: a server that lets every page of an endless list be kept for an hour.
#[tokio::test]
async fn c18_pages_that_are_kept_are_bounded_in_bytes() {
    let room = 4 * PAGE;
    let builder = quick().keep_lists(true).max_kept_bytes(room);
    let client = in_time(builder.spawn(server("kept"))).await.unwrap();
    let read = async |pages: usize| {
        let (mut tools, mut numbers) = (client.tools(), Vec::new());
        for _ in 0..pages {
            let page = in_time(tools.next_page()).await.unwrap().unwrap();
            numbers.push(page[0].name.parse::<usize>().unwrap());
        }
        numbers
    };
    assert_eq!(read(3).await, [1, 2, 3]);
    assert_eq!(read(3).await, [1, 2, 3], "three pages fit");
    // Of twenty no more than four can be there when they are read again; the server numbers what it sends.
    let first = read(20).await;
    let again = read(20).await;
    let kept = again.iter().filter(|number| first.contains(number)).count();
    assert!(kept <= 4, "{kept} of 20 pages were kept: {first:?} {again:?}");
    in_time(client.close()).await.unwrap();
}

/// Issue 19, A2
#[tokio::test]
async fn c18_changes_that_are_not_taken_are_bounded_in_bytes() {
    let limit = 64 << 10;
    let client = in_time(quick().max_change_bytes(limit).spawn(server("limits"))).await.unwrap();
    let filter = SubscriptionFilter::new().resource_subscriptions(["a:".to_owned()]);
    let mut changes = in_time(client.listen(filter)).await.unwrap();
    in_time(client.call("tell", ())).await.unwrap();
    assert_eq!(in_time(changes.next()).await.unwrap(), Some(Change::Anything));
    // What comes later is told again, one by one.
    in_time(client.call("tell", ())).await.unwrap();
    assert!(in_time(changes.next()).await.unwrap().is_some());
}

/// Issue 19, D1
#[tokio::test]
async fn e10_what_a_server_prints_before_it_dies_in_a_call_is_in_the_error() {
    let client = in_time(quick().spawn(server("limits"))).await.unwrap();
    let error = in_time(client.call("die", ())).await.unwrap_err().to_string();
    assert!(
        error.contains("exited with code 3; its last lines on stdout:\n  out of memory"),
        "{error}"
    );
}

/// Issue 18, bug 1
#[test]
fn arguments_whose_serialisation_uses_the_client_do_not_wait_for_themselves() {
    struct Uses(Client);
    impl serde::Serialize for Uses {
        fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            // Each takes the lock of the connection.
            assert!(self.0.framing().is_some());
            assert!(self.0.notify("notifications/x", ()).is_ok());
            serializer.serialize_map(Some(0))?.end()
        }
    }
    let (done, finished) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let server = Server::builder("x", "1")
                .tool(("t", "Tool t."), async |_: taut::NoArgs, _call| "ok")
                .build()
                .unwrap();
            let client = memory(&server).await.unwrap();
            let answer = client.call("t", Uses(client.clone())).await.unwrap();
            let other: Value = client.request("tools/list", Uses(client.clone())).await.unwrap();
            done.send((answer.text().unwrap().into_owned(), other["tools"].is_array())).unwrap();
        });
    });
    let answers = finished.recv_timeout(Duration::from_secs(60)).expect("no deadlock");
    assert_eq!(answers, ("ok".to_owned(), true));
}

/// Issue 18, bug 6
#[tokio::test]
async fn a_duration_too_long_for_the_clock_is_for_ever_and_no_panic() {
    let long = Duration::MAX;
    let mut grace = GracePeriods::default();
    (grace.after_eof, grace.after_term, grace.after_kill) = (long, long, long);
    let everywhere = Client::builder()
        .probe_timeout(long)
        .start_timeout(long)
        .request_timeout(long)
        .ceiling(long)
        .grace_periods(grace)
        .eof_grace(long)
        .term_grace(long);
    let client = in_time(everywhere.spawn(server("both"))).await.unwrap();
    let call = client.call("echo", json!({ "text": "x" })).timeout(long).ceiling(long);
    assert_eq!(in_time(call).await.unwrap().text().unwrap(), "x");
    assert_eq!(in_time(client.tools().timeout(long)).await.unwrap().len(), 6);
    in_time(client.close()).await.unwrap();

    let (near, far) = tokio::io::duplex(1 << 10);
    drop(far);
    let (reader, writer) = tokio::io::split(near);
    let builder = Client::builder().eof_grace(long).start_timeout(ms(50));
    assert!(matches!(in_time(builder.connect(reader, writer)).await, Err(Error::Connect(_))));

    let policy = taut::RestartPolicy::new()
        .first_delay(long)
        .max_delay(long)
        .reset_after(long)
        .health_check(long, long);
    let supervised = quick().supervise(server("both"), policy).unwrap();
    let call = supervised.call("echo", json!({ "text": "y" })).timeout(long);
    assert_eq!(in_time(call).await.unwrap().text().unwrap(), "y");
    in_time(supervised.close()).await.unwrap();
}

/// Issue 19, D1
#[tokio::test]
async fn e10_what_a_dying_server_prints_on_stdout_is_in_the_error() {
    let (error, text) = super::failure(quick(), server("opening wants-a-token")).await;
    assert!(matches!(&error, Error::Connect(error) if error.stdout.contains("see the manual")));
    let expected = "exited with code 1 before it answered initialize; its last lines on stdout:\
                    \n  GITHUB_TOKEN is required\n  see the manual";
    assert!(text.ends_with(expected), "{text}");
    // Both streams, and a last line without its end.
    let (_, text) = super::failure(quick(), server("opening fails-on-both")).await;
    let expected = "its last lines on stdout:\n  no token\nits last lines on stderr:\n  traceback";
    assert!(text.ends_with(expected), "{text}");
}

/// About Unix itself: signals, and symbolic links to a shell.
#[cfg(unix)]
mod scripts {
    use taut::error::ConnectReason;

    use super::*;
    use crate::{eventually, failure, sh};

    /// Issue 19, D2: it hears of SIGTERM, and has its grace period to clean up.
    #[tokio::test]
    async fn p27_a_start_that_is_given_up_has_time_to_clean_up_after_sigterm() {
        let lock = std::env::temp_dir().join(format!("taut-{}-lock", std::process::id()));
        let script =
            "trap 'sleep 1; rm \"$LOCK\"; exit' TERM; : > \"$LOCK\"; while :; do sleep 0.05; done";
        let command = sh(script).env("LOCK", &lock);
        let builder = Client::builder().start_timeout(ms(500)).term_grace(Duration::from_secs(30));
        let (error, text) = failure(builder, command).await;
        assert!(matches!(error, Error::Connect(_)), "{text}");
        eventually("the lock is gone", || !lock.exists()).await;
    }

    /// Issue 19, D2: a second one beside it would download the same package at the same time.
    #[tokio::test]
    async fn p27_a_package_runner_that_is_silent_is_not_started_a_second_time() {
        let dir = std::env::temp_dir().join(format!("taut-{}-npx", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        std::os::unix::fs::symlink("/bin/sh", dir.join("npx")).unwrap();
        let command = taut::Command::new(dir.join("npx")).args(["-c", "exec sleep 600"]);
        let (error, text) = failure(Client::builder().start_timeout(ms(500)), command).await;
        std::fs::remove_dir_all(&dir).unwrap();
        let expected = "it said nothing; npx may still be downloading the package: try again, or set a \
                        longer start timeout";
        assert!(text.ends_with(expected), "{text}");
        match error {
            Error::Connect(error) => {
                let silent = matches!(&error.reason, ConnectReason::Silent { second: None, .. });
                assert!(silent, "{error:?}");
            }
            other => panic!("{other}"),
        }
    }
}
