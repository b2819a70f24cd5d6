//! What the transport has to know of a message: its kind, its id, its method, and what it names.
//!
//! Pure. Reads the head of a message and leaves the rest as it came; must not know HTTP.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;
use taut::rpc::{ErrorObject, Id};
pub(crate) use taut::types::method_names as method;
use taut::types::{meta_keys, mirrored_member};

/// A message that leaves or arrives, as far as the transport reads it.
#[derive(Deserialize)]
pub(crate) struct Message<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(crate) method: Option<Cow<'a, str>>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(crate) result: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

/// The members of params that mean something to this transport.
#[derive(Default, Deserialize)]
pub(crate) struct Params<'a> {
    #[serde(borrow)]
    name: Option<&'a RawValue>,
    #[serde(borrow)]
    uri: Option<&'a RawValue>,
    #[serde(borrow, rename = "taskId")]
    task_id: Option<&'a RawValue>,
    #[serde(borrow, rename = "requestId")]
    request_id: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(crate) arguments: Option<&'a RawValue>,
    #[serde(borrow, rename = "_meta")]
    pub(crate) meta: Option<&'a RawValue>,
}

impl<'a> Message<'a> {
    /// Reads one message; `None` if it is no JSON object.
    pub(crate) fn read(json: &'a [u8]) -> Option<Self> {
        serde_json::from_slice(json).ok()
    }

    pub(crate) fn id(&self) -> Option<Id> {
        read_id(self.id?)
    }

    pub(crate) fn is_request(&self) -> bool {
        self.method.is_some() && self.id().is_some()
    }

    /// Whether it answers a request, with a result or an error.
    pub(crate) fn is_response(&self) -> bool {
        self.method.is_none() && (self.result.is_some() || self.error.is_some())
    }

    pub(crate) fn error(&self) -> Option<ErrorObject> {
        read_error(self.error?)
    }

    pub(crate) fn params(&self) -> Params<'a> {
        self.params.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default()
    }
}

impl Params<'_> {
    /// What the method names, for the header that repeats it (HDR-05).
    pub(crate) fn named(&self, method: &str) -> Option<String> {
        let member = match mirrored_member(method)? {
            "name" => self.name,
            "uri" => self.uri,
            "taskId" => self.task_id,
            _ => None,
        };
        serde_json::from_str(member?.get()).ok()
    }

    pub(crate) fn uri(&self) -> Option<String> {
        serde_json::from_str(self.uri?.get()).ok()
    }

    /// The request that `notifications/cancelled` withdraws.
    pub(crate) fn withdrawn(&self) -> Option<Id> {
        read_id(self.request_id?)
    }

    /// The revision that a modern request names.
    pub(crate) fn version(&self) -> Option<String> {
        let meta: serde_json::Map<String, serde_json::Value> =
            serde_json::from_str(self.meta?.get()).ok()?;
        Some(meta.get(meta_keys::PROTOCOL_VERSION)?.as_str()?.to_owned())
    }
}

fn read_id(raw: &RawValue) -> Option<Id> {
    Id::from_json(raw.get())
}

fn read_error(raw: &RawValue) -> Option<ErrorObject> {
    serde_json::from_str(raw.get()).ok()
}
