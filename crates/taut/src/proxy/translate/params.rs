//! The params of requests.

use super::{MODERN_KEYS, plain_meta};
use crate::json::JsonRef;
use crate::json::edit::{Edit, around, edited};
use crate::mcp::meta_keys;
use crate::rpc::Params;

/// The progress token of a request, as it was written.
pub(crate) fn progress_token<'a>(params: &'a Params<'_>) -> Option<JsonRef<'a>> {
    let meta = params.member("_meta").filter(|meta| meta.is_object())?;
    meta.member(meta_keys::PROGRESS_TOKEN)
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
    envelope: &[(&str, &str)],
    token: &str,
    added: &[(&str, &str)],
) -> String {
    let meta = params.member("_meta").filter(|meta| meta.is_object());
    let meta = edited(
        meta.unwrap_or_else(|| JsonRef::sound("{}")),
        |key, _| match key {
            _ if MODERN_KEYS.contains(&key) => Edit::Drop,
            meta_keys::PROGRESS_TOKEN => Edit::Put(token.into()),
            _ => Edit::Keep,
        },
        envelope,
    );
    let text = params.raw().map_or("{}", |raw| raw.get());
    let mut members = vec![("_meta", meta.as_str())];
    members.extend_from_slice(added);
    let change = |name: &str, _: JsonRef<'_>| match name {
        // A legacy request for a task is answered as if it had not asked for one.
        "_meta" | "task" => Edit::Drop,
        _ => Edit::Keep,
    };
    edited(JsonRef::sound(text), change, &members)
}

/// The params of a modern request for a legacy server.
pub(crate) fn legacy_params(params: &Params<'_>, token: &str) -> String {
    let text = params.raw().map_or("{}", |raw| raw.get());
    edited(
        JsonRef::sound(text),
        |name, value| match name {
            "inputResponses" | "requestState" => Edit::Drop,
            "_meta" if value.is_object() => {
                plain_meta(value, Some(token)).map_or(Edit::Drop, Edit::Put)
            }
            _ => Edit::Keep,
        },
        &[],
    )
}
