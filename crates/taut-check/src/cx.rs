//! What a check knows while it is carried out: the revision, and what the server said of itself.
//!
//! Builds messages in the way of the revision. Must not send them.

use serde_json::{Map, Value, json};

use crate::ours::Revision;
use crate::seen::Step;

/// The keys of 2026-07-28 in `_meta`.
pub(crate) const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
pub(crate) const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
pub(crate) const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
pub(crate) const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
pub(crate) const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";
pub(crate) const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";

/// A list that the server gave, page by page.
#[derive(Clone, Debug, Default)]
pub(crate) struct Listing {
    /// Whether the server was asked.
    pub(crate) asked: bool,
    /// All items of all pages.
    pub(crate) items: Vec<Value>,
    /// The result of each page.
    pub(crate) pages: Vec<Value>,
    /// The answer that ended the list early.
    pub(crate) error: Option<Value>,
    /// Whether a page was not answered.
    pub(crate) lost: bool,
    /// Why it has no end: it is read for ever.
    pub(crate) endless: Option<String>,
}

/// From how many milliseconds on a call takes long enough to be cancelled.
pub(crate) const SLOW: u64 = 300;

/// From how many milliseconds on it takes too long to be waited for again and again.
const LONG: u64 = 3000;

/// A call that was allowed, and what came of it.
#[derive(Clone, Debug)]
pub(crate) struct Called {
    pub(crate) tool: String,
    pub(crate) args: Value,
    /// The whole answer.
    pub(crate) reply: Option<Value>,
    pub(crate) took_ms: u64,
    /// The argument whose text comes back in the result, if one does.
    pub(crate) echoes: Option<String>,
    /// The methods of the questions that it puts to a client that declares everything.
    pub(crate) asks: Vec<String>,
}

impl Called {
    pub(crate) fn result(&self) -> Option<&Value> {
        self.reply.as_ref().and_then(|reply| reply.get("result"))
    }

    /// Whether it can be made some times more: it is not known to take long.
    pub(crate) fn is_quick(&self) -> bool {
        !self.worked() || self.took_ms < SLOW
    }

    pub(crate) fn worked(&self) -> bool {
        self.result()
            .is_some_and(|result| result["isError"] != true && result.get("content").is_some())
    }
}

/// What the server said of itself in one revision.
#[derive(Clone, Debug, Default)]
pub(crate) struct Survey {
    /// Checks in which the server answered nothing any more, and that passed when they were tried alone.
    pub(crate) stalls: Vec<&'static str>,
    /// The result of `initialize` or of `server/discover`.
    pub(crate) opened: Option<Value>,
    pub(crate) tools: Listing,
    pub(crate) resources: Listing,
    pub(crate) templates: Listing,
    pub(crate) prompts: Listing,
    pub(crate) calls: Vec<Called>,
    /// Whether the server opens in the other era, too.
    pub(crate) dual: bool,
    /// The revisions that were tried, and those of them that the server opens in.
    pub(crate) tried: Vec<String>,
    pub(crate) opens: Vec<String>,
    /// Why it did not open in this revision.
    pub(crate) closed: Option<String>,
}

impl Survey {
    pub(crate) fn capabilities(&self) -> &Value {
        self.opened.as_ref().map_or(&Value::Null, |opened| &opened["capabilities"])
    }

    /// Whether it declares a capability, such as `tools` or `resources/subscribe`.
    pub(crate) fn declares(&self, path: &str) -> bool {
        let found = self.capabilities().pointer(&format!("/{path}"));
        found.is_some_and(|found| !found.is_null() && found != &Value::Bool(false))
    }

    /// A call that worked and fits.
    pub(crate) fn call(&self, fits: impl Fn(&Called) -> bool) -> Result<&Called, String> {
        let worked = || self.calls.iter().filter(|call| call.worked());
        let none = match worked().next() {
            None => "no call is allowed: --call TOOL --args JSON, or --fixture",
            Some(_) => "no allowed call shows this: allow another with --call, or --fixture",
        };
        worked().find(|call| fits(call)).ok_or_else(|| none.to_owned())
    }

    /// A call whose arguments may be changed: it says again what it is told, and is named for that. Any other tool is
    /// called with the arguments that were allowed, and no others.
    pub(crate) fn echo(&self) -> Result<&Called, String> {
        let named = |call: &Called| {
            call.echoes.is_some() && call.tool.to_ascii_lowercase().contains("echo")
        };
        self.call(named).map_err(|why| match self.calls.is_empty() {
            true => why,
            false => "no allowed call is an echo: a tool with that word in its name, which gives back a text".to_owned(),
        })
    }

    /// The call that takes longest, if that is long enough to be cancelled.
    pub(crate) fn slow_call(&self) -> Result<&Called, String> {
        let slowest =
            self.calls.iter().filter(|call| call.worked()).max_by_key(|call| call.took_ms);
        let why = || "no allowed call takes 300 ms: allow one with --call".to_owned();
        slowest.filter(|call| call.took_ms >= SLOW).ok_or_else(why)
    }

    /// The same call, if several of them one after the other can be waited for: a server may run one at a time.
    pub(crate) fn short_slow_call(&self) -> Result<&Called, String> {
        match self.slow_call()? {
            call if call.took_ms > LONG => {
                Err("the slow call takes too long to be waited for".to_owned())
            }
            call => Ok(call),
        }
    }

    /// The tool as it was listed.
    pub(crate) fn tool(&self, name: &str) -> Option<&Value> {
        self.tools.items.iter().find(|tool| tool["name"] == name)
    }
}

/// What a check has at hand.
pub(crate) struct Cx<'a> {
    pub(crate) revision: Revision,
    /// What the ids of this probe begin at.
    pub(crate) base: i64,
    pub(crate) survey: &'a Survey,
    pub(crate) fixture: bool,
}

impl Cx<'_> {
    pub(crate) fn modern(&self) -> bool {
        self.revision.is_modern()
    }

    /// The n-th id of this probe.
    pub(crate) fn id(&self, n: i64) -> Value {
        Value::from(self.base + n)
    }

    /// The `_meta` that a request has to have.
    pub(crate) fn meta(&self) -> Value {
        meta_of(self.revision, &json!({}))
    }

    /// A request with an id of its own, written as the revision wants it.
    pub(crate) fn request_as(&self, id: &Value, method: &str, params: Value) -> Value {
        request(self.revision, id, method, params, &json!({}))
    }

    /// The n-th request of this probe.
    pub(crate) fn request(&self, n: i64, method: &str, params: Value) -> Step {
        Step::Send(self.request_as(&self.id(n), method, params))
    }

    /// A request that declares client capabilities, where they are declared with each.
    pub(crate) fn request_with(&self, n: i64, method: &str, params: Value, caps: &Value) -> Step {
        Step::Send(request(self.revision, &self.id(n), method, params, caps))
    }

    pub(crate) fn note(&self, method: &str, params: Value) -> Step {
        let mut message = json!({ "jsonrpc": "2.0", "method": method });
        if !params.is_null() {
            message["params"] = params;
        }
        Step::Send(message)
    }

    /// A request that every server in this revision serves, and that changes nothing.
    pub(crate) fn harmless(&self) -> &'static str {
        if self.modern() { "server/discover" } else { "ping" }
    }

    /// That request with an id.
    pub(crate) fn harmless_as(&self, id: &Value) -> Value {
        self.request_as(id, self.harmless(), Value::Null)
    }
}

/// The `_meta` of a request in a revision.
pub(crate) fn meta_of(revision: Revision, capabilities: &Value) -> Value {
    if !revision.is_modern() {
        return json!({});
    }
    let info = json!({ "name": "taut-check", "version": env!("CARGO_PKG_VERSION") });
    json!({ VERSION: revision.as_str(), CAPABILITIES: capabilities, CLIENT_INFO: info })
}

/// A request in the way of a revision. `params` may bring a `_meta` of its own, which is kept.
pub(crate) fn request(
    revision: Revision,
    id: &Value,
    method: &str,
    params: Value,
    capabilities: &Value,
) -> Value {
    let mut message = json!({ "jsonrpc": "2.0", "id": id, "method": method });
    let wanted = !params.is_null() || revision.is_modern();
    let mut params = match params {
        Value::Null => Value::Object(Map::new()),
        params => params,
    };
    if let (true, Some(members)) = (revision.is_modern(), params.as_object_mut()) {
        let mut meta = meta_of(revision, capabilities);
        if let (Some(Value::Object(own)), Some(meta)) = (members.get("_meta"), meta.as_object_mut())
        {
            meta.extend(own.clone());
        }
        members.insert("_meta".to_owned(), meta);
    }
    if wanted {
        message["params"] = params;
    }
    message
}

/// All that a client can be asked for in a revision: in the older ones, as little as says so.
pub(crate) fn askable(revision: Revision) -> Value {
    match revision.as_str() {
        "2024-11-05" | "2025-03-26" => json!({ "sampling": {}, "roots": {} }),
        _ if !revision.is_modern() => json!({ "elicitation": {}, "sampling": {}, "roots": {} }),
        _ => json!({
            "elicitation": { "form": {}, "url": {} },
            "sampling": { "tools": {}, "context": {} },
            "roots": {},
        }),
    }
}

/// The request `initialize`.
pub(crate) fn initialize(id: &Value, version: &str, capabilities: &Value) -> Value {
    let info = json!({ "name": "taut-check", "version": env!("CARGO_PKG_VERSION") });
    let params =
        json!({ "protocolVersion": version, "capabilities": capabilities, "clientInfo": info });
    json!({ "jsonrpc": "2.0", "id": id, "method": "initialize", "params": params })
}
