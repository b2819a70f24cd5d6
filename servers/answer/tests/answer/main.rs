//! The real binary against a stand-in service on loopback: every way a question can end.

// Clippy's exception for tests covers `#[test]` functions, not what they call.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod arguments;
mod exchange;
mod host;
mod service;
mod settings;
mod wire;

use std::time::Duration;

use serde_json::{Value, json};

use host::{Host, KEY};
use service::{Does, Service};

const NEWEST: &str = "2025-11-25";

/// A response with one message; `search` items come before it.
fn response(text: &str, annotations: Value, search: &[Value]) -> Value {
    let message = json!({
        "type": "message",
        "role": "assistant",
        "content": [{ "type": "output_text", "text": text, "annotations": annotations }],
    });
    let mut output = search.to_vec();
    output.push(message);
    json!({ "id": "resp_1", "status": "completed", "model": "gpt-5.5-stand-in", "output": output })
}

fn search(sources: Value) -> Value {
    json!({ "type": "web_search_call", "status": "completed", "action": { "sources": sources } })
}

fn is_date(value: &Value) -> bool {
    let text = value.as_str().unwrap_or_default();
    text.len() == 10 && text.split('-').map(str::len).eq([4, 2, 2])
}

fn says(status: u16, headers: &'static str, message: &str) -> Does {
    Does::Says(status, headers, json!({ "error": { "message": message } }).to_string())
}

fn fine() -> Does {
    Does::Says(200, "", response("Fine.", json!([]), &[]).to_string())
}

#[test]
fn without_search_there_are_no_citations() {
    let service = Service::answering(&response("Four.", json!([]), &[]));
    let mut host = Host::open(&service, NEWEST);
    let answer = host.answer(json!({ "query": "2 + 2?" }));
    let want = json!({
        "answer": "Four.", "used_search": false, "citations": [], "model": "gpt-5.5-stand-in",
    });
    assert_eq!(answer, want);
    host.end();
}

#[test]
fn the_request_has_the_shape_that_the_service_expects() {
    let service = Service::answering(&response("Yes.", json!([]), &[]));
    let mut host = Host::open(&service, NEWEST);
    let arguments = json!({
        "query": "Is it out?", "recency_days": 7, "max_results": 2,
        "domains": ["example.org", "blog.example.com"], "style": "citations-only",
    });
    host.answer(arguments);
    let asked = service.next();
    assert!(asked.head.starts_with("POST /v1/responses HTTP/1.1\r\n"), "{}", asked.head);
    assert!(asked.head.contains(&format!("authorization: Bearer {KEY}\r\n")));
    let text = "Is it out?\n[Hints] recency_days=7, max_results=2. \
                domains: example.org, blog.example.com style: citations-only";
    let body = asked.body;
    assert_eq!(body["input"][0]["role"], "user");
    assert_eq!(body["input"][0]["content"], json!([{ "type": "input_text", "text": text }]));
    assert_eq!(body["tools"], json!([{ "type": "web_search" }]));
    assert_eq!(body["include"], json!(["web_search_call.action.sources"]));
    assert_eq!(body["model"], "gpt-5.5");
    assert_eq!(body["reasoning"], json!({ "effort": "medium" }));
    assert_eq!(body["text"], json!({ "verbosity": "medium" }));
    assert!(body["instructions"].as_str().unwrap().contains("Sources:"));
    host.end();
}

#[test]
fn citations_are_read_in_both_forms_once_each_and_dated() {
    let notes = json!([
        { "type": "url_citation", "url": "https://a.example/1", "title": "One" },
        { "type": "url_citation", "url_citation": { "url": "https://b.example/2", "title": "Two" } },
        { "type": "url_citation", "url": "https://a.example/1", "title": "One again" },
    ]);
    let found = search(
        json!([{ "url": "https://seen.example" }, { "type": "api", "name": "oai-weather" }]),
    );
    let service = Service::answering(&response("Sunny.", notes, &[found]));
    let mut host = Host::open(&service, NEWEST);
    let answer = host.answer(json!({ "query": "weather?" }));
    assert_eq!(answer["used_search"], true);
    let citations = answer["citations"].as_array().unwrap();
    let urls: Vec<_> = citations.iter().map(|c| c["url"].as_str().unwrap()).collect();
    assert_eq!(urls, ["https://a.example/1", "https://b.example/2", "oai-weather"]);
    assert_eq!(citations[1]["title"], "Two");
    assert_eq!(citations[2]["title"], "api");
    assert!(citations.iter().all(|c| is_date(&c["published_at"])), "{answer}");
    let date = citations[0]["published_at"].as_str().unwrap();
    let text = answer["answer"].as_str().unwrap();
    let start =
        format!("Sunny.\n\nSources:\n- https://a.example/1 ({date})\n- https://b.example/2 (");
    assert!(text.starts_with(&start), "{text}");
    host.end();
}

#[test]
fn a_search_without_citations_gives_its_sources_with_their_own_dates() {
    let sources = json!([
        "https://plain.example",
        { "link": "https://link.example", "name": "Named", "published_date": "2024-02-29" },
        { "odd": true },
    ]);
    let service =
        Service::answering(&response("Here.\nSources:\n- two", json!([]), &[search(sources)]));
    let mut host = Host::open(&service, NEWEST);
    let answer = host.answer(json!({ "query": "q" }));
    assert_eq!(answer["citations"][0]["url"], "https://plain.example");
    let named =
        json!({ "url": "https://link.example", "title": "Named", "published_at": "2024-02-29" });
    assert_eq!(answer["citations"][1], named);
    assert_eq!(answer["citations"].as_array().unwrap().len(), 2);
    // The model has a list of its own, but no date in it.
    let text = answer["answer"].as_str().unwrap();
    assert_eq!(text.matches("Sources:").count(), 1);
    assert!(text.ends_with("\n- https://link.example (2024-02-29)"), "{text}");
    host.end();
}

#[test]
fn a_search_of_unknown_shape_gives_every_address_in_it() {
    let call = json!({
        "type": "web_search_call",
        "action": { "sources": { "deep": ["see https://x.example/a), and", "http://y.example."] } },
    });
    let own = "Done.\n\nSources:\n- https://x.example/a (2026-01-02)";
    let service = Service::answering(&response(own, json!([]), &[call]));
    let mut host = Host::open(&service, NEWEST);
    let answer = host.answer(json!({ "query": "q" }));
    assert_eq!(answer["citations"][0]["url"], "https://x.example/a");
    assert_eq!(answer["citations"][1]["url"], "http://y.example");
    assert_eq!(answer["answer"], own, "the model's own dated list is left alone");
    host.end();
}

#[test]
fn a_search_that_found_nothing_is_still_a_search() {
    let service = Service::answering(&response("Nothing known.", json!([]), &[search(json!([]))]));
    let mut host = Host::open(&service, NEWEST);
    let answer = host.answer(json!({ "query": "q" }));
    assert_eq!((&answer["used_search"], &answer["citations"]), (&json!(true), &json!([])));
    assert_eq!(answer["answer"], "Nothing known.");
    host.end();
}

#[test]
fn a_refusal_is_told_as_one() {
    let refusal = json!({ "output": [{ "type": "message", "content": [
        { "type": "refusal", "refusal": "I can't help with that." } ] }] });
    let service = Service::answering(&refusal);
    let mut host = Host::open(&service, NEWEST);
    let text = host.failure(json!({ "query": "something bad" }));
    assert_eq!(text, "the model declined to answer: I can't help with that.");
    host.end();
}

#[test]
fn a_response_without_text_says_why() {
    let script = [
        json!({ "status": "failed", "error": { "message": "out of luck" }, "output": [] }),
        json!({ "incomplete_details": { "reason": "max_output_tokens" }, "output": [] }),
        json!({}),
    ];
    let service = Service::that(script.map(|body| Does::Says(200, "", body.to_string())));
    let mut host = Host::open(&service, NEWEST);
    for want in ["out of luck", "max_output_tokens", "without any text"] {
        let text = host.failure(json!({ "query": "q" }));
        assert!(text.contains(want), "{text}");
    }
    host.end();
}

#[test]
fn a_wrong_key_is_told_without_the_key_and_not_tried_again() {
    let service = Service::that([says(401, "", &format!("Incorrect API key provided: {KEY}."))]);
    let mut host = Host::open(&service, NEWEST);
    let text = host.failure(json!({ "query": "q" }));
    assert!(
        text.contains("401") && text.contains("provided: ***.") && text.contains("OPENAI_API_KEY")
    );
    service.next();
    assert!(service.was_asked_no_more());
    let log = host.end();
    assert!(log.contains("status=401"), "{log}");
}

/// A service may repeat the key in what it answers, too, also inside JSON.
#[test]
fn a_key_that_the_service_quotes_is_not_passed_on() {
    let quoted = format!("Your key is {KEY}, as in {}", json!({ "key": KEY }));
    let source = format!("https://example.org/?key={KEY}");
    let citation = json!([{ "type": "url_citation", "url": source, "title": KEY }]);
    let answer = response(&quoted, citation, &[]).to_string();
    let service = Service::that([Does::Says(200, "", answer)]);
    let mut host = Host::open(&service, NEWEST);
    let answer = host.answer(json!({ "query": "q" }));
    assert!(!answer.to_string().contains(KEY), "{answer}");
    assert!(answer.to_string().contains("Your key is ***"), "{answer}");
    host.end();
}

#[test]
fn too_many_requests_are_tried_again_after_the_time_that_was_asked_for() {
    let service = Service::that([says(429, "Retry-After: 1\r\n", "slow down"), fine()]);
    let mut host = Host::open(&service, NEWEST);
    assert_eq!(host.answer(json!({ "query": "q" }))["answer"], "Fine.");
    let (first, second) = (service.next(), service.next());
    assert!(second.at - first.at >= Duration::from_secs(1));
    host.end();
}

#[test]
fn a_service_that_fails_once_is_asked_twice() {
    let service = Service::that([says(500, "", "oops"), fine()]);
    let mut host = Host::open(&service, NEWEST);
    assert_eq!(host.answer(json!({ "query": "q" }))["answer"], "Fine.");
    assert_eq!(service.next().body, service.next().body);
    host.end();
}

#[test]
fn tries_are_bounded_and_so_is_patience() {
    let service = Service::that([says(503, "", "down for today")]);
    let mut host = Host::open_with(&service, NEWEST, |c| c.env("OPENAI_MAX_RETRIES", "1"));
    assert!(
        host.failure(json!({ "query": "q" })).contains("503 Service Unavailable: down for today")
    );
    service.next();
    service.next();
    assert!(service.was_asked_no_more());
    host.end();

    let service = Service::that([says(429, "Retry-After: 3600\r\n", "come back later")]);
    let mut host = Host::open(&service, NEWEST);
    let text = host.failure(json!({ "query": "q" }));
    assert!(text.contains("come back later") && text.contains("3600s"), "{text}");
    service.next();
    assert!(service.was_asked_no_more());
    host.end();
}

#[test]
fn other_refusals_are_not_tried_again() {
    let service = Service::that([says(404, "", "no such model")]);
    let mut host = Host::open(&service, NEWEST);
    assert!(host.failure(json!({ "query": "q" })).contains("404 Not Found: no such model"));
    service.next();
    assert!(service.was_asked_no_more());
    host.end();
}

#[test]
fn a_body_that_is_cut_off_is_told() {
    let service = Service::that([Does::CutsOff("{\"output\": [".to_owned())]);
    let mut host = Host::open(&service, NEWEST);
    let text = host.failure(json!({ "query": "q" }));
    assert!(text.contains("broke off"), "{text}");
    host.end();
}

#[test]
fn a_body_that_never_ends_is_ended() {
    let service = Service::that([Does::NeverEnds]);
    let mut host = Host::open(&service, NEWEST);
    let text = host.failure(json!({ "query": "q" }));
    assert!(text.contains("longer than 16777216 bytes"), "{text}");
    service.wait_for_hang_up();
    host.end();
}

#[test]
fn a_service_that_says_nothing_is_given_up_and_not_tried_again() {
    let service = Service::that([Does::Waits]);
    let mut host = Host::open_with(&service, NEWEST, |c| c.env("OPENAI_API_TIMEOUT", "200"));
    assert!(host.failure(json!({ "query": "q" })).contains("200ms"));
    service.wait_for_hang_up();
    service.next();
    assert!(service.was_asked_no_more());
    host.end();
}

#[test]
fn what_is_no_json_and_what_is_nobody_are_told() {
    let service = Service::that([Does::Says(200, "", "<html>hello</html>".to_owned())]);
    let mut host = Host::open(&service, NEWEST);
    assert!(host.failure(json!({ "query": "q" })).contains("not JSON"));
    host.end();

    let nobody = "http://127.0.0.1:1/v1";
    let mut host = Host::open_with(&service, NEWEST, |c| c.env("OPENAI_BASE_URL", nobody));
    let text = host.failure(json!({ "query": "q" }));
    assert!(text.contains("http://127.0.0.1:1/v1 did not answer"), "{text}");
    host.end();
}

/// The server is the tutorial, so it must be short enough to be read in one go: every line that is
/// there to be read counts, comments and blank ones too.
#[test]
fn its_source_has_fewer_than_900_lines() {
    let mut lines = 0;
    for entry in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/src")).unwrap() {
        let path = entry.unwrap().path();
        assert!(path.is_file(), "{path:?} would not be counted");
        if path.extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(path).unwrap();
            lines += text.split("#[cfg(test)]").next().unwrap().lines().count();
        }
    }
    assert!((100..900).contains(&lines), "{lines} lines");
}
