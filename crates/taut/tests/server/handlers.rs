//! What a handler can be, and what can be put around it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use taut::types::{CacheScope, RawJson, ReadResourceResult, ResourceContents};
use taut::{
    BlockingCall, Call, CallToolResult, Content, Meta, NoArgs, Reject, Resource, Revision, Server,
    Tool, server::CallEvent,
};

use crate::fixture::{Echo, Slow, slow};
use crate::wire::Wire;

/// C1: a handler that blocks its thread blocks nobody else. On real time, because it really does.
#[tokio::test]
async fn c1_a_blocking_tool_blocks_nobody_else() {
    let (release, released) = mpsc::channel::<()>();
    let released = Mutex::new(released);
    let server = Server::builder("blocking", "1")
        .blocking_tool("wait", move |Echo { text }, call: BlockingCall| {
            released.lock().unwrap().recv_timeout(Duration::from_secs(20)).unwrap();
            format!("{text} {}", call.revision())
        })
        .blocking_tool(("panic", "Tool panic."), |_: NoArgs, _| -> String {
            panic!("on its thread")
        })
        .tool("echo", async |Echo { text }, _| text)
        .build()
        .unwrap();
    let mut wire = Wire::to(server);
    wire.call(1, "wait", json!({ "text": "at last" })).await;
    wire.call(2, "echo", json!({ "text": "at once" })).await;
    assert_eq!(wire.next().await["result"]["content"][0]["text"], "at once");
    wire.call(3, "panic", json!({})).await;
    assert_eq!(wire.next().await["result"]["isError"], true);
    wire.call(4, "wait", json!({ "text": 5 })).await;
    assert_eq!(wire.next().await["result"]["isError"], true);
    release.send(()).unwrap();
    assert_eq!(wire.next().await["result"]["content"][0]["text"], "at last 2026-07-28");
}

#[tokio::test(start_paused = true)]
async fn a_raw_tool_brings_its_schema_and_gets_its_arguments_byte_for_byte() {
    let schema = json!({ "type": "object", "properties": { "z": {}, "a": {} }, "x-own": [1] });
    let tool = Tool::new("raw").description("As it came.").input_schema(schema.clone());
    let server = Server::builder("bridge", "1")
        .raw_tool(tool, async |arguments: RawJson, _| {
            CallToolResult::with_text(arguments.text())
                .structured_content(json!([1]))
                .meta(Meta::new().with("com.example/a", json!(1)))
        })
        .build()
        .unwrap();
    let mut wire = Wire::to(server);
    wire.ask(1, "tools/list", json!({})).await;
    let tools = wire.next().await["result"]["tools"].clone();
    assert_eq!(tools[0]["inputSchema"], schema);
    wire.shake_hands("2025-11-25").await;
    let call = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"raw","arguments":{"z":1.10,"a":123456789012345678901234567890}}}"#;
    wire.send_bytes(format!("{call}\n").as_bytes()).await;
    let result = wire.next().await["result"].clone();
    assert_eq!(result["content"][0]["text"], r#"{"z":1.10,"a":123456789012345678901234567890}"#);
    assert_eq!(result["_meta"], json!({ "com.example/a": 1 }));
    assert!(result.get("structuredContent").is_none(), "an array is none in 2025-11-25");
    wire.call(3, "raw", json!({})).await;
    let result = wire.next().await["result"].clone();
    assert_eq!(result["content"][0]["text"], "{}");
    let server_info = &result["_meta"]["io.modelcontextprotocol/serverInfo"];
    assert_eq!(
        (&result["_meta"]["com.example/a"], &server_info["name"]),
        (&json!(1), &json!("bridge"))
    );
}

type Log = Arc<Mutex<Vec<String>>>;

fn watched(log: &Log) -> Server {
    let log = log.clone();
    Server::builder("watched", "1")
        .on_call(move |moment| {
            let line = match moment {
                CallEvent::Started { name: "secret", client, .. } => {
                    log.lock().unwrap().push(format!("veto for {client:?}"));
                    return Err(Reject::new(403, "not for you"));
                }
                CallEvent::Started { method, name, .. } => format!("began {method} {name}"),
                CallEvent::Finished { method, name, took, failed, .. } => {
                    format!("ended {method} {name} {} {failed}", took.as_millis())
                }
                _ => return Ok(()),
            };
            log.lock().unwrap().push(line);
            // Too late to refuse anything once it has ended.
            if matches!(moment, CallEvent::Finished { .. }) {
                return Err(Reject::new(1, "ignored"));
            }
            Ok(())
        })
        .tool("slow", slow)
        .tool(("secret", "Tool secret."), async |_: NoArgs, _| "42")
        .tool(("fail", "Tool fail."), async |_: NoArgs, _| Err::<(), _>("no"))
        .tool(("panic", "Tool panic."), async |_: NoArgs, _| -> String { panic!("on purpose") })
        .tool("echo", async |Echo { text }, _| text)
        .resource(Resource::new("a:b", "r"), async |_| "x")
        .prompt("greet", async |Echo { text }, _| text)
        .build()
        .unwrap()
}

#[tokio::test(start_paused = true)]
async fn on_call_sees_every_call_begin_and_end_with_its_time_and_may_refuse() {
    let log = Log::default();
    let mut wire = Wire::to(watched(&log));
    let mut seen = async |tool: &str, arguments: Value| {
        wire.call(1, tool, arguments).await;
        let answer = wire.next().await;
        (answer, std::mem::take(&mut *log.lock().unwrap()))
    };
    let (answer, lines) = seen("slow", json!({ "step_ms": 250 })).await;
    assert_eq!(answer["result"]["content"][0]["text"], "done");
    assert_eq!(lines, ["began tools/call slow", "ended tools/call slow 250 false"]);
    let (answer, lines) = seen("secret", json!({})).await;
    assert_eq!(answer["error"], json!({ "code": 403, "message": "not for you" }));
    assert_eq!(lines, ["veto for None"]);
    let (_, lines) = seen("fail", json!({})).await;
    assert_eq!(lines[1], "ended tools/call fail 0 true");
    let (_, lines) = seen("panic", json!({})).await;
    assert_eq!(lines[1..], ["ended tools/call panic 0 true"]);
    let (_, lines) = seen("echo", json!({ "text": 5 })).await;
    assert_eq!(lines[1..], ["ended tools/call echo 0 true"]);
}

#[tokio::test(start_paused = true)]
async fn on_call_sees_resources_prompts_and_calls_that_were_cancelled() {
    let log = Log::default();
    let mut wire = Wire::to(watched(&log));
    wire.ask(1, "resources/read", json!({ "uri": "a:b" })).await;
    wire.next().await;
    wire.ask(2, "prompts/get", json!({ "name": "greet" })).await;
    assert_eq!(wire.next().await["error"]["code"], -32602);
    wire.call(3, "slow", json!({ "step_ms": 10_000 })).await;
    wire.notify("notifications/cancelled", json!({ "requestId": 3 })).await;
    wire.finish().await;
    let lines = log.lock().unwrap().clone();
    let wanted = [
        "began resources/read a:b",
        "ended resources/read a:b 0 false",
        "began prompts/get greet",
        "ended prompts/get greet 0 true",
        "began tools/call slow",
    ];
    assert_eq!(lines[..5], wanted);
    assert!(lines[5].starts_with("ended tools/call slow"), "{lines:?}");
    assert_eq!(lines.len(), 6, "{lines:?}");
}

/// A call that is refused for its progress token has not begun (PRG-02).
#[tokio::test(start_paused = true)]
async fn on_call_sees_no_call_begin_that_does_not_end() {
    let log = Log::default();
    let mut wire = Wire::to(watched(&log));
    wire.shake_hands("2025-06-18").await;
    let params = json!({ "name": "secret", "_meta": { "progressToken": true } });
    wire.send(json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params })).await;
    assert_eq!(wire.next().await["error"]["code"], -32602);
    assert_eq!(*log.lock().unwrap(), [""; 0]);
}

/// CAN-10: a blocking tool whose call was cancelled while all threads were busy never runs.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn can_10_a_cancelled_blocking_call_never_runs() {
    let (ran, has_run) = mpsc::channel();
    let (go, wait) = mpsc::channel::<()>();
    let (started, mut has_started) = tokio::sync::mpsc::unbounded_channel();
    let wait = Mutex::new(wait);
    let server = Server::builder("blocking", "1")
        .blocking_threads(1)
        .blocking_tool(("block", "Tool block."), move |_: NoArgs, _| {
            started.send(()).unwrap();
            wait.lock().unwrap().recv().unwrap();
            "done"
        })
        .blocking_tool(("delete", "Tool delete."), move |_: NoArgs, _| {
            ran.send(()).unwrap();
            "deleted"
        })
        .build()
        .unwrap();
    let mut wire = Wire::to(server);
    wire.call(1, "block", json!({})).await;
    has_started.recv().await.unwrap();
    wire.call(2, "delete", json!({})).await;
    wire.notify("notifications/cancelled", json!({ "requestId": 2 })).await;
    // What came before this was taken in.
    wire.ask(3, "server/discover", json!({})).await;
    assert_eq!(wire.next().await["id"], 3);
    go.send(()).unwrap();
    assert_eq!(wire.next().await["id"], 1);
    let (rest, _) = wire.finish().await;
    assert_eq!(rest, [Value::Null; 0]);
    assert!(has_run.try_recv().is_err(), "it ran after all");
}

/// The queue for blocking tools is bounded in bytes; what is beyond is refused and says so.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn blocking_calls_beyond_the_queue_are_refused_as_busy() {
    let (go, wait) = mpsc::channel::<()>();
    let wait = Mutex::new(wait);
    let server = Server::builder("blocking", "1")
        .blocking_threads(1)
        .blocking_queue(100_000)
        .blocking_tool("wait", move |Echo { text }, _| {
            wait.lock().unwrap().recv().unwrap();
            text.len()
        })
        .build()
        .unwrap();
    let mut wire = Wire::to(server);
    for id in 0..100 {
        wire.call(id, "wait", json!({ "text": "x".repeat(10_000) })).await;
    }
    // One runs and nine wait, or eight where the first was not yet taken when the last came.
    let is_busy = |answer: &Value| {
        answer["error"]["message"].as_str().is_some_and(|message| message.starts_with("busy: "))
    };
    for _ in 0..90 {
        let answer = wire.next().await;
        assert!(is_busy(&answer), "{answer}");
    }
    (0..10).for_each(|_| go.send(()).unwrap());
    let (rest, _) = wire.finish().await;
    let served = rest.iter().filter(|answer| answer["error"].is_null()).count();
    assert!((9..=10).contains(&served) && rest.len() == 10, "{rest:?}");
}

/// TOL-07: for older clients a server may prefer an error of its own.
#[tokio::test(start_paused = true)]
async fn tol_07_bad_arguments_can_be_mapped_to_an_error_for_some_clients() {
    let server = Server::builder("strict", "1")
        .on_bad_arguments(|bad| {
            let old = bad.revision < Revision::V2025_11_25;
            old.then(|| Reject::invalid_params(bad.reason.to_owned()))
        })
        .tool("echo", async |Echo { text }, _| text)
        .build()
        .unwrap();
    let mut wire = Wire::to(server);
    wire.shake_hands("2025-06-18").await;
    let params = json!({ "name": "echo", "arguments": { "text": 5 } });
    wire.send(json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params })).await;
    let error = wire.next().await["error"].clone();
    assert_eq!(error["code"], -32602);
    assert!(error["message"].as_str().unwrap().starts_with("`text`: "), "{error}");
    wire.call(2, "echo", json!({ "text": 5 })).await;
    assert_eq!(wire.next().await["result"]["isError"], true);
}

#[tokio::test(start_paused = true)]
async fn state_is_shared_by_all_calls_of_all_connections() {
    let server = Arc::new(
        Server::with_state("counter", "1", AtomicUsize::new(0))
            .tool(("count", "Tool count."), async |_: NoArgs, call: Call<AtomicUsize>| {
                (call.state().fetch_add(1, Ordering::SeqCst) + 1) as u64
            })
            .build()
            .unwrap(),
    );
    for n in 1..=3 {
        let mut wire = Wire::to_shared(&server);
        wire.call(1, "count", json!({})).await;
        assert_eq!(wire.next().await["result"]["content"][0]["text"], n.to_string());
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_takes_too_long_is_given_up_and_knows_its_deadline() {
    let server = Server::builder("brisk", "1")
        .call_timeout(Duration::from_secs(2))
        .tool("slow", slow)
        .tool(("deadline", "Tool deadline."), async |_: NoArgs, call: Call| {
            let left = call.deadline().unwrap() - tokio::time::Instant::now().into_std();
            left.as_secs_f64().round()
        })
        .build()
        .unwrap();
    let mut wire = Wire::to(server);
    wire.call(1, "slow", json!({ "step_ms": 1000 })).await;
    assert_eq!(wire.next().await["result"]["content"][0]["text"], "done");
    wire.call(2, "slow", json!({ "step_ms": 3000 })).await;
    let error = wire.next().await["error"].clone();
    assert_eq!(error, json!({ "code": -32603, "message": "the server gave up after 2s" }));
    wire.call(3, "deadline", json!({})).await;
    assert_eq!(wire.next().await["result"]["content"][0]["text"], "2");
}

/// CAC-01: what a handler says about keeping its answer counts before what the server says.
#[tokio::test(start_paused = true)]
async fn cac_01_a_resource_may_have_hints_of_its_own() {
    let server = Server::builder("cached", "1")
        .resource(Resource::new("a:own", "own"), async |_| {
            ReadResourceResult::new([ResourceContents::new("a:own").text("x")])
                .ttl(Duration::from_secs(1))
        })
        .resource(Resource::new("a:plain", "plain"), async |_| "x")
        // After the handlers, which makes no difference.
        .cache(Duration::from_secs(60), CacheScope::Public)
        .build()
        .unwrap();
    let mut wire = Wire::to(server);
    for (uri, ttl, scope) in [("a:own", 1000, "private"), ("a:plain", 60_000, "public")] {
        wire.ask(1, "resources/read", json!({ "uri": uri })).await;
        let result = wire.next().await["result"].clone();
        assert_eq!((&result["ttlMs"], &result["cacheScope"]), (&json!(ttl), &json!(scope)));
    }
}

/// A named `async fn`, a closure that captures, and plain values of every kind.
#[tokio::test(start_paused = true)]
async fn handlers_may_be_functions_or_closures_and_return_what_they_like() {
    async fn named(Echo { text }: Echo, _: Call) -> Vec<Content> {
        vec![Content::text(text), Content::text("again")]
    }
    let shared = Arc::new("captured".to_owned());
    let server = Server::builder("kinds", "1")
        .tool("named", named)
        .tool(("captures", "Tool captures."), move |_: NoArgs, _| {
            let shared = shared.clone();
            async move { shared.as_str().to_owned() }
        })
        .tool(("truth", "Tool truth."), async |_: NoArgs, _| true)
        .tool(("number", "Tool number."), async |_: NoArgs, _| -7i64)
        .tool("slow", async |Slow { step_ms, .. }, _| step_ms)
        .build()
        .unwrap();
    let text = async |tool: &str, arguments: Value| {
        let result = server.call_tool(tool, arguments).await.unwrap();
        result.content.iter().map(|c| c.as_text().unwrap().to_owned()).collect::<Vec<_>>().join("|")
    };
    assert_eq!(text("named", json!({ "text": "x" })).await, "x|again");
    assert_eq!(text("captures", json!({})).await, "captured");
    assert_eq!(text("truth", json!({})).await, "true");
    assert_eq!(text("number", json!({})).await, "-7");
    assert_eq!(text("slow", json!({ "step_ms": 5 })).await, "5");
}

/// A tool on a stopped clock still sees real time pass where it asks for it.
#[tokio::test]
async fn deadlines_are_on_the_systems_clock() {
    let server = Server::builder("brisk", "1")
        .call_timeout(Duration::from_secs(60))
        .tool(("deadline", "Tool deadline."), async |_: NoArgs, call: Call| {
            call.deadline().unwrap() > Instant::now()
        })
        .build()
        .unwrap();
    let answer = server.call_tool("deadline", json!({})).await.unwrap();
    assert_eq!(answer.content[0].as_text(), Some("true"));
}
