//! What a resource and a prompt may return, and how that becomes a result.

use std::fmt::Display;

use crate::mcp::{Content, GetPromptResult, PromptMessage, ReadResourceResult, ResourceContents};
use crate::rpc::ErrorObject;

use super::base64;
use super::reply::as_error;

/// What reading a resource can return: text, bytes, [`ResourceContents`], several of them, or a
/// `Result` of these.
#[diagnostic::on_unimplemented(
    message = "a resource cannot return `{Self}`",
    label = "not something that a resource can return",
    note = "return text, bytes, `ResourceContents`, a `Vec` of it, `ReadResourceResult`, or a `Result` of these"
)]
pub trait IntoContents {
    /// The contents of the resource at `uri`.
    ///
    /// # Errors
    /// What the handler failed with: a [`Reject`](crate::Reject) as it is, anything else −32603.
    fn into_contents(
        self,
        uri: &str,
        mime_type: Option<&str>,
    ) -> Result<ReadResourceResult, ErrorObject>;
}

fn one(mut contents: ResourceContents, mime_type: Option<&str>) -> ReadResourceResult {
    contents.mime_type = contents.mime_type.or_else(|| mime_type.map(str::to_owned));
    ReadResourceResult::new([contents])
}

impl IntoContents for String {
    fn into_contents(
        self,
        uri: &str,
        mime_type: Option<&str>,
    ) -> Result<ReadResourceResult, ErrorObject> {
        Ok(one(ResourceContents::new(uri).text(self), mime_type))
    }
}

impl IntoContents for &str {
    fn into_contents(
        self,
        uri: &str,
        mime_type: Option<&str>,
    ) -> Result<ReadResourceResult, ErrorObject> {
        self.to_owned().into_contents(uri, mime_type)
    }
}

impl IntoContents for Vec<u8> {
    fn into_contents(
        self,
        uri: &str,
        mime_type: Option<&str>,
    ) -> Result<ReadResourceResult, ErrorObject> {
        Ok(one(ResourceContents::new(uri).blob(base64::encode(&self)), mime_type))
    }
}

impl IntoContents for &[u8] {
    fn into_contents(
        self,
        uri: &str,
        mime_type: Option<&str>,
    ) -> Result<ReadResourceResult, ErrorObject> {
        self.to_vec().into_contents(uri, mime_type)
    }
}

impl IntoContents for ResourceContents {
    fn into_contents(
        self,
        _: &str,
        mime_type: Option<&str>,
    ) -> Result<ReadResourceResult, ErrorObject> {
        Ok(one(self, mime_type))
    }
}

impl IntoContents for Vec<ResourceContents> {
    fn into_contents(self, _: &str, _: Option<&str>) -> Result<ReadResourceResult, ErrorObject> {
        Ok(ReadResourceResult::new(self))
    }
}

impl IntoContents for ReadResourceResult {
    fn into_contents(self, _: &str, _: Option<&str>) -> Result<ReadResourceResult, ErrorObject> {
        Ok(self)
    }
}

impl<T: IntoContents, E: Display + Send + 'static> IntoContents for Result<T, E> {
    fn into_contents(
        self,
        uri: &str,
        mime_type: Option<&str>,
    ) -> Result<ReadResourceResult, ErrorObject> {
        self.map_err(|error| as_error(&error))?.into_contents(uri, mime_type)
    }
}

/// What a prompt can return: text that the user says, messages, or a `Result` of these.
#[diagnostic::on_unimplemented(
    message = "a prompt cannot return `{Self}`",
    label = "not something that a prompt can return",
    note = "return text, `PromptMessage`, a `Vec` of it, `GetPromptResult`, or a `Result` of these"
)]
pub trait IntoMessages {
    /// The filled-in prompt.
    ///
    /// # Errors
    /// What the handler failed with: a [`Reject`](crate::Reject) as it is, anything else −32603.
    fn into_messages(self) -> Result<GetPromptResult, ErrorObject>;
}

impl IntoMessages for &str {
    fn into_messages(self) -> Result<GetPromptResult, ErrorObject> {
        PromptMessage::user(self).into_messages()
    }
}

impl IntoMessages for String {
    fn into_messages(self) -> Result<GetPromptResult, ErrorObject> {
        PromptMessage::user(Content::text(self)).into_messages()
    }
}

impl IntoMessages for PromptMessage {
    fn into_messages(self) -> Result<GetPromptResult, ErrorObject> {
        Ok(GetPromptResult::new([self]))
    }
}

impl IntoMessages for Vec<PromptMessage> {
    fn into_messages(self) -> Result<GetPromptResult, ErrorObject> {
        Ok(GetPromptResult::new(self))
    }
}

impl IntoMessages for GetPromptResult {
    fn into_messages(self) -> Result<GetPromptResult, ErrorObject> {
        Ok(self)
    }
}

impl<T: IntoMessages, E: Display + Send + 'static> IntoMessages for Result<T, E> {
    fn into_messages(self) -> Result<GetPromptResult, ErrorObject> {
        self.map_err(|error| as_error(&error))?.into_messages()
    }
}
