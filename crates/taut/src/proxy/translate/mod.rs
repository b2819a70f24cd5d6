//! How a message of one era reads in the other. Pure: JSON text in, JSON text out.
//!
//! Knows the members that the eras name differently (`docs/eras.md` has the table); must not know
//! connections, calls or time. Every other member is copied as it was written.

mod errors;
mod openings;
mod params;
mod questions;
mod results;
#[cfg(test)]
mod tests;

pub(super) use errors::{legacy_error, modern_error};
pub(super) use openings::{completed, discovery, envelope, server_info, union, welcome};
pub(super) use params::{
    legacy_params, modern_params, object_of, progress_token, relayed_params, with_progress_token,
};
pub(super) use questions::{EmbeddedQuestion, input_requests, legacy_question, modern_question};
pub(super) use results::{
    ResultKind, adapted_result, failed_tool, kind_of_result, legacy_result, modern_result,
};

use crate::json::JsonRef;
use crate::json::edit::{Edit, edited};
use crate::mcp::meta_keys;

/// The keys of `_meta` that only the modern revision knows.
const MODERN_KEYS: [&str; 6] = [
    meta_keys::PROTOCOL_VERSION,
    meta_keys::CLIENT_CAPABILITIES,
    meta_keys::CLIENT_INFO,
    meta_keys::SERVER_INFO,
    meta_keys::LOG_LEVEL,
    meta_keys::SUBSCRIPTION_ID,
];

/// An object without the members of these names, and with those of `added`.
pub(super) fn without(object: JsonRef<'_>, names: &[&str], added: &[(&str, &str)]) -> String {
    let change = |name: &str, _: JsonRef<'_>| match names.contains(&name) {
        true => Edit::Drop,
        false => Edit::Keep,
    };
    edited(object, change, added)
}

/// An object in which the member of this name has another value. `text` is JSON.
pub(super) fn replaced(object: JsonRef<'_>, member: &str, text: &str) -> String {
    let change = |name: &str, _: JsonRef<'_>| match name == member {
        true => Edit::Put(text.to_owned()),
        false => Edit::Keep,
    };
    edited(object, change, &[])
}

/// The `_meta` of params or of a result; one that is absent, or no object, is empty.
pub(super) fn meta_of(object: JsonRef<'_>) -> JsonRef<'_> {
    let meta = object.member("_meta").filter(|meta| meta.is_object());
    meta.unwrap_or_else(|| JsonRef::sound("{}"))
}

/// `_meta` without the keys of the modern revision, with this progress token if it had one, and with `added`.
fn other_meta(meta: JsonRef<'_>, token: Option<&str>, added: &[(&str, &str)]) -> String {
    let change = |key: &str, _: JsonRef<'_>| match key {
        _ if MODERN_KEYS.contains(&key) => Edit::Drop,
        meta_keys::PROGRESS_TOKEN => token.map_or(Edit::Drop, |token| Edit::Put(token.into())),
        _ => Edit::Keep,
    };
    edited(meta, change, added)
}

/// `_meta` without the keys of the modern revision; left out if nothing is left of it.
fn plain_meta(meta: JsonRef<'_>, token: Option<&str>) -> Edit {
    match other_meta(meta, token, &[]) {
        empty if empty == "{}" => Edit::Drop,
        text => Edit::Put(text),
    }
}
