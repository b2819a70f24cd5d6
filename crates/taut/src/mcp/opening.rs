//! The messages that open a connection: `initialize` in legacy, `server/discover` in modern.
//!
//! Knows their shape; must not know the order of the handshake. LIF-02, LIF-03, DIS-02.

use super::capabilities::{ClientCapabilities, Implementation, ServerCapabilities};
use super::macros::wire_struct;
use super::meta::Meta;
use super::result::{CacheScope, ResultType, Ttl};

wire_struct! {
    /// What a client says in `initialize`.
    pub struct InitializeParams(
        /// The revision it would like; any text, because it may be newer than taut.
        needs protocol_version: String = "protocolVersion",
        /// What it can do.
        needs capabilities: ClientCapabilities = "capabilities",
        /// Who it is.
        needs client_info: Implementation = "clientInfo",
    ) {
        /// Open metadata.
        may meta: Meta = "_meta" when Meta::has_any;
    }

    /// What a server answers to `initialize`.
    pub struct InitializeResult(
        /// The revision this connection will speak.
        needs protocol_version: String = "protocolVersion",
        /// What it offers.
        needs capabilities: ServerCapabilities = "capabilities",
        /// Who it is.
        needs server_info: Implementation = "serverInfo",
    ) {
        /// How to use the server, for the model to read.
        may instructions: String = "instructions";
        /// Open metadata.
        may meta: Meta = "_meta" when Meta::has_any;
    }

    /// What a server answers to `server/discover`; who it is stands in `_meta`.
    pub struct DiscoverResult(
        /// The revisions it serves.
        needs supported_versions: Vec<String> = "supportedVersions",
        /// What it offers.
        needs capabilities: ServerCapabilities = "capabilities",
    ) {
        /// How to use the server, for the model to read.
        may instructions: String = "instructions";
        /// How long this answer may be kept.
        has ttl: Ttl = "ttlMs" since V2026_07_28;
        /// Who may be served a kept answer.
        has cache_scope: CacheScope = "cacheScope" since V2026_07_28;
        /// What kind of result this is.
        has result_type: ResultType = "resultType" since V2026_07_28;
        /// Open metadata.
        may meta: Meta = "_meta" when Meta::has_any;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::{Revision, WriteJson, meta_keys};
    use serde_json::json;

    #[test]
    fn lif_02_a_missing_field_is_named() {
        let read = serde_json::from_value::<InitializeParams>;
        let error = read(json!({ "protocolVersion": "x", "capabilities": {} })).unwrap_err();
        assert_eq!(error.to_string(), "missing field `clientInfo`");
        let info = json!({ "name": "c" });
        let error = read(json!({ "protocolVersion": "x", "capabilities": {}, "clientInfo": info }));
        assert_eq!(error.unwrap_err().to_string(), "missing field `version`");
    }

    #[test]
    fn dis_02_a_discovery_says_who_it_is_in_its_meta() {
        let info = json!({ "name": "s", "version": "1" });
        let result = DiscoverResult::new(
            [Revision::MODERN.to_string()],
            ServerCapabilities::new().tools(crate::mcp::ToolsCapability::new()),
        )
        .meta(Meta::new().with(meta_keys::SERVER_INFO, info.clone()));
        assert_eq!(
            serde_json::to_value(result.at(Revision::MODERN)).unwrap(),
            json!({
                "supportedVersions": ["2026-07-28"],
                "capabilities": { "tools": {} },
                "ttlMs": 0,
                "cacheScope": "private",
                "resultType": "complete",
                "_meta": { "io.modelcontextprotocol/serverInfo": info },
            })
        );
    }
}
