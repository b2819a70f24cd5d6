//! What is on the wire when a modern server answers with a question.

use serde_json::{Value, json};
use taut::types::ElicitResult;
use taut::{Client, ClientBuilder, Error, Reject, Root};

use super::fake::{Fake, MODERN, form, result, text};
use super::*;

fn host() -> ClientBuilder {
    Client::builder()
        .on_elicit(async |_, _| ElicitResult::decline())
        .roots([Root::new("file:///a")])
}

fn wants(request: &Value, requests: Option<Value>, state: Option<Value>) -> Vec<Value> {
    let mut wanted = json!({ "resultType": "input_required" });
    if let Some(requests) = requests {
        wanted["inputRequests"] = requests;
    }
    if let Some(state) = state {
        wanted["requestState"] = state;
    }
    vec![result(request, wanted)]
}

fn a_form() -> Value {
    json!({ "f": { "method": "elicitation/create", "params": form("m") } })
}

/// A server that asks this once per call.
async fn asking(builder: ClientBuilder, asks: Value, state: Option<Value>) -> (Fake, Client) {
    Fake::connect(builder, MODERN, move |message| {
        if message["params"].get("inputResponses").is_some() {
            return vec![text(message, "done")];
        }
        wants(message, Some(asks.clone()), state.clone())
    })
    .await
}

/// MRTR-05, MRTR-06, MRTR-17
#[tokio::test]
async fn mrtr_05_the_request_is_repeated_with_all_answers_and_the_exact_state() {
    let asks = json!({
        "f": { "method": "elicitation/create", "params": form("m") },
        "r": { "method": "roots/list" },
    });
    let state = json!("\u{e9}\"\\ \u{1F600}\n");
    let (fake, client) = asking(host(), asks, Some(state.clone())).await;
    let progress = Seen::default();
    let watch = progress.clone();
    let call = client
        .call("t", json!({ "x": [1, 2] }))
        .progress(move |report| watch.push(format!("{}", report.progress)));
    assert_eq!(in_time(call).await.unwrap().text().unwrap(), "done");
    let calls = fake.of("tools/call");
    let [first, second] = &calls[..] else { panic!("{calls:?}") };
    assert_ne!(first["id"], second["id"]);
    assert_eq!(second["params"]["name"], "t");
    assert_eq!(second["params"]["arguments"], json!({ "x": [1, 2] }));
    assert_eq!(second["params"]["requestState"], state);
    let answers =
        json!({ "f": { "action": "decline" }, "r": { "roots": [{ "uri": "file:///a" }] } });
    assert_eq!(second["params"]["inputResponses"], answers);
    let meta = |call: &Value| call["params"]["_meta"].clone();
    assert_eq!(meta(second)["progressToken"], second["id"]);
    assert_eq!(meta(second)["io.modelcontextprotocol/protocolVersion"], MODERN);
    assert!(first["params"].get("requestState").is_none());
}

/// MRTR-06: what is absent stays absent. MRTR-07: and nothing of it is in any other request.
#[tokio::test]
async fn mrtr_06_07_an_absent_state_stays_absent_and_nothing_leaks() {
    let (fake, client) = Fake::connect(host(), MODERN, |message| {
        let asked = message["params"]["name"] == "asks";
        if asked && message["params"].get("inputResponses").is_none() {
            return wants(message, Some(a_form()), None);
        }
        vec![text(message, "done")]
    })
    .await;
    let (a, b, c) = tokio::join!(
        client.call("asks", ()).into_future(),
        client.call("plain", ()).into_future(),
        client.call("plain", ()).into_future()
    );
    assert!(a.is_ok() && b.is_ok() && c.is_ok());
    client.call("plain", ()).await.unwrap();
    for call in fake.of("tools/call") {
        assert!(call["params"].get("requestState").is_none(), "{call}");
        let leaked = call["params"].get("inputResponses").is_some();
        assert!(!leaked || call["params"]["name"] == "asks", "{call}");
    }
}

/// MRTR-08: there is a pause, and it grows.
#[tokio::test(start_paused = true)]
async fn mrtr_08_a_state_alone_means_again_after_a_pause() {
    let (fake, client) =
        Fake::connect(Client::builder(), MODERN, |message| match message["params"]["requestState"]
            .as_str()
        {
            Some("3") => vec![text(message, "done")],
            last => {
                let next = last.map_or(1, |last| last.parse::<u32>().unwrap() + 1);
                wants(message, None, Some(json!(next.to_string())))
            }
        })
        .await;
    let start = tokio::time::Instant::now();
    assert_eq!(client.call("a", ()).await.unwrap().text().unwrap(), "done");
    assert!(start.elapsed() >= Duration::from_millis(700), "{:?}", start.elapsed());
    let calls = fake.of("tools/call");
    assert_eq!(calls.len(), 4);
    assert!(calls.iter().all(|call| call["params"].get("inputResponses").is_none()));
}

/// MRTR-16: a server that asks for ever.
#[tokio::test(start_paused = true)]
async fn mrtr_16_a_server_that_asks_for_ever_is_given_up() {
    for (asks, state) in [(Some(a_form()), None), (None, Some(json!("again")))] {
        let (fake, client) = Fake::connect(host(), MODERN, move |message| {
            wants(message, asks.clone(), state.clone())
        })
        .await;
        let error = client.call("a", ()).await.unwrap_err();
        assert!(matches!(error, Error::Violation { .. }));
        assert!(error.to_string().ends_with("after 10 rounds of answers"), "{error}");
        assert_eq!(fake.of("tools/call").len(), 11);
    }
}

/// MRTR-02, MRTR-03: what cannot be answered ends the call and asks nobody.
#[tokio::test]
async fn mrtr_02_03_what_cannot_be_read_is_a_violation() {
    let many: serde_json::Map<String, Value> =
        (0..1000).map(|n| (n.to_string(), json!({ "method": "roots/list" }))).collect();
    let cases = [
        (None, None, "does not say which"),
        (Some(a_form()), Some(json!(5)), "requestState is no string"),
        (Some(a_form()), Some(json!({ "a": 1 })), "requestState is no string"),
        (Some(json!([1])), None, "cannot be read"),
        (Some(json!({ "a": { "params": {} } })), None, "cannot be read"),
        (Some(many.into()), None, "asks 1000 things at once"),
    ];
    for (asks, state, words) in cases {
        let (fake, client) = Fake::connect(host(), MODERN, move |message| {
            wants(message, asks.clone(), state.clone())
        })
        .await;
        let error = in_time(client.call("a", ())).await.unwrap_err();
        assert!(matches!(error, Error::Violation { .. }), "{error}");
        assert!(error.to_string().contains(words), "{error}");
        assert_eq!(fake.of("tools/call").len(), 1);
    }
}

/// The state changes its type between two rounds.
#[tokio::test]
async fn a_state_that_changes_its_type_half_way_is_a_violation() {
    let (fake, client) = Fake::connect(host(), MODERN, |message| {
        let again = message["params"].get("requestState").is_some();
        wants(message, Some(a_form()), Some(if again { json!(7) } else { json!("7") }))
    })
    .await;
    let error = in_time(client.call("a", ())).await.unwrap_err();
    assert!(error.to_string().contains("requestState is no string"), "{error}");
    assert_eq!(fake.of("tools/call").len(), 2);
}

/// MRTR-04, MRTR-15: no retry, and an error that says what was wanted and why it was not given.
/// Also ERR-15.
#[tokio::test]
async fn mrtr_15_what_is_refused_is_not_retried() {
    let sample = json!({ "s": { "method": "sampling/createMessage",
        "params": { "messages": [], "maxTokens": 1 } } });
    let url = json!({ "u": { "method": "elicitation/create",
        "params": { "mode": "url", "message": "m", "url": "https://a.b" } } });
    let odd = json!({ "o": { "method": "tools/list" } });
    let no = host().on_sample(async |_, _| Err::<_, Reject>(Reject::by_user()));
    let panics =
        host().on_sample(|_, _| async { panic!("oh") as taut::types::CreateMessageResult });
    let cases = [
        (host(), sample.clone(), "sampling/createMessage", -32601),
        (host(), url, "elicitation/create", -32602),
        (host(), odd, "tools/list", -32601),
        (no, sample.clone(), "sampling/createMessage", -1),
        (panics, sample, "an answer", -32603),
    ];
    for (builder, asks, wanted, code) in cases {
        let (fake, client) = asking(builder, asks, None).await;
        let Err(Error::InputRequired { method, asked, error }) =
            in_time(client.call("a", ())).await
        else {
            panic!("{wanted}")
        };
        assert_eq!((&*method, &*asked, error.code), ("tools/call", wanted, code));
        assert_eq!(fake.of("tools/call").len(), 1);
    }
}

/// MRTR-01: a list cannot ask.
#[tokio::test]
async fn mrtr_01_only_three_methods_may_ask() {
    let (_, client) =
        Fake::connect(host(), MODERN, |message| wants(message, Some(a_form()), None)).await;
    let error = in_time(client.tools()).await.unwrap_err();
    assert!(matches!(error, Error::Violation { .. }), "{error}");
}

/// RPC-36, STD-22: a modern server that asks on the wire, also after its answer, is not answered.
#[tokio::test]
async fn a_question_after_the_answer_is_dropped_by_a_modern_client() {
    let (fake, client) = Fake::connect(host(), MODERN, |message| {
        vec![text(message, "x"), fake::question("elicitation/create", form("m"))]
    })
    .await;
    client.call("a", ()).await.unwrap();
    client.call("a", ()).await.unwrap();
    assert_eq!(fake.got().iter().filter(|message| message["id"] == "q").count(), 0);
    assert!(client.diagnostics().refused >= 1);
}

/// Dropping the call drops the question with it.
#[tokio::test]
async fn a_call_that_is_dropped_takes_its_question_along() {
    let seen = Seen::default();
    let dropped = seen.clone();
    struct Bell(Seen);
    impl Drop for Bell {
        fn drop(&mut self) {
            self.0.push("gone");
        }
    }
    let host = Client::builder().on_elicit(move |_, _| {
        let bell = Bell(dropped.clone());
        async move {
            bell.0.push("asked");
            std::future::pending::<()>().await;
            ElicitResult::cancel()
        }
    });
    let (_fake, client) = asking(host, a_form(), None).await;
    let call = tokio::spawn(client.call("a", ()).into_future());
    eventually("a question", || seen.all() == ["asked"]).await;
    call.abort();
    eventually("its end", || seen.all() == ["asked", "gone"]).await;
}
