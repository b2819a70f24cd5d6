//! What is on the wire when a legacy server asks, and what a rude one gets.

use serde_json::{Value, json};
use taut::types::ElicitResult;
use taut::{Client, ClientBuilder, Reject, Root};

use super::fake::{Fake, LEGACY, form, question, text};
use super::*;

/// A server that asks `question` when it is called, then answers the call.
async fn asking(builder: ClientBuilder, revision: &'static str, question: Value) -> (Fake, Client) {
    Fake::connect(builder, revision, move |message| match message["method"].as_str() {
        Some("tools/call") => vec![question.clone(), text(message, "x")],
        _ => Vec::new(),
    })
    .await
}

async fn asked(builder: ClientBuilder, revision: &'static str, question: Value) -> Value {
    let (fake, client) = asking(builder, revision, question).await;
    client.call("a", ()).await.unwrap();
    fake.response("q").await
}

fn filling_in() -> ClientBuilder {
    Client::builder().on_elicit(async |_, _| ElicitResult::accept(taut::types::JsonObject::new()))
}

/// ELI-01, SAM-01, ROO-01
#[tokio::test]
async fn a_handler_declares_what_it_makes_possible() {
    let host = filling_in()
        .on_elicit_url(async |_, _| ElicitResult::decline())
        .on_sample(async |_, _| Err::<_, Reject>(Reject::by_user()))
        .roots([Root::new("file:///a")]);
    let (fake, _client) = Fake::connect(host.clone(), LEGACY, |_| Vec::new()).await;
    let declared = json!({ "roots": { "listChanged": true }, "sampling": {},
        "elicitation": { "form": {}, "url": {} } });
    assert_eq!(fake.of("initialize")[0]["params"]["capabilities"], declared);
    // ROO-04: the modern revision has no such promise.
    let (fake, _client) = Fake::connect(host, fake::MODERN, |_| Vec::new()).await;
    let meta = &fake.of("server/discover")[0]["params"]["_meta"];
    let declared = json!({ "roots": {}, "sampling": {}, "elicitation": { "form": {}, "url": {} } });
    assert_eq!(meta["io.modelcontextprotocol/clientCapabilities"], declared);
}

/// ERR-16, ELI-03, ELI-04, SAM-05: what was not declared is refused at once, each with its code.
/// Also ERR-15, ERR-17.
#[tokio::test]
async fn err_16_eli_04_each_undeclared_question_has_its_code() {
    let url = json!({ "mode": "url", "message": "m", "url": "https://a.b", "elicitationId": "1" });
    let sample = json!({ "messages": [], "maxTokens": 1, "tools": [] });
    let sampling = Client::builder().on_sample(async |_, _| Err::<_, Reject>(Reject::by_user()));
    let urls = Client::builder().on_elicit_url(async |_, _| ElicitResult::decline());
    let cases = [
        (Client::builder(), LEGACY, "elicitation/create", form("m"), -32601),
        (filling_in(), LEGACY, "sampling/createMessage", sample.clone(), -32601),
        (filling_in(), LEGACY, "roots/list", json!({}), -32601),
        (filling_in(), "2025-03-26", "elicitation/create", form("m"), -32601),
        (filling_in(), LEGACY, "elicitation/create", url, -32602),
        (urls, LEGACY, "elicitation/create", form("m"), -32602),
        (filling_in(), LEGACY, "elicitation/create", json!({ "mode": "voice" }), -32602),
        (filling_in(), LEGACY, "elicitation/create", json!({ "message": 5 }), -32602),
        (sampling.clone(), LEGACY, "sampling/createMessage", sample, -32602),
        (sampling, LEGACY, "sampling/createMessage", json!({ "messages": [], "maxTokens": 1 }), -1),
    ];
    for (builder, revision, method, params, code) in cases {
        let response = asked(builder, revision, question(method, params.clone())).await;
        assert_eq!(response["error"]["code"], code, "{method} {params}: {response}");
    }
}

/// ELI-07: content goes with a form that was accepted, and with nothing else.
#[tokio::test]
async fn eli_07_content_goes_with_accept_only() {
    let content = || json!({ "n": "x" }).as_object().unwrap().clone();
    let answers = [
        (ElicitResult::accept(content()), json!({ "action": "accept", "content": { "n": "x" } })),
        (ElicitResult::decline().content(content()), json!({ "action": "decline" })),
        (ElicitResult::cancel(), json!({ "action": "cancel" })),
    ];
    for (answer, expected) in answers {
        let host = Client::builder().on_elicit(move |_, _| std::future::ready(answer.clone()));
        let response = asked(host, LEGACY, question("elicitation/create", form("m"))).await;
        assert_eq!(response["result"], expected);
    }
}

/// A legacy server may ask whenever it likes, also when nothing is being asked of it.
#[tokio::test]
async fn a_question_after_the_answer_is_answered_by_a_legacy_client() {
    let (fake, client) =
        Fake::connect(filling_in(), LEGACY, |message| match message["method"].as_str() {
            Some("tools/call") => {
                vec![text(message, "x"), question("elicitation/create", form("m"))]
            }
            _ => Vec::new(),
        })
        .await;
    client.call("a", ()).await.unwrap();
    let answer = json!({ "action": "accept", "content": {} });
    assert_eq!(fake.response("q").await["result"], answer);
}

#[tokio::test]
async fn a_handler_that_panics_costs_its_question_and_nothing_else() {
    let host = Client::builder().on_elicit(|_, _| async { panic!("oh") as ElicitResult });
    let (fake, client) = asking(host, LEGACY, question("elicitation/create", form("m"))).await;
    client.call("a", ()).await.unwrap();
    assert_eq!(fake.response("q").await["error"]["code"], -32603);
    client.call("a", ()).await.unwrap();
}

/// The user has not answered when the client is closed, or when the server withdraws.
#[tokio::test]
async fn a_question_that_nobody_answers_holds_up_neither_close_nor_calls() {
    let host = Client::builder().on_elicit(|_, asking: taut::client::RequestContext| async move {
        asking.cancelled().await;
        ElicitResult::cancel()
    });
    let (_fake, client) = asking(host, LEGACY, question("elicitation/create", form("m"))).await;
    in_time(client.call("a", ())).await.unwrap();
    in_time(client.call("a", ())).await.unwrap();
    let start = Instant::now();
    client.close().await.unwrap();
    assert!(start.elapsed() < Duration::from_secs(3), "{:?}", start.elapsed());
}

/// ROO-03: a legacy server is told, a modern one is not (ROO-04).
#[tokio::test]
async fn roo_03_new_folders_are_announced_to_legacy_servers_only() {
    for (revision, told) in [(LEGACY, 1), (fake::MODERN, 0)] {
        let host = Client::builder().roots([Root::new("file:///a")]);
        let (fake, client) =
            Fake::connect(host, revision, |message| vec![text(message, "x")]).await;
        client.set_roots([Root::new("file:///b")]).unwrap();
        client.call("a", ()).await.unwrap();
        assert_eq!(fake.of("notifications/roots/list_changed").len(), told, "{revision}");
    }
}

/// A legacy server waits for the answer before it can give its own.
#[tokio::test(start_paused = true)]
async fn a_person_who_takes_his_time_does_not_cost_the_call() {
    let server = taut::Server::builder("s", "1")
        .tool(("ask", "Tool ask."), async |_: taut::NoArgs, call| {
            let asked = call.ask_form("well?", taut::types::FormSchema::new()).await;
            asked.map(|asked| format!("{asked:?}"))
        })
        .build()
        .unwrap();
    let minute = Duration::from_secs(60);
    let host = Client::builder()
        .revision(taut::Revision::LATEST_LEGACY)
        .request_timeout(Duration::from_secs(5))
        .ceiling(Duration::from_secs(5))
        .on_elicit(move |_, _| async move {
            tokio::time::sleep(minute).await;
            ElicitResult::decline()
        });
    let client = taut::memory_with(&server, host).await.unwrap();
    assert_eq!(client.call("ask", ()).await.unwrap().text().unwrap(), "Declined");
}

/// Nobody is left to hear the answer, so nobody waits for it.
#[tokio::test(start_paused = true)]
async fn a_server_that_goes_away_in_the_middle_of_a_question_is_gone_at_once() {
    use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, duplex};
    let (mut says, hears) = duplex(4096);
    let (speaks, listens) = duplex(4096);
    tokio::spawn(async move {
        let mut lines = BufReader::new(listens).lines();
        for answer in [
            json!({ "protocolVersion": LEGACY, "capabilities": { "tools": {} },
                "serverInfo": { "name": "s", "version": "1" } }),
            Value::Null,
        ] {
            let request: Value =
                serde_json::from_str(&lines.next_line().await.unwrap().unwrap()).unwrap();
            if !answer.is_null() {
                let answer = fake::result(&request, answer);
                says.write_all(format!("{answer}\n").as_bytes()).await.unwrap();
            }
        }
        let _call = lines.next_line().await;
        let asked = question("elicitation/create", form("m"));
        says.write_all(format!("{asked}\n").as_bytes()).await.unwrap();
        // Its output ends; what it is sent is still taken.
        drop(says);
        while let Ok(Some(_)) = lines.next_line().await {}
    });
    let host = Client::builder()
        .revision(taut::Revision::LATEST_LEGACY)
        .on_elicit(|_, _| std::future::pending::<ElicitResult>());
    let client = host.connect(hears, speaks).await.unwrap();
    let start = tokio::time::Instant::now();
    assert!(matches!(client.call("a", ()).await, Err(taut::Error::Lost(_))));
    client.close().await.unwrap();
    assert!(start.elapsed() < Duration::from_secs(1), "{:?}", start.elapsed());
}
