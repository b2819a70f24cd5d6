//! Tests of the whole vocabulary: what each revision writes, and that nothing is lost.

use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::samples::{self, Sample};
use super::*;

/// Every member of every type, with the revisions that know it: 1 is 2024-11-05, 5 is 2026-07-28.
/// Written down a second time, from the matrix and the schemas, because the types are what is
/// being tested.
const MEMBERS: &[(&str, &str)] = &[
    (
        "Implementation",
        "name 12345, version 12345, title 345, description 45, icons 45, websiteUrl 45",
    ),
    (
        "ClientCapabilities",
        "roots 12345, sampling 12345, elicitation 345, tasks 4, experimental 12345, extensions 5",
    ),
    (
        "ServerCapabilities",
        "tools 12345, resources 12345, prompts 12345, completions 2345, logging 12345, tasks 4, \
         experimental 12345, extensions 5",
    ),
    (
        "InitializeParams",
        "protocolVersion 12345, capabilities 12345, clientInfo 12345, _meta 12345",
    ),
    (
        "InitializeResult",
        "protocolVersion 12345, capabilities 12345, serverInfo 12345, instructions 12345, \
         _meta 12345",
    ),
    (
        "DiscoverResult",
        "supportedVersions 12345, capabilities 12345, instructions 12345, ttlMs 5, cacheScope 5, \
         resultType 5, _meta 12345",
    ),
    ("EmptyResult", "resultType 5, _meta 12345"),
    (
        "Tool",
        "name 12345, title 345, description 12345, inputSchema 12345, outputSchema 345, \
         annotations 2345, icons 45, execution 4, _meta 345",
    ),
    (
        "Resource",
        "uri 12345, name 12345, title 345, description 12345, mimeType 12345, size 12345, \
         icons 45, annotations 12345, _meta 345",
    ),
    (
        "ResourceTemplate",
        "uriTemplate 12345, name 12345, title 345, description 12345, mimeType 12345, icons 45, \
         annotations 12345, _meta 345",
    ),
    ("Prompt", "name 12345, title 345, description 12345, arguments 12345, icons 45, _meta 345"),
    ("PageParams", "cursor 12345, _meta 12345"),
    (
        "ListToolsResult",
        "tools 12345, nextCursor 12345, ttlMs 5, cacheScope 5, resultType 5, _meta 12345",
    ),
    (
        "ListResourcesResult",
        "resources 12345, nextCursor 12345, ttlMs 5, cacheScope 5, resultType 5, _meta 12345",
    ),
    (
        "ListResourceTemplatesResult",
        "resourceTemplates 12345, nextCursor 12345, ttlMs 5, cacheScope 5, resultType 5, \
         _meta 12345",
    ),
    (
        "ListPromptsResult",
        "prompts 12345, nextCursor 12345, ttlMs 5, cacheScope 5, resultType 5, _meta 12345",
    ),
    (
        "CallToolParams",
        "name 12345, arguments 12345, task 4, inputResponses 5, requestState 5, _meta 12345",
    ),
    (
        "CallToolResult",
        "content 12345, structuredContent 345, isError 12345, resultType 5, _meta 12345",
    ),
    (
        "GetPromptParams",
        "name 12345, arguments 12345, inputResponses 5, requestState 5, _meta 12345",
    ),
    ("GetPromptResult", "messages 12345, description 12345, resultType 5, _meta 12345"),
    ("ReadResourceParams", "uri 12345, inputResponses 5, requestState 5, _meta 12345"),
    ("ReadResourceResult", "contents 12345, ttlMs 5, cacheScope 5, resultType 5, _meta 12345"),
    ("SubscribeParams", "uri 12345, _meta 12345"),
    ("ResourceUpdatedParams", "uri 12345, _meta 12345"),
    ("CompleteParams", "ref 12345, argument 12345, context 345, _meta 12345"),
    ("CompleteResult", "completion 12345, resultType 5, _meta 12345"),
    (
        "CreateMessageParams",
        "messages 12345, maxTokens 12345, modelPreferences 12345, systemPrompt 12345, \
         includeContext 12345, temperature 12345, stopSequences 12345, metadata 12345, tools 45, \
         toolChoice 45, task 4, _meta 1234",
    ),
    (
        "CreateMessageResult",
        "role 12345, content 12345, model 12345, stopReason 12345, _meta 12345",
    ),
    ("ElicitForm", "message 12345, requestedSchema 12345, mode 45, task 4, _meta 1234"),
    ("ElicitUrl", "mode 12345, message 12345, url 12345, elicitationId 1234, task 4, _meta 1234"),
    ("ElicitResult", "action 12345, content 12345, _meta 1234"),
    ("ElicitationCompleteParams", "elicitationId 12345"),
    ("ListRootsResult", "roots 12345, _meta 1234"),
    ("SetLevelParams", "level 12345, _meta 12345"),
    ("LogParams", "level 12345, data 12345, logger 12345, _meta 12345"),
    (
        "ProgressParams",
        "progressToken 12345, progress 12345, total 12345, message 2345, _meta 12345",
    ),
    ("CancelledParams", "requestId 12345, reason 12345, _meta 12345"),
    ("ListenParams", "notifications 12345, _meta 12345"),
    ("AcknowledgedParams", "notifications 12345, _meta 12345"),
    ("ListenResult", "resultType 5, _meta 5"),
    ("BareParams", "_meta 12345"),
    ("UnsupportedVersion", "supported 12345, requested 12345"),
    ("MissingCapability", "requiredCapabilities 12345"),
];

fn members(value: &Value) -> BTreeSet<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

/// LIF-19: what is newer than the reader's revision, or gone in it, is left out. Shows what it
/// checks (`--nocapture`), so that a schema validator can read it too.
/// Also TOL-17, TOL-19, RES-13, DEP-06.
#[test]
fn each_revision_gets_exactly_the_members_it_knows() {
    let table: std::collections::HashMap<_, _> = MEMBERS.iter().copied().collect();
    for sample in samples::all() {
        let row = table.get(sample.name).unwrap_or_else(|| panic!("no row for {}", sample.name));
        for (digit, revision) in ('1'..).zip(Revision::ALL) {
            let expected: BTreeSet<_> = row
                .split(", ")
                .filter_map(|cell| cell.split_once(' '))
                .filter(|(_, digits)| digits.contains(digit))
                .map(|(member, _)| member)
                .collect();
            let written = sample.at(revision);
            println!("SAMPLE {revision} {} {written}", sample.name);
            assert_eq!(members(&written), expected, "{} {revision}", sample.name);
        }
    }
}

#[test]
fn plain_serialisation_carries_every_member() {
    for sample in samples::all() {
        let (_, row) = MEMBERS.iter().find(|(name, _)| *name == sample.name).unwrap();
        let all: BTreeSet<_> =
            row.split(", ").filter_map(|cell| cell.split_once(' ')).map(|cell| cell.0).collect();
        assert_eq!(members(&sample.full), all, "{}", sample.name);
    }
}

#[test]
fn what_was_written_is_read_back_the_same() {
    for sample in samples::all() {
        assert_eq!(sample.reread(sample.full.clone()), sample.full, "{}", sample.name);
    }
}

#[test]
fn what_any_revision_writes_can_be_read() {
    for sample in samples::all() {
        for revision in Revision::ALL {
            sample.reread(sample.at(revision));
        }
    }
}

fn assert_no_null(value: &Value, path: &str) {
    match value {
        Value::Null => panic!("null at {path}"),
        Value::Array(items) => items.iter().for_each(|item| assert_no_null(item, path)),
        Value::Object(members) => {
            members.iter().for_each(|(name, item)| assert_no_null(item, &format!("{path}.{name}")));
        }
        _ => {}
    }
}

#[test]
fn null_is_never_written_for_what_is_absent() {
    for sample in samples::all() {
        assert_no_null(&sample.full, sample.name);
        // The same with every optional member null: required ones stay, the others vanish.
        let mut sparse = sample.full.clone();
        for (name, value) in sample.full.as_object().unwrap() {
            sparse[name] = Value::Null;
            let kept = (sample.reread_or_none(&sparse)).is_none();
            if kept || name == "structuredContent" || name == "data" {
                sparse[name] = value.clone();
            }
        }
        assert_no_null(&sample.reread(sparse), sample.name);
    }
}

/// Adds `value` under a name that no revision has to the object itself and to one inside it.
fn add_unknown(target: &mut Value, name: &str, value: &Value) {
    // A prompt's arguments are a map of strings, not an object with members (PRM-05).
    let open = |(name, value): &(&String, &mut Value)| *name != "arguments" && value.is_object();
    let Some(members) = target.as_object_mut() else { return };
    if let Some((_, inner)) = members.iter_mut().find(open) {
        inner[name] = value.clone();
    }
    members.insert(name.to_owned(), value.clone());
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        ".*".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(".*", inner, 0..4).prop_map(|map| json!(map)),
        ]
    })
}

fn pick(samples: &[Sample], at: prop::sample::Index) -> &Sample {
    at.get(samples)
}

proptest! {
    /// RPC-20, and more: what taut does not know it does not lose.
    #[test]
    fn members_nobody_knows_survive(
        at in any::<prop::sample::Index>(),
        name in "x-[a-z]{0,8}",
        value in any_json(),
    ) {
        let samples = samples::all();
        let sample = pick(&samples, at);
        let mut richer = sample.full.clone();
        add_unknown(&mut richer, &name, &value);
        prop_assert_eq!(sample.reread(richer.clone()), richer, "{}", sample.name);
    }
}

proptest! {
    /// Whatever a peer sends, reading it ends in a value or an error, and a value can be written.
    #[test]
    fn any_json_is_read_or_refused(
        at in any::<prop::sample::Index>(),
        member in any::<prop::sample::Index>(),
        value in any_json(),
    ) {
        let samples = samples::all();
        let sample = pick(&samples, at);
        let mut odd = sample.full.clone();
        let names: Vec<_> = sample.full.as_object().unwrap().keys().collect();
        odd[member.get(&names).as_str()] = value;
        if let Some(written) = sample.reread_or_none(&odd) {
            prop_assert!(written.is_object());
        }
    }
}
