//! The transport of 2024-11-05: one stream for what the server says, and an address for POSTs.
//!
//! ERH-05, OSE-01 to OSE-03.

use std::sync::Arc;

use bytes::Bytes;
use hyper::Method;
use hyper::header::{ACCEPT, HeaderValue};

use super::Carrier;
use super::exchange::no_answer;
use super::stream::Events;
use crate::client::error::HttpError;
use crate::client::http::{Ask, media_type, shown};
use crate::client::url::Url;
use crate::headers::EVENT_STREAM as EVENTS;

impl Carrier {
    /// Opens the stream and waits for the address that messages go to.
    pub(super) async fn open_old(self: &Arc<Self>) -> Result<Url, HttpError> {
        let mut headers = self.common_headers();
        headers.insert(ACCEPT, HeaderValue::from_static(EVENTS));
        let ask = Ask { method: Method::GET, url: self.url.clone(), headers, body: Bytes::new() };
        let after = self.http.options.body_timeout;
        let late = |_| HttpError::TimedOut { what: "the address for messages", after };
        let response = tokio::time::timeout(after, self.send(&ask)).await.map_err(late)??;
        if response.status().as_u16() != 200 || media_type(response.headers()) != EVENTS {
            return Err(no_answer("GET gives no stream of events"));
        }
        let mut events = Events::new(response.into_body(), self.http.options.max_message_bytes);
        let first = tokio::time::timeout(after, events.next()).await.map_err(late)??;
        let Some(event) = first.filter(|event| event.kind == "endpoint") else {
            return Err(no_answer("the first event of the stream names no address for messages"));
        };
        let address = self.url.join(&String::from_utf8_lossy(&event.data))?;
        if address.origin() != self.url.origin() {
            let why =
                "messages and their secrets go to the same origin as the stream, and to no other";
            return Err(HttpError::Redirect { status: 200, to: shown(&address), why });
        }
        tracing::debug!("the server speaks the transport of 2024-11-05");
        let address = self.old.get_or_init(|| address).clone();
        self.spawn(self.clone().follow_old(events));
        Ok(address)
    }

    async fn follow_old(self: Arc<Self>, mut events: Events) {
        let error = loop {
            match events.next().await {
                Ok(Some(event)) if matches!(event.kind.as_str(), "" | "message") => {
                    if !event.data.is_empty()
                        && let Err(error) = self.deliver(None, event.data).await
                    {
                        tracing::debug!(%error, "an event that is no message");
                    }
                }
                Ok(Some(_)) => {}
                // OSE-03: the stream is the session.
                Ok(None) => break no_answer("the server has ended the stream of its messages"),
                Err(error) => break error,
            }
        };
        self.fail(error);
    }

    /// Sends a message; what it is answered with comes on the stream.
    pub(super) async fn post_old(&self, address: &Url, json: &Bytes) -> Result<(), HttpError> {
        let mut ask = self.post(self.common_headers(), json.clone());
        ask.url = address.clone();
        let response = self.send(&ask).await?;
        match response.status().is_success() {
            true => Ok(()),
            false => Err(self.read_refusal(&ask, response).await?.into_error()),
        }
    }
}
