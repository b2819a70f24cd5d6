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
pub(super) use openings::{discovery, envelope, union, welcome};
pub(super) use params::{
    legacy_params, modern_params, progress_token, relayed_params, with_progress_token,
};
pub(super) use questions::{EmbeddedQuestion, input_requests, legacy_question, modern_question};
pub(super) use results::{
    ResultKind, adapted_result, kind_of_result, legacy_result, modern_result,
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

/// `_meta` without the keys of the modern revision; `None` if nothing is left of it.
fn plain_meta(meta: JsonRef<'_>, token: Option<&str>) -> Option<String> {
    let text = edited(
        meta,
        |key, _| match key {
            _ if MODERN_KEYS.contains(&key) => Edit::Drop,
            meta_keys::PROGRESS_TOKEN => token.map_or(Edit::Drop, |token| Edit::Put(token.into())),
            _ => Edit::Keep,
        },
        &[],
    );
    (text != "{}").then_some(text)
}
