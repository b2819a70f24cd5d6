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

/// No server gets a shorter pause than this by asking for one, so that none can make us hammer it.
const SHORTEST_PAUSE: Duration = Duration::from_millis(200);

/// A server that asks for such a pause or a longer one, and then ends its stream, wants to be polled (2025-11-25):
/// that is no failure, and may go on for as long as the request.
const POLLED: Duration = Duration::from_millis(500);

/// Where a stream stands.
struct Place {
    last: Option<String>,
    /// The pause that holds unless the server asks for another.
    delay: Duration,
    /// The one that the server has asked for.
    retry: Option<Duration>,
    /// Whether it has asked on the connection that has just ended.
    asked: bool,
    /// How often in a row it was taken up again without a message.
    failures: u32,
    begun: Instant,
}

impl Place {
    fn new(delay: Duration) -> Self {
        let begun = Instant::now();
        Self { last: None, delay, retry: None, asked: false, failures: 0, begun }
    }

    /// Keeps what an event says about the stream, and returns its message.
    fn take(&mut self, event: SseEvent) -> Option<Vec<u8>> {
        if let Some(id) = event.id {
            self.last = Some(id).filter(|id| !id.is_empty());
        }
        if let Some(retry) = event.retry {
            self.retry = Some(Duration::from_millis(retry).min(LONGEST_PAUSE));
            self.asked = true;
        }
        let is_message = matches!(event.kind.as_str(), "" | "message");
        Some(event.data).filter(|data| is_message && !data.is_empty())
    }

    /// A message has come. Nothing else resets the failures: an event that says nothing costs a server nothing.
    fn heard(&mut self) {
        self.failures = 0;
    }

    /// A connection begins.
    fn begins(&mut self) {
        (self.begun, self.asked) = (Instant::now(), false);
    }

    /// The connection has ended; `broken` unless the server has ended it properly.
    fn ended(&mut self, broken: bool) {
        self.asked &= !broken;
        if self.begun.elapsed() >= LASTED {
            self.failures = 0;
        }
    }

    /// The pause before the next try; `None` if there were enough. SSE-06.
    fn pause(&mut self, tries: u32) -> Option<Duration> {
        let asked = std::mem::take(&mut self.asked);
        if let Some(retry) = self.retry.filter(|retry| asked && *retry >= POLLED) {
            return Some(retry);
        }
        if self.failures >= tries {
            return None;
        }
        let shortest = self.delay.min(SHORTEST_PAUSE);
        let pause = self.retry.unwrap_or(self.delay).max(shortest);
        let doubled = pause.saturating_mul(1 << self.failures.min(16));
        self.failures += 1;
        Some(doubled.min(LONGEST_PAUSE))
    }

    /// Waits before the next try; `false` if there were enough.
    async fn wait(&mut self, tries: u32) -> bool {
        let Some(pause) = self.pause(tries) else { return false };
        tokio::time::sleep(pause).await;
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
            place.begins();
            let read = self.read_stream(asked, &mut events, &mut place).await;
            place.ended(read.is_err());
            let broken = match read {
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
            // The first message of a stream of changes says only that there is one.
            if asked.method != method::LISTEN || place.begun.elapsed() >= LASTED {
                place.heard();
            }
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
            place.begins();
            match self.send_quietly(&ask).await {
                Ok(response) => match response.status().as_u16() {
                    200 if media_type(response.headers()) == EVENTS => {
                        let mut events = Events::new(response.into_body(), limit);
                        let read = self.read_server(&mut events, &mut place).await;
                        place.ended(read.is_err());
                        if let Err(error) = read {
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
            if !place.wait(self.http.options.reconnects).await {
                tracing::warn!("the server's own stream broke too often; going on without it");
                return;
            }
        }
    }

    async fn read_server(&self, events: &mut Events, place: &mut Place) -> Result<(), HttpError> {
        while let Some(event) = events.next().await? {
            if let Some(message) = place.take(event) {
                place.heard();
                self.deliver(None, message).await?;
            }
        }
        Ok(())
    }

    /// The message on a stream that answers the request with this id.
    pub(super) async fn first_answer(&self, id: &Id, body: Incoming) -> Result<Vec<u8>, HttpError> {
        let mut events = Events::new(body, self.http.options.max_message_bytes);
        let mut place = Place::new(self.http.options.reconnect_delay);
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

#[cfg(test)]
mod tests {
    use super::*;

    fn event(text: &str) -> SseEvent {
        let mut reader = SseReader::new(1000);
        reader.handle_bytes(text.as_bytes()).unwrap();
        reader.poll_event().unwrap()
    }

    /// What is waited for after each of ten connections on which the server has said `text`, in milliseconds.
    fn pauses(delay: u64, text: &str) -> Vec<u128> {
        let mut place = Place::new(Duration::from_millis(delay));
        let next = || {
            place.begins();
            if place.take(event(text)).is_some() {
                place.heard();
            }
            place.ended(false);
            place.pause(5).map(|pause| pause.as_millis())
        };
        std::iter::from_fn(next).take(10).collect()
    }

    /// H11.
    #[test]
    fn sse_06_pauses_grow_unless_there_is_something_new() {
        assert_eq!(pauses(1000, "id: 1\ndata: \n\n"), [1000, 2000, 4000, 8000, 16_000]);
        assert_eq!(pauses(1000, "retry: 0\n\n"), [200, 400, 800, 1600, 3200]);
        assert_eq!(pauses(20, "retry: 0\n\n"), [20, 40, 80, 160, 320]);
        assert_eq!(pauses(1000, "retry: 0\ndata: {}\n\n"), [200; 10]);
        assert_eq!(pauses(1000, "retry: 300\ndata: {}\n\n"), [300; 10]);
        assert_eq!(pauses(1000, "data: {}\n\n"), [1000; 10]);
        // It wants to be polled.
        assert_eq!(pauses(1000, "id: 1\nretry: 500\ndata: \n\n"), [500; 10]);
        assert_eq!(pauses(1000, "retry: 99999999999\n\n"), [300_000; 10]);
        assert_eq!(pauses(10, "retry: 99999999999999999999\nid: 1\n\n"), [10, 20, 40, 80, 160]);
    }

    #[test]
    fn a_stream_that_broke_was_not_ended_to_be_polled() {
        let mut place = Place::new(Duration::from_secs(1));
        let mut tries = 0;
        loop {
            place.begins();
            place.take(event("retry: 500\n\n"));
            place.ended(true);
            if place.pause(5).is_none() {
                break;
            }
            tries += 1;
        }
        assert_eq!(tries, 5);
    }
}
