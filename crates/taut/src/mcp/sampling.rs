//! Sampling: a server asks the client's language model.
//!
//! Knows shapes, and how a conversation is told to revisions that know no tools; must not know a
//! model. SAM-02 to SAM-08.

use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

use super::content::{AudioContent, Content, ImageContent, Role, TextContent};
use super::macros::{wire_enum, wire_struct, wire_union};
use super::meta::Meta;
use super::revision::Revision;
use super::tools::{Tool, fits_structured_content};
use super::write::{Target, WriteJson, serialize_any};
use crate::json::{JsonObject, RawJson};

wire_struct! {
    /// The model wants a tool called.
    pub struct ToolUse tagged "type" = "tool_use" (
        /// What the answer has to name.
        needs id: String = "id",
        /// The tool.
        needs name: String = "name",
        /// Its arguments.
        needs input: JsonObject = "input",
    ) {
        /// Open metadata.
        may meta: Meta = "_meta" when Meta::has_any;
    }

    /// What a tool answered to the model.
    pub struct ToolResult tagged "type" = "tool_result" (
        /// Which [`ToolUse`] this answers.
        needs tool_use_id: String = "toolUseId",
        /// The answer.
        needs content: Vec<Content> = "content",
    ) {
        /// The answer as data.
        any structured_content: RawJson = "structuredContent" when fits_structured_content;
        /// The tool failed; false unless said.
        may is_error: bool = "isError";
        /// Open metadata.
        may meta: Meta = "_meta" when Meta::has_any;
    }
}

wire_union! {
    /// One block of a conversation with a model.
    pub enum SamplingContent or stand_in {
        /// Words.
        Text(TextContent) = "text",
        /// A picture.
        Image(ImageContent) = "image",
        /// A sound.
        Audio(AudioContent) = "audio",
        /// The model wants a tool called.
        ToolUse(ToolUse) = "tool_use",
        /// What the tool answered.
        ToolResult(ToolResult) = "tool_result",
    }
}

impl SamplingContent {
    /// Words.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        TextContent::new(text).into()
    }

    fn stand_in(&self, target: Target) -> Option<TextContent> {
        let tools = target.since(Revision::V2025_11_25);
        match self {
            Self::Audio(audio) if !target.since(Revision::V2025_03_26) => Some(audio.stand_in()),
            Self::ToolUse(_) | Self::ToolResult(_) if !tools => Some(TextContent::new(self.told())),
            _ => None,
        }
    }

    /// The block in words.
    fn told(&self) -> String {
        match self {
            Self::Text(text) => text.text.clone(),
            Self::Image(image) => format!("[{} image left out]", image.mime_type),
            Self::Audio(audio) => format!("[{} audio left out]", audio.mime_type),
            Self::ToolUse(tool) => format!("[calls tool {}]", tool.name),
            Self::ToolResult(result) => {
                let words: Vec<_> = result.content.iter().filter_map(Content::as_text).collect();
                format!("[tool answers: {}]", words.join("\n"))
            }
            Self::Other(_) => "[content left out]".to_owned(),
        }
    }
}

impl From<&str> for SamplingContent {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl From<String> for SamplingContent {
    fn from(text: String) -> Self {
        Self::text(text)
    }
}

/// The blocks of one message: a single one stands alone on the wire, several in an array (SAM-07).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SamplingBlocks(pub Vec<SamplingContent>);

impl<T: Into<SamplingContent>> From<T> for SamplingBlocks {
    fn from(block: T) -> Self {
        Self(vec![block.into()])
    }
}

impl From<Vec<SamplingContent>> for SamplingBlocks {
    fn from(blocks: Vec<SamplingContent>) -> Self {
        Self(blocks)
    }
}

impl WriteJson for SamplingBlocks {
    fn write_json(&self, target: Target, out: &mut Vec<u8>) {
        match &*self.0 {
            [one] => one.write_json(target, out),
            _ if target.since(Revision::V2025_11_25) => self.0.write_json(target, out),
            // SAM-07: one block only until 2025-06-18, so several are told in words.
            several => {
                let told: Vec<_> = several.iter().map(SamplingContent::told).collect();
                TextContent::new(told.join("\n\n")).write_json(target, out);
            }
        }
    }
}

serialize_any!(SamplingBlocks);

impl<'de> Deserialize<'de> for SamplingBlocks {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct BlocksVisitor;

        impl<'de> Visitor<'de> for BlocksVisitor {
            type Value = SamplingBlocks;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a content block or an array of them")
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<SamplingBlocks, A::Error> {
                SamplingContent::deserialize(MapAccessDeserializer::new(map))
                    .map(SamplingBlocks::from)
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<SamplingBlocks, A::Error> {
                let mut blocks = Vec::new();
                while let Some(block) = seq.next_element()? {
                    blocks.push(block);
                }
                Ok(SamplingBlocks(blocks))
            }
        }

        deserializer.deserialize_any(BlocksVisitor)
    }
}

wire_struct! {
    /// One message of a conversation with a model.
    pub struct SamplingMessage(
        /// Who speaks.
        needs role: Role = "role",
        /// What is said.
        needs content: SamplingBlocks = "content",
    ) {
        /// Open metadata.
        may meta: Meta = "_meta" since V2025_11_25 when Meta::has_any;
    }
}

impl SamplingMessage {
    /// Something the user says.
    #[must_use]
    pub fn user(content: impl Into<SamplingBlocks>) -> Self {
        Self::new(Role::User, content)
    }

    /// Something the model says.
    #[must_use]
    pub fn assistant(content: impl Into<SamplingBlocks>) -> Self {
        Self::new(Role::Assistant, content)
    }
}

wire_struct! {
    /// Part of a model's name.
    #[derive(Default)]
    pub struct ModelHint() {
        /// Any part of the name; the first hint that fits counts (SAM-10).
        may name: String = "name";
    }

    /// Which model to choose; each priority goes from 0 to 1.
    #[derive(Default)]
    pub struct ModelPreferences() {
        /// Names to look for, in order.
        may hints: Vec<ModelHint> = "hints";
        /// How much price matters.
        may cost_priority: f64 = "costPriority";
        /// How much speed matters.
        may speed_priority: f64 = "speedPriority";
        /// How much skill matters.
        may intelligence_priority: f64 = "intelligencePriority";
    }
}

wire_enum! {
    /// Which servers' context to give to the model; all but `none` are deprecated (SAM-08).
    pub enum IncludeContext {
        /// None.
        None = "none",
        /// That of the asking server.
        ThisServer = "thisServer",
        /// That of all servers.
        AllServers = "allServers",
    }
}

wire_enum! {
    /// Whether the model may, must or must not use a tool.
    pub enum ToolChoiceMode {
        /// As it likes.
        Auto = "auto",
        /// It must.
        Required = "required",
        /// It must not.
        None = "none",
    }
}

wire_struct! {
    /// How the model uses tools.
    #[derive(Default)]
    pub struct ToolChoice() {
        /// Whether it may, must or must not.
        may mode: ToolChoiceMode = "mode";
    }

    /// What a server asks with `sampling/createMessage`.
    pub struct CreateMessageParams(
        /// The conversation so far.
        needs messages: Vec<SamplingMessage> = "messages",
        /// How long the answer may be (SAM-04).
        num max_tokens: u64 = "maxTokens",
    ) {
        /// Which model to choose.
        may model_preferences: ModelPreferences = "modelPreferences";
        /// What the model is told beforehand.
        may system_prompt: String = "systemPrompt";
        /// Which servers' context to give to the model.
        may include_context: IncludeContext = "includeContext";
        /// How free the model is.
        may temperature: f64 = "temperature";
        /// Words that end the answer.
        may stop_sequences: Vec<String> = "stopSequences";
        /// Settings for one provider.
        may metadata: JsonObject = "metadata";
        /// Tools the model may use; only if the client declared so (SAM-05).
        may tools: Vec<Tool> = "tools" since V2025_11_25;
        /// How the model uses them.
        may tool_choice: ToolChoice = "toolChoice" since V2025_11_25;
        /// Asks for a task; as it came.
        may task: RawJson = "task" since V2025_11_25 until V2025_11_25;
        /// Open metadata.
        may meta: Meta = "_meta" until V2025_11_25 when Meta::has_any;
    }
}

wire_enum! {
    /// Why a model stopped.
    pub enum StopReason {
        /// It was done.
        EndTurn = "endTurn",
        /// It came to a word that ends the answer.
        StopSequence = "stopSequence",
        /// The answer was long enough.
        MaxTokens = "maxTokens",
        /// It wants a tool called.
        ToolUse = "toolUse",
    }
}

wire_struct! {
    /// What a client answers to `sampling/createMessage`.
    pub struct CreateMessageResult(
        /// Who speaks.
        needs role: Role = "role",
        /// What is said.
        needs content: SamplingBlocks = "content",
        /// The model that said it.
        needs model: String = "model",
    ) {
        /// Why it stopped.
        may stop_reason: StopReason = "stopReason";
        /// Open metadata.
        may meta: Meta = "_meta" when Meta::has_any;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn conversation() -> SamplingMessage {
        let call = ToolUse::new("1", "add", JsonObject::new());
        SamplingMessage::assistant(vec![SamplingContent::text("let me see"), call.into()])
    }

    #[test]
    fn sam_07_one_block_stands_alone_and_several_in_an_array() {
        let one: SamplingMessage = serde_json::from_value(json!({
            "role": "user", "content": { "text": "x", "type": "text" },
        }))
        .unwrap();
        assert_eq!(one, SamplingMessage::user("x"));
        let written = serde_json::to_value(conversation()).unwrap();
        assert_eq!(written["content"][1]["type"], "tool_use");
        assert_eq!(serde_json::from_value::<SamplingMessage>(written).unwrap(), conversation());
        assert!(serde_json::from_value::<SamplingBlocks>(json!("x")).is_err());
    }

    #[test]
    fn older_readers_are_told_in_one_block() {
        let written = serde_json::to_value(conversation().at(Revision::V2025_06_18)).unwrap();
        assert_eq!(
            written["content"],
            json!({ "type": "text", "text": "let me see\n\n[calls tool add]" })
        );
        let answer = ToolResult::new("1", [Content::text("5")]);
        let message = SamplingMessage::user(SamplingContent::from(answer));
        let written = serde_json::to_value(message.at(Revision::V2024_11_05)).unwrap();
        assert_eq!(written["content"]["text"], "[tool answers: 5]");
    }

    #[test]
    fn tools_reach_only_readers_that_know_them() {
        let params = CreateMessageParams::new([SamplingMessage::user("x")], 100)
            .tools([Tool::new("t")])
            .tool_choice(ToolChoice::new().mode(ToolChoiceMode::Auto));
        let at = |revision| -> Value { serde_json::to_value(params.at(revision)).unwrap() };
        assert!(at(Revision::V2025_06_18).get("tools").is_none());
        assert_eq!(at(Revision::V2025_11_25)["toolChoice"], json!({ "mode": "auto" }));
        assert_eq!(at(Revision::V2024_11_05)["maxTokens"], 100);
    }
}
