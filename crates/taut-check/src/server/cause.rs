//! Failures that say nothing, because what they need is always refused.
//!
//! Knows which lists a probe asks for. Must not know any check but those of capabilities.

use serde_json::Value;

use super::checks::short;
use crate::check::Check;
use crate::cx::Survey;
use crate::seen::{Step, messages};

/// How a verdict ends that a list explains which is always refused.
pub(super) const REFUSED: &str = "which explains it";

/// Why a failure says nothing: a list that these steps ask for was refused to begin with. The check of the capability
/// tells of that.
pub(super) fn refused_list(survey: &Survey, check: &Check, steps: &[Step]) -> Option<String> {
    let all = [
        ("tools/list", &survey.tools),
        ("resources/list", &survey.resources),
        ("resources/templates/list", &survey.templates),
        ("prompts/list", &survey.prompts),
    ];
    let asks = |method: &str| {
        steps.iter().any(|step| match step {
            Step::Send(message) => messages(message).iter().any(|one| one["method"] == method),
            _ => false,
        })
    };
    let told = check.id.ends_with("-declared");
    let refused = all
        .into_iter()
        .filter(|(method, list)| list.error.is_some() && list.pages.is_empty() && asks(method));
    refused
        .filter(|_| !told)
        .map(|(method, list)| {
            let error = list.error.as_ref().map_or(&Value::Null, |reply| &reply["error"]);
            format!("{method} is always refused, with {}, {REFUSED}", short(error))
        })
        .next()
}
