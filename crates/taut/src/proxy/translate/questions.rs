//! What servers ask: a request of its own in the legacy revisions, a part of a result in the modern one.

use super::without;
use crate::json::{JsonRef, RawJson};
use crate::mcp::{ClientCapabilities, Method, Revision};

/// One question of a modern server, with the key that its answer needs.
#[derive(Clone, Debug)]
pub(crate) struct EmbeddedQuestion {
    pub(crate) key: String,
    pub(crate) method: Method,
    pub(crate) params: RawJson,
}

/// The questions of an `input_required` result. A question that is not understood is an error, in words.
pub(crate) fn input_requests(result: JsonRef<'_>) -> Result<Vec<EmbeddedQuestion>, String> {
    let Some(requests) = result.member("inputRequests") else { return Ok(Vec::new()) };
    let members = requests.members().ok_or("inputRequests is not an object")?;
    members
        .map(|(key, entry)| {
            let name = entry.member("method").and_then(JsonRef::string).unwrap_or_default();
            let method = Method::parse(&name).filter(|method| method.is_embedded_in_modern());
            let method = method.ok_or_else(|| format!("unknown method {name:?}"))?;
            let params = entry.member("params").unwrap_or_else(|| JsonRef::sound("{}"));
            Ok(EmbeddedQuestion { key: key.into_owned(), method, params: params.into() })
        })
        .collect()
}

/// The params of a modern question for a legacy client. `id` names a visit to a page, where the revision
/// wants that.
pub(crate) fn legacy_question(request: &EmbeddedQuestion, revision: Revision, id: &str) -> String {
    let params = JsonRef::from(request.params.raw());
    let is_url = params.member("mode").and_then(JsonRef::string).as_deref() == Some("url");
    let id = format!("\"{id}\"");
    let mut added = Vec::new();
    if is_url && revision.has_url_elicitation() && params.member("elicitationId").is_none() {
        added.push(("elicitationId", id.as_str()));
    }
    without(params, &[], &added)
}

/// The question of a legacy server as an entry of `inputRequests`.
pub(crate) fn modern_question(method: Method, params: Option<JsonRef<'_>>) -> String {
    let params = params.unwrap_or_else(|| JsonRef::sound("{}"));
    // A modern client names no visits, and reports no progress.
    let params = without(params, &["elicitationId", "task"], &[]);
    format!("{{\"method\":\"{}\",\"params\":{params}}}", method.as_str())
}

impl EmbeddedQuestion {
    /// Whether a client with these capabilities can be asked.
    pub(crate) fn fits(
        method: Method,
        params: Option<JsonRef<'_>>,
        capabilities: &ClientCapabilities,
    ) -> bool {
        let mode = params.and_then(|params| params.member("mode")).and_then(JsonRef::string);
        match method {
            Method::ListRoots => capabilities.roots.is_some(),
            Method::CreateMessage => capabilities.sampling.as_ref().is_some_and(|sampling| {
                let tools = params.and_then(|params| params.member("tools")).is_some();
                !tools || sampling.tools.is_some()
            }),
            Method::Elicit => {
                capabilities.elicitation.as_ref().is_some_and(|elicitation| match mode.as_deref() {
                    Some("url") => elicitation.supports_url(),
                    _ => elicitation.supports_form(),
                })
            }
            _ => false,
        }
    }
}
