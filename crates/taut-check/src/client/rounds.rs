//! Calls that a played server of 2026-07-28 wants once more: states that have to come back, and questions.
//!
//! Keeps nothing: what a request carries says which round it is. Judges nothing.

use serde_json::{Map, Value, json};

use super::offers::{INVALID, ODD_TYPE};
use crate::cx::CAPABILITIES;

/// States that have to come back byte for byte, one a round. Each is spoiled by another habit: trimming, other case,
/// normal forms, percent signs, line ends; reading as JSON or as base64; cutting; taking an empty one for none.
pub(crate) const STATES: [&str; 5] = [
    " St\u{e4}te a\u{308} \u{fb01} %2F +/= \\ \"Quoted\"\r\n\u{1F388} ",
    "{ \"round\" : 2.0, \"round\" : 2 }",
    "eyJyb3VuZCI6M31=",
    concat!(
        "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_0123456789abcdefghijklmnopqrstuvwxyz",
        "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_0123456789abcdefghijklmnopqrstuvwxyz",
        "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_0123456789abcdefghijklmnopqrstuvwxyz",
        "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_0123456789abcdefghijklmnopqrstuvwxyz"
    ),
    "",
];

/// The key of the question that comes alone, in the second round.
pub(crate) const AGAIN: &str = "Ag\u{e4}in";

/// The next round of a call that is answered with states alone; nothing once it is done, or went wrong.
pub(super) fn state(params: &Value) -> Option<Value> {
    let next = match params.get("requestState") {
        None => STATES.first(),
        Some(state) => {
            let place = STATES.iter().position(|known| state == known)?;
            STATES.get(place + 1)
        }
    };
    next.map(|state| json!({ "resultType": "input_required", "requestState": state }))
}

/// The next round of a call that is answered with questions: all that the client declares with a state, then one
/// without a state.
pub(super) fn questions(params: &Value) -> Option<Value> {
    let all = asked(&params["_meta"][CAPABILITIES], true);
    let first = all.values().next()?.clone();
    let carries = |name: &str| params.get(name).is_some();
    if !carries("requestState") && !carries("inputResponses") {
        return Some(
            json!({ "resultType": "input_required", "inputRequests": all, "requestState": STATES[0] }),
        );
    }
    let second =
        params["requestState"] == STATES[0] && params["inputResponses"].get(AGAIN).is_none();
    second.then(|| json!({ "resultType": "input_required", "inputRequests": { AGAIN: first } }))
}

/// What only looks like a wish for another round: nobody knows its type.
pub(super) fn invalid() -> Value {
    json!({ "resultType": ODD_TYPE, "requestState": INVALID, "inputRequests": {}, "content": [] })
}

/// Questions that the client does not declare, which a server must not ask; nothing if it declares all.
pub(super) fn undeclared(params: &Value) -> Option<Value> {
    if params.get("requestState").is_some() || params.get("inputResponses").is_some() {
        return None;
    }
    let all = asked(&params["_meta"][CAPABILITIES], false);
    (!all.is_empty()).then(|| json!({ "resultType": "input_required", "inputRequests": all }))
}

/// A page to open, for a client that does not declare that.
pub(super) fn page(params: &Value) -> Option<Value> {
    let declared = params["_meta"][CAPABILITIES]["elicitation"].get("url").is_some();
    let again = params.get("requestState").is_some() || params.get("inputResponses").is_some();
    let page = json!({ "mode": "url", "message": "Please log in", "url": LOGIN, "elicitationId": "taut-check" });
    let asked = json!({ "page": { "method": "elicitation/create", "params": page } });
    (!declared && !again).then(|| json!({ "resultType": "input_required", "inputRequests": asked }))
}

/// One question of each kind that is declared, or that is not.
fn asked(caps: &Value, declared: bool) -> Map<String, Value> {
    let content = json!({ "type": "text", "text": "hi" });
    let sampling = json!({ "messages": [{ "role": "user", "content": content }], "maxTokens": 5 });
    let form = json!({ "mode": "form", "message": "Who?", "requestedSchema": form(true) });
    let modes = caps.get("elicitation");
    // No mode at all means forms.
    let forms = modes.is_some_and(|it| it.get("form").is_some() || it.get("url").is_none());
    let known = modes.is_some();
    let kinds = [
        ("Nam\u{e9} 1", "elicitation/create", form, if declared { forms } else { known }),
        ("7", "sampling/createMessage", sampling, caps.get("sampling").is_some()),
        ("ROOTS/list ", "roots/list", json!({}), caps.get("roots").is_some()),
    ];
    let wanted = kinds.into_iter().filter(|(.., has)| *has == declared);
    wanted
        .map(|(key, method, params, _)| {
            (key.to_owned(), json!({ "method": method, "params": params }))
        })
        .collect()
}

/// A page that nobody needs to open.
pub(super) const LOGIN: &str = "https://example.com/login";

/// A form with one field of each kind; those with titles and lists came with 2025-11-25.
pub(crate) fn form(titles: bool) -> Value {
    let mut form = json!({ "type": "object", "properties": {
        "name": { "type": "string", "minLength": 1, "maxLength": 100 },
        "count": { "type": "integer", "minimum": 1, "maximum": 1000 },
        "sure": { "type": "boolean" },
        "color": { "type": "string", "enum": ["red", "green"] },
        "size": { "type": "string", "enum": ["s", "m"], "enumNames": ["Small", "Medium"] },
        "mail": { "type": "string", "format": "email" },
        "site": { "type": "string", "format": "uri" },
        "day": { "type": "string", "format": "date" },
        "moment": { "type": "string", "format": "date-time" },
    } });
    if titles {
        form["properties"]["pet"] = json!({ "type": "string", "oneOf": [
            { "const": "c", "title": "Cat" }, { "const": "d", "title": "Dog" },
        ] });
        form["properties"]["fruits"] = json!({ "type": "array", "minItems": 1, "maxItems": 2,
            "items": { "type": "string", "enum": ["apple", "pear", "plum"] } });
    }
    let names = form["properties"].as_object().map(|all| all.keys().cloned().collect::<Vec<_>>());
    form["required"] = json!(names.unwrap_or_default());
    form
}
