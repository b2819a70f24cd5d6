//! The four lists of a server, page by page.
//!
//! Knows cursors and how long a page may be kept; must not know how pages are made. PAG-01 to
//! PAG-07, CAC-01 to CAC-07.

use super::macros::wire_struct;
use super::meta::Meta;
use super::prompts::Prompt;
use super::resources::{Resource, ResourceTemplate};
use super::result::{CacheScope, ResultType, Ttl};
use super::tools::Tool;

wire_struct! {
    /// What a client says in one of the list requests.
    #[derive(Default)]
    pub struct PageParams() {
        /// Where to go on: exactly what the page before said (PAG-01).
        may cursor: String = "cursor";
        /// Open metadata.
        may meta: Meta = "_meta" when Meta::has_any;
    }
}

macro_rules! page {
    ($(#[$attr:meta])* $Name:ident, $items:ident: $Item:ty = $wire:literal) => {
        wire_struct! {
            $(#[$attr])*
            pub struct $Name(
                /// What is on this page.
                needs $items: Vec<$Item> = $wire,
            ) {
                /// Where the next page begins; absent on the last. An empty one is one (PAG-03).
                may next_cursor: String = "nextCursor";
                /// How long this page may be kept.
                has ttl: Ttl = "ttlMs" since V2026_07_28;
                /// Who may be served a kept page; the same on all pages (CAC-07).
                has cache_scope: CacheScope = "cacheScope" since V2026_07_28;
                /// What kind of result this is.
                has result_type: ResultType = "resultType" since V2026_07_28;
                /// Open metadata.
                may meta: Meta = "_meta" when Meta::has_any;
            }
        }
    };
}

page!(
    /// A page of tools.
    ListToolsResult, tools: Tool = "tools"
);
page!(
    /// A page of resources.
    ListResourcesResult, resources: Resource = "resources"
);
page!(
    /// A page of resource templates.
    ListResourceTemplatesResult, resource_templates: ResourceTemplate = "resourceTemplates"
);
page!(
    /// A page of prompts.
    ListPromptsResult, prompts: Prompt = "prompts"
);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::{Revision, WriteJson};
    use std::time::Duration;

    #[test]
    fn cac_01_a_page_says_how_long_it_may_be_kept_only_to_modern_readers() {
        let page = ListToolsResult::new([Tool::new("t")])
            .ttl(Duration::from_secs(5))
            .cache_scope(CacheScope::Public);
        let tool = r#"{"tools":[{"name":"t","inputSchema":{"type":"object"}}]"#;
        let at = |revision| serde_json::to_string(&page.at(revision)).unwrap();
        assert_eq!(at(Revision::LATEST_LEGACY), format!("{tool}}}"));
        assert_eq!(
            at(Revision::MODERN),
            format!(r#"{tool},"ttlMs":5000,"cacheScope":"public","resultType":"complete"}}"#)
        );
    }

    #[test]
    fn pag_02_and_03_null_ends_the_list_and_an_empty_cursor_does_not() {
        let next = |text| serde_json::from_str::<ListPromptsResult>(text).unwrap().next_cursor;
        assert_eq!(next(r#"{"prompts":[],"nextCursor":null}"#), None);
        assert_eq!(next(r#"{"prompts":[]}"#), None);
        assert_eq!(next(r#"{"prompts":[],"nextCursor":""}"#), Some(String::new()));
    }

    #[test]
    fn cac_03_a_page_that_says_nothing_may_not_be_kept() {
        let page: ListToolsResult = serde_json::from_str(r#"{"tools":[],"ttlMs":-1}"#).unwrap();
        assert_eq!((page.ttl, page.cache_scope), (Ttl::default(), CacheScope::Private));
    }
}
