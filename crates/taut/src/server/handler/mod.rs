//! From typed handlers to those that the catalog keeps: arguments read, results written.
//!
//! Knows users' types and what their schemas say; must not know how a request was routed. Every
//! handler here returns a finished answer, also for arguments that do not fit.

mod arguments;
mod base64;
mod contents;
mod describe;
mod reply;
mod run;
mod structured;

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::Poll;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use super::call::{BlockingCall, Call, Handler};
use super::pool::NotRun;
use crate::driver::{AnswerFuture, log_panic, ready};
use crate::mcp::{
    CallToolResult, CompleteParams, CompleteResult, Completion, RESOURCE_NOT_FOUND, RawJson,
    ReadResourceResult, resource_not_found,
};
use crate::rpc::ErrorObject;
use crate::server::schema::required_by;
use crate::server::settings::BadArguments;

pub(crate) use describe::{faults_of, prompt_spec, tool_spec};
pub(crate) use run::{finish, run, unix_time};

pub use contents::{IntoContents, IntoMessages};
pub use reply::{IntoReply, Json};

/// A tool.
pub(crate) fn tool<
    S: Send + Sync + 'static,
    A: DeserializeOwned + JsonSchema + Send + 'static,
    F: Future<Output: IntoReply + Send + 'static> + Send + 'static,
>(
    handler: impl Fn(A, Call<S>) -> F + Send + Sync + 'static,
) -> Handler<S> {
    Arc::new(move |raw, call| match arguments::read(raw, required_by::<A>) {
        Ok(arguments) => {
            let theirs = call.clone();
            let work = catch_unwind(AssertUnwindSafe(|| handler(arguments, theirs)));
            Box::pin(run(call, caught(work)))
        }
        Err(reason) => bad_tool_arguments(&call, &reason),
    })
}

/// A tool that takes its arguments as they came.
pub(crate) fn raw_tool<
    S: Send + Sync + 'static,
    F: Future<Output: IntoReply + Send + 'static> + Send + 'static,
>(
    handler: impl Fn(RawJson, Call<S>) -> F + Send + Sync + 'static,
) -> Handler<S> {
    Arc::new(move |raw, call| {
        let arguments = raw.map_or_else(|| serde_json::Map::new().into(), RawJson::from);
        let theirs = call.clone();
        let work = catch_unwind(AssertUnwindSafe(|| handler(arguments, theirs)));
        Box::pin(run(call, caught(work)))
    })
}

/// A tool that blocks its thread: it runs on one of the server's own.
pub(crate) fn blocking_tool<
    S: Send + Sync + 'static,
    A: DeserializeOwned + JsonSchema + Send + 'static,
    R: IntoReply + Send + 'static,
>(
    handler: impl Fn(A, BlockingCall<S>) -> R + Send + Sync + 'static,
) -> Handler<S> {
    let handler = Arc::new(handler);
    Arc::new(move |raw, call| match arguments::read(raw, required_by::<A>) {
        Ok(arguments) => {
            let (handler, theirs, bytes) =
                (handler.clone(), call.clone(), raw.map_or(0, |raw| raw.text().len()));
            let pool = call.inner.shared().pool.clone();
            let work = async move {
                // What was cancelled while it waited for a thread is not begun.
                let job = move || {
                    let wanted = !theirs.is_cancelled();
                    wanted.then(|| handler(arguments, BlockingCall(theirs)).into_reply())
                };
                match pool.run(bytes, job).await {
                    Ok(Some(reply)) => reply,
                    Ok(None) => Err(ErrorObject::internal("request cancelled")),
                    Err(NotRun::Failed) => Ok(panicked()),
                    Err(NotRun::Busy(bytes)) => Err(ErrorObject::internal(format!(
                        "busy: all threads for blocking tools are in use and {bytes} bytes of \
                         calls wait for one; try again when one ends"
                    ))),
                }
            };
            Box::pin(run(call, work))
        }
        Err(reason) => bad_tool_arguments(&call, &reason),
    })
}

/// A resource at one address.
pub(crate) fn resource<
    S: Send + Sync + 'static,
    F: Future<Output: IntoContents + Send + 'static> + Send + 'static,
>(
    mime_type: Option<String>,
    handler: impl Fn(Call<S>) -> F + Send + Sync + 'static,
) -> Handler<S> {
    Arc::new(move |_, call| {
        let work = handler(call.clone());
        contents(call, work, mime_type.clone())
    })
}

/// The resources whose addresses fit a template; the blanks are the arguments.
pub(crate) fn template<
    S: Send + Sync + 'static,
    A: DeserializeOwned + Send + 'static,
    F: Future<Output: IntoContents + Send + 'static> + Send + 'static,
>(
    mime_type: Option<String>,
    handler: impl Fn(A, Call<S>) -> F + Send + Sync + 'static,
) -> Handler<S> {
    Arc::new(move |raw, call| match arguments::read(raw, Vec::new) {
        Ok(arguments) => {
            let work = handler(arguments, call.clone());
            contents(call, work, mime_type.clone())
        }
        Err(_) => {
            let error = not_found(&call.inner.name);
            ready(finish::<_, ReadResourceResult>(&call, call.contents(Err(error))))
        }
    })
}

/// A prompt.
pub(crate) fn prompt<
    S: Send + Sync + 'static,
    A: DeserializeOwned + JsonSchema + Send + 'static,
    F: Future<Output: IntoMessages + Send + 'static> + Send + 'static,
>(
    handler: impl Fn(A, Call<S>) -> F + Send + Sync + 'static,
) -> Handler<S> {
    Arc::new(move |raw, call| match arguments::read(raw, required_by::<A>) {
        Ok(arguments) => {
            let work = handler(arguments, call.clone());
            Box::pin(run(call, async move { work.await.into_messages() }))
        }
        Err(reason) => refused(&call, format!("invalid prompt arguments: {reason}")),
    })
}

/// What a person has typed so far, for a handler that completes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CompletionRequest {
    /// The beginning of the value.
    pub value: String,
    /// Other arguments that are already chosen (CMP-04).
    pub chosen: std::collections::BTreeMap<String, String>,
}

/// Suggestions for a value.
pub(crate) fn completion<
    S: Send + Sync + 'static,
    F: Future<Output = Vec<String>> + Send + 'static,
>(
    handler: impl Fn(CompletionRequest, Call<S>) -> F + Send + Sync + 'static,
) -> Handler<S> {
    Arc::new(move |raw, call| {
        let typed = match arguments::read::<CompleteParams>(raw, Vec::new) {
            Ok(typed) => typed,
            Err(reason) => return refused(&call, reason),
        };
        let chosen = typed.context.and_then(|context| context.arguments).unwrap_or_default();
        let request = CompletionRequest { value: typed.argument.value, chosen };
        let work = handler(request, call.clone());
        let work = async move { Ok(CompleteResult::new(Completion::first_of(work.await))) };
        Box::pin(run(call, work))
    })
}

/// What the call reads, from what its handler returns.
fn contents<S: Send + Sync + 'static>(
    call: Call<S>,
    work: impl Future<Output: IntoContents + Send + 'static> + Send + 'static,
    mime_type: Option<String>,
) -> AnswerFuture {
    Box::pin(run(call.clone(), async move {
        call.contents(work.await.into_contents(&call.inner.name, mime_type.as_deref()))
    }))
}

/// Arguments of a tool that do not fit: for the model to read and to try again (TOL-08), unless the
/// server maps them to an error of its own.
fn bad_tool_arguments<S: Send + Sync + 'static>(call: &Call<S>, reason: &str) -> AnswerFuture {
    let (tool, revision) = (&*call.inner.name, call.revision());
    let map = call.inner.shared().settings.on_bad_arguments.as_ref();
    let mapped = map.and_then(|map| map(&BadArguments { tool, reason, revision }));
    let outcome = match mapped {
        Some(reject) => Err(reject.into()),
        None => Ok(CallToolResult::with_error(format!("invalid arguments for {tool}: {reason}"))),
    };
    ready(finish(call, outcome))
}

fn refused<S: Send + Sync + 'static>(call: &Call<S>, reason: String) -> AnswerFuture {
    ready(finish::<_, CompleteResult>(call, Err(ErrorObject::invalid_params(reason))))
}

/// The resource is not there (RES-05, RES-06). The code depends on the revision: see
/// [`Call::contents`].
pub(crate) fn not_found(uri: &str) -> ErrorObject {
    ErrorObject::new(RESOURCE_NOT_FOUND, "resource not found")
        .with_data(&serde_json::json!({ "uri": uri }))
}

impl<S> Call<S> {
    /// What was read from a resource, as this client is to see it.
    fn contents(
        &self,
        outcome: Result<ReadResourceResult, ErrorObject>,
    ) -> Result<ReadResourceResult, ErrorObject> {
        match outcome {
            Ok(contents) => Ok(self.inner.shared().settings.hinted(contents)),
            // ERR-03: the modern revision has no code of its own for it.
            Err(mut error) if error.code == RESOURCE_NOT_FOUND => {
                error.code = resource_not_found(self.revision());
                // A handler that says no more than that still names the address, as we do (RES-05).
                Err(match error.data {
                    Some(_) => error,
                    None => error.with_data(&serde_json::json!({ "uri": &*self.inner.name })),
                })
            }
            Err(error) => Err(error),
        }
    }
}

/// Carries a tool to its end. A panic, when it starts or later, is a failure of the tool that the
/// model can read: several hosts take a JSON-RPC error for a broken server and restart it (C14).
async fn caught<F, R>(work: std::thread::Result<F>) -> Result<CallToolResult, ErrorObject>
where
    F: Future<Output = R>,
    R: IntoReply,
{
    let work = match work {
        Ok(work) => work,
        Err(panic) => {
            log_panic(&*panic);
            return Ok(panicked());
        }
    };
    let mut work = std::pin::pin!(work);
    std::future::poll_fn(|cx| {
        let poll = || work.as_mut().poll(cx).map(R::into_reply);
        catch_unwind(AssertUnwindSafe(poll)).unwrap_or_else(|panic| {
            log_panic(&*panic);
            Poll::Ready(Ok(panicked()))
        })
    })
    .await
}

/// What a model reads when a tool has panicked. The words of the panic are for the log.
fn panicked() -> CallToolResult {
    CallToolResult::with_error("the tool crashed (it panicked); see the server's log")
}
