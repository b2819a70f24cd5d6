//! What the checks of lists share: their items, and their members.

use serde_json::Value;

use super::{kind, short};
use crate::check::Verdict;
use crate::seen::All;

/// What is wrong with the items of a list, over all answers to a method.
pub(super) fn items(
    all: &All<'_>,
    method: &str,
    member: &str,
    wrong: impl Fn(&Value) -> Option<String>,
) -> Verdict {
    let mut faults = Vec::new();
    for answer in all.answers() {
        let Some(result) = answer.result().filter(|_| answer.method == method) else { continue };
        let Some(list) = result[member].as_array() else { continue };
        faults.extend(list.iter().filter_map(&wrong).map(|what| (what, answer.line.text())));
    }
    Verdict::from_faults(faults)
}

/// Whether the results of a method have their list.
pub(super) fn has_list(all: &All<'_>, method: &str, member: &str) -> Verdict {
    let mut faults = Vec::new();
    for answer in all.answers() {
        let Some(result) = answer.result().filter(|_| answer.method == method) else { continue };
        if !result[member].is_array() {
            faults.push((format!("`{member}` is {}", kind(&result[member])), answer.line.text()));
        }
    }
    Verdict::from_faults(faults)
}

pub(super) fn named(item: &Value, names: &[&str]) -> Option<String> {
    let missing = names.iter().find(|name| !item[**name].is_string())?;
    Some(format!("`{missing}` is {} in {}", kind(&item[*missing]), short(item)))
}

/// Whether a text is base64, in its usual alphabet.
pub(super) fn is_base64(text: &str) -> bool {
    let body = text.trim_end_matches('=');
    text.len().is_multiple_of(4)
        && text.len() - body.len() <= 2
        && body.chars().all(|c| c.is_ascii_alphanumeric() || c == '+' || c == '/')
}
