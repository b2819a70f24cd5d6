//! What a server offers: tools, resources, templates, prompts, completions, in the order given.
//!
//! Knows descriptions and how lists are paged; must not know what a handler (`H`) is. A catalog is
//! never changed while somebody reads it: a change makes a new one, so that a request sees
//! one state. Lists are serialised once for each revision and page, and reused (TOL-22).

mod cursor;
mod spec;
mod template;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock};

use super::settings::Settings;
use crate::json::JsonBuf;
use crate::lock::lock;
use crate::mcp::{
    CompletionReference, JsonObject, ListPromptsResult, ListResourceTemplatesResult,
    ListResourcesResult, ListToolsResult, Meta, Prompt, PromptsCapability, RawJson, Resource,
    ResourceTemplate, ResourcesCapability, Revision, ServerCapabilities, Target, Tool,
    ToolsCapability, WriteJson, meta_keys,
};
use crate::rpc::{ErrorObject, Seed};
use cursor::ListState;

pub(crate) use spec::Spec;
pub(crate) use template::UriTemplate;

/// One thing that is offered, and its handler.
#[derive(Clone)]
pub(crate) struct Entry<T, H> {
    pub(crate) spec: T,
    pub(crate) handler: H,
}

type ToolEntry<H> = Entry<Spec<Tool>, H>;

/// The resources whose URIs fit a template.
#[derive(Clone)]
pub(crate) struct TemplateEntry<H> {
    pub(crate) template: UriTemplate,
    pub(crate) spec: ResourceTemplate,
    pub(crate) handler: H,
}

/// The four lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum List {
    Tools,
    Resources,
    Templates,
    Prompts,
}

/// What is offered, at one moment.
#[derive(Clone)]
pub(crate) struct Catalog<H> {
    pub(crate) tools: Vec<ToolEntry<H>>,
    pub(crate) resources: Vec<Entry<Resource, H>>,
    pub(crate) templates: Vec<TemplateEntry<H>>,
    pub(crate) prompts: Vec<Entry<Spec<Prompt>, H>>,
    /// By what is completed (`prompt` name or template) and the argument's name.
    pub(crate) completions: HashMap<(String, String), H>,
    tool_places: HashMap<Arc<str>, usize, Seed>,
    cache: Cache,
}

/// Which list, for which revision, from which item on.
type CachedPage = (List, Revision, usize);

/// What follows from the catalog, worked out when it is first asked for.
#[derive(Default)]
struct Cache {
    /// Only cursors to where a page begins are followed, so there are no more pages than the lists have.
    pages: Mutex<HashMap<CachedPage, Arc<[u8]>>>,
    capabilities: OnceLock<ServerCapabilities>,
}

impl<H> Default for Catalog<H> {
    fn default() -> Self {
        Self {
            tools: Vec::new(),
            resources: Vec::new(),
            templates: Vec::new(),
            prompts: Vec::new(),
            completions: HashMap::new(),
            tool_places: HashMap::default(),
            cache: Cache::default(),
        }
    }
}

/// A copy of a catalog is made to be changed, so what was worked out does not hold for it.
impl Clone for Cache {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl<H> Catalog<H> {
    pub(crate) fn tool(&self, name: &str) -> Option<(&Arc<str>, &ToolEntry<H>)> {
        let (name, at) = self.tool_places.get_key_value(name)?;
        self.tools.get(*at).map(|tool| (name, tool))
    }

    /// Adds a tool. There must be none of that name.
    pub(crate) fn add_tool(&mut self, entry: ToolEntry<H>) {
        self.tool_places.insert((*entry.spec.name).into(), self.tools.len());
        self.tools.push(entry);
    }

    pub(crate) fn remove_tool(&mut self, name: &str) -> bool {
        let before = self.tools.len();
        self.tools.retain(|entry| entry.spec.name != name);
        self.tool_places =
            self.tools.iter().enumerate().map(|(at, t)| ((*t.spec.name).into(), at)).collect();
        self.tools.len() < before
    }

    pub(crate) fn resource(&self, uri: &str) -> Option<&Entry<Resource, H>> {
        self.resources.iter().find(|entry| entry.spec.uri == uri)
    }

    pub(crate) fn prompt(&self, name: &str) -> Option<&Entry<Spec<Prompt>, H>> {
        self.prompts.iter().find(|entry| entry.spec.name == name)
    }

    /// The prompt or template that is completed, and whether it has such an argument.
    pub(crate) fn completable(
        &self,
        of: &CompletionReference,
        argument: &str,
    ) -> Option<(String, bool)> {
        match of {
            CompletionReference::Prompt(of) => {
                let prompt = self.prompt(&of.name)?;
                let mut arguments = prompt.spec.arguments.iter().flatten();
                Some((of.name.clone(), arguments.any(|known| known.name == argument)))
            }
            CompletionReference::Resource(of) => {
                let entry =
                    self.templates.iter().find(|entry| entry.spec.uri_template == of.uri)?;
                Some((of.uri.clone(), entry.template.names().any(|name| name == argument)))
            }
            _ => None,
        }
    }

    /// What this catalog lets the server say that it can do.
    pub(crate) fn capabilities(&self, settings: &Settings) -> &ServerCapabilities {
        self.cache.capabilities.get_or_init(|| self.work_out_capabilities(settings))
    }

    /// LIF-17: only what exists, flags only where they are kept.
    fn work_out_capabilities(&self, settings: &Settings) -> ServerCapabilities {
        let changes = settings.changes.then_some(true);
        let mut offer = ServerCapabilities::new();
        if !self.tools.is_empty() || settings.changes {
            offer.tools.insert(ToolsCapability::new()).list_changed = changes;
        }
        if !self.resources.is_empty() || !self.templates.is_empty() || settings.changes {
            let resources = offer.resources.insert(ResourcesCapability::new());
            (resources.list_changed, resources.subscribe) = (changes, changes);
        }
        if !self.prompts.is_empty() || settings.changes {
            offer.prompts.insert(PromptsCapability::new()).list_changed = changes;
        }
        offer.completions = (!self.completions.is_empty()).then(JsonObject::new);
        offer.logging = settings.logging.then(JsonObject::new);
        offer
    }

    /// A page of a list, as JSON. `server` is the server's own description.
    pub(crate) fn page(
        &self,
        settings: &Settings,
        server: &RawJson,
        list: List,
        revision: Revision,
        cursor: Option<&str>,
    ) -> Result<JsonBuf, ErrorObject> {
        let total = match list {
            List::Tools => self.tools.len(),
            List::Resources => self.resources.len(),
            List::Templates => self.templates.len(),
            List::Prompts => self.prompts.len(),
        };
        let state = ListState { list: list as u8, total, page_size: settings.page_size };
        let start = match cursor {
            None => 0,
            // PAG-04
            Some(cursor) => cursor::read(cursor, state).ok_or_else(|| {
                ErrorObject::invalid_params("invalid cursor: list again from the start")
            })?,
        };
        let key = (list, revision, start);
        let mut pages = lock(&self.cache.pages);
        if let Some(page) = pages.get(&key) {
            return Ok(JsonBuf::copied(&[page]));
        }
        let end = settings.page_size.map_or(total, |size| total.min(start + size));
        if list == List::Tools {
            let mut tools = self.tools[start..end].iter();
            // A struct whose schema was written by hand and denies it.
            if let Some(fault) = tools.find_map(|tool| schema_fault(tool.spec.whole())) {
                return Err(ErrorObject::internal(fault));
            }
        }
        let next = (end < total).then(|| cursor::write(end, state));
        let page: Arc<[u8]> =
            self.write_page(settings, server, list, revision, start..end, next).into();
        pages.insert(key, page.clone());
        Ok(JsonBuf::copied(&[page]))
    }

    fn write_page(
        &self,
        settings: &Settings,
        server: &RawJson,
        list: List,
        revision: Revision,
        range: std::ops::Range<usize>,
        next: Option<String>,
    ) -> Vec<u8> {
        let Settings { ttl, cache_scope, .. } = settings;
        macro_rules! page {
            ($Result:ident, $items:expr) => {{
                let mut page = $Result::new($items)
                    .ttl(*ttl)
                    .cache_scope(cache_scope.clone())
                    .meta(stamp(server));
                page.next_cursor = next;
                let mut json = Vec::new();
                page.write_json(Target::of(revision), &mut json);
                json
            }};
        }
        match list {
            List::Tools => page!(ListToolsResult, whole(&self.tools[range])),
            List::Resources => page!(
                ListResourcesResult,
                self.resources[range].iter().map(|entry| entry.spec.clone()).collect::<Vec<_>>()
            ),
            List::Prompts => page!(ListPromptsResult, whole(&self.prompts[range])),
            List::Templates => page!(
                ListResourceTemplatesResult,
                self.templates[range].iter().map(|entry| entry.spec.clone()).collect::<Vec<_>>()
            ),
        }
    }
}

fn whole<T: Clone, H>(entries: &[Entry<Spec<T>, H>]) -> Vec<T> {
    entries.iter().map(|entry| entry.spec.whole().clone()).collect()
}

/// MET-05: who answers. Left out by itself where the revision does not know it.
pub(crate) fn stamp(server: &RawJson) -> Meta {
    Meta::new().with(meta_keys::SERVER_INFO, server.clone())
}

/// What is wrong with a tool's schema, if anything (TOL-03).
pub(crate) fn schema_fault(tool: &Tool) -> Option<String> {
    let name = &tool.name;
    (!tool.input_schema.has_object_root()).then(|| {
        format!("tool {name:?}: its arguments must be a struct, or a schema of type object")
    })
}
