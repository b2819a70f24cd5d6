//! The answers that open a connection, read with as few demands as possible.
//!
//! Knows what a client cannot do without; must not know what an answer means for the opening. A
//! server that forgets a member, or writes one of another type that is not needed, is still a
//! server (L17).

use std::time::Duration;

use serde::de::{DeserializeOwned, Error};
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

/// An answer that opens a connection, read with as few demands as possible (L17). It must name its
/// versions.
#[derive(Debug)]
pub(crate) struct Opened<V> {
    pub(super) versions: V,
    capabilities: Option<ServerCapabilities>,
    instructions: Option<String>,
    server_info: Option<RawJson>,
    /// All of it, as it came.
    opening: RawJson,
}

/// An answer to `server/discover`.
pub(crate) type Discovered = Opened<Vec<String>>;

/// An answer to `initialize`.
pub(crate) type Initialized = Opened<String>;

impl<V: DeserializeOwned> Opened<V> {
    fn read_as(result: &RawValue, versions: &'static str) -> Result<Self, ConnectFault> {
        let answer = JsonRef::from(result);
        let read = || {
            let named = answer.member(versions).ok_or_else(|| Error::missing_field(versions))?;
            Ok(Self {
                versions: named.read()?,
                capabilities: optional(answer, "capabilities")?,
                instructions: optional(answer, "instructions")?,
                server_info: optional(answer, "serverInfo")?,
                opening: result.into(),
            })
        };
        read().map_err(|error: serde_json::Error| {
            ConnectFault::Malformed(without_place(&error.to_string()).to_owned())
        })
    }

    fn agree_on(self, revision: Revision, missing: Vec<&'static str>) -> Agreed {
        Agreed {
            revision,
            capabilities: self.capabilities.unwrap_or_default(),
            server_info: self.server_info.and_then(|info| info.parse().ok()),
            instructions: self.instructions,
            missing,
            opening: self.opening,
        }
    }
}

fn optional<T: DeserializeOwned>(
    answer: JsonRef<'_>,
    name: &str,
) -> Result<Option<T>, serde_json::Error> {
    answer.member(name).map_or(Ok(None), JsonRef::read)
}

impl Discovered {
    pub(crate) fn read(result: &RawValue) -> Result<Self, ConnectFault> {
        Self::read_as(result, "supportedVersions")
    }

    pub(super) fn agree(self, revision: Revision) -> Agreed {
        let meta = JsonRef::from(self.opening.raw()).member("_meta");
        let from_meta = meta.and_then(|meta| meta.read::<Meta>().ok()?.server_info());
        let agreed = self.agree_on(revision, Vec::new());
        Agreed { server_info: from_meta.or(agreed.server_info), ..agreed }
    }
}

impl Initialized {
    pub(crate) fn read(result: &RawValue) -> Result<Self, ConnectFault> {
        Self::read_as(result, "protocolVersion")
    }

    pub(super) fn agree(self, revision: Revision) -> Agreed {
        let missing = self.missing();
        self.agree_on(revision, missing)
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
