//! Completion: suggestions for an argument while a person types.
//!
//! Knows shapes and the limit of a hundred; must not know where suggestions come from. CMP-01 to
//! CMP-05.

use std::collections::BTreeMap;

use super::macros::{wire_struct, wire_union};
use super::meta::Meta;
use super::result::ResultType;

/// The most suggestions one answer may carry (CMP-02).
pub const MAX_COMPLETIONS: usize = 100;

wire_struct! {
    /// A prompt, by its name.
    pub struct PromptReference tagged "type" = "ref/prompt" (
        /// The prompt's name.
        needs name: String = "name",
    ) {
        /// A name for people.
        may title: String = "title" since V2025_06_18;
    }

    /// A resource or a family of them, by address or pattern.
    pub struct ResourceReference tagged "type" = "ref/resource" (
        /// The address or pattern.
        needs uri: String = "uri",
    ) {}
}

wire_union! {
    /// Whose argument is being typed (CMP-03).
    pub enum CompletionReference {
        /// A prompt's.
        Prompt(PromptReference) = "ref/prompt",
        /// A resource template's.
        Resource(ResourceReference) = "ref/resource",
    }
}

wire_struct! {
    /// The argument being typed.
    pub struct CompletionArgument(
        /// Its name.
        needs name: String = "name",
        /// What is there so far.
        needs value: String = "value",
    ) {}

    /// What is known besides the argument being typed.
    #[derive(Default)]
    pub struct CompletionContext() {
        /// Arguments already chosen (CMP-04).
        may arguments: BTreeMap<String, String> = "arguments";
    }

    /// What a client says in `completion/complete`.
    pub struct CompleteParams(
        /// Whose argument is being typed.
        needs reference: CompletionReference = "ref",
        /// The argument being typed.
        needs argument: CompletionArgument = "argument",
    ) {
        /// What is known besides.
        may context: CompletionContext = "context" since V2025_06_18;
        /// Open metadata.
        may meta: Meta = "_meta" when Meta::has_any;
    }

    /// Suggestions.
    pub struct Completion(
        /// At most [`MAX_COMPLETIONS`] of them; [`Completion::first_of`] sees to it.
        needs values: Vec<String> = "values",
    ) {
        /// How many there are in all.
        num total: u64 = "total";
        /// There are more than these.
        may has_more: bool = "hasMore";
    }

    /// What a server answers to `completion/complete`.
    pub struct CompleteResult(
        /// The suggestions.
        needs completion: Completion = "completion",
    ) {
        /// What kind of result this is.
        has result_type: ResultType = "resultType" since V2026_07_28;
        /// Open metadata.
        may meta: Meta = "_meta" when Meta::has_any;
    }
}

impl Completion {
    /// As many of `all` as one answer may carry, with their number (CMP-02).
    #[must_use]
    pub fn first_of(mut all: Vec<String>) -> Self {
        let total = all.len();
        all.truncate(MAX_COMPLETIONS);
        Self::new(all).total(total as u64).has_more(total > MAX_COMPLETIONS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::{Revision, WriteJson};
    use serde_json::json;

    #[test]
    fn cmp_02_an_answer_carries_at_most_a_hundred_and_says_how_many_there_are() {
        let all: Vec<_> = (0..130).map(|n| n.to_string()).collect();
        let completion = Completion::first_of(all);
        assert_eq!(completion.values.len(), 100);
        assert_eq!((completion.total, completion.has_more), (Some(130), Some(true)));
        assert_eq!(Completion::first_of(vec![]).has_more, Some(false));
    }

    #[test]
    fn cmp_03_a_reference_is_told_apart_by_its_type() {
        let value = json!({
            "ref": { "type": "ref/prompt", "name": "p" },
            "argument": { "name": "a", "value": "" },
            "context": { "arguments": { "b": "c" } },
        });
        let params: CompleteParams = serde_json::from_value(value.clone()).unwrap();
        assert_eq!(params.reference, PromptReference::new("p").into());
        assert_eq!(serde_json::to_value(params.at(Revision::V2025_06_18)).unwrap(), value);
        let older = serde_json::to_value(params.at(Revision::V2025_03_26)).unwrap();
        assert!(older.get("context").is_none());
    }
}
