//! One message → its JSON, appended to a buffer. The mirror of `message.rs`.

use super::error::ErrorObject;
use super::id::Id;
use crate::json::{JsonRef, quote};

pub(crate) fn request(out: &mut Vec<u8>, id: &Id, method: &str, params: Option<JsonRef<'_>>) {
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    out.extend_from_slice(id.as_bytes());
    out.extend_from_slice(b",\"method\":");
    call(out, method, params);
}

pub(crate) fn notification(out: &mut Vec<u8>, method: &str, params: Option<JsonRef<'_>>) {
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"method\":");
    call(out, method, params);
}

fn call(out: &mut Vec<u8>, method: &str, params: Option<JsonRef<'_>>) {
    quote(out, method);
    // Params are an object, an array or nothing; `null` is a way to write nothing.
    if let Some(params) = params.filter(|params| params.text() != "null") {
        out.extend_from_slice(b",\"params\":");
        out.extend_from_slice(params.text().as_bytes());
    }
    out.push(b'}');
}

/// What stands before and behind the result in the answer to `id`.
pub(crate) fn around_result(id: &Id) -> ([&[u8]; 3], &'static [u8]) {
    ([b"{\"jsonrpc\":\"2.0\",\"id\":", id.as_bytes(), b",\"result\":"], b"}")
}

/// What stands for the id in an error that belongs to no readable request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum NoId {
    /// `"id":null`, as JSON-RPC has it.
    #[default]
    Null,
    /// No `id` member, as MCP has it from 2025-11-25 on (RPC-12).
    Absent,
}

pub(crate) fn error(out: &mut Vec<u8>, id: Result<&Id, NoId>, error: &ErrorObject) {
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\"");
    if id != Err(NoId::Absent) {
        out.extend_from_slice(b",\"id\":");
        out.extend_from_slice(id.map_or(&b"null"[..], Id::as_bytes));
    }
    out.extend_from_slice(b",\"error\":");
    // An error object has string keys and finite numbers only, so this cannot fail.
    if serde_json::to_writer(&mut *out, error).is_err() {
        out.extend_from_slice(b"{\"code\":-32603,\"message\":\"internal error\"}");
    }
    out.push(b'}');
}
