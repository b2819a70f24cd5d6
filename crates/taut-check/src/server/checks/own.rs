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
                for (_, value, frame) in session.received().filter(|(_, value, _)| asks(value)) {
                    any = true;
                    // One that is no id is judged by `rpc-own-null`.
                    if !value["id"].is_null() && !used.insert(value["id"].to_string()) {
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
            "rpc-own-null",
            &["RPC-03", "RPC-02"],
            Revisions::LEGACY,
            "A request of the server has an id, which is a string or an integer.")
        .hosts("A client takes it for no request, so nobody answers it.")
        .scan(|_, all| {
            let own = all.received().filter(|(value, _)| asks(value));
            let odd = |id: &Value| !id.is_string() && !id.as_f64().is_some_and(|number| number.fract() == 0.0);
            let (mut any, mut faults) = (false, Vec::new());
            for (value, frame) in own {
                any = true;
                if odd(&value["id"]) {
                    faults.push((format!("{} has the id {}", value["method"], value["id"]), frame.text()));
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

/// Whether it is a request. A notification with an id is judged by another check.
fn asks(value: &Value) -> bool {
    let method = value["method"].as_str().unwrap_or_default();
    is_request(value) && !method.starts_with("notifications/")
}
