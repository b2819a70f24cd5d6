//! Every older revision: with itself, and with the modern one on the other side.

use std::time::Duration;

use serde_json::json;
use taut::types::{CompletionReference, PromptReference, SubscriptionFilter};
use taut::{Change, Error, Level, Revision};

use crate::way::joined;
use crate::world::{Heard, Sum, host, was_cancelled};

const OLDER: [Revision; 3] = [Revision::V2024_11_05, Revision::V2025_03_26, Revision::V2025_06_18];

/// The pairs of a client and a server in which one of these revisions occurs.
fn pairs() -> impl Iterator<Item = (Revision, Revision)> {
    OLDER.into_iter().flat_map(|older| {
        let newest = Revision::LATEST_LEGACY;
        let modern = Revision::MODERN;
        [(older, older), (older, modern), (modern, older), (older, newest), (newest, older)]
    })
}

#[tokio::test]
async fn older_revisions_have_what_they_know() {
    for (front, back) in pairs() {
        let what = format!("{front} {back}");
        let heard = Heard::default();
        let client = joined(front, back, host(&heard)).await;
        assert_eq!(client.server_info().unwrap().name, "back", "{what}");
        assert_eq!(client.tools().await.unwrap().len(), 12, "{what}");
        let sum = client.call("sum", json!({})).await.unwrap();
        let structured = Revision::V2025_06_18;
        match front >= structured && back >= structured {
            true => assert_eq!(sum.json::<Sum>().unwrap(), Sum { sum: 5 }, "{what}"),
            false => {
                assert!(sum.structured_content.is_none(), "{what}");
                assert_eq!(sum.text().unwrap(), r#"{"sum":5}"#, "{what}");
            }
        }
        let failed = client.call("fail", json!({})).await.unwrap().text().map(drop).unwrap_err();
        assert!(matches!(failed, Error::Tool { .. }), "{what}: {failed:?}");
        assert_eq!(client.read("a:b").await.unwrap()[0].text.as_deref(), Some("inside"), "{what}");
        assert_eq!(client.prompt("greet", [("name", "Ann")]).await.unwrap().messages.len(), 1);
        // The oldest revision has no capability for completion, so a newer client does not see that it is there.
        if back > Revision::V2024_11_05 || front == back {
            let reference = CompletionReference::Prompt(PromptReference::new("greet"));
            let completed = client.complete(reference, "name", "A").await.unwrap();
            assert_eq!(completed.values, ["Ann"], "{what}");
        }
        let Error::Refused { error, .. } = client.read("note://2").await.unwrap_err() else {
            panic!("{what}")
        };
        assert_eq!((error.code, error.data.unwrap().get()), (-32050, r#"{"n":"2"}"#), "{what}");
        let reports = Heard::default();
        let seen = reports.clone();
        let call = client.call("progress", json!({}));
        call.progress(move |report| seen.add(report.progress.to_string())).await.unwrap();
        assert_eq!(reports.lines(), ["1", "2", "3"], "{what}");
        client.set_level(Level::Error).await.unwrap();
        client.call("log", json!({})).await.unwrap();
        assert_eq!(heard.lines(), ["error \"loud\""], "{what}");
        let name = format!("older {what}");
        let wait = client.call("wait", json!({ "name": name })).timeout(Duration::from_millis(50));
        assert!(matches!(wait.await, Err(Error::TimedOut { .. })), "{what}");
        let seen = async {
            while !was_cancelled(&name) {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), seen).await.unwrap();
    }
}

#[tokio::test]
async fn older_revisions_ask_what_they_can_ask_and_tell_of_changes() {
    for (front, back) in pairs() {
        let what = format!("{front} {back}");
        let heard = Heard::default();
        let client = joined(front, back, host(&heard)).await;
        let roots = client.call("roots", json!({})).await.unwrap();
        assert_eq!(roots.text().unwrap(), "file:///home", "{what}");
        // Forms are of 2025-06-18.
        let forms = Revision::V2025_06_18;
        let form = client.call("form", json!({})).await;
        match front >= forms && back >= forms {
            true => assert_eq!(form.unwrap().text().unwrap(), "line 1 then line 2", "{what}"),
            false => {
                assert!(form.and_then(|answer| answer.text().map(drop)).is_err(), "{what}");
                assert!(heard.lines().is_empty(), "{what}");
            }
        }
        let filter = SubscriptionFilter::new()
            .tools_list_changed(true)
            .resource_subscriptions(["a:b".to_owned()]);
        let mut changes = client.listen(filter).await.unwrap();
        for (tool, line, expected) in
            [("change", "tools", Change::Tools), ("touch", "a:b", Change::Resource("a:b".into()))]
        {
            client.call(tool, json!({ "line": line })).await.unwrap();
            let change = tokio::time::timeout(Duration::from_secs(20), changes.next()).await;
            assert_eq!(change.unwrap().unwrap(), Some(expected), "{what}");
        }
    }
}
