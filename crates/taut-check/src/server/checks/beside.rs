//! Logs of calls that run beside each other (LOG).

use std::collections::HashSet;

use serde_json::{Value, json};

use super::cancel::words;
use super::{fail, verdict};
use crate::check::{Check, Revisions};
use crate::cx::{Called, Cx, LOG_LEVEL, SLOW};
use crate::process::{Entry, What};
use crate::seen::{Seen, Step, is_meant, is_response};

/// How many quick calls are made.
const QUICK: usize = 10;

/// The allowed calls that are quick, by the number of the first of their three ids.
fn quick<'a>(cx: &'a Cx<'_>) -> impl Iterator<Item = (i64, &'a Called)> {
    let quick = cx.survey.calls.iter().filter(|call| call.worked() && call.took_ms < SLOW);
    (10..).step_by(3).zip(quick.take(QUICK))
}

fn call(cx: &Cx<'_>, n: i64, call: &Called, logs: bool) -> Step {
    let mut params = json!({ "name": call.tool, "arguments": call.args });
    if logs {
        params["_meta"] = json!({ LOG_LEVEL: "debug" });
    }
    cx.request(n, "tools/call", params)
}

/// The logs that came between a request and its answer, without their numbers.
fn logs(cx: &Cx<'_>, seen: &Seen<'_>, n: i64) -> HashSet<String> {
    let id = cx.id(n);
    let asks = |entry: &&Entry| match &entry.what {
        What::Sent(bytes) => {
            serde_json::from_slice::<Value>(bytes).is_ok_and(|sent| sent.get("id") == Some(&id))
        }
        _ => false,
    };
    let answers = |value: &Value| is_response(value) && is_meant(value.get("id"), &id);
    let later = seen.entries.iter().skip_while(|entry| !asks(entry));
    let until = later.take_while(|entry| !entry.value().is_some_and(answers));
    let said = until.filter_map(Entry::value).filter(|it| it["method"] == "notifications/message");
    said.map(words).collect()
}

pub(super) fn checks() -> Vec<Check> {
    vec![
        Check::must(
            "log-beside",
            &["LOG-09"],
            Revisions::MODERN,
            "A request without a logLevel logs nothing, also while another one runs that has it.",
        )
        .sent("each allowed call that is quick with logLevel debug; one that takes at least 300 ms with it, alone and twice more, with the quick ones beside it that have none")
        .hosts("A client behind a gateway gets the logs of others.")
        .after(&["log-order", "log-unasked", "rpc-interleaved"])
        .probe(
            |cx| {
                let slow = cx.survey.short_slow_call()?;
                cx.survey.call(|call| call.took_ms < SLOW)?;
                let mut steps = Vec::new();
                for (n, quick) in quick(cx) {
                    steps.extend([call(cx, n, quick, true), Step::Await(cx.id(n))]);
                }
                for round in 0..3 {
                    steps.push(call(cx, round, slow, true));
                    let quick = quick(cx).filter(|_| round > 0);
                    steps.extend(quick.flat_map(|(n, quick)| [call(cx, n + round, quick, false), Step::Await(cx.id(n + round))]));
                    steps.push(Step::Await(cx.id(round)));
                }
                Ok(steps)
            },
            |cx, seen| {
                // What the slow call says itself, or the server whenever something is called, is not the quick one's.
                let own = logs(cx, seen, 0);
                let told = quick(cx).find(|(n, _)| {
                    let asked = logs(cx, seen, *n);
                    let unasked = |round: i64| logs(cx, seen, n + round);
                    let (first, second) = (unasked(1), unasked(2));
                    asked.iter().any(|said| !own.contains(said) && first.contains(said) && second.contains(said))
                });
                match told {
                    Some((_, call)) => fail(seen, format!("{} logged twice without a logLevel, while another call ran that had it", call.tool)),
                    None => verdict(super::alive(seen)),
                }
            },
        ),
    ]
}
