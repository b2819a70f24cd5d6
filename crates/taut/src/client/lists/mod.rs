//! Lists, page by page.
//!
//! Knows cursors, and when a list that is too long or never ends is given up. Must not look into a
//! cursor (PAG-01).

#[cfg(feature = "validate")]
mod check;

use std::collections::VecDeque;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;

use super::connection::{Client, ClientShared, bounded};
use super::request::{Subject, TypedResult, read_result};
use crate::driver::now;
use crate::error::{Error, Result};
use crate::mcp::{
    ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, Meta,
    Method, PageParams, Prompt, Resource, ResourceTemplate, Tool,
};

#[cfg(feature = "validate")]
pub(super) use check::checked;

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
///
/// A list that is awaited as a whole may have at most
/// [`max_list_bytes`](crate::ClientBuilder::max_list_bytes).
#[must_use = "a list is not asked for until it is awaited"]
pub struct Pages<T> {
    shared: Arc<ClientShared>,
    method: Method,
    ask: Ask<T>,
    refused: Option<Error>,
    timeout: Option<Duration>,
    meta: Option<Meta>,
    /// Where to go on.
    cursor: Option<String>,
    asked: usize,
    /// What all pages so far had on the wire.
    bytes: usize,
    /// What the cursors of all pages so far had.
    cursors: usize,
    over: bool,
    ready: VecDeque<T>,
}

#[derive(Clone)]
struct Page<T> {
    items: Vec<T>,
    next: Option<String>,
    /// What it had on the wire.
    bytes: usize,
    /// How long it holds.
    ttl: Duration,
}

type FuturePage<T> = Pin<Box<dyn Future<Output = Result<Page<T>>> + Send>>;

/// Asks for one page.
type Ask<T> = fn(&Pages<T>) -> FuturePage<T>;

/// Something that stands in a list.
pub(super) trait Listed: Sized + Clone + Send + 'static {
    type Result: TypedResult + Send + 'static;
    const METHOD: Method;
    const CAPABILITY: &'static str;

    /// Items, the next cursor, and how long they hold.
    fn split(result: Self::Result) -> (Vec<Self>, Option<String>, Duration);
}

macro_rules! listed {
    ($($Item:ty, $Page:ty, $items:ident, $method:ident, $capability:literal;)*) => {$(
        impl Listed for $Item {
            type Result = $Page;
            const METHOD: Method = Method::$method;
            const CAPABILITY: &'static str = $capability;

            fn split(page: $Page) -> (Vec<Self>, Option<String>, Duration) {
                (page.$items, page.next_cursor, page.ttl.0)
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
pub(super) fn pages<T: Listed>(client: &Client, offered: bool) -> Pages<T> {
    let method = T::METHOD;
    let refused = (!offered)
        .then(|| Error::NotOffered { method: method.as_str().into(), capability: T::CAPABILITY });
    Pages {
        shared: client.0.clone(),
        method,
        ask,
        refused,
        timeout: None,
        meta: None,
        cursor: None,
        asked: 0,
        bytes: 0,
        cursors: 0,
        over: false,
        ready: VecDeque::new(),
    }
}

fn ask<T: Listed>(pages: &Pages<T>) -> FuturePage<T> {
    let settings = pages.shared.settings();
    // A request with another `_meta` may get another answer (CAC-04).
    if !settings.keep_lists || pages.meta.is_some() {
        return ask_server(pages);
    }
    let (shared, key) = (pages.shared.clone(), (pages.method, pages.cursor.clone()));
    match shared.session.state.lists.page::<Page<T>>(&key, now()) {
        Ok(page) => Box::pin(std::future::ready(Ok(page))),
        Err(seen) => {
            let (asking, limit) = (ask_server(pages), settings.max_kept_bytes);
            Box::pin(async move {
                let page = asking.await?;
                let (kept, time) = ((page.clone(), page.bytes), (now(), page.ttl));
                shared.session.state.lists.keep(key, kept, time, seen, limit);
                Ok(page)
            })
        }
    }
}

fn ask_server<T: Listed>(pages: &Pages<T>) -> FuturePage<T> {
    let mut params = PageParams::new();
    params.cursor = pages.cursor.clone();
    let mut request = Client(pages.shared.clone()).typed(pages.method, &params, read_page::<T>);
    if let Some(timeout) = pages.timeout {
        request = request.timeout(timeout);
    }
    if let Some(meta) = &pages.meta {
        request = request.meta(meta.clone());
    }
    #[cfg(feature = "validate")]
    if pages.shared.settings().check_answers {
        return Box::pin(check::learning(pages.shared.clone(), request));
    }
    Box::pin(request.into_future())
}

fn read_page<T: Listed>(raw: &RawValue, subject: Subject) -> Result<Page<T>> {
    let (items, next, ttl) = T::split(read_result(raw, subject)?);
    Ok(Page { items, next, bytes: raw.get().len(), ttl })
}

setters! { Pages<T>, [T];
    /// Sets how long each page may take.
    timeout(timeout: Duration) => timeout = Some(bounded(timeout));

    /// Adds to the `_meta` of each request.
    meta(meta: Meta) => meta = Some(meta);
}

impl<T> Pages<T> {
    /// The next page; `None` after the last.
    ///
    /// # Errors
    /// As for any request; or the server's list never ends: a page leads to itself, there are more
    /// pages than [`max_pages`](crate::ClientBuilder::max_pages), or their cursors alone have more bytes than a list
    /// may have ([`max_list_bytes`](crate::ClientBuilder::max_list_bytes)).
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
        let Page { items, next, bytes, .. } = (self.ask)(self).await?;
        self.asked += 1;
        self.bytes = self.bytes.saturating_add(bytes);
        // PAG-02, PAG-03: only a cursor that is not there ends the list.
        self.over = next.is_none();
        if next.is_some() && next == self.cursor {
            return Err(self.give_up("its list never ends: the next page is the one before".into()));
        }
        let most = self.shared.settings().max_pages;
        if next.is_some() && self.asked >= most {
            let what = format!("its list has more than {most} pages (ClientBuilder::max_pages)");
            return Err(self.give_up(what));
        }
        self.cursors += next.as_ref().map_or(0, String::len);
        let most = self.shared.settings().max_list_bytes;
        if self.cursors > most {
            let bytes = self.cursors;
            return Err(self.too_large(bytes, most));
        }
        self.cursor = next;
        Ok(Some(items))
    }

    fn give_up(&mut self, what: String) -> Error {
        self.over = true;
        Error::Violation { method: self.method.as_str().into(), what: what.into() }
    }

    fn too_large(&mut self, bytes: usize, limit: usize) -> Error {
        self.over = true;
        let method = self.method.as_str().into();
        Error::TooLarge { method, bytes, limit, setting: "ClientBuilder::max_list_bytes" }
    }

    async fn all(mut self) -> Result<Vec<T>> {
        let most = self.shared.settings().max_list_bytes;
        let mut all = Vec::new();
        while let Some(items) = self.next_page().await? {
            all.extend(items);
            if self.bytes > most {
                let bytes = self.bytes;
                return Err(self.too_large(bytes, most));
            }
        }
        Ok(all)
    }

    /// The next item; `None` after the last.
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

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.all())
    }
}
