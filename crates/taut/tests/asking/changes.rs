//! Lists that change, as a legacy session hears of it: unasked for lists, as subscribed for resources.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use taut::{NoArgs, Resource, Server};

use crate::fixture::named;
use crate::host::{Host, MODERN, REVISIONS};

const LONG: Duration = Duration::from_secs(60);

/// TOL-24, RES-15: each list in its own words; and a request sees what is there now.
#[tokio::test(start_paused = true)]
async fn tol_24_a_legacy_session_is_told_of_each_list_that_changes() {
    let server = Arc::new(named("changing"));
    let changes = server.changes();
    let mut host = Host::new(&server, "2025-11-25", json!({})).await;
    let mut notes = Vec::new();
    changes.add_tool(("new", "Tool new."), async |_: NoArgs, _| "new").unwrap();
    notes.push(host.wire.next().await);
    assert_eq!(host.call("new", json!({})).await["result"]["content"][0]["text"], "new");
    changes.add_resource(Resource::new("a:new", "new"), async |_| "new");
    notes.push(host.wire.next().await);
    changes.add_prompt("new", async |_: NoArgs, _| "new");
    notes.push(host.wire.next().await);
    assert!(changes.remove_tool("new") && !changes.remove_tool("new"));
    notes.push(host.wire.next().await);
    assert_eq!(host.call("new", json!({})).await["error"]["code"], -32602);
    assert!(changes.remove_resource("a:new") && !changes.remove_resource("a:new"));
    notes.push(host.wire.next().await);
    assert!(changes.remove_prompt("new") && !changes.remove_prompt("new"));
    notes.push(host.wire.next().await);
    let methods: Vec<_> = notes.iter().map(|note| note["method"].as_str().unwrap()).collect();
    let list = |name: &str| format!("notifications/{name}/list_changed");
    let wanted = ["tools", "resources", "prompts", "tools", "resources", "prompts"].map(list);
    assert_eq!(methods, wanted);
    assert!(notes.iter().all(|note| note.get("id").is_none()));
    assert!(host.wire.is_silent(LONG).await, "what was not there was not removed");
}

/// LIF-10: before `initialized` nothing is said unasked.
#[tokio::test(start_paused = true)]
async fn lif_10_a_session_that_is_not_initialized_hears_of_no_change() {
    let server = Arc::new(named("changing"));
    let mut wire = crate::wire::Wire::to_shared(&server);
    let params = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": { "name": "host", "version": "1" },
    });
    wire.send(json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params })).await;
    wire.next().await;
    server.changes().remove_tool("touch");
    assert!(wire.is_silent(LONG).await);
    wire.notify("notifications/initialized", json!({})).await;
    assert!(wire.is_silent(LONG).await, "nor of what was before");
    server.changes().remove_tool("add");
    assert_eq!(wire.next().await["method"], "notifications/tools/list_changed");
}

/// TOL-25, SUB-04: nor does anybody who has not opened a session and does not listen.
#[tokio::test(start_paused = true)]
async fn tol_25_a_modern_client_that_does_not_listen_hears_of_no_change() {
    let server = Arc::new(named("changing"));
    let mut host = Host::new(&server, MODERN, json!({})).await;
    host.call("add", json!({})).await;
    server.changes().resource_updated("a:b");
    assert!(host.wire.is_silent(LONG).await);
}

/// RES-07, RES-08
#[tokio::test(start_paused = true)]
async fn res_07_08_a_legacy_session_hears_of_the_resources_it_follows_until_it_does_not() {
    let server = Arc::new(named("changing"));
    let changes = server.changes();
    let mut host = Host::new(&server, "2025-06-18", json!({})).await;
    let uri = json!({ "uri": "a:b" });
    changes.resource_updated("a:b");
    assert!(host.wire.is_silent(LONG).await);
    assert_eq!(host.request("resources/subscribe", uri.clone()).await["result"], json!({}));
    changes.resource_updated("a:b");
    changes.resource_updated("a:other");
    let note = host.wire.next().await;
    assert_eq!(note["method"], "notifications/resources/updated");
    assert_eq!(note["params"], uri);
    assert!(host.wire.is_silent(LONG).await);
    assert_eq!(host.request("resources/unsubscribe", uri).await["result"], json!({}));
    changes.resource_updated("a:b");
    assert!(host.wire.is_silent(LONG).await);
}

/// SUB-13
#[tokio::test(start_paused = true)]
async fn sub_13_what_a_legacy_session_follows_is_bounded_in_number_and_in_bytes() {
    let server = Arc::new(named("changing"));
    let mut host = Host::new(&server, "2025-11-25", json!({})).await;
    let mut follow = async |uri: String| {
        host.request("resources/subscribe", json!({ "uri": uri })).await["error"]["code"].clone()
    };
    assert_eq!(follow(format!("a:{}", "x".repeat(5 << 20))).await, -32603);
    for n in 0..1024 {
        assert_eq!(follow(format!("a:{n}")).await, Value::Null);
    }
    assert_eq!(follow("a:0".into()).await, Value::Null, "once more is no more");
    assert_eq!(follow("a:1024".into()).await, -32603);
}

/// SUB-13: the bounds are settings, and the error names them.
#[tokio::test(start_paused = true)]
async fn sub_13_how_much_is_followed_can_be_set() {
    let build = || {
        let builder = Server::builder("followed", "1").changing();
        builder.resource(Resource::new("a:b", "b"), async |_| "b")
    };
    let few = Arc::new(build().max_subscriptions(1).build().unwrap());
    let short = Arc::new(build().max_subscription_bytes(100).build().unwrap());
    for (server, setting) in [(few, "max_subscriptions"), (short, "max_subscription_bytes")] {
        let mut host = Host::new(&server, "2025-11-25", json!({})).await;
        let mut follow = async |uri: &str| {
            host.request("resources/subscribe", json!({ "uri": uri })).await["error"].clone()
        };
        assert_eq!(follow("a:b").await, Value::Null);
        let error = follow("a:c").await;
        assert_eq!(error["code"], -32603);
        assert!(error["message"].as_str().unwrap().contains(setting), "{error}");
    }
}

/// What is not promised is not there: ERR-13.
#[tokio::test(start_paused = true)]
async fn a_server_that_never_changes_offers_no_subscriptions() {
    let server = Arc::new(named("fixed"));
    for revision in REVISIONS.into_iter().filter(|revision| *revision != MODERN) {
        let mut host = Host::new(&server, revision, json!({})).await;
        let answer = host.request("resources/subscribe", json!({ "uri": "a:b" })).await;
        assert_eq!(answer["error"]["code"], -32601);
    }
}

/// A tool that is replaced keeps its name and gets the new behaviour.
#[tokio::test(start_paused = true)]
async fn adding_what_is_there_replaces_it() {
    let server = Server::builder("swap", "1")
        .changing()
        .tool(("x", "Tool x."), async |_: NoArgs, _| "old")
        .build()
        .unwrap();
    let server = Arc::new(server);
    let mut host = Host::new(&server, MODERN, json!({})).await;
    server.changes().add_tool(("x", "Tool x."), async |_: NoArgs, _| "new").unwrap();
    assert_eq!(host.call("x", json!({})).await["result"]["content"][0]["text"], "new");
    let list = host.request("tools/list", json!({})).await;
    assert_eq!(list["result"]["tools"].as_array().unwrap().len(), 1);
    let bad = server.changes().add_tool(("no spaces", "Tool no spaces."), async |_: NoArgs, _| "x");
    assert!(bad.unwrap_err().to_string().contains("no spaces"));
}
