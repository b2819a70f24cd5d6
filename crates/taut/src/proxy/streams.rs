//! Streams of changes that are kept for modern clients, where the server is legacy.

use std::sync::{Arc, MutexGuard, Weak};

use super::calls::subscribe;
use super::state::{Back, LocalStream, LocalStreams};
use super::text::JsonText;
use crate::json::JsonRef;
use crate::json::edit::{Edit, edited};
use crate::lock::lock;
use crate::mcp::{Method, meta_keys};

impl LocalStream {
    fn covers(&self, method: Method, uri: Option<&str>) -> bool {
        let filter = &self.filter;
        match method {
            Method::ToolsChanged => filter.tools_list_changed == Some(true),
            Method::PromptsChanged => filter.prompts_list_changed == Some(true),
            Method::ResourcesChanged => filter.resources_list_changed == Some(true),
            // RES-10: a change inside of what is followed counts, too.
            Method::ResourceUpdated => uri.is_some_and(|uri| {
                filter.resource_subscriptions.iter().flatten().any(|followed| {
                    uri.strip_prefix(followed.as_str()).is_some_and(|rest| {
                        rest.is_empty() || followed.ends_with('/') || rest.starts_with('/')
                    })
                })
            }),
            _ => false,
        }
    }

    fn follows(&self, uri: &str) -> bool {
        self.filter.resource_subscriptions.iter().flatten().any(|followed| followed == uri)
    }
}

/// A stream; dropped, it is over, and what nobody else follows is followed no longer.
pub(super) struct LocalStreamGuard {
    stream: LocalStream,
    back: Weak<Back>,
}

impl Drop for LocalStreamGuard {
    fn drop(&mut self) {
        let Some(back) = self.back.upgrade() else { return };
        let streams = &back.state.streams;
        streams.lock().retain(|stream| {
            stream.serial != self.stream.serial || !Arc::ptr_eq(&stream.front, &self.stream.front)
        });
        for uri in self.stream.filter.resource_subscriptions.iter().flatten() {
            if !streams.follows(uri) {
                subscribe(&back, uri, false);
            }
        }
    }
}

impl LocalStreams {
    fn lock(&self) -> MutexGuard<'_, Vec<LocalStream>> {
        lock(&self.0)
    }

    pub(super) fn open(&self, stream: LocalStream, back: &Arc<Back>) -> LocalStreamGuard {
        self.lock().push(stream.clone());
        LocalStreamGuard { stream, back: Arc::downgrade(back) }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// Takes over the streams of a connection that was lost.
    pub(super) fn adopt(&self, lost: &Self) {
        let streams = std::mem::take(&mut *lost.lock());
        self.lock().extend(streams);
    }

    /// Whether any stream follows this address.
    pub(super) fn follows(&self, uri: &str) -> bool {
        self.lock().iter().any(|stream| stream.follows(uri))
    }

    /// All addresses that are followed.
    pub(super) fn followed(&self) -> Vec<String> {
        let streams = self.lock();
        let uris = streams.iter().flat_map(|stream| stream.filter.resource_subscriptions.iter());
        let mut uris: Vec<String> = uris.flatten().cloned().collect();
        uris.sort_unstable();
        uris.dedup();
        uris
    }

    /// Tells every stream that wants to hear of it.
    pub(super) fn tell(&self, method: Method, params: Option<JsonRef<'_>>) {
        let uri = params.and_then(|params| params.member("uri")).and_then(JsonRef::string);
        let streams: Vec<LocalStream> = self.lock().clone();
        for stream in streams.iter().filter(|stream| stream.covers(method, uri.as_deref())) {
            let id = stream.id.as_json();
            let tag = [(meta_keys::SUBSCRIPTION_ID, id)];
            let params = params.unwrap_or_else(|| JsonRef::sound("{}"));
            let meta = params.member("_meta").filter(|meta| meta.is_object());
            let meta =
                edited(meta.unwrap_or_else(|| JsonRef::sound("{}")), |_, _| Edit::Keep, &tag);
            let text = edited(
                params,
                |name, _| if name == "_meta" { Edit::Drop } else { Edit::Keep },
                &[("_meta", &meta)],
            );
            let link = &stream.front.link;
            let _ = link.notify_about(
                &stream.id,
                stream.serial,
                method.as_str(),
                Some(&JsonText(text)),
            );
        }
    }
}
