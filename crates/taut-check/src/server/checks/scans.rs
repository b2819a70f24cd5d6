//! Every message against the official schema of its revision.

use serde_json::Value;

use crate::check::{Check, Revisions, Verdict};
use crate::schema::objection;
use crate::seen::{is_request, is_response};

pub(super) fn checks() -> Vec<Check> {
    vec![
        Check::must(
            "schema-valid",
            &["RPC-09", "RPC-14", "LIF-03", "TOL-03", "RES-02", "PRM-02"],
            Revisions::ALL,
            "Every message fits the official JSON schema of its revision.",
        )
        .hosts("The official SDKs validate what they receive, and drop what does not fit.")
        .after(&[
            "listen-subset",
            "rpc-own-null",
            "frame-clean",
            "frame-line",
            "tasks-created",
            "tasks-polled",
            "tasks-handle",
        ])
        .scan(|cx, all| {
            let mut faults = Vec::new();
            for (session, requests) in &all.sessions {
                for (at, value, frame) in session.received() {
                    if !value.is_object() {
                        continue;
                    }
                    // Old schemas know no error without an id, and the protocol needs one.
                    let idless =
                        value.get("error").is_some() && value.get("id").is_none_or(Value::is_null);
                    if idless || session.is_clouded(value) {
                        continue;
                    }
                    let request = value
                        .get("id")
                        .filter(|_| is_response(value))
                        .and_then(|id| requests.before(id, at));
                    // An answer to a message of another era is judged by its own rules.
                    let other_era = request.is_some_and(|(_, request)| {
                        let modern = request["params"]["_meta"].get(crate::cx::VERSION).is_some();
                        modern != cx.modern()
                    });
                    if other_era || (request.is_none() && is_response(value)) && !is_request(value)
                    {
                        continue;
                    }
                    let method = request.and_then(|(_, request)| request["method"].as_str());
                    // The answer to a request whose id has a wrong type repeats it: `rpc-id-type` and `rpc-id-null` look
                    // at those.
                    let mut value = value.clone();
                    if request.is_some_and(|(_, request)| !is_id(&request["id"])) {
                        value["id"] = Value::from(0);
                    }
                    if let Some(what) = objection(cx.revision, &value, method) {
                        faults.push((what, frame.text()));
                    }
                }
            }
            Verdict::from_faults(faults)
        }),
    ]
}

/// Whether a request may have this id.
fn is_id(id: &Value) -> bool {
    id.is_string() || id.is_i64() || id.is_u64()
}
