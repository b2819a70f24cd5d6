//! What a server asks of us, and what it tells us.
//!
//! Knows which of it is answered, refused or left alone, and which question goes to which handler, in
//! both eras with the same code. What was not declared is refused at once, so that no server waits for
//! it (C13). Must not know how a modern question reaches us inside a result (`request/rounds.rs`).
//! ELI-04, ELI-07, SAM-05, PNG-01, ERR-16, STD-22, RPC-36.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use serde_json::value::RawValue;

use super::connection::{Handlers, HostHandler, RequestContext, SessionState};
use super::state::{Change, ClientEvent};
use crate::driver::{AnswerFuture, IncomingRequest, Service, no_json, ready};
use crate::json::JsonBuf;
use crate::mcp::{
    ClientCapabilities, CreateMessageParams, ElicitAction, ElicitParams, ElicitResult, JsonObject,
    ListRootsResult, Method, Revision, WriteJson,
};
use crate::rpc::{ErrorObject, Params, Trouble, TroubleKind, code};

/// The loop's service for a client.
pub(super) struct ClientService(pub(super) Arc<SessionState>);

impl Service for ClientService {
    fn request(&mut self, request: IncomingRequest<'_>) -> AnswerFuture {
        let (state, method) = (&self.0, request.method);
        let known = Method::parse(method);
        // L16: no server sends these. The other side is an echo, and an answer of ours would come back as well and
        // look like an answer to us.
        let echo = matches!(known, Some(Method::Discover | Method::Initialize));
        let modern = state.is_modern();
        if let (false, Some(relayed)) = (echo, &state.settings.relay) {
            return relayed.relay.clone().request(request);
        }
        let mut refusal = ErrorObject::method_not_found(method);
        if echo {
            state.monitor.echo.raise();
        } else if known == Some(Method::Ping) && !modern {
            return ready(JsonBuf::of(&JsonObject::new()).map_err(|error| no_json(&error)));
        } else {
            match known.filter(|known| !modern && known.is_embedded_in_modern()) {
                None => {}
                Some(known) => match HostQuestion::read(state, known, request.params.raw()) {
                    Ok(question) => return self.ask(question, &request),
                    Err(error) => refusal = error,
                },
            }
            state.monitor.refused(method);
        }
        // STD-22: a modern client writes no response, not even to a server that breaks the rules.
        if echo || modern {
            request.link.forget(request.id);
        }
        ready(Err(refusal))
    }

    fn notification(&mut self, method: &str, params: &Params<'_>) {
        if let Some(relayed) = &self.0.settings.relay {
            relayed.relay.notification(&self.0, method, params);
        }
        let params = params.raw();
        if let Some(known) = Method::parse(method) {
            self.hear(known, params);
        }
        self.0.monitor.tell(&ClientEvent::Notification { method, params });
    }

    fn stray_error(&mut self, error: &ErrorObject) {
        tracing::warn!(%error, "the server reports an error that belongs to no request");
        self.0.monitor.tell(&ClientEvent::StrayError(error));
    }

    fn pump(&mut self) -> bool {
        if let Some(relayed) = &self.0.settings.relay {
            relayed.relay.pump();
        }
        false
    }

    fn has_room(&mut self) -> bool {
        self.0.settings.relay.as_ref().is_none_or(|relayed| relayed.relay.has_room())
    }

    fn trouble(&mut self, trouble: &Trouble) {
        if let Some(relayed) = &self.0.settings.relay
            && trouble.kind == TroubleKind::Late
            && let Ok(call) = trouble.excerpt.trim_matches('"').parse()
        {
            relayed.relay.late(call);
        }
        self.0.monitor.trouble(trouble);
    }

    fn blocked(&mut self, method: &str, _: &Params<'_>, took: Duration) {
        tracing::warn!(method, ?took, "a hook kept the connection waiting; it must not block");
    }
}

impl ClientService {
    /// Asks a handler: in a task of its own, because it may take its time and may use this very
    /// connection meanwhile.
    fn ask(&self, question: HostQuestion, request: &IncomingRequest<'_>) -> AnswerFuture {
        let state = self.0.clone();
        let context = RequestContext::new(state.clone(), request.cancelled.clone());
        let link = request.link.clone();
        Box::pin(async move {
            // Not on the loop itself, which polls this once: the handler may use the connection.
            tokio::task::yield_now().await;
            // A server may ask as soon as both sides have agreed, which is shortly before the client exists.
            state.settled.raised().await;
            // While a handler works, the server cannot go on: a person who takes a minute to answer
            // must not cost the request that the question is for.
            let _hold = link.hold();
            let revision = state.revision.get().copied().unwrap_or(Revision::LATEST_LEGACY);
            let answer = question.ask(context, revision).await?;
            JsonBuf::of(&answer).map_err(|error| no_json(&error))
        })
    }

    fn hear(&mut self, method: Method, params: Option<&RawValue>) {
        let handlers = &self.0.settings.handlers;
        if method == Method::Message
            && let Some(on_log) = &handlers.on_log
        {
            match serde_json::from_str(params.map_or("{}", RawValue::get)) {
                Ok(log) => on_log(log),
                Err(error) => tracing::debug!(%error, "a log message that cannot be read"),
            }
        }
        let modern = self.0.is_modern();
        let Some((change, own)) = self.0.streams.take(method, params, modern) else { return };
        self.0.lists.drop_changed(&change);
        // SUB-06: each stream has its own copy. One of them is the client's own, so that the hook is
        // told once.
        if let Some(on_change) = &handlers.on_change
            && own
            && !matches!(change, Change::Resource(_))
        {
            on_change(&change);
        }
    }
}

impl Drop for ClientService {
    /// The loop has ended.
    fn drop(&mut self) {
        self.0.streams.end();
    }
}

type JsonResponse = Pin<Box<dyn Future<Output = Result<Box<RawValue>, ErrorObject>> + Send>>;

/// A server's question and the handler that answers it.
pub(super) struct HostQuestion(Box<dyn FnOnce(RequestContext, Revision) -> JsonResponse + Send>);

impl HostQuestion {
    fn new<Q, T, R>(handler: &HostHandler<Q, T>, question: Q, finish: fn(T) -> R) -> Self
    where
        Q: Send + 'static,
        T: 'static,
        R: WriteJson + 'static,
    {
        let handler = handler.clone();
        Self(Box::new(move |context, revision| {
            let answer = handler(question, context);
            Box::pin(async move { write(&finish(answer.await?), revision) })
        }))
    }

    /// Finds the handler for a question, or the error that refuses it.
    pub(super) fn read(
        state: &SessionState,
        method: Method,
        params: Option<&RawValue>,
    ) -> Result<Self, ErrorObject> {
        let handlers = &state.settings.handlers;
        let revision = state.revision.get().copied();
        match (method, &handlers.sample, handlers.roots()) {
            (Method::Elicit, ..) if revision.is_none_or(Revision::has_elicitation) => {
                Self::read_elicitation(handlers, params)
            }
            (Method::CreateMessage, Some(handler), _) => {
                Self::read_sampling(handler, params, &state.settings.capabilities)
            }
            (Method::ListRoots, _, Some(roots)) => Ok(Self::new(&roots, (), ListRootsResult::new)),
            _ => Err(not_offered(method.as_str())),
        }
    }

    fn read_sampling(
        handler: &HostHandler<CreateMessageParams, crate::mcp::CreateMessageResult>,
        params: Option<&RawValue>,
        declared: &ClientCapabilities,
    ) -> Result<Self, ErrorObject> {
        let question: CreateMessageParams = parse(params)?;
        let tools = declared.sampling.as_ref().and_then(|s| s.tools.as_ref()).is_some();
        // SAM-05
        if !tools && (question.tools.is_some() || question.tool_choice.is_some()) {
            return Err(ErrorObject::invalid_params("this client has not declared sampling.tools"));
        }
        Ok(Self::new(handler, question, |result| result))
    }

    fn read_elicitation(
        handlers: &Handlers,
        params: Option<&RawValue>,
    ) -> Result<Self, ErrorObject> {
        if handlers.form.is_none() && handlers.url.is_none() {
            return Err(not_offered(Method::Elicit.as_str()));
        }
        // ELI-04: a mode that was not declared is a mistake in the params.
        let undeclared = |mode: &str| {
            let why = format!("this client has not declared the elicitation mode {mode:?}");
            Err(ErrorObject::invalid_params(why))
        };
        match (parse::<ElicitParams>(params)?, &handlers.form, &handlers.url) {
            (ElicitParams::Form(form), Some(handler), _) => Ok(Self::new(handler, form, filled_in)),
            (ElicitParams::Url(url), _, Some(handler)) => {
                Ok(Self::new(handler, url, without_content))
            }
            (ElicitParams::Form(_), ..) => undeclared("form"),
            (ElicitParams::Url(_), ..) => undeclared("url"),
            (ElicitParams::Other(value), ..) => {
                undeclared(value["mode"].as_str().unwrap_or_default())
            }
        }
    }

    /// Asks the handler; the answer is JSON as `revision` writes it.
    pub(super) fn ask(self, context: RequestContext, revision: Revision) -> JsonResponse {
        (self.0)(context, revision)
    }
}

/// ELI-07: content if and only if a form was accepted.
fn filled_in(mut result: ElicitResult) -> ElicitResult {
    if result.action != ElicitAction::Accept {
        return without_content(result);
    }
    result.content.get_or_insert_default();
    result
}

fn without_content(mut result: ElicitResult) -> ElicitResult {
    result.content = None;
    result
}

fn parse<T: serde::de::DeserializeOwned>(params: Option<&RawValue>) -> Result<T, ErrorObject> {
    let params = params.map_or("{}", RawValue::get);
    serde_json::from_str(params).map_err(|error| ErrorObject::invalid_params(error.to_string()))
}

fn write(result: &impl WriteJson, revision: Revision) -> Result<Box<RawValue>, ErrorObject> {
    serde_json::value::to_raw_value(&result.at(revision))
        .map_err(|error| ErrorObject::internal(format!("the answer has no JSON form: {error}")))
}

/// ERR-16: what was not declared does not exist.
pub(super) fn not_offered(method: &str) -> ErrorObject {
    ErrorObject::new(code::METHOD_NOT_FOUND, "this client does not offer it")
        .with_data(&json!({ "method": method }))
}
