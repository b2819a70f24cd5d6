//! One tool, unchanged, with a client of each revision: two rounds, the second built on the first.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::fixture::asking;
use crate::host::{Host, MODERN, REVISIONS, accept, everything, text};

fn customer(method: &str, params: &Value) -> Value {
    assert_eq!(method, "elicitation/create");
    match params["message"].as_str().unwrap() {
        "What would you like?" => accept(json!({ "size": "large", "milk": false, "name": "Ada" })),
        "That is one large coffee, black." => accept(json!({ "right": true })),
        other => panic!("asked {other}"),
    }
}

fn order() -> Value {
    json!({ "name": "coffee", "arguments": {} })
}

/// MRTR-05
#[tokio::test(start_paused = true)]
async fn one_handler_asks_clients_of_three_revisions_in_two_rounds() {
    let server = Arc::new(asking());
    for revision in REVISIONS {
        let mut host = Host::new(&server, revision, everything()).await;
        let answer = host.settle("tools/call", order(), customer).await;
        assert_eq!(text(&answer), "one large coffee, black, for Ada", "{revision}");
        assert_eq!(host.asked.len(), 2, "{revision}");
    }
}

/// ELI-02, ELI-10: a flat form with enums and defaults, the fields in the order declared.
#[tokio::test(start_paused = true)]
async fn eli_02_the_form_is_flat_and_in_the_order_declared() {
    let server = Arc::new(asking());
    for revision in REVISIONS {
        let mut host = Host::new(&server, revision, everything()).await;
        host.send("tools/call", order()).await;
        let line = host.wire.line().await.unwrap();
        let places =
            ["\"size\":{", "\"milk\":{", "\"name\":{"].map(|name| line.find(name).unwrap());
        assert!(places.is_sorted(), "{revision}: {line}");
        let message: Value = serde_json::from_str(&line).unwrap();
        let params = match message["result"]["inputRequests"].as_object() {
            Some(questions) => questions.values().next().unwrap()["params"].clone(),
            None => message["params"].clone(),
        };
        let form = &params["requestedSchema"];
        assert_eq!(form["type"], "object");
        assert_eq!(form["properties"]["size"]["enum"], json!(["small", "large"]));
        assert_eq!(form["properties"]["milk"]["default"], true);
        assert_eq!(form["required"], json!(["size"]));
    }
}

/// ELI-07, MRTR-15: a "no" is an answer, of two kinds, in every revision.
#[tokio::test(start_paused = true)]
async fn eli_07_declined_and_cancelled_are_values() {
    let server = Arc::new(asking());
    for revision in REVISIONS {
        for (action, wanted) in [("decline", "declined"), ("cancel", "no coffee then")] {
            let mut host = Host::new(&server, revision, everything()).await;
            let answer = host
                .settle("tools/call", order(), |_, params| match &params["message"] {
                    Value::String(m) if m == "What would you like?" => {
                        accept(json!({ "size": "small" }))
                    }
                    _ => json!({ "action": action }),
                })
                .await;
            assert_eq!(text(&answer), wanted, "{revision} {action}");
        }
    }
}

/// An answer that does not fit the form is the tool's to tell of, not the end of the session.
#[tokio::test(start_paused = true)]
async fn an_answer_that_does_not_fit_the_form_fails_the_call_with_words() {
    let server = Arc::new(asking());
    for revision in REVISIONS {
        let mut host = Host::new(&server, revision, everything()).await;
        let answer =
            host.settle("tools/call", order(), |_, _| accept(json!({ "size": "huge" }))).await;
        assert_eq!(answer["result"]["isError"], true, "{revision}: {answer}");
        assert!(text(&answer).starts_with("the answer does not fit: "), "{answer}");
    }
}

/// RES-12, PRM-06: a read and a prompt ask as a tool does.
#[tokio::test(start_paused = true)]
async fn res_12_prm_06_reading_and_prompts_ask_as_well() {
    let server = Arc::new(asking());
    for revision in REVISIONS {
        let mut host = Host::new(&server, revision, everything()).await;
        let say = |_: &str, params: &Value| accept(json!({ "line": params["message"] }));
        let read = host.settle("resources/read", json!({ "uri": "ask://line" }), say).await;
        assert_eq!(read["result"]["contents"][0]["text"], "what is in it?", "{revision}: {read}");
        let params = json!({ "name": "polite", "arguments": { "line": "a letter" } });
        let prompt = host.settle("prompts/get", params, say).await;
        let said = &prompt["result"]["messages"][0]["content"]["text"];
        assert_eq!(said, "a letter, from whom?", "{revision}: {prompt}");
    }
}

/// MRTR-01, and the same in legacy: nothing else asks.
#[tokio::test(start_paused = true)]
async fn mrtr_01_a_completion_cannot_ask() {
    let server = Arc::new(asking());
    for revision in REVISIONS {
        let mut host = Host::new(&server, revision, everything()).await;
        let params = json!({
            "ref": { "type": "ref/prompt", "name": "polite" },
            "argument": { "name": "line", "value": "" },
        });
        let answer = host.request("completion/complete", params).await;
        let values = &answer["result"]["completion"]["values"];
        assert_eq!(values, &json!(["only tools, prompts and resources can ask back"]));
    }
}

/// SAM-11, ROO-04, DEP-05: the model and the folders, by a request or by asking back.
/// Also SAM-02.
#[tokio::test(start_paused = true)]
async fn sam_11_roo_04_the_model_and_the_folders_are_asked_in_the_way_of_the_era() {
    let server = Arc::new(asking());
    for revision in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", MODERN] {
        let mut host = Host::new(&server, revision, everything()).await;
        let answer = host
            .settle("tools/call", json!({ "name": "sample", "arguments": {} }), |method, params| {
                assert_eq!(method, "sampling/createMessage");
                // SAM-02
                assert_eq!(
                    (&params["maxTokens"], params["messages"].is_array()),
                    (&json!(10), true)
                );
                let content = json!({ "type": "text", "text": "hello" });
                json!({ "role": "assistant", "content": content, "model": "m-1" })
            })
            .await;
        assert_eq!(text(&answer), "m-1", "{revision}");
        let answer = host
            .settle("tools/call", json!({ "name": "roots", "arguments": {} }), |method, _| {
                assert_eq!(method, "roots/list");
                json!({ "roots": [{ "uri": "file:///a" }, { "uri": "file:///b", "name": "B" }] })
            })
            .await;
        assert_eq!(text(&answer), "file:///a file:///b", "{revision}");
    }
}

/// ELI-05, ELI-06, ELI-12: a page is named in 2025-11-25 only, and agreeing to go there is all that
/// is told.
#[tokio::test(start_paused = true)]
async fn eli_05_06_a_page_has_a_name_in_2025_11_25_and_none_after() {
    let server = Arc::new(asking());
    for (revision, named) in [("2025-11-25", true), (MODERN, false)] {
        let mut host = Host::new(&server, revision, everything()).await;
        let answer = host
            .settle("tools/call", json!({ "name": "page", "arguments": {} }), |_, params| {
                assert_eq!(params["mode"], "url");
                assert_eq!(params["url"], "https://example.com/pay");
                assert_eq!(params.get("elicitationId").is_some(), named);
                json!({ "action": "accept" })
            })
            .await;
        assert_eq!(text(&answer), "Accepted(())", "{revision}");
    }
}
