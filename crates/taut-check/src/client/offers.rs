//! What a played server offers: versions, tools, in pages or not, and in some scenarios prompts, resources and more.
//!
//! Judges nothing.

use serde_json::{Value, json};

/// The cursors of further pages. Each is spoiled by another habit: trimming, other case, plus and percent signs and normal
/// forms; reading as a number; taking an empty page for the last; reading as JSON; padding of base64; cutting.
pub(crate) const CURSORS: [&str; 4] = [
    "P\u{e4}ge/2 a\u{308} %2F+ =? ",
    "0003",
    "{ \"page\" : 4.0 }",
    concat!(
        "eyJwYWdlIjo1LCJwYWQiOiIxMjM0NTY3ODkwMTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDEyMzQ1Njc4OTAx",
        "MjM0NTY3ODkwMTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5",
        "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MCJ9MTIzNDU2Nzg5MDEyMw=="
    ),
];

/// The page that has no items: that of the second cursor.
const EMPTY_PAGE: usize = 2;

/// The name of a tool, a cursor and a state that are only in a result which is invalid, and the type of that result.
pub(crate) const INVALID: &str = "taut_check_invalid";
pub(super) const ODD_TYPE: &str = "taut-check/odd";

/// A version that no client knows.
pub(crate) const FUTURE: &str = "2031-01-31";

/// Versions that a played server agrees on, and that no client knows.
pub(crate) const OFFERED: [&str; 2] = ["1999-01-01", FUTURE];

/// The version that a scenario is played in, whatever the client asks for; nothing if that decides.
pub(crate) fn agreed(scenario: &str) -> Option<&'static str> {
    Some(match scenario {
        "offer" => OFFERED[0],
        "offer-later" => OFFERED[1],
        "legacy-2024" => "2024-11-05",
        "legacy-0326" => "2025-03-26",
        "legacy-0618" | "rude-0618" | "array-0618" => "2025-06-18",
        _ if scenario.starts_with("modern") => "2026-07-28",
        _ => return None,
    })
}

/// Whether a scenario offers more than tools.
fn is_full(scenario: &str) -> bool {
    ["legacy-full", "legacy-0618", "modern-full", "modern-input", "pages", "stuck-list"]
        .contains(&scenario)
}

/// Whether lists come in pages.
pub(super) fn is_paged(scenario: &str) -> bool {
    ["pages", "legacy-0618"].contains(&scenario)
}

pub(super) fn capabilities(scenario: &str, modern: bool) -> Value {
    let mut all = json!({ "tools": { "listChanged": true } });
    if is_full(scenario) {
        all["prompts"] = json!({ "listChanged": true });
        all["resources"] = json!({ "listChanged": true });
    }
    // Prompts without completions are seen, too.
    if is_full(scenario) && scenario != "pages" {
        all["completions"] = json!({});
        all["logging"] = json!({});
    }
    if scenario == "legacy-full" && !modern {
        all["resources"]["subscribe"] = json!(true);
    }
    all
}

pub(super) fn tools(scenario: &str, params: &Value, modern: bool) -> Value {
    let about = match scenario {
        // Raw in the line: only LF ends it.
        "legacy-odd" | "modern-slow" => "Say\u{2028}it\u{2029}once\u{85}more",
        _ => "Say it again",
    };
    let tool = |name: &str| {
        json!({ "name": name, "description": about,
        "inputSchema": { "type": "object", "properties": { "text": { "type": "string" } } } })
    };
    match scenario {
        "modern-type" => {
            json!({ "tools": [tool(INVALID)], "nextCursor": INVALID, "resultType": ODD_TYPE })
        }
        _ if is_paged(scenario) => {
            let name = match page_of("tools/list", params) {
                Some(place) if place > 0 => format!("echo{}", place + 1),
                _ => "echo".to_owned(),
            };
            let mut page = json!({ "tools": [tool(&name)] });
            turn("tools/list", params, modern, &mut page);
            page
        }
        "legacy-full" | "modern-full" => json!({ "tools": [tool("echo"), tool(FAILS)] }),
        // One that calls every tool goes on after the first.
        "modern-state" => json!({ "tools": [tool("echo"), tool("echo2")] }),
        "stuck" | "legacy-stuck" | "late" => {
            json!({ "tools": [tool("echo"), tool("echo2"), tool("echo3")] })
        }
        _ => json!({ "tools": [tool("echo")] }),
    }
}

/// What fails in the scenarios that offer more than tools: one tool, and one resource.
const FAILS: &str = "fails";
const GONE: &str = "file:///taut-check/gone.txt";

/// The error of a request for what fails there.
pub(super) fn failure(method: &str, params: &Value, scenario: &str, modern: bool) -> Option<Value> {
    if !is_full(scenario) {
        return None;
    }
    let missing = if modern { -32602 } else { -32002 };
    match method {
        "tools/call" if params["name"] == FAILS && modern => Some(
            json!({ "code": -32021, "message": "sampling is needed", "data": { "requiredCapabilities": { "sampling": {} } } }),
        ),
        "tools/call" if params["name"] == FAILS => {
            Some(json!({ "code": -32603, "message": "the disk is full" }))
        }
        "resources/read" if params["uri"] == GONE => {
            Some(json!({ "code": missing, "message": "no such resource", "data": { "uri": GONE } }))
        }
        _ => None,
    }
}

/// The result of a method that only a server has which offers all; nothing if there is no such method.
pub(super) fn full(method: &str, params: &Value, scenario: &str, modern: bool) -> Option<Value> {
    if !is_full(scenario) {
        return None;
    }
    let mut result = one(method, modern)?;
    if is_paged(scenario) && method.ends_with("/list") {
        if let Some(place) = page_of(method, params).filter(|place| *place > 0) {
            renamed(&mut result, place);
        }
        turn(method, params, modern, &mut result);
    }
    Some(result)
}

/// Another item than that of the first page.
fn renamed(result: &mut Value, place: usize) {
    let lists = result.as_object_mut().into_iter().flat_map(|all| all.values_mut());
    for list in lists.filter_map(Value::as_array_mut) {
        list.truncate(1);
        for key in ["name", "uri", "uriTemplate"] {
            if let Some(Value::String(text)) = list.first_mut().and_then(|item| item.get_mut(key)) {
                text.push_str(&(place + 1).to_string());
            }
        }
    }
}

/// The cursor of a page of a list: one that no other list has.
fn cursor(method: &str, place: usize) -> Option<String> {
    let plain = *CURSORS.get(place)?;
    Some(match place {
        _ if method == "tools/list" => plain.to_owned(),
        1 => format!("00{}", method.len()),
        2 => format!("{{ \"page\" : 4.0, \"of\" : \"{method}\" }}"),
        _ => format!("{method} {plain}"),
    })
}

/// Which page a request asks for: 0 is the first one. Nothing for the last one of 2026-07-28, whose cursor is empty, and
/// for a cursor that was never given.
fn page_of(method: &str, params: &Value) -> Option<usize> {
    let Some(asked) = params.get("cursor") else { return Some(0) };
    (0..CURSORS.len())
        .find(|place| cursor(method, *place).is_some_and(|it| *asked == it))
        .map(|it| it + 1)
}

/// Makes a result one page of its list: with the cursor of the next one, and without items where that is the point.
fn turn(method: &str, params: &Value, modern: bool, page: &mut Value) {
    let Some(place) = page_of(method, params) else { return };
    if place == EMPTY_PAGE {
        let lists = page.as_object_mut().into_iter().flat_map(|all| all.values_mut());
        lists.for_each(|list| *list = json!([]));
    }
    // The last one is empty in 2026-07-28, where that is said to be a cursor.
    let next = cursor(method, place).or_else(|| modern.then(String::new));
    if let Some(next) = next {
        page["nextCursor"] = json!(next);
    }
}

/// The result of such a method, without its pages.
fn one(method: &str, modern: bool) -> Option<Value> {
    let uri = "file:///taut-check/notes.txt";
    let prompt = json!({ "name": "greet", "arguments": [{ "name": "who", "required": true }] });
    let text = json!({ "type": "text", "text": "hello" });
    Some(match method {
        "logging/setLevel" | "resources/subscribe" | "resources/unsubscribe" if !modern => {
            json!({})
        }
        "prompts/list" => json!({ "prompts": [prompt] }),
        "prompts/get" => json!({ "messages": [{ "role": "user", "content": text }] }),
        "resources/list" => {
            json!({ "resources": [{ "uri": uri, "name": "notes" }, { "uri": GONE, "name": "gone" }] })
        }
        "resources/templates/list" => {
            json!({ "resourceTemplates": [{ "uriTemplate": "file:///taut-check/{name}", "name": "files" }] })
        }
        "resources/read" => json!({ "contents": [{ "uri": uri, "text": "hello" }] }),
        "completion/complete" => json!({ "completion": { "values": ["world"] } }),
        _ => return None,
    })
}

/// Whether the result of a method may be kept, and says for how long.
pub(super) fn is_kept(method: &str) -> bool {
    ["server/discover", "resources/read"].contains(&method) || method.ends_with("/list")
}
