//! Who asks, as a transport has found out.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use crate::json::RawJson;

/// Who asks: a user or a program that a transport has authenticated, or nobody in particular.
///
/// Two principals are the same if their ids are. Sessions, children and questions of one are never
/// shown to another.
#[derive(Clone, Default)]
pub struct Principal {
    id: Option<Arc<str>>,
    details: Option<RawJson>,
}

impl Principal {
    /// Nobody in particular: the transport does not authenticate, as stdio.
    pub const ANONYMOUS: Self = Self { id: None, details: None };

    /// The principal with this id, for instance the subject of a token and its issuer. Never a secret:
    /// ids are shown in logs.
    pub fn new(id: impl Into<Arc<str>>) -> Self {
        Self { id: Some(id.into()), details: None }
    }

    /// Adds what else is known, for handlers: the claims of a token. Never the token itself.
    #[must_use]
    pub fn with_details(mut self, details: RawJson) -> Self {
        self.details = Some(details);
        self
    }

    /// The id; `None` for nobody in particular.
    #[must_use]
    pub fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    /// What else is known.
    #[must_use]
    pub fn details(&self) -> Option<&RawJson> {
        self.details.as_ref()
    }
}

impl PartialEq for Principal {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl Eq for Principal {}

impl Hash for Principal {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.id.hash(state);
    }
}

impl fmt::Debug for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Principal").field(&self.id).finish()
    }
}
