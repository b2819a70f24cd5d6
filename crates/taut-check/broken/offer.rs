//! What the server offers, and the results that show it. Roles that break a list or a result are here.

use serde_json::{Value, json};

use crate::rounds::form;
use crate::server::{CAPABILITIES, Request, Server, shows_forms};

/// The fixture's prompt that asks back.
const ASKING: &str = "test_input_required_result_prompt";

impl Server {
    pub(crate) fn capabilities(&self, modern: bool) -> Value {
        let mut caps = json!({
            "tools": { "listChanged": true },
            "resources": { "listChanged": true, "subscribe": true },
            "prompts": { "listChanged": true },
            "completions": {},
            "logging": {},
        });
        let mut leave = |role: &str, name: &str| {
            if self.is(role)
                && let Some(members) = caps.as_object_mut()
            {
                members.remove(name);
            }
        };
        leave("tools-declared", "tools");
        leave("resources-declared", "resources");
        leave("prompts-declared", "prompts");
        leave("undeclared-get", "prompts");
        leave("log-declared", "logging");
        leave("error-undeclared", "completions");
        leave("complete-declared", "completions");
        if self.is("init-undeclared-fixture") {
            caps["tools"] = json!({});
        }
        if self.is("init-undeclared") {
            caps["resources"] = json!({ "subscribe": true });
        }
        if self.is("updated-undeclared") {
            caps["resources"] = json!({ "listChanged": true });
        }
        if self.is("caps-list") && !modern {
            return json!([]);
        }
        if self.is("init-capability-shape") {
            caps["logging"] = json!([]);
        }
        if self.is("nothing-changes") {
            caps = json!({ "tools": {}, "resources": {}, "prompts": {}, "completions": {}, "logging": {} });
        }
        self.task_capabilities(modern, &mut caps);
        if self.is("tasks-early") && !modern {
            caps["tasks"] = json!({ "list": {}, "cancel": {} });
        }
        if self.is("experimental") {
            caps["experimental"] = json!({ "custom": {} });
        }
        if self.is("extension-shape") {
            caps["extensions"] = json!({ "unprefixed": {} });
        }
        caps
    }

    pub(crate) fn tools(&self, request: &Request<'_>) -> Vec<Value> {
        let text = json!({ "type": "object", "properties": { "text": { "type": "string" } }, "required": ["text"] });
        let none = json!({ "type": "object", "properties": {} });
        let mut tools = vec![
            json!({ "name": "echo", "description": "Say it again", "inputSchema": text }),
            json!({ "name": "slow", "description": "Take 500 ms", "inputSchema": none }),
            json!({ "name": "log", "description": "Log a line", "inputSchema": none }),
            json!({ "name": "add", "description": "Add two numbers", "inputSchema": none }),
        ];
        if request.version >= "2025-06-18" {
            tools[3]["outputSchema"] = json!({ "type": "object", "properties": { "sum": { "type": "number" } }, "required": ["sum"] });
        }
        for name in [
            "ask",
            "test_error_handling",
            "test_tool_with_progress",
            "test_missing_capability",
            "test_input_required_result_elicitation",
            "test_input_required_result_tampered_state",
            "test_elicitation",
            "test_sampling",
            "test_trigger_tool_change",
            "test_trigger_prompt_change",
            "test_input_required_result_sampling",
            "test_input_required_result_list_roots",
            "test_input_required_result_multiple_inputs",
            "test_input_required_result_request_state",
            "test_input_required_result_multi_round",
            "test_input_required_result_capabilities",
            "test_streaming_elicitation",
            "test_elicitation_sep1034_defaults",
            "test_elicitation_sep1330_enums",
        ] {
            tools.push(json!({ "name": name, "inputSchema": none }));
        }
        if self.is("long-list") {
            let names = (0..6000).map(|n| {
                format!("a value of the field, the number {n} of very many of them, with words")
            });
            let schema = json!({ "type": "object", "properties": { "pick": { "enum": names.collect::<Vec<_>>() } } });
            tools.push(json!({ "name": "long", "inputSchema": schema }));
        }
        tools.extend(self.task_tools(request));
        if self.is("tools-shape") {
            tools[1]["inputSchema"] = json!({ "properties": {} });
        }
        match &*self.role() {
            "schema-type" => {
                tools[0]["inputSchema"]["properties"]["text"] = json!({ "type": "str" })
            }
            "type-list" => {
                tools[0]["inputSchema"]["properties"]["text"]["type"] = json!(["string", "null"])
            }
            "schema-required" => {
                tools[0]["inputSchema"]["properties"]["text"]["required"] = json!(true)
            }
            "schema-ref" => {
                tools[1]["inputSchema"]["properties"]["a"] = json!({ "$ref": "#/$defs/None" })
            }
            _ => {}
        }
        if self.is("tools-output-schema") {
            tools[3]["outputSchema"]["type"] = json!("array");
        }
        let client = &request.params["_meta"]["io.modelcontextprotocol/clientInfo"]["name"];
        if self.is("meta-client-same") && *client != "taut-check" {
            tools.push(json!({ "name": "for_others", "inputSchema": none }));
        }
        if self.is("tools-names") {
            tools.push(json!({ "name": "a name with spaces", "inputSchema": none }));
        }
        if self.is("tools-same") {
            tools.insert(
                0,
                json!({ "name": format!("t{}", std::process::id()), "inputSchema": none }),
            );
        }
        if self.is("meta-removed-fields") {
            tools[0]["execution"] = json!({ "taskSupport": "optional" });
        }
        match &*self.role() {
            "description-number" => tools[0]["description"] = json!(5),
            "hint-text" => tools[0]["annotations"] = json!({ "readOnlyHint": "true" }),
            "icons-object" => tools[0]["icons"] = json!({ "src": "https://example.com/i.png" }),
            _ => {}
        }
        let fewer = self.is("tools-steady") && self.called
            || self.is("tools-read") && self.has_read
            || self.is("tools-first") && !self.discovered;
        if fewer && request.modern {
            tools.pop();
        }
        tools
    }

    /// A list in two pages.
    pub(crate) fn page(
        &self,
        request: &Request<'_>,
        member: &str,
        mut items: Vec<Value>,
    ) -> Result<Value, (i64, String)> {
        let cursor = request.params.get("cursor");
        let second = match cursor {
            None => false,
            // The cursor of another process.
            Some(Value::String(_)) if self.is("page-restart") && self.turns.get() == 0 => {
                return Err((-32602, "no such cursor".to_owned()));
            }
            Some(Value::String(text)) if text == "second" => true,
            Some(Value::String(text)) if text.starts_with('p') && self.pages(request) => {
                return self.paged(request, member, &text[1..]);
            }
            Some(Value::String(_)) if self.is("page-bad-cursor") => false,
            Some(Value::Number(_)) if self.is("page-cursor-type") => false,
            Some(_) => return Err((-32602, "no such cursor".to_owned())),
        };
        if self.pages(request) {
            return self.paged(request, member, "0");
        }
        let first = items.len().div_ceil(2);
        let mut rest = items.split_off(first);
        if second && request.modern && request.method == "tools/list" {
            self.spoil_second(&mut rest);
        }
        let mut result = json!({ member: if second { rest } else { items } });
        if !second || self.is("page-ends") {
            result["nextCursor"] = json!("second");
        } else if self.is("page-next") {
            result["nextCursor"] = Value::Null;
        }
        if self.is("tools-order")
            && self.turns.get() % 2 == 1
            && let Some(list) = result["tools"].as_array_mut()
        {
            list.reverse();
        }
        self.turns.set(self.turns.get() + 1);
        if self.is("cache-pages") && second {
            result["cacheScope"] = json!("public");
        }
        Ok(result)
    }

    /// What roles do to the second page of tools.
    fn spoil_second(&self, rest: &mut Vec<Value>) {
        self.seconds.set(self.seconds.get() + 1);
        let extra = |name: String| json!({ "name": name, "inputSchema": { "type": "object" } });
        match &*self.role() {
            "second-turned" if self.seconds.get().is_multiple_of(2) => rest.reverse(),
            "second-rotated" => {
                let by = std::process::id() as usize % rest.len();
                rest.rotate_left(by);
            }
            "second-logged" if self.said => rest.push(extra("logged".to_owned())),
            "second-extra" => rest.push(extra(format!("t{}", std::process::id()))),
            _ => {}
        }
    }

    fn pages(&self, request: &Request<'_>) -> bool {
        request.method == "prompts/list" && (self.is("many-pages") || self.is("fresh-cursors"))
    }

    /// Very many pages with one prompt each, or pages without end.
    fn paged(&self, _: &Request<'_>, member: &str, page: &str) -> Result<Value, (i64, String)> {
        let page: usize = page.parse().map_err(|_| (-32602, "no such cursor".to_owned()))?;
        let name = if self.is("many-pages") { format!("hello{page}") } else { "hello".to_owned() };
        let mut result = json!({ member: [{ "name": name }] });
        if self.is("fresh-cursors") || page < 120 {
            result["nextCursor"] = json!(format!("p{}", page + 1));
        }
        Ok(result)
    }

    pub(crate) fn listed(&self, request: &Request<'_>) -> Result<Value, (i64, String)> {
        match request.method {
            "tools/list" if self.is("tools-list") && request.params.get("cursor").is_none() => {
                Ok(json!({ "tools": {} }))
            }
            "tools/list" => self.page(request, "tools", self.tools(request)),
            "resources/list" => {
                let mut items = vec![
                    json!({ "uri": "demo://one", "name": "one" }),
                    json!({ "uri": "demo://two", "name": "two" }),
                ];
                if self.is("resources-list") {
                    items[1] = json!({ "uri": "demo://two" });
                }
                if self.is("uri-percent") {
                    items[1]["uri"] = json!("demo://two%zz");
                }
                if self.is("size-text") {
                    items[1]["size"] = json!("3");
                }
                if self.is("resources-uri") {
                    items[1]["uri"] = json!("no address at all");
                }
                self.page(request, "resources", items)
            }
            "resources/templates/list" => {
                let mut items = vec![json!({ "uriTemplate": "demo://{id}", "name": "any" })];
                if self.is("missing-code") {
                    items.clear();
                }
                if self.is("bad-template") {
                    items.push(json!({ "uriTemplate": "demo://{id", "name": "torn" }));
                }
                if self.is("resources-templates") {
                    items[0] = json!({ "uriTemplate": "demo://{id}" });
                }
                self.page(request, "resourceTemplates", items)
            }
            _ => {
                let mut items = vec![
                    json!({ "name": "greet", "arguments": [{ "name": "who", "required": true }] }),
                    json!({ "name": "hello" }),
                    json!({ "name": ASKING }),
                ];
                if self.is("required-text") {
                    items[0]["arguments"][0]["required"] = json!("yes");
                }
                if self.is("prompts-list") {
                    items[0]["arguments"] = json!([{ "required": true }]);
                }
                self.page(request, "prompts", items)
            }
        }
    }

    pub(crate) fn read(&self, request: &Request<'_>) -> Result<Value, (i64, String)> {
        if self.is("uri-null") && request.params.get("uri") == Some(&Value::Null) {
            return Ok(json!({ "contents": [] }));
        }
        let Some(uri) = request.params.get("uri").and_then(Value::as_str) else {
            let code = if self.is("resources-request") { -32603 } else { -32602 };
            return Err((code, "a uri is needed".to_owned()));
        };
        let odd = self.is("traversal-slashes") && uri.starts_with("demo://%2e%2e%2f")
            || self.is("traversal-segment") && uri.starts_with("demo://..%2f")
            || self.is("traversal-absolute") && uri == "demo:///etc/passwd";
        if uri.ends_with("/etc/passwd") || odd {
            if odd
                || self.is("resources-traversal")
                || self.is("traversal-template") && uri.starts_with("demo://")
                || self.is("traversal-encoded") && uri.contains("%2e/")
            {
                return Ok(
                    json!({ "contents": [{ "uri": uri, "text": "root:x:0:0:root:/root:/bin/sh\n" }] }),
                );
            }
            if self.is("error-codes") {
                return Err((-32042, "not allowed".to_owned()));
            }
            if self.is("error-codes-avoided") {
                return Err((-32010, "not allowed".to_owned()));
            }
        }
        if !["demo://one", "demo://two"].contains(&uri) {
            if self.is("missing-empty") && uri.starts_with("demo://") {
                return Ok(json!({ "contents": [] }));
            }
            if self.is("missing-code") && uri.starts_with("demo://") {
                return Err((-32603, "it cannot be read".to_owned()));
            }
            let right = if request.modern { -32602 } else { -32002 };
            let wrong = if request.modern { -32002 } else { -32602 };
            let odd = self.is("resources-missing") || self.is("resources-missing-modern");
            return Err((if odd { wrong } else { right }, "no such resource".to_owned()));
        }
        let two = uri == "demo://two";
        if two && self.is("away") {
            return Err((-32603, "it is not there at the moment".to_owned()));
        }
        Ok(json!({ "contents": [match two {
            _ if self.is("resources-read") => json!({ "uri": uri }),
            true if self.is("bad-blob") => json!({ "uri": uri, "blob": "no base64!" }),
            true if self.is("text-and-blob") => json!({ "uri": uri, "text": "a", "blob": "YQ==" }),
            true => json!({ "uri": uri, "blob": "YQ==" }),
            false => json!({ "uri": uri, "text": "some words" }),
        }] }))
    }

    pub(crate) fn prompt(&self, request: &Request<'_>) -> Result<Value, (i64, String)> {
        let invalid = |what: &str| Err((-32602, what.to_owned()));
        let Some(name) = request.params.get("name").and_then(Value::as_str) else {
            let code = if self.is("prompts-request") { -32603 } else { -32602 };
            return Err((code, "a name is needed".to_owned()));
        };
        if self.is("input-asks")
            && request.params["arguments"]["who"].is_string()
            && name == "greet"
        {
            return Ok(json!({ "resultType": "input_required", "inputRequests": {} }));
        }
        let caps = &request.params["_meta"][CAPABILITIES];
        let answered = request.params["inputResponses"].get("who").is_some();
        if name == ASKING && request.modern && shows_forms(caps) && !answered {
            let mut result =
                json!({ "resultType": "input_required", "inputRequests": { "who": form() } });
            if self.is("input-prompt") {
                result["ttlMs"] = json!(5);
            }
            return Ok(result);
        }
        let who = &request.params["arguments"]["who"];
        match name {
            ASKING => {}
            "greet" if request.params.get("arguments").is_none() && self.is("prompt-bare") => {
                return Err((-32603, "arguments is undefined".to_owned()));
            }
            "greet"
                if request.params["arguments"].get("who") == Some(&Value::Null)
                    && self.is("argument-null") => {}
            "greet" if request.params["arguments"].is_array() && self.is("prompt-list") => {}
            "greet"
                if self.is("prompts-missing-argument")
                    && request.params["arguments"].get("who").is_none() => {}
            "greet" if who.is_null() => {
                return invalid("who is needed");
            }
            "greet" if who.is_boolean() && self.is("argument-true") => {}
            "greet" if !who.is_null() && !who.is_string() && !self.is("prompts-argument-type") => {
                return invalid("who is a text");
            }
            "greet" | "hello" => {}
            _ if self.is("many-pages") && name.starts_with("hello") => {}
            _ if self.is("prompts-unknown") => return Err((-32603, "no such prompt".to_owned())),
            _ => return invalid("no such prompt"),
        }
        if name == "greet" && self.is("away") {
            return Err((-32603, "there is nobody of that name".to_owned()));
        }
        let role = if self.is("prompts-get") { "system" } else { "user" };
        let mut content = json!({ "type": "text", "text": format!("Greet {who}.") });
        if name == "hello" {
            let data = if self.is("bad-image") { "no base64!" } else { "YQ==" };
            content = json!({ "type": "image", "data": data, "mimeType": "image/png" });
        }
        let mut result = json!({ "messages": [{ "role": role, "content": content }] });
        if self.is("schema-valid") {
            result["description"] = json!(5);
        }
        Ok(result)
    }

    pub(crate) fn complete(&self, request: &Request<'_>) -> Result<Value, (i64, String)> {
        let reference = &request.params["ref"];
        let known = match reference["type"].as_str() {
            Some("ref/prompt") if self.is("complete-untargeted") => {
                reference.get("name").is_none_or(|name| name == "greet")
            }
            Some("ref/prompt") => reference["name"] == "greet" || self.is("complete-unknown"),
            Some("ref/resource") => reference["uri"] == "demo://{id}",
            _ => self.is("complete-reference"),
        };
        let argument = &request.params["argument"];
        let named = argument["name"].is_string()
            || self.is("complete-nameless") && argument.get("name").is_none();
        let null = self.is("complete-null") && argument.get("value") == Some(&Value::Null);
        let whole = named && (argument["value"].is_string() || null);
        if !whole && !self.is("complete-request") {
            return Err((-32602, "an argument is needed".to_owned()));
        }
        if !known && !self.is("error-undeclared") {
            return Err((-32602, "nothing there can be completed".to_owned()));
        }
        if self.is("away") {
            return Err((-32603, "there are no suggestions".to_owned()));
        }
        let resource = reference["type"] == "ref/resource";
        let many = self.is("complete-values") || self.is("many-values") && resource;
        let count = if many { 101 } else { 2 };
        let values: Vec<String> = (0..count).map(|n| format!("name {n}")).collect();
        let mut completion = json!({ "values": values });
        if self.is("has-more") {
            completion["total"] = json!(5);
            completion["hasMore"] = json!(false);
        }
        if self.is("floats") {
            completion["total"] = json!(2.0);
        }
        if self.is("complete-asks")
            && request.params["_meta"][CAPABILITIES].get("elicitation").is_some()
        {
            return Ok(
                json!({ "resultType": "input_required", "inputRequests": { "who": form() } }),
            );
        }
        Ok(json!({ "completion": completion }))
    }
}
