//! Lists, page by page.
//!
//! Knows cursors and when a list that never ends is given up. Must not look into a cursor (PAG-01).

use std::collections::VecDeque;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Shared;
use super::request::{Outcome, Request, Subject, read_result};
use crate::error::{Error, Result};
use crate::mcp::{
    ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, Meta,
    Method, PageParams, Prompt, Resource, ResourceTemplate, Tool,
};

/// Pages of one list at most. Real lists have a handful; only a server that goes round in circles
/// has so many.
const MAX_PAGES: usize = 10_000;

/// A list of a server. Await it for all of it, or take it piece by piece:
///
/// ```no_run
/// # async fn run(client: taut::Client) -> taut::Result<()> {
/// let tools = client.tools().await?;
///
/// let mut tools = client.tools();
/// while let Some(tool) = tools.next().await? {
///     println!("{}", tool.name);
/// }
/// # Ok(()) }
/// ```
#[must_use = "a list is not asked for until it is awaited"]
pub struct Pages<T> {
    shared: Arc<Shared>,
    method: Method,
    ask: Ask<T>,
    refused: Option<Error>,
    timeout: Option<Duration>,
    meta: Option<Meta>,
    /// Where to go on.
    cursor: Option<String>,
    asked: usize,
    over: bool,
    ready: VecDeque<T>,
}

type Page<T> = (Vec<T>, Option<String>);

/// A page, and how long it holds.
pub(super) type Fresh<T> = (Page<T>, Duration);

type Asking<T> = Pin<Box<dyn Future<Output = Result<Page<T>>> + Send>>;

/// Asks for one page.
type Ask<T> = fn(&Pages<T>) -> Asking<T>;

/// Something that stands in a list.
pub(super) trait Listed: Sized + Clone + Send + 'static {
    type Page: Outcome + Send + 'static;
    const METHOD: Method;
    const CAPABILITY: &'static str;

    fn split(page: Self::Page) -> Fresh<Self>;
}

macro_rules! listed {
    ($($Item:ty, $Page:ty, $items:ident, $method:ident, $capability:literal;)*) => {$(
        impl Outcome for $Page {
            fn result_type(&self) -> &crate::mcp::ResultType {
                &self.result_type
            }
        }

        impl Listed for $Item {
            type Page = $Page;
            const METHOD: Method = Method::$method;
            const CAPABILITY: &'static str = $capability;

            fn split(page: $Page) -> Fresh<Self> {
                ((page.$items, page.next_cursor), page.ttl.0)
            }
        }
    )*};
}

listed! {
    Tool, ListToolsResult, tools, ListTools, "tools";
    Resource, ListResourcesResult, resources, ListResources, "resources";
    ResourceTemplate, ListResourceTemplatesResult, resource_templates, ListResourceTemplates,
        "resources";
    Prompt, ListPromptsResult, prompts, ListPrompts, "prompts";
}

/// A list that has not been asked for yet.
pub(super) fn pages<T: Listed>(shared: Arc<Shared>, offered: bool) -> Pages<T> {
    let method = T::METHOD;
    let refused = (!offered)
        .then(|| Error::NotOffered { method: method.as_str().into(), capability: T::CAPABILITY });
    Pages {
        shared,
        method,
        ask,
        refused,
        timeout: None,
        meta: None,
        cursor: None,
        asked: 0,
        over: false,
        ready: VecDeque::new(),
    }
}

fn ask<T: Listed>(pages: &Pages<T>) -> Asking<T> {
    // Who adds to the request may get another answer (CAC-04).
    if !pages.shared.settings.keep_lists || pages.meta.is_some() {
        let asking = ask_anew(pages);
        return Box::pin(async move { asking.await.map(|(page, _)| page) });
    }
    let (shared, key) = (pages.shared.clone(), (pages.method, pages.cursor.clone()));
    match shared.session.lists.page::<Page<T>>(key.0, key.1.as_deref(), now()) {
        Ok(page) => Box::pin(std::future::ready(Ok(page))),
        Err(seen) => {
            let asking = ask_anew(pages);
            Box::pin(async move {
                let (page, ttl) = asking.await?;
                shared.session.lists.keep(key, page.clone(), (now(), ttl), seen);
                Ok(page)
            })
        }
    }
}

/// The time, as timers see it: a test may have stopped it.
fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

fn ask_anew<T: Listed>(pages: &Pages<T>) -> impl Future<Output = Result<Fresh<T>>> + Send + use<T> {
    let mut params = PageParams::new();
    params.cursor = pages.cursor.clone();
    let subject = Subject {
        method: pages.method.as_str().into(),
        tool: None,
        modern: pages.shared.agreed.revision.is_modern(),
    };
    let shared = pages.shared.clone();
    let mut request = Request::new(shared, subject, Box::new(params), read_result::<T::Page>);
    if let Some(timeout) = pages.timeout {
        request = request.timeout(timeout);
    }
    if let Some(meta) = &pages.meta {
        request = request.meta(meta.clone());
    }
    let asking = async move { request.await.map(T::split) };
    #[cfg(feature = "validate")]
    let asking = super::check::learning(pages.shared.clone(), asking);
    asking
}

impl<T> Pages<T> {
    /// How long each page may take.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Adds to the `_meta` of each request.
    pub fn meta(mut self, meta: Meta) -> Self {
        self.meta = Some(meta);
        self
    }

    /// The next page; nothing after the last.
    ///
    /// # Errors
    /// As for any request; or the server's list never ends.
    pub async fn next_page(&mut self) -> Result<Option<Vec<T>>> {
        if let Some(error) = self.refused.take() {
            self.over = true;
            return Err(error);
        }
        if !self.ready.is_empty() {
            return Ok(Some(self.ready.drain(..).collect()));
        }
        if self.over {
            return Ok(None);
        }
        let (items, next) = (self.ask)(self).await?;
        self.asked += 1;
        // PAG-02, PAG-03: only a cursor that is not there ends the list.
        self.over = next.is_none();
        if next.is_some() && (next == self.cursor || self.asked >= MAX_PAGES) {
            self.over = true;
            let what = "its list never ends: the next page is the one before";
            return Err(Error::Violation {
                method: self.method.as_str().into(),
                what: what.into(),
            });
        }
        self.cursor = next;
        Ok(Some(items))
    }

    /// The next item; nothing after the last.
    ///
    /// # Errors
    /// As for [`next_page`](Self::next_page).
    pub async fn next(&mut self) -> Result<Option<T>> {
        while self.ready.is_empty() {
            match self.next_page().await? {
                Some(items) => self.ready = items.into(),
                None => return Ok(None),
            }
        }
        Ok(self.ready.pop_front())
    }
}

impl<T: Send + 'static> IntoFuture for Pages<T> {
    type Output = Result<Vec<T>>;
    type IntoFuture = Pin<Box<dyn Future<Output = Result<Vec<T>>> + Send>>;

    fn into_future(mut self) -> Self::IntoFuture {
        Box::pin(async move {
            let mut all = Vec::new();
            while let Some(items) = self.next_page().await? {
                all.extend(items);
            }
            Ok(all)
        })
    }
}
