//! The bounds of the proxy that are settings, each with a small value: what strikes, and what it says.

use taut::{Client, Revision};

use crate::raw::{
    Wire, answer, front, legacy_to_modern, modern, modern_params, opened_legacy, proxy,
};

const RESOURCES: &str = r#"{"resources":{"subscribe":true}}"#;

/// The capabilities that `raw::modern` declares.
const EVERYTHING: &str = r#"{"roots":{},"sampling":{},"elicitation":{"form":{},"url":{}}}"#;

async fn call(front: &mut Wire, id: usize, members: &str) {
    front.send(&modern(&id.to_string(), "tools/call", members)).await;
}

#[tokio::test]
async fn requests_that_wait_for_the_server_are_bounded_in_bytes() {
    let members = r#""name":"t","#;
    let (size, all) = (modern_params(members, EVERYTHING).len(), 8);
    for fit in [1, 3] {
        let (builder, mut backs) = proxy();
        // Each costs 256 bytes more than it has.
        let proxy = builder.max_waiting_bytes(fit * (size + 256)).build();
        let mut front = front(&proxy);
        for id in 0..all {
            call(&mut front, id, members).await;
        }
        for id in fit..all {
            let refused = front.next().await;
            assert!(refused.contains(&format!(r#""id":{id},"error""#)), "{refused}");
            assert!(refused.contains("ProxyBuilder::max_waiting_bytes"), "{refused}");
        }
        let mut back = opened_legacy(&mut backs, r#"{"tools":{}}"#).await;
        for id in 0..fit {
            let request = back.next().await;
            back.send(&answer(&request, r#"{"content":[]}"#)).await;
            let answered = front.next().await;
            assert!(answered.contains(&format!(r#""id":{id},"result""#)), "{answered}");
        }
        // Nothing waits any more, so there is room for another.
        call(&mut front, all, members).await;
        assert!(back.next().await.contains("tools/call"));
    }
}

/// A modern client of a legacy server: the proxy keeps the stream.
#[tokio::test]
async fn the_addresses_of_a_stream_of_changes_are_bounded_in_bytes() {
    let (builder, mut backs) = proxy();
    let proxy = builder.max_subscription_bytes(2 * (3 + 64)).build();
    let mut front = front(&proxy);
    let listen = |id: &str, uris: &str| {
        let members = format!(r#""notifications":{{"resourceSubscriptions":{uris}}},"#);
        modern(id, "subscriptions/listen", &members)
    };
    front.send(&listen("1", r#"["a:1","a:2","a:3"]"#)).await;
    let mut back = opened_legacy(&mut backs, RESOURCES).await;
    for uri in ["a:1", "a:2"] {
        let subscribe = back.next().await;
        assert!(subscribe.contains(uri), "{subscribe}");
        back.send(&answer(&subscribe, "{}")).await;
    }
    let refused = front.next().await;
    assert!(refused.contains(r#""id":1,"error":{"code":-32602"#), "{refused}");
    assert!(refused.contains("ProxyBuilder::max_subscription_bytes"), "{refused}");
    // What it had followed is followed no longer, and makes room.
    for uri in ["a:1", "a:2"] {
        let left = back.next().await;
        assert!(left.contains("resources/unsubscribe") && left.contains(uri), "{left}");
    }
    front.send(&listen("2", r#"["a:3"]"#)).await;
    let subscribe = back.next().await;
    assert!(subscribe.contains("resources/subscribe") && subscribe.contains("a:3"), "{subscribe}");
}

/// A legacy client of a modern server: the session keeps the addresses.
#[tokio::test]
async fn the_addresses_of_a_legacy_session_are_bounded_in_bytes() {
    let (builder, mut backs) = proxy();
    let proxy = builder.max_subscription_bytes(3 + 64).build();
    let (mut front, mut back) = legacy_to_modern(&proxy, &mut backs, RESOURCES).await;
    let subscribe = |id: u64, uri: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"resources/subscribe","params":{{"uri":"{uri}"}}}}"#
        )
    };
    front.send(&subscribe(1, "a:1")).await;
    let listen = back.next().await;
    assert!(listen.contains(r#""resourceSubscriptions":["a:1"]"#), "{listen}");
    front.send(&subscribe(2, "a:2")).await;
    let refused = front.next().await;
    assert!(refused.contains(r#""id":2,"error":{"code":-32602"#), "{refused}");
    assert!(refused.contains("ProxyBuilder::max_subscription_bytes"), "{refused}");
}

/// A retry goes to the connection that its state came from, as long as the state is remembered.
#[tokio::test]
async fn the_states_of_modern_servers_are_bounded_in_number() {
    for (remembered, same) in [(2, true), (1, false)] {
        let (builder, mut backs) = proxy();
        let modern_only = Client::builder().revision(Revision::MODERN);
        let builder = builder.client(modern_only).children(2).max_request_states(remembered);
        let proxy = builder.build();
        let mut front = front(&proxy);
        call(&mut front, 0, r#""name":"t","#).await;
        let mut back = backs.recv().await.unwrap();
        let discover = back.next().await;
        assert!(discover.contains("server/discover"), "{discover}");
        let discovery = r#"{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}"#;
        back.send(&answer(&discover, discovery)).await;
        for state in ["s1", "s2"] {
            let request = back.next().await;
            let result = format!(r#"{{"resultType":"input_required","requestState":"{state}"}}"#);
            back.send(&answer(&request, &result)).await;
            assert!(front.next().await.contains(state));
            call(&mut front, 1, r#""name":"t","#).await;
        }
        // The last one stays open, so a request without a state would go to another connection.
        back.next().await;
        call(&mut front, 2, r#""name":"t","requestState":"s1","#).await;
        if same {
            assert!(back.next().await.contains("s1"));
        } else {
            assert!(backs.recv().await.is_some(), "a second connection");
        }
    }
}
