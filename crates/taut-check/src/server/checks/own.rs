//! What a server says by itself: its own requests, and notifications behind a capability (RPC, LIF).

use std::collections::HashSet;

use serde_json::Value;

use crate::check::{Check, Revisions, Verdict};
use crate::seen::is_request;

/// Notifications that need a capability, with the flag that declares it.
const DECLARED: [(&str, &str); 4] = [
    ("notifications/tools/list_changed", "tools/listChanged"),
    ("notifications/prompts/list_changed", "prompts/listChanged"),
    ("notifications/resources/list_changed", "resources/listChanged"),
    ("notifications/resources/updated", "resources/subscribe"),
];

pub(super) fn checks() -> Vec<Check> {
    vec![
        Check::must(
            "rpc-own-ids",
            &["RPC-04"],
            Revisions::LEGACY,
            "The server uses no id twice for requests of its own in a session.",
        )
        .hosts("A client takes the second request for the first, and the server gets one answer for two.")
        .scan(|_, all| {
            let (mut any, mut faults) = (false, Vec::new());
            for (session, _) in &all.sessions {
                let mut used = HashSet::new();
                // A notification with an id is judged by another check.
                let asks = |value: &Value| {
                    is_request(value) && !value["method"].as_str().unwrap_or_default().starts_with("notifications/")
                };
                for (_, value, frame) in session.received().filter(|(_, value, _)| asks(value)) {
                    any = true;
                    if !used.insert(value["id"].to_string()) {
                        faults.push((format!("the id {} is used twice", value["id"]), frame.text()));
                    }
                }
            }
            match any {
                true => Verdict::from_faults(faults),
                false => Verdict::skip("the server asked nothing"),
            }
        }),
        Check::must(
            "init-undeclared",
            &["LIF-12", "LIF-17"],
            Revisions::STRUCTURED_LEGACY,
            "The server tells of changes only where it declares that it does.",
        )
        .hosts("Hosts register for changes by what is declared, and drop what comes otherwise.")
        .after(&["tools-declared", "resources-declared", "prompts-declared", "init-capability-shape"])
        .scan(|cx, all| {
            let undeclared = all.notifications().filter_map(|(value, frame)| {
                let (method, flag) = DECLARED.iter().find(|(method, _)| value["method"] == *method)?;
                let what = format!("{method} came, and {} is not declared", flag.replace('/', "."));
                (!cx.survey.declares(flag)).then(|| (what, frame.text()))
            });
            Verdict::from_faults(undeclared.collect())
        }),
    ]
}
