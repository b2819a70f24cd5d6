//! Streams of events: read, and taken up again where the protocol has that.
//!
//! Knows `Last-Event-ID`, `retry` and bounded tries; must not know what the messages say. SSE-06, SSE-08,
//! SSE-12, SSE-13, GET-01, GET-02, HCN-05, HCN-06.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::Method;
use hyper::body::Incoming;
use hyper::header::{ACCEPT, HeaderValue};
use serde::Deserialize;
use serde_json::json;
use taut::rpc::Id;
use taut::types::meta_keys;

use super::Carrier;
use super::exchange::{Asked, no_answer};
use crate::client::error::{HttpError, causes};
use crate::client::http::{Ask, media_type, value};
use crate::client::message::{Message, method};
use crate::client::sse::{SseEvent, SseReader};
use crate::headers::{self, EVENT_STREAM as EVENTS};

/// A server may ask for any pause; a client that waits longer is as good as gone.
const LONGEST_PAUSE: Duration = Duration::from_secs(300);

/// A stream that lasted so long was no failure, whatever ended it.
const LASTED: Duration = Duration::from_secs(5);

/// How long the end of a stream is waited for after the answer has come, so that the connection can be
/// used again.
const END: Duration = Duration::from_millis(250);

/// The events of one body.
pub(super) struct Events {
    body: Incoming,
    reader: SseReader,
}

impl Events {
    pub(super) fn new(body: Incoming, limit: usize) -> Self {
        Self { body, reader: SseReader::new(limit) }
    }

    /// The next event; `None` at the end. It may take as long as it likes.
    pub(super) async fn next(&mut self) -> Result<Option<SseEvent>, HttpError> {
        loop {
            if let Some(event) = self.reader.poll_event() {
                return Ok(Some(event));
            }
            let Some(frame) = self.body.frame().await else { return Ok(None) };
            let frame = frame.map_err(|error| HttpError::Broken { why: causes(&error) })?;
            if let Some(data) = frame.data_ref() {
                let read = self.reader.handle_bytes(data);
                let what = "an event of the server's stream";
                read.map_err(|error| HttpError::TooLong { what, limit: error.limit })?;
            }
        }
    }
}

/// Where a stream stands.
struct Place {
    last: Option<String>,
    pause: Duration,
    /// How often in a row it was taken up again without anything new.
    failures: u32,
}

impl Place {
    fn new(pause: Duration) -> Self {
        Self { last: None, pause, failures: 0 }
    }

    /// Keeps what an event says about the stream, and returns its message.
    fn take(&mut self, event: SseEvent) -> Option<Vec<u8>> {
        self.failures = 0;
        if let Some(id) = event.id {
            self.last = Some(id).filter(|id| !id.is_empty());
        }
        if let Some(pause) = event.retry {
            self.pause = Duration::from_millis(pause).min(LONGEST_PAUSE);
        }
        let is_message = matches!(event.kind.as_str(), "" | "message");
        Some(event.data).filter(|data| is_message && !data.is_empty())
    }

    /// Waits before the next try; `false` if there were enough. SSE-06.
    async fn wait(&mut self, tries: u32) -> bool {
        if self.failures >= tries {
            return false;
        }
        let doubled = self.pause.saturating_mul(1 << self.failures.min(16));
        self.failures += 1;
        tokio::time::sleep(doubled.min(LONGEST_PAUSE)).await;
        true
    }
}

impl Carrier {
    /// Follows the stream that answers a request until the answer has come.
    pub(super) async fn follow(
        &self,
        asked: &Asked,
        ask: &Ask,
        body: Incoming,
    ) -> Result<(), HttpError> {
        let limit = self.http.options.max_message_bytes;
        let mut events = Events::new(body, limit);
        let mut place = Place::new(self.http.options.reconnect_delay);
        loop {
            let broken = match self.read_stream(asked, &mut events, &mut place).await {
                Ok(true) => return Ok(()),
                Ok(false) => no_answer("the server's stream ended before the answer came"),
                Err(error @ HttpError::Broken { .. }) => error,
                Err(error) => return Err(error),
            };
            let again = match (asked.is_modern(), &place.last) {
                (true, _) if asked.method == method::LISTEN => {
                    self.listen_again(asked, ask, &mut place).await
                }
                // SSE-13: lost, and not asked again by itself, because it may have been done.
                (true, _) | (false, None) => None,
                (false, Some(_)) => self.resume(&mut place).await,
            };
            match again {
                Some(body) => events = Events::new(body, limit),
                None => return Err(broken),
            }
        }
    }

    /// Passes on what comes. Says whether the answer was among it; `false` if the stream ended before.
    async fn read_stream(
        &self,
        asked: &Asked,
        events: &mut Events,
        place: &mut Place,
    ) -> Result<bool, HttpError> {
        while let Some(event) = events.next().await? {
            let Some(message) = place.take(event) else { continue };
            if self.deliver(Some(asked), message).await? {
                // SSE-01: the server closes it now. A connection that was read to its end can be used
                // for the next request.
                let _ = tokio::time::timeout(END, events.next()).await;
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// SSE-08: takes a stream up again behind the last event that came.
    async fn resume(&self, place: &mut Place) -> Option<Incoming> {
        while place.wait(self.http.options.reconnects).await {
            let response = match self.send(&self.get(place.last.as_deref()).ok()?).await {
                Ok(response) => response,
                Err(HttpError::Broken { .. } | HttpError::Unreachable { .. }) => continue,
                Err(_) => return None,
            };
            match response.status().as_u16() {
                200 if media_type(response.headers()) == EVENTS => {
                    return Some(response.into_body());
                }
                409 | 429 | 500.. => {}
                _ => return None,
            }
        }
        None
    }

    /// HCN-06: listens again after a loss, and tells the client that anything may have changed.
    async fn listen_again(&self, asked: &Asked, ask: &Ask, place: &mut Place) -> Option<Incoming> {
        while place.wait(self.http.options.reconnects).await {
            let response = match self.send(ask).await {
                Ok(response) => response,
                Err(HttpError::Broken { .. } | HttpError::Unreachable { .. }) => continue,
                Err(_) => return None,
            };
            if response.status().as_u16() == 200 && media_type(response.headers()) == EVENTS {
                self.tell_of_missed_changes(asked).await;
                return Some(response.into_body());
            }
            if !matches!(response.status().as_u16(), 429 | 500..) {
                return None;
            }
        }
        None
    }

    async fn tell_of_missed_changes(&self, asked: &Asked) {
        #[derive(Deserialize)]
        struct Listen {
            params: Wanted,
        }
        #[derive(Deserialize)]
        struct Wanted {
            notifications: taut::types::SubscriptionFilter,
        }
        let Ok(Listen { params }) = serde_json::from_slice::<Listen>(&asked.json) else { return };
        let wanted = params.notifications;
        let lists = [
            ("tools", wanted.tools_list_changed),
            ("prompts", wanted.prompts_list_changed),
            ("resources", wanted.resources_list_changed),
        ];
        let meta = json!({ meta_keys::SUBSCRIPTION_ID: asked.id });
        for (list, _) in lists.iter().filter(|(_, wanted)| *wanted == Some(true)) {
            let method = format!("notifications/{list}/list_changed");
            let json = json!({ "jsonrpc": "2.0", "method": method, "params": { "_meta": meta } });
            let _ = self.sender.send(json.to_string().into_bytes()).await;
        }
        for uri in wanted.resource_subscriptions.unwrap_or_default() {
            let method = "notifications/resources/updated";
            let params = json!({ "uri": uri, "_meta": meta });
            let json = json!({ "jsonrpc": "2.0", "method": method, "params": params });
            let _ = self.sender.send(json.to_string().into_bytes()).await;
        }
    }

    fn get(&self, last: Option<&str>) -> Result<Ask, HttpError> {
        let (mut headers, _) = self.session_headers();
        headers.insert(ACCEPT, HeaderValue::from_static(EVENTS));
        if let Some(last) = last {
            headers.insert(headers::LAST_EVENT_ID, value(last)?);
        }
        Ok(Ask { method: Method::GET, url: self.url.clone(), headers, body: Bytes::new() })
    }

    /// Follows the stream of messages that belong to no request, for as long as the session lasts.
    pub(super) async fn follow_server(self: Arc<Self>) {
        let limit = self.http.options.max_message_bytes;
        let mut place = Place::new(self.http.options.reconnect_delay);
        loop {
            let Ok(ask) = self.get(place.last.as_deref()) else { return };
            let begun = Instant::now();
            match self.send_quietly(&ask).await {
                Ok(response) => match response.status().as_u16() {
                    200 if media_type(response.headers()) == EVENTS => {
                        let mut events = Events::new(response.into_body(), limit);
                        if let Err(error) = self.read_server(&mut events, &mut place).await {
                            tracing::debug!(%error, "the server's own stream broke");
                        }
                    }
                    409 | 429 | 500.. => {}
                    // GET-02, and field observation 2: whatever else it says, it has none.
                    status => {
                        tracing::debug!(status, "the server has no stream of its own");
                        return;
                    }
                },
                // A token that is over is replaced by the next request.
                Err(
                    HttpError::Broken { .. }
                    | HttpError::Unreachable { .. }
                    | HttpError::Unauthorized { .. },
                ) => {}
                Err(error) => {
                    tracing::debug!(%error, "the server has no stream of its own");
                    return;
                }
            }
            if begun.elapsed() >= LASTED {
                place.failures = 0;
            }
            if !place.wait(self.http.options.reconnects).await {
                tracing::warn!("the server's own stream broke too often; going on without it");
                return;
            }
        }
    }

    async fn read_server(&self, events: &mut Events, place: &mut Place) -> Result<(), HttpError> {
        while let Some(event) = events.next().await? {
            if let Some(message) = place.take(event) {
                self.deliver(None, message).await?;
            }
        }
        Ok(())
    }

    /// The message on a stream that answers the request with this id.
    pub(super) async fn first_answer(&self, id: &Id, body: Incoming) -> Result<Vec<u8>, HttpError> {
        let mut events = Events::new(body, self.http.options.max_message_bytes);
        let mut place = Place::new(Duration::ZERO);
        let after = self.http.options.body_timeout;
        let found = tokio::time::timeout(after, async {
            while let Some(event) = events.next().await? {
                let Some(json) = place.take(event) else { continue };
                let message = Message::read(&json);
                if message.is_some_and(|m| m.is_response() && m.id().as_ref() == Some(id)) {
                    return Ok(json);
                }
            }
            Err(no_answer("the server's stream ended before the answer came"))
        });
        found.await.unwrap_or(Err(HttpError::TimedOut { what: "the answer", after }))
    }
}
