//! JSON text on its way from one side to the other.

use serde_json::value::RawValue;

use super::state::ProxiedCall;
use crate::client::Client;
use crate::driver::{Body, Outcome, Watcher};
use crate::json::edit::around;
use crate::json::{JsonBuf, JsonRef};
use crate::mcp::{Method, meta_keys};
use crate::rpc::{ErrorObject, Failure, Params};

/// JSON text that is sent as it is.
pub(super) struct JsonText(pub(super) String);

impl JsonText {
    pub(super) fn of(params: &Params<'_>) -> Self {
        Self(params.raw().map_or("{}", |raw| raw.get()).to_owned())
    }
}

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

/// The error for a call that the end of the server has cut off.
pub(super) fn lost(client: &Client, method: &str) -> ErrorObject {
    ErrorObject::internal(client.0.session.lost(method.to_owned().into()).to_string())
}

/// The params of a report of progress with another token; nothing if it has none.
pub(super) fn with_token(params: JsonRef<'_>, token: &str) -> Option<String> {
    let written = params.member(meta_keys::PROGRESS_TOKEN)?;
    Some(around(params.text(), written.text(), token).concat())
}

/// Passes reports of progress on a call to its client, under the client's own token.
pub(super) fn progress_watcher(call: &ProxiedCall, token: JsonRef<'_>) -> Watcher {
    let (link, id, serial) = (call.front.link.clone(), call.id.clone(), call.serial);
    let token = token.text().to_owned();
    Box::new(move |params| {
        if let Some(text) = with_token(JsonRef::from(params), &token) {
            let method = Method::Progress.as_str();
            let _ = link.notify_about(&id, serial, method, Some(&JsonText(text)));
        }
    })
}
