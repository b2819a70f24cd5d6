//! What a tool answers, against the schema that it published. TOL-13, TOL-28 to TOL-30.

use serde_json::{Value, json};
use taut::{Client, Error, Server, error::OutputFault, schema::SchemaFault};

use super::fake::{Fake, LEGACY, MODERN, error, result, text};
use super::*;

/// A server whose tool `sum` promises this and answers each time with the next of these results.
async fn promising(
    revision: &'static str,
    schema: Value,
    results: impl IntoIterator<Item = Value>,
) -> (Fake, Client) {
    let mut results = results.into_iter().collect::<Vec<_>>().into_iter();
    Fake::connect(Client::builder().check_answers(true), revision, move |message| {
        match message["method"].as_str() {
            Some("tools/list") => vec![result(
                message,
                json!({ "tools": [
                { "name": "sum", "inputSchema": { "type": "object" }, "outputSchema": schema },
                { "name": "free", "inputSchema": { "type": "object" } },
            ] }),
            )],
            Some("tools/call") => vec![result(message, results.next().unwrap())],
            _ => Vec::new(),
        }
    })
    .await
}

fn integer() -> Value {
    json!({ "type": "object", "properties": { "sum": { "type": "integer" } }, "required": ["sum"] })
}

fn data(value: Value) -> Value {
    json!({ "content": [{ "type": "text", "text": "as data" }], "structuredContent": value })
}

async fn fault(client: &Client) -> OutputFault {
    match in_time(client.call("sum", ())).await {
        Err(Error::Output(bad)) => bad.fault.clone(),
        other => panic!("{other:?}"),
    }
}

/// TOL-13: and the caller still has what came.
#[tokio::test]
async fn tol_13_an_answer_that_breaks_its_own_schema_is_an_error_that_says_where_and_keeps_it() {
    for revision in ["2025-06-18", LEGACY, MODERN] {
        let answers = [data(json!({ "sum": 5 })), data(json!({ "sum": "5" }))];
        let (fake, client) = promising(revision, integer(), answers).await;
        let sum: Value = in_time(client.call("sum", ())).await.unwrap().json().unwrap();
        assert_eq!(sum, json!({ "sum": 5 }));
        let Err(Error::Output(bad)) = in_time(client.call("sum", ())).await else { panic!() };
        assert_eq!(bad.tool, "sum");
        let OutputFault::Misfit(misfit) = &bad.fault else { panic!("{bad}") };
        assert_eq!((&*misfit.path, &*misfit.rule), ("/sum", "/properties/sum/type"));
        assert_eq!(
            bad.to_string(),
            "the answer of sum does not fit the tool's own schema: /sum must be an integer, is a string"
        );
        assert_eq!(bad.result.structured_content, Some(json!({ "sum": "5" }).into()));
        assert_eq!(bad.result.content.len(), 1);
        // It was looked up once, by itself.
        assert_eq!(fake.of("tools/list").len(), 1);
    }
}

#[tokio::test]
async fn tol_13_data_that_is_missing_is_told_and_a_failure_needs_none() {
    let words = json!({ "content": [{ "type": "text", "text": "no such column" }] });
    let mut failed = words.clone();
    failed["isError"] = json!(true);
    let (_, client) = promising(LEGACY, integer(), [words.clone(), failed, words]).await;
    assert_eq!(fault(&client).await, OutputFault::Missing);
    assert!(in_time(client.call("sum", ())).await.unwrap().failed());
    // A tool without a schema promises nothing.
    assert_eq!(in_time(client.call("free", ())).await.unwrap().text().unwrap(), "no such column");
}

#[tokio::test]
async fn nothing_is_checked_or_looked_up_unless_it_was_asked_for_and_the_revision_has_it() {
    let answers = || [data(json!({ "sum": "5" }))];
    let (fake, client) = promising("2025-03-26", integer(), answers()).await;
    in_time(client.call("sum", ())).await.unwrap();
    assert_eq!(fake.of("tools/list").len(), 0);

    let mut answers = answers().into_iter();
    let (fake, client) = Fake::connect(Client::builder(), MODERN, move |message| {
        answers.next().map(|answer| result(message, answer)).into_iter().collect()
    })
    .await;
    in_time(client.call("sum", ())).await.unwrap();
    assert_eq!(fake.of("tools/list").len(), 0);
    assert_eq!(fake.of("subscriptions/listen").len(), 0);
}

/// Known from the host's own list: nothing more is asked. Not in it: asked once, then left alone.
#[tokio::test]
async fn a_tool_is_looked_up_only_if_no_list_had_it() {
    let answers = vec![data(json!({ "sum": 1 })); 4];
    let (fake, client) = promising(LEGACY, integer(), answers).await;
    in_time(client.tools()).await.unwrap();
    in_time(client.call("sum", ())).await.unwrap();
    assert_eq!(fake.of("tools/list").len(), 1);
    for _ in 0..3 {
        in_time(client.call("hidden", ())).await.unwrap();
    }
    assert_eq!(fake.of("tools/list").len(), 2);
}

#[tokio::test]
async fn calls_that_wait_for_the_same_list_share_it() {
    let (fake, client) = promising(LEGACY, integer(), vec![data(json!({ "sum": 1 })); 20]).await;
    let calls: Vec<_> =
        (0..20).map(|_| tokio::spawn(client.call("sum", ()).into_future())).collect();
    for call in calls {
        in_time(call).await.unwrap().unwrap();
    }
    assert_eq!(fake.of("tools/list").len(), 1);
}

/// A server that cannot be asked for its list can still be called.
#[tokio::test]
async fn a_list_that_cannot_be_had_fails_no_call() {
    let builder = Client::builder().check_answers(true);
    let (_, client) = Fake::connect(builder, LEGACY, |message| match message["method"].as_str() {
        Some("tools/list") => vec![error(message, -32603)],
        Some("tools/call") => vec![text(message, "x")],
        _ => Vec::new(),
    })
    .await;
    assert_eq!(in_time(client.call("sum", ())).await.unwrap().text().unwrap(), "x");
}

/// A server whose tool promises something else each time that its list is read, and says so before it
/// answers `change`.
async fn changing(revision: &'static str) -> (Fake, Client) {
    let (mut lists, mut listen) = (0, Value::Null);
    Fake::connect(Client::builder().check_answers(true), revision, move |message| {
        match message["method"].as_str() {
            Some("tools/list") => {
                lists += 1;
                let schema = json!({ "type": "object", "required": [format!("v{lists}")] });
                let tool =
                    json!({ "name": "sum", "inputSchema": { "type": "object" }, "outputSchema": schema });
                vec![result(message, json!({ "tools": [tool] }))]
            }
            Some("subscriptions/listen") => {
                listen = message["id"].clone();
                Vec::new()
            }
            Some("tools/call") => {
                let change = json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed",
                    "params": { "_meta": { "io.modelcontextprotocol/subscriptionId": listen } } });
                let changes = message["params"]["arguments"]["change"] == true;
                let answer = result(message, data(json!({ "v1": 1 })));
                changes.then_some(change).into_iter().chain([answer]).collect()
            }
            _ => Vec::new(),
        }
    })
    .await
}

/// The schema goes when the list does, and what was answered in between is nobody's mistake.
#[tokio::test]
async fn a_change_of_the_list_drops_the_schemas_and_spares_the_call_that_it_met() {
    for revision in [LEGACY, MODERN] {
        let (fake, client) = changing(revision).await;
        if revision == MODERN {
            fake.wait("subscriptions/listen", 1).await;
        }
        in_time(client.call("sum", ())).await.unwrap();
        in_time(client.call("sum", json!({ "change": true }))).await.unwrap();
        assert_eq!(fake.of("tools/list").len(), 1);
        let OutputFault::Misfit(misfit) = fault(&client).await else { panic!() };
        assert_eq!(misfit.wanted, "must have the member \"v2\"");
        assert_eq!(fake.of("tools/list").len(), 2);
    }
}

/// TOL-28, TOL-29, TOL-30: a schema that cannot be used is told as such, never passed over, and costs
/// nothing but its call.
#[tokio::test]
async fn tol_28_to_30_a_schema_that_cannot_be_used_is_told_as_such() {
    let remote = json!({ "$ref": "http://127.0.0.1:1/schema.json" });
    let strange = json!({ "$schema": "https://example.org/mine", "type": "object" });
    let huge = json!({ "type": "object", "description": "x".repeat(300 << 10) });
    let endless = json!({ "allOf": [{ "$ref": "#" }] });
    for (schema, words) in [
        (remote, "it refers to \"http://127.0.0.1:1/schema.json\""),
        (strange, "its dialect \"https://example.org/mine\" is not known"),
        (huge, "bytes, 262144 are the limit"),
    ] {
        let (_, client) = promising(MODERN, schema, [data(json!({ "sum": 5 }))]).await;
        let Err(Error::Output(bad)) = in_time(client.call("sum", ())).await else { panic!() };
        assert!(
            matches!(&bad.fault, OutputFault::Schema(fault) if !matches!(fault, SchemaFault::Invalid { .. }))
        );
        assert!(bad.to_string().contains(words), "{bad}");
        assert_eq!(bad.result.structured_content, Some(json!({ "sum": 5 }).into()));
    }
    let (_, client) = promising(MODERN, endless, [data(json!({ "sum": 5 }))]).await;
    assert_eq!(fault(&client).await, OutputFault::TooMuch);
}

/// TOL-12: what our own server promises, it keeps, for a type with everything that types have.
#[tokio::test]
async fn our_own_schemas_are_kept() {
    #[derive(serde::Serialize, taut::JsonSchema)]
    struct Row {
        name: Option<String>,
        size: u8,
        below: Vec<Self>,
        kind: Kind,
    }
    #[derive(serde::Serialize, taut::JsonSchema)]
    #[serde(tag = "t", rename_all = "kebab-case")]
    enum Kind {
        Plain,
        WithWords { words: (String, i64) },
    }
    let server = Server::builder("s", "1")
        .tool(("rows", "Tool rows."), async |_: taut::NoArgs, _call| {
            let row = |below, kind| Row { name: None, size: 1, below, kind };
            let words = ("a".to_owned(), -1);
            taut::Json(row(vec![row(vec![], Kind::WithWords { words })], Kind::Plain))
        })
        .build()
        .unwrap();
    let client = taut::memory_with(&server, Client::builder().check_answers(true)).await.unwrap();
    in_time(client.call("rows", ())).await.unwrap();
}
