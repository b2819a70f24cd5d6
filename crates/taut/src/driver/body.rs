//! The params of a call or a notification, on their way to the wire.

use serde::Serialize;

use crate::json::JsonBuf;
use crate::rpc::SendError;

/// Something that can be written as JSON: the params of a call or a notification.
pub(crate) trait Body: Send {
    /// Appends the JSON.
    ///
    /// # Errors
    /// The value has no JSON form; what was appended so far is taken back by the caller.
    fn write(&self, out: &mut Vec<u8>) -> Result<(), serde_json::Error>;
}

impl<T: Serialize + Send> Body for T {
    fn write(&self, out: &mut Vec<u8>) -> Result<(), serde_json::Error> {
        serde_json::to_writer(out, self)
    }
}

/// A boxed body is no `Serialize`, so this does not overlap with the above.
impl Body for Box<dyn Body> {
    fn write(&self, out: &mut Vec<u8>) -> Result<(), serde_json::Error> {
        (**self).write(out)
    }
}

/// Writes params, if there are any.
pub(super) fn written(params: Option<&dyn Body>) -> Result<Option<JsonBuf>, SendError> {
    let Some(params) = params else { return Ok(None) };
    let mut json = JsonBuf::default();
    params.write(json.start()).map_err(SendError::Json)?;
    Ok(Some(json))
}
