//! The results of requests.

use serde_json::json;

use super::{meta_of, plain_meta, replaced, without};
use crate::json::JsonRef;
use crate::json::edit::{Edit, edited};
use crate::mcp::{Content, Method, Revision, Target, WriteJson, meta_keys};
use crate::rpc::ErrorObject;

/// What a modern result is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResultKind {
    Complete,
    InputRequired,
    /// A kind that only an extension knows.
    Other,
}

/// What kind of result a modern server gave.
pub(crate) fn kind_of_result(result: JsonRef<'_>) -> ResultKind {
    let kind = result.member("resultType").and_then(JsonRef::string);
    match kind.as_deref() {
        None | Some("complete") => ResultKind::Complete,
        Some("input_required") => ResultKind::InputRequired,
        Some(_) => ResultKind::Other,
    }
}

/// The result of a modern server for a legacy client that speaks `revision`.
///
/// # Errors
/// It is no object, or of a kind that legacy clients do not know.
pub(crate) fn legacy_result(
    method: Option<Method>,
    result: JsonRef<'_>,
    revision: Revision,
) -> Result<String, ErrorObject> {
    if !result.is_object() {
        return Err(no_object());
    }
    if kind_of_result(result) != ResultKind::Complete {
        let kind = result.member("resultType").map_or("", JsonRef::text);
        return Err(ErrorObject::internal(format!(
            "the server answered with a result of type {kind}, which revision {revision} does not have"
        )));
    }
    Ok(edited(
        result,
        |name, value| match name {
            "resultType" | "ttlMs" | "cacheScope" => Edit::Drop,
            "_meta" if value.text() == "{}" => Edit::Keep,
            "_meta" if value.is_object() => {
                plain_meta(value, value.member(meta_keys::PROGRESS_TOKEN).map(JsonRef::text))
            }
            _ => adapted(method, name, value, revision),
        },
        &[],
    ))
}

/// The result of a server of a newer legacy revision for a client of an older one.
pub(crate) fn adapted_result(
    method: Option<Method>,
    result: JsonRef<'_>,
    revision: Revision,
) -> String {
    edited(result, |name, value| adapted(method, name, value, revision), &[])
}

/// What becomes of a member that an older revision may not know. Members that are only additional are
/// kept: every revision allows them.
fn adapted(method: Option<Method>, name: &str, value: JsonRef<'_>, revision: Revision) -> Edit {
    match (method, name) {
        (Some(Method::CallTool), "structuredContent") => {
            // A legacy client takes objects only, and checks them.
            let fits = revision.has_structured_content() && value.is_object();
            if fits { Edit::Keep } else { Edit::Drop }
        }
        (Some(Method::CallTool), "content") => each(value, |block| content(block, revision)),
        (Some(Method::GetPrompt), "messages") => each(value, |message| {
            let text = content(message.member("content")?, revision)?;
            Some(replaced(message, "content", &text))
        }),
        (Some(Method::ListTools), "tools") => each(value, |tool| {
            let schema = tool.member("outputSchema")?;
            let root = schema.member("type").and_then(JsonRef::string);
            let fits = root.as_deref() == Some("object");
            (!fits).then(|| without(tool, &["outputSchema"], &[]))
        }),
        _ => Edit::Keep,
    }
}

/// A list with those elements replaced that `change` gives a new text for; an empty one leaves the element out.
fn each(list: JsonRef<'_>, change: impl Fn(JsonRef<'_>) -> Option<String>) -> Edit {
    if !list.text().starts_with('[') {
        return Edit::Keep;
    }
    let changed: Vec<(JsonRef<'_>, Option<String>)> =
        list.elements().map(|element| (element, change(element))).collect();
    if changed.iter().all(|(_, new)| new.is_none()) {
        return Edit::Keep;
    }
    let texts = changed.iter().map(|(old, new)| new.as_deref().unwrap_or_else(|| old.text()));
    let texts: Vec<&str> = texts.filter(|text| !text.is_empty()).collect();
    Edit::Put(format!("[{}]", texts.join(",")))
}

/// A block of content that `revision` does not know, in words that it does.
fn content(block: JsonRef<'_>, revision: Revision) -> Option<String> {
    let kind = block.member("type").and_then(JsonRef::string)?;
    let unknown = match &*kind {
        "audio" => revision < Revision::V2025_03_26,
        "resource_link" => revision < Revision::V2025_06_18,
        _ => false,
    };
    if !unknown {
        return None;
    }
    let block: Content = block.read().ok()?;
    let mut out = Vec::new();
    block.write_json(Target::of(revision), &mut out);
    String::from_utf8(out).ok()
}

/// The result of a legacy server for a modern client. `server_info` is the server's name and version as
/// JSON.
///
/// # Errors
/// It is no object.
pub(crate) fn modern_result(
    method: Option<Method>,
    result: JsonRef<'_>,
    server_info: &str,
) -> Result<String, ErrorObject> {
    if !result.is_object() {
        return Err(no_object());
    }
    let info = [(meta_keys::SERVER_INFO, server_info)];
    let meta = without(meta_of(result), &[meta_keys::SERVER_INFO], &info);
    let mut added = vec![("resultType", "\"complete\"")];
    if method.is_some_and(is_cacheable) {
        // What a legacy server says of lifetimes is nothing, so nothing is promised.
        added.extend([("ttlMs", "0"), ("cacheScope", "\"private\"")]);
    }
    added.push(("_meta", &meta));
    let change = |name: &str, value: JsonRef<'_>| match (method, name) {
        (_, "resultType" | "ttlMs" | "cacheScope" | "_meta") => Edit::Drop,
        (Some(Method::ListTools), "tools") => each(value, |tool| {
            let execution = tool.member("execution")?;
            let support = execution.member("taskSupport").and_then(JsonRef::string);
            if support.as_deref() == Some("required") {
                // It runs as a task only, and tasks do not cross eras.
                return Some(String::new());
            }
            Some(without(tool, &["execution"], &[]))
        }),
        _ => Edit::Keep,
    };
    Ok(edited(result, change, &added))
}

/// The result of a tool that failed, in these words.
pub(crate) fn failed_tool(why: &str) -> String {
    format!("{{\"content\":[{{\"type\":\"text\",\"text\":{}}}],\"isError\":true}}", json!(why))
}

/// The methods whose results carry a lifetime (CCH-01).
fn is_cacheable(method: Method) -> bool {
    matches!(
        method,
        Method::Discover
            | Method::ListTools
            | Method::ListPrompts
            | Method::ListResources
            | Method::ListResourceTemplates
            | Method::ReadResource
    )
}

fn no_object() -> ErrorObject {
    ErrorObject::internal("the server's result is not an object")
}
