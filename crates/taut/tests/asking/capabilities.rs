//! Nobody is asked for what they did not offer, and the client learns what is missing.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::fixture::asking;
use crate::host::{Host, MODERN, text};

/// What each tool needs, and offers that are not enough for it.
fn lacking() -> Vec<(&'static str, Value, Vec<Value>)> {
    let form = json!({ "elicitation": { "form": {} } });
    let url = json!({ "elicitation": { "url": {} } });
    vec![
        ("coffee", form.clone(), vec![json!({}), url.clone(), json!({ "sampling": {} })]),
        ("boxed", form.clone(), vec![json!({})]),
        // CAP-03: saying nothing about modes means forms.
        ("page", url, vec![json!({}), form, json!({ "elicitation": {} })]),
        ("sample", json!({ "sampling": {} }), vec![json!({}), json!({ "roots": {} })]),
        // SAM-05
        (
            "sample_tools",
            json!({ "sampling": { "tools": {} } }),
            vec![json!({ "sampling": {} }), json!({ "sampling": { "context": {} } })],
        ),
        ("roots", json!({ "roots": {} }), vec![json!({}), json!({ "sampling": {} })]),
    ]
}

/// CAP-01, CAP-02, CAP-03, MRTR-04, ELI-04, SAM-05.
#[tokio::test(start_paused = true)]
async fn cap_02_a_modern_client_that_lacks_something_is_told_what_by_32021() {
    let server = Arc::new(asking());
    for (tool, required, offers) in lacking() {
        for offer in offers {
            let mut host = Host::new(&server, MODERN, offer.clone()).await;
            let error = host.call(tool, json!({})).await["error"].clone();
            assert_eq!(error["code"], -32021, "{tool} with {offer}: {error}");
            assert_eq!(error["data"], json!({ "requiredCapabilities": required }), "{tool}");
        }
    }
}

/// CAP-01: what one request declared does not hold for the next.
#[tokio::test(start_paused = true)]
async fn cap_01_what_a_request_declared_is_forgotten_with_it() {
    let server = Arc::new(asking());
    let mut host = Host::new(&server, MODERN, crate::host::everything()).await;
    assert_eq!(host.call("coffee", json!({})).await["result"]["resultType"], "input_required");
    host.wire.call("bare", "coffee", json!({})).await;
    assert_eq!(host.wire.next().await["error"]["code"], -32021);
}

/// ELI-04 in a legacy session: for the model to read, and nothing is asked.
#[tokio::test(start_paused = true)]
async fn eli_04_a_legacy_client_that_lacks_something_is_asked_nothing_and_the_model_is_told() {
    let server = Arc::new(asking());
    for (tool, _, offers) in lacking() {
        for offer in offers {
            let mut host = Host::new(&server, "2025-11-25", offer.clone()).await;
            let answer = host.call(tool, json!({})).await;
            assert_eq!(answer["result"]["isError"], true, "{tool} with {offer}: {answer}");
            assert!(text(&answer).starts_with("this client cannot "), "{answer}");
        }
    }
}

/// A declaration that the revision does not know is none.
#[tokio::test(start_paused = true)]
async fn sam_05_what_a_revision_does_not_have_is_not_asked_for_although_declared() {
    let server = Arc::new(asking());
    let cases = [
        ("2024-11-05", "coffee"),
        ("2025-03-26", "coffee"),
        ("2025-06-18", "page"),
        ("2025-06-18", "sample_tools"),
    ];
    for (revision, tool) in cases {
        let mut host = Host::new(&server, revision, crate::host::everything()).await;
        let answer = host.call(tool, json!({})).await;
        assert!(text(&answer).starts_with("this client cannot "), "{revision} {tool}: {answer}");
    }
}
