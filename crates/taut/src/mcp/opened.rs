//! The answers that open a connection, read with as few demands as possible.
//!
//! Knows what a client cannot do without; must not know what an answer means for the opening. A
//! server that forgets a member, or writes one of another type where nobody looks, is still a
//! server (L17).

use serde::Deserialize;
use serde_json::value::RawValue;

use super::capabilities::{Implementation, ServerCapabilities};
use super::connect::Fault;
use super::json::RawJson;
use super::meta::Meta;
use super::revision::Revision;

/// What both sides agree on.
#[derive(Clone, Debug)]
pub(crate) struct Agreed {
    pub(crate) revision: Revision,
    pub(crate) capabilities: ServerCapabilities,
    pub(crate) server_info: Option<Implementation>,
    pub(crate) instructions: Option<String>,
}

/// An answer to `server/discover`, read with as few demands as possible (L17).
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Discovered {
    pub(super) supported_versions: Vec<String>,
    #[serde(default)]
    capabilities: Option<ServerCapabilities>,
    #[serde(default)]
    instructions: Option<String>,
    #[serde(default)]
    server_info: Option<RawJson>,
    #[serde(default, rename = "_meta")]
    meta: Option<Meta>,
}

impl Discovered {
    pub(crate) fn read(result: &RawValue) -> Result<Self, Fault> {
        serde_json::from_str(result.get()).map_err(|error| Fault::Malformed(error.to_string()))
    }

    pub(super) fn agree(self, revision: Revision) -> Agreed {
        let from_meta = self.meta.as_ref().and_then(Meta::server_info);
        Agreed {
            revision,
            capabilities: self.capabilities.unwrap_or_default(),
            server_info: from_meta.or_else(|| self.server_info?.parse().ok()),
            instructions: self.instructions,
        }
    }
}

/// An answer to `initialize`, read with as few demands as possible.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Initialized {
    pub(super) protocol_version: String,
    #[serde(default)]
    capabilities: Option<ServerCapabilities>,
    #[serde(default)]
    instructions: Option<String>,
    #[serde(default)]
    server_info: Option<RawJson>,
}

impl Initialized {
    pub(crate) fn read(result: &RawValue) -> Result<Self, Fault> {
        serde_json::from_str(result.get()).map_err(|error| Fault::Malformed(error.to_string()))
    }

    pub(super) fn agree(self, revision: Revision) -> Agreed {
        Agreed {
            revision,
            capabilities: self.capabilities.unwrap_or_default(),
            server_info: self.server_info.and_then(|info| info.parse().ok()),
            instructions: self.instructions,
        }
    }
}
