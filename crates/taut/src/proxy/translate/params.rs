//! The params of requests.

use super::{meta_of, other_meta, plain_meta, without};
use crate::json::JsonRef;
use crate::json::edit::{Edit, around, edited};
use crate::mcp::meta_keys;
use crate::rpc::Params;

/// Params as an object; those that are absent are empty.
pub(crate) fn object_of<'a>(params: &'a Params<'_>) -> JsonRef<'a> {
    params.raw().map_or_else(|| JsonRef::sound("{}"), JsonRef::from)
}

/// The progress token of a request, as it was written.
pub(crate) fn progress_token<'a>(params: &'a Params<'_>) -> Option<JsonRef<'a>> {
    params.member("_meta").filter(|meta| meta.is_object())?.member(meta_keys::PROGRESS_TOKEN)
}

/// The params of a request that is relayed in its own era: its token, if it has one, becomes `token`.
/// Three pieces of text, so that nothing has to be copied.
pub(crate) fn relayed_params<'a>(params: &'a Params<'_>, token: &'a str) -> Option<[&'a str; 3]> {
    Some(with_progress_token(params.raw()?.get(), progress_token(params), token))
}

/// The same, where the token in the text is known already.
pub(crate) fn with_progress_token<'a>(
    params: &'a str,
    written: Option<JsonRef<'a>>,
    token: &'a str,
) -> [&'a str; 3] {
    match written {
        Some(written) => around(params, written.text(), token),
        None => [params, "", ""],
    }
}

/// The params of a legacy request for a modern server. `envelope` is what each modern request says about
/// its sender: names and JSON texts for `_meta`.
pub(crate) fn modern_params(
    params: &Params<'_>,
    envelope: &[(&'static str, String)],
    token: &str,
    added: &[(&str, &str)],
) -> String {
    let params = object_of(params);
    let envelope: Vec<(&str, &str)> = envelope.iter().map(|(key, text)| (*key, &**text)).collect();
    let meta = other_meta(meta_of(params), Some(token), &envelope);
    let mut members = vec![("_meta", meta.as_str())];
    members.extend_from_slice(added);
    // A legacy request for a task is answered as if it had not asked for one.
    without(params, &["_meta", "task"], &members)
}

/// The params of a modern request for a legacy server.
pub(crate) fn legacy_params(params: &Params<'_>, token: &str) -> String {
    let change = |name: &str, value: JsonRef<'_>| match name {
        "inputResponses" | "requestState" => Edit::Drop,
        "_meta" if value.is_object() => plain_meta(value, Some(token)),
        _ => Edit::Keep,
    };
    edited(object_of(params), change, &[])
}
