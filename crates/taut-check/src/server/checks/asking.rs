//! Questions to the model of the client, however they are asked (SAM).

use serde_json::Value;

use crate::check::{Check, Revisions, Verdict};
use crate::cx::CAPABILITIES;
use crate::seen::All;

pub(super) fn checks() -> Vec<Check> {
    vec![
        Check::should("input-context", &["SAM-08"], Revisions::SINCE_1125,
            "Sampling asks for the context of servers only where the client declared `sampling.context`.")
            .hosts("A client that cannot give it refuses the question, and the call fails.")
            .scan(|_, all| {
                let odd = |params: &Value, caps: &Value| {
                    let wanted = &params["includeContext"];
                    let needs = ["thisServer", "allServers"].iter().any(|context| *wanted == *context);
                    (needs && caps["sampling"].get("context").is_none())
                        .then(|| format!("includeContext is {wanted}, and the client did not declare it"))
                };
                judged(all, odd)
            }),
        Check::must("input-tool-results", &["SAM-06"], Revisions::SINCE_1125,
            "In sampling, a message with results of tools has nothing else, and follows the uses that it answers.")
            .hosts("The APIs of models refuse the whole conversation.")
            .scan(|_, all| judged(all, |params, _| disordered(params))),
    ]
}

/// Judges every `sampling/createMessage`, with the capabilities of the client that it was put to.
fn judged(all: &All<'_>, odd: impl Fn(&Value, &Value) -> Option<String>) -> Verdict {
    let (mut any, mut faults) = (false, Vec::new());
    for (session, _) in &all.sessions {
        let opened = session.sent.iter().find(|(_, value)| value["method"] == "initialize");
        let caps = opened.map_or(&Value::Null, |(_, value)| &value["params"]["capabilities"]);
        for (_, value, frame) in session.received().filter(|(_, value, _)| asks(value)) {
            any = true;
            faults.extend(odd(&value["params"], caps).map(|what| (what, frame.text())));
        }
    }
    for answer in all.answers() {
        let questions = answer.reply["result"]["inputRequests"].as_object();
        for entry in questions.into_iter().flat_map(|all| all.values()).filter(|one| asks(one)) {
            any = true;
            let caps = &answer.params["_meta"][CAPABILITIES];
            faults.extend(odd(&entry["params"], caps).map(|what| (what, answer.line.text())));
        }
    }
    match any {
        true => Verdict::from_faults(faults),
        false => Verdict::skip("the server asked for no sampling"),
    }
}

fn asks(value: &Value) -> bool {
    value["method"] == "sampling/createMessage"
}

/// What is wrong with the results of tools in a conversation.
fn disordered(params: &Value) -> Option<String> {
    let messages = params["messages"].as_array()?;
    let mut used: Vec<&Value> = Vec::new();
    for message in messages {
        let blocks: Vec<&Value> = match &message["content"] {
            Value::Array(list) => list.iter().collect(),
            one => vec![one],
        };
        let of = |kind: &str| blocks.iter().filter(|block| block["type"] == kind).count();
        let results = of("tool_result");
        if results > 0 && results < blocks.len() {
            return Some("a message has results of tools and something else".to_owned());
        }
        let answers = |id: &Value| blocks.iter().any(|block| block["toolUseId"] == *id);
        if let Some(id) = used.iter().find(|id| !answers(id)) {
            return Some(format!("the use {id} of a tool is not answered by the next message"));
        }
        let uses = blocks.into_iter().filter(|block| block["type"] == "tool_use");
        used = uses.map(|block| &block["id"]).collect();
    }
    None
}
