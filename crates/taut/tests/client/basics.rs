//! What a polite server and a client say to each other.

use serde_json::json;
use taut::{Revision, process::ShutdownStep};

use super::*;

/// L9, PAG-02, PAG-03: the server is strict about `initialized`, and one of its cursors is empty.
/// Also STD-08, LIF-08, PRG-03, PAG-01, PAG-06, PRB-02.
#[tokio::test]
async fn a_server_is_started_listed_called_and_closed() {
    for role in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"] {
        let client = start(role).await;
        assert_eq!(client.revision().to_string(), role);
        let names: Vec<_> = client.tools().await.unwrap().into_iter().map(|t| t.name).collect();
        assert_eq!(names, ["t0", "t1", "t2", "t3", "t4", "t5"]);
        let sum = client.call("add", json!({ "a": 2, "b": 3 })).timeout(ms(5_000)).await.unwrap();
        assert_eq!(sum.text().unwrap(), "5");
        let failed = client.call("fail", ()).await.unwrap();
        assert!(failed.failed());
        let pid = client.pid().unwrap();
        let closed = in_time(client.close()).await.unwrap();
        assert_eq!(closed.process.unwrap().step, ShutdownStep::Eof, "{closed}");
        assert_eq!(closed.to_string(), "the server exited with code 0 once its stdin was closed");
        assert!(!alive(pid));
        let again = in_time(client.close()).await.unwrap();
        assert_eq!(again.process, closed.process);
    }
    // Slow as a start may be, the probe is waited for.
    let builder = quick().probe_timeout(ms(20_000));
    let client = in_time(builder.spawn(server("both"))).await.unwrap();
    assert_eq!(client.revision(), Revision::MODERN);
}

/// Our own server, in memory, pinned to each revision in turn.
#[tokio::test]
async fn our_client_and_our_server_agree_in_every_revision() {
    #[derive(serde::Deserialize, taut::JsonSchema)]
    struct Add {
        a: f64,
        b: f64,
    }
    for revision in Revision::ALL {
        let (near, far) = tokio::io::duplex(64 << 10);
        let (reader, writer) = tokio::io::split(far);
        let serving = tokio::spawn(async move {
            let server = taut::Server::builder("calc", "1.0")
                .tool("add", async |Add { a, b }, _call| a + b)
                .build()
                .unwrap();
            server.serve(reader, writer).await
        });
        let (reader, writer) = tokio::io::split(near);
        let builder = quick().revision(revision);
        let client = in_time(builder.connect(reader, writer)).await.unwrap();
        assert_eq!(client.revision(), revision);
        assert_eq!(client.server_info().unwrap().name, "calc");
        assert_eq!(client.tools().await.unwrap()[0].name, "add");
        let sum = in_time(client.call("add", json!({ "a": 2, "b": 3 }))).await.unwrap();
        assert_eq!(sum.text().unwrap(), "5");
        in_time(client.close()).await.unwrap();
        in_time(serving).await.unwrap();
    }
}

/// STD-07
#[tokio::test]
async fn e8_words_on_stderr_are_no_failure() {
    let lines = Seen::default();
    let sink = lines.clone();
    let builder = quick().on_stderr(move |line| sink.push(line));
    let client = in_time(builder.spawn(server("2025-11-25 log-stdin"))).await.unwrap();
    let sum = in_time(client.call("add", json!({ "a": 2, "b": 3 }))).await.unwrap();
    assert_eq!(sum.text().unwrap(), "5");
    let closed = in_time(client.close()).await.unwrap();
    assert!(closed.process.unwrap().exit.success());
    let lines = lines.all();
    assert!(lines.iter().any(|line| line.contains("tools/call")), "{lines:?}");
}
