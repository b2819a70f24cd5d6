//! Streams of changes that are kept for modern clients, where the server is legacy.

use std::sync::{Arc, Mutex, MutexGuard};

use super::followed::Followed;
use super::state::{Back, LocalStream, LocalStreams, LocalStreamsState};
use super::translate::{meta_of, without};
use crate::driver::Flag;
use crate::json::JsonRef;
use crate::lock::lock;
use crate::mcp::{Method, meta_keys};
use crate::rpc::ErrorObject;

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
}

/// A stream; dropped, it is over, and what nobody else follows is followed no longer.
pub(super) struct LocalStreamGuard {
    streams: Arc<LocalStreams>,
    followed: Vec<String>,
    stream: Option<Arc<LocalStream>>,
}

impl LocalStreamGuard {
    /// Follows an address. Returns whether the server tells of its changes.
    pub(super) async fn follow(
        &mut self,
        back: &Arc<Back>,
        uri: &str,
    ) -> Result<bool, ErrorObject> {
        let first = self.streams.lock().followed.add(uri)?;
        // Noted before the server is asked: who drops this meanwhile leaves nothing behind.
        self.followed.push(uri.to_owned());
        if !first || back.subscribed(uri).await {
            return Ok(true);
        }
        self.followed.pop();
        self.streams.lock().followed.remove(uri);
        Ok(false)
    }

    /// Tells the stream of changes from now on. Returns a flag that is raised when there will be none any more.
    pub(super) fn open(&mut self, stream: LocalStream) -> Flag {
        let stream = Arc::new(stream);
        self.stream = Some(stream.clone());
        let mut state = self.streams.lock();
        state.open.push(stream);
        state.given_up.clone()
    }
}

impl Drop for LocalStreamGuard {
    fn drop(&mut self) {
        let mut state = self.streams.lock();
        if let Some(own) = &self.stream {
            state.open.retain(|stream| !Arc::ptr_eq(stream, own));
        }
        self.followed.retain(|uri| state.followed.remove(uri));
        let back = state.back.upgrade();
        drop(state);
        if let Some(back) = back {
            self.followed.iter().for_each(|uri| back.subscribe(uri, false));
        }
    }
}

impl LocalStreams {
    /// No stream is open yet. All streams together may follow addresses of `max_followed` bytes.
    pub(super) fn new(max_followed: usize) -> Arc<Self> {
        let followed = Followed::new(max_followed);
        Arc::new(Self(Mutex::new(LocalStreamsState { followed, ..Default::default() })))
    }

    fn lock(&self) -> MutexGuard<'_, LocalStreamsState> {
        lock(&self.0)
    }

    /// A stream that follows nothing yet.
    pub(super) fn begin(self: &Arc<Self>) -> LocalStreamGuard {
        LocalStreamGuard { streams: self.clone(), followed: Vec::new(), stream: None }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lock().open.is_empty()
    }

    /// There will be no further connection: the streams that are open end.
    pub(super) fn give_up(&self) {
        let given_up = std::mem::take(&mut self.lock().given_up);
        given_up.raise();
    }

    /// Uses this connection from now on, and subscribes it to all that is followed.
    pub(super) fn attach(&self, back: &Arc<Back>) {
        let mut state = self.lock();
        state.back = Arc::downgrade(back);
        let followed = state.followed.all();
        drop(state);
        followed.iter().for_each(|uri| back.subscribe(uri, true));
    }

    /// Tells every stream that wants to hear of it.
    pub(super) fn tell(&self, method: Method, params: Option<JsonRef<'_>>) {
        let params = params.unwrap_or_else(|| JsonRef::sound("{}"));
        let uri = params.member("uri").and_then(JsonRef::string);
        let streams = self.lock().open.clone();
        for stream in streams.iter().filter(|stream| stream.covers(method, uri.as_deref())) {
            let tag = [(meta_keys::SUBSCRIPTION_ID, stream.request.id.as_json())];
            let meta = without(meta_of(params), &[], &tag);
            stream.request.tell(method.as_str(), without(params, &["_meta"], &[("_meta", &meta)]));
        }
    }
}
