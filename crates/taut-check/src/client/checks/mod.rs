//! The checks for clients: what a played server can see of them.

mod arrays;
mod asked;
mod ending;
mod eras;
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
use crate::ours::{Revision, Validator};
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
fn misfilled(result: &Value, revision: Revision) -> Option<String> {
    if result["action"] != "accept" {
        return None;
    }
    let content = result.get("content").filter(|content| !content.is_null());
    let text = content.map_or_else(|| "{}".to_owned(), Value::to_string);
    let form = form(revision >= Revision::V2025_11_25);
    let schema = json!({ "form": form });
    let fault = Validator::part(&schema, "/form").ok()?.validate(&text).err();
    let fault = fault.map(|fault| fault.to_string());
    let fields = form["properties"].as_object().into_iter().flatten();
    // A schema leaves formats open.
    let mut odd = fields.filter_map(|(name, field)| {
        let (format, value) = (field["format"].as_str()?, content?.get(name)?.as_str()?);
        (!has_format(value, format)).then(|| format!("{name:?} is no {format}"))
    });
    let fault = fault.or_else(|| odd.next())?;
    Some(format!("the form is filled in with {text}: {fault}"))
}

/// Whether a text has a format, as far as that is seen without a library.
fn has_format(text: &str, format: &str) -> bool {
    let digits = |text: &str| text.chars().all(|c| c.is_ascii_digit());
    let is_date = |text: &str| {
        let parts: Vec<&str> = text.split('-').collect();
        parts.iter().map(|part| part.len()).eq([4, 2, 2]) && parts.iter().all(|part| digits(part))
    };
    match format {
        "email" => {
            text.split_once('@').is_some_and(|(name, host)| !name.is_empty() && !host.is_empty())
        }
        "uri" => text.split_once(':').is_some_and(|(scheme, _)| {
            let known = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
            scheme.starts_with(|c: char| c.is_ascii_alphabetic()) && scheme.chars().all(known)
        }),
        "date" => is_date(text),
        "date-time" => text.split_once(['T', 't', ' ']).is_some_and(|(date, time)| {
            let zone = time.ends_with(['Z', 'z']) || time.contains(['+', '-']);
            is_date(date)
                && zone
                && time.split(':').next().is_some_and(|hour| hour.len() == 2 && digits(hour))
        }),
        _ => true,
    }
}

/// All checks for clients, in the order of reports.
pub(crate) fn all() -> Vec<Check> {
    let mut all = lines::checks();
    all.extend(ending::checks());
    all.extend(opening::checks());
    all.extend(opening::modern());
    all.extend(eras::checks());
    all.extend(meta::checks());
    all.extend(asked::checks());
    all.extend(arrays::checks());
    all.extend(steady::checks());
    all.extend(rounds::checks());
    all.extend(follow::checks());
    all
}
