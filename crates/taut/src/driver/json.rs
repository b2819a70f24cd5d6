//! Values of users' types → JSON, away from every lock and every other message.
//!
//! Knows that a `Serialize` is foreign code: it may fail, panic, or use the connection itself. So it
//! writes into a buffer of its own, and what is kept is only what came out whole.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::link::Reply;
use super::work::panicked;
use crate::json::JsonBuf;
use crate::rpc::{Body, ErrorObject, SendError};

/// JSON that is already written.
pub(crate) struct Written<'a>(pub(crate) &'a [u8]);

/// It is no `Serialize`, so this does not overlap with the impl for all that are.
impl Body for Written<'_> {
    fn write(&self, out: &mut Vec<u8>) -> Result<(), serde_json::Error> {
        out.extend_from_slice(self.0);
        Ok(())
    }
}

/// Writes params, if there are any.
pub(crate) fn params(params: Option<&dyn Body>) -> Result<Option<JsonBuf>, SendError> {
    let Some(params) = params else { return Ok(None) };
    let mut json = JsonBuf::default();
    params.write(json.start()).map_err(SendError::Json)?;
    Ok(Some(json))
}

/// Writes a result.
pub(super) fn write_result(result: &dyn Body, json: &mut Vec<u8>) -> Result<(), ErrorObject> {
    result
        .write(json)
        .map_err(|error| ErrorObject::internal(format!("result has no JSON form: {error}")))
}

/// Writes the result of a handler to `json`, and drops it. C14: a panic on the way is its error.
pub(crate) fn reply(reply: Reply, json: &mut Vec<u8>) -> Result<(), ErrorObject> {
    catch_unwind(AssertUnwindSafe(|| write_result(&*reply?, json)))
        .unwrap_or_else(|panic| Err(panicked(&*panic)))
}
