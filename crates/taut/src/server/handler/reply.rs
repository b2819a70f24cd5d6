//! What a tool may return, and how that becomes a result.

use std::any::Any;
use std::error::Error;
use std::fmt::Display;

use schemars::JsonSchema;
use serde::Serialize;

use crate::error::Reject;
use crate::mcp::{CallToolResult, Content, Schema};
use crate::rpc::ErrorObject;

use super::structured;
use crate::server::call::AskError;

/// What a tool can answer with.
///
/// Text, numbers, `bool`, `()`, [`Content`] and a `Vec` of it, [`Json`] for data with a schema,
/// [`CallToolResult`] for everything else, and a `Result` of any of these. A number or a `bool` is
/// sent as text and as `structuredContent` `{"result": …}`, with a schema.
///
/// An `Err` is the tool's own failure: the model reads its words and may try again (TOL-06). Only a
/// [`Reject`] becomes a JSON-RPC error.
#[diagnostic::on_unimplemented(
    message = "a tool cannot return `{Self}`",
    label = "not something that a tool can return",
    note = "return text, a number, `()`, `Content`, `CallToolResult`, or a `Result` of these; wrap a struct of \
            your own in `taut::Json`, which needs `Serialize` and `JsonSchema`"
)]
pub trait IntoReply {
    /// The result, or the JSON-RPC error to send instead.
    ///
    /// # Errors
    /// The answer is a [`Reject`].
    fn into_reply(self) -> Result<CallToolResult, ErrorObject>;

    /// What the data in the result looks like, if there is any.
    #[must_use]
    fn output_schema() -> Option<Schema>
    where
        Self: Sized,
    {
        None
    }
}

/// Data for programs: becomes `structuredContent`, with its schema in the tool's description, and
/// the same as text for readers that know no structure (TOL-14).
///
/// `structuredContent` is an object. What is no object is put into one as its member `result`:
/// `Json(vec![1, 2])` is sent as `{"result":[1,2]}` in every revision that has structured content
/// (from 2025-06-18 on), and the schema says so. Python's SDK does the same, and
/// [`Answer::json`](crate::Answer::json) reads both forms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Json<T>(pub T);

impl<T: Serialize + JsonSchema> IntoReply for Json<T> {
    fn into_reply(self) -> Result<CallToolResult, ErrorObject> {
        structured::with_data(&self.0)
            .map_err(|error| ErrorObject::internal(format!("result has no JSON form: {error}")))
    }

    fn output_schema() -> Option<Schema> {
        structured::schema_of::<T>()
    }
}

macro_rules! as_scalar {
    ($($T:ty),*) => {$(
        impl IntoReply for $T {
            fn into_reply(self) -> Result<CallToolResult, ErrorObject> {
                Ok(structured::with_scalar(self.to_string()))
            }

            fn output_schema() -> Option<Schema> {
                structured::schema_of::<$T>()
            }
        }
    )*};
}

as_scalar!(bool, i8, i16, i32, i64, i128, isize, u8, u16, u32, u64, u128, usize, f32, f64);

macro_rules! into_reply {
    ($($T:ty: |$value:ident| $result:expr;)*) => {$(
        impl IntoReply for $T {
            fn into_reply(self) -> Result<CallToolResult, ErrorObject> {
                let $value = self;
                Ok($result)
            }
        }
    )*};
}

into_reply! {
    &str: |text| CallToolResult::with_text(text);
    String: |text| CallToolResult::with_text(text);
    std::borrow::Cow<'_, str>: |text| CallToolResult::with_text(text);
    char: |character| CallToolResult::with_text(character);
    (): |_nothing| CallToolResult::new([]);
    Content: |block| CallToolResult::new([block]);
    Vec<Content>: |blocks| CallToolResult::new(blocks);
    CallToolResult: |result| result;
}

impl<T: IntoReply, E: Display + Send + 'static> IntoReply for Result<T, E> {
    fn into_reply(self) -> Result<CallToolResult, ErrorObject> {
        match self {
            Ok(value) => value.into_reply(),
            Err(error) => match protocol_error(&error) {
                Some(error) => Err(error),
                None => Ok(CallToolResult::with_error(error.to_string())),
            },
        }
    }

    fn output_schema() -> Option<Schema> {
        T::output_schema()
    }
}

/// What went wrong where there is no `isError`: a [`Reject`] as it is, anything else −32603.
pub(crate) fn as_error<E: Display + Send + 'static>(error: &E) -> ErrorObject {
    protocol_error(error).unwrap_or_else(|| ErrorObject::internal(error.to_string()))
}

/// The JSON-RPC error that a handler's error stands for, if it stands for one: a [`Reject`], or a
/// question that the client cannot answer (CAP-02), also inside the usual boxes.
fn protocol_error(error: &dyn Any) -> Option<ErrorObject> {
    if let Some(reject) = error.downcast_ref::<Reject>() {
        return Some(reject.error().clone());
    }
    let boxed: Option<&(dyn Error + 'static)> =
        match error.downcast_ref::<Box<dyn Error + Send + Sync>>() {
            Some(boxed) => Some(&**boxed),
            None => error.downcast_ref::<Box<dyn Error + Send>>().map(|boxed| &**boxed as _),
        };
    if let Some(reject) = boxed.and_then(|boxed| boxed.downcast_ref::<Reject>()) {
        return Some(reject.error().clone());
    }
    error.downcast_ref().or_else(|| boxed?.downcast_ref::<AskError>())?.as_error()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(reply: impl IntoReply) -> String {
        reply.into_reply().unwrap().content[0].as_text().unwrap().to_owned()
    }

    #[test]
    fn plain_values_become_text() {
        assert_eq!(text("a"), "a");
        assert_eq!(text(2.0 + 3.0), "5");
        assert_eq!(text(true), "true");
        assert_eq!("a".into_reply().unwrap().structured_content, None);
        assert!(().into_reply().unwrap().content.is_empty());
    }

    #[test]
    fn tol_06_an_error_is_for_the_model_and_a_reject_for_the_protocol() {
        let failed = Err::<&str, _>("no such city").into_reply().unwrap();
        assert!(failed.failed());
        let rejected = Err::<&str, _>(Reject::invalid_params("no")).into_reply().unwrap_err();
        assert_eq!(rejected.code, -32602);
    }

    /// CAP-02
    #[test]
    fn cap_02_what_a_client_lacks_is_told_by_its_code_also_from_a_box() {
        let missing =
            |modern| AskError::NotSupported { required: Box::default(), what: "x", modern };
        let code = |reply: Result<CallToolResult, ErrorObject>| reply.unwrap_err().code;
        let shared: Box<dyn Error + Send + Sync> = Box::new(missing(true));
        let sent: Box<dyn Error + Send> = Box::new(missing(true));
        assert_eq!(code(Err::<(), _>(missing(true)).into_reply()), -32021);
        assert_eq!(code(Err::<(), _>(shared).into_reply()), -32021);
        assert_eq!(code(Err::<(), _>(sent).into_reply()), -32021);
        let rejected: Box<dyn Error + Send + Sync> = Box::new(Reject::new(7, "no"));
        assert_eq!(code(Err::<(), _>(rejected).into_reply()), 7);
        let legacy: Box<dyn Error + Send + Sync> = Box::new(missing(false));
        assert!(Err::<(), _>(legacy).into_reply().unwrap().failed());
    }

    #[test]
    fn tol_14_data_comes_with_the_same_as_text() {
        let result = Json(serde_json::json!({ "a": 1 })).into_reply().unwrap();
        assert_eq!(result.content[0].as_text(), Some(r#"{"a":1}"#));
        assert_eq!(result.structured_content.unwrap().text(), r#"{"a":1}"#);
    }

    #[test]
    fn numbers_and_lists_are_the_result_in_an_object() {
        let data = |reply: Result<CallToolResult, ErrorObject>| {
            reply.unwrap().structured_content.map(|data| data.text().to_owned())
        };
        let cases = [
            (data(5.into_reply()), r#"{"result":5}"#),
            (data(2.5.into_reply()), r#"{"result":2.5}"#),
            (data(3.0.into_reply()), r#"{"result":3}"#),
            (
                data(i128::MIN.into_reply()),
                r#"{"result":-170141183460469231731687303715884105728}"#,
            ),
            (data(false.into_reply()), r#"{"result":false}"#),
            (data(Json(vec![1, 2]).into_reply()), r#"{"result":[1,2]}"#),
            (data(Json(()).into_reply()), r#"{"result":null}"#),
            (data(Json("x").into_reply()), r#"{"result":"x"}"#),
        ];
        for (got, want) in cases {
            assert_eq!(got.as_deref(), Some(want));
        }
        let failed = f64::NAN.into_reply().unwrap();
        assert!(failed.failed());
        assert_eq!(failed.content[0].as_text(), Some("the result is NaN, which JSON has not"));
    }
}
