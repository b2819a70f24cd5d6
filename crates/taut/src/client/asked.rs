//! What a server asks of us, and what it tells.
//!
//! Knows which of it is answered, refused or left alone. Must not know how a handler for sampling,
//! elicitation or roots works: until there are handlers, what was not declared is refused at once,
//! so that nobody waits (C13). PNG-01, ERR-16, STD-22, RPC-36.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use serde_json::value::RawValue;

use super::notice::{ClientEvent, Notices};
use crate::driver::{Incoming, Service, Started};
use crate::mcp::{JsonObject, Method, Revision};
use crate::rpc::{ErrorObject, Trouble, code};

/// The serving side of a client.
pub(super) struct Asked {
    pub(super) notices: Arc<Notices>,
    /// What was agreed, once it was.
    pub(super) revision: Arc<OnceLock<Revision>>,
}

impl Service for Asked {
    fn request(&mut self, incoming: Incoming<'_>) -> Started {
        let method = incoming.method;
        let known = Method::parse(method);
        // L16: no server sends these. An answer would come back, too, and look like one to us.
        let echo = matches!(known, Some(Method::Discover | Method::Initialize));
        if echo {
            self.notices.echo.raise();
        } else if known == Some(Method::Ping) && !self.is_modern() {
            return Started::Done(Ok(Box::new(JsonObject::new())));
        } else {
            self.notices.refused(method);
        }
        // STD-22: a modern client writes no response, not even to who breaks the rules.
        if echo || self.is_modern() {
            incoming.link.lock().peer.forget(incoming.id);
        }
        Started::Done(Err(refusal(method)))
    }

    fn notification(&mut self, method: &str, params: Option<&RawValue>) {
        self.notices.tell(&ClientEvent::Notification { method, params });
    }

    fn stray_error(&mut self, error: &ErrorObject) {
        tracing::warn!(%error, "the server reports an error that belongs to no request");
        self.notices.tell(&ClientEvent::StrayError(error));
    }

    fn trouble(&mut self, trouble: &Trouble) {
        self.notices.trouble(trouble);
    }

    fn blocked(&mut self, method: &str, _: Option<&RawValue>, took: Duration) {
        tracing::warn!(method, ?took, "a hook kept the connection waiting; it must not block");
    }
}

impl Asked {
    fn is_modern(&self) -> bool {
        self.revision.get().is_some_and(|revision| revision.is_modern())
    }
}

/// ERR-16: what was not declared does not exist.
fn refusal(method: &str) -> ErrorObject {
    match Method::parse(method) {
        Some(Method::ListRoots | Method::CreateMessage | Method::Elicit) => {
            ErrorObject::new(code::METHOD_NOT_FOUND, "this client does not offer it")
                .with_data(&serde_json::json!({ "method": method }))
        }
        _ => ErrorObject::method_not_found(method),
    }
}
