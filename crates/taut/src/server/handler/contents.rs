//! What a resource and a prompt may return, and how that becomes a result.

use std::fmt::Display;

use crate::mcp::{GetPromptResult, PromptMessage, ReadResourceResult, ResourceContents};
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

/// Implements [`IntoContents`]: for a type, what its value becomes.
macro_rules! into_contents {
    ($($T:ty: |$value:ident, $uri:pat_param, $mime:pat_param| $result:expr;)*) => {$(
        impl IntoContents for $T {
            fn into_contents(
                self,
                $uri: &str,
                $mime: Option<&str>,
            ) -> Result<ReadResourceResult, ErrorObject> {
                let $value = self;
                Ok($result)
            }
        }
    )*};
}

into_contents! {
    String: |text, uri, mime| one(ResourceContents::new(uri).text(text), mime);
    &str: |text, uri, mime| one(ResourceContents::new(uri).text(text), mime);
    Vec<u8>: |bytes, uri, mime| one(ResourceContents::new(uri).blob(base64::encode(&bytes)), mime);
    &[u8]: |bytes, uri, mime| one(ResourceContents::new(uri).blob(base64::encode(bytes)), mime);
    ResourceContents: |contents, _, mime| one(contents, mime);
    Vec<ResourceContents>: |contents, _, _| ReadResourceResult::new(contents);
    ReadResourceResult: |result, _, _| result;
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

macro_rules! into_messages {
    ($($T:ty: |$value:ident| $messages:expr;)*) => {$(
        impl IntoMessages for $T {
            fn into_messages(self) -> Result<GetPromptResult, ErrorObject> {
                let $value = self;
                Ok($messages)
            }
        }
    )*};
}

into_messages! {
    &str: |text| GetPromptResult::new([PromptMessage::user(text)]);
    String: |text| GetPromptResult::new([PromptMessage::user(text)]);
    PromptMessage: |message| GetPromptResult::new([message]);
    Vec<PromptMessage>: |messages| GetPromptResult::new(messages);
    GetPromptResult: |result| result;
}

impl<T: IntoMessages, E: Display + Send + 'static> IntoMessages for Result<T, E> {
    fn into_messages(self) -> Result<GetPromptResult, ErrorObject> {
        self.map_err(|error| as_error(&error))?.into_messages()
    }
}
