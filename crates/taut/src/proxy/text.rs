//! JSON text on its way from one side to the other.

use std::borrow::Cow;

use serde_json::json;
use serde_json::value::RawValue;

use crate::driver::{Body, Outcome};
use crate::json::edit::around;
use crate::json::{JsonBuf, JsonRef};
use crate::mcp::meta_keys;
use crate::rpc::{ErrorObject, Failure};

/// JSON text that is sent as it is.
pub(super) struct JsonText(pub(super) String);

impl Body for JsonText {
    fn write(&self, out: &mut Vec<u8>) -> Result<(), serde_json::Error> {
        out.extend_from_slice(self.0.as_bytes());
        Ok(())
    }
}

/// What a call came to, as it came. `lost` makes the error where the connection has ended.
pub(super) fn raw_outcome(
    outcome: Result<&RawValue, Failure>,
    lost: impl FnOnce() -> ErrorObject,
) -> Outcome {
    match outcome {
        Ok(raw) => Ok(JsonBuf::copied(&[raw.get()])),
        Err(Failure::Refused(error)) => Err(error.relayed()),
        Err(Failure::Violation(fault)) => {
            Err(ErrorObject::internal(format!("the answer is no valid response: {fault}")))
        }
        Err(_) => Err(lost()),
    }
}

/// An error of the proxy's own: there is no answer of the server. Programs find the reason in its data, and whether the
/// server may have begun with the request.
pub(super) fn no_answer(
    reason: &str,
    words: impl Into<Cow<'static, str>>,
    may_have_run: bool,
) -> ErrorObject {
    let data = json!({ "bridge": reason, "mayHaveRun": may_have_run });
    ErrorObject::internal(words).with_data(&data)
}

/// The error for what was not sent, because the connection to the server is over.
pub(super) fn closed() -> ErrorObject {
    no_answer("closed", "the connection to the server is closed", false)
}

/// The params of a report of progress with another token; nothing if it has none.
pub(super) fn with_token(params: JsonRef<'_>, token: &str) -> Option<String> {
    let written = params.member(meta_keys::PROGRESS_TOKEN)?;
    Some(around(params.text(), written.text(), token).concat())
}
