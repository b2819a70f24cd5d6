//! What requests look like on the wire, and what becomes of their answers.

use std::time::Instant;

use serde_json::{Value, json};
use taut::types::{Era, PromptReference};
use taut::{Level, Meta};

use super::fake::{Fake, error, result, text};
use super::*;

const MODERN: &str = "2026-07-28";
const LEGACY: &str = "2025-11-25";

fn silent(_: &Value) -> Vec<Value> {
    Vec::new()
}

/// PRB-01, LIF-01, LIF-08, LIF-09, LIF-16
/// Also L9, STD-04, RPC-24, LIF-02, PRB-06.
#[tokio::test]
async fn a_legacy_connection_is_opened_in_the_right_order() {
    let (fake, client) = Fake::connect(LEGACY, |message| vec![text(message, "x")]).await;
    client.call("a", ()).await.unwrap();
    assert_eq!(
        fake.methods(),
        ["server/discover", "initialize", "notifications/initialized", "tools/call"]
    );
    let initialize = fake.message("initialize").await;
    assert_eq!(initialize["params"]["protocolVersion"], LEGACY);
    assert_eq!(initialize["params"]["capabilities"], json!({}));
    assert_eq!(initialize["params"]["clientInfo"]["name"], "taut");
    assert_eq!(client.instructions(), Some("be kind"));
    assert_eq!(client.server_info().unwrap().name, "fake");
}

/// MET-01, MET-03: each request says who sends it; no notification is sent first.
/// Also STD-04, RSL-02, PRB-01, PRB-06.
#[tokio::test]
async fn met_01_each_modern_request_carries_the_envelope() {
    let (fake, client) = Fake::connect(MODERN, |message| vec![text(message, "x")]).await;
    client.call("a", json!({ "b": 1 })).await.unwrap();
    client.request::<Value>("x/y", json!({ "_meta": { "com.example/k": 1 } })).await.unwrap();
    assert_eq!(fake.methods(), ["server/discover", "tools/call", "x/y"]);
    for message in fake.got() {
        let meta = &message["params"]["_meta"];
        assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], MODERN, "{message}");
        assert_eq!(meta["io.modelcontextprotocol/clientCapabilities"], json!({}), "{message}");
        assert_eq!(meta["io.modelcontextprotocol/clientInfo"]["name"], "taut", "{message}");
    }
    assert_eq!(fake.message("x/y").await["params"]["_meta"]["com.example/k"], 1);
}

/// C8, PRG-01: the token is there although nobody watches, because progress extends the timeout.
/// Also PRG-02, PRG-03.
#[tokio::test]
async fn c8_a_call_carries_a_progress_token_and_progress_extends_its_timeout() {
    let client = start("2025-11-25").await;
    let steps = Seen::default();
    let sink = steps.clone();
    let call = client.call("steps", ()).progress(move |step| sink.push(step.progress.to_string()));
    assert_eq!(in_time(call).await.unwrap().text().unwrap(), "done");
    assert_eq!(steps.all(), ["1", "2", "3", "4", "5"]);

    let (fake, client) = Fake::connect(LEGACY, |message| vec![text(message, "x")]).await;
    client.call("a", ()).await.unwrap();
    let message = fake.message("tools/call").await;
    assert_eq!(message["params"]["_meta"]["progressToken"], message["id"]);
}

/// TMO-04.
#[tokio::test(start_paused = true)]
async fn c8_progress_every_two_seconds_keeps_a_call_of_five_alive_for_twenty() {
    let (near, far) = tokio::io::duplex(64 << 10);
    tokio::spawn(async move {
        use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _};
        let (reader, mut writer) = tokio::io::split(far);
        let mut lines = tokio::io::BufReader::new(reader).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            let message: Value = serde_json::from_str(&line).unwrap();
            let answers = match message["method"].as_str().unwrap() {
                "server/discover" => {
                    vec![result(
                        &message,
                        json!({ "supportedVersions": [MODERN], "capabilities": { "tools": {} } }),
                    )]
                }
                "tools/call" => {
                    let token = message["params"]["_meta"]["progressToken"].clone();
                    for n in 1..=10 {
                        tokio::time::sleep(Duration::from_secs(2)).await;
                        let params = json!({ "progressToken": token, "progress": n });
                        let note = json!({ "jsonrpc": "2.0",
                            "method": "notifications/progress", "params": params });
                        writer.write_all(format!("{note}\n").as_bytes()).await.unwrap();
                    }
                    vec![text(&message, "done")]
                }
                _ => Vec::new(),
            };
            for answer in answers {
                writer.write_all(format!("{answer}\n").as_bytes()).await.unwrap();
            }
        }
    });
    let (reader, writer) = tokio::io::split(near);
    let client = Client::connect(reader, writer).await.unwrap();
    let answer = client.call("slow", ()).timeout(Duration::from_secs(5)).await.unwrap();
    assert_eq!(answer.text().unwrap(), "done");
}

/// C10, TMO-02
/// Also ERR-18, CAN-09.
#[tokio::test]
async fn c10_a_timeout_withdraws_the_request_once() {
    let (fake, client) = Fake::connect(LEGACY, silent).await;
    let error = client.call("a", ()).timeout(ms(50)).await.unwrap_err();
    assert_eq!(error.to_string(), "tools/call was not answered within 50ms");
    let cancelled = fake.message("notifications/cancelled").await;
    assert_eq!(cancelled["params"]["requestId"], fake.message("tools/call").await["id"]);
    in_time(client.close()).await.unwrap();
    let count = fake.methods().iter().filter(|m| *m == "notifications/cancelled").count();
    assert_eq!(count, 1);
}

/// C4: the answer comes after all, and harms nobody.
#[tokio::test]
async fn c4_a_late_answer_is_counted_and_dropped() {
    let mut late = None;
    let (_, client) = Fake::connect(LEGACY, move |message| match message["method"].as_str() {
        Some("tools/call") if late.is_none() => {
            late = Some(message.clone());
            Vec::new()
        }
        Some("tools/call") => {
            vec![text(late.as_ref().unwrap(), "too late"), text(message, "in time")]
        }
        _ => Vec::new(),
    })
    .await;
    client.call("a", ()).timeout(ms(50)).await.unwrap_err();
    assert_eq!(client.call("a", ()).await.unwrap().text().unwrap(), "in time");
    assert_eq!(client.diagnostics().late_answers, 1);
}

/// CAN-09.
#[tokio::test]
async fn dropping_a_call_withdraws_it_on_the_wire() {
    let (fake, client) = Fake::connect(LEGACY, silent).await;
    let call = client.clone();
    let task = tokio::spawn(async move { call.call("a", ()).await });
    let id = fake.message("tools/call").await["id"].clone();
    task.abort();
    let cancelled = fake.message("notifications/cancelled").await;
    assert_eq!(cancelled["params"]["requestId"], id);
}

/// L14, LIF-16: neither the probe nor the handshake is ever withdrawn.
/// Also LIF-09, TMO-02.
#[tokio::test(start_paused = true)]
async fn l14_a_connection_that_is_given_up_sends_no_cancellation() {
    let (fake, reader, writer) = Fake::new(silent);
    let builder = quick().probe_timeout(ms(50)).start_timeout(ms(150));
    let error = in_time(builder.connect(reader, writer)).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the server did not answer initialize within 150ms: it said nothing"
    );
    assert_eq!(fake.methods(), ["server/discover", "initialize"]);

    let (fake, reader, writer) = Fake::new(silent);
    let opening = tokio::spawn(Client::connect(reader, writer));
    fake.message("server/discover").await;
    opening.abort();
    assert!(opening.await.is_err());
    assert_eq!(fake.methods(), ["server/discover"]);
}

#[tokio::test]
async fn many_tasks_call_at_once_and_each_gets_its_own_answer() {
    let client = start("2025-11-25").await;
    let tasks: Vec<_> = (0..500)
        .map(|n| {
            let client = client.clone();
            tokio::spawn(async move {
                let answer = client.call("add", json!({ "a": n, "b": 1 })).await.unwrap();
                assert_eq!(answer.text().unwrap(), (n + 1).to_string());
            })
        })
        .collect();
    for task in tasks {
        in_time(task).await.unwrap();
    }
}

/// L10: the answer may be there before anybody could look.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn l10_no_answer_is_lost_however_fast_it_comes() {
    let (_, client) = Fake::connect(LEGACY, |message| vec![text(message, "x")]).await;
    for _ in 0..5_000 {
        in_time(async { client.call("a", ()).await }).await.unwrap();
    }
}

#[tokio::test]
async fn pag_01_a_cursor_goes_back_as_it_came() {
    const ODD: &str = " \u{2028}{\"a\":\"é\"} ";
    let (fake, client) = Fake::connect(LEGACY, |message| {
        let tool = |name: &str| json!([{ "name": name, "inputSchema": {} }]);
        let page = match message["params"]["cursor"].as_str() {
            None => json!({ "tools": tool("a"), "nextCursor": ODD }),
            Some(_) => json!({ "tools": tool("b"), "nextCursor": null }),
        };
        vec![result(message, page)]
    })
    .await;
    let mut tools = client.tools();
    assert_eq!(tools.next().await.unwrap().unwrap().name, "a");
    assert_eq!(fake.methods().len(), 4, "one page at a time");
    assert_eq!(tools.next().await.unwrap().unwrap().name, "b");
    assert!(tools.next().await.unwrap().is_none());
    assert!(tools.next().await.unwrap().is_none());
    assert_eq!(fake.got().last().unwrap()["params"]["cursor"], ODD);
    assert_eq!(fake.methods().len(), 5);
}

#[tokio::test]
async fn what_the_server_does_not_offer_is_not_asked_for() {
    let client = start("2025-11-25").await;
    let error = client.prompts().await.unwrap_err();
    let expected = "the server offers no prompts, so prompts/list was not asked";
    assert_eq!(error.to_string(), expected);
    let error = client.read("a:b").await.unwrap_err();
    assert!(matches!(error, Error::NotOffered { capability: "resources", .. }));
    // Who insists may ask anything.
    let error = client.request::<Value>("prompts/list", ()).await.unwrap_err();
    assert_eq!(error.to_string(), "prompts/list was refused: method not found (-32601)");
}

/// PNG-03.
#[tokio::test]
async fn every_request_has_its_own_params_and_result() {
    let (fake, client) = Fake::connect(LEGACY, |message| {
        let answer = match message["method"].as_str().unwrap() {
            "resources/read" => json!({ "contents": [{ "uri": "a:b", "text": "c" }] }),
            "resources/list" => json!({ "resources": [{ "uri": "a:b", "name": "b" }] }),
            "resources/templates/list" => {
                json!({ "resourceTemplates": [{ "uriTemplate": "a:{b}", "name": "b" }] })
            }
            "prompts/list" => json!({ "prompts": [{ "name": "p" }] }),
            "prompts/get" => json!({ "messages": [
                { "role": "user", "content": { "type": "text", "text": "hi" } }] }),
            "completion/complete" => json!({ "completion": { "values": ["ab", "ac"] } }),
            "logging/setLevel" | "ping" => json!({}),
            _ => return Vec::new(),
        };
        vec![result(message, answer)]
    })
    .await;
    assert_eq!(client.read("a:b").await.unwrap()[0].text.as_deref(), Some("c"));
    assert_eq!(client.resources().await.unwrap()[0].name, "b");
    assert_eq!(client.resource_templates().await.unwrap()[0].uri_template, "a:{b}");
    assert_eq!(client.prompts().await.unwrap()[0].name, "p");
    assert_eq!(client.prompt("p", [("k", "v")]).await.unwrap().messages.len(), 1);
    let completion = client.complete(PromptReference::new("p"), "k", "a").await.unwrap();
    assert_eq!(completion.values, ["ab", "ac"]);
    client.set_level(Level::Warning).await.unwrap();
    client.ping().await.unwrap();

    let params = async |method| fake.message(method).await["params"].clone();
    assert_eq!(params("resources/read").await["uri"], "a:b");
    assert_eq!(params("prompts/get").await["arguments"], json!({ "k": "v" }));
    let complete = params("completion/complete").await;
    assert_eq!(complete["ref"], json!({ "type": "ref/prompt", "name": "p" }));
    assert_eq!(complete["argument"], json!({ "name": "k", "value": "a" }));
    assert_eq!(params("logging/setLevel").await["level"], "warning");
}

/// LOG-08, LOG-09, PNG-05: what the modern revision has no request for.
#[tokio::test]
async fn in_the_modern_revision_the_log_level_rides_on_each_request() {
    let (fake, client) = Fake::connect(MODERN, |message| vec![text(message, "x")]).await;
    client.set_level(Level::Debug).await.unwrap();
    client.call("a", ()).meta(Meta::new().with("traceparent", json!("00-1"))).await.unwrap();
    assert_eq!(fake.methods(), ["server/discover", "tools/call"]);
    let meta = fake.message("tools/call").await["params"]["_meta"].clone();
    assert_eq!(meta["io.modelcontextprotocol/logLevel"], "debug");
    assert_eq!(meta["traceparent"], "00-1");
    assert!(matches!(client.ping().await, Err(Error::NotOffered { .. })));
}

/// RSL-02, RSL-03, MRTR-01
#[tokio::test]
async fn rsl_03_a_modern_result_of_an_unknown_kind_is_invalid() {
    let (_, client) = Fake::connect(MODERN, |message| {
        let kind = message["params"]["name"].as_str().unwrap();
        vec![result(message, json!({ "content": [], "resultType": kind }))]
    })
    .await;
    client.call("complete", ()).await.unwrap();
    let error = client.call("task", ()).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the other side broke the protocol in its answer to tools/call: its resultType is \"task\", \
         which this request cannot have"
    );
    let error = client.call("input_required", ()).await.unwrap_err();
    assert!(matches!(error, Error::Violation { .. }), "it does not say what it wants");
}

#[tokio::test]
async fn an_answer_that_does_not_fit_says_where() {
    let (_, client) =
        Fake::connect(LEGACY, |message| vec![result(message, json!({ "a": 1 }))]).await;
    let error = client.call("a", ()).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the other side broke the protocol in its answer to tools/call: the result does not fit: \
         missing field `content` at line 1 column 7"
    );
}

#[tokio::test]
async fn a_refusal_carries_code_and_words() {
    let (_, client) = Fake::connect(LEGACY, |message| vec![error(message, -32602)]).await;
    let error = client.call("a", ()).await.unwrap_err();
    assert_eq!(error.to_string(), "tools/call was refused: no (-32602)");
}

/// C15: whichever side is slow to read, both get through.
#[tokio::test]
async fn c15_large_requests_and_large_answers_pass_each_other() {
    let client = start("2025-11-25").await;
    for size in [1, 5_000, 70_000, 4 << 20] {
        let text = "x".repeat(size);
        let answer = in_time(client.call("echo", json!({ "text": text.clone() }))).await.unwrap();
        assert!(answer.text().unwrap() == text);
    }
}

/// A server that answers a call when it has seen the first bytes of it, with more than a pipe holds, and
/// reads the rest only when that is out.
pub(super) fn early() {
    use std::io::{BufRead as _, Write as _};
    let (mut stdin, mut stdout) = (std::io::stdin().lock(), std::io::stdout().lock());
    loop {
        let head = String::from_utf8_lossy(stdin.fill_buf().unwrap()).into_owned();
        if head.is_empty() {
            return;
        }
        let id = head.split_once("\"id\":").map(|(_, rest)| rest.split(',').next().unwrap());
        let result = if head.contains("\"initialize\"") {
            let info = json!({ "name": "early", "version": "1" });
            json!({ "protocolVersion": "2025-11-25", "capabilities": { "tools": {} }, "serverInfo": info })
        } else {
            json!({ "content": [{ "type": "text", "text": "y".repeat(1 << 20) }] })
        };
        if let Some(id) = id {
            let answer = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}\n");
            stdout.write_all(answer.as_bytes()).unwrap();
            stdout.flush().unwrap();
        }
        stdin.skip_until(b'\n').unwrap();
    }
}

/// C15: the answer is there before the request has left; neither side waits for the other for good.
#[tokio::test]
async fn c15_requests_of_every_size_are_answered_by_who_answers_before_it_reads() {
    let client = in_time(quick().known(Era::Legacy).spawn(server("early"))).await.unwrap();
    for size in [1, 4095, 4096, 65_535, 65_536, 1 << 20, 8 << 20, 64 << 20] {
        let answer = in_time(client.call("t", json!({ "text": "x".repeat(size) }))).await.unwrap();
        assert_eq!(answer.text().unwrap().len(), 1 << 20, "{size}");
    }
    in_time(client.close()).await.unwrap();
}

#[tokio::test]
async fn a_callback_that_panics_costs_nothing_but_itself() {
    let client = start("2025-11-25").await;
    let call = client.call("steps", ()).progress(|_| panic!("clumsy"));
    assert_eq!(in_time(call).await.unwrap().text().unwrap(), "done");
}

/// TMO-01, TMO-03.
#[tokio::test]
async fn c16_each_way_to_set_a_timeout_counts() {
    let (_, reader, writer) = Fake::new(|message| {
        let discovered = json!({ "supportedVersions": [MODERN], "capabilities": { "tools": {} } });
        match message["method"].as_str() {
            Some("server/discover") => vec![result(message, discovered)],
            _ => Vec::new(),
        }
    });
    let builder = quick().request_timeout(ms(100));
    let client = in_time(builder.connect(reader, writer)).await.unwrap();
    let began = Instant::now();
    let error = client.call("a", ()).await.unwrap_err();
    assert_eq!(error.to_string(), "tools/call was not answered within 100ms");
    let error = client.call("a", ()).timeout(ms(200)).await.unwrap_err();
    assert_eq!(error.to_string(), "tools/call was not answered within 200ms");
    let error = client.tools().timeout(ms(50)).await.unwrap_err();
    assert_eq!(error.to_string(), "tools/list was not answered within 50ms");
    assert!(began.elapsed() < ms(5_000));
}

/// CMP-04: what was chosen before goes along, where the revision has a place for it.
#[tokio::test]
async fn cmp_04_a_completion_says_what_was_chosen_before() {
    for (revision, known) in [("2025-03-26", false), ("2025-06-18", true), ("2026-07-28", true)] {
        let (fake, client) = Fake::connect(revision, |message| {
            vec![result(message, json!({ "completion": { "values": ["paris"] } }))]
        })
        .await;
        let chosen = [("country", "fr")];
        let asked = client.complete_with(PromptReference::new("p"), "city", "pa", chosen);
        assert_eq!(in_time(asked).await.unwrap().values, ["paris"]);
        let params = fake.message("completion/complete").await["params"].clone();
        let want = known.then(|| json!({ "arguments": { "country": "fr" } }));
        assert_eq!(params.get("context").cloned(), want, "{revision}");
        assert_eq!(params["argument"], json!({ "name": "city", "value": "pa" }));
    }
}

/// ERR-04: older servers have a code of their own for it, whatever revision they say they speak.
#[tokio::test]
async fn err_04_a_resource_that_is_not_there_is_understood_in_either_code() {
    let uri = json!({ "uri": "a:b" });
    let table = [
        (-32002, json!(null), true),
        (-32002, uri.clone(), true),
        (-32602, uri.clone(), true),
        (-32602, json!(null), false),
        (-32603, uri, false),
    ];
    for revision in ["2025-11-25", "2026-07-28"] {
        for (code, data, want) in table.clone() {
            let (_, client) = Fake::connect(revision, move |message| {
                let error = json!({ "code": code, "message": "no", "data": data });
                vec![json!({ "jsonrpc": "2.0", "id": message["id"], "error": error })]
            })
            .await;
            let error = in_time(client.read("a:b")).await.unwrap_err();
            assert_eq!(error.is_not_found(), want, "{revision} {code}");
            let error = in_time(client.call("t", ())).await.unwrap_err();
            assert!(!error.is_not_found(), "a tool is no resource");
        }
    }
}
