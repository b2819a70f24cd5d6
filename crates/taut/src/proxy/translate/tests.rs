//! A row for each way a message changes between the eras, and the bytes that must not change.

use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::*;
use crate::json::RawJson;
use crate::mcp::{Agreed, ClientCapabilities, Implementation, Level, Method, Revision};
use crate::rpc::{ErrorObject, Params};

/// Values that lose something when they are read and written again.
const ODD: &str = r#"{"n":1234567890123456789012345678901234567890,"e":1e400,"z":-0,"d":1,"d":2,"s":"\u2028\ud800"}"#;

fn params(text: &str) -> Params<'static> {
    let raw = RawValue::from_string(text.to_owned()).unwrap();
    Params::from(Some(&*raw)).into_owned()
}

#[test]
fn a_legacy_request_gets_the_envelope_of_the_modern_revision() {
    let members = envelope(
        Some(&Implementation::new("c", "1")),
        &serde_json::from_value(json!({ "roots": { "listChanged": true }, "tasks": {} })).unwrap(),
        Some(&Level::Warning),
    );
    let own = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"roots":{}},"io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/logLevel":"warning""#;
    let rows = [
        ("{}".to_owned(), format!(r#"{{"_meta":{{{own}}}}}"#)),
        (
            format!(r#"{{"name":"t","arguments":{ODD}}}"#),
            format!(r#"{{"name":"t","arguments":{ODD},"_meta":{{{own}}}}}"#),
        ),
        // A token is rewritten; what the client claims in reserved keys is not believed.
        (
            format!(
                r#"{{"_meta":{{"progressToken":"a","x":{ODD},"io.modelcontextprotocol/logLevel":"debug"}},"task":{{}}}}"#
            ),
            format!(r#"{{"_meta":{{"progressToken":7,"x":{ODD},{own}}}}}"#),
        ),
    ];
    for (legacy, modern) in rows {
        assert_eq!(modern_params(&params(&legacy), &members, "7", &[]), modern);
    }
    let added = [("requestState", "\"s\"")];
    let retried = modern_params(&Params::ABSENT, &[], "7", &added);
    assert_eq!(retried, r#"{"_meta":{},"requestState":"s"}"#);
}

#[test]
fn a_modern_request_loses_its_envelope() {
    let reserved = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{},"io.modelcontextprotocol/logLevel":"debug""#;
    let rows = [
        (format!(r#"{{"_meta":{{{reserved}}}}}"#), "{}".to_owned()),
        (
            format!(r#"{{"name":"t","arguments":{ODD},"_meta":{{{reserved},"traceparent":"x"}}}}"#),
            format!(r#"{{"name":"t","arguments":{ODD},"_meta":{{"traceparent":"x"}}}}"#),
        ),
        (
            format!(
                r#"{{"inputResponses":{{}},"requestState":"s","_meta":{{"progressToken":1,{reserved}}}}}"#
            ),
            r#"{"_meta":{"progressToken":9}}"#.to_owned(),
        ),
    ];
    for (modern, legacy) in rows {
        assert_eq!(legacy_params(&params(&modern), "9"), legacy);
    }
}

#[test]
fn a_relayed_request_changes_its_token_in_place() {
    let text = format!(r#"{{ "a":{ODD}, "_meta" : {{ "progressToken" : "t" }} }}"#);
    let pieces = params(&text);
    let relayed = relayed_params(&pieces, "5").unwrap().concat();
    assert_eq!(relayed, text.replace("\"t\"", "5"));
    let plain = params(ODD);
    assert_eq!(relayed_params(&plain, "5").unwrap().concat(), ODD);
    assert!(relayed_params(&Params::ABSENT, "5").is_none());
}

#[test]
fn a_modern_result_is_told_in_the_words_of_an_older_revision() {
    use Revision as R;
    let rows: [(Option<Method>, Revision, &str, &str); 12] = [
        (
            None,
            R::V2025_11_25,
            r#"{"resultType":"complete","ttlMs":1,"cacheScope":"public","x":1e400}"#,
            r#"{"x":1e400}"#,
        ),
        (None, R::V2025_11_25, r#"{"_meta":{"io.modelcontextprotocol/serverInfo":{}}}"#, "{}"),
        (
            None,
            R::V2025_11_25,
            r#"{"_meta":{"io.modelcontextprotocol/serverInfo":{},"k":-0}}"#,
            r#"{"_meta":{"k":-0}}"#,
        ),
        (None, R::V2025_11_25, r#"{"_meta":{}}"#, r#"{"_meta":{}}"#),
        // Structured content: an object from 2025-06-18 on, and nothing else.
        (
            Some(Method::CallTool),
            R::V2025_06_18,
            r#"{"content":[],"structuredContent":{"a":1e400}}"#,
            r#"{"content":[],"structuredContent":{"a":1e400}}"#,
        ),
        (
            Some(Method::CallTool),
            R::V2025_11_25,
            r#"{"content":[],"structuredContent":[1]}"#,
            r#"{"content":[]}"#,
        ),
        (
            Some(Method::CallTool),
            R::V2025_03_26,
            r#"{"content":[],"structuredContent":{}}"#,
            r#"{"content":[]}"#,
        ),
        // A tool whose structured content is dropped has no output schema either.
        (
            Some(Method::ListTools),
            R::V2025_11_25,
            r#"{"tools":[{"name":"a","outputSchema":{"type":"array"}},{"name":"b","outputSchema":{"type":"object"}}]}"#,
            r#"{"tools":[{"name":"a"},{"name":"b","outputSchema":{"type":"object"}}]}"#,
        ),
        (
            Some(Method::ListTools),
            R::V2025_11_25,
            r#"{"tools":[ {"name":"a"} ]}"#,
            r#"{"tools":[ {"name":"a"} ]}"#,
        ),
        // Blocks that a revision does not know.
        (
            Some(Method::CallTool),
            R::V2025_06_18,
            r#"{"content":[{"type":"audio","data":"","mimeType":"a/b"}]}"#,
            r#"{"content":[{"type":"audio","data":"","mimeType":"a/b"}]}"#,
        ),
        (
            Some(Method::CallTool),
            R::V2025_06_18,
            r#"{"content":[{"type":"resource_link","uri":"a:b","name":"n"}]}"#,
            r#"{"content":[{"type":"resource_link","uri":"a:b","name":"n"}]}"#,
        ),
        (
            Some(Method::CallTool),
            R::V2024_11_05,
            r#"{"content":[{"type":"text","text":"\u2028"}]}"#,
            r#"{"content":[{"type":"text","text":"\u2028"}]}"#,
        ),
    ];
    for (method, revision, modern, legacy) in rows {
        assert_eq!(legacy_result(method, JsonRef::sound(modern), revision).unwrap(), legacy);
    }
    // In words: no type that the revision does not know is left.
    for (kind, revision) in [("audio", R::V2024_11_05), ("resource_link", R::V2025_03_26)] {
        let block =
            json!({ "type": kind, "uri": "a:b", "name": "n", "data": "", "mimeType": "a/b" });
        let call = json!({ "content": [block] }).to_string();
        let told = legacy_result(Some(Method::CallTool), JsonRef::sound(&call), revision).unwrap();
        let told: Value = serde_json::from_str(&told).unwrap();
        assert_ne!(told["content"][0]["type"], kind);
        let prompt = json!({ "messages": [{ "role": "user", "content": block }] }).to_string();
        let told =
            legacy_result(Some(Method::GetPrompt), JsonRef::sound(&prompt), revision).unwrap();
        let told: Value = serde_json::from_str(&told).unwrap();
        assert_eq!(told["messages"][0]["role"], "user");
        assert_ne!(told["messages"][0]["content"]["type"], kind);
    }
    for odd in [r#"{"resultType":"task"}"#, "[]", "1"] {
        let error = legacy_result(None, JsonRef::sound(odd), R::V2025_11_25).unwrap_err();
        assert_eq!(error.code, -32603, "{odd}");
    }
}

#[test]
fn a_legacy_result_gets_what_a_modern_one_must_have() {
    let info = r#"{"name":"s","version":"1"}"#;
    let stamp = format!(r#""io.modelcontextprotocol/serverInfo":{info}"#);
    let rows = [
        (
            Some(Method::CallTool),
            format!(r#"{{"content":[],"x":{ODD}}}"#),
            format!(r#"{{"content":[],"x":{ODD},"resultType":"complete","_meta":{{{stamp}}}}}"#),
        ),
        (
            Some(Method::ListPrompts),
            r#"{"prompts":[],"_meta":{"k":1}}"#.to_owned(),
            format!(
                r#"{{"prompts":[],"resultType":"complete","ttlMs":0,"cacheScope":"private","_meta":{{"k":1,{stamp}}}}}"#
            ),
        ),
        (
            Some(Method::ListTools),
            r#"{"tools":[{"name":"a","execution":{"taskSupport":"optional"}},{"name":"t","execution":{"taskSupport":"required"}},{"name":"b"}]}"#
                .to_owned(),
            format!(
                r#"{{"tools":[{{"name":"a"}},{{"name":"b"}}],"resultType":"complete","ttlMs":0,"cacheScope":"private","_meta":{{{stamp}}}}}"#
            ),
        ),
    ];
    for (method, legacy, modern) in rows {
        assert_eq!(modern_result(method, JsonRef::sound(&legacy), info).unwrap(), modern);
    }
    for cacheable in [
        Method::Discover,
        Method::ListTools,
        Method::ListPrompts,
        Method::ListResources,
        Method::ListResourceTemplates,
        Method::ReadResource,
    ] {
        let told = modern_result(Some(cacheable), JsonRef::sound("{}"), info).unwrap();
        assert!(told.contains("\"ttlMs\":0"), "{told}");
    }
    assert!(modern_result(None, JsonRef::sound("null"), info).is_err());
}

fn error(code: i64, data: &str) -> ErrorObject {
    let mut error = ErrorObject::new(code, "why");
    error.data = Some(RawValue::from_string(data.to_owned()).unwrap());
    error
}

#[test]
fn errors_keep_everything_but_the_codes_that_an_era_does_not_have() {
    let read = Some(Method::ReadResource);
    let same = legacy_error(read, Some("a:b"), error(-32050, ODD)).unwrap_err();
    assert_eq!((same.code, same.data.unwrap().get()), (-32050, ODD));
    let rows = [
        (read, Some("a:b"), -32602, r#"{"uri":"a:b"}"#, -32002),
        (read, Some("a:b"), -32602, r#"{"uri":"other"}"#, -32602),
        (Some(Method::GetPrompt), None, -32602, r#"{"uri":"a:b"}"#, -32602),
        (Some(Method::GetPrompt), None, -32021, "{}", -32603),
        (Some(Method::ListTools), None, -32022, "{}", -32603),
    ];
    for (method, uri, modern, data, legacy) in rows {
        assert_eq!(legacy_error(method, uri, error(modern, data)).unwrap_err().code, legacy);
    }
    let failed = legacy_error(Some(Method::CallTool), None, error(-32021, "{}")).unwrap();
    assert_eq!(failed, r#"{"content":[{"type":"text","text":"why"}],"isError":true}"#);

    let modern = modern_error(read, Some("a:b"), ErrorObject::new(-32002, "gone"));
    assert_eq!((modern.code, modern.data.unwrap().get()), (-32602, r#"{"uri":"a:b"}"#));
    let modern = modern_error(None, None, error(-32007, ODD));
    let data = format!(r#"{{"code":-32007,"data":{ODD}}}"#);
    assert_eq!((modern.code, modern.data.unwrap().get()), (-32603, data.as_str()));
    let modern = modern_error(None, None, ErrorObject::new(-32019, "x"));
    assert_eq!((modern.code, modern.data.unwrap().get()), (-32603, r#"{"code":-32019}"#));
    let same = modern_error(None, None, error(-32601, ODD));
    assert_eq!((same.code, same.data.unwrap().get()), (-32601, ODD));
}

#[test]
fn questions_travel_inside_results_or_by_themselves() {
    let result = r#"{"resultType":"input_required","requestState":"s","inputRequests":{"a":{"method":"elicitation/create","params":{"mode":"url","url":"u","x":1e400}},"b":{"method":"roots/list"}}}"#;
    let questions = input_requests(JsonRef::sound(result)).unwrap();
    assert_eq!(questions.len(), 2);
    assert_eq!((questions[1].key.as_str(), questions[1].method), ("b", Method::ListRoots));
    // 2025-11-25 wants a name for the visit; before it there are no visits.
    let page = legacy_question(&questions[0], Revision::V2025_11_25, "v");
    assert_eq!(page, r#"{"mode":"url","url":"u","x":1e400,"elicitationId":"v"}"#);
    let form = EmbeddedQuestion {
        params: RawJson::from(json!({ "message": "?" })),
        ..questions[0].clone()
    };
    assert_eq!(legacy_question(&form, Revision::V2025_11_25, "v"), r#"{"message":"?"}"#);
    let back = modern_question(Method::Elicit, Some(JsonRef::sound(&page)));
    assert_eq!(
        back,
        r#"{"method":"elicitation/create","params":{"mode":"url","url":"u","x":1e400}}"#
    );
    assert_eq!(modern_question(Method::ListRoots, None), r#"{"method":"roots/list","params":{}}"#);
    for odd in [
        r#"{"inputRequests":[]}"#,
        r#"{"inputRequests":{"a":{"method":"tools/call"}}}"#,
        r#"{"inputRequests":{"a":{}}}"#,
    ] {
        assert!(input_requests(JsonRef::sound(odd)).is_err(), "{odd}");
    }
    assert!(input_requests(JsonRef::sound("{}")).unwrap().is_empty());
}

#[test]
fn nobody_is_asked_for_what_it_does_not_offer() {
    let can = |text: &str| -> ClientCapabilities { serde_json::from_str(text).unwrap() };
    let url = JsonRef::sound(r#"{"mode":"url"}"#);
    let tools = JsonRef::sound(r#"{"tools":[]}"#);
    let rows = [
        (Method::ListRoots, None, r#"{"roots":{}}"#, true),
        (Method::ListRoots, None, "{}", false),
        (Method::Elicit, None, r#"{"elicitation":{}}"#, true),
        (Method::Elicit, Some(url), r#"{"elicitation":{}}"#, false),
        (Method::Elicit, Some(url), r#"{"elicitation":{"url":{}}}"#, true),
        (Method::Elicit, None, r#"{"elicitation":{"url":{}}}"#, false),
        (Method::CreateMessage, None, r#"{"sampling":{}}"#, true),
        (Method::CreateMessage, Some(tools), r#"{"sampling":{}}"#, false),
        (Method::CreateMessage, Some(tools), r#"{"sampling":{"tools":{}}}"#, true),
        (Method::CallTool, None, r#"{"sampling":{}}"#, false),
    ];
    for (method, params, capabilities, fits) in rows {
        assert_eq!(EmbeddedQuestion::fits(method, params, &can(capabilities)), fits, "{method:?}");
    }
}

#[test]
fn a_server_of_either_era_is_introduced_in_the_other() {
    let agreed = Agreed {
        revision: Revision::MODERN,
        capabilities: serde_json::from_value(json!({
            "tools": { "listChanged": true }, "tasks": {}, "extensions": { "x": {} }
        }))
        .unwrap(),
        server_info: Some(Implementation::new("s", "1")),
        instructions: Some("how".to_owned()),
        missing: Vec::new(),
        opening: Value::Null.into(),
    };
    let legacy: Value = serde_json::from_str(&welcome(&agreed, Revision::V2025_06_18)).unwrap();
    assert_eq!(
        legacy,
        json!({
            "protocolVersion": "2025-06-18", "capabilities": { "tools": { "listChanged": true } },
            "serverInfo": { "name": "s", "version": "1" }, "instructions": "how"
        })
    );
    let nameless = Agreed { server_info: None, instructions: None, ..agreed };
    let modern: Value = serde_json::from_str(&discovery(&nameless)).unwrap();
    assert_eq!(modern["supportedVersions"], json!(["2026-07-28"]));
    assert_eq!(modern["ttlMs"], 0);
    assert_eq!(modern["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "unnamed");
    assert_eq!(modern["capabilities"].get("tasks"), None);
}
