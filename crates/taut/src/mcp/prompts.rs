//! Prompts: messages a server has ready for a person to choose.
//!
//! Knows shapes; must not know how one is filled in. PRM-01 to PRM-07.

use std::collections::BTreeMap;

use super::content::{Content, Icon, Role};
use super::macros::wire_struct;
use super::meta::Meta;
use super::result::ResultType;
use crate::json::RawJson;

wire_struct! {
    /// A prompt that a server offers.
    pub struct Prompt(
        /// A name for programs.
        needs name: String = "name",
    ) {
        /// A name for people.
        may title: String = "title" since V2025_06_18;
        /// What it is for.
        may description: String = "description";
        /// What can be filled in.
        may arguments: Vec<PromptArgument> = "arguments";
        /// Pictures to show beside it.
        may icons: Vec<Icon> = "icons" since V2025_11_25;
        /// Open metadata.
        may meta: Meta = "_meta" since V2025_06_18 when Meta::has_any;
    }

    /// A blank in a prompt.
    pub struct PromptArgument(
        /// A name for programs.
        needs name: String = "name",
    ) {
        /// A name for people.
        may title: String = "title" since V2025_06_18;
        /// What to fill in.
        may description: String = "description";
        /// It has to be filled in; false unless said.
        may required: bool = "required";
    }

    /// One message of a prompt.
    pub struct PromptMessage(
        /// Who speaks.
        needs role: Role = "role",
        /// What is said.
        needs content: Content = "content",
    ) {}

    /// What a client says in `prompts/get`.
    pub struct GetPromptParams(
        /// The prompt's name.
        needs name: String = "name",
    ) {
        /// What is filled in; always strings (PRM-05).
        may arguments: BTreeMap<String, String> = "arguments";
        /// Answers to what an earlier run asked for (MRTR-05).
        may input_responses: RawJson = "inputResponses" since V2026_07_28;
        /// What an earlier run wants back, byte for byte (MRTR-06).
        may request_state: String = "requestState" since V2026_07_28;
        /// Open metadata.
        may meta: Meta = "_meta" when Meta::has_any;
    }

    /// What a server answers to `prompts/get`.
    pub struct GetPromptResult(
        /// The messages, filled in.
        needs messages: Vec<PromptMessage> = "messages",
    ) {
        /// What the prompt is for.
        may description: String = "description";
        /// What kind of result this is.
        has result_type: ResultType = "resultType" since V2026_07_28;
        /// Open metadata.
        may meta: Meta = "_meta" when Meta::has_any;
    }
}

impl PromptMessage {
    /// Something the user says.
    #[must_use]
    pub fn user(content: impl Into<Content>) -> Self {
        Self::new(Role::User, content)
    }

    /// Something the model says.
    #[must_use]
    pub fn assistant(content: impl Into<Content>) -> Self {
        Self::new(Role::Assistant, content)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::{Revision, WriteJson};
    use serde_json::json;

    #[test]
    fn a_message_is_downgraded_with_its_content() {
        let result = GetPromptResult::new([
            PromptMessage::user("hi"),
            PromptMessage::assistant(Content::link("a:b", "b")),
        ]);
        assert_eq!(
            serde_json::to_value(result.at(Revision::V2025_03_26)).unwrap(),
            json!({ "messages": [
                { "role": "user", "content": { "type": "text", "text": "hi" } },
                { "role": "assistant", "content": { "type": "text", "text": "b: a:b" } },
            ] })
        );
    }

    #[test]
    fn prm_05_an_argument_that_is_no_string_is_refused() {
        let read = serde_json::from_value::<GetPromptParams>;
        assert!(read(json!({ "name": "p", "arguments": { "n": 5 } })).is_err());
        let params = read(json!({ "name": "p", "arguments": { "n": "5" } })).unwrap();
        assert_eq!(params.arguments.unwrap()["n"], "5");
    }

    #[test]
    fn a_role_nobody_knows_is_kept() {
        let value = json!({ "role": "critic", "content": { "type": "text", "text": "x" } });
        let message: PromptMessage = serde_json::from_value(value.clone()).unwrap();
        assert_eq!(message.role, Role::Other("critic".into()));
        assert_eq!(serde_json::to_value(&message).unwrap(), value);
    }
}
