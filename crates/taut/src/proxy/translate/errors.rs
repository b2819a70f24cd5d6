//! The errors of requests.

use serde_json::json;

use super::results::failed_tool;
use crate::json::JsonRef;
use crate::mcp::{
    MISSING_CLIENT_CAPABILITY, Method, RESOURCE_NOT_FOUND, UNSUPPORTED_PROTOCOL_VERSION,
};
use crate::rpc::{ErrorObject, code};

/// The error of a modern server for a legacy client: an error, or the result of a tool that failed.
///
/// # Errors
/// The error to be sent, where it is no result.
pub(crate) fn legacy_error(
    method: Option<Method>,
    uri: Option<&str>,
    mut error: ErrorObject,
) -> Result<String, ErrorObject> {
    match error.code {
        MISSING_CLIENT_CAPABILITY if method == Some(Method::CallTool) => {
            return Ok(failed_tool(&error.message));
        }
        MISSING_CLIENT_CAPABILITY | UNSUPPORTED_PROTOCOL_VERSION => {
            error.set_code(code::INTERNAL_ERROR);
        }
        // The modern revision has no code of its own for this; the address tells.
        code::INVALID_PARAMS if method == Some(Method::ReadResource) => {
            let named = error.data.as_deref().and_then(|data| JsonRef::from(data).member("uri"));
            if uri.is_some() && named.and_then(JsonRef::string).as_deref() == uri {
                error.set_code(RESOURCE_NOT_FOUND);
            }
        }
        _ => {}
    }
    Err(error)
}

/// The error of a legacy server for a modern client.
pub(crate) fn modern_error(
    method: Option<Method>,
    uri: Option<&str>,
    mut error: ErrorObject,
) -> ErrorObject {
    match error.code {
        RESOURCE_NOT_FOUND if method == Some(Method::ReadResource) => {
            error.set_code(code::INVALID_PARAMS);
            if let (None, Some(uri)) = (&error.data, uri) {
                error.set_data(json!({ "uri": uri }).to_string());
            }
            error
        }
        // These codes are a server's own in the legacy revisions, and reserved in the modern one.
        own @ -32019..=-32000 => {
            // As text, so that the digits of the data stay as they are.
            let text = match &error.data {
                Some(data) => format!("{{\"code\":{own},\"data\":{}}}", data.get()),
                None => format!("{{\"code\":{own}}}"),
            };
            error.set_code(code::INTERNAL_ERROR);
            error.set_data(text);
            error
        }
        _ => error,
    }
}
