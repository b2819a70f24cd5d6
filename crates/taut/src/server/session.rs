//! One connection of a server: each request is judged, routed and answered.
//!
//! Knows which method wants what; must not know how bytes move. Notifications take effect in
//! order, requests run side by side.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use serde_json::value::RawValue;

use super::Shared;
use super::call::{Call, Connection, Ongoing, SessionLevel};
use super::handler::{Written, unix_time};
use super::hook::Moment;
use super::registry::{List, Registry, stamp};
use super::rounds::Asks;
use super::snapshot::Seen;
use super::subscriber::{Subscriber, end_of_stream};
use crate::driver::{Incoming, Link, Service, Started, Token};
use crate::json::JsonRef;
use crate::mcp::{
    Accept, DiscoverResult, EmptyResult, InitializeResult, Level, Memory, Method, Revision,
    SubscriptionFilter, Terms, Verdict, WriteJson, binding, meta_keys, resource_not_found,
};
use crate::rpc::{ErrorObject, NoId, Params, Trouble};
use crate::service::Reporter;

/// A request that is to be served, and under which rules.
pub(super) struct Query<'a> {
    pub(super) incoming: &'a Incoming<'a>,
    pub(super) terms: Arc<Terms>,
    pub(super) params: &'a Params<'a>,
}

/// One connection.
pub(super) struct Session<S> {
    pub(super) connection: Arc<Connection<S>>,
    /// What was offered when a request last came.
    offer: Seen<Registry<S>>,
    accept: Accept,
    subscriber: Arc<Subscriber>,
    /// Raised when the input has ended: streams end with it.
    closing: Token,
    reporter: Reporter,
}

impl<S: Send + Sync + 'static> Session<S> {
    pub(super) fn new(shared: Arc<Shared<S>>, link: Link, on_stdio: bool) -> Self {
        {
            let mut state = link.lock();
            // Until a revision is agreed the newest rules hold: no id rather than null (RPC-12),
            // and an array is no message (RPC-26).
            state.peer.set_no_id(NoId::Absent);
            state.peer.allow_batches(false);
        }
        let subscriber = Arc::new(Subscriber::new(link.clone()));
        shared.introduce(&subscriber);
        Self {
            offer: shared.registry.seen(),
            connection: Arc::new(Connection { shared, link, level: SessionLevel::default() }),
            accept: Accept::default(),
            subscriber,
            closing: Token::default(),
            reporter: Reporter::new(on_stdio),
        }
    }

    fn answer(
        &mut self,
        incoming: &Incoming<'_>,
        json: &mut Vec<u8>,
    ) -> Result<Started, ErrorObject> {
        match self.accept.judge(incoming.method, incoming.params) {
            Verdict::Refuse(error) => Err(error),
            Verdict::Pong => Ok(done(EmptyResult::new(), Revision::LATEST_LEGACY, json)),
            Verdict::Welcome(revision) => Ok(done(self.welcome(revision), revision, json)),
            Verdict::Serve(method, terms) => self.serve(incoming, method, terms, json),
        }
    }

    fn welcome(&self, revision: Revision) -> InitializeResult {
        let no_id = if revision.has_errors_without_id() { NoId::Absent } else { NoId::Null };
        {
            let mut state = self.connection.link.lock();
            state.peer.set_no_id(no_id);
            state.peer.allow_batches(revision.has_batches());
        }
        let shared = &self.connection.shared;
        let mut result = InitializeResult::new(
            revision.as_str(),
            shared.registry.current().capabilities(&shared.settings).clone(),
            shared.info.clone(),
        );
        result.instructions = shared.settings.instructions.clone();
        result
    }

    fn serve(
        &mut self,
        incoming: &Incoming<'_>,
        method: Method,
        terms: Arc<Terms>,
        json: &mut Vec<u8>,
    ) -> Result<Started, ErrorObject> {
        let params = incoming.params;
        self.connection.shared.registry.look(&mut self.offer);
        let registry = self.offer.as_ref();
        self.is_offered(method, registry)?;
        let revision = terms.revision;
        let query = Query { incoming, terms, params };
        let list = match method {
            Method::CallTool => return self.call_tool(query, registry, json),
            Method::ReadResource => return self.read_resource(query, registry, json),
            Method::GetPrompt => return self.get_prompt(query, registry, json),
            Method::Complete => return self.complete(query, registry, json),
            Method::Discover => return Ok(done(self.discover(registry), revision, json)),
            Method::Listen => return self.listen(incoming, params, registry, json),
            Method::SetLevel => {
                self.set_level(params)?;
                return Ok(done(EmptyResult::new(), revision, json));
            }
            Method::Subscribe => {
                self.subscriber.follow(params.required::<String>("uri").map_err(invalid)?)?;
                return Ok(done(EmptyResult::new(), revision, json));
            }
            Method::Unsubscribe => {
                self.subscriber.unfollow(&params.required::<String>("uri").map_err(invalid)?);
                return Ok(done(EmptyResult::new(), revision, json));
            }
            Method::ListTools => List::Tools,
            Method::ListResources => List::Resources,
            Method::ListResourceTemplates => List::Templates,
            Method::ListPrompts => List::Prompts,
            _ => return Err(ErrorObject::method_not_found(method.as_str())),
        };
        let cursor = params.optional::<String>("cursor").map_err(invalid)?;
        let page = registry.page(&self.connection.shared, list, revision, cursor.as_deref())?;
        Ok(Started::done(Ok(page), json))
    }

    /// ERR-13, ERR-14: what is not advertised is not there.
    fn is_offered(&self, method: Method, registry: &Registry<S>) -> Result<(), ErrorObject> {
        let offer = registry.capabilities(&self.connection.shared.settings);
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

    fn discover(&self, registry: &Registry<S>) -> DiscoverResult {
        let Shared { settings, info_json, .. } = &*self.connection.shared;
        let mut result = DiscoverResult::new(
            [Revision::MODERN.to_string()],
            registry.capabilities(settings).clone(),
        )
        .ttl(settings.ttl)
        .cache_scope(settings.cache_scope.clone())
        .meta(stamp(info_json));
        result.instructions = settings.instructions.clone();
        result
    }

    fn set_level(&self, params: &Params<'_>) -> Result<(), ErrorObject> {
        let level = params.required::<Level>("level").map_err(invalid)?;
        // LOG-03
        if !level.is_known() {
            return Err(ErrorObject::invalid_params(format!("unknown level {level}")));
        }
        self.connection.level.set(&level);
        Ok(())
    }

    /// A stream of changes: open until the client withdraws it or the input ends (SUB-05).
    fn listen(
        &self,
        incoming: &Incoming<'_>,
        params: &Params<'_>,
        registry: &Registry<S>,
        json: &mut Vec<u8>,
    ) -> Result<Started, ErrorObject> {
        // SUB-11
        let filter = params.required::<SubscriptionFilter>("notifications").map_err(invalid)?;
        let shared = &self.connection.shared;
        let honoured = filter.honoured_by(registry.capabilities(&shared.settings));
        let stream = self.subscriber.listen(incoming, honoured)?;
        let (id, info) = (incoming.id.clone(), shared.info_json.clone());
        let (closing, withdrawn) = (self.closing.clone(), incoming.token.clone());
        let work = async move {
            std::future::poll_fn(|cx| match withdrawn.poll_raised(cx) {
                Poll::Ready(()) => Poll::Ready(()),
                Poll::Pending => closing.poll_raised(cx),
            })
            .await;
            // SUB-07, SUB-09: nothing is said on it any more, and then the result, if it is wanted.
            drop(stream);
            let mut end = end_of_stream(&id);
            end.meta.get_or_insert_default().insert(meta_keys::SERVER_INFO, info);
            Ok(Written { value: end, revision: Revision::MODERN })
        };
        Ok(Started::polling(work, json))
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
        let answers = params.optional::<Answers>("inputResponses").map_err(invalid)?;
        let Some(state) = params.optional::<String>("requestState").map_err(invalid)? else {
            // MRTR-12: answers to what nobody asked are passed over.
            return Ok(None);
        };
        let bound_to = binding(method, name, arguments.map(JsonRef::text));
        let seal_key = &self.connection.shared.settings.seal_key;
        let mut memory = seal_key
            .open(&state, &bound_to, unix_time())
            .map_err(|bad| ErrorObject::invalid_params(bad.to_string()))?;
        memory.learn(answers.unwrap_or_default());
        Ok(Some(memory))
    }

    /// A request becomes a call, if the hook lets it.
    pub(super) fn begin(
        &self,
        query: Query<'_>,
        method: Method,
        name: Arc<str>,
        arguments: Option<JsonRef<'_>>,
    ) -> Result<Call<S>, ErrorObject> {
        let Query { incoming, terms, params } = query;
        let memory = match terms.revision.is_modern() && method.may_require_input() {
            true => self.memory(params, method, &name, arguments)?,
            false => None,
        };
        let asks = memory.map_or_else(Asks::default, Asks::remembering);
        if let Some(hook) = &self.connection.shared.settings.hook {
            let client = terms.asker.info.as_ref().map(|info| info.name.as_str());
            hook(&Moment::Began { method: method.as_str(), name: &name, client })
                .map_err(ErrorObject::from)?;
        }
        // Only who can be asked needs what a question is bound to.
        let capabilities = &terms.asker.capabilities;
        let can_answer = terms.revision.is_modern()
            && (capabilities.elicitation.is_some()
                || capabilities.sampling.is_some()
                || capabilities.roots.is_some());
        let arguments = arguments.filter(|_| can_answer).map(|raw| raw.text().into());
        if let Err(error) = &terms.progress_token {
            return Err(invalid(error));
        }
        Ok(Call {
            inner: Arc::new(Ongoing {
                connection: self.connection.clone(),
                id: incoming.id.clone(),
                serial: incoming.serial,
                withdrawn: incoming.token.clone(),
                terms,
                method,
                name,
                began: incoming.now,
                reported: Mutex::default(),
                ended: AtomicBool::new(false),
                asks,
                arguments,
            }),
        })
    }
}

impl<S: Send + Sync + 'static> Service for Session<S> {
    fn request(&mut self, incoming: Incoming<'_>, json: &mut Vec<u8>) -> Started {
        self.answer(&incoming, json).unwrap_or_else(|error| Started::Done(Err(error)))
    }

    fn notification(&mut self, method: &str, _: &Params<'_>) {
        // RPC-11, DEP-03: whatever else it is, it has no answer.
        if let (Some(Method::Initialized), Some(terms)) =
            (Method::parse(method), self.accept.session())
        {
            self.subscriber.initialized(terms.revision);
        }
    }

    fn pump(&mut self) -> bool {
        self.subscriber.pump()
    }

    fn input_ended(&mut self) {
        // SUB-14: an open stream does not keep the process.
        self.closing.raise();
    }

    fn trouble(&mut self, trouble: &Trouble) {
        self.reporter.trouble(trouble);
    }

    fn blocked(&mut self, method: &str, params: Option<&RawValue>, took: Duration) {
        let name = Params::from(params).optional::<String>("name").ok().flatten();
        let what = name.map_or_else(|| method.to_owned(), |name| format!("tool {name:?}"));
        self.reporter.say(&format!(
            "{what} kept the connection waiting for {took:?}: register it with blocking_tool, or \
             await instead of blocking"
        ));
    }
}

pub(super) fn invalid(error: impl std::fmt::Display) -> ErrorObject {
    ErrorObject::invalid_params(error.to_string())
}

pub(super) fn not_found(uri: &str, revision: Revision) -> ErrorObject {
    ErrorObject::new(resource_not_found(revision), "resource not found")
        .with_data(&serde_json::json!({ "uri": uri }))
}

/// An answer that is ready, written for `revision`.
fn done(value: impl WriteJson + Send, revision: Revision, json: &mut Vec<u8>) -> Started {
    Started::done(Ok(Written { value, revision }), json)
}
