//! Every message against the official JSON schema of its revision.
//!
//! Knows which definition a message has to fit. The schemas are data (`schemas/`), the validator is
//! taut's own.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::{LazyLock, Mutex, PoisonError};

use serde_json::Value;

use crate::ours::{Revision, Validator};

/// The official schema of a revision, as it is vendored.
#[must_use]
pub fn official(revision: Revision) -> &'static str {
    match revision.as_str() {
        "2024-11-05" => include_str!("../schemas/2024-11-05.json"),
        "2025-03-26" => include_str!("../schemas/2025-03-26.json"),
        "2025-06-18" => include_str!("../schemas/2025-06-18.json"),
        "2025-11-25" => include_str!("../schemas/2025-11-25.json"),
        _ => include_str!("../schemas/2026-07-28.json"),
    }
}

/// Answers that were validated already and are kept: most are the same but for their id.
const MAX_SEEN: usize = 10_000;

struct Schemas {
    seen: HashMap<(&'static str, String, String), Option<String>>,
    parsed: HashMap<&'static str, Arc<Value>>,
    parts: HashMap<(&'static str, String), Option<Arc<Validator>>>,
}

static SCHEMAS: LazyLock<Mutex<Schemas>> = LazyLock::new(|| {
    Mutex::new(Schemas { seen: HashMap::new(), parsed: HashMap::new(), parts: HashMap::new() })
});

/// The validator for one definition of a revision; nothing if there is no such definition.
fn validator(revision: Revision, name: &str) -> Option<Arc<Validator>> {
    let mut schemas = SCHEMAS.lock().unwrap_or_else(PoisonError::into_inner);
    let key = (revision.as_str(), name.to_owned());
    if let Some(found) = schemas.parts.get(&key) {
        return found.clone();
    }
    let parsed = schemas
        .parsed
        .entry(revision.as_str())
        .or_insert_with(|| Arc::new(serde_json::from_str(official(revision)).unwrap_or_default()))
        .clone();
    let place = if parsed.get("$defs").is_some() { "$defs" } else { "definitions" };
    let there = parsed[place].get(name).is_some();
    let part = there.then(|| Validator::part(&parsed, &format!("/{place}/{name}")).ok()).flatten();
    let part = part.map(Arc::new);
    schemas.parts.insert(key, part.clone());
    part
}

/// What a definition of a revision says against a value; `None` if it fits, or if there is no such definition.
#[must_use]
pub fn misfit(revision: Revision, name: &str, value: &Value) -> Option<String> {
    let text = value.to_string();
    let key = (revision.as_str(), name.to_owned(), text.clone());
    let lock = || SCHEMAS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = lock().seen.get(&key) {
        return known.clone();
    }
    let fault = validator(revision, name)?.validate(&text).err();
    let fault = fault.map(|fault| format!("{name}: {fault}"));
    let mut schemas = lock();
    if schemas.seen.len() < MAX_SEEN {
        schemas.seen.insert(key, fault.clone());
    }
    fault
}

/// Whether the revision has a definition of this name that can be used.
#[must_use]
pub fn defines(revision: Revision, name: &str) -> bool {
    validator(revision, name).is_some()
}

/// The definition of a result, by the method that asked for it.
fn result_definition(method: &str, result: &Value, modern: bool) -> &'static str {
    if modern && result["resultType"] == "input_required" {
        return "InputRequiredResult";
    }
    match method {
        "initialize" => "InitializeResult",
        "server/discover" => "DiscoverResult",
        "tools/list" => "ListToolsResult",
        "tools/call" if result.get("task").is_some() && !modern => "CreateTaskResult",
        "tools/call" if result["resultType"] == "task" => "Result",
        "tools/call" => "CallToolResult",
        "resources/list" => "ListResourcesResult",
        "resources/templates/list" => "ListResourceTemplatesResult",
        "resources/read" => "ReadResourceResult",
        "prompts/list" => "ListPromptsResult",
        "prompts/get" => "GetPromptResult",
        "completion/complete" => "CompleteResult",
        "tasks/get" if !modern => "GetTaskResult",
        "tasks/cancel" if !modern => "CancelTaskResult",
        "tasks/list" if !modern => "ListTasksResult",
        "subscriptions/listen" => "SubscriptionsListenResult",
        "roots/list" => "ListRootsResult",
        "sampling/createMessage" => "CreateMessageResult",
        "elicitation/create" => "ElicitResult",
        _ => "Result",
    }
}

/// The definition of a request or notification, by its method.
pub(crate) fn method_definition(method: &str) -> Option<&'static str> {
    Some(match method {
        "initialize" => "InitializeRequest",
        "server/discover" => "DiscoverRequest",
        "ping" => "PingRequest",
        "tools/list" => "ListToolsRequest",
        "tools/call" => "CallToolRequest",
        "resources/list" => "ListResourcesRequest",
        "resources/templates/list" => "ListResourceTemplatesRequest",
        "resources/read" => "ReadResourceRequest",
        "resources/subscribe" => "SubscribeRequest",
        "resources/unsubscribe" => "UnsubscribeRequest",
        "prompts/list" => "ListPromptsRequest",
        "prompts/get" => "GetPromptRequest",
        "completion/complete" => "CompleteRequest",
        "logging/setLevel" => "SetLevelRequest",
        "subscriptions/listen" => "SubscriptionsListenRequest",
        "roots/list" => "ListRootsRequest",
        "sampling/createMessage" => "CreateMessageRequest",
        "elicitation/create" => "ElicitRequest",
        "tasks/get" => "GetTaskRequest",
        "tasks/result" => "GetTaskPayloadRequest",
        "tasks/list" => "ListTasksRequest",
        "tasks/cancel" => "CancelTaskRequest",
        "notifications/initialized" => "InitializedNotification",
        "notifications/cancelled" => "CancelledNotification",
        "notifications/progress" => "ProgressNotification",
        "notifications/message" => "LoggingMessageNotification",
        "notifications/tools/list_changed" => "ToolListChangedNotification",
        "notifications/prompts/list_changed" => "PromptListChangedNotification",
        "notifications/resources/list_changed" => "ResourceListChangedNotification",
        "notifications/resources/updated" => "ResourceUpdatedNotification",
        "notifications/roots/list_changed" => "RootsListChangedNotification",
        "notifications/elicitation/complete" => "ElicitationCompleteNotification",
        "notifications/tasks/status" => "TaskStatusNotification",
        "notifications/subscriptions/acknowledged" => "SubscriptionsAcknowledgedNotification",
        _ => return None,
    })
}

/// What the official schema says against a message. `method` is that of the request which it answers.
pub(crate) fn objection(revision: Revision, value: &Value, method: Option<&str>) -> Option<String> {
    if let Some(own) = value["method"].as_str() {
        let name = method_definition(own)?;
        return misfit(revision, name, value);
    }
    if let Some(error) = value.get("error") {
        let name = match error["code"].as_i64() {
            Some(-32021) if revision.is_modern() => "MissingRequiredClientCapabilityError",
            _ if defines(revision, "JSONRPCErrorResponse") => "JSONRPCErrorResponse",
            _ => "JSONRPCError",
        };
        return misfit(revision, name, value);
    }
    let result = value.get("result")?;
    let envelope = match defines(revision, "JSONRPCResultResponse") {
        true => "JSONRPCResultResponse",
        false => "JSONRPCResponse",
    };
    // The envelope alone: the result is looked at below.
    let mut empty = value.clone();
    if revision.is_modern() && result.is_object() {
        empty["result"] = serde_json::json!({ "resultType": "complete" });
    } else if result.is_object() {
        empty["result"] = serde_json::json!({});
    }
    let named = result_definition(method.unwrap_or_default(), result, revision.is_modern());
    // A revision without tasks has no such result.
    let named = if defines(revision, named) { named } else { "Result" };
    misfit(revision, envelope, &empty).or_else(|| misfit(revision, named, result))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Our validator has to understand every definition, or a message would pass unlooked at.
    #[test]
    fn every_definition_of_every_official_schema_can_be_used() {
        for revision in Revision::ALL {
            let schema: Value = serde_json::from_str(official(revision)).unwrap();
            let names = schema.get("$defs").or_else(|| schema.get("definitions")).unwrap();
            let names: Vec<_> = names.as_object().unwrap().keys().collect();
            assert!(names.len() > 70, "{}", revision.as_str());
            for name in names {
                assert!(defines(revision, name), "{} {name}", revision.as_str());
            }
        }
    }

    #[test]
    fn the_official_schema_objects_to_what_is_wrong_and_only_to_that() {
        let tool = serde_json::json!({ "name": "x", "inputSchema": { "type": "object" } });
        for revision in Revision::ALL {
            let mut result = serde_json::json!({ "tools": [tool] });
            if revision.is_modern() {
                result = serde_json::json!({ "tools": [tool], "resultType": "complete",
                    "ttlMs": 0, "cacheScope": "private" });
            }
            let good = serde_json::json!({ "jsonrpc": "2.0", "id": 1, "result": result });
            assert_eq!(objection(revision, &good, Some("tools/list")), None);
            let mut bad = good.clone();
            bad["result"]["tools"][0]["inputSchema"]["type"] = Value::from("array");
            assert!(objection(revision, &bad, Some("tools/list")).is_some());
            let mut bad = good;
            bad["id"] = Value::Null;
            assert!(objection(revision, &bad, Some("tools/list")).is_some());
        }
    }
}
