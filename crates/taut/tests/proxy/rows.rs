//! The rows of `docs/eras.md`, one by one, as raw lines on both sides.

use std::time::Duration;

use taut::Client;
use tokio::sync::mpsc;

use crate::raw::{
    INITIALIZE, INITIALIZED, Wire, answer, front, id_of, legacy, legacy_to_modern, modern,
    modern_params, opened_legacy, opened_modern, proxy, refusal,
};

/// A server that offers everything.
const EVERYTHING: &str = r#"{"tools":{"listChanged":true},"prompts":{"listChanged":true},"resources":{"subscribe":true,"listChanged":true},"logging":{},"completions":{}}"#;

/// The mark of a stream of changes.
fn tag(listen: &str) -> String {
    format!(r#""_meta":{{"io.modelcontextprotocol/subscriptionId":{}}}"#, id_of(listen))
}

/// The acknowledgement of a stream of changes.
fn ack(listen: &str, filter: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{{{},"notifications":{filter}}}}}"#,
        tag(listen)
    )
}

fn notification(method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"notifications/{method}","params":{params}}}"#)
}

fn request(id: &str, method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#)
}

/// A legacy session in front of a modern server, with its stream of changes open.
async fn ready(
    backs: &mut mpsc::UnboundedReceiver<Wire>,
    proxy: &taut::Proxy,
) -> (Wire, Wire, String) {
    let (mut front, mut back) = legacy_to_modern(proxy, backs, EVERYTHING).await;
    front.send(INITIALIZED).await;
    let listen = back.next().await;
    assert!(listen.contains(r#""method":"subscriptions/listen""#), "{listen}");
    let filter =
        r#"{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true}"#;
    assert!(listen.contains(&format!(r#""notifications":{filter}"#)), "{listen}");
    back.send(&ack(&listen, filter)).await;
    (front, back, listen)
}

// A legacy client, a modern server.

#[tokio::test]
async fn a_ping_of_a_legacy_client_is_answered_by_the_proxy() {
    let (builder, mut backs) = proxy();
    let proxy = builder.build();
    let (mut front, mut back, _) = ready(&mut backs, &proxy).await;
    front.send(&request("1", "ping", "{}")).await;
    assert_eq!(front.next().await, r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
    front.send(&request("2", "tools/list", "{}")).await;
    assert!(back.next().await.contains("tools/list"), "nothing came before it");
}

#[tokio::test]
async fn a_log_level_is_kept_and_sent_with_each_request() {
    let (builder, mut backs) = proxy();
    let proxy = builder.build();
    let (mut front, mut back, _) = ready(&mut backs, &proxy).await;
    front.send(&request("1", "logging/setLevel", r#"{"level":"loud"}"#)).await;
    assert!(front.next().await.contains(r#""id":1,"error":{"code":-32602"#));
    front.send(&request("2", "logging/setLevel", r#"{"level":"warning"}"#)).await;
    assert_eq!(front.next().await, r#"{"jsonrpc":"2.0","id":2,"result":{}}"#);
    front.send(&request("3", "tools/list", "{}")).await;
    let list = back.next().await;
    assert!(list.contains(r#""io.modelcontextprotocol/logLevel":"warning""#), "{list}");
    // A server without logging has no such method.
    let (mut front, _back) = legacy_to_modern(&proxy, &mut backs, r#"{"tools":{}}"#).await;
    front.send(&request("1", "logging/setLevel", r#"{"level":"warning"}"#)).await;
    assert!(front.next().await.contains(r#""id":1,"error":{"code":-32601"#));
}

/// The new stream is open before the old one ends, and while both tell of a change the client hears of it once.
#[tokio::test]
async fn subscriptions_become_one_stream_that_is_replaced() {
    let (builder, mut backs) = proxy();
    let proxy = builder.build();
    let (mut front, mut back, first) = ready(&mut backs, &proxy).await;
    front.send(&request("1", "resources/subscribe", r#"{"uri":"a:b"}"#)).await;
    let second = back.next().await;
    assert!(second.contains(r#""resourceSubscriptions":["a:b"]"#), "{second}");
    // The old one still counts.
    let changed =
        |listen: &str| notification("tools/list_changed", &format!("{{{}}}", tag(listen)));
    back.send(&changed(&first)).await;
    let told = front.next().await;
    assert_eq!(told, notification("tools/list_changed", "{}"), "without the mark of the stream");
    // Both tell of the same change.
    back.send(&ack(&second, r#"{"resourceSubscriptions":["a:b"]}"#)).await;
    back.send(&changed(&first)).await;
    back.send(&changed(&second)).await;
    let updated = format!(r#"{{{},"uri":"a:b"}}"#, tag(&second));
    back.send(&notification("resources/updated", &updated)).await;
    let mut heard = vec![front.next().await, front.next().await, front.next().await];
    heard.sort();
    let expected = [
        r#"{"jsonrpc":"2.0","id":1,"result":{}}"#.to_owned(),
        notification("resources/updated", r#"{"uri":"a:b"}"#),
        notification("tools/list_changed", "{}"),
    ];
    assert_eq!(heard, expected);
    let cancelled = back.next().await;
    assert!(cancelled.contains("notifications/cancelled"), "{cancelled}");
    assert!(cancelled.contains(&format!(r#""requestId":{}"#, id_of(&first))), "{cancelled}");

    // An address that the server does not acknowledge.
    front.send(&request("2", "resources/subscribe", r#"{"uri":"c:d"}"#)).await;
    let third = back.next().await;
    assert!(third.contains(r#""resourceSubscriptions":["a:b","c:d"]"#), "{third}");
    back.send(&ack(&third, r#"{"resourceSubscriptions":["a:b"]}"#)).await;
    let refused = front.next().await;
    assert!(refused.contains(r#""id":2,"error":{"code":-32602"#), "{refused}");
    assert!(back.next().await.contains("notifications/cancelled"));

    front.send(&request("3", "resources/unsubscribe", r#"{"uri":"a:b"}"#)).await;
    let fourth = back.next().await;
    assert!(fourth.contains("subscriptions/listen"), "{fourth}");
    assert!(!fourth.contains("resourceSubscriptions"), "{fourth}");
    back.send(&ack(&fourth, "{}")).await;
    assert_eq!(front.next().await, r#"{"jsonrpc":"2.0","id":3,"result":{}}"#);
}

/// By a result or by a notification; a client that may have missed something is told.
#[tokio::test(start_paused = true)]
async fn a_stream_that_the_server_ends_is_opened_again() {
    let (builder, mut backs) = proxy();
    let proxy = builder.build();
    let (mut front, mut back, mut listen) = ready(&mut backs, &proxy).await;
    for by_result in [true, false] {
        let end = match by_result {
            true => answer(&listen, r#"{"resultType":"complete"}"#),
            false => notification("cancelled", &format!(r#"{{"requestId":{}}}"#, id_of(&listen))),
        };
        back.send(&end).await;
        listen = back.next().await;
        if !by_result {
            // The call itself has no answer, so it is withdrawn.
            assert!(listen.contains("notifications/cancelled"), "{listen}");
            listen = back.next().await;
        }
        assert!(listen.contains("subscriptions/listen"), "{listen}");
        back.send(&ack(&listen, r#"{"toolsListChanged":true}"#)).await;
        let mut told = vec![front.next().await, front.next().await, front.next().await];
        told.sort();
        let lists = ["prompts", "resources", "tools"];
        let expected = lists.map(|list| {
            format!(r#"{{"jsonrpc":"2.0","method":"notifications/{list}/list_changed"}}"#)
        });
        assert_eq!(told, expected);
    }
}

#[tokio::test]
async fn a_change_of_roots_is_not_told_to_a_modern_server() {
    let (builder, mut backs) = proxy();
    let proxy = builder.build();
    let (mut front, mut back, _) = ready(&mut backs, &proxy).await;
    front.send(&notification("roots/list_changed", "{}")).await;
    front.send(&request("1", "tools/list", "{}")).await;
    assert!(back.next().await.contains("tools/list"), "nothing came before it");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_asks_for_patience_is_asked_again_with_its_state() {
    let (builder, mut backs) = proxy();
    let proxy = builder.build();
    let (mut front, mut back, _) = ready(&mut backs, &proxy).await;
    front.send(&request("1", "tools/call", r#"{"name":"t"}"#)).await;
    let call = back.next().await;
    back.send(&answer(&call, r#"{"resultType":"input_required","requestState":"\u2028s"}"#)).await;
    let again = back.next().await;
    assert!(
        again.contains(r#""name":"t""#) && again.contains(r#""requestState":"\u2028s""#),
        "{again}"
    );
    assert!(!again.contains("inputResponses") && id_of(&again) != id_of(&call), "{again}");
    back.send(&answer(&again, r#"{"resultType":"complete","content":[]}"#)).await;
    assert_eq!(front.next().await, r#"{"jsonrpc":"2.0","id":1,"result":{"content":[]}}"#);
}

/// All at once, each as a request of its own; the answers go back under the server's keys.
#[tokio::test]
async fn what_a_modern_server_asks_becomes_requests_and_one_retry() {
    let (builder, mut backs) = proxy();
    let proxy = builder.build();
    let (mut front, mut back, _) = ready(&mut backs, &proxy).await;
    let token = r#"{"name":"t","_meta":{"progressToken":"p"}}"#;
    front.send(&request("1", "tools/call", token)).await;
    let call = back.next().await;
    let progress = |call: &str, value: &str| {
        notification(
            "progress",
            &format!(r#"{{"progressToken":{},"progress":{value},"total":9}}"#, id_of(call)),
        )
    };
    back.send(&progress(&call, "3")).await;
    let told = front.next().await;
    assert_eq!(told, notification("progress", r#"{"progressToken":"p","progress":3,"total":9}"#));
    let asks = r#"{"resultType":"input_required","requestState":"s","inputRequests":{"a":{"method":"roots/list"},"b":{"method":"roots/list","params":{}}}}"#;
    back.send(&answer(&call, asks)).await;
    for n in 1..=2 {
        let asked = front.next().await;
        assert!(asked.contains(r#""method":"roots/list""#), "{asked}");
        front.send(&answer(&asked, &format!(r#"{{"roots":[],"n":{n}}}"#))).await;
    }
    let again = back.next().await;
    let answers =
        r#""inputResponses":{"a":{"roots":[],"n":1},"b":{"roots":[],"n":2}},"requestState":"s""#;
    assert!(again.contains(answers), "{again}");
    // A later round begins at 0; the client sees one rise.
    back.send(&progress(&again, "1")).await;
    assert_eq!(
        front.next().await,
        notification("progress", r#"{"progressToken":"p","progress":4}"#)
    );
    back.send(&answer(&again, r#"{"resultType":"complete","content":[]}"#)).await;
    assert_eq!(front.next().await, r#"{"jsonrpc":"2.0","id":1,"result":{"content":[]}}"#);
}

#[tokio::test]
async fn a_question_that_the_client_refuses_ends_its_request() {
    let (builder, mut backs) = proxy();
    let proxy = builder.build();
    let (mut front, mut back, _) = ready(&mut backs, &proxy).await;
    let asks = r#"{"resultType":"input_required","inputRequests":{"a":{"method":"roots/list"}}}"#;
    for (id, method) in [("1", "tools/call"), ("2", "prompts/get")] {
        front.send(&request(id, method, r#"{"name":"t"}"#)).await;
        let call = back.next().await;
        back.send(&answer(&call, asks)).await;
        let asked = front.next().await;
        front.send(&refusal(&asked, r#"{"code":-1,"message":"not today"}"#)).await;
        let ended = front.next().await;
        assert!(ended.contains("not today"), "{ended}");
        let kind = if id == "1" { r#""isError":true"# } else { r#""error":{"code":-32603"# };
        assert!(ended.contains(&format!(r#""id":{id},"#)) && ended.contains(kind), "{ended}");
    }
    // What the client does not offer is not asked at all.
    let form = r#"{"resultType":"input_required","inputRequests":{"a":{"method":"elicitation/create","params":{}}}}"#;
    front.send(&request("3", "tools/call", r#"{"name":"t"}"#)).await;
    let call = back.next().await;
    back.send(&answer(&call, form)).await;
    let ended = front.next().await;
    assert!(ended.contains(r#""id":3,"#) && ended.contains(r#""isError":true"#), "{ended}");
}

/// The call on the server, and what was asked of the client.
#[tokio::test]
async fn a_cancelled_request_is_withdrawn_on_both_sides() {
    let (builder, mut backs) = proxy();
    let proxy = builder.build();
    let (mut front, mut back, _) = ready(&mut backs, &proxy).await;
    front.send(&request("1", "tools/call", r#"{"name":"t"}"#)).await;
    let call = back.next().await;
    front.send(&notification("cancelled", r#"{"requestId":1}"#)).await;
    let cancelled = back.next().await;
    assert!(cancelled.contains(&format!(r#""requestId":{}"#, id_of(&call))), "{cancelled}");

    front.send(&request("2", "tools/call", r#"{"name":"t"}"#)).await;
    let call = back.next().await;
    let asks = r#"{"resultType":"input_required","inputRequests":{"a":{"method":"roots/list"}}}"#;
    back.send(&answer(&call, asks)).await;
    let asked = front.next().await;
    front.send(&notification("cancelled", r#"{"requestId":2}"#)).await;
    let withdrawn = front.next().await;
    assert!(withdrawn.contains("notifications/cancelled"), "{withdrawn}");
    assert!(withdrawn.contains(&format!(r#""requestId":{}"#, id_of(&asked))), "{withdrawn}");
}

#[tokio::test]
async fn a_batch_of_a_legacy_client_is_split_and_answered_as_one() {
    let (builder, mut backs) = proxy();
    let proxy = builder.build();
    let mut front = front(&proxy);
    front.send(&INITIALIZE.replace("2025-06-18", "2025-03-26")).await;
    let mut back = opened_modern(&mut backs, EVERYTHING).await;
    assert!(front.next().await.contains("2025-03-26"));
    let batch = format!(
        "[{},{},{}]",
        request("1", "tools/list", "{}"),
        notification("roots/list_changed", "{}"),
        request("2", "prompts/list", "{}")
    );
    front.send(&batch).await;
    for (method, list) in [("tools/list", "tools"), ("prompts/list", "prompts")] {
        let asked = back.next().await;
        assert!(asked.contains(method) && asked.starts_with('{'), "{asked}");
        back.send(&answer(&asked, &format!(r#"{{"resultType":"complete","{list}":[]}}"#))).await;
    }
    let answered = front.next().await;
    assert!(answered.starts_with('[') && answered.ends_with(']'), "{answered}");
    for part in [r#""id":1,"result":{"tools":[]}"#, r#""id":2,"result":{"prompts":[]}"#] {
        assert!(answered.contains(part), "{answered}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_modern_server_that_dies_is_opened_again_and_listened_to() {
    let (builder, mut backs) = proxy();
    let proxy = builder.build();
    let (mut front, mut back, _) = ready(&mut backs, &proxy).await;
    front.send(&request("1", "tools/call", r#"{"name":"t"}"#)).await;
    back.next().await;
    drop(back);
    let failed = front.next().await;
    assert!(failed.contains(r#""id":1,"error":{"code":-32603"#), "{failed}");
    let mut back = opened_modern(&mut backs, r#"{"tools":{"listChanged":true}}"#).await;
    let told = front.next().await;
    assert_eq!(told, r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#);
    let listen = back.next().await;
    assert!(listen.contains("subscriptions/listen"), "{listen}");
    front.send(&request("2", "tools/list", "{}")).await;
    let list = back.next().await;
    back.send(&answer(&list, r#"{"resultType":"complete","tools":[]}"#)).await;
    assert_eq!(front.next().await, r#"{"jsonrpc":"2.0","id":2,"result":{"tools":[]}}"#);
}

#[tokio::test]
async fn results_and_errors_that_a_legacy_client_cannot_read_are_errors() {
    let (builder, mut backs) = proxy();
    let proxy = builder.build();
    let (mut front, mut back, _) = ready(&mut backs, &proxy).await;
    let rows = [
        ("tools/call", answer as fn(&str, &str) -> String, r#"{"resultType":"task"}"#, "-32603"),
        ("prompts/get", refusal, r#"{"code":-32021,"message":"m"}"#, "-32603"),
        ("tools/call", refusal, r#"{"code":-32021,"message":"m"}"#, r#""isError":true"#),
        ("tools/list", refusal, r#"{"code":-32022,"message":"m"}"#, "-32603"),
    ];
    for (method, say, said, expected) in rows {
        front.send(&request("1", method, r#"{"name":"t"}"#)).await;
        let asked = back.next().await;
        back.send(&say(&asked, said)).await;
        let told = front.next().await;
        assert!(told.contains(expected), "{method} {said}: {told}");
    }
}

// A modern client, a legacy server.

/// A modern client whose first call is open on a legacy server.
async fn calling(
    proxy: &taut::Proxy,
    backs: &mut mpsc::UnboundedReceiver<Wire>,
) -> (Wire, Wire, String) {
    let mut front = front(proxy);
    front.send(&modern("1", "tools/call", r#""name":"t","#)).await;
    let mut back = opened_legacy(backs, EVERYTHING).await;
    let call = back.next().await;
    (front, back, call)
}

/// The handle that a modern client resumes a call with.
fn state_of(line: &str) -> String {
    let at = line.find(r#""requestState":""#).unwrap_or_else(|| panic!("{line}")) + 16;
    line[at..at + line[at..].find('"').unwrap()].to_owned()
}

/// A list has no place for a question in the modern era. A legacy server that asks for roots once it is
/// ready gets a refusal, and the list comes.
#[tokio::test]
async fn a_question_during_a_list_is_refused_and_the_list_comes() {
    for (method, members) in [
        ("tools/list", ""),
        ("resources/list", ""),
        ("completion/complete", r#""ref":{"type":"ref/prompt","name":"p"},"argument":{},"#),
    ] {
        let (builder, mut backs) = proxy();
        let proxy = builder.build();
        let mut front = front(&proxy);
        front.send(&modern("1", method, members)).await;
        let mut back = opened_legacy(&mut backs, r#"{"tools":{},"resources":{}}"#).await;
        let request = back.next().await;
        back.send(r#"{"jsonrpc":"2.0","id":"q","method":"roots/list"}"#).await;
        let refused = back.next().await;
        assert!(refused.contains(r#""id":"q","error""#), "{refused}");
        back.send(&answer(&request, r#"{"own":1}"#)).await;
        let answered = front.next().await;
        assert!(answered.contains(r#""id":1,"result":{"own":1,"#), "{answered}");
    }
}

#[tokio::test]
async fn what_is_wrong_with_a_modern_envelope_is_said_by_the_proxy() {
    let (builder, mut backs) = proxy();
    let proxy = builder.build();
    let (mut front, mut back, call) = calling(&proxy, &mut backs).await;
    let key = "io.modelcontextprotocol/";
    let rows = [
        (format!(r#"{{"_meta":{{"{key}protocolVersion":"2026-07-28"}}}}"#), "-32602"),
        (modern_params("", "7"), "-32602"),
        (modern_params("", "{}").replace("2026-07-28", "2027-01-01"), "-32022"),
    ];
    for (params, code) in rows {
        front.send(&request("2", "tools/list", &params)).await;
        let refused = front.next().await;
        assert!(
            refused.contains(&format!(r#""id":2,"error":{{"code":{code}"#)),
            "{params}: {refused}"
        );
    }
    for method in ["ping", "logging/setLevel", "resources/subscribe"] {
        front.send(&modern("3", method, "")).await;
        let refused = front.next().await;
        assert!(refused.contains(r#""id":3,"error":{"code":-32601"#), "{method}: {refused}");
    }
    // Nothing of it has reached the server.
    front.send(&notification("cancelled", r#"{"requestId":1}"#)).await;
    let cancelled = back.next().await;
    assert!(cancelled.contains(&format!(r#""requestId":{}"#, id_of(&call))), "{cancelled}");
}

/// One level for all, the most talkative; a line goes to a request only where it is clear whose it is.
#[tokio::test]
async fn log_levels_of_several_requests_are_one_on_the_server() {
    let (builder, mut backs) = proxy();
    let proxy = builder.build();
    let mut front = front(&proxy);
    let call = |id: &str, level: &str| {
        let level = format!(r#""_meta":{{"io.modelcontextprotocol/logLevel":"{level}","#);
        modern(id, "tools/call", r#""name":"t","#).replace(r#""_meta":{"#, &level)
    };
    front.send(&call("1", "error")).await;
    let mut back = opened_legacy(&mut backs, EVERYTHING).await;
    let set = back.next().await;
    assert!(set.contains("logging/setLevel") && set.contains("error"), "{set}");
    let first = back.next().await;
    front.send(&call("2", "debug")).await;
    let set = back.next().await;
    assert!(set.contains("logging/setLevel") && set.contains("debug"), "{set}");
    let second = back.next().await;
    front.send(&call("3", "info")).await;
    let third = back.next().await;
    assert!(third.contains("tools/call"), "no new level: {third}");
    let line = |level: &str, n: u32| {
        notification("message", &format!(r#"{{"level":"{level}","data":{n}}}"#))
    };
    // Only the second wants this one; this one all want, so nobody gets it.
    back.send(&line("debug", 1)).await;
    assert_eq!(front.next().await, line("debug", 1));
    back.send(&line("error", 2)).await;
    for (id, call) in [("1", &first), ("2", &second)] {
        back.send(&answer(call, r#"{"content":[]}"#)).await;
        let answered = front.next().await;
        assert!(answered.contains(&format!(r#""id":{id},"result""#)), "{answered}");
    }
    // Only the third is left, and wants no debug lines.
    back.send(&line("debug", 3)).await;
    back.send(&line("error", 4)).await;
    assert_eq!(front.next().await, line("error", 4));
}

/// RES-10: a change inside of what is followed counts; an address that the server refuses is left out.
#[tokio::test]
async fn a_stream_of_changes_is_kept_by_the_proxy() {
    let (builder, mut backs) = proxy();
    let proxy = builder.build();
    let (mut front, mut back, _) = calling(&proxy, &mut backs).await;
    let updated = |uri: &str| notification("resources/updated", &format!(r#"{{"uri":"{uri}"}}"#));
    // Nobody listens: nothing is told.
    back.send(&notification("tools/list_changed", "{}")).await;
    back.send(&updated("a:dir")).await;
    let filter =
        r#""notifications":{"toolsListChanged":true,"resourceSubscriptions":["a:dir","a:bad"]},"#;
    front.send(&modern("\"s\"", "subscriptions/listen", filter)).await;
    let subscribe = back.next().await;
    assert!(
        subscribe.contains("resources/subscribe") && subscribe.contains("a:dir"),
        "{subscribe}"
    );
    back.send(&answer(&subscribe, "{}")).await;
    let subscribe = back.next().await;
    assert!(subscribe.contains("a:bad"), "{subscribe}");
    back.send(&refusal(&subscribe, r#"{"code":-32002,"message":"no"}"#)).await;
    let mark = r#""_meta":{"io.modelcontextprotocol/subscriptionId":"s"}"#;
    let acknowledged = front.next().await;
    let filter = r#"{"toolsListChanged":true,"resourceSubscriptions":["a:dir"]}"#;
    assert_eq!(
        acknowledged,
        notification(
            "subscriptions/acknowledged",
            &format!(r#"{{{mark},"notifications":{filter}}}"#)
        )
    );
    // Not followed: the file beside it, and prompts.
    for other in ["a:dirt", "a:bad", "a"] {
        back.send(&updated(other)).await;
    }
    back.send(&notification("prompts/list_changed", "{}")).await;
    for inside in ["a:dir", "a:dir/file"] {
        back.send(&updated(inside)).await;
        let told = front.next().await;
        let expected = format!(r#"{{"uri":"{inside}",{mark}}}"#);
        assert_eq!(told, notification("resources/updated", &expected));
    }
    back.send(&notification("tools/list_changed", "{}")).await;
    assert_eq!(front.next().await, notification("tools/list_changed", &format!("{{{mark}}}")));
    // The end of it: nothing is answered, and the server is told.
    front.send(&notification("cancelled", r#"{"requestId":"s"}"#)).await;
    let left = back.next().await;
    assert!(left.contains("resources/unsubscribe") && left.contains("a:dir"), "{left}");
}

/// What a server asks at once travels together, and the retry answers what it answers.
#[tokio::test]
async fn several_questions_of_a_call_are_one_map_and_the_token_of_the_retry_counts() {
    let (builder, mut backs) = proxy();
    let proxy = builder.build();
    let (mut front, mut back, call) = calling(&proxy, &mut backs).await;
    back.send(&format!(
        "{}\n{}",
        request("\"q1\"", "roots/list", "{}"),
        request(
            "\"q2\"",
            "elicitation/create",
            r#"{"message":"?","requestedSchema":{},"x":1e400}"#
        )
    ))
    .await;
    let asked = front.next().await;
    assert!(asked.contains(r#""resultType":"input_required""#), "{asked}");
    let questions = r#""inputRequests":{"q1":{"method":"roots/list","params":{}},"q2":{"method":"elicitation/create","params":{"message":"?","requestedSchema":{},"x":1e400}}}"#;
    assert!(asked.contains(questions), "{asked}");
    let retry = |id: &str, state: &str, answers: &str| {
        let members = format!(r#""name":"t","requestState":"{state}","inputResponses":{answers},"#);
        modern(id, "tools/call", &members)
    };
    // One answer only: the other question is asked again.
    front.send(&retry("2", &state_of(&asked), r#"{"q1":{"roots":[],"n":-0}}"#)).await;
    assert_eq!(back.next().await, r#"{"jsonrpc":"2.0","id":"q1","result":{"roots":[],"n":-0}}"#);
    let asked = front.next().await;
    assert!(asked.contains(r#""id":2,"#) && asked.contains(r#""inputRequests":{"q2":"#), "{asked}");
    // Nobody has asked for progress so far; now somebody does.
    let last = retry("3", &state_of(&asked), r#"{"q2":{"action":"decline"}}"#);
    front.send(&last.replace(r#""_meta":{"#, r#""_meta":{"progressToken":"late","#)).await;
    assert_eq!(back.next().await, r#"{"jsonrpc":"2.0","id":"q2","result":{"action":"decline"}}"#);
    back.send(&answer(&call, r#"{"content":[]}"#)).await;
    let ended = front.next().await;
    assert!(ended.contains(r#""id":3,"result":{"content":[],"resultType":"complete""#), "{ended}");
}

/// The token of the request that goes on with the call is the one that reports come under.
#[tokio::test]
async fn progress_of_a_resumed_call_comes_under_the_token_of_the_retry() {
    let (builder, mut backs) = proxy();
    let proxy = builder.build();
    let mut front = front(&proxy);
    let with_token = |line: String, token: &str| {
        line.replace(r#""_meta":{"#, &format!(r#""_meta":{{"progressToken":"{token}","#))
    };
    front.send(&with_token(modern("1", "tools/call", r#""name":"t","#), "one")).await;
    let mut back = opened_legacy(&mut backs, EVERYTHING).await;
    let call = back.next().await;
    let progress = |token: &str, value: u32| {
        notification("progress", &format!(r#"{{"progressToken":{token},"progress":{value}}}"#))
    };
    back.send(&progress(&id_of(&call), 1)).await;
    assert_eq!(front.next().await, progress("\"one\"", 1));
    back.send(&request("\"q\"", "roots/list", "{}")).await;
    let asked = front.next().await;
    // Between the two there is nobody to tell.
    back.send(&progress(&id_of(&call), 2)).await;
    let members = format!(
        r#""name":"t","requestState":"{}","inputResponses":{{"q1":{{"roots":[]}}}},"#,
        state_of(&asked)
    );
    front.send(&with_token(modern("2", "tools/call", &members), "two")).await;
    back.next().await;
    back.send(&progress(&id_of(&call), 3)).await;
    assert_eq!(front.next().await, progress("\"two\"", 3));
}

#[tokio::test]
async fn a_question_outside_of_any_request_is_refused() {
    let (builder, mut backs) = proxy();
    let proxy = builder.build();
    let (mut front, mut back, call) = calling(&proxy, &mut backs).await;
    back.send(&answer(&call, r#"{"content":[]}"#)).await;
    front.next().await;
    back.send(&request("\"q\"", "roots/list", "{}")).await;
    let refused = back.next().await;
    assert!(refused.contains(r#""id":"q","error":{"code":-32603"#), "{refused}");
    back.send(&request("\"p\"", "ping", "{}")).await;
    assert_eq!(back.next().await, r#"{"jsonrpc":"2.0","id":"p","result":{}}"#);
}

/// A question that the request at hand does not allow; the call says so if it fails.
#[tokio::test]
async fn a_question_that_the_request_does_not_allow_is_refused() {
    let (builder, mut backs) = proxy();
    let proxy = builder.build();
    let mut front = front(&proxy);
    front.send(&request("1", "tools/call", &modern_params(r#""name":"t","#, "{}"))).await;
    let mut back = opened_legacy(&mut backs, EVERYTHING).await;
    let call = back.next().await;
    back.send(&request("\"q\"", "elicitation/create", r#"{"mode":"url","url":"u"}"#)).await;
    let refused = back.next().await;
    assert!(refused.contains(r#""id":"q","error":{"code":-32601"#), "{refused}");
    back.send(&answer(&call, r#"{"content":[],"isError":true}"#)).await;
    let failed = front.next().await;
    assert!(failed.contains(r#""code":-32021"#), "{failed}");
    assert!(failed.contains(r#""requiredCapabilities":{"elicitation":{"url":{}}}"#), "{failed}");
}

#[tokio::test]
async fn pages_that_an_error_names_are_asked_for_and_the_call_is_made_anew() {
    let (builder, mut backs) = proxy();
    let proxy = builder.build();
    let (mut front, mut back, call) = calling(&proxy, &mut backs).await;
    let error = r#"{"code":-32042,"message":"first there","data":{"elicitations":[{"mode":"url","elicitationId":"e","url":"https://a.example/","message":"m"}]}}"#;
    back.send(&refusal(&call, error)).await;
    let asked = front.next().await;
    let page = r#""inputRequests":{"q1":{"method":"elicitation/create","params":{"mode":"url","url":"https://a.example/","message":"m"}}}"#;
    assert!(asked.contains(page), "{asked}");
    let members = format!(
        r#""name":"t","requestState":"{}","inputResponses":{{"q1":{{"action":"accept"}}}},"#,
        state_of(&asked)
    );
    front.send(&modern("2", "tools/call", &members)).await;
    let anew = back.next().await;
    assert!(anew.contains(r#""method":"tools/call","params":{"name":"t"}"#), "{anew}");
    assert_ne!(id_of(&anew), id_of(&call));
    back.send(&answer(&anew, r#"{"content":[]}"#)).await;
    assert!(front.next().await.contains(r#""id":2,"result":{"content":[]"#));
}

/// Its `requestState` is worth nothing any more, and the client is told to start again.
#[tokio::test]
async fn a_parked_call_ends_with_its_server() {
    let (builder, mut backs) = proxy();
    let (events, mut told) = mpsc::unbounded_channel();
    let proxy = builder
        .on_event(move |event| {
            let _ = events.send(event.to_string());
        })
        .build();
    let (mut front, mut back, _) = calling(&proxy, &mut backs).await;
    back.send(&request("\"q\"", "roots/list", "{}")).await;
    let asked = front.next().await;
    drop(back);
    while !told.recv().await.unwrap().contains("lost") {}
    let members = format!(
        r#""name":"t","requestState":"{}","inputResponses":{{"q1":{{"roots":[]}}}},"#,
        state_of(&asked)
    );
    front.send(&modern("2", "tools/call", &members)).await;
    let mut _back = opened_legacy(&mut backs, EVERYTHING).await;
    let refused = front.next().await;
    assert!(refused.contains(r#""id":2,"error":{"code":-32602"#), "{refused}");
}

/// The server no longer wants the answer of a parked question: the retry is not asked again, and gets the result.
#[tokio::test]
async fn a_question_that_the_server_withdraws_is_not_asked_again() {
    let (builder, mut backs) = proxy();
    let proxy = builder.build();
    let (mut front, mut back, call) = calling(&proxy, &mut backs).await;
    back.send(&request("\"q\"", "roots/list", "{}")).await;
    let asked = front.next().await;
    back.send(&notification("cancelled", r#"{"requestId":"q"}"#)).await;
    back.send(&request("\"p\"", "ping", "{}")).await;
    assert!(back.next().await.contains(r#""id":"p""#), "the withdrawal was read before it");
    let members = format!(r#""name":"t","requestState":"{}","#, state_of(&asked));
    front.send(&modern("2", "tools/call", &members)).await;
    back.send(&answer(&call, r#"{"content":[]}"#)).await;
    let answered = front.next().await;
    assert!(answered.contains(r#""id":2,"result":{"content":[]"#), "{answered}");
}

/// A withdrawal that comes too late for its question is nobody's: to a client the id would mean something else.
#[tokio::test]
async fn a_late_withdrawal_of_a_question_reaches_no_client() {
    let (builder, mut backs) = proxy();
    let proxy = builder.build();
    let (mut front, mut back) = legacy(&proxy, &mut backs).await;
    back.send(&request("1", "roots/list", "{}")).await;
    let asked = front.next().await;
    front.send(&answer(&asked, r#"{"roots":[]}"#)).await;
    assert!(back.next().await.contains(r#""id":1,"result""#));
    back.send(&notification("cancelled", r#"{"requestId":1}"#)).await;
    back.send(&notification("own", "{}")).await;
    assert_eq!(front.next().await, notification("own", "{}"));
}

// Equal eras.

/// CAN-11: the server's own end of a stream, under the client's own id.
#[tokio::test]
async fn a_modern_server_ends_the_stream_of_a_modern_client() {
    let (builder, mut backs) = proxy();
    let proxy = builder.client(Client::builder().probe_timeout(Duration::from_secs(60))).build();
    let mut front = front(&proxy);
    let filter = r#""notifications":{"toolsListChanged":true},"#;
    front.send(&modern("\"s\"", "subscriptions/listen", filter)).await;
    let mut back = backs.recv().await.unwrap();
    let discover = back.next().await;
    let discovery = r#"{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true}},"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"b","version":"2"}}}"#;
    back.send(&answer(&discover, discovery)).await;
    let listen = back.next().await;
    back.send(&ack(&listen, r#"{"toolsListChanged":true}"#)).await;
    let acknowledged = front.next().await;
    assert!(
        acknowledged.contains(r#""io.modelcontextprotocol/subscriptionId":"s""#),
        "{acknowledged}"
    );
    back.send(&notification(
        "cancelled",
        &format!(r#"{{"requestId":{},"reason":"\u2028"}}"#, id_of(&listen)),
    ))
    .await;
    assert_eq!(
        front.next().await,
        notification("cancelled", r#"{"requestId":"s","reason":"\u2028"}"#)
    );
    // It is withdrawn at the server, gets no answer, and its id can be used again.
    front.send(&modern("\"s\"", "tools/list", "")).await;
    let mut list = back.next().await;
    if list.contains("notifications/cancelled") {
        list = back.next().await;
    }
    back.send(&answer(&list, r#"{"resultType":"complete","tools":[]}"#)).await;
    let answered = front.next().await;
    assert!(
        answered.contains(r#""id":"s","result":{"resultType":"complete","tools":[]"#),
        "{answered}"
    );
}
