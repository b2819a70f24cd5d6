//! Requests of 2025-03-26 to 2025-11-25: sessions, streams, resumption.
//!
//! Knows how a session is used over HTTP; the session knows which message leaves where. HTP-05 to
//! HTP-09, GET-01 to GET-03, SES-01 to SES-06.

use std::sync::Arc;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use taut::Revision;
use taut::rpc::{ErrorObject, Id};
use taut::transport::{MessageService, Principal, SendMessageError};
use taut::types::unsupported_version;

use super::body::Body;
use super::guard::{check_get, single};
use super::options::Options;
use super::posted::{Entry, Posted};
use super::refusal::{Refusal, empty, error_message, json};
use super::registry::Registry;
use super::session::{GENERAL, NotAdded, Session};
use super::stream::{EventKind, Reading, Shape, StreamReader, read_event_id};
use crate::headers;

/// Asks proxies of the nginx family not to hold back events (SSE-11).
const X_ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// A response that is a stream of events.
pub(super) fn sse_response(body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(headers::EVENT_STREAM));
    // HSC-05
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform"));
    headers.insert(X_ACCEL_BUFFERING, HeaderValue::from_static("no"));
    response
}

/// What serves legacy requests.
pub(super) struct Legacy<'a> {
    pub(super) service: &'a dyn MessageService,
    pub(super) registry: &'a Arc<Registry>,
    pub(super) options: &'a Arc<Options>,
}

/// Ends a session whose client went away before it learnt the id.
struct Unannounced(Option<Arc<Session>>);

impl Drop for Unannounced {
    fn drop(&mut self) {
        if let Some(session) = self.0.take() {
            session.end();
        }
    }
}

impl Legacy<'_> {
    /// Serves a POST.
    pub(super) async fn post(
        &self,
        head: &Parts,
        principal: Principal,
        posted: Posted,
        body: Vec<u8>,
    ) -> Result<Response<Body>, Refusal> {
        check_version(&head.headers)?;
        if let Posted::Request { id, opens: true } = &posted {
            return self.initialize(principal, id, body).await;
        }
        let session = self.session(head, &principal)?;
        match posted {
            Posted::Request { id, .. } => {
                self.answer(&session, &[id], Vec::new(), vec![body], false).await
            }
            Posted::Other => {
                let _use = session.used();
                send(&session, body).await?;
                Ok(empty(StatusCode::ACCEPTED))
            }
            Posted::Batch(entries) => self.batch(&session, entries).await,
        }
    }

    /// SES-01: the session's id leaves with the answer.
    async fn initialize(
        &self,
        principal: Principal,
        id: &Id,
        body: Vec<u8>,
    ) -> Result<Response<Body>, Refusal> {
        let session = self.registry.open(self.service, principal, self.options)?;
        let mut unannounced = Unannounced(Some(session.clone()));
        session.opens_with(id);
        let ids = std::slice::from_ref(id);
        let mut response = self.answer(&session, ids, Vec::new(), vec![body], false).await?;
        if !session.is_ended()
            && let Ok(id) = HeaderValue::from_str(&session.id)
        {
            unannounced.0 = None;
            response.headers_mut().insert(headers::SESSION_ID, id);
        }
        Ok(response)
    }

    /// The session that a request names.
    fn session(&self, head: &Parts, principal: &Principal) -> Result<Arc<Session>, Refusal> {
        let Some(id) = single(&head.headers, &headers::SESSION_ID)? else {
            // SES-03
            return Err(Refusal::bad_request(
                "the header Mcp-Session-Id is missing: send initialize first and then the id that \
                 it gives; or send a request of 2026-07-28, which needs no session",
            ));
        };
        self.registry.find(id, principal)
    }

    async fn batch(
        &self,
        session: &Arc<Session>,
        entries: Vec<Entry>,
    ) -> Result<Response<Body>, Refusal> {
        let revision = session.agreed().unwrap_or(Revision::LATEST_LEGACY);
        if !revision.has_batches() {
            // HTP-06
            return Err(Refusal::bad_request(format!(
                "an array is no message in {revision}: send each message in a POST of its own"
            )));
        }
        let (mut ids, mut refused, mut messages) = (Vec::new(), Vec::new(), Vec::new());
        for entry in entries {
            match entry {
                Entry::Message { id, json } => {
                    ids.extend(id);
                    messages.push(json);
                }
                Entry::Malformed { id, error } => {
                    refused.push(error_message(id.as_ref(), &error, false).into());
                }
            }
        }
        if !ids.is_empty() {
            return self.answer(session, &ids, refused, messages, true).await;
        }
        let _use = session.used();
        for message in messages {
            send(session, message).await?;
        }
        match refused.is_empty() {
            true => Ok(empty(StatusCode::ACCEPTED)),
            false => Ok(json(StatusCode::BAD_REQUEST, array(&refused))),
        }
    }

    /// Sends requests to the session and answers with what comes of them.
    async fn answer(
        &self,
        session: &Arc<Session>,
        ids: &[Id],
        refused: Vec<Bytes>,
        messages: Vec<Vec<u8>>,
        batch: bool,
    ) -> Result<Response<Body>, Refusal> {
        let log = session.add(ids, self.options.replay).map_err(|error| match error {
            NotAdded::Ended => over(),
            NotAdded::InUse(id) => {
                Refusal::bad_request("a request with this id waits for its answer: use another id")
                    .of(Some(&id))
            }
        })?;
        let reader = StreamReader::new(log.clone(), None, self.reading(session), session.used());
        for answer in refused {
            log.push(EventKind::Answer, answer, self.options.stall_timeout).await;
        }
        for message in messages {
            if let Err(refusal) = send(session, message).await {
                session.forget(ids, &log);
                return Err(refusal.of(ids.first()));
            }
        }
        match reader.shape(self.options.json_window).await {
            Shape::Stream => Ok(sse_response(Body::session(reader.start()))),
            Shape::Answers(answers) => {
                session.delivered(&log);
                let body = match (batch, answers.first()) {
                    (false, Some(answer)) => answer.to_vec(),
                    _ => array(&answers),
                };
                Ok(json(StatusCode::OK, body))
            }
        }
    }

    fn reading(&self, session: &Session) -> Reading {
        Reading {
            // SSE-14
            polls: session.agreed() >= Some(Revision::V2025_11_25),
            keep_alive: self.options.keep_alive,
            poll_after: self.options.poll_after,
            retry: self.options.retry,
        }
    }

    /// Serves a GET: the stream that belongs to no request, or one that the client reads on.
    pub(super) fn get(
        &self,
        head: &Parts,
        principal: &Principal,
    ) -> Result<Response<Body>, Refusal> {
        check_get(head)?;
        no_modern(&head.headers)?;
        check_version(&head.headers)?;
        let session = self.session(head, principal)?;
        let after = single(&head.headers, &headers::LAST_EVENT_ID)?.and_then(read_event_id);
        // SSE-09: only what followed on that stream. A stream that is not known any more has nothing
        // to replay.
        let resumed =
            after.and_then(|(stream, event)| Some((session.stream(stream)?, Some(event))));
        let (log, after) = match resumed {
            Some(found) => found,
            None => (session.stream(GENERAL).ok_or_else(over)?, None),
        };
        let reader = StreamReader::new(log, after, self.reading(&session), session.used());
        Ok(sse_response(Body::session(reader.start())))
    }

    /// Serves a DELETE: the session ends.
    pub(super) fn delete(
        &self,
        head: &Parts,
        principal: &Principal,
    ) -> Result<Response<Body>, Refusal> {
        no_modern(&head.headers)?;
        check_version(&head.headers)?;
        self.session(head, principal)?.end();
        Ok(empty(StatusCode::NO_CONTENT))
    }
}

/// GET-02: the modern revision has POST only.
fn no_modern(headers: &HeaderMap) -> Result<(), Refusal> {
    match single(headers, &headers::PROTOCOL_VERSION)? {
        Some(version) if version == Revision::MODERN.as_str() => {
            Err(Refusal::method_not_allowed("2026-07-28 has no sessions and no GET: use POST"))
        }
        _ => Ok(()),
    }
}

/// HDR-02, HDR-03: no version will do, an unknown one is refused.
fn check_version(headers: &HeaderMap) -> Result<(), Refusal> {
    match single(headers, &headers::PROTOCOL_VERSION)? {
        Some(version) if Revision::parse(version).is_none() => {
            let short: String = version.chars().take(64).collect();
            Err(Refusal::with_error(StatusCode::BAD_REQUEST, unsupported_version(&short)))
        }
        _ => Ok(()),
    }
}

async fn send(session: &Session, message: Vec<u8>) -> Result<(), Refusal> {
    session.send(message).await.map_err(|error| match error {
        SendMessageError::Closed => over(),
        SendMessageError::TooLong { .. } => {
            Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, error.to_string())
        }
        _ => Refusal::with_error(
            StatusCode::BAD_REQUEST,
            ErrorObject::new(taut::rpc::code::PARSE_ERROR, error.to_string()),
        ),
    })
}

fn over() -> Refusal {
    Refusal::new(
        StatusCode::NOT_FOUND,
        "the session has ended: send initialize again, without Mcp-Session-Id",
    )
}

pub(super) fn array(items: &[Bytes]) -> Vec<u8> {
    let mut out = vec![b'['];
    for (at, item) in items.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        out.extend_from_slice(item);
    }
    out.push(b']');
    out
}
