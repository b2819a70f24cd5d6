//! A request of 2026-07-28: it stands for itself, and its connection is its life.
//!
//! Knows which headers repeat what; asks `taut` for methods, codes and statuses. A lost connection
//! cancels the request (HCN-01, HCN-03): the pipe is dropped with the response.

use std::borrow::Cow;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, Response, StatusCode};
use taut::Revision;
use taut::rpc::{ErrorObject, Id, Params};
use taut::transport::{HeldBytes, MessagePipe, MessageService, Outgoing, Principal, Relation};
use taut::types::{
    HEADER_MISMATCH, ParameterHeader, called_tool, claimed_version, http_status, method_names,
    mirrored_name, missing_claims, unsupported_version,
};

use super::body::Body;
use super::legacy::sse_response;
use super::options::Options;
use super::refusal::{Refusal, error_message, json};
use super::silence::Silence;
use crate::{headers, sse};

/// A request as its envelope says it.
pub(super) struct ModernRequest<'a> {
    pub(super) id: &'a Id,
    pub(super) method: &'a str,
    pub(super) params: &'a Params<'a>,
}

impl ModernRequest<'_> {
    fn refuse(&self, error: ErrorObject) -> Refusal {
        let status = StatusCode::from_u16(http_status(error.code));
        Refusal::with_error(status.unwrap_or(StatusCode::BAD_REQUEST), error).of(Some(self.id))
    }

    /// HDR-12: the fields of `_meta`, the headers that repeat them, the version, the parameters.
    pub(super) fn check(
        &self,
        head: &HeaderMap,
        parameters: impl FnOnce(&str) -> Vec<ParameterHeader>,
    ) -> Result<(), Refusal> {
        let claimed = match claimed_version(self.params) {
            Some(claimed) => claimed.map_err(|error| self.refuse(error))?,
            None => return Err(self.refuse(missing_claims(self.params))),
        };
        self.check_header(head, &headers::PROTOCOL_VERSION, &claimed, false)?;
        self.check_header(head, &headers::METHOD, self.method, false)?;
        if let Some(name) = mirrored_name(self.method, self.params) {
            self.check_header(head, &headers::NAME, &name, true)?;
        }
        if claimed != Revision::MODERN.as_str() {
            return Err(self.refuse(unsupported_version(&claimed)));
        }
        // DEP-02: said here, because servers behind a proxy say different things to it.
        if self.method == method_names::INITIALIZE {
            return Err(self.refuse(ErrorObject::method_not_found(self.method)));
        }
        self.check_parameters(head, parameters)
    }

    fn mismatch(&self, message: String) -> Refusal {
        self.refuse(ErrorObject::new(HEADER_MISMATCH, message))
    }

    /// HDR-08: the header is there once and says what the body says.
    fn check_header(
        &self,
        head: &HeaderMap,
        name: &HeaderName,
        expected: &str,
        encoded: bool,
    ) -> Result<(), Refusal> {
        let given = self.header(head, name, encoded)?.ok_or_else(|| {
            self.mismatch(format!("the header {name} is missing; it repeats {expected:?}"))
        })?;
        match given == expected {
            true => Ok(()),
            false => Err(self.mismatch(format!(
                "the header {name} says {given:?}, the body {expected:?}: send the same in both"
            ))),
        }
    }

    fn header<'h>(
        &self,
        head: &'h HeaderMap,
        name: &HeaderName,
        encoded: bool,
    ) -> Result<Option<Cow<'h, str>>, Refusal> {
        let mut values = head.get_all(name).iter();
        let Some(value) = values.next() else { return Ok(None) };
        if values.next().is_some() {
            return Err(self.mismatch(format!("the header {name} is there twice: send one")));
        }
        let plain = value.to_str().map(str::trim).ok();
        let decoded = plain.and_then(|text| match encoded {
            true => headers::decode(text),
            false => Some(Cow::Borrowed(text)),
        });
        let Some(decoded) = decoded else {
            return Err(self.mismatch(format!(
                "the header {name} is neither plain ASCII nor =?base64?…?= of UTF-8"
            )));
        };
        Ok(Some(decoded))
    }

    /// PAR-05: the headers that repeat parameters of a tool, as its schema asks for them.
    fn check_parameters(
        &self,
        head: &HeaderMap,
        parameters: impl FnOnce(&str) -> Vec<ParameterHeader>,
    ) -> Result<(), Refusal> {
        let Some((tool, arguments)) = called_tool(self.method, self.params) else { return Ok(()) };
        for header in parameters(&tool) {
            let name = format!("{}{}", headers::PARAM_PREFIX, header.name().to_ascii_lowercase());
            let Ok(name) = HeaderName::try_from(name) else { continue };
            match (self.header(head, &name, true)?, header.value(arguments)) {
                (None, None) => {}
                (Some(given), Some(expected)) if header.same_value(&given, &expected) => {}
                (Some(_), Some(_)) => {
                    return Err(self.mismatch(format!(
                        "the header {name} and the argument that it repeats differ"
                    )));
                }
                (None, Some(_)) => {
                    return Err(self.mismatch(format!(
                        "the header {name} is missing: the tool's schema asks for it \
                         (x-mcp-header); read tools/list again"
                    )));
                }
                (Some(_), None) => {
                    return Err(self.mismatch(format!(
                        "the header {name} repeats an argument that is not there"
                    )));
                }
            }
        }
        Ok(())
    }
}

/// Serves a request that was checked. `answered` is told of an answer that leaves as JSON.
pub(super) async fn serve(
    service: &dyn MessageService,
    principal: Principal,
    id: &Id,
    (message, held): (Vec<u8>, HeldBytes),
    options: &Arc<Options>,
    answered: impl FnOnce(&[u8]),
) -> Result<Response<Body>, Refusal> {
    let mut pipe = service.open_in_place(principal);
    pipe.send(message)
        .await
        .map_err(|error| Refusal::bad_request(error.to_string()).of(Some(id)))?;
    let mut window = std::pin::pin!(tokio::time::sleep(options.json_window));
    let first = loop {
        tokio::select! {
            biased;
            message = pipe.recv() => match message {
                None => return Ok(lost(id)),
                // What belongs to nothing has no place in this revision (SSE-02).
                Some(Outgoing { relation: Relation::Unrelated, .. }) => {}
                Some(Outgoing { relation: Relation::Answer(_), json: answer, .. }) => {
                    answered(&answer);
                    return Ok(json(status_of(&answer), answer));
                }
                Some(Outgoing { relation: Relation::Withdrawn(_), .. }) => return Ok(lost(id)),
                Some(message) => break Some(message.json),
            },
            // The stream keeps what is in between from closing the connection.
            () = &mut window => break None,
        }
    };
    let stream = PipeStream {
        pipe,
        id: id.clone(),
        first,
        over: false,
        silence: Silence::new(options.keep_alive),
        _held: held,
    };
    Ok(sse_response(Body::pipe(stream)))
}

/// HTP-10, HTP-11: the status of an answer.
fn status_of(answer: &[u8]) -> StatusCode {
    let code = match taut::rpc::read(answer) {
        Ok(taut::rpc::Messages::One(taut::rpc::Message::Response {
            outcome: Err(error), ..
        })) => http_status(error.code),
        _ => 200,
    };
    StatusCode::from_u16(code).unwrap_or(StatusCode::OK)
}

fn gone() -> ErrorObject {
    ErrorObject::internal("the server ended before it answered")
}

fn lost(id: &Id) -> Response<Body> {
    json(StatusCode::OK, error_message(Some(id), &gone(), false))
}

/// The rest of a request's messages, as a stream. Dropping it cancels the request.
pub(super) struct PipeStream {
    pipe: MessagePipe,
    id: Id,
    first: Option<Vec<u8>>,
    over: bool,
    silence: Silence,
    /// The body of the request counts for as long as it is at work.
    _held: HeldBytes,
}

impl PipeStream {
    pub(super) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        // SSE-13: no ids.
        if let Some(first) = self.first.take() {
            return Poll::Ready(Some(sse::event(None, &first).into()));
        }
        if self.over {
            return Poll::Ready(None);
        }
        while let Poll::Ready(next) = self.pipe.poll_recv(cx) {
            let json = match next {
                Some(Outgoing { relation: Relation::Unrelated, .. }) => continue,
                Some(Outgoing { relation: Relation::About(_), json, .. }) => json,
                Some(Outgoing { relation: Relation::Withdrawn(_), .. }) => {
                    self.over = true;
                    return Poll::Ready(None);
                }
                // SSE-01
                Some(Outgoing { json, .. }) => {
                    self.over = true;
                    json
                }
                None => {
                    self.over = true;
                    error_message(Some(&self.id), &gone(), false)
                }
            };
            self.silence.broken();
            return Poll::Ready(Some(sse::event(None, &json).into()));
        }
        self.silence.poll(cx).map(Some)
    }
}
