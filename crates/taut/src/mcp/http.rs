//! What HTTP has to know of messages: the era of a request, what its headers repeat, which status an
//! error has.
//!
//! Knows methods, members and codes; must not know a header's syntax or a connection. The transport
//! asks here and keeps no table of its own.

use std::borrow::Cow;

use super::codes::{MISSING_CLIENT_CAPABILITY, UNSUPPORTED_PROTOCOL_VERSION, UnsupportedVersion};
use super::methods::Method;
use super::parameter_headers::ParameterHeader;
use super::request_meta::RequestMeta;
use super::revision::Revision;
use crate::json::JsonRef;
use crate::rpc::{ErrorObject, Params, code};

/// Headers and body of a modern request differ (HDR-08).
pub const HEADER_MISMATCH: i64 = -32020;

/// A method of the tasks extension, which is not part of the core protocol.
const UPDATE_TASK: &str = "tasks/update";

/// The status of an HTTP response whose body is an error with this code, in the modern revision
/// (HTP-10, HTP-11). Legacy revisions bind no code to a status: there it is 200.
#[must_use]
pub fn http_status(error: i64) -> u16 {
    match error {
        code::METHOD_NOT_FOUND => 404,
        code::PARSE_ERROR
        | code::INVALID_REQUEST
        | code::INVALID_PARAMS
        | HEADER_MISMATCH
        | MISSING_CLIENT_CAPABILITY
        | UNSUPPORTED_PROTOCOL_VERSION => 400,
        _ => 200,
    }
}

/// Whether the server does nothing but answer the method, so that a client may ask twice.
#[must_use]
pub fn may_be_repeated(method: &str) -> bool {
    use Method::*;
    matches!(
        Method::parse(method),
        Some(
            Initialize
                | Discover
                | Ping
                | ListTools
                | ListResources
                | ListResourceTemplates
                | ReadResource
                | ListPrompts
                | GetPrompt
                | GetTask
                | ListTasks
        )
    )
}

/// The names of the methods that mean something to the transport of a client.
pub mod method_names {
    use super::Method;

    /// Asks a modern server what it is.
    pub const DISCOVER: &str = Method::Discover.as_str();
    /// Opens a legacy session.
    pub const INITIALIZE: &str = Method::Initialize.as_str();
    /// Confirms the opening of a legacy session.
    pub const INITIALIZED: &str = Method::Initialized.as_str();
    /// Withdraws a request.
    pub const CANCELLED: &str = Method::Cancelled.as_str();
    /// Opens a stream of changes.
    pub const LISTEN: &str = Method::Listen.as_str();
    /// Lists tools.
    pub const LIST_TOOLS: &str = Method::ListTools.as_str();
    /// Calls a tool.
    pub const CALL_TOOL: &str = Method::CallTool.as_str();
    /// Subscribes to a resource.
    pub const SUBSCRIBE: &str = Method::Subscribe.as_str();
    /// Ends a subscription.
    pub const UNSUBSCRIBE: &str = Method::Unsubscribe.as_str();
    /// Sets from which level on log lines are sent.
    pub const SET_LEVEL: &str = Method::SetLevel.as_str();
}

/// Which revision a request claims in `_meta`. `None` if it claims none, and so is legacy (ERA-03).
///
/// # Errors
/// −32602: a required field of `_meta` is missing or wrong.
#[must_use]
pub fn claimed_version<'a>(params: &'a Params<'_>) -> Option<Result<Cow<'a, str>, ErrorObject>> {
    let envelope = envelope(params);
    envelope.is_modern().then(|| {
        let claims = envelope.claims()?;
        envelope.client_capabilities()?;
        envelope.client_info()?;
        Ok(claims.protocol_version)
    })
}

/// The −32602 for a request that claims to be modern in its headers only.
#[must_use]
pub fn missing_claims(params: &Params<'_>) -> ErrorObject {
    envelope(params).missing()
}

/// The −32022 for a request that claims another revision than the modern one (ERR-08).
#[must_use]
pub fn unsupported_version(requested: &str) -> ErrorObject {
    let supported = vec![Revision::MODERN.to_string()];
    ErrorObject::new(UNSUPPORTED_PROTOCOL_VERSION, "unsupported protocol version")
        .with_data(&UnsupportedVersion::new(supported, requested))
}

fn envelope<'a>(params: &'a Params<'_>) -> RequestMeta<'a> {
    params.member("_meta").map(RequestMeta::read).unwrap_or_default()
}

/// The member of the params that a modern request repeats in the header `Mcp-Name` (HDR-05).
#[must_use]
pub fn mirrored_member(method: &str) -> Option<&'static str> {
    match Method::parse(method) {
        Some(Method::CallTool | Method::GetPrompt) => Some("name"),
        Some(Method::ReadResource) => Some("uri"),
        Some(Method::GetTask | Method::CancelTask) => Some("taskId"),
        None if method == UPDATE_TASK => Some("taskId"),
        _ => None,
    }
}

/// The value of that member: what `Mcp-Name` has to say. `None` if the method has none, or if the
/// member is absent or no string.
#[must_use]
pub fn mirrored_name<'a>(method: &str, params: &'a Params<'_>) -> Option<Cow<'a, str>> {
    params.member(mirrored_member(method)?).and_then(JsonRef::string)
}

/// The tool that a request calls, and its arguments. `None` if it calls no tool.
#[must_use]
pub fn called_tool<'a>(
    method: &str,
    params: &'a Params<'_>,
) -> Option<(Cow<'a, str>, Option<JsonRef<'a>>)> {
    (Method::parse(method) == Some(Method::CallTool)).then_some(())?;
    Some((params.member("name")?.string()?, params.member("arguments")))
}

/// The headers that a call with `arguments` has to carry, and their values (PAR-03).
#[must_use]
pub fn parameter_values<'a>(
    headers: &'a [ParameterHeader],
    arguments: Option<JsonRef<'_>>,
) -> Vec<(&'a str, String)> {
    let value = |header: &'a ParameterHeader| Some((header.name(), header.value(arguments)?));
    headers.iter().filter_map(value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rpc::{Message, Messages, read};

    fn with_params<T>(method: &str, params: &str, look: impl FnOnce(&str, &Params<'_>) -> T) -> T {
        let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#);
        match read(text.as_bytes()).unwrap() {
            Messages::One(Message::Request { method, params, .. }) => look(&method, &params),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn htp_10_the_status_of_an_error() {
        let table = [(-32601, 404), (-32602, 400), (-32020, 400), (-32021, 400), (-32022, 400)];
        for (error, status) in table {
            assert_eq!(http_status(error), status, "{error}");
        }
        // HTP-11
        assert_eq!((http_status(-32603), http_status(-32042), http_status(7)), (200, 200, 200));
    }

    #[test]
    fn hdr_05_what_a_header_repeats() {
        let name = |method: &str, params: &str| {
            with_params(method, params, |method, params| {
                mirrored_name(method, params).map(Cow::into_owned)
            })
        };
        assert_eq!(name("tools/call", r#"{"name":"a"}"#), Some("a".to_owned()));
        assert_eq!(name("resources/read", r#"{"uri":"x:\u00e9"}"#), Some("x:é".to_owned()));
        assert_eq!(name("tasks/update", r#"{"taskId":"t"}"#), Some("t".to_owned()));
        assert_eq!(name("tools/list", r#"{"name":"a"}"#), None);
        assert_eq!(name("tools/call", r#"{"name":1}"#), None);
    }

    #[test]
    fn era_03_the_claim_in_meta_makes_a_request_modern() {
        let claim = |params: &str| {
            with_params("tools/list", params, |_, params| {
                claimed_version(params).map(|claim| claim.map(Cow::into_owned).map_err(|e| e.code))
            })
        };
        assert_eq!(claim("{}"), None);
        assert_eq!(claim(r#"{"_meta":{"progressToken":1}}"#), None);
        let version = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28""#;
        assert_eq!(claim(&format!(r#"{{"_meta":{{{version}}}}}"#)), Some(Err(-32602)));
        let whole = format!(r#"{version},"io.modelcontextprotocol/clientCapabilities":{{}}"#);
        let expected = Some(Ok("2026-07-28".to_owned()));
        assert_eq!(claim(&format!(r#"{{"_meta":{{{whole}}}}}"#)), expected);
    }
}
