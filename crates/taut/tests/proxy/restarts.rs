//! Connections that end early, and restarts that fail.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use taut::{Client, ClientBuilder, Proxy, RestartPolicy, Revision};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

use crate::faults::failing;
use crate::raw::{INITIALIZED, answer, front, legacy, legacy_to_modern, modern, proxy};

const RESOURCES: &str = r#"{"protocolVersion":"2025-06-18","capabilities":{"resources":{"subscribe":true}},"serverInfo":{"name":"b","version":"2"}}"#;

/// A server whose first process answers the handshake and is gone; the later ones live.
fn dying(opened: Arc<AtomicUsize>) -> Proxy {
    let connector = move |client: ClientBuilder| {
        let first = opened.fetch_add(1, Ordering::SeqCst) == 0;
        let (near, far) = tokio::io::duplex(1 << 20);
        tokio::spawn(async move {
            let (reader, mut writer) = tokio::io::split(far);
            let mut lines = BufReader::new(reader).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                let result = match line.contains(r#""method":"initialize""#) {
                    true => RESOURCES,
                    false => r#"{"tools":[]}"#,
                };
                if line.contains(r#""id":"#) {
                    let answer = answer(&line, result) + "\n";
                    let _ = writer.write_all(answer.as_bytes()).await;
                    if first {
                        return;
                    }
                }
            }
        });
        let (reader, writer) = tokio::io::split(near);
        client.connect(reader, writer)
    };
    Proxy::builder(connector).client(Client::builder().revision(Revision::V2025_06_18)).build()
}

/// On several threads the end of a connection may be seen before it is ready. P29.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_connection_that_ends_right_after_its_handshake_is_replaced() {
    for round in 0..50 {
        let opened = Arc::new(AtomicUsize::new(0));
        let proxy = dying(opened.clone());
        let (mut reader, writer) = front(&proxy).split();
        let all: Vec<String> =
            (0..200).map(|id| modern(&id.to_string(), "tools/list", "")).collect();
        let mut writer = writer.send_all(&all.join("\n")).await;
        for _ in 0..200 {
            reader.next().await;
        }
        let served = async {
            for id in 1_000.. {
                let request = modern(&id.to_string(), "tools/list", "");
                writer = writer.send_all(&request).await;
                if reader.next().await.contains(r#""tools":[]"#) {
                    return;
                }
            }
        };
        let served = tokio::time::timeout(Duration::from_secs(5), served).await;
        assert!(served.is_ok(), "round {round}: opened {} times", opened.load(Ordering::SeqCst));
    }
}

/// A client that only listens asks for nothing, so nothing but the policy starts the server again.
/// P28.
#[tokio::test]
async fn a_restart_that_fails_is_tried_again_without_a_request() {
    let (builder, mut backs) = failing(2);
    let policy = RestartPolicy::new().first_delay(Duration::from_millis(1));
    let proxy = builder.restart(policy).build();
    let (mut front, mut back) = legacy(&proxy, &mut backs).await;
    front
        .send(r#"{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"a:b"}}"#)
        .await;
    let subscribe = back.next().await;
    back.send(&answer(&subscribe, "{}")).await;
    front.next().await;
    drop(back);
    let again = tokio::time::timeout(Duration::from_secs(10), backs.recv()).await;
    let mut back = again.expect("no third connection").unwrap();
    let initialize = back.next().await;
    back.send(&answer(&initialize, RESOURCES)).await;
    assert_eq!(back.next().await, INITIALIZED);
    assert!(back.next().await.contains("resources/subscribe"));
}

/// However often it fails: one try after the other, not one inside of the other, which would end with the stack.
/// P28.
#[tokio::test]
async fn a_restart_may_fail_very_often() {
    let (builder, mut backs) = failing(20_000);
    let policy = RestartPolicy::new().first_delay(Duration::ZERO).max_restarts(u32::MAX);
    let proxy = builder.restart(policy).build();
    let (_front, back) = legacy(&proxy, &mut backs).await;
    drop(back);
    let again = tokio::time::timeout(Duration::from_secs(60), backs.recv()).await;
    let mut back = again.expect("no further connection").unwrap();
    assert!(back.next().await.contains("initialize"));
}

/// The policy also says when it is enough: a modern client hears that its stream is dead, and may ask again.
#[tokio::test]
async fn streams_of_changes_end_when_the_server_is_given_up() {
    for (failed, restarts) in [(usize::MAX - 1, 3), (0, 0)] {
        let (builder, mut backs) = failing(failed);
        let policy =
            RestartPolicy::new().first_delay(Duration::from_millis(1)).max_restarts(restarts);
        let builder = builder.client(Client::builder().revision(Revision::V2025_06_18));
        let proxy = builder.restart(policy).build();
        let mut front = front(&proxy);
        let filter = r#""notifications":{"resourceSubscriptions":["a:b"]},"#;
        front.send(&modern("\"s\"", "subscriptions/listen", filter)).await;
        let mut back = backs.recv().await.unwrap();
        let initialize = back.next().await;
        back.send(&answer(&initialize, RESOURCES)).await;
        assert_eq!(back.next().await, INITIALIZED);
        let subscribe = back.next().await;
        back.send(&answer(&subscribe, "{}")).await;
        assert!(front.next().await.contains("notifications/subscriptions/acknowledged"));
        drop(back);
        let ended = front.next().await;
        assert!(ended.contains(r#""id":"s","error""#), "{ended}");
        assert!(ended.contains(r#""bridge":"unreachable""#), "{ended}");
    }
}

/// Reports of progress are added up over the rounds of a call: what is no number any more is left out.
#[tokio::test]
async fn sums_of_progress_are_numbers() {
    let (builder, mut backs) = proxy();
    let proxy = builder.build();
    let (mut front, mut back) = legacy_to_modern(&proxy, &mut backs, r#"{"tools":{}}"#).await;
    front
        .send(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","_meta":{"progressToken":"p"}}}"#)
        .await;
    let report = |request: &str, value: &str| {
        let token = crate::raw::id_of(request);
        format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":{value}}}}}"#
        )
    };
    let question = r#"{"resultType":"input_required","inputRequests":{"a":{"method":"roots/list"}},"requestState":"x"}"#;
    let request = back.next().await;
    back.send(&report(&request, "1.7e308")).await;
    back.send(&answer(&request, question)).await;
    let mut lines = vec![front.next().await, front.next().await];
    front.send(&answer(&lines[1], r#"{"roots":[]}"#)).await;
    let request = back.next().await;
    for value in ["1.7e308", "1e400", "-1.7e308"] {
        back.send(&report(&request, value)).await;
    }
    back.send(&answer(&request, r#"{"resultType":"complete","content":[]}"#)).await;
    while !lines.last().unwrap().contains(r#""id":1,"result""#) {
        lines.push(front.next().await);
    }
    let sums: Vec<f64> = lines
        .iter()
        .filter(|line| line.contains("notifications/progress"))
        .map(|line| {
            let line: serde_json::Value = serde_json::from_str(line).unwrap();
            line["params"]["progress"].as_f64().unwrap()
        })
        .collect();
    assert_eq!(sums.first(), Some(&1.7e308), "{lines:?}");
    assert!(sums.is_sorted_by(|a, b| a < b), "{sums:?}");
}
