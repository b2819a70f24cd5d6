//! The questions of one run of a handler, and how a run stops to ask them.
//!
//! Knows the memory of earlier runs and who waits for which answer; must not know what is asked.
//! MRTR-01 to MRTR-13: in the modern era a run that needs an answer ends, and nothing is kept.

use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::sync::{Arc, Mutex, OnceLock};
use std::task::{Context, Poll, Waker};

use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::{AskError, Call};
use crate::driver::{Either, Flag, first};
use crate::lock::lock;
use crate::mcp::{Memory, Question};
use crate::rpc::ErrorObject;

/// The questions of one run, and what earlier runs have learnt.
#[derive(Default)]
pub(crate) struct Questions {
    state: Mutex<QuestionState>,
    /// Raised when the run has ended: a question that another task asks then is not answered. Made when it
    /// is first needed, because few calls ask.
    over: OnceLock<Flag>,
}

#[derive(Default)]
struct QuestionState {
    /// Most runs ask nothing and remember nothing; those have none.
    round: Option<Box<Round>>,
    /// Who polls the run; woken when a question is asked from another task.
    runner: Option<Waker>,
}

/// What was asked in this run, and answered before it.
#[derive(Default)]
struct Round {
    memory: Memory,
    /// How often each question was put in this run, by its key or its digest.
    put: BTreeMap<String, usize>,
    open: BTreeMap<String, Question>,
    refused: Option<ErrorObject>,
}

impl QuestionState {
    fn round(&mut self) -> &mut Round {
        self.round.get_or_insert_default()
    }
}

/// How a run ended.
pub(crate) enum Run<T> {
    Done(T),
    Refused(ErrorObject),
    Asking(BTreeMap<String, Question>, Memory),
}

impl Questions {
    pub(crate) fn remembering(memory: Memory) -> Self {
        let round = Some(Box::new(Round { memory, ..Round::default() }));
        Self { state: Mutex::new(QuestionState { round, runner: None }), over: OnceLock::new() }
    }

    /// Puts a question, under a key of its own if one is given; ready when an earlier round has brought
    /// the answer. Dropped, it is not asked.
    pub(crate) async fn put<T: DeserializeOwned>(
        &self,
        question: Question,
        key: Option<&str>,
    ) -> Result<T, AskError> {
        let key = self.name(&question, key);
        let _open = OpenQuestion { questions: self, key: &key };
        let answered = poll_fn(|_| self.poll_answer(&question, &key));
        match first(self.over(), answered).await {
            Either::First(()) => Err(AskError::Ended),
            Either::Second(answer) => Ok(answer),
        }
    }

    /// What names the question across runs.
    fn name(&self, question: &Question, key: Option<&str>) -> String {
        let name = key.map_or_else(|| question.digest(), str::to_owned);
        let mut state = lock(&self.state);
        let times = state.round().put.entry(name.clone()).or_default();
        *times += 1;
        match (key, *times) {
            (Some(_), 1) => name,
            (_, times) => format!("{times}-{name}"),
        }
    }

    fn poll_answer<T: DeserializeOwned>(&self, question: &Question, key: &str) -> Poll<T> {
        let mut state = lock(&self.state);
        let round = state.round();
        match round.memory.answers.get(key).map(|raw| serde_json::from_str(raw.get())) {
            Some(Ok(answer)) => return Poll::Ready(answer),
            // MRTR-12
            Some(Err(error)) => {
                round.refused = Some(ErrorObject::invalid_params(format!(
                    "inputResponses.{key} is no answer to {}: {error}",
                    question.method
                )));
            }
            None => {
                round.open.insert(key.to_owned(), question.clone());
            }
        }
        // The run ends here; whoever polls it sees the question.
        if let Some(runner) = state.runner.take() {
            runner.wake();
        }
        Poll::Pending
    }

    pub(crate) fn is_over(&self) -> bool {
        self.over.get().is_some_and(Flag::is_raised)
    }

    /// The run is over: a question that another task asks must not wait for ever.
    fn end(&self) {
        self.over.get_or_init(Flag::default).raise();
    }

    /// Waits for the end of the run.
    pub(crate) fn over(&self) -> impl Future<Output = ()> + Send + use<> {
        self.over.get_or_init(Flag::default).raised()
    }

    pub(crate) fn remembered(&self, key: &str) -> Option<Box<RawValue>> {
        lock(&self.state).round.as_ref()?.memory.onces.get(key).cloned()
    }

    pub(crate) fn remember(&self, key: &str, value: Box<RawValue>) {
        lock(&self.state).round().memory.onces.insert(key.to_owned(), value);
    }

    /// Whether the run waits for the client. Called after each poll that was not ready.
    pub(crate) fn poll_standing<T>(&self, cx: &Context<'_>) -> Poll<Run<T>> {
        let mut state = lock(&self.state);
        if let Some(round) = &mut state.round {
            if let Some(error) = round.refused.take() {
                return Poll::Ready(Run::Refused(error));
            }
            if !round.open.is_empty() {
                let open = std::mem::take(&mut round.open);
                return Poll::Ready(Run::Asking(open, std::mem::take(&mut round.memory)));
            }
        }
        state.runner = Some(cx.waker().clone());
        Poll::Pending
    }
}

/// A question that was put. Dropped, it is not asked.
struct OpenQuestion<'a> {
    questions: &'a Questions,
    key: &'a str,
}

impl Drop for OpenQuestion<'_> {
    fn drop(&mut self) {
        lock(&self.questions.state).round().open.remove(self.key);
    }
}

/// A run that has not ended. Dropped, the run is over.
pub(crate) struct Running<'a, S>(pub(crate) &'a Call<S>);

impl<S> Drop for Running<'_, S> {
    fn drop(&mut self) {
        // If this is the only reference to the call, no other task can ask.
        if Arc::strong_count(&self.0.inner) > 1 {
            self.0.inner.questions.end();
        }
    }
}
