//! Keys of `_meta`, wherever they stand, and members that are newer than the revision (MET, LIF).

use serde_json::Value;

use super::kind;
use crate::check::{Check, Revisions, Verdict};
use crate::cx::Cx;
use crate::ours::Revision;
use crate::seen::All;

/// Names after `io.modelcontextprotocol/` that the protocol and its extensions have.
const OWN: [&str; 9] = [
    "protocolVersion",
    "clientInfo",
    "clientCapabilities",
    "serverInfo",
    "subscriptionId",
    "logLevel",
    "related-task",
    "ui",
    "model-immediate-response",
];

pub(super) fn checks() -> Vec<Check> {
    vec![
        Check::must("meta-keys", &["MET-07"], Revisions::SINCE_0618,
            "Keys of `_meta` are names, maybe after a dotted prefix and a slash; the protocol's own prefixes are not for others.")
            .hosts("Keys of others collide with the protocol's own.")
            .scan(|cx, all| {
                let mut faults = Vec::new();
                let extended = cx.survey.capabilities().get("extensions").is_some();
                for (value, frame) in all.received() {
                    let mut metas = Vec::new();
                    collect(value, &mut metas);
                    for meta in metas {
                        let Some(members) = meta.as_object() else {
                            faults.push((format!("`_meta` is {}", kind(meta)), frame.text()));
                            continue;
                        };
                        for key in members.keys() {
                            if !is_key(key) {
                                faults.push((format!("{key:?} is no key"), frame.text()));
                            } else if is_reserved(cx.revision, key) && !(extended && key.starts_with("io.modelcontextprotocol/")) {
                                faults.push((format!("{key:?} has a prefix of the protocol's own"), frame.text()));
                            }
                        }
                    }
                }
                Verdict::from_faults(faults)
            }),
        Check::must("meta-trace", &["MET-08", "TRC-02"], Revisions::MODERN,
            "traceparent, tracestate and baggage in the server's `_meta` are texts in their W3C form.")
            .hosts("A client that joins traces throws the whole trace away.")
            .scan(|_, all| {
                let mut faults = Vec::new();
                for (value, frame) in all.received() {
                    let mut metas = Vec::new();
                    collect(value, &mut metas);
                    faults.extend(metas.into_iter().filter_map(odd_trace).map(|what| (what, frame.text())));
                }
                Verdict::from_faults(faults)
            }),
        Check::advice("result-newer", &["LIF-19", "LIF-11", "TOL-17", "TOL-19"], Revisions::LEGACY,
            "Members that are newer than the revision are left out.")
            .hosts("Harmless in known hosts; schemas of older revisions let them pass.")
            .scan(newer),
    ]
}

/// All `_meta` of a message, also those of tools, content and resources. What a tool made itself is not looked into.
fn collect<'a>(value: &'a Value, found: &mut Vec<&'a Value>) {
    const OPAQUE: [&str; 7] = [
        "inputSchema",
        "outputSchema",
        "structuredContent",
        "data",
        "arguments",
        "requestedSchema",
        "experimental",
    ];
    match value {
        Value::Array(list) => list.iter().for_each(|one| collect(one, found)),
        Value::Object(members) => {
            for (name, value) in members.iter().filter(|(name, _)| !OPAQUE.contains(&name.as_str()))
            {
                if name == "_meta" {
                    found.push(value);
                } else {
                    collect(value, found);
                }
            }
        }
        _ => {}
    }
}

/// Whether a key has a prefix that only the protocol may use, and is none of its keys.
pub(crate) fn is_reserved(revision: Revision, key: &str) -> bool {
    let Some((prefix, name)) = key.rsplit_once('/') else { return false };
    let own_label = |label: &&str| ["modelcontextprotocol", "mcp"].contains(label);
    let labels: Vec<&str> = prefix.split('.').collect();
    if prefix == "io.modelcontextprotocol" {
        return !OWN.contains(&name);
    }
    match revision.as_str() {
        // In this revision it is any label but the last.
        "2025-06-18" => labels.split_last().is_some_and(|(_, labels)| labels.iter().any(own_label)),
        _ => labels.get(1).is_some_and(own_label),
    }
}

/// What is wrong with the trace context in a `_meta`.
pub(crate) fn odd_trace(meta: &Value) -> Option<String> {
    if let Some(odd) = meta.get("traceparent").filter(|it| !it.as_str().is_some_and(is_trace)) {
        return Some(format!("traceparent is {odd}"));
    }
    let lists = ["tracestate", "baggage"];
    lists.into_iter().find_map(|name| {
        let list = meta.get(name)?;
        // Members with an equals sign, separated by commas.
        let fits = list.as_str().is_some_and(|text| {
            text.split(',').all(|member| member.trim().is_empty() || member.contains('='))
        });
        (!fits).then(|| format!("{name} is {list}"))
    })
}

/// Whether a text has the form of W3C's traceparent: four fields of lower-case hexadecimal digits, where the ids are
/// not all zero.
fn is_trace(text: &str) -> bool {
    let fields: Vec<&str> = text.split('-').collect();
    let lengths: Vec<usize> = fields.iter().map(|field| field.len()).collect();
    let hex = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
    let zero = |field: &str| field.chars().all(|c| c == '0');
    lengths.starts_with(&[2, 32, 16, 2])
        && fields.iter().all(|field| field.chars().all(hex))
        && fields[0] != "ff"
        && !fields[1..3].iter().any(|field| zero(field))
}

/// The grammar of keys: an optional prefix of labels with dots, a slash, then a name.
pub(crate) fn is_key(key: &str) -> bool {
    let (prefix, name) = match key.rsplit_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, key),
    };
    let label = |label: &str| {
        label.starts_with(|c: char| c.is_ascii_alphabetic())
            && label.ends_with(|c: char| c.is_ascii_alphanumeric())
            && label.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
    };
    let edge = |c: char| c.is_ascii_alphanumeric();
    let named = name.is_empty() && prefix.is_some()
        || name.starts_with(edge)
            && name.ends_with(edge)
            && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
    named && prefix.is_none_or(|prefix| prefix.split('.').all(label))
}

/// Members of tools and of results, each with the revision that brought it.
fn newer(cx: &Cx<'_>, all: &All<'_>) -> Verdict {
    const TOOL: [(&str, &str); 5] = [
        ("annotations", "2025-03-26"),
        ("title", "2025-06-18"),
        ("outputSchema", "2025-06-18"),
        ("icons", "2025-11-25"),
        ("execution", "2025-11-25"),
    ];
    let mut faults = Vec::new();
    for answer in all.answers() {
        let Some(result) = answer.result().filter(|_| !super::modern::own(answer.params)) else {
            continue;
        };
        let early = |(_, since): &&(&str, &str)| *since > cx.revision.as_str();
        let mut tools = result["tools"].as_array().into_iter().flatten();
        let found = tools
            .find_map(|tool| TOOL.iter().filter(early).find(|(name, _)| tool.get(*name).is_some()));
        let structured = ("structuredContent", "2025-06-18");
        let structured =
            Some(&structured).filter(early).filter(|(name, _)| result.get(*name).is_some());
        if let Some((name, since)) = found.or(structured) {
            faults.push((format!("`{name}` came with {since}"), answer.line.text()));
        }
    }
    Verdict::from_faults(faults)
}
