//! The demo server, driven by our client in each of the five revisions.

#[path = "../../../taut-cli/src/demo.rs"]
pub(super) mod server;

use serde_json::json;
use taut::types::{CreateMessageResult, ElicitResult, SubscriptionFilter};
use taut::{Change, Client, ClientBuilder, Error, Level, Revision, Role, Root};

use super::*;

/// A host that answers everything that the demo asks.
fn host(seen: &Seen) -> ClientBuilder {
    let (asked, logged, changed) = (seen.clone(), seen.clone(), seen.clone());
    Client::builder()
        .on_elicit(move |form, _asking| {
            let asked = asked.clone();
            async move {
                asked.push(form.message.clone());
                let answer = if form.message.starts_with("What") {
                    json!({ "size": "large", "milk": false, "name": "Ada" })
                } else {
                    json!({ "right": true })
                };
                ElicitResult::accept(answer.as_object().unwrap().clone())
            }
        })
        .on_sample(async |params, _asking| {
            assert_eq!(params.max_tokens, 200);
            CreateMessageResult::new(Role::Assistant, "as you say", "a-model")
        })
        .roots([Root::new("file:///work"), Root::new("file:///home").name("Home")])
        .on_log(move |log| logged.push(format!("{} {}", log.level, log.data.text())))
        .on_change(move |change| changed.push(format!("{change:?}")))
}

async fn connect(revision: Revision, seen: &Seen) -> Client {
    in_time(taut::memory_with(&server::server().build().unwrap(), host(seen).revision(revision)))
        .await
        .unwrap()
}

/// ELI-07; in both eras two rounds, each with its own question.
/// Also MRTR-15.
#[tokio::test]
async fn a_form_is_filled_in_wherever_the_revision_has_forms() {
    for revision in Revision::ALL {
        let seen = Seen::default();
        let client = connect(revision, &seen).await;
        let answer = in_time(client.call("ask", json!({}))).await.unwrap();
        if revision.has_elicitation() {
            assert_eq!(answer.text().unwrap(), "one large coffee, black, for Ada", "{revision}");
            let questions = ["What would you like?", "That is one large coffee, black."];
            assert_eq!(seen.all(), questions, "{revision}");
        } else {
            let Err(Error::Tool { text, .. }) = answer.text() else { panic!("{revision}") };
            assert!(text.contains("cannot"), "{text}");
        }
    }
}

/// SAM-03
#[tokio::test]
async fn a_model_is_asked_in_every_revision() {
    for revision in Revision::ALL {
        let client = connect(revision, &Seen::default()).await;
        let answer = in_time(client.call("sample", json!({ "prompt": "hm?" }))).await.unwrap();
        assert_eq!(answer.text().unwrap(), "as you say", "{revision}");
    }
}

/// ROO-02, ROO-03
#[tokio::test]
async fn folders_are_shown_in_every_revision_and_may_change() {
    for revision in Revision::ALL {
        let client = connect(revision, &Seen::default()).await;
        let roots = async || in_time(client.call("roots", json!({}))).await.unwrap();
        assert_eq!(roots().await.text().unwrap(), "file:///work\nfile:///home", "{revision}");
        client.set_roots([Root::new("file:///tmp")]).unwrap();
        assert_eq!(roots().await.text().unwrap(), "file:///tmp", "{revision}");
    }
}

#[tokio::test]
async fn a_resource_that_is_touched_is_heard_of_in_every_revision() {
    for revision in Revision::ALL {
        let client = connect(revision, &Seen::default()).await;
        let filter =
            SubscriptionFilter::new().resource_subscriptions(["demo://touched".to_owned()]);
        let mut changes = in_time(client.listen(filter)).await.unwrap();
        let touched = Change::Resource("demo://touched".to_owned());
        for times in ["1", "2"] {
            in_time(client.call("touch", json!({}))).await.unwrap();
            assert_eq!(in_time(changes.next()).await.unwrap(), Some(touched.clone()), "{revision}");
            let contents = in_time(client.read("demo://touched")).await.unwrap();
            assert_eq!(contents[0].text.as_deref(), Some(times), "{revision}");
        }
        client.close().await.unwrap();
        assert_eq!(in_time(changes.next()).await.unwrap(), None, "{revision}");
    }
}

#[tokio::test]
async fn a_new_tool_is_heard_of_and_a_log_is_passed_on_in_every_revision() {
    for revision in Revision::ALL {
        let seen = Seen::default();
        let client = connect(revision, &seen).await;
        in_time(client.set_level(Level::Info)).await.unwrap();
        let arguments = json!({ "name": "hello", "says": "hi" });
        in_time(client.call("add_tool", arguments)).await.unwrap();
        in_time(client.call("log", json!({ "message": "x" }))).await.unwrap();
        let expected = ["Tools", "info \"x\""];
        eventually("both", || expected.iter().all(|line| seen.all().contains(&(*line).into())))
            .await;
        assert_eq!(seen.all().len(), 2, "{revision}: {:?}", seen.all());
        assert_eq!(in_time(client.call("hello", ())).await.unwrap().text().unwrap(), "hi");
    }
}

/// A handler that calls the server which waits for it: neither waits for ever.
#[tokio::test]
async fn a_handler_may_call_tools_of_the_server_that_asks() {
    for revision in Revision::ALL {
        let host = Client::builder().revision(revision).on_sample(async |_, asking| {
            let client = asking.client().ok_or_else(|| taut::Reject::internal("gone"))?;
            let sum = client.call("add", json!({ "a": 2, "b": 3 })).await;
            let sum = sum.map_err(|error| taut::Reject::internal(error.to_string()))?;
            let text = sum.text().unwrap().into_owned();
            Ok::<_, taut::Reject>(CreateMessageResult::new(Role::Assistant, text, "m"))
        });
        let client = taut::memory_with(&server::server().build().unwrap(), host).await.unwrap();
        let answer = in_time(client.call("sample", json!({ "prompt": "2+3" }))).await.unwrap();
        assert!(answer.text().unwrap().contains('5'), "{revision}: {answer:?}");
    }
}
