//! Plain JSON-RPC over HTTP: a message or an array in, its answers out.
//!
//! Knows the JSON-RPC envelope; must not know MCP. There are no sessions. Notifications that come before the answer
//! leave on a stream, if the client has asked for one by its name; a client that only takes anything gets the answer
//! as JSON, because it may have never heard of streams.

use std::collections::{HashSet, VecDeque};
use std::future::poll_fn;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{HeaderMap, Response, StatusCode};
use taut::rpc::{ErrorObject, Id, Message, Messages};
use taut::transport::{
    HeldBytes, MessageReceiver, MessageSender, MessageService, Outgoing, Principal, Relation,
    SendMessageError,
};

use super::body::Body;
use super::guard::{AnswerForm, answer_form};
use super::legacy::{array, sse_response};
use super::options::Options;
use super::posted::{Entry, entries, malformed};
use super::refusal::{Refusal, empty, error_message, json};
use super::silence::Silence;
use super::turn::within;
use crate::sse;

/// A POST that is being served.
struct Exchange {
    sender: MessageSender,
    receiver: MessageReceiver,
    /// The requests that are not answered yet.
    open: HashSet<Id>,
    answers: Vec<Bytes>,
    batch: bool,
    /// Everything was sent to the service.
    sent: bool,
    /// The service was told that nothing more comes: what it still does is finished.
    closed: bool,
    _held: HeldBytes,
}

/// What comes next of an exchange.
enum Next {
    Notification(Vec<u8>),
    /// Everything is answered.
    Over,
}

/// Serves one POST.
pub(super) async fn serve(
    service: &dyn MessageService,
    principal: Principal,
    headers: &HeaderMap,
    (body, held): (Vec<u8>, HeldBytes),
    options: &Options,
) -> Result<Response<Body>, Refusal> {
    let read = taut::rpc::read(&body).map_err(|error| malformed(&error))?;
    let (mut open, mut answers, mut messages) = (HashSet::new(), Vec::new(), Vec::new());
    let batch = matches!(read, Messages::Batch(_));
    match read {
        Messages::Batch(_) => {
            for entry in entries(&body)? {
                match entry {
                    Entry::Message { id, json } => {
                        open.extend(id);
                        messages.push(json);
                    }
                    Entry::Malformed { id, error } => {
                        answers.push(error_message(id.as_ref(), &error, true).into());
                    }
                }
            }
        }
        read => {
            if let Messages::One(Message::Request { id, .. }) = read {
                open.insert(id);
            }
            messages.push(body);
        }
    }
    let (sender, receiver) = service.open_in_place(principal).split();
    let (sent, closed, _held) = (false, false, held);
    let mut exchange = Exchange { sender, receiver, open, answers, batch, sent, closed, _held };
    let mut early = Vec::new();
    exchange.send(messages, &mut early).await.map_err(|error| match error {
        SendMessageError::TooLong { .. } => {
            Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, error.to_string())
        }
        error => Refusal::bad_request(error.to_string()),
    })?;
    exchange.answer(headers, options, early).await
}

impl Exchange {
    /// Sends all messages. What the service says meanwhile is taken, so that it has room to go on.
    async fn send(
        &mut self,
        messages: Vec<Vec<u8>>,
        early: &mut Vec<Vec<u8>>,
    ) -> Result<(), SendMessageError> {
        let sender = self.sender.clone();
        let mut sending = std::pin::pin!(async {
            for message in messages {
                sender.send(message).await?;
            }
            Ok(())
        });
        poll_fn(|cx| {
            loop {
                if let Poll::Ready(sent) = sending.as_mut().poll(cx) {
                    self.sent = true;
                    return Poll::Ready(sent);
                }
                match std::task::ready!(self.poll_next(cx)) {
                    Next::Notification(json) => early.push(json),
                    // It has ended by itself; sending fails.
                    Next::Over => return Poll::Ready(Ok(())),
                }
            }
        })
        .await
    }

    /// Waits for the answers, in the form that the client wants.
    async fn answer(
        mut self,
        headers: &HeaderMap,
        options: &Options,
        early: Vec<Vec<u8>>,
    ) -> Result<Response<Body>, Refusal> {
        let form = answer_form(headers).filter(|_| !self.open.is_empty());
        let streams = matches!(form, Some(AnswerForm::Either | AnswerForm::Stream));
        let first = async {
            if form == Some(AnswerForm::Stream) || streams && !early.is_empty() {
                return None;
            }
            loop {
                match poll_fn(|cx| self.poll_next(cx)).await {
                    Next::Notification(json) if streams => return Some(json),
                    Next::Notification(_) => {}
                    Next::Over => return Some(Vec::new()),
                }
            }
        };
        let first = match streams {
            true => within(options.json_window, first).await.unwrap_or(None),
            false => first.await,
        };
        if first.as_ref().is_some_and(Vec::is_empty) {
            return Ok(match self.whole() {
                Some(answer) => json(StatusCode::OK, answer),
                None => empty(StatusCode::ACCEPTED),
            });
        }
        let ready = early.into_iter().chain(first).map(|json| sse::event(None, &json)).collect();
        let stream = PlainStream {
            exchange: self,
            ready,
            over: false,
            silence: Silence::new(options.keep_alive),
        };
        Ok(sse_response(Body::plain(stream)))
    }

    /// The answer as one message, if there is one.
    fn whole(&mut self) -> Option<Vec<u8>> {
        let answers = std::mem::take(&mut self.answers);
        match self.batch {
            true => (!answers.is_empty()).then(|| array(&answers)),
            false => answers.first().map(|answer| answer.to_vec()),
        }
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Next> {
        loop {
            if self.sent && self.open.is_empty() && !self.closed {
                // What was only told may still be at work.
                self.sender.close();
                self.closed = true;
            }
            let Some(Outgoing { json, relation, .. }) =
                std::task::ready!(self.receiver.poll_recv(cx))
            else {
                for id in self.open.drain() {
                    let error = ErrorObject::internal("the service ended before it answered");
                    self.answers.push(error_message(Some(&id), &error, true).into());
                }
                return Poll::Ready(Next::Over);
            };
            match relation {
                Relation::Answer(id) => {
                    self.open.remove(&id);
                    self.answers.push(json.into());
                }
                Relation::Withdrawn(id) => drop(self.open.remove(&id)),
                _ => match refused_question(&json) {
                    // It waits for nothing but this; without room it ends by its own timeout.
                    Some(refusal) => drop(self.sender.try_send(refusal)),
                    None => return Poll::Ready(Next::Notification(json)),
                },
            }
        }
    }
}

/// The answer to a request of the service, which no client over HTTP can give.
fn refused_question(message: &[u8]) -> Option<Vec<u8>> {
    let Ok(Messages::One(Message::Request { id, .. })) = taut::rpc::read(message) else {
        return None;
    };
    let error = ErrorObject::internal("a client over HTTP cannot be asked");
    Some(error_message(Some(&id), &error, true))
}

/// Notifications, and then the answer. Dropping it ends the exchange.
pub(super) struct PlainStream {
    exchange: Exchange,
    ready: VecDeque<Vec<u8>>,
    over: bool,
    silence: Silence,
}

impl PlainStream {
    pub(super) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if let Some(event) = self.ready.pop_front() {
            return Poll::Ready(Some(event.into()));
        }
        if self.over {
            return Poll::Ready(None);
        }
        if let Poll::Ready(next) = self.exchange.poll_next(cx) {
            self.silence.broken();
            let json = match next {
                Next::Notification(json) => json,
                Next::Over => {
                    self.over = true;
                    let Some(answer) = self.exchange.whole() else { return Poll::Ready(None) };
                    answer
                }
            };
            return Poll::Ready(Some(sse::event(None, &json).into()));
        }
        self.silence.poll(cx).map(Some)
    }
}
