//! What all connections of a server share: what it offers, its settings, its state.

use std::sync::{Arc, Mutex, Weak};

use tokio::sync::watch;

use super::Call;
use crate::driver::AnswerFuture;
use crate::json::JsonRef;
use crate::lock::lock;
use crate::mcp::{Implementation, RawJson, Revision, WriteJson};
use crate::server::catalog::Catalog;
use crate::server::pool::Pool;
use crate::server::settings::Settings;
use crate::server::subscriber::{Subscriber, Update};

/// A handler that takes raw arguments, if there are any, and returns a finished answer.
pub(crate) type Handler<S> =
    Arc<dyn Fn(Option<JsonRef<'_>>, Call<S>) -> AnswerFuture + Send + Sync>;

/// What all connections of a server share.
pub(crate) struct ServerShared<S> {
    pub(crate) info: Implementation,
    /// The same as JSON, for the `_meta` of results.
    pub(crate) info_json: RawJson,
    pub(crate) state: S,
    pub(crate) settings: Settings,
    /// Sessions keep the one that they last looked at, and learn here that there is another.
    pub(crate) catalog: watch::Sender<Arc<Catalog<Handler<S>>>>,
    /// Threads for blocking tools.
    pub(crate) pool: Pool,
    /// The connections that may want to hear of changes.
    subscribers: Mutex<Vec<Weak<Subscriber>>>,
}

impl<S> ServerShared<S> {
    pub(crate) fn new(
        info: Implementation,
        state: S,
        settings: Settings,
        catalog: Catalog<Handler<S>>,
    ) -> Self {
        let info_json = RawJson::of(&info.at(Revision::MODERN));
        Self {
            info_json: info_json.unwrap_or_else(|_| serde_json::Value::Null.into()),
            info,
            state,
            pool: Pool::new(settings.blocking_threads, settings.blocking_queue),
            settings,
            catalog: watch::Sender::new(Arc::new(catalog)),
            subscribers: Mutex::default(),
        }
    }

    /// Adds a connection that may want to hear of changes.
    pub(crate) fn add_subscriber(&self, subscriber: &Arc<Subscriber>) {
        let mut all = lock(&self.subscribers);
        // Before the list grows, connections that have gone leave it, so that it is never much longer
        // than the most connections there were at once.
        if all.len() == all.capacity() {
            all.retain(|subscriber| subscriber.strong_count() > 0);
        }
        all.push(Arc::downgrade(subscriber));
    }

    /// Tells every connection of an update, if they were promised to be told (TOL-24).
    pub(crate) fn tell(&self, update: &Update) {
        if !self.settings.changes {
            return;
        }
        let subscribers: Vec<_> = {
            let mut all = lock(&self.subscribers);
            all.retain(|subscriber| subscriber.strong_count() > 0);
            all.iter().filter_map(Weak::upgrade).collect()
        };
        subscribers.iter().for_each(|subscriber| subscriber.updated(update));
    }

    /// Changes what is offered, and tells every connection if `change` says that it changed anything.
    pub(crate) fn change(
        &self,
        update: &Update,
        change: impl FnOnce(&mut Catalog<Handler<S>>) -> bool,
    ) -> bool {
        let changed = self.catalog.send_if_modified(|current| {
            let mut next = Catalog::clone(current);
            let changed = change(&mut next);
            if changed {
                *current = Arc::new(next);
            }
            changed
        });
        if changed {
            self.tell(update);
        }
        changed
    }
}

#[cfg(test)]
mod tests {
    use crate::server::Server;

    /// A server that never changes forgets its connections all the same.
    #[tokio::test]
    async fn connections_that_have_gone_leave_the_list() {
        let server = Server::builder("many", "1").build().unwrap();
        for _ in 0..1000 {
            server.serve(tokio::io::empty(), tokio::io::sink()).await;
        }
        assert!(server.shared.subscribers.lock().unwrap().len() <= 8);
    }
}
