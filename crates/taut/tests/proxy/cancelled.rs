//! What a legacy server says for a call that was cancelled: never to another client.

use std::time::Duration;

use tokio::sync::mpsc;

use crate::raw::{Wire, answer, front, id_of, modern, opened_legacy, proxy};

const ASK: &str = r#"{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"?","requestedSchema":{"type":"object","properties":{}}}}"#;
const LOG: &str = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","data":"secret"}}"#;

/// A call that wants every log line.
fn call(id: &str) -> String {
    let level = r#""_meta":{"io.modelcontextprotocol/logLevel":"debug","#;
    modern(id, "tools/call", r#""name":"t","#).replace(r#""_meta":{"#, level)
}

/// Two clients of one principal, each with a call on the same legacy server, and the two requests there.
async fn two(
    proxy: &taut::Proxy,
    backs: &mut mpsc::UnboundedReceiver<Wire>,
) -> (Wire, Wire, Wire, String, String) {
    let (mut one, mut two) = (front(proxy), front(proxy));
    one.send(&call("1")).await;
    let mut back = opened_legacy(backs, r#"{"tools":{}}"#).await;
    let first = back.next().await;
    two.send(&call("1")).await;
    let second = back.next().await;
    (one, two, back, first, second)
}

async fn cancel(front: &mut Wire, back: &mut Wire, call: &str) {
    front
        .send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#)
        .await;
    let cancelled = back.next().await;
    assert!(cancelled.contains(&format!(r#""requestId":{}"#, id_of(call))), "{cancelled}");
}

/// C21.
#[tokio::test(start_paused = true)]
async fn the_question_of_a_cancelled_call_is_put_to_no_other_client() {
    for goes_away in [false, true] {
        let (builder, mut backs) = proxy();
        let proxy = builder.drain(Duration::from_millis(10)).build();
        let (mut one, mut two, mut back, first, second) = two(&proxy, &mut backs).await;
        match goes_away {
            false => cancel(&mut one, &mut back, &first).await,
            true => {
                drop(one);
                assert!(back.next().await.contains("notifications/cancelled"));
            }
        }
        back.send(ASK).await;
        back.send(LOG).await;
        let refused = back.next().await;
        assert!(refused.contains(r#""id":"q","error""#), "{refused}");
        back.send(&answer(&second, r#"{"content":[]}"#)).await;
        let answered = two.next().await;
        assert!(answered.contains(r#""resultType":"complete""#), "{answered}");
    }
}

/// "For ever" is the most careful limit of all, also for more calls than are told apart. C21.
#[tokio::test(start_paused = true)]
async fn a_limit_of_any_length_keeps_questions_from_other_clients() {
    for (limit, withdrawn) in [(Duration::MAX, 1), (Duration::MAX, 1_100)] {
        let (builder, mut backs) = proxy();
        let proxy = builder.attribution_limit(limit).build();
        let (mut one, mut two, mut back, first, second) = two(&proxy, &mut backs).await;
        cancel(&mut one, &mut back, &first).await;
        for _ in 1..withdrawn {
            one.send(&call("1")).await;
            let request = back.next().await;
            cancel(&mut one, &mut back, &request).await;
        }
        back.send(ASK).await;
        back.send(LOG).await;
        let early = tokio::time::timeout(Duration::from_secs(10), two.next()).await;
        assert!(early.is_err(), "{early:?}");
        back.send(&answer(&second, r#"{"content":[]}"#)).await;
        let answered = two.next().await;
        assert!(answered.contains(r#""resultType":"complete""#), "{answered}");
        let refused = back.next().await;
        assert!(refused.contains(r#""id":"q","error""#), "{refused}");
    }
}

/// It came while the cancelled call may have asked it, so it stays nobody's.
#[tokio::test(start_paused = true)]
async fn a_question_is_not_given_away_when_the_cancelled_call_is_forgotten() {
    let (builder, mut backs) = proxy();
    let proxy = builder.attribution_limit(Duration::from_secs(5)).build();
    let (mut one, mut two, mut back, first, second) = two(&proxy, &mut backs).await;
    cancel(&mut one, &mut back, &first).await;
    tokio::time::sleep(Duration::from_secs(4)).await;
    back.send(ASK).await;
    let refused = back.next().await;
    assert!(refused.contains(r#""id":"q","error""#), "{refused}");
    // Later ones are the other call's.
    back.send(ASK).await;
    let asked = two.next().await;
    assert!(asked.contains("input_required"), "{asked}");
    let _ = second;
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_call_that_the_server_answers_is_over() {
    let (builder, mut backs) = proxy();
    let proxy = builder.build();
    let (mut one, mut two, mut back, first, _) = two(&proxy, &mut backs).await;
    cancel(&mut one, &mut back, &first).await;
    back.send(&answer(&first, r#"{"content":[]}"#)).await;
    back.send(LOG).await;
    assert_eq!(two.next().await, LOG);
    back.send(ASK).await;
    let asked = two.next().await;
    assert!(asked.contains("input_required"), "{asked}");
}

/// A client that cancels one call and makes another is asked as before: nothing reaches anybody else.
#[tokio::test(start_paused = true)]
async fn the_next_call_of_the_client_that_cancelled_one_can_ask() {
    let (builder, mut backs) = proxy();
    let proxy = builder.build();
    let mut front = front(&proxy);
    front.send(&call("1")).await;
    let mut back = opened_legacy(&mut backs, r#"{"tools":{}}"#).await;
    let first = back.next().await;
    cancel(&mut front, &mut back, &first).await;
    front.send(&call("2")).await;
    back.next().await;
    back.send(ASK).await;
    let asked = front.next().await;
    assert!(asked.contains(r#""id":2"#) && asked.contains("input_required"), "{asked}");
}

/// A client that wants no lines has a call open: a line may be of that one.
#[tokio::test]
async fn a_log_line_that_may_be_another_client_s_is_dropped() {
    let (builder, mut backs) = proxy();
    let proxy = builder.build();
    let (mut one, mut two) = (front(&proxy), front(&proxy));
    one.send(&modern("1", "tools/call", r#""name":"t","#)).await;
    let mut back = opened_legacy(&mut backs, r#"{"tools":{}}"#).await;
    let first = back.next().await;
    two.send(&call("1")).await;
    let second = back.next().await;
    back.send(LOG).await;
    back.send(&answer(&first, r#"{"content":[]}"#)).await;
    assert!(one.next().await.contains("result"));
    back.send(&answer(&second, r#"{"content":[]}"#)).await;
    let answered = two.next().await;
    assert!(answered.contains(r#""resultType":"complete""#), "{answered}");
}
