//! The questions of one run of a handler, and how a run stops to ask them.
//!
//! Knows the memory of earlier runs and who waits for which answer; must not know what is asked.
//! MRTR-01 to MRTR-13: in the modern era a run that needs an answer ends, and nothing is kept.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::ask::AskError;
use super::call::Call;
use crate::mcp::{Memory, Question};
use crate::rpc::ErrorObject;

/// The questions of one run, and what earlier runs have learnt.
#[derive(Default)]
pub(super) struct Asks(Mutex<State>);

#[derive(Default)]
struct State {
    /// Most runs ask nothing and remember nothing; those have none.
    round: Option<Box<Round>>,
    /// Who polls the run; woken when a question is asked from another task.
    runner: Option<Waker>,
    /// Whether the run has ended: what still asks, in another task, asks in vain.
    over: bool,
    /// Who waits for an answer, or for the end of the run.
    waiting: Vec<Waker>,
}

/// What was asked in this run, and answered before it.
#[derive(Default)]
struct Round {
    memory: Memory,
    /// How often each question was put in this run, by its digest.
    put: BTreeMap<String, usize>,
    open: BTreeMap<String, Question>,
    refused: Option<ErrorObject>,
}

impl State {
    fn round(&mut self) -> &mut Round {
        self.round.get_or_insert_default()
    }

    fn wait(&mut self, cx: &Context<'_>) {
        if !self.waiting.iter().any(|waker| waker.will_wake(cx.waker())) {
            self.waiting.push(cx.waker().clone());
        }
    }
}

/// How a run ended.
pub(super) enum Run<T> {
    Done(T),
    Refused(ErrorObject),
    Asking(BTreeMap<String, Question>, Memory),
}

impl Asks {
    pub(super) fn remembering(memory: Memory) -> Self {
        let round = Some(Box::new(Round { memory, ..Round::default() }));
        Self(Mutex::new(State { round, ..State::default() }))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a question; ready when an earlier round has brought the answer.
    pub(super) fn put<T>(&self, question: Question) -> Putting<'_, T> {
        let digest = question.digest();
        let mut state = self.lock();
        let times = state.round().put.entry(digest.clone()).or_default();
        *times += 1;
        let key = format!("{times}-{digest}");
        Putting { asks: self, key, question, answer: std::marker::PhantomData }
    }

    pub(super) fn is_over(&self) -> bool {
        self.lock().over
    }

    /// Ready once the run is over.
    pub(super) fn poll_over(&self, cx: &Context<'_>) -> Poll<()> {
        let mut state = self.lock();
        if state.over {
            return Poll::Ready(());
        }
        state.wait(cx);
        Poll::Pending
    }

    pub(super) fn remembered(&self, key: &str) -> Option<Box<RawValue>> {
        self.lock().round.as_ref()?.memory.onces.get(key).cloned()
    }

    pub(super) fn remember(&self, key: &str, value: Box<RawValue>) {
        self.lock().round().memory.onces.insert(key.to_owned(), value);
    }

    /// Whether the run waits for the client. Called after each poll that was not ready.
    fn poll_standing<T>(&self, cx: &Context<'_>) -> Poll<Run<T>> {
        let mut state = self.lock();
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

    /// The run is over: who asks in a task of its own must not wait for ever.
    fn end(&self) {
        let waiting = {
            let mut state = self.lock();
            state.over = true;
            std::mem::take(&mut state.waiting)
        };
        waiting.into_iter().for_each(Waker::wake);
    }
}

/// A question on its way. Dropped, it is not asked.
pub(super) struct Putting<'a, T> {
    asks: &'a Asks,
    key: String,
    question: Question,
    answer: std::marker::PhantomData<fn() -> T>,
}

impl<T: DeserializeOwned> Future for Putting<'_, T> {
    type Output = Result<T, AskError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = self.asks.lock();
        if state.over {
            return Poll::Ready(Err(AskError::Ended));
        }
        let round = state.round();
        let parsed = round.memory.answers.get(&self.key).map(|raw| serde_json::from_str(raw.get()));
        match parsed {
            Some(Ok(answer)) => return Poll::Ready(Ok(answer)),
            // MRTR-12
            Some(Err(error)) => {
                round.refused = Some(ErrorObject::invalid_params(format!(
                    "inputResponses.{} is no answer to {}: {error}",
                    self.key,
                    self.question.method.as_str()
                )));
            }
            None => {
                round.open.insert(self.key.clone(), self.question.clone());
            }
        }
        // The run ends here; whoever polls it sees the question.
        state.wait(cx);
        if let Some(runner) = state.runner.take() {
            runner.wake();
        }
        Poll::Pending
    }
}

impl<T> Drop for Putting<'_, T> {
    fn drop(&mut self) {
        self.asks.lock().round().open.remove(&self.key);
    }
}

/// A handler that may stop to ask: ready when it is done, or when it waits for the client.
pub(super) struct Suspendable<'a, F, S> {
    pub(super) work: Pin<&'a mut F>,
    pub(super) call: &'a Call<S>,
}

impl<F: Future, S> Future for Suspendable<'_, F, S> {
    type Output = Run<F::Output>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.work.as_mut().poll(cx) {
            Poll::Ready(value) => Poll::Ready(Run::Done(value)),
            Poll::Pending => self.call.inner.asks.poll_standing(cx),
        }
    }
}

impl<F, S> Drop for Suspendable<'_, F, S> {
    fn drop(&mut self) {
        // Who is alone with the call is the only one who could ask.
        if Arc::strong_count(&self.call.inner) > 1 {
            self.call.inner.asks.end();
        }
    }
}
