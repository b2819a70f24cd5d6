//! What a tool answered, and the two ways in which it is usually read.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

#[cfg(feature = "validate")]
use crate::client::state::OutputSchema;
#[cfg(feature = "validate")]
use crate::error::BadOutput;
use crate::error::{Error, Result};
use crate::json::{JsonRef, RawJson};
use crate::mcp::{CallToolResult, Content};

/// What a tool answered: its [`CallToolResult`], and the tool's name.
///
/// A tool that failed has answered, too: [`failed`](CallToolResult::failed) says so, and
/// [`text`](Self::text) and [`json`](Self::json) turn it into an error.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    tool: Arc<str>,
    result: CallToolResult,
}

impl Answer {
    pub(in crate::client) fn new(tool: Arc<str>, result: CallToolResult) -> Self {
        Self { tool, result }
    }

    /// The tool that answered.
    #[must_use]
    pub fn tool(&self) -> &str {
        &self.tool
    }

    /// Checks the answer against the schema of its tool, as
    /// [`check_answers`](crate::ClientBuilder::check_answers) does, for callers that keep a list of
    /// tools of their own. For revisions from 2025-06-18 on; older ones know no such schema.
    ///
    /// # Errors
    /// It does not fit, or cannot be checked ([`Error::Output`]).
    #[cfg(feature = "validate")]
    pub fn check_against(&self, tool: &crate::mcp::Tool) -> Result<()> {
        self.check_schema(&OutputSchema::of(tool))
    }

    #[cfg(feature = "validate")]
    pub(in crate::client) fn check_schema(&self, schema: &OutputSchema) -> Result<()> {
        schema.check(&self.result).map_err(|fault| {
            let (tool, result) = (self.tool.to_string(), self.result.clone());
            BadOutput { tool, fault, result }.into()
        })
    }

    /// The result itself.
    #[must_use]
    pub fn into_result(self) -> CallToolResult {
        self.result
    }

    /// The text of the answer: all text blocks, one after the other, with line ends between them.
    ///
    /// # Errors
    /// The tool failed ([`Error::Tool`]), or there is no text in what it answered.
    pub fn text(&self) -> Result<Cow<'_, str>> {
        self.check()?;
        self.all_text().ok_or_else(|| self.unfit("there is no text in it"))
    }

    /// The answer as data: its structured content, or else its text read as JSON.
    ///
    /// Servers put what is no object into one: `{"result": 5}`. That is read as a `5` where no object
    /// with a member `result` is wanted.
    ///
    /// # Errors
    /// The tool failed ([`Error::Tool`]), or what it answered is no `T`.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T> {
        self.check()?;
        let read = match &self.result.structured_content {
            Some(data) => data.parse().or_else(|error| match result_in(data) {
                Some(inner) => serde_json::from_str(inner.text()),
                None => Err(error),
            }),
            // Before 2025-06-18 there is no structured content; tools write JSON into their text.
            None => {
                let text = self.all_text().ok_or_else(|| self.unfit("there is no data in it"))?;
                serde_json::from_str(&text)
            }
        };
        read.map_err(|error| self.unfit(error.to_string()))
    }

    fn check(&self) -> Result<()> {
        if !self.result.failed() {
            return Ok(());
        }
        let text = self.all_text().unwrap_or(Cow::Borrowed("it did not say why")).into_owned();
        Err(Error::Tool { name: self.tool.as_ref().into(), text })
    }

    fn all_text(&self) -> Option<Cow<'_, str>> {
        let mut blocks = self.result.content.iter().filter_map(text_of);
        let first = blocks.next()?;
        Some(blocks.fold(Cow::Borrowed(first), |all, next| Cow::Owned(format!("{all}\n{next}"))))
    }

    fn unfit(&self, what: impl Into<Cow<'static, str>>) -> Error {
        Error::Unfit { name: self.tool.as_ref().into(), what: what.into() }
    }
}

/// The member `result` of an object that has no other.
fn result_in(data: &RawJson) -> Option<JsonRef<'_>> {
    let members: BTreeMap<Cow<'_, str>, &RawValue> = serde_json::from_str(data.text()).ok()?;
    match members.first_key_value() {
        Some((name, value)) if name == "result" && members.len() == 1 => Some((*value).into()),
        _ => None,
    }
}

fn text_of(block: &Content) -> Option<&str> {
    match block {
        Content::Text(text) => Some(&text.text),
        Content::Resource(resource) => resource.resource.text.as_deref(),
        _ => None,
    }
}

impl Deref for Answer {
    type Target = CallToolResult;

    fn deref(&self) -> &CallToolResult {
        &self.result
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::ResourceContents;
    use serde_json::{Value, json};

    fn answer(result: CallToolResult) -> Answer {
        Answer::new("sum".into(), result)
    }

    #[test]
    fn the_text_is_that_of_all_blocks() {
        assert_eq!(answer(CallToolResult::with_text("5")).text().unwrap(), "5");
        let embedded = Content::resource(ResourceContents::new("a:b").text("c"));
        let mixed = [Content::text("a"), Content::image("", "image/png"), embedded];
        assert_eq!(answer(CallToolResult::new(mixed)).text().unwrap(), "a\nc");
        let error = answer(CallToolResult::new([])).text().unwrap_err();
        assert_eq!(error.to_string(), "the answer of sum does not fit: there is no text in it");
    }

    #[test]
    fn tol_06_a_failure_is_an_answer_until_it_is_read() {
        let failed = answer(CallToolResult::with_error("no such column"));
        assert!(failed.failed());
        for error in [failed.text().unwrap_err(), failed.json::<Value>().unwrap_err()] {
            assert_eq!(error.to_string(), "the tool sum failed: no such column");
        }
    }

    #[test]
    fn data_is_structured_content_or_else_json_in_the_text() {
        let both = CallToolResult::with_text("[1]").structured_content(json!([2]));
        assert_eq!(answer(both).json::<Vec<u8>>().unwrap(), [2]);
        assert_eq!(answer(CallToolResult::with_text("[1]")).json::<Vec<u8>>().unwrap(), [1]);
        let error = answer(CallToolResult::with_text("x")).json::<u8>().unwrap_err();
        assert!(error.to_string().starts_with("the answer of sum does not fit: expected"));
    }

    #[test]
    fn what_stands_as_the_result_in_an_object_is_read_as_itself() {
        let answer = |data: Value| answer(CallToolResult::with_text("x").structured_content(data));
        assert_eq!(answer(json!({ "result": 5 })).json::<i64>().unwrap(), 5);
        assert_eq!(answer(json!({ "result": [true] })).json::<Vec<bool>>().unwrap(), [true]);
        assert_eq!(answer(json!(5)).json::<i64>().unwrap(), 5);
        #[derive(serde::Deserialize)]
        struct Own {
            result: i64,
        }
        assert_eq!(answer(json!({ "result": 5 })).json::<Own>().unwrap().result, 5);
        let whole = json!({ "result": 5 });
        assert_eq!(answer(whole.clone()).json::<Value>().unwrap(), whole);
        assert!(answer(json!({ "result": 5, "more": 1 })).json::<i64>().is_err());
        let wrong = answer(json!({ "result": "x" })).json::<i64>().unwrap_err().to_string();
        assert!(wrong.contains("string \"x\""), "{wrong}");
    }
}
