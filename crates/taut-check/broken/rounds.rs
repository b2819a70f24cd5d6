//! Tools of the fixture that ask back, in one round or in several, and with forms.

use serde_json::{Value, json};

use crate::server::{Answer, Request, Server};

pub(crate) fn form() -> Value {
    let schema = json!({ "type": "object", "properties": { "name": { "type": "string" } } });
    json!({ "method": "elicitation/create", "params": { "mode": "form", "message": "Who?", "requestedSchema": schema } })
}

fn sampling() -> Value {
    let content = json!({ "type": "text", "text": "Greet me" });
    json!({ "method": "sampling/createMessage", "params": { "messages": [{ "role": "user", "content": content }], "maxTokens": 5 } })
}

fn roots() -> Value {
    json!({ "method": "roots/list" })
}

fn text(text: &str) -> Option<Option<Answer>> {
    Some(Some(Ok(json!({ "content": [{ "type": "text", "text": text }] }))))
}

fn asks(questions: Value, state: Option<&str>) -> Option<Option<Answer>> {
    let mut result = json!({ "resultType": "input_required", "inputRequests": questions });
    if let Some(state) = state {
        result["requestState"] = json!(state);
    }
    Some(Some(Ok(result)))
}

impl Server {
    /// Makes a question to the model what a role wants.
    pub(crate) fn spoil(&self, params: &mut Value) {
        if self.is("input-context") {
            params["includeContext"] = json!("thisServer");
        }
        if self.is("input-tool-results") {
            let mixed = json!([{ "type": "tool_result", "toolUseId": "t1", "content": [] }, { "type": "text", "text": "and?" }]);
            params["messages"][0]["content"] = mixed;
        }
    }

    fn spoiled(&self, mut question: Value) -> Value {
        self.spoil(&mut question["params"]);
        question
    }

    /// What a tool that asks back does; nothing for one that cannot ask this client, or is none.
    pub(crate) fn rounds(
        &mut self,
        request: &Request<'_>,
        name: &str,
        caps: &Value,
    ) -> Option<Option<Answer>> {
        let can = |name: &str| caps.get(name).is_some();
        if !request.modern {
            return match name {
                "test_elicitation_sep1034_defaults" if can("elicitation") => {
                    let age = if self.is("input-forms") { json!("30") } else { json!(30) };
                    let fields = json!({ "name": { "type": "string", "default": "John Doe" },
                        "age": { "type": "integer", "default": age }, "verified": { "type": "boolean", "default": true } });
                    Some(self.ask_form(request, &fields))
                }
                "test_elicitation_sep1330_enums" if can("elicitation") => {
                    let titled =
                        json!({ "type": "string", "oneOf": [{ "const": "a", "title": "A" }] });
                    let plain = match self.is("form-numbers") {
                        true => json!({ "type": "integer", "enum": [1, 2] }),
                        false => json!({ "type": "string", "enum": ["a", "b"] }),
                    };
                    let several = json!({ "type": "array", "items": { "type": "string", "enum": ["a", "b"] } });
                    let fields = json!({ "plain": plain, "titled": titled, "several": several });
                    Some(self.ask_form(request, &fields))
                }
                _ => None,
            };
        }
        let answers = &request.params["inputResponses"];
        let has = |key: &str| answers.get(key).is_some();
        let stuck = self.is("input-kinds");
        // One question at a time: whoever asks last is answered.
        if self.is("input-interleaved") && name.starts_with("test_input_required_result_") {
            let other = self.turn_of != name;
            match answers.is_object() {
                true if other => return Some(Some(Err((-32602, "another tool asked".to_owned())))),
                true => {}
                false => self.turn_of = name.to_owned(),
            }
        }
        match name.strip_prefix("test_input_required_result_").unwrap_or(name) {
            "sampling" if has("model") => text("thank you"),
            "sampling" if can("sampling") || self.is("asks-anyway") => {
                asks(json!({ "model": self.spoiled(sampling()) }), None)
            }
            "list_roots" if has("roots") && !stuck => text("thank you"),
            "list_roots" if can("roots") => asks(json!({ "roots": roots() }), None),
            "multiple_inputs" if has("who") && has("model") && has("roots") => text("thank you"),
            "multiple_inputs" if can("roots") && can("sampling") && can("elicitation") => asks(
                json!({ "who": form(), "model": sampling(), "roots": roots() }),
                Some("several"),
            ),
            "request_state" if has("confirm") => {
                match request.params["requestState"] == "confirming" {
                    true => text("thank you"),
                    false => Some(Some(Err((-32602, "that is not our state".to_owned())))),
                }
            }
            "request_state" if can("elicitation") => {
                asks(json!({ "confirm": form() }), Some("confirming"))
            }
            "multi_round" if has("step2") => text("thank you"),
            "multi_round" if has("step1") && !self.is("input-rounds") => {
                asks(json!({ "step2": form() }), Some("round-2"))
            }
            "multi_round" if can("elicitation") => {
                asks(json!({ "step1": form() }), Some("round-1"))
            }
            "capabilities" if can("elicitation") || self.is("input-declared") && self.elicits => {
                asks(json!({ "who": form() }), None)
            }
            "capabilities" if can("sampling") => asks(json!({ "model": sampling() }), None),
            "test_streaming_elicitation" if has("confirm") => text("thank you"),
            "test_streaming_elicitation" if self.is("input-no-request") && can("elicitation") => {
                let mut question = form();
                question["jsonrpc"] = json!("2.0");
                question["id"] = json!("now");
                self.send(&question);
                asks(json!({ "confirm": form() }), None)
            }
            "test_streaming_elicitation" if can("elicitation") => {
                asks(json!({ "confirm": form() }), None)
            }
            _ => None,
        }
    }

    fn ask_form(&mut self, request: &Request<'_>, fields: &Value) -> Option<Answer> {
        let schema = json!({ "type": "object", "properties": fields });
        let params = json!({ "message": "Please fill this in", "requestedSchema": schema });
        self.ask(request, "elicitation/create", params)
    }
}
