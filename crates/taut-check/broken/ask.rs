//! The tool `ask`, which asks the client back, and the roles that break a rule by that.

use serde_json::{Value, json};

use crate::server::{Answer, Request, Server, shows_forms};

fn text(text: &str) -> Option<Answer> {
    Some(Ok(json!({ "content": [{ "type": "text", "text": text }] })))
}

fn failed(text: &str) -> Option<Answer> {
    Some(Ok(json!({ "content": [{ "type": "text", "text": text }], "isError": true })))
}

/// A form with one field.
pub(crate) fn fields() -> Value {
    json!({ "type": "object", "properties": { "name": { "type": "string" } } })
}

impl Server {
    /// The whole tool.
    pub(crate) fn ask_tool(
        &mut self,
        request: &Request<'_>,
        params: &Value,
        caps: &Value,
    ) -> Option<Answer> {
        if !request.modern {
            return self.ask_now(request, caps);
        }
        let answer = params["inputResponses"].get("user_name");
        match answer {
            _ if self.is("ask-failed") && params.get("inputResponses").is_some() => {
                return Some(Err((-32602, "an answer is missing".to_owned())));
            }
            Some(answer) if answer.is_object() => return text("hello"),
            Some(_) => return Some(Err((-32602, "an answer has the wrong form".to_owned()))),
            None => {}
        }
        let anyway = self.is("form-anyway") && caps.get("elicitation").is_some()
            || self.is("ask-remembers") && self.elicits;
        if !shows_forms(caps) && !anyway {
            return match &*self.role() {
                "ask-code" => Some(Err((-32602, "elicitation is needed".to_owned()))),
                "ask-is-error" => failed("elicitation is needed"),
                _ => Some(Err((-32021, "elicitation is needed".to_owned()))),
            };
        }
        Some(Ok(self.question("ask")))
    }

    /// A result with the question for a name.
    pub(crate) fn question(&mut self, tool: &str) -> Value {
        let mut schema = fields();
        if self.is("form-nested") {
            schema["properties"]["name"] = json!({ "type": "object", "properties": {} });
        }
        let mut entry = json!({ "method": "elicitation/create", "params": { "mode": "form", "message": "Who?", "requestedSchema": schema } });
        if self.is("input-shape") {
            entry["id"] = json!(5);
        }
        json!({ "resultType": "input_required", "inputRequests": { "user_name": entry }, "requestState": self.sealed(tool) })
    }

    /// The same by a request of its own.
    fn ask_now(&mut self, request: &Request<'_>, caps: &Value) -> Option<Answer> {
        let new = request.version >= "2025-06-18";
        if caps.get("elicitation").is_some() && new && !self.role().starts_with("ask-sampling") {
            let mut params = json!({ "message": "Who?", "requestedSchema": fields() });
            match &*self.role() {
                "ask-nested" => {
                    params["requestedSchema"]["properties"]["name"] =
                        json!({ "type": "object", "properties": {} });
                }
                "ask-formless" => params = json!({ "message": "Who?" }),
                "ask-phone" => {
                    params["requestedSchema"]["properties"]["name"]["format"] = json!("phone");
                }
                "ask-page" => {
                    params = json!({ "mode": "url", "message": "Sign in", "url": "https://example.com/", "elicitationId": "e1" });
                }
                _ => {}
            }
            return self.ask(request, "elicitation/create", params);
        }
        if caps.get("sampling").is_some() {
            let content = json!({ "type": "text", "text": "Greet me" });
            let mut params =
                json!({ "messages": [{ "role": "user", "content": content }], "maxTokens": 5 });
            match &*self.role() {
                "ask-sampling-endless" => params["maxTokens"] = Value::Null,
                "ask-sampling-text" => params["messages"][0]["content"] = json!("Greet me"),
                "ask-sampling-tools" => {
                    params["tools"] =
                        json!([{ "name": "look", "inputSchema": { "type": "object" } }]);
                }
                "ask-sampling-mixed" => {
                    params["messages"][0]["content"] = json!([{ "type": "tool_result", "toolUseId": "t1", "content": [] }, { "type": "text", "text": "and?" }]);
                }
                "ask-sampling-context" => params["includeContext"] = json!("allServers"),
                _ => {}
            }
            return self.ask(request, "sampling/createMessage", params);
        }
        failed("the client cannot do that")
    }
}
