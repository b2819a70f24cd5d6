//! Tools: how a server describes them, how they are called, what they answer.
//!
//! Knows shapes; must not know how a handler runs. TOL-01 to TOL-33.

use super::content::{Content, Icon};
use super::macros::{wire_enum, wire_struct};
use super::meta::Meta;
use super::result::ResultType;
use super::schema::Schema;
use super::write::Target;
use crate::json::RawJson;

wire_struct! {
    /// A tool that a server offers.
    ///
    /// ```
    /// let tool = taut::Tool::new("echo").title("Echo").description("Says it again.");
    /// assert_eq!(tool.name, "echo");
    /// ```
    pub struct Tool(
        /// A name for programs (TOL-21).
        needs name: String = "name",
    ) {
        /// A name for people.
        may title: String = "title" since V2025_06_18;
        /// What it does, for the model to read.
        may description: String = "description";
        /// What its arguments have to look like; any object unless set (TOL-03).
        has input_schema: Schema = "inputSchema";
        /// What its structured results look like (TOL-12).
        may output_schema: Schema = "outputSchema" since V2025_06_18 when Schema::fits_output;
        /// Hints on what it may do.
        may annotations: ToolAnnotations = "annotations" since V2025_03_26;
        /// Pictures to show beside it.
        may icons: Vec<Icon> = "icons" since V2025_11_25;
        /// How it is run.
        may execution: ToolExecution = "execution" since V2025_11_25 until V2025_11_25;
        /// Open metadata.
        may meta: Meta = "_meta" since V2025_06_18 when Meta::has_any;
    }
}

impl Tool {
    /// The name to show to people (TOL-19).
    #[must_use]
    pub fn display_name(&self) -> &str {
        let hinted = self.annotations.as_ref().and_then(|hints| hints.title.as_deref());
        self.title.as_deref().or(hinted).unwrap_or(&self.name)
    }
}

wire_struct! {
    /// Hints on what a tool may do. Untrusted unless the server is (TOL-18).
    #[derive(Default)]
    pub struct ToolAnnotations() {
        /// A name for people; [`Tool::title`] goes before it.
        may title: String = "title";
        /// It changes nothing; false unless said.
        may read_only_hint: bool = "readOnlyHint";
        /// What it changes may be lost; true unless said.
        may destructive_hint: bool = "destructiveHint";
        /// Doing it twice is like doing it once; false unless said.
        may idempotent_hint: bool = "idempotentHint";
        /// It reaches out of the server's own world; true unless said.
        may open_world_hint: bool = "openWorldHint";
    }
}

wire_enum! {
    /// Whether a tool may be run as a task (TOL-27).
    pub enum TaskSupport {
        /// It may not; what saying nothing means.
        Forbidden = "forbidden",
        /// It may.
        Optional = "optional",
        /// It has to.
        Required = "required",
    }
}

wire_struct! {
    /// How a tool is run, in 2025-11-25.
    #[derive(Default)]
    pub struct ToolExecution() {
        /// Whether it may be run as a task.
        may task_support: TaskSupport = "taskSupport";
    }

    /// What a client says in `tools/call`.
    pub struct CallToolParams(
        /// The tool's name.
        needs name: String = "name",
    ) {
        /// Its arguments, an object; absent means none (TOL-26).
        may arguments: RawJson = "arguments";
        /// Asks for a task; as it came.
        may task: RawJson = "task" since V2025_11_25 until V2025_11_25;
        /// Answers to what an earlier run asked for (MRTR-05).
        may input_responses: RawJson = "inputResponses" since V2026_07_28;
        /// What an earlier run wants back, byte for byte (MRTR-06).
        may request_state: String = "requestState" since V2026_07_28;
        /// Open metadata.
        may meta: Meta = "_meta" when Meta::has_any;
    }

    /// What a tool answers.
    pub struct CallToolResult(
        /// The answer; always there, even when empty (TOL-04).
        needs content: Vec<Content> = "content",
    ) {
        /// The answer as data. `null` is an answer too, from 2026-07-28 on (TOL-10, TOL-11).
        any structured_content: RawJson = "structuredContent" since V2025_06_18
            when fits_structured_content;
        /// The tool failed, and the content says why; false unless said (TOL-06, TOL-32).
        may is_error: bool = "isError";
        /// What kind of result this is.
        has result_type: ResultType = "resultType" since V2026_07_28;
        /// Open metadata.
        may meta: Meta = "_meta" when Meta::has_any;
    }
}

impl CallToolResult {
    /// An answer in words.
    #[must_use]
    pub fn with_text(text: impl Into<String>) -> Self {
        Self::new([Content::text(text)])
    }

    /// A failure the model can read.
    #[must_use]
    pub fn with_error(text: impl Into<String>) -> Self {
        Self::with_text(text).is_error(true)
    }

    /// Whether the tool failed.
    #[must_use]
    pub fn failed(&self) -> bool {
        self.is_error == Some(true)
    }
}

/// For `structuredContent`: only an object until 2025-11-25 (TOL-10), anything after (TOL-11).
pub(super) fn fits_structured_content(value: &RawJson, target: Target) -> bool {
    value.is_object() || target.revision().is_none_or(|at| at.has_any_structured_content())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::{Revision, WriteJson};
    use serde_json::{Value, json};

    fn members(value: &impl WriteJson, revision: Revision) -> Vec<String> {
        let written = serde_json::to_value(value.at(revision)).unwrap();
        written.as_object().unwrap().keys().cloned().collect()
    }

    #[test]
    fn tol_03_a_tool_always_has_an_input_schema() {
        let text = serde_json::to_string(&Tool::new("t").at(Revision::V2024_11_05)).unwrap();
        assert_eq!(text, r#"{"name":"t","inputSchema":{"type":"object"}}"#);
        for value in [json!({ "name": "t" }), json!({ "name": "t", "inputSchema": null })] {
            let tool: Tool = serde_json::from_value(value).unwrap();
            assert_eq!(tool, Tool::new("t"));
        }
    }

    #[test]
    fn tol_15_and_16_only_modern_readers_see_an_output_schema_without_object_root() {
        let array = Tool::new("t").output_schema(json!({ "type": "array" }));
        let object = Tool::new("t").output_schema(json!({ "type": "object" }));
        let has = |tool: &Tool, at| members(tool, at).contains(&"outputSchema".to_owned());
        assert_eq!(Revision::ALL.map(|at| has(&array, at)), [false, false, false, false, true]);
        assert_eq!(Revision::ALL.map(|at| has(&object, at)), [false, false, true, true, true]);
    }

    #[test]
    fn tol_10_and_11_only_modern_readers_see_structured_content_that_is_no_object() {
        let shown = |data: Value| {
            let result = CallToolResult::with_text("x").structured_content(data);
            Revision::ALL.map(|at| members(&result, at).contains(&"structuredContent".to_owned()))
        };
        assert_eq!(shown(json!([1])), [false, false, false, false, true]);
        assert_eq!(shown(json!(null)), [false, false, false, false, true]);
        assert_eq!(shown(json!({})), [false, false, true, true, true]);
    }

    #[test]
    fn tol_11_null_is_an_answer_and_absent_is_none() {
        let read = |text| serde_json::from_str::<CallToolResult>(text).unwrap();
        let null = read(r#"{"content":[],"structuredContent":null}"#);
        assert_eq!(null.structured_content, Some(Value::Null.into()));
        assert_eq!(read(r#"{"content":[]}"#).structured_content, None);
    }

    #[test]
    fn a_plain_answer_is_written_in_one_short_object() {
        let text =
            serde_json::to_string(&CallToolResult::with_text("hi").at(Revision::MODERN)).unwrap();
        assert_eq!(text, r#"{"content":[{"type":"text","text":"hi"}],"resultType":"complete"}"#);
        let legacy = CallToolResult::with_error("no");
        let text = serde_json::to_string(&legacy.at(Revision::LATEST_LEGACY)).unwrap();
        assert_eq!(text, r#"{"content":[{"type":"text","text":"no"}],"isError":true}"#);
    }

    #[test]
    fn tol_04_a_result_without_content_is_refused() {
        let error = serde_json::from_str::<CallToolResult>(r#"{"isError":true}"#).unwrap_err();
        assert!(error.to_string().starts_with("missing field `content`"));
    }

    #[test]
    fn tol_19_people_see_the_title_then_the_hint_then_the_name() {
        let tool = Tool::new("t");
        assert_eq!(tool.display_name(), "t");
        let tool = tool.annotations(ToolAnnotations::new().title("hint"));
        assert_eq!(tool.display_name(), "hint");
        assert_eq!(tool.title("title").display_name(), "title");
    }
}
