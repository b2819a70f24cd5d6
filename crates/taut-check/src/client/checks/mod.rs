//! The checks for clients: what a played server can see of them.

mod asked;
mod ending;
mod follow;
mod lines;
mod meta;
mod opening;
mod rounds;
mod steady;

use serde_json::{Value, json};

use super::record::{Life, Played};
use crate::check::{Check, Verdict};
use crate::client::rounds::form;
use crate::ours::Validator;
use crate::seen::messages;

/// How long an answer may be under way that was ready before the cancellation came, in milliseconds.
const UNDER_WAY: u64 = 300;

/// Looks at every life, and fails with the first fault of each.
fn each(played: &Played<'_>, wrong: impl Fn(&'static str, &Life) -> Option<String>) -> Verdict {
    let mut shown = Vec::new();
    let mut first = None;
    for (name, life) in played.lives() {
        if let Some(what) = wrong(name, life) {
            first.get_or_insert_with(|| format!("{name}: {what}"));
            shown.extend(life.shown());
        }
    }
    match first {
        Some(what) => Verdict::Fail { what, shown },
        None => Verdict::Pass,
    }
}

/// What is wrong with a message of the client, over all scenarios.
fn every(played: &Played<'_>, wrong: impl Fn(&Value) -> Option<String>) -> Verdict {
    each(played, |_, life| life.heard().flat_map(|(_, value)| messages(value)).find_map(&wrong))
}

/// What is wrong with a form of ours that the client filled in; nothing if it did not accept.
fn misfilled(result: &Value) -> Option<String> {
    if result["action"] != "accept" {
        return None;
    }
    let content = result.get("content").filter(|content| !content.is_null());
    let text = content.map_or_else(|| "{}".to_owned(), Value::to_string);
    let schema = json!({ "form": form() });
    let fault = Validator::part(&schema, "/form").ok()?.validate(&text).err()?;
    Some(format!("the form is filled in with {text}: {fault}"))
}

/// All checks for clients, in the order of reports.
pub(crate) fn all() -> Vec<Check> {
    let mut all = lines::checks();
    all.extend(ending::checks());
    all.extend(opening::checks());
    all.extend(opening::modern());
    all.extend(meta::checks());
    all.extend(asked::checks());
    all.extend(steady::checks());
    all.extend(rounds::checks());
    all.extend(follow::checks());
    all
}
