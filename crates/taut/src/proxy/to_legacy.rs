//! What a modern client needs of a legacy server.
//!
//! Knows how a call goes on over several requests of the client; must not know how messages travel. A
//! legacy server asks in the middle of a call and waits. So the call is parked, the client gets
//! `input_required`, and its retry brings the answers and waits for the same call.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::mpsc;

use super::state::{
    Asked, Back, Flow, FrontRequest, FrontState, LocalStream, ProxiedCall, Reports, WayToAsk,
};
use super::text::no_answer;
use super::translate::{
    EmbeddedQuestion, discovery, legacy_params, modern_error, modern_question, modern_result,
    progress_token,
};
use crate::driver::{Either, Outcome, Watcher, first};
use crate::json::{JsonBuf, JsonRef, ObjectWriter};
use crate::lock::lock;
use crate::mcp::{
    Accept, ClientCapabilities, ElicitationCapability, JsonObject, MISSING_CLIENT_CAPABILITY,
    Method, MissingCapability, RootsCapability, SamplingCapability, SubscriptionFilter, Terms,
    URL_ELICITATION_REQUIRED, Verdict, binding, meta_keys,
};
use crate::rpc::{ErrorObject, Params, PeerRequest};

/// How long further questions of the same call are waited for, so that they travel together.
const TOGETHER: Duration = Duration::from_millis(5);

/// What a parked call costs beside its questions.
const PARKED: usize = 1 << 10;

/// Serves a modern request whose server is legacy.
pub(super) fn serve(front: &Arc<FrontState>, back: &Arc<Back>, request: PeerRequest<'_>) {
    let (method, terms) = match Accept::default().judge(&request.method, &request.params) {
        Verdict::Serve(method, terms) => (method, terms),
        Verdict::Refuse(error) => return front.link.answer(request.ticket, Err(error)),
        _ => {
            let error = ErrorObject::method_not_found(&request.method);
            return front.link.answer(request.ticket, Err(error));
        }
    };
    let PeerRequest { ticket, params, .. } = request;
    if method == Method::Discover {
        let text = discovery(&back.client.0.agreed);
        return front.link.answer(ticket, Ok(JsonBuf::copied(&[&text])));
    }
    let request = ModernRequest {
        request: FrontRequest::new(front, &ticket),
        back: back.clone(),
        method,
        params: params.into_owned(),
        terms,
    };
    match method {
        Method::Listen => front.spawn(ticket, request.listen()),
        _ => front.spawn(ticket, request.run()),
    }
}

/// A request of a modern client.
struct ModernRequest {
    request: FrontRequest,
    back: Arc<Back>,
    method: Method,
    params: Params<'static>,
    terms: Arc<Terms>,
}

impl ModernRequest {
    async fn run(self) -> Outcome {
        self.set_level();
        // A call that waits for its client has given its turn away, and waits for another.
        let _turn = self.back.turn().await;
        let front = &self.request.front;
        let state = self.params.optional::<String>("requestState").ok().flatten();
        let bound_to = self.binding();
        let mut flow = match state.filter(|_| self.method.may_require_input()) {
            Some(handle) => {
                let parked = front.shared.resume(&handle, &front.principal, &bound_to);
                // With the server that asked, its call has ended.
                let parked = parked.filter(|flow| flow.back.client.0.session.is_up());
                let flow = parked.ok_or_else(|| {
                    ErrorObject::invalid_params(
                        "requestState is not known here, has expired, belongs to another request, or to a \
                         server that has ended; start again without it",
                    )
                })?;
                self.resume(flow)
            }
            None => self.begin(),
        };
        if flow.call.is_none() {
            flow = self.begin();
        }
        if let Some(outcome) = self.drive(&mut flow).await {
            return self.finish(flow, outcome, bound_to);
        }
        let questions = flow.open_questions();
        self.park(flow, &questions, bound_to)
    }

    /// Asks the client, and keeps the call until it answers.
    fn park(&self, flow: Flow, questions: &str, bound_to: String) -> Outcome {
        if let Some(call) = &flow.call {
            flow.back.state.park(call.number());
        }
        let front = &self.request.front;
        let bytes = questions.len() + PARKED;
        let handle = front.shared.park(flow, front.principal.clone(), bound_to, bytes)?;
        Ok(input_required(questions, &handle, &self.back.info))
    }

    fn binding(&self) -> String {
        let name = ["name", "uri"].iter().find_map(|name| self.params.string(name).ok());
        let arguments = self.params.member("arguments").map(JsonRef::text);
        binding(self.method, name.as_deref().unwrap_or_default(), arguments)
    }

    fn reports(&self) -> Reports {
        let token = progress_token(&self.params).map(|token| token.text().to_owned());
        Reports { request: self.request.clone(), token }
    }

    /// Makes the call.
    fn begin(&self) -> Flow {
        let (ask, asked) = mpsc::unbounded_channel();
        let reports = Arc::new(Mutex::new(self.reports()));
        let questions = match self.method.may_require_input() {
            true => WayToAsk::Inside(ask),
            false => WayToAsk::Refused,
        };
        let mut call = ProxiedCall::new(self.request.clone(), questions);
        call.level = self.terms.log_level.clone();
        call.roots = self.terms.asker.capabilities.roots.is_some();
        let params = |token: &str| legacy_params(&self.params, token);
        let watcher = watcher(&reports);
        let call = self.back.call(call, self.method.as_str(), params, Some(watcher));
        Flow {
            call: Some(call),
            asked,
            open: Vec::new(),
            keys: 0,
            reports,
            back: self.back.clone(),
            missing: None,
        }
    }

    /// Goes on with a parked call: the answers go to the server.
    fn resume(&self, mut flow: Flow) -> Flow {
        *lock(&flow.reports) = self.reports();
        if let Some(call) = &flow.call {
            flow.back.state.rebind(call.number(), &self.request);
        }
        let answers = self.params.member("inputResponses");
        let answer = |key: &str| answers.and_then(|answers| answers.member(key));
        let (answered, open) =
            flow.open.into_iter().partition(|(key, _): &(String, Asked)| answer(key).is_some());
        flow.open = open;
        // The server no longer wants to know these.
        flow.open.retain(|(_, asked)| !asked.reply.is_closed());
        for (key, asked) in answered {
            if let Some(answer) = answer(&key) {
                let _ = asked.reply.send(Ok(JsonBuf::copied(&[answer.text()])));
            }
        }
        flow
    }

    /// Waits for the answer, or for questions: `None` if some are open.
    async fn drive(&self, flow: &mut Flow) -> Option<Outcome> {
        loop {
            let (Some(call), asked) = (&mut flow.call, &mut flow.asked) else {
                return Some(Err(ErrorObject::internal("the call has ended")));
            };
            if !flow.open.is_empty() {
                // Some were left unanswered; more may come.
                let more = tokio::time::timeout(TOGETHER, asked.recv()).await;
                match more {
                    Ok(Some(asked)) => self.take(flow, asked),
                    _ => return None,
                }
                continue;
            }
            match first(call.answer(), asked.recv()).await {
                Either::First(outcome) => return Some(outcome),
                Either::Second(Some(asked)) => self.take(flow, asked),
                // The sender lives as long as the call.
                Either::Second(None) => {
                    let outcome = call.answer().await;
                    return Some(outcome);
                }
            }
        }
    }

    /// Takes in a question, if the client can be asked.
    fn take(&self, flow: &mut Flow, asked: Asked) {
        if asked.reply.is_closed() {
            // The server has withdrawn it.
            return;
        }
        let params = asked.params.as_deref().map(JsonRef::sound);
        let capabilities = &self.terms.asker.capabilities;
        if EmbeddedQuestion::fits(asked.method, params, capabilities) {
            let key = flow.next_key();
            flow.open.push((key, asked));
            return;
        }
        flow.missing = Some(required(asked.method, params));
        let error = ErrorObject::method_not_found(asked.method.as_str());
        let _ = asked.reply.send(Err(error));
    }

    /// The answer of the server, for the client.
    fn finish(&self, mut flow: Flow, outcome: Outcome, bound_to: String) -> Outcome {
        let info = &self.back.info;
        match outcome {
            Ok(result) => {
                let result = result.as_json();
                if let Some(missing) = flow.missing.take()
                    && says_nothing(result)
                {
                    return Err(missing_capability(missing, None));
                }
                modern_result(Some(self.method), result, info).map(|text| JsonBuf::copied(&[&text]))
            }
            Err(error) if error.code == URL_ELICITATION_REQUIRED => {
                let Some(text) = flow.pages_of(&error) else { return Err(error) };
                // The visits are made outside; then the call is made anew.
                flow.call = None;
                self.park(flow, &text, bound_to)
            }
            Err(error) => {
                if let Some(missing) = flow.missing.take() {
                    return Err(missing_capability(missing, Some(&error)));
                }
                let uri = self.params.optional::<String>("uri").ok().flatten();
                Err(modern_error(Some(self.method), uri.as_deref(), error))
            }
        }
    }

    /// A legacy server has one level for all: the most talkative that any request has wanted. Lines that
    /// a request does not want are not passed on.
    fn set_level(&self) {
        let Some(wanted) = &self.terms.log_level else { return };
        if self.back.capabilities().logging.is_none() {
            return;
        }
        let mut level = lock(&self.back.state.level);
        if level.as_ref().is_none_or(|level| wanted < level) {
            *level = Some(wanted.clone());
            drop(level);
            self.back.set_level(wanted);
        }
    }

    /// A stream of changes, kept here for the client.
    async fn listen(self) -> Outcome {
        let filter = self.params.required::<SubscriptionFilter>("notifications")?;
        let mut honoured = filter.honoured_by(self.back.capabilities());
        let mut followed = Vec::new();
        let mut open = self.back.state.streams.begin();
        let following = async {
            for uri in honoured.resource_subscriptions.take().unwrap_or_default() {
                if open.follow(&self.back, &uri).await? {
                    followed.push(uri);
                }
            }
            Ok::<_, ErrorObject>(())
        };
        // The end does not wait until the server has taken all of them.
        match first(following, self.request.front.closing.raised()).await {
            Either::First(followed) => followed?,
            Either::Second(()) => return self.end_of_stream(),
        }
        if !followed.is_empty() {
            honoured.resource_subscriptions = Some(followed);
        }
        let notifications = serde_json::to_string(&honoured).unwrap_or_else(|_| "{}".to_owned());
        let (tag, id) = (meta_keys::SUBSCRIPTION_ID, self.request.id.as_json());
        let ack = format!("{{\"_meta\":{{\"{tag}\":{id}}},\"notifications\":{notifications}}}");
        self.request.tell(Method::Acknowledged.as_str(), ack);
        let given_up = open.open(LocalStream { request: self.request.clone(), filter: honoured });
        match first(self.request.front.closing.raised(), given_up.raised()).await {
            Either::First(()) => self.end_of_stream(),
            Either::Second(()) => Err(no_answer(
                "unreachable",
                "the server has ended and is not started again; listen again to try once more",
                false,
            )),
        }
    }

    /// The result that ends a stream of changes.
    fn end_of_stream(&self) -> Outcome {
        let (tag, id) = (meta_keys::SUBSCRIPTION_ID, self.request.id.as_json());
        let result = format!("{{\"_meta\":{{\"{tag}\":{id}}}}}");
        modern_result(None, JsonRef::sound(&result), &self.back.info)
            .map(|text| JsonBuf::copied(&[&text]))
    }
}

/// What a client would have to offer to be asked this.
fn required(method: Method, params: Option<JsonRef<'_>>) -> ClientCapabilities {
    let needs = ClientCapabilities::new();
    let mode = params.and_then(|params| params.member("mode")).and_then(JsonRef::string);
    match method {
        Method::ListRoots => needs.roots(RootsCapability::new()),
        Method::CreateMessage => needs.sampling(SamplingCapability::new()),
        _ if mode.as_deref() == Some("url") => {
            needs.elicitation(ElicitationCapability::new().url(JsonObject::new()))
        }
        _ => needs.elicitation(ElicitationCapability::new().form(JsonObject::new())),
    }
}

/// Whether a result is that of a tool that failed and does not say why. Words of the tool's own are never replaced.
fn says_nothing(result: JsonRef<'_>) -> bool {
    let failed = result.member("isError").is_some_and(|value| value.text() == "true");
    let content =
        result.member("content").is_some_and(|content| content.elements().next().is_some());
    failed && !content && result.member("structuredContent").is_none()
}

/// The error for a call that ended because its client could not be asked. The server's own words are kept.
fn missing_capability(missing: ClientCapabilities, own: Option<&ErrorObject>) -> ErrorObject {
    let mut words = "the server had to ask something that this client does not offer".to_owned();
    if let Some(own) = own {
        words = format!("{words}; it said: {}", own.message);
    }
    ErrorObject::new(MISSING_CLIENT_CAPABILITY, words).with_data(&MissingCapability::new(missing))
}

/// The result that asks a modern client.
fn input_required(requests: &str, handle: &str, info: &str) -> JsonBuf {
    let meta = format!("{{\"{}\":{info}}}", meta_keys::SERVER_INFO);
    JsonBuf::copied(&[
        "{\"resultType\":\"input_required\",\"inputRequests\":",
        requests,
        ",\"requestState\":\"",
        handle,
        "\",\"_meta\":",
        &meta,
        "}",
    ])
}

impl Flow {
    fn next_key(&mut self) -> String {
        self.keys += 1;
        format!("q{}", self.keys)
    }

    /// The open questions as JSON.
    fn open_questions(&self) -> String {
        input_requests(self.open.iter().map(|(key, asked)| {
            let params = asked.params.as_deref().map(JsonRef::sound);
            (key.clone(), modern_question(asked.method, params))
        }))
    }

    /// The pages that an error names, as questions in JSON; `None` if it names none.
    fn pages_of(&mut self, error: &ErrorObject) -> Option<String> {
        let pages = JsonRef::from(error.data.as_deref()?).member("elicitations")?.elements();
        let questions = pages.map(|page| modern_question(Method::Elicit, Some(page)));
        let text = input_requests(questions.map(|question| (self.next_key(), question)));
        (text != "{}").then_some(text)
    }
}

/// The `inputRequests` of a result: keys and questions.
fn input_requests(entries: impl Iterator<Item = (String, String)>) -> String {
    let mut out = Vec::new();
    let mut object = ObjectWriter::new(&mut out);
    for (key, question) in entries {
        object.member(&key).extend_from_slice(question.as_bytes());
    }
    object.end();
    // Made of JSON text only, which is UTF-8.
    String::from_utf8(out).unwrap_or_else(|_| "{}".to_owned())
}

/// Passes reports of progress to the request that goes on with the call now.
fn watcher(reports: &Arc<Mutex<Reports>>) -> Watcher {
    let reports = reports.clone();
    Box::new(move |report| {
        let Reports { request, token } = &*lock(&reports);
        if let Some(token) = token {
            request.report(JsonRef::from(report), token);
        }
    })
}
