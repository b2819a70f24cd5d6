//! Being asked in the modern era: a result that is a question, and the request sent again.
//!
//! Knows rounds: all questions of one are put side by side, the answers go back under the same keys
//! with the same state, and after some rounds it ends. Must not know who answers (`answering.rs`). MRTR-01
//! to MRTR-08, MRTR-15 to MRTR-17.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::task::JoinSet;

use super::{Received, Request};
use crate::client::answering::{HostQuestion, not_offered};
use crate::client::connection::{ClientShared, RequestContext};
use crate::driver::Flag;
use crate::error::{Error, Result};
use crate::mcp::Method;
use crate::rpc::ErrorObject;

/// Questions in one round at most: a person has to answer them.
const MAX_QUESTIONS: usize = 64;

/// MRTR-08: the pause before the second try, if a server only says "again". It doubles with each try.
const PAUSE: Duration = Duration::from_millis(100);

/// The longest pause. A caller waits meanwhile, so it is short.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// What a server wants before it finishes a request.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RequiredInput {
    input_requests: Option<BTreeMap<String, InputRequest>>,
    /// As it came: it goes back byte for byte (MRTR-06).
    request_state: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
struct InputRequest {
    method: String,
    params: Option<Box<RawValue>>,
}

impl RequiredInput {
    /// Reads what is wanted out of a result.
    pub(super) fn read(raw: &RawValue, method: Cow<'static, str>) -> Result<Self> {
        let broken =
            |what: String| Err(Error::Violation { method: method.clone(), what: what.into() });
        let asks: Self = match serde_json::from_str(raw.get()) {
            Ok(asks) => asks,
            Err(error) => return broken(format!("what it asks for cannot be read: {error}")),
        };
        match (&asks.input_requests, &asks.request_state) {
            // MRTR-02
            (None, None) => broken("it wants input and does not say which".into()),
            (_, Some(state)) if !state.get().starts_with('"') => {
                broken("its requestState is no string".into())
            }
            (Some(questions), _) if questions.len() > MAX_QUESTIONS => {
                broken(format!("it asks {} things at once", questions.len()))
            }
            _ => Ok(asks),
        }
    }
}

/// What goes back with the request.
pub(super) struct Retry {
    /// Answers by the keys of their questions; nothing if nothing was asked.
    pub(super) responses: Option<BTreeMap<String, Box<RawValue>>>,
    pub(super) state: Option<Box<RawValue>>,
}

/// Answers and asks again until there is a result.
pub(super) async fn rounds<T: Send + 'static>(
    request: Request<T>,
    first: RequiredInput,
) -> Result<T> {
    let shared = request.shared.clone();
    let limit = shared.settings().rounds;
    let mut pause = PAUSE;
    let mut asks = first;
    for _ in 0..limit {
        let RequiredInput { input_requests, request_state } = asks;
        let responses = match input_requests.filter(|questions| !questions.is_empty()) {
            Some(questions) => {
                Some(fulfil(&shared, request.subject.method.clone(), questions).await?)
            }
            None => {
                rest(&shared, pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
                None
            }
        };
        let retry = Retry { responses, state: request_state };
        // MRTR-17: a request of its own, with its own id, token and time.
        let pending = request.put(Some(&retry))?;
        match pending.await.flatten() {
            Some(Received::Result(result)) => return result,
            Some(Received::Input(next)) => asks = next,
            None => return Err(request.lost()),
        }
    }
    let what = format!("it still asks for input after {limit} rounds of answers").into();
    Err(Error::Violation { method: request.subject.method.clone(), what })
}

/// Waits, on whatever executor the caller runs.
async fn rest(shared: &ClientShared, pause: Duration) {
    let sleep = {
        let _inside = shared.session.state.runtime.enter();
        tokio::time::sleep(pause)
    };
    sleep.await;
}

/// Puts all questions of a round to the host, side by side.
async fn fulfil(
    shared: &Arc<ClientShared>,
    method: Cow<'static, str>,
    questions: BTreeMap<String, InputRequest>,
) -> Result<BTreeMap<String, Box<RawValue>>> {
    let refused = |asked: String, error: ErrorObject| {
        Err(Error::InputRequired { method: method.clone(), asked, error: Box::new(error) })
    };
    // All are looked at first: no handler is asked in a round that cannot end well.
    let mut ready: Vec<(String, String, HostQuestion)> = Vec::with_capacity(questions.len());
    for (key, InputRequest { method: asked, params }) in questions {
        match read(shared, &asked, params.as_deref()) {
            Ok(question) => ready.push((key, asked, question)),
            Err(error) => {
                shared.session.state.monitor.refused(&asked);
                return refused(asked, error);
            }
        }
    }
    // Tasks of their own: they run side by side, and a panic in one is an answer like another.
    let mut running = JoinSet::new();
    for (key, asked, question) in ready {
        let state = shared.session.state.clone();
        let revision = shared.agreed.revision;
        let answer = async move {
            let context = RequestContext::new(state, Flag::default());
            (key, asked, question.ask(context, revision).await)
        };
        running.spawn_on(answer, &shared.session.state.runtime);
    }
    let mut responses = BTreeMap::new();
    while let Some(joined) = running.join_next().await {
        match joined {
            Ok((key, _, Ok(answer))) => drop(responses.insert(key, answer)),
            // MRTR-15: a "no" to a form is an answer. An error of the handler is not, so there is no retry.
            Ok((_, asked, Err(error))) => return refused(asked, error),
            Err(error) => {
                let why = if error.is_panic() { "its handler panicked" } else { "no runtime" };
                return refused("an answer".to_owned(), ErrorObject::internal(why));
            }
        }
    }
    Ok(responses)
}

fn read(
    shared: &ClientShared,
    method: &str,
    params: Option<&RawValue>,
) -> Result<HostQuestion, ErrorObject> {
    // MRTR-03
    let known = Method::parse(method).filter(|method| method.is_embedded_in_modern());
    let known = known.ok_or_else(|| not_offered(method))?;
    HostQuestion::read(&shared.session.state, known, params)
}
