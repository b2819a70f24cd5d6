//! What the checks of lists share: their items, and their members.

use serde_json::{Value, json};

use super::{kind, short};
use crate::check::Verdict;
use crate::cx::Cx;
use crate::seen::All;

/// What is wrong with the items of a list, over all answers to a method.
pub(super) fn items(
    all: &All<'_>,
    method: &str,
    member: &str,
    wrong: impl Fn(&Value) -> Option<String>,
) -> Verdict {
    let mut faults = Vec::new();
    for answer in all.answers() {
        let Some(result) = answer.result().filter(|_| answer.method == method) else { continue };
        let Some(list) = result[member].as_array() else { continue };
        faults.extend(list.iter().filter_map(&wrong).map(|what| (what, answer.line.text())));
    }
    Verdict::from_faults(faults)
}

/// Whether the results of a method have their list.
pub(super) fn has_list(all: &All<'_>, method: &str, member: &str) -> Verdict {
    let mut faults = Vec::new();
    for answer in all.answers() {
        let Some(result) = answer.result().filter(|_| answer.method == method) else { continue };
        if result.is_object() && !result[member].is_array() {
            faults.push((format!("`{member}` is {}", kind(&result[member])), answer.line.text()));
        }
    }
    Verdict::from_faults(faults)
}

/// What the official schema of the revision says against a part of a message.
pub(super) fn misfit(cx: &Cx<'_>, definition: &str, part: &Value) -> Option<String> {
    let what = crate::schema::misfit(cx.revision, definition, part)?;
    Some(format!("{what} in {}", short(part)))
}

/// The same for the result of a call that has only this block.
pub(super) fn misfit_block(cx: &Cx<'_>, block: &Value) -> Option<String> {
    let result = json!({ "content": [block], "resultType": "complete" });
    let what = crate::schema::misfit(cx.revision, "CallToolResult", &result)?;
    Some(format!("{what} in {}", short(block)))
}

pub(super) fn named(item: &Value, names: &[&str]) -> Option<String> {
    let missing = names.iter().find(|name| !item[**name].is_string())?;
    Some(format!("`{missing}` is {} in {}", kind(&item[*missing]), short(item)))
}

/// How many items of a list are tried at most: enough to find a bad one, and bounded on a server with thousands.
pub(super) const TRIED: usize = 20;

/// Whether a value is the contents of a resource: a uri, and exactly one of text and base64 blob.
pub(super) fn is_contents(item: &Value) -> bool {
    let (text, blob) = (item.get("text"), item.get("blob"));
    let filled = match (text, blob) {
        (Some(text), None) => text.is_string(),
        (None, Some(blob)) => blob.as_str().is_some_and(is_base64),
        _ => false,
    };
    filled && item["uri"].is_string() && item.get("mimeType").is_none_or(Value::is_string)
}

/// Whether a value is a content block that the revision has, with what it needs.
pub(super) fn is_block(revision: &str, block: &Value) -> bool {
    let data = || block["data"].as_str().is_some_and(is_base64) && block["mimeType"].is_string();
    match block["type"].as_str().unwrap_or_default() {
        "text" => block["text"].is_string(),
        "image" => data(),
        "audio" => revision >= "2025-03-26" && data(),
        "resource" => is_contents(&block["resource"]),
        "resource_link" => {
            revision >= "2025-06-18" && block["uri"].is_string() && block["name"].is_string()
        }
        _ => false,
    }
}

/// Whether a text is a template by RFC 6570: expressions in braces, each with names, and no spaces. A dash in a name is
/// forgiven.
pub(super) fn is_template(text: &str) -> bool {
    let mut rest = text;
    while let Some(at) = rest.find(['{', '}']) {
        let Some((expression, after)) =
            rest[at..].strip_prefix('{').and_then(|it| it.split_once('}'))
        else {
            return false;
        };
        let names =
            expression.strip_prefix(['+', '#', '.', '/', ';', '?', '&']).unwrap_or(expression);
        let named = |name: &str| {
            let name = name.strip_suffix('*').unwrap_or(name);
            let (name, length) = name.split_once(':').unwrap_or((name, "1"));
            let fits = |c: char| c.is_ascii_alphanumeric() || "_.%-".contains(c);
            !name.is_empty() && name.chars().all(fits) && length.parse::<u16>().is_ok()
        };
        if !names.split(',').all(named) {
            return false;
        }
        rest = after;
    }
    !text.contains([' ', '\n', '<', '>', '"'])
}

/// Whether a text is base64, in its usual alphabet.
pub(super) fn is_base64(text: &str) -> bool {
    let body = text.trim_end_matches('=');
    text.len().is_multiple_of(4)
        && text.len() - body.len() <= 2
        && body.chars().all(|c| c.is_ascii_alphanumeric() || c == '+' || c == '/')
}
