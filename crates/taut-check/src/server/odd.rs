//! What changes how a server treats the requests that follow: kept apart from all other probes.
//!
//! Knows which messages open, close or pin something in a process. Must not know any check.

use serde_json::Value;

use crate::cx::{CAPABILITIES, VERSION};
use crate::ours::Revision;
use crate::seen::{Step, is_notification, is_request, messages};

/// Whether these steps may leave the process in another state: a request of another era or version, or without what
/// says so, after which a server may serve all others as it served that one (STD-25), and a level for all logs.
pub(super) fn is_odd(revision: Revision, steps: &[Step]) -> bool {
    let odd = |value: &Value| messages(value).iter().any(|one| changes(revision, one));
    steps.iter().any(|step| match step {
        Step::Send(message) => odd(message),
        Step::Raw(bytes) => bytes
            .split(|byte| *byte == b'\n')
            .any(|part| serde_json::from_slice::<Value>(part).is_ok_and(|value| odd(&value))),
        _ => false,
    })
}

fn changes(revision: Revision, message: &Value) -> bool {
    let method = message["method"].as_str().unwrap_or_default();
    if !revision.is_modern() {
        return ["initialize", "logging/setLevel"].contains(&method);
    }
    let meta = &message["params"]["_meta"];
    let plain = meta[VERSION] == revision.as_str() && meta[CAPABILITIES].is_object();
    (is_request(message) && !plain)
        || method == "initialize"
        || (is_notification(message) && method == "notifications/initialized")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::cx::request;

    #[test]
    fn std_25_what_may_change_the_next_answers_is_kept_apart() {
        let modern = Revision::MODERN;
        let full = request(modern, &json!(1), "tools/list", Value::Null, &json!({}));
        assert!(!is_odd(modern, &[Step::Send(full.clone())]));
        let mut other = full.clone();
        other["params"]["_meta"][VERSION] = json!("1900-01-01");
        let bare = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" });
        assert!(is_odd(modern, &[Step::Send(full), Step::Send(bare.clone())]));
        assert!(is_odd(modern, &[Step::Send(other)]));
        assert!(is_odd(modern, &[Step::Raw(format!("{bare}\n").into_bytes())]));
        assert!(!is_odd(Revision::V2025_11_25, &[Step::Send(bare)]));
        let level = json!({ "jsonrpc": "2.0", "id": 3, "method": "logging/setLevel" });
        assert!(is_odd(Revision::V2025_11_25, &[Step::Send(level)]));
    }
}
