//! Every feature, in all four combinations of eras. `crate::way` says how; `taut-nats` runs this over a broker.

use std::time::Duration;

use serde_json::{Value, json};
use taut::types::{CompletionReference, PromptReference, SubscriptionFilter};
use taut::{Change, Error, Level};

use crate::way::joined;
use crate::world::{COMBINATIONS, Heard, Sum, host, was_cancelled};

#[tokio::test]
async fn the_server_is_known_by_its_own_name() {
    for (front, back) in COMBINATIONS {
        let client = joined(front, back, host(&Heard::default())).await;
        let info = client.server_info().unwrap();
        assert_eq!((info.name.as_str(), info.version.as_str()), ("back", "7.1"));
        assert_eq!(client.instructions(), Some("how to use it"));
        assert_eq!(client.capabilities().tools.as_ref().unwrap().list_changed, Some(true));
    }
}

#[tokio::test]
async fn lists_come_page_by_page() {
    for (front, back) in COMBINATIONS {
        let client = joined(front, back, host(&Heard::default())).await;
        let mut pages = client.tools();
        let mut sizes = Vec::new();
        while let Some(page) = pages.next_page().await.unwrap() {
            sizes.push(page.len());
        }
        assert_eq!(sizes, [4, 4, 4], "{front} {back}");
        assert_eq!(client.resources().await.unwrap().len(), 1);
        assert_eq!(client.resource_templates().await.unwrap().len(), 1);
        assert_eq!(client.prompts().await.unwrap().len(), 1);
    }
}

#[tokio::test]
async fn calls_results_and_failures_pass() {
    for (front, back) in COMBINATIONS {
        let client = joined(front, back, host(&Heard::default())).await;
        let echo = client.call("echo", json!({ "line": "hi" })).await.unwrap();
        assert_eq!(echo.text().unwrap(), "hi");
        let sum = client.call("sum", json!({})).await.unwrap();
        assert_eq!(sum.json::<Sum>().unwrap(), Sum { sum: 5 });
        let failed = client.call("fail", json!({})).await.unwrap().text().map(drop).unwrap_err();
        assert!(matches!(failed, Error::Tool { .. }), "{failed:?}");
        let unknown = client.call("nobody", json!({})).await.unwrap_err();
        let Error::Refused { error, .. } = unknown else { panic!("{unknown:?}") };
        assert_eq!(error.code, -32602);
    }
}

#[tokio::test]
async fn resources_prompts_and_completion_pass() {
    for (front, back) in COMBINATIONS {
        let client = joined(front, back, host(&Heard::default())).await;
        let read = client.read("a:b").await.unwrap();
        assert_eq!(read[0].text.as_deref(), Some("inside"));
        let note = client.read("note://1").await.unwrap();
        assert_eq!(note[0].text.as_deref(), Some("one"));
        let prompt = client.prompt("greet", [("name", "Ann")]).await.unwrap();
        assert_eq!(prompt.messages.len(), 1);
        let reference = CompletionReference::Prompt(PromptReference::new("greet"));
        let completed = client.complete(reference, "name", "A").await.unwrap();
        assert_eq!(completed.values, ["Ann"]);
    }
}

#[tokio::test]
async fn errors_keep_code_message_and_data() {
    for (front, back) in COMBINATIONS {
        let client = joined(front, back, host(&Heard::default())).await;
        let error = match client.read("note://2").await.unwrap_err() {
            Error::Refused { error, .. } => error,
            other => panic!("{other:?}"),
        };
        assert_eq!((error.code, &*error.message), (-32050, "no such note"), "{front} {back}");
        assert_eq!(error.data.unwrap().get(), r#"{"n":"2"}"#);
        let missing = match client.read("nowhere:1").await.unwrap_err() {
            Error::Refused { error, .. } => error,
            other => panic!("{other:?}"),
        };
        let code = if front.is_modern() { -32602 } else { -32002 };
        assert_eq!(missing.code, code, "{front} {back}: {missing:?}");
        assert!(missing.data.unwrap().get().contains("nowhere:1"));
    }
}

#[tokio::test]
async fn a_method_that_the_client_s_revision_does_not_have_is_refused() {
    for (front, back) in COMBINATIONS {
        let client = joined(front, back, host(&Heard::default())).await;
        let of_the_other_era: &[&str] = match front.is_modern() {
            true => &["ping", "logging/setLevel"],
            false => &["server/discover", "subscriptions/listen"],
        };
        for method in [&["made/up"], of_the_other_era].concat() {
            let refused = client.request::<Value>(method, json!({})).await.unwrap_err();
            let Error::Refused { error, .. } = refused else { panic!("{method}: {refused:?}") };
            assert_eq!(error.code, -32601, "{method} {front} {back}");
        }
    }
}

#[tokio::test]
async fn progress_reaches_the_request_that_asked_for_it() {
    for (front, back) in COMBINATIONS {
        let client = joined(front, back, host(&Heard::default())).await;
        let seen = Heard::default();
        let reports = seen.clone();
        let call = client
            .call("progress", json!({}))
            .progress(move |report| reports.add(report.progress.to_string()));
        assert_eq!(call.await.unwrap().text().unwrap(), "done");
        assert_eq!(seen.lines(), ["1", "2", "3"], "{front} {back}");
    }
}

#[tokio::test]
async fn log_lines_of_the_wanted_level_pass() {
    for (front, back) in COMBINATIONS {
        let heard = Heard::default();
        let client = joined(front, back, host(&heard)).await;
        client.set_level(Level::Error).await.unwrap();
        client.call("log", json!({})).await.unwrap();
        assert_eq!(heard.lines(), ["error \"loud\""], "{front} {back}");
    }
}

#[tokio::test]
async fn a_cancelled_call_is_cancelled_at_the_server() {
    for (front, back) in COMBINATIONS {
        let client = joined(front, back, host(&Heard::default())).await;
        let name = format!("{front} {back}");
        let wait = client.call("wait", json!({ "name": name }));
        let call = wait.timeout(Duration::from_millis(50)).await;
        assert!(matches!(call, Err(Error::TimedOut { .. })), "{call:?}");
        let seen = async {
            while !was_cancelled(&name) {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), seen).await.unwrap();
        // The connection goes on.
        assert_eq!(
            client.call("echo", json!({ "line": "on" })).await.unwrap().text().unwrap(),
            "on"
        );
    }
}

/// Of what was asked for, and of nothing else; after the end of it, of nothing any more.
#[tokio::test]
async fn changes_of_lists_and_resources_are_told() {
    for (front, back) in COMBINATIONS {
        let client = joined(front, back, host(&Heard::default())).await;
        let filter = SubscriptionFilter::new()
            .tools_list_changed(true)
            .prompts_list_changed(true)
            .resources_list_changed(true)
            .resource_subscriptions(["a:b".to_owned()]);
        let mut changes = client.listen(filter).await.unwrap();
        let lists = [
            ("tools", Change::Tools),
            ("prompts", Change::Prompts),
            ("resources", Change::Resources),
        ];
        for (list, expected) in lists {
            client.call("change", json!({ "line": list })).await.unwrap();
            let change = tokio::time::timeout(Duration::from_secs(20), changes.next()).await;
            assert!(change.is_ok(), "{list} {front} {back}");
            assert_eq!(change.unwrap().unwrap(), Some(expected), "{list} {front} {back}");
        }
        // The other one is not followed: nothing comes of it before the one that is.
        client.call("touch", json!({ "line": "a:other" })).await.unwrap();
        client.call("touch", json!({ "line": "a:b" })).await.unwrap();
        let change = tokio::time::timeout(Duration::from_secs(20), changes.next()).await;
        assert!(change.is_ok(), "{front} {back}");
        let expected = Change::Resource("a:b".into());
        assert_eq!(change.unwrap().unwrap(), Some(expected), "{front} {back}");
        drop(changes);
        // No longer followed.
        let filter = SubscriptionFilter::new().resource_subscriptions(["note://1".to_owned()]);
        let mut changes = client.listen(filter).await.unwrap();
        client.call("touch", json!({ "line": "a:b" })).await.unwrap();
        client.call("touch", json!({ "line": "note://1" })).await.unwrap();
        let change = tokio::time::timeout(Duration::from_secs(20), changes.next()).await;
        assert!(change.is_ok(), "{front} {back}");
        let expected = Change::Resource("note://1".into());
        assert_eq!(change.unwrap().unwrap(), Some(expected), "{front} {back}");
        client.close().await.unwrap();
    }
}
