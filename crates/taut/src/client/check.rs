//! Whether what a tool answers is what its own schema promises.
//!
//! Knows which schema a tool has, for as long as the server's list of tools holds. Must not know how a
//! schema is checked (`schema/`). TOL-13.
//!
//! A tool that was never listed is looked up before its first call: who asks for checks means all of
//! them. A name that is not in the list has no schema, and is not looked up again before the list
//! changes.

use std::any::Any;
use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use super::Shared;
use super::answer::Answer;
use super::paging::{Fresh, pages};
use super::request::Request;
use crate::error::{BadOutput, OutputFault, Result};
use crate::mcp::{Schema, Tool};
use crate::schema::{SchemaFault, Unfit, Validator};

/// Tools whose schemas are known at most. Hosts show a model some hundred; only a server that floods
/// has so many, and what is beyond goes unchecked.
const MAX_TOOLS: usize = 4096;

/// The schemas of the tools that were listed, for one connection only.
#[derive(Default)]
pub(super) struct Outputs {
    known: Mutex<Known>,
    /// One list at a time, however many calls wait for it.
    listing: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Known {
    tools: HashMap<String, Arc<Output>>,
    /// Counts what has changed: what was listed before holds no more.
    changes: u64,
    /// After which change the list was read to its end.
    listed: Option<u64>,
}

/// What one tool promises.
struct Output {
    schema: Option<Schema>,
    /// Read once, when it is first needed.
    validator: OnceLock<std::result::Result<Validator, SchemaFault>>,
}

impl Outputs {
    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// To be handed back with what is learned.
    pub(super) fn changes(&self) -> u64 {
        self.lock().changes
    }

    /// Takes in a page of a list, if it is one of tools and still holds.
    pub(super) fn learn(&self, page: &dyn Any, seen: u64) {
        let Some(tools) = page.downcast_ref::<Vec<Tool>>() else { return };
        let mut known = self.lock();
        if known.changes != seen {
            return;
        }
        for tool in tools {
            let same = |output: &Arc<Output>| output.schema == tool.output_schema;
            if known.tools.get(&tool.name).is_some_and(same) || known.tools.len() == MAX_TOOLS {
                continue;
            }
            let output = Output { schema: tool.output_schema.clone(), validator: OnceLock::new() };
            known.tools.insert(tool.name.clone(), Arc::new(output));
        }
    }

    pub(super) fn forget(&self) {
        let mut known = self.lock();
        known.changes += 1;
        known.tools.clear();
    }

    /// What is known of a tool; an error if it takes a look at the list to know.
    fn find(&self, tool: &str) -> std::result::Result<Option<Arc<Output>>, u64> {
        let known = self.lock();
        match known.tools.get(tool) {
            Some(output) => Ok(Some(output.clone())),
            None if known.listed == Some(known.changes) => Ok(None),
            None => Err(known.changes),
        }
    }
}

impl Output {
    fn check(&self, answer: Answer) -> Result<Answer> {
        // What went wrong has words, not data.
        let Some(schema) = self.schema.as_ref().filter(|_| !answer.failed()) else {
            return Ok(answer);
        };
        let validator = self.validator.get_or_init(|| Validator::new(schema.json().text()));
        let fault = match (validator, &answer.structured_content) {
            (Err(fault), _) => OutputFault::Schema(fault.clone()),
            (Ok(_), None) => OutputFault::Missing,
            (Ok(validator), Some(data)) => match validator.validate(data.text()) {
                Ok(()) => return Ok(answer),
                Err(Unfit::Misfit(misfit)) => OutputFault::Misfit(misfit),
                Err(Unfit::TooMuch) => OutputFault::TooMuch,
                Err(Unfit::TooLong { bytes, limit }) => OutputFault::TooLong { bytes, limit },
            },
        };
        let tool = answer.tool().to_owned();
        Err(BadOutput { tool, fault, result: answer.into_result() }.into())
    }
}

/// Checks an answer against what this tool promises.
pub(super) fn check(tool: &Tool, answer: Answer) -> Result<Answer> {
    let schema = tool.output_schema.clone();
    Output { schema, validator: OnceLock::new() }.check(answer)
}

/// Asks for a page of a list, and takes in what it says of tools.
pub(super) async fn learning<T: 'static>(
    shared: Arc<Shared>,
    asking: impl Future<Output = Result<Fresh<T>>> + Send,
) -> Result<Fresh<T>> {
    let outputs = &shared.session.lists.outputs;
    let seen = outputs.changes();
    let page = asking.await?;
    if shared.settings.check_answers {
        outputs.learn(&page.0.0, seen);
    }
    Ok(page)
}

/// Makes a call, and checks what comes of it.
pub(super) fn checked(
    request: Request<Answer>,
    tool: Arc<str>,
    timeout: Option<Duration>,
) -> Pin<Box<dyn Future<Output = Result<Answer>> + Send>> {
    Box::pin(async move {
        let shared = request.shared.clone();
        let output = shared.output_of(&tool, timeout).await;
        let seen = shared.session.lists.outputs.changes();
        let answer = request.await?;
        match output {
            // A list that changed meanwhile may have another schema, and nobody knows which one held.
            Some(output) if shared.session.lists.outputs.changes() == seen => output.check(answer),
            _ => Ok(answer),
        }
    })
}

impl Shared {
    async fn output_of(
        self: &Arc<Self>,
        tool: &str,
        timeout: Option<Duration>,
    ) -> Option<Arc<Output>> {
        let outputs = &self.session.lists.outputs;
        if let Ok(found) = outputs.find(tool) {
            return found;
        }
        let _one = outputs.listing.lock().await;
        // Who waited for another's list finds it here.
        let seen = match outputs.find(tool) {
            Ok(found) => return found,
            Err(seen) => seen,
        };
        let mut list = pages::<Tool>(self.clone(), self.agreed.capabilities.tools.is_some());
        if let Some(timeout) = timeout {
            list = list.timeout(timeout);
        }
        // Each page is learned on its way. A server that is gone says so when the call is made.
        if let Err(error) = list.await {
            tracing::debug!(%error, tool, "no list of tools, so the answer is not checked");
            return None;
        }
        outputs.lock().listed = Some(seen);
        outputs.find(tool).ok().flatten()
    }
}
