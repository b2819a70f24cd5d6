//! A request that is not served: its status, and a body that says what to change.
//!
//! Knows statuses and JSON-RPC errors; must not know why something is refused.

use std::borrow::Cow;

use http::header::{ALLOW, CONNECTION, CONTENT_TYPE, HeaderName, RETRY_AFTER};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use serde::Serialize;
use taut::rpc::{ErrorObject, Id};

use super::body::Body;
use crate::headers::JSON;

/// Why a request is not served.
#[derive(Debug)]
pub(super) struct Refusal(Box<Reason>);

#[derive(Debug)]
struct Reason {
    status: StatusCode,
    error: ErrorObject,
    /// The request's id, if it was read.
    id: Option<Id>,
    /// Whether a request that is not known is named `null`, as JSON-RPC demands and MCP does not (HTP-07).
    null: bool,
    headers: HeaderMap,
}

/// The methods of the endpoint, for `Allow` (HTP-13).
pub(super) const METHODS: &str = "POST, GET, DELETE, OPTIONS";

impl Refusal {
    pub(super) fn new(status: StatusCode, message: impl Into<Cow<'static, str>>) -> Self {
        Self::with_error(status, ErrorObject::invalid_request(message))
    }

    /// A refusal whose body is this error.
    pub(super) fn with_error(status: StatusCode, error: ErrorObject) -> Self {
        Self(Box::new(Reason { status, error, id: None, null: false, headers: HeaderMap::new() }))
    }

    pub(super) fn bad_request(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    /// HTP-13
    pub(super) fn method_not_allowed(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::METHOD_NOT_ALLOWED, message)
            .header(ALLOW, HeaderValue::from_static(METHODS))
    }

    pub(super) fn busy(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, message)
            .header(RETRY_AFTER, HeaderValue::from_static("10"))
    }

    pub(super) fn of(mut self, id: Option<&Id>) -> Self {
        self.0.id = id.cloned();
        self
    }

    /// Names a request that is not known `null`, if `null` says so.
    pub(super) fn with_null_id(mut self, null: bool) -> Self {
        self.0.null = null;
        self
    }

    pub(super) fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.0.headers.insert(name, value);
        self
    }

    /// The connection cannot be used again: the request was not read to its end.
    pub(super) fn closing(self) -> Self {
        self.header(CONNECTION, HeaderValue::from_static("close"))
    }

    pub(super) fn into_response(self) -> Response<Body> {
        let Reason { status, error, id, null, headers } = *self.0;
        tracing::debug!(status = status.as_u16(), %error, "an HTTP request is refused");
        let mut response = json(status, error_message(id.as_ref(), &error, null));
        response.headers_mut().extend(headers);
        response
    }
}

/// A response with one JSON value.
pub(super) fn json(status: StatusCode, body: Vec<u8>) -> Response<Body> {
    let mut response = Response::new(Body::full(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
    response
}

/// A response without a body.
pub(super) fn empty(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}

/// An error response as a message. If the id is not known, it is `null` or left out (HTP-07), as `null` says.
pub(super) fn error_message(id: Option<&Id>, error: &ErrorObject, null: bool) -> Vec<u8> {
    #[derive(Serialize)]
    struct Message<'a> {
        jsonrpc: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<Option<&'a Id>>,
        error: &'a ErrorObject,
    }
    let id = (null || id.is_some()).then_some(id);
    // Nothing in it can fail to be written.
    serde_json::to_vec(&Message { jsonrpc: "2.0", id, error }).unwrap_or_default()
}
