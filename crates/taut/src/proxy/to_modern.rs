//! What a legacy client needs of a modern server.
//!
//! Knows the legacy session and which modern requests take its place; must not know how messages travel.
//! Questions that come inside a result are asked of the client, and the request is sent again with the
//! answers. Subscriptions become one stream of changes (`following.rs`).

use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::following;
use super::state::{Back, FrontRequest, FrontState, LegacySession, ProxiedCall, WayToAsk};
use super::text::{JsonText, with_token};
use super::translate::{
    EmbeddedQuestion, ResultKind, failed_tool, input_requests, kind_of_result, legacy_error,
    legacy_question, legacy_result, modern_params, progress_token,
};
use crate::driver::{Outcome, Watcher};
use crate::json::edit::{Edit, edited};
use crate::json::{JsonBuf, JsonRef, ObjectWriter};
use crate::lock::lock;
use crate::mcp::{Level, Method, Revision};
use crate::rpc::{ErrorObject, Params, PeerRequest};

/// How often one request may be answered with questions before it is given up (MRTR-16).
const ROUNDS: usize = 10;

/// Serves a request of a legacy session whose server is modern.
pub(super) fn serve(
    front: &Arc<FrontState>,
    session: &Arc<LegacySession>,
    back: &Arc<Back>,
    request: PeerRequest<'_>,
) {
    let PeerRequest { ticket, method, params, .. } = request;
    let known = Method::parse(&method);
    let offer = back.capabilities();
    let answer = |outcome: Outcome, ticket| front.link.answer(ticket, outcome);
    let empty = || Ok(JsonBuf::copied(&["{}"]));
    match known {
        Some(Method::Ping) => answer(empty(), ticket),
        Some(Method::SetLevel) => {
            let level: Result<Level, _> = params.required("level");
            let outcome = match level {
                _ if offer.logging.is_none() => Err(ErrorObject::method_not_found(&method)),
                Ok(level) if level.is_known() => {
                    *lock(&session.level) = Some(level);
                    empty()
                }
                Ok(level) => Err(ErrorObject::invalid_params(format!("unknown level {level}"))),
                Err(error) => Err(error),
            };
            answer(outcome, ticket);
        }
        Some(subscription @ (Method::Subscribe | Method::Unsubscribe)) => {
            let subscribes = offer.resources.as_ref().and_then(|offer| offer.subscribe);
            let uri: Result<String, _> = params.required("uri");
            let uri = match uri {
                _ if subscribes != Some(true) => {
                    return answer(Err(ErrorObject::method_not_found(&method)), ticket);
                }
                Err(error) => return answer(Err(error), ticket),
                Ok(uri) => uri,
            };
            let adds = subscription == Method::Subscribe;
            front.spawn(ticket, following::change(session, front, back, adds, uri));
        }
        // What only one of the two sides knows is no method for this client.
        Some(known) if known.known_in(Revision::MODERN) && known.known_in(session.revision()) => {
            let forward = Forward {
                request: FrontRequest::new(front, &ticket),
                session: session.clone(),
                back: back.clone(),
                method: known,
                params: params.into_owned(),
                progress: Arc::default(),
            };
            front.spawn(ticket, forward.run());
        }
        _ => answer(Err(ErrorObject::method_not_found(&method)), ticket),
    }
}

/// How far the reports of progress have come, over all rounds of a request.
#[derive(Default)]
struct ProgressSoFar {
    last: f64,
    offset: f64,
}

/// A request on its way to a modern server.
struct Forward {
    request: FrontRequest,
    session: Arc<LegacySession>,
    back: Arc<Back>,
    method: Method,
    params: Params<'static>,
    progress: Arc<Mutex<ProgressSoFar>>,
}

impl Forward {
    async fn run(self) -> Outcome {
        let _turn = self.back.turn().await;
        let mut answers: Option<String> = None;
        let mut state: Option<String> = None;
        let mut pause = Duration::from_millis(250);
        for _ in 0..=ROUNDS {
            let outcome = self.ask_server(answers.as_deref(), state.as_deref()).await;
            let result = match outcome {
                Ok(result) => result,
                Err(error) => return self.failed(error),
            };
            let result = result.as_json();
            if kind_of_result(result) != ResultKind::InputRequired
                || !self.method.may_require_input()
            {
                let text = legacy_result(Some(self.method), result, self.session.revision())?;
                return Ok(JsonBuf::copied(&[&text]));
            }
            state = result.member("requestState").map(|state| state.text().to_owned());
            let questions = input_requests(result).map_err(|why| {
                ErrorObject::internal(format!("the server asks for input: {why}"))
            })?;
            answers = match questions.is_empty() {
                true => {
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(Duration::from_secs(30));
                    None
                }
                false => match self.ask_client(&questions).await {
                    Ok(answers) => Some(answers),
                    Err(why) => return self.given_up(&why),
                },
            };
            let mut progress = lock(&self.progress);
            progress.offset = progress.last;
        }
        Err(ErrorObject::internal(format!("the server asked for input more than {ROUNDS} times")))
    }

    /// Sends the request, with the answers of the last round.
    async fn ask_server(&self, answers: Option<&str>, state: Option<&str>) -> Outcome {
        let envelope = self.session.envelope();
        let mut added = Vec::new();
        added.extend(answers.map(|answers| ("inputResponses", answers)));
        added.extend(state.map(|state| ("requestState", state)));
        // A modern server asks inside its results.
        let call = ProxiedCall::new(self.request.clone(), WayToAsk::Refused);
        let token = progress_token(&self.params);
        let watcher = token.map(|token| self.watcher(token.text().to_owned()));
        let params = |token: &str| modern_params(&self.params, &envelope, token, &added);
        let mut calling = self.back.call(call, self.method.as_str(), params, watcher);
        calling.answer().await
    }

    /// Passes reports of progress on. A server begins anew in each round; the client sees one rise.
    fn watcher(&self, token: String) -> Watcher {
        let (request, progress) = (self.request.clone(), self.progress.clone());
        Box::new(move |params| {
            let params = JsonRef::from(params);
            let Some(mut text) = with_token(params, &token) else { return };
            let value: Option<f64> = params.member("progress").and_then(|value| value.read().ok());
            let mut progress = lock(&progress);
            let sum = value.map(|value| progress.offset + value).filter(|sum| sum.is_finite());
            match sum {
                // In a later round only what is larger than all before (PRG-04); no sum is larger than all numbers.
                None if progress.offset > 0.0 => return,
                Some(sum) if progress.offset > 0.0 && sum <= progress.last => return,
                Some(sum) => progress.last = sum,
                None => {}
            }
            if progress.offset > 0.0 {
                let last = progress.last.to_string();
                text = edited(
                    JsonRef::sound(&text),
                    |name, _| match name {
                        "progress" => Edit::Put(last.clone()),
                        // It would shrink.
                        "total" => Edit::Drop,
                        _ => Edit::Keep,
                    },
                    &[],
                );
            }
            drop(progress);
            request.tell(Method::Progress.as_str(), text);
        })
    }

    /// Asks the client everything at once. Returns the answers as JSON.
    async fn ask_client(&self, questions: &[EmbeddedQuestion]) -> Result<String, String> {
        let revision = self.session.revision();
        let mut asked = Vec::new();
        for (place, question) in questions.iter().enumerate() {
            let params = JsonRef::from(question.params.raw());
            let capabilities = &self.session.asker.capabilities;
            if !EmbeddedQuestion::fits(question.method, Some(params), capabilities) {
                return Err(format!("this client does not offer {}", question.method.as_str()));
            }
            let visit = format!("{}-{place}", self.request.serial);
            let text = JsonText(legacy_question(question, revision, &visit));
            let FrontRequest { front, id, .. } = &self.request;
            let answer = front.ask(Some(id), question.method.as_str(), |_| Some(text), None);
            asked.push((question, answer));
        }
        let mut answers = Vec::new();
        let mut object = ObjectWriter::new(&mut answers);
        for (question, answer) in asked {
            let answer = answer.await.map_err(|error| {
                format!("{} was not answered: {error}", question.method.as_str())
            })?;
            object.member(&question.key).extend_from_slice(answer.as_json().text().as_bytes());
        }
        object.end();
        String::from_utf8(answers).map_err(|error| error.to_string())
    }

    /// A question was not answered: the request ends, and the server never learns of it.
    fn given_up(&self, why: &str) -> Outcome {
        match self.method {
            Method::CallTool => Ok(JsonBuf::copied(&[&failed_tool(why)])),
            _ => Err(ErrorObject::internal(why.to_owned())),
        }
    }

    fn failed(&self, error: ErrorObject) -> Outcome {
        let uri = self.params.optional::<String>("uri").ok().flatten();
        let text = legacy_error(Some(self.method), uri.as_deref(), error)?;
        Ok(JsonBuf::copied(&[&text]))
    }
}
