//! From a typed handler to one that the session can call: arguments read, results written.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;

use serde::de::DeserializeOwned;

use super::Settings;
use super::call::Call;
use super::hook::Outcome;
use super::rounds::{Run, Suspendable};
use crate::driver::Started;
use crate::json::JsonRef;
use crate::mcp::{
    CallToolResult, CompleteResult, EmptyResult, GetPromptResult, InputRequired, Memory, Meta,
    Question, ReadResourceResult, Revision, Target, WriteJson, binding, meta_keys,
};
use crate::rpc::{Body, ErrorObject, without_place};

/// A handler that takes JSON, and appends it where it is done at once.
pub(super) type Erased<S> = Arc<
    dyn Fn(Option<JsonRef<'_>>, Call<S>, &mut Vec<u8>) -> Result<Started, BadArguments<S>>
        + Send
        + Sync,
>;

/// A call whose arguments do not fit, and why: the field first.
pub(super) struct BadArguments<S> {
    pub(super) call: Call<S>,
    pub(super) reason: String,
}

/// Reads the arguments of a call; absent ones are `{}` (TOL-26).
pub(super) fn read_arguments<A: DeserializeOwned, S>(
    raw: Option<JsonRef<'_>>,
    call: Call<S>,
) -> Result<(A, Call<S>), BadArguments<S>> {
    match fit(raw.map_or("{}", JsonRef::text)) {
        Ok(arguments) => Ok((arguments, call)),
        Err(reason) => Err(BadArguments { call, reason }),
    }
}

fn fit<A: DeserializeOwned>(text: &str) -> Result<A, String> {
    serde_json::from_str(text).map_err(|error| {
        // Once more, this time keeping track of where we are: only those who err pay for it.
        let mut again = serde_json::Deserializer::from_str(text);
        match serde_path_to_error::deserialize::<_, A>(&mut again) {
            Err(traced) if traced.path().iter().next().is_some() => {
                format!("`{}`: {}", traced.path(), plain(traced.inner()))
            }
            _ => plain(&error),
        }
    })
}

fn plain(error: &serde_json::Error) -> String {
    without_place(&error.to_string()).to_owned()
}

/// A result of the protocol, which may carry `_meta`.
pub(super) trait Answer: WriteJson + Send + 'static {
    fn meta_mut(&mut self) -> &mut Option<Meta>;

    /// Whether it says that the tool failed.
    fn failed(&self) -> bool {
        false
    }
}

macro_rules! answers {
    ($($T:ty),*) => {$(
        impl Answer for $T {
            fn meta_mut(&mut self) -> &mut Option<Meta> {
                &mut self.meta
            }
        }
    )*};
}

answers!(ReadResourceResult, GetPromptResult, CompleteResult, EmptyResult);

impl Answer for CallToolResult {
    fn meta_mut(&mut self) -> &mut Option<Meta> {
        &mut self.meta
    }

    fn failed(&self) -> bool {
        Self::failed(self)
    }
}

/// A result, to be written for one revision.
pub(super) struct Written<T> {
    pub(super) value: T,
    pub(super) revision: Revision,
}

impl<T: WriteJson + Send> Body for Written<T> {
    fn write(&self, out: &mut Vec<u8>) -> Result<(), serde_json::Error> {
        self.value.write_json(Target::of(self.revision), out);
        Ok(())
    }
}

/// The end of every call: the hook hears of it, and the result is stamped and handed over.
pub(super) fn finish<S, T: Answer>(
    call: &Call<S>,
    outcome: Result<T, ErrorObject>,
) -> Result<Written<T>, ErrorObject> {
    let failed = outcome.as_ref().map_or(true, T::failed);
    call.inner.end(if failed { Outcome::Failed } else { Outcome::Done });
    let mut value = outcome?;
    let revision = call.revision();
    if revision.is_modern() {
        // MET-05
        let meta = value.meta_mut().get_or_insert_default();
        meta.insert(meta_keys::SERVER_INFO, call.inner.shared().info_json.clone());
    }
    Ok(Written { value, revision })
}

/// How a run ended: with a result, or with questions.
pub(super) enum Ran<T> {
    Done(Written<T>),
    Asking(InputRequired),
}

impl<T: WriteJson + Send> Body for Ran<T> {
    fn write(&self, out: &mut Vec<u8>) -> Result<(), serde_json::Error> {
        match self {
            Self::Done(result) => result.write(out),
            Self::Asking(questions) => questions.write(out),
        }
    }
}

/// Runs a handler to its end, or to where it has to ask, within the server's limit if it has one.
pub(super) async fn run<S, T, F>(call: Call<S>, work: F) -> Result<Ran<T>, ErrorObject>
where
    S: Send + Sync + 'static,
    T: Answer,
    F: Future<Output = Result<T, ErrorObject>>,
{
    let mut work = std::pin::pin!(work);
    let run = Suspendable { work: work.as_mut(), call: &call };
    let run = match call.inner.shared().settings.call_timeout {
        None => run.await,
        // Apart, because few have one and all would carry it.
        Some(limit) => Box::pin(tokio::time::timeout(limit, run)).await.unwrap_or_else(|_| {
            Run::Refused(ErrorObject::internal(format!("the server gave up after {limit:?}")))
        }),
    };
    match run {
        Run::Done(outcome) => finish(&call, outcome).map(Ran::Done),
        Run::Refused(error) => finish(&call, Err(error)).map(Ran::Done),
        Run::Asking(questions, memory) => ask_client(&call, questions, memory).map(Ran::Asking),
    }
}

/// Ends a run with questions, and with the state that the answers must bring back.
fn ask_client<S>(
    call: &Call<S>,
    questions: BTreeMap<String, Question>,
    mut memory: Memory,
) -> Result<InputRequired, ErrorObject> {
    let Settings { seal_key, ask_lifetime, .. } = &call.inner.shared().settings;
    let expires = unix_time().saturating_add(ask_lifetime.as_secs());
    memory.asked = questions.keys().cloned().collect();
    let state = seal_key
        .seal(memory, call.binding(), expires)
        .map_err(|why| ErrorObject::internal(why.to_string()));
    call.inner.end(match state {
        Ok(_) => Outcome::Asking,
        Err(_) => Outcome::Failed,
    });
    let server_info = call.inner.shared().info_json.clone();
    Ok(InputRequired { questions, state: state?, server_info })
}

/// Seconds since 1970; a clock before that is a clock that knows nothing.
pub(super) fn unix_time() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(0, |time| time.as_secs())
}

impl<S> Call<S> {
    /// What the state of a question is bound to.
    fn binding(&self) -> String {
        binding(self.inner.method, &self.inner.name, self.inner.arguments.as_deref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, serde::Deserialize)]
    #[allow(dead_code)]
    struct Args {
        text: String,
        #[serde(default)]
        options: Vec<Options>,
    }

    #[derive(Debug, serde::Deserialize)]
    #[allow(dead_code)]
    struct Options {
        depth: u8,
    }

    #[test]
    fn arguments_that_do_not_fit_come_back_with_the_field_and_the_reason() {
        let read = |text| fit::<Args>(text).unwrap_err();
        assert_eq!(read("{}"), "missing field `text`");
        assert_eq!(read(r#"{"text":5}"#), "`text`: invalid type: integer `5`, expected a string");
        assert_eq!(
            read(r#"{"text":"","options":[{"depth":300}]}"#),
            "`options[0].depth`: invalid value: integer `300`, expected u8"
        );
    }
}
