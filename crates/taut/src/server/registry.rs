//! What a server offers: tools, resources, templates, prompts, completions, in the order given.
//!
//! A snapshot: what changes is copied and exchanged whole, so that a request sees one state. Lists
//! are serialised once for each revision and page, and reused (TOL-22).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::cursor::{self, Position};
use super::erase::schema_fault;
use super::handler::Erased;
use super::spec::Spec;
use super::template::Template;
use super::{Settings, Shared};
use crate::mcp::{
    CompletionReference, JsonObject, ListPromptsResult, ListResourceTemplatesResult,
    ListResourcesResult, ListToolsResult, Meta, Prompt, PromptsCapability, RawJson, Resource,
    ResourceTemplate, ResourcesCapability, Revision, ServerCapabilities, Target, Tool,
    ToolsCapability, WriteJson, meta_keys,
};
use crate::rpc::{Body, ErrorObject, Seed};

/// Something that is offered, and what it does.
pub(super) struct Offer<T, S> {
    pub(super) spec: T,
    pub(super) handler: Erased<S>,
}

impl<T: Clone, S> Clone for Offer<T, S> {
    fn clone(&self) -> Self {
        Self { spec: self.spec.clone(), handler: self.handler.clone() }
    }
}

type ToolOffer<S> = Offer<Spec<Tool>, S>;

/// A family of resources and how to read one.
pub(super) struct Family<S> {
    pub(super) template: Template,
    pub(super) offer: Offer<ResourceTemplate, S>,
}

impl<S> Clone for Family<S> {
    fn clone(&self) -> Self {
        Self { template: self.template.clone(), offer: self.offer.clone() }
    }
}

/// The four lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum List {
    Tools,
    Resources,
    Templates,
    Prompts,
}

/// One state of the offer.
pub(super) struct Registry<S> {
    pub(super) tools: Vec<ToolOffer<S>>,
    pub(super) resources: Vec<Offer<Resource, S>>,
    pub(super) families: Vec<Family<S>>,
    pub(super) prompts: Vec<Offer<Spec<Prompt>, S>>,
    /// By what is completed (`prompt` name or template) and the argument's name.
    pub(super) completions: HashMap<(String, String), Erased<S>>,
    tool_places: HashMap<Arc<str>, usize, Seed>,
    cache: Cache,
}

/// What follows from the offer, worked out when it is first asked for.
#[derive(Default)]
struct Cache {
    pages: Mutex<HashMap<(List, Revision, usize), Arc<Page>>>,
    capabilities: OnceLock<ServerCapabilities>,
}

/// A list result as it leaves, in JSON.
pub(super) struct Page(Box<[u8]>);

/// A shared page on its way out.
pub(super) struct PageBody(Arc<Page>);

impl Body for PageBody {
    fn write(&self, out: &mut Vec<u8>) -> Result<(), serde_json::Error> {
        out.extend_from_slice(&self.0.0);
        Ok(())
    }
}

impl<S> Default for Registry<S> {
    fn default() -> Self {
        Self {
            tools: Vec::new(),
            resources: Vec::new(),
            families: Vec::new(),
            prompts: Vec::new(),
            completions: HashMap::new(),
            tool_places: HashMap::default(),
            cache: Cache::default(),
        }
    }
}

impl<S> Clone for Registry<S> {
    /// The same offer, with nothing worked out yet.
    fn clone(&self) -> Self {
        Self {
            tools: self.tools.clone(),
            resources: self.resources.clone(),
            families: self.families.clone(),
            prompts: self.prompts.clone(),
            completions: self.completions.clone(),
            tool_places: self.tool_places.clone(),
            cache: Cache::default(),
        }
    }
}

impl<S> Registry<S> {
    pub(super) fn tool(&self, name: &str) -> Option<(&Arc<str>, &ToolOffer<S>)> {
        let (name, at) = self.tool_places.get_key_value(name)?;
        self.tools.get(*at).map(|tool| (name, tool))
    }

    pub(super) fn add_tool(&mut self, offer: ToolOffer<S>) {
        self.tool_places.insert((*offer.spec.name).into(), self.tools.len());
        self.tools.push(offer);
    }

    pub(super) fn remove_tool(&mut self, name: &str) -> bool {
        let before = self.tools.len();
        self.tools.retain(|offer| offer.spec.name != name);
        self.tool_places =
            self.tools.iter().enumerate().map(|(at, t)| ((*t.spec.name).into(), at)).collect();
        self.tools.len() < before
    }

    /// The prompt or template that is completed, and whether it has such an argument.
    pub(super) fn blank(&self, of: &CompletionReference, argument: &str) -> Option<(String, bool)> {
        match of {
            CompletionReference::Prompt(of) => {
                let prompt = self.prompts.iter().find(|offer| offer.spec.name == of.name)?;
                let mut blanks = prompt.spec.arguments.iter().flatten();
                Some((of.name.clone(), blanks.any(|blank| blank.name == argument)))
            }
            CompletionReference::Resource(of) => {
                let family = self.families.iter().find(|f| f.offer.spec.uri_template == of.uri)?;
                Some((of.uri.clone(), family.template.names().any(|name| name == argument)))
            }
            _ => None,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        let lists =
            [self.tools.len(), self.resources.len(), self.families.len(), self.prompts.len()];
        lists.iter().all(|length| *length == 0)
    }

    /// The offer has changed: nothing that followed from it holds any more.
    pub(super) fn forget(&mut self) {
        self.cache = Cache::default();
    }

    /// What this offer amounts to.
    pub(super) fn capabilities(&self, settings: &Settings<S>) -> &ServerCapabilities {
        self.cache.capabilities.get_or_init(|| self.amount(settings))
    }

    /// LIF-17: only what exists, flags only where they are kept.
    fn amount(&self, settings: &Settings<S>) -> ServerCapabilities {
        let changes = settings.changes.then_some(true);
        let mut offer = ServerCapabilities::new();
        if !self.tools.is_empty() || settings.changes {
            let mut tools = ToolsCapability::new();
            tools.list_changed = changes;
            offer.tools = Some(tools);
        }
        if !self.resources.is_empty() || !self.families.is_empty() || settings.changes {
            let mut resources = ResourcesCapability::new();
            (resources.list_changed, resources.subscribe) = (changes, changes);
            offer.resources = Some(resources);
        }
        if !self.prompts.is_empty() || settings.changes {
            let mut prompts = PromptsCapability::new();
            prompts.list_changed = changes;
            offer.prompts = Some(prompts);
        }
        offer.completions = (!self.completions.is_empty()).then(JsonObject::new);
        offer.logging = settings.logging.then(JsonObject::new);
        offer
    }

    /// A page of a list, as JSON.
    pub(super) fn page(
        &self,
        shared: &Shared<S>,
        list: List,
        revision: Revision,
        cursor: Option<&str>,
    ) -> Result<PageBody, ErrorObject> {
        let total = match list {
            List::Tools => self.tools.len(),
            List::Resources => self.resources.len(),
            List::Templates => self.families.len(),
            List::Prompts => self.prompts.len(),
        };
        let position = Position { list: list as u8, total };
        let start = match cursor {
            None => 0,
            // PAG-04
            Some(cursor) => cursor::read(cursor, position).ok_or_else(|| {
                ErrorObject::invalid_params("invalid cursor: list again from the start")
            })?,
        };
        let key = (list, revision, start);
        let mut pages = self.cache.pages.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(page) = pages.get(&key) {
            return Ok(PageBody(page.clone()));
        }
        let end = shared.settings.page_size.map_or(total, |size| total.min(start + size));
        if list == List::Tools {
            let mut tools = self.tools[start..end].iter();
            // A struct whose schema was written by hand and denies it.
            if let Some(fault) = tools.find_map(|tool| schema_fault(tool.spec.whole())) {
                return Err(ErrorObject::internal(fault));
            }
        }
        let next = (end < total).then(|| cursor::write(end, position));
        let page = self
            .write_page(shared, list, revision, start..end, next)
            .map_err(|error| ErrorObject::internal(format!("list has no JSON form: {error}")))?;
        let page = Arc::new(Page(page.into_boxed_slice()));
        pages.insert(key, page.clone());
        Ok(PageBody(page))
    }

    fn write_page(
        &self,
        shared: &Shared<S>,
        list: List,
        revision: Revision,
        range: std::ops::Range<usize>,
        next: Option<String>,
    ) -> Result<Vec<u8>, serde_json::Error> {
        let Settings { ttl, cache_scope, .. } = &shared.settings;
        macro_rules! page {
            ($Result:ident, $items:expr) => {{
                let mut page = $Result::new($items)
                    .ttl(*ttl)
                    .cache_scope(cache_scope.clone())
                    .meta(stamp(&shared.info_json));
                page.next_cursor = next;
                let mut json = Vec::new();
                page.write_json(Target::of(revision), &mut json);
                Ok(json)
            }};
        }
        match list {
            List::Tools => page!(ListToolsResult, whole(&self.tools[range])),
            List::Resources => page!(
                ListResourcesResult,
                self.resources[range].iter().map(|r| r.spec.clone()).collect::<Vec<_>>()
            ),
            List::Prompts => page!(ListPromptsResult, whole(&self.prompts[range])),
            List::Templates => page!(
                ListResourceTemplatesResult,
                self.families[range].iter().map(|f| f.offer.spec.clone()).collect::<Vec<_>>()
            ),
        }
    }
}

fn whole<T: Clone, S>(offers: &[Offer<Spec<T>, S>]) -> Vec<T> {
    offers.iter().map(|offer| offer.spec.whole().clone()).collect()
}

/// MET-05: who answers. Left out by itself where the revision does not know it.
pub(super) fn stamp(info: &RawJson) -> Meta {
    Meta::new().with(meta_keys::SERVER_INFO, info.clone())
}
