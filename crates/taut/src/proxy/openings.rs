//! How a client begins: who it says that it is, and what its handshake is answered.
//!
//! Knows both eras of openings; must not know how a connection is made.

use std::sync::Arc;

use super::state::{Back, FrontState, Identity, LegacySession};
use super::translate::{union, welcome};
use crate::json::edit::{Edit, edited};
use crate::json::{JsonBuf, JsonRef};
use crate::mcp::{Era, Implementation, Revision, meta_keys};
use crate::rpc::{NoId, Params};

/// Both sides agree: the result of `initialize`.
pub(super) fn agree(
    front: &Arc<FrontState>,
    session: &LegacySession,
    back: &Arc<Back>,
    asked: Revision,
    pinned: bool,
) -> JsonBuf {
    let agreed = &back.client.0.agreed;
    let revision = if back.is_modern() || pinned { asked } else { back.revision() };
    let _ = session.revision.set(revision);
    let no_id = if revision.has_errors_without_id() { NoId::Absent } else { NoId::Null };
    front.link.agree(no_id, revision.has_batches());
    if back.is_modern() {
        return JsonBuf::copied(&[&welcome(agreed, revision)]);
    }
    let result = JsonRef::from(agreed.opening.raw());
    if revision == back.revision() {
        return JsonBuf::copied(&[result.text()]);
    }
    JsonBuf::copied(&[&at_revision(result, revision)])
}

/// The params or the result of `initialize` with another version.
pub(super) fn at_revision(opening: JsonRef<'_>, revision: Revision) -> String {
    let change = |name: &str, _: JsonRef<'_>| match name {
        "protocolVersion" => Edit::Put(format!("\"{revision}\"")),
        _ => Edit::Keep,
    };
    edited(opening, change, &[])
}

/// Who a modern request says that it comes from. A legacy server is told that everything can be asked
/// that the proxy can pass on.
pub(super) fn identity_of(params: &Params<'_>) -> Identity {
    let info = info_of(params);
    Identity { era: Era::Modern, initialize: None, info, capabilities: union() }
}

/// The name that a modern request gives its sender.
pub(super) fn info_of(params: &Params<'_>) -> Option<Implementation> {
    let info = params.member("_meta").and_then(|meta| meta.member(meta_keys::CLIENT_INFO));
    info.and_then(|info| info.read().ok())
}
