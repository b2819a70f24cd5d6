//! One connection of a server: each request is judged, routed and answered.
//!
//! Knows which method needs what; must not know how bytes move. Notifications take effect in order,
//! requests run side by side.

mod routes;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::value::RawValue;
use tokio::sync::watch;

use super::call::{Call, CallState, Connection, Handler, Questions, ServerShared};
use super::catalog::{Catalog, List, stamp};
use super::handler::unix_time;
use super::settings::CallEvent;
use super::subscriber::Subscriber;
use crate::driver::{AnswerFuture, Flag, IncomingRequest, Link, Outcome, Service, first, ready};
use crate::json::{JsonBuf, JsonRef};
use crate::lock::lock;
use crate::mcp::{
    Accept, DiscoverResult, EmptyResult, InitializeResult, Level, Memory, Method, Revision,
    SubscriptionFilter, Target, Terms, Verdict, WriteJson, meta_keys,
};
use crate::rpc::{ErrorObject, NoId, Params, Trouble};
use crate::service::Reporter;
use crate::transport::Principal;

/// A request that is to be served, and under which rules.
pub(super) struct Query<'a> {
    request: &'a IncomingRequest<'a>,
    terms: Arc<Terms>,
}

/// One connection.
pub(super) struct ServerSession<S> {
    connection: Arc<Connection<S>>,
    /// What was offered when a request last came.
    catalog: Arc<Catalog<Handler<S>>>,
    changes: watch::Receiver<Arc<Catalog<Handler<S>>>>,
    accept: Accept,
    /// Raised when the input has ended: streams end with it.
    closing: Flag,
    reporter: Reporter,
}

impl<S: Send + Sync + 'static> ServerSession<S> {
    pub(super) fn new(
        shared: Arc<ServerShared<S>>,
        link: Link,
        on_stdio: bool,
        principal: Principal,
    ) -> Self {
        // Until a revision is agreed the newest rules hold: no id rather than null (RPC-12), and an
        // array is no message (RPC-26).
        link.agree(NoId::Absent, false);
        let subscriber = Arc::new(Subscriber::new(link.clone(), shared.settings.follow));
        shared.add_subscriber(&subscriber);
        let mut changes = shared.catalog.subscribe();
        let catalog = changes.borrow_and_update().clone();
        // LOG-05: until the client says, it hears what is not for debugging.
        let level = Mutex::new(Level::Info);
        let lost_logs = AtomicUsize::new(0);
        let connection = Connection { shared, link, subscriber, level, principal, lost_logs };
        Self {
            connection: Arc::new(connection),
            catalog,
            changes,
            accept: Accept::default(),
            closing: Flag::default(),
            reporter: Reporter::new(on_stdio),
        }
    }

    fn welcome(&self, revision: Revision) -> InitializeResult {
        let no_id = if revision.has_errors_without_id() { NoId::Absent } else { NoId::Null };
        self.connection.link.agree(no_id, revision.has_batches());
        let shared = &self.connection.shared;
        let offer = shared.catalog.borrow().capabilities(&shared.settings).clone();
        let instructions = shared.settings.instructions.clone();
        let info = shared.info.clone();
        InitializeResult { instructions, ..InitializeResult::new(revision.as_str(), offer, info) }
    }

    fn serve(&mut self, method: Method, query: Query<'_>) -> Result<AnswerFuture, ErrorObject> {
        // It fails when there is no server any more, which we hold.
        if self.changes.has_changed().unwrap_or_default() {
            self.catalog = self.changes.borrow_and_update().clone();
        }
        self.is_offered(method)?;
        let (params, revision) = (query.request.params, query.terms.revision);
        let list = match method {
            Method::CallTool => return self.call_tool(query),
            Method::ReadResource => return self.read_resource(query),
            Method::GetPrompt => return self.get_prompt(query),
            Method::Complete => return self.complete(query),
            Method::Discover => return Ok(done(&self.discover(), revision)),
            Method::Listen => return self.listen(query.request),
            Method::SetLevel => {
                self.set_level(params)?;
                return Ok(done(&EmptyResult::new(), revision));
            }
            Method::Subscribe => {
                self.connection.subscriber.follow(params.required("uri")?)?;
                return Ok(done(&EmptyResult::new(), revision));
            }
            Method::Unsubscribe => {
                self.connection.subscriber.unfollow(params.required("uri")?);
                return Ok(done(&EmptyResult::new(), revision));
            }
            Method::ListTools => List::Tools,
            Method::ListResources => List::Resources,
            Method::ListResourceTemplates => List::Templates,
            Method::ListPrompts => List::Prompts,
            _ => return Err(ErrorObject::method_not_found(method.as_str())),
        };
        let cursor = params.optional::<String>("cursor")?;
        let ServerShared { settings, info_json, .. } = &*self.connection.shared;
        Ok(ready(self.catalog.page(settings, info_json, list, revision, cursor.as_deref())))
    }

    /// ERR-13, ERR-14: a method whose capability is not advertised is unknown.
    fn is_offered(&self, method: Method) -> Result<(), ErrorObject> {
        let offer = self.catalog.capabilities(&self.connection.shared.settings);
        let offered = match method {
            Method::ListTools | Method::CallTool => offer.tools.is_some(),
            Method::ListResources | Method::ListResourceTemplates | Method::ReadResource => {
                offer.resources.is_some()
            }
            Method::ListPrompts | Method::GetPrompt => offer.prompts.is_some(),
            Method::Complete => offer.completions.is_some(),
            Method::SetLevel => offer.logging.is_some(),
            // RES-07
            Method::Subscribe | Method::Unsubscribe => {
                offer.resources.as_ref().is_some_and(|offer| offer.subscribe == Some(true))
            }
            _ => true,
        };
        if offered { Ok(()) } else { Err(ErrorObject::method_not_found(method.as_str())) }
    }

    fn discover(&self) -> DiscoverResult {
        let ServerShared { settings, info_json, .. } = &*self.connection.shared;
        let offer = self.catalog.capabilities(settings).clone();
        let result = DiscoverResult::new([Revision::MODERN.to_string()], offer)
            .ttl(settings.ttl)
            .cache_scope(settings.cache_scope.clone())
            .meta(stamp(info_json));
        DiscoverResult { instructions: settings.instructions.clone(), ..result }
    }

    fn set_level(&self, params: &Params<'_>) -> Result<(), ErrorObject> {
        let level = params.required::<Level>("level")?;
        // LOG-03
        if !level.is_known() {
            return Err(ErrorObject::invalid_params(format!("unknown level {level}")));
        }
        *lock(&self.connection.level) = level;
        Ok(())
    }

    /// A stream of changes: open until the client cancels it or the input ends (SUB-05).
    fn listen(&self, request: &IncomingRequest<'_>) -> Result<AnswerFuture, ErrorObject> {
        // SUB-11
        let filter = request.params.required::<SubscriptionFilter>("notifications")?;
        let shared = &self.connection.shared;
        let honoured = filter.honoured_by(self.catalog.capabilities(&shared.settings));
        let stream = self.connection.subscriber.listen(request, honoured)?;
        let (id, info) = (request.id.clone(), shared.info_json.clone());
        let over = first(request.cancelled.raised(), self.closing.raised());
        Ok(Box::pin(async move {
            over.await;
            // SUB-07, SUB-09: nothing is said on it any more, and then comes the result, which is
            // written unless the stream was cancelled.
            drop(stream);
            let mut end = EmptyResult::end_of_subscription(id);
            end.meta.get_or_insert_default().insert(meta_keys::SERVER_INFO, info);
            write_for(&end, Revision::MODERN)
        }))
    }

    /// What earlier runs of this request have learnt, and the answers that it brings (MRTR-05).
    fn memory(
        &self,
        params: &Params<'_>,
        method: Method,
        name: &str,
        arguments: Option<JsonRef<'_>>,
    ) -> Result<Option<Memory>, ErrorObject> {
        type Answers = BTreeMap<String, Box<RawValue>>;
        let answers = params.optional::<Answers>("inputResponses")?;
        let Some(state) = params.optional::<String>("requestState")? else {
            // MRTR-12: answers to what nobody asked are passed over.
            return Ok(None);
        };
        let bound_to = self.connection.binding(method, name, arguments.map(JsonRef::text));
        let seal_key = &self.connection.shared.settings.seal_key;
        let mut memory = seal_key
            .open(&state, &bound_to, unix_time())
            .map_err(|bad| ErrorObject::invalid_params(bad.to_string()))?;
        memory.learn(answers.unwrap_or_default());
        Ok(Some(memory))
    }

    /// A request becomes a call, unless `on_call` refuses it.
    fn begin(
        &self,
        query: Query<'_>,
        method: Method,
        name: Arc<str>,
        arguments: Option<JsonRef<'_>>,
    ) -> Result<Call<S>, ErrorObject> {
        let Query { request, terms } = query;
        // All that can be wrong with the request is found before `on_call` is told that it starts.
        terms.progress_token.as_ref().map_err(ErrorObject::clone)?;
        let memory = match terms.revision.is_modern() && method.may_require_input() {
            true => self.memory(request.params, method, &name, arguments)?,
            false => None,
        };
        let questions = memory.map_or_else(Questions::default, Questions::remembering);
        if let Some(on_call) = &self.connection.shared.settings.on_call {
            let client = terms.asker.info.as_ref().map(|info| info.name.as_str());
            on_call(&CallEvent::Started { method: method.as_str(), name: &name, client })
                .map_err(ErrorObject::from)?;
        }
        // Only a client that can be asked needs what a question is bound to.
        let capabilities = &terms.asker.capabilities;
        let can_answer = terms.revision.is_modern()
            && (capabilities.elicitation.is_some()
                || capabilities.sampling.is_some()
                || capabilities.roots.is_some());
        let arguments = arguments.filter(|_| can_answer).map(|raw| raw.text().into());
        Ok(Call {
            inner: Arc::new(CallState {
                connection: self.connection.clone(),
                id: request.id.clone(),
                serial: request.serial,
                cancelled: request.cancelled.clone(),
                terms,
                method,
                name,
                began: request.now,
                reported: Mutex::default(),
                ended: AtomicBool::new(false),
                questions,
                arguments,
            }),
        })
    }
}

impl<S: Send + Sync + 'static> Service for ServerSession<S> {
    fn request(&mut self, request: IncomingRequest<'_>) -> AnswerFuture {
        let answer = match self.accept.judge(request.method, request.params) {
            Verdict::Refuse(error) => Err(error),
            Verdict::Pong => Ok(done(&EmptyResult::new(), Revision::LATEST_LEGACY)),
            Verdict::Welcome(revision) => Ok(done(&self.welcome(revision), revision)),
            Verdict::Serve(method, terms) => self.serve(method, Query { request: &request, terms }),
        };
        answer.unwrap_or_else(|error| ready(Err(error)))
    }

    fn notification(&mut self, method: &str, _: &Params<'_>) {
        // RPC-11, DEP-03: any other notification is ignored, and none is answered.
        if let (Some(Method::Initialized), Some(terms)) =
            (Method::parse(method), self.accept.session())
        {
            self.connection.subscriber.initialized(terms.revision);
        }
    }

    fn pump(&mut self) -> bool {
        self.connection.subscriber.pump()
    }

    fn input_ended(&mut self) {
        // SUB-14: an open stream does not keep the process.
        self.closing.raise();
    }

    fn trouble(&mut self, trouble: &Trouble) {
        self.reporter.trouble(trouble);
    }

    fn blocked(&mut self, method: &str, params: &Params<'_>, took: Duration) {
        let name = params.optional::<String>("name").ok().flatten();
        let what = name.map_or_else(|| method.to_owned(), |name| format!("tool {name:?}"));
        self.reporter.say(&format!(
            "{what} kept the connection waiting for {took:?}: register it with blocking_tool, or \
             await instead of blocking"
        ));
    }
}

/// An answer that is ready, written for `revision`.
fn done(value: &impl WriteJson, revision: Revision) -> AnswerFuture {
    ready(write_for(value, revision))
}

fn write_for(value: &impl WriteJson, revision: Revision) -> Outcome {
    Ok(JsonBuf::default().written(|out| value.write_json(Target::of(revision), out)))
}
