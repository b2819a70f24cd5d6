//! Lists that were read before and still hold, and the output schemas of the tools in them.
//!
//! Knows until when a page holds and what ends it early. Must not know how a list is asked for.
//! CAC-03 to CAC-06, TOL-13.

use std::any::Any;
use std::collections::HashMap;
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

use super::changes::Change;
use crate::lock::lock;
use crate::mcp::Method;

/// What a page is kept under (CAC-04): the method, and the cursor.
pub(crate) type PageKey = (Method, Option<String>);

/// The pages that are kept, for one connection only (CAC-05).
#[derive(Default)]
pub(crate) struct KeptLists {
    pages: Mutex<KeptPages>,
    /// Keeps open what a modern server tells changes of its lists by.
    pub(crate) subscription: OnceLock<Box<dyn Any + Send + Sync>>,
    #[cfg(feature = "validate")]
    pub(crate) outputs: outputs::OutputSchemas,
}

#[derive(Default)]
struct KeptPages {
    kept: HashMap<PageKey, KeptPage>,
    bytes: usize,
    /// Counts what has changed: a page that was on its way meanwhile is not kept.
    changes: u64,
}

struct KeptPage {
    until: Instant,
    bytes: usize,
    content: Box<dyn Any + Send>,
}

impl KeptLists {
    /// A page that still holds; or the count that [`keep`](Self::keep) wants for a fresh one.
    pub(crate) fn page<T: Clone + 'static>(&self, key: &PageKey, now: Instant) -> Result<T, u64> {
        let pages = lock(&self.pages);
        let page = pages.kept.get(key).filter(|page| now < page.until);
        page.and_then(|page| page.content.downcast_ref::<T>()).cloned().ok_or(pages.changes)
    }

    /// Keeps a page for `ttl`, unless its list has changed since `seen`. `bytes` is what it had on the
    /// wire; all pages together have at most `limit`, and a page for which there is no room takes the
    /// place of all others.
    pub(crate) fn keep<T: Send + 'static>(
        &self,
        key: PageKey,
        (content, bytes): (T, usize),
        (now, ttl): (Instant, Duration),
        seen: u64,
        limit: usize,
    ) {
        let mut pages = lock(&self.pages);
        // CAC-03: a page without a time does not hold at all.
        let Some(until) = now.checked_add(ttl).filter(|_| !ttl.is_zero()) else { return };
        let bytes = bytes.saturating_add(size_of::<KeptPage>() + size_of::<PageKey>());
        if pages.changes != seen || bytes > limit {
            return;
        }
        if pages.bytes + bytes > limit {
            pages.kept = HashMap::new();
            pages.bytes = 0;
        }
        let page = KeptPage { until, bytes, content: Box::new(content) };
        let before = pages.kept.insert(key, page);
        pages.bytes = pages.bytes + bytes - before.map_or(0, |page| page.bytes);
    }

    /// CAC-06: what has changed no longer holds.
    pub(crate) fn drop_changed(&self, change: &Change) {
        let gone: &[Method] = match change {
            Change::Tools => &[Method::ListTools],
            Change::Prompts => &[Method::ListPrompts],
            Change::Resources => &[Method::ListResources, Method::ListResourceTemplates],
            Change::Resource(_) | Change::Anything => return,
        };
        #[cfg(feature = "validate")]
        if gone.contains(&Method::ListTools) {
            self.outputs.forget();
        }
        let mut pages = lock(&self.pages);
        pages.changes += 1;
        pages.kept.retain(|(method, _), _| !gone.contains(method));
        pages.bytes = pages.kept.values().map(|page| page.bytes).sum();
    }
}

#[cfg(feature = "validate")]
pub(crate) use outputs::OutputSchema;

#[cfg(feature = "validate")]
mod outputs {
    use std::collections::HashMap;
    use std::sync::{Arc, Mutex, OnceLock};

    use crate::error::OutputFault;
    use crate::lock::lock;
    use crate::mcp::{CallToolResult, Schema, Tool};
    use crate::schema::{SchemaFault, Unfit, Validator};

    /// The output schemas of the tools that were listed, for one connection only.
    #[derive(Default)]
    pub(crate) struct OutputSchemas {
        known: Mutex<Known>,
        /// One list at a time, however many calls wait for it.
        pub(crate) listing: tokio::sync::Mutex<()>,
    }

    #[derive(Default)]
    struct Known {
        tools: HashMap<String, Arc<OutputSchema>>,
        bytes: usize,
        /// Counts what has changed: what was listed before holds no more.
        changes: u64,
        /// After which change the list was read to its end.
        listed: Option<u64>,
    }

    /// The output schema of one tool, if it has one.
    pub(crate) struct OutputSchema {
        schema: Option<Schema>,
        /// Read once, when it is first needed.
        checker: OnceLock<Result<Validator, SchemaFault>>,
    }

    impl OutputSchemas {
        /// How often the list of tools has changed; to be passed to [`learn`](Self::learn).
        pub(crate) fn changes(&self) -> u64 {
            lock(&self.known).changes
        }

        /// Takes in a page of the list of tools, unless the list has changed since `seen`. All schemas
        /// together have at most `limit` bytes; a tool for which there is no room is not checked.
        pub(crate) fn learn(&self, tools: &[Tool], seen: u64, limit: usize) {
            let mut known = lock(&self.known);
            if known.changes != seen {
                return;
            }
            for tool in tools {
                let same = |output: &Arc<OutputSchema>| output.schema == tool.output_schema;
                let bytes = tool.output_schema.as_ref().map_or(0, |s| s.json().text().len())
                    + tool.name.len()
                    + size_of::<OutputSchema>();
                if known.tools.get(&tool.name).is_some_and(same) || known.bytes + bytes > limit {
                    continue;
                }
                known.bytes += bytes;
                let output = OutputSchema::of(tool);
                known.tools.insert(tool.name.clone(), Arc::new(output));
            }
        }

        /// The list of tools was read to its end, and has changed so often before.
        pub(crate) fn listed(&self, seen: u64) {
            lock(&self.known).listed = Some(seen);
        }

        pub(crate) fn forget(&self) {
            let mut known = lock(&self.known);
            known.changes += 1;
            known.bytes = 0;
            known.tools.clear();
        }

        /// What is known of a tool; an error with the count of changes if the list has to be read.
        pub(crate) fn find(&self, tool: &str) -> Result<Option<Arc<OutputSchema>>, u64> {
            let known = lock(&self.known);
            match known.tools.get(tool) {
                Some(output) => Ok(Some(output.clone())),
                None if known.listed == Some(known.changes) => Ok(None),
                None => Err(known.changes),
            }
        }
    }

    impl OutputSchema {
        pub(crate) fn of(tool: &Tool) -> Self {
            Self { schema: tool.output_schema.clone(), checker: OnceLock::new() }
        }

        /// Checks what a tool answered. The answer of a tool that failed is not checked.
        pub(crate) fn check(&self, result: &CallToolResult) -> Result<(), OutputFault> {
            let Some(schema) = self.schema.as_ref().filter(|_| !result.failed()) else {
                return Ok(());
            };
            let checker = self.checker.get_or_init(|| Validator::new(schema.json().text()));
            match (checker, &result.structured_content) {
                (Err(fault), _) => Err(OutputFault::Schema(fault.clone())),
                (Ok(_), None) => Err(OutputFault::Missing),
                (Ok(checker), Some(data)) => {
                    checker.validate(data.text()).map_err(|unfit| match unfit {
                        Unfit::Misfit(misfit) => OutputFault::Misfit(misfit),
                        Unfit::TooMuch => OutputFault::TooMuch,
                        Unfit::TooLong { bytes, limit } => OutputFault::TooLong { bytes, limit },
                    })
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: usize = 10_000;
    const HOUR: Duration = Duration::from_secs(3600);

    fn key(cursor: usize) -> PageKey {
        (Method::ListTools, Some(cursor.to_string()))
    }

    /// C18
    #[test]
    fn kept_pages_are_bounded_in_bytes() {
        let (lists, now) = (KeptLists::default(), Instant::now());
        for n in 0..1_000 {
            lists.keep(key(n), (n, 3_000), (now, HOUR), 0, LIMIT);
            assert_eq!(lists.page::<usize>(&key(n), now), Ok(n));
            let pages = lock(&lists.pages);
            assert!(pages.bytes <= LIMIT && pages.kept.len() <= 3);
        }
        lists.keep(key(5_000), (0, LIMIT), (now, HOUR), 0, LIMIT);
        assert_eq!(lists.page::<usize>(&key(5_000), now), Err(0));
        assert!(
            !lock(&lists.pages).kept.is_empty(),
            "a page that never fits costs no other its place"
        );
    }

    #[test]
    fn cac_06_a_change_drops_the_pages_of_its_list_and_their_bytes() {
        let (lists, now) = (KeptLists::default(), Instant::now());
        for n in 0..100 {
            lists.keep(key(1), (n, 3_000), (now, HOUR), n, LIMIT);
            assert_eq!(lists.page::<u64>(&key(1), now), Ok(n));
            lists.drop_changed(&Change::Tools);
            assert_eq!(lock(&lists.pages).bytes, 0);
        }
        lists.keep(key(1), (0_u64, 3_000), (now, HOUR), 0, LIMIT);
        assert_eq!(lists.page::<u64>(&key(1), now), Err(100), "it was on its way meanwhile");
    }
}
