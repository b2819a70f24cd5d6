//! Arguments that do not fit: an error for those who were promised one, words for the model
//! otherwise.

use serde_json::{Value, json};

use crate::host::Host;
use crate::service::{Does, Service};

fn bad_arguments() -> [(Value, &'static str); 9] {
    [
        (json!({}), "query is required"),
        (json!({ "query": null }), "query is required"),
        (json!({ "query": "  " }), "query is required"),
        (json!({ "query": 5 }), "`query`: must be a string, not the number 5"),
        (json!({ "query": "q", "recency_days": -1 }), "recency_days must be 0 or more"),
        (json!({ "query": "q", "max_results": -2.5 }), "max_results must be 1 or more"),
        (
            json!({ "query": "q", "style": "poem" }),
            "`style`: must be one of `summary`, `bullets`, `citations-only`, not `poem`",
        ),
        (
            json!({ "query": "q", "domains": ["example.org", "https://example.org/a"] }),
            "domains: \"https://example.org/a\" is no domain such as example.org",
        ),
        (
            json!({ "query": "q", "domains": ["localhost"] }),
            "domains: \"localhost\" is no domain such as example.org",
        ),
    ]
}

#[test]
fn clients_up_to_2025_06_18_get_the_error_they_were_promised() {
    let service = Service::that([Does::Waits]);
    for revision in ["2024-11-05", "2025-03-26", "2025-06-18"] {
        let mut host = Host::open(&service, revision);
        for (tool, (arguments, reason)) in
            ["answer", "answer_detailed", "answer_quick"].iter().cycle().zip(bad_arguments())
        {
            let error = host.call(tool, arguments)["error"].clone();
            assert_eq!(error["code"], -32001);
            assert_eq!(error["message"], "answer: invalid arguments");
            assert_eq!(error["data"], json!({ "reason": reason }));
        }
        host.end();
    }
    assert!(service.was_asked_no_more());
}

#[test]
fn newer_clients_get_the_same_words_as_a_result() {
    let service = Service::that([Does::Waits]);
    let mut host = Host::open(&service, "2025-11-25");
    for (arguments, reason) in bad_arguments() {
        let text = host.failure(arguments);
        assert_eq!(text, format!("invalid arguments for answer: {reason}"));
    }
    host.end();
    assert!(service.was_asked_no_more());
}

#[test]
fn the_schemas_say_what_the_checks_ask_for() {
    let service = Service::that([Does::Waits]);
    let mut host = Host::open(&service, "2025-06-18");
    let list = host.ask("tools/list", json!({}));
    let tools = list["result"]["tools"].as_array().unwrap();
    let names: Vec<_> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["answer", "answer_detailed", "answer_quick"]);
    for tool in tools {
        let schema = &tool["inputSchema"];
        assert_eq!(schema["required"], json!(["query"]), "{schema}");
        assert_eq!(schema["properties"]["query"]["type"], "string");
        assert_eq!(schema["properties"]["recency_days"]["minimum"], 0);
        assert!(schema.to_string().contains("citations-only"));
        let output = &tool["outputSchema"];
        assert_eq!(output["required"], json!(["answer", "used_search", "citations", "model"]));
    }
    host.end();
}
