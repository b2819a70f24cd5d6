//! The answers that open a connection, read with as few demands as possible.
//!
//! Knows what a client cannot do without; must not know what an answer means for the opening. A
//! server that forgets a member, or writes one of another type that is not needed, is still a
//! server (L17).

use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::capabilities::{Implementation, ServerCapabilities};
use super::meta::Meta;
use super::revision::Revision;
use crate::json::{JsonRef, RawJson};
use crate::rpc::{ErrorObject, without_place};

/// Why there is no agreement.
#[derive(Clone, Debug)]
pub(crate) enum ConnectFault {
    Exited,
    Silent {
        after: Duration,
    },
    Echo,
    Refused(ErrorObject),
    Malformed(String),
    /// The handshake's answer names a version that we do not speak, or not the pinned one.
    Version(String),
    /// Nothing that it speaks is spoken here.
    NoCommonVersion(Vec<String>),
}

/// What both sides agree on.
#[derive(Clone, Debug)]
pub(crate) struct Agreed {
    pub(crate) revision: Revision,
    pub(crate) capabilities: ServerCapabilities,
    pub(crate) server_info: Option<Implementation>,
    pub(crate) instructions: Option<String>,
    /// What the answer should have had, and did not (LIF-03).
    pub(crate) missing: Vec<&'static str>,
    /// The result that was agreed on, as it came, for a proxy.
    #[cfg_attr(not(feature = "server"), allow(dead_code, reason = "only a proxy passes it on"))]
    pub(crate) opening: RawJson,
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
    /// All of it, as it came.
    #[serde(skip)]
    opening: Option<RawJson>,
}

impl Discovered {
    pub(crate) fn read(result: &RawValue) -> Result<Self, ConnectFault> {
        let mut read: Self =
            serde_json::from_str(result.get()).map_err(|error| malformed(&error))?;
        read.opening = Some(result.into());
        Ok(read)
    }

    pub(super) fn agree(self, revision: Revision) -> Agreed {
        let from_meta = self.meta.as_ref().and_then(Meta::server_info);
        Agreed {
            revision,
            capabilities: self.capabilities.unwrap_or_default(),
            server_info: from_meta.or_else(|| self.server_info?.parse().ok()),
            instructions: self.instructions,
            missing: Vec::new(),
            opening: self.opening.unwrap_or_else(|| serde_json::Value::Null.into()),
        }
    }
}

fn malformed(error: &serde_json::Error) -> ConnectFault {
    ConnectFault::Malformed(without_place(&error.to_string()).to_owned())
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
    /// All of it, as it came.
    #[serde(skip)]
    opening: Option<RawJson>,
}

impl Initialized {
    pub(crate) fn read(result: &RawValue) -> Result<Self, ConnectFault> {
        let mut read: Self =
            serde_json::from_str(result.get()).map_err(|error| malformed(&error))?;
        read.opening = Some(result.into());
        Ok(read)
    }

    pub(super) fn agree(self, revision: Revision) -> Agreed {
        let missing = self.missing();
        Agreed {
            revision,
            capabilities: self.capabilities.unwrap_or_default(),
            server_info: self.server_info.and_then(|info| info.parse().ok()),
            instructions: self.instructions,
            missing,
            opening: self.opening.unwrap_or_else(|| serde_json::Value::Null.into()),
        }
    }

    /// LIF-03: what others cannot do without.
    fn missing(&self) -> Vec<&'static str> {
        let mut missing = Vec::new();
        if self.capabilities.is_none() {
            missing.push("capabilities");
        }
        match &self.server_info {
            None => missing.push("serverInfo"),
            Some(info) => {
                let info = JsonRef::from(info.raw());
                let is_text =
                    |name| info.member(name).is_some_and(|value| value.text().starts_with('"'));
                missing.extend((!is_text("name")).then_some("serverInfo.name"));
                missing.extend((!is_text("version")).then_some("serverInfo.version"));
            }
        }
        missing
    }
}
