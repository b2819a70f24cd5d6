//! What the two sides say of themselves when a connection opens.

use super::without;
use crate::json::JsonRef;
use crate::mcp::{
    Agreed, CacheScope, ClientCapabilities, DiscoverResult, ElicitationCapability, Implementation,
    InitializeResult, JsonObject, Level, Meta, RawJson, Revision, RootsCapability,
    SamplingCapability, Ttl, WriteJson, meta_keys,
};

fn json_of(value: &impl WriteJson, revision: Revision) -> String {
    // Types of the protocol always have a JSON form.
    serde_json::to_string(&value.at(revision)).unwrap_or_else(|_| "{}".to_owned())
}

/// The name and version of a server as JSON, as the modern revision has it.
pub(crate) fn server_info(agreed: &Agreed) -> String {
    json_of(&agreed.server_info.clone().unwrap_or_else(unnamed), Revision::MODERN)
}

/// The result of `initialize` for a legacy client of a modern server.
pub(crate) fn welcome(agreed: &Agreed, revision: Revision) -> String {
    let info = agreed.server_info.clone().unwrap_or_else(unnamed);
    let mut capabilities = agreed.capabilities.clone();
    capabilities.tasks = None;
    let mut result = InitializeResult::new(revision.as_str(), capabilities, info);
    result.instructions = agreed.instructions.clone();
    json_of(&result, revision)
}

/// The result of `server/discover` for a modern client of a legacy server.
pub(crate) fn discovery(agreed: &Agreed) -> String {
    let info = RawJson::from(JsonRef::sound(&server_info(agreed)));
    let mut result =
        DiscoverResult::new([Revision::MODERN.to_string()], agreed.capabilities.clone())
            .ttl(Ttl::default())
            .cache_scope(CacheScope::Private)
            .meta(Meta::new().with(meta_keys::SERVER_INFO, info));
    result.instructions = agreed.instructions.clone();
    json_of(&result, Revision::MODERN)
}

/// A client or a server that does not say who it is.
fn unnamed() -> Implementation {
    Implementation::new("unnamed", "0")
}

/// The params of `initialize` with what the client has left out and a strict server insists on (LIF-02): what it
/// can do, and who it is. Nothing if it has said both.
pub(crate) fn completed(params: JsonRef<'_>, info: Option<&Implementation>) -> Option<String> {
    let lacks = |object: JsonRef<'_>, name: &str| {
        object.member(name).is_none_or(|member| member.text() == "null")
    };
    let incomplete = |info: JsonRef<'_>| lacks(info, "name") || lacks(info, "version");
    let capable = !lacks(params, "capabilities");
    let named = !params.member("clientInfo").is_none_or(incomplete);
    let mut missing = Vec::new();
    if !capable {
        missing.push(("capabilities", "{}".to_owned()));
    }
    if !named {
        let Implementation { name, version, .. } = unnamed();
        let name = info.map_or(name, |info| info.name.clone());
        let info = Implementation::new(name, version);
        missing.push(("clientInfo", json_of(&info, Revision::LATEST_LEGACY)));
    }
    let names: Vec<&str> = missing.iter().map(|(name, _)| *name).collect();
    let added: Vec<_> = missing.iter().map(|(name, text)| (*name, text.as_str())).collect();
    (!missing.is_empty()).then(|| without(params, &names, &added))
}

/// What each request to a modern server says about a legacy client: names and JSON texts.
pub(crate) fn envelope(
    info: Option<&Implementation>,
    capabilities: &ClientCapabilities,
    level: Option<&Level>,
) -> Vec<(&'static str, String)> {
    let mut capabilities = capabilities.clone();
    capabilities.tasks = None;
    let modern = Revision::MODERN;
    let mut members = vec![
        (meta_keys::PROTOCOL_VERSION, format!("\"{modern}\"")),
        (meta_keys::CLIENT_CAPABILITIES, json_of(&capabilities, modern)),
    ];
    if let Some(info) = info {
        members.push((meta_keys::CLIENT_INFO, json_of(info, modern)));
    }
    if let Some(level) = level {
        members.push((meta_keys::LOG_LEVEL, format!("\"{level}\"")));
    }
    members
}

/// What a legacy server is told that modern clients can do. A legacy session says it once, while each
/// modern request may say something else; so all that can be passed on is declared, and a question that
/// the request at hand does not allow is refused.
///
/// Roots are declared only where the request that the connection is opened for has them (`docs/eras.md`): a server
/// that is promised roots asks for them at its start or in its first call, whatever that call is about.
pub(crate) fn union(roots: bool) -> ClientCapabilities {
    let mut all = ClientCapabilities::new();
    all.roots = roots.then(RootsCapability::new);
    all.sampling(SamplingCapability::new().tools(JsonObject::new()))
        .elicitation(ElicitationCapability::new().form(JsonObject::new()).url(JsonObject::new()))
}
