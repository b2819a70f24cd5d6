//! What all connections of a proxy share: its slots, and how many connections to the server there are.

use std::sync::Arc;

use super::connector::ProxyEvent;
use super::state::{Counted, ProxyShared};

impl Drop for Counted {
    fn drop(&mut self) {
        if let Some(shared) = self.0.upgrade() {
            shared.open.send_modify(|open| *open -= 1);
        }
    }
}

impl ProxyShared {
    pub(super) fn count_back(self: &Arc<Self>) -> Counted {
        self.open.send_modify(|open| *open += 1);
        Counted(Arc::downgrade(self))
    }

    pub(super) fn tell(&self, event: &ProxyEvent) {
        match event {
            ProxyEvent::Failed { .. } | ProxyEvent::Lost { .. } => {
                tracing::warn!(%event, "proxy");
            }
            _ => tracing::debug!(%event, "proxy"),
        }
        if let Some(hook) = &self.settings.on_event {
            hook(event);
        }
    }
}
