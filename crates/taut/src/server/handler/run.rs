//! One run of a handler: to its end, to where it has to ask, or to the server's limit.
//!
//! Knows how a run ends and what is written then; must not know how arguments are read.

use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::task::Poll;

use crate::driver::{Outcome, no_json};
use crate::json::JsonBuf;
use crate::mcp::{
    CallToolResult, CompleteResult, GetPromptResult, InputRequired, Memory, Meta, Question,
    ReadResourceResult, ResultType, Target, WriteJson, meta_keys,
};
use crate::rpc::ErrorObject;
use crate::server::call::{Call, Run, Running};
use crate::server::catalog::stamp;
use crate::server::settings::{CallEnd, Settings};

/// A result of the protocol that a handler makes: it may carry `_meta`.
pub(crate) trait HandlerResult: WriteJson + Send + 'static {
    fn meta_mut(&mut self) -> &mut Option<Meta>;

    /// Whether it says that the tool failed.
    fn failed(&self) -> bool;
}

macro_rules! handler_results {
    ($($T:ty: |$result:pat_param| $failed:expr;)*) => {$(
        impl HandlerResult for $T {
            fn meta_mut(&mut self) -> &mut Option<Meta> {
                &mut self.meta
            }

            fn failed(&self) -> bool {
                let $result = self;
                $failed
            }
        }
    )*};
}

handler_results! {
    CallToolResult: |result| result.is_error == Some(true);
    ReadResourceResult: |_| false;
    GetPromptResult: |_| false;
    CompleteResult: |_| false;
}

/// Runs a handler to its end, or to where it has to ask, within the server's limit if it has one.
pub(crate) async fn run<S, T, F>(call: Call<S>, work: F) -> Outcome
where
    S: Send + Sync + 'static,
    T: HandlerResult,
    F: Future<Output = Result<T, ErrorObject>>,
{
    let mut work = std::pin::pin!(work);
    let running = Running(&call);
    let run = poll_fn(|cx| match work.as_mut().poll(cx) {
        Poll::Ready(outcome) => Poll::Ready(Run::Done(outcome)),
        Poll::Pending => call.inner.questions.poll_standing(cx),
    });
    let run = match call.inner.shared().settings.call_timeout {
        None => run.await,
        // Apart, because few have one and all would carry it.
        Some(limit) => Box::pin(tokio::time::timeout(limit, run)).await.unwrap_or_else(|_| {
            Run::Refused(ErrorObject::internal(format!("the server gave up after {limit:?}")))
        }),
    };
    drop(running);
    match run {
        Run::Done(outcome) => finish(&call, outcome),
        Run::Refused(error) => finish::<S, T>(&call, Err(error)),
        Run::Asking(questions, memory) => ask_client(&call, questions, memory),
    }
}

/// The end of every call: `on_call` is told, and the result is stamped and written.
pub(crate) fn finish<S, T: HandlerResult>(
    call: &Call<S>,
    outcome: Result<T, ErrorObject>,
) -> Outcome {
    let failed = outcome.as_ref().map_or(true, T::failed);
    call.inner.end(if failed { CallEnd::Failed } else { CallEnd::Done });
    // What this call has changed is told before its result, so that a host that lists again at once
    // finds the new list.
    call.inner.connection.subscriber.pump_before_result();
    let mut value = outcome?;
    let revision = call.revision();
    if revision.is_modern() {
        // MET-05
        let meta = value.meta_mut().get_or_insert_default();
        meta.insert(meta_keys::SERVER_INFO, call.inner.shared().info_json.clone());
    }
    let buffer = call.inner.connection.link.answer_buffer();
    Ok(buffer.written(|out| value.write_json(Target::of(revision), out)))
}

/// Ends a run with questions, and with the state that the answers must bring back.
fn ask_client<S>(
    call: &Call<S>,
    questions: BTreeMap<String, Question>,
    mut memory: Memory,
) -> Outcome {
    let Settings { seal_key, ask_lifetime, .. } = &call.inner.shared().settings;
    let expires = unix_time().saturating_add(ask_lifetime.as_secs());
    memory.asked = questions.keys().cloned().collect();
    let inner = &call.inner;
    let arguments = inner.arguments.as_deref();
    let bound_to = inner.connection.binding(inner.method, &inner.name, arguments);
    let state = seal_key
        .seal(memory, bound_to, expires)
        .map_err(|why| ErrorObject::internal(why.to_string()));
    call.inner.end(match state {
        Ok(_) => CallEnd::Asking,
        Err(_) => CallEnd::Failed,
    });
    let required = InputRequired {
        result_type: ResultType::InputRequired,
        input_requests: questions,
        request_state: state?,
        meta: stamp(&inner.shared().info_json),
    };
    JsonBuf::of(&required).map_err(|error| no_json(&error))
}

/// Seconds since 1970; a clock before that counts as 0.
pub(crate) fn unix_time() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(0, |time| time.as_secs())
}
