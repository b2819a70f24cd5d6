//! A host that can be asked: by requests in a legacy session, by `input_required` in the modern era.

use std::sync::Arc;

use serde_json::{Value, json};
use taut::Server;

use crate::wire::Wire;

pub(crate) const MODERN: &str = "2026-07-28";

/// Every revision that knows forms.
pub(crate) const REVISIONS: [&str; 3] = ["2025-06-18", "2025-11-25", MODERN];

/// A client that can be asked everything.
pub(crate) fn everything() -> Value {
    json!({ "elicitation": { "form": {}, "url": {} }, "sampling": { "tools": {} }, "roots": {} })
}

pub(crate) struct Host {
    pub(crate) wire: Wire,
    revision: &'static str,
    capabilities: Value,
    next_id: u64,
    /// What it was asked, in order: method and params.
    pub(crate) asked: Vec<(String, Value)>,
}

impl Host {
    pub(crate) async fn new<S: Send + Sync + 'static>(
        server: &Arc<Server<S>>,
        revision: &'static str,
        capabilities: Value,
    ) -> Self {
        let mut wire = Wire::to_shared(server);
        if revision != MODERN {
            let params = json!({
                "protocolVersion": revision,
                "capabilities": capabilities,
                "clientInfo": { "name": "host", "version": "1" },
            });
            let request =
                json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params });
            wire.send(request).await;
            assert_eq!(wire.next().await["result"]["protocolVersion"], revision);
            wire.notify("notifications/initialized", json!({})).await;
            // Answered, so what stood before it has been taken in.
            wire.send(json!({ "jsonrpc": "2.0", "id": 0, "method": "ping" })).await;
            wire.next().await;
        }
        Self { wire, revision, capabilities, next_id: 1, asked: Vec::new() }
    }

    pub(crate) async fn modern<S: Send + Sync + 'static>(server: Server<S>) -> Self {
        Self::new(&Arc::new(server), MODERN, everything()).await
    }

    /// Sends a request in the way of its era. Gives its id.
    pub(crate) async fn send(&mut self, method: &str, params: Value) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        if self.revision == MODERN {
            let meta = json!({ "io.modelcontextprotocol/clientCapabilities": self.capabilities });
            self.wire.ask_with(id, method, params, meta).await;
        } else {
            self.wire
                .send(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))
                .await;
        }
        id
    }

    /// Sends a request and takes what comes next.
    pub(crate) async fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params).await;
        let answer = self.wire.next().await;
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    pub(crate) async fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.request("tools/call", json!({ "name": tool, "arguments": arguments })).await
    }

    /// The same call with answers to what `required` asked.
    pub(crate) async fn retry(
        &mut self,
        tool: &str,
        arguments: Value,
        required: &Value,
        responses: Value,
    ) -> Value {
        let params = json!({
            "name": tool,
            "arguments": arguments,
            "requestState": required["result"]["requestState"],
            "inputResponses": responses,
        });
        self.request("tools/call", params).await
    }

    /// Sends a request, answers all questions, and gives what it came to.
    pub(crate) async fn settle(
        &mut self,
        method: &str,
        params: Value,
        mut answer: impl FnMut(&str, &Value) -> Value,
    ) -> Value {
        let mut id = self.send(method, params.clone()).await;
        loop {
            let message = self.wire.next().await;
            if let Some(question) = message["method"].as_str() {
                let result = self.ask(question, &message["params"], &mut answer);
                let reply = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result });
                self.wire.send(reply).await;
                continue;
            }
            assert_eq!(message["id"], id, "{message}");
            if message["result"]["resultType"] != "input_required" {
                return message;
            }
            let mut again = params.clone();
            again["requestState"] = message["result"]["requestState"].clone();
            let questions = message["result"]["inputRequests"].as_object().unwrap();
            again["inputResponses"] = questions
                .iter()
                .map(|(key, question)| {
                    let method = question["method"].as_str().unwrap();
                    (key.clone(), self.ask(method, &question["params"], &mut answer))
                })
                .collect::<serde_json::Map<_, _>>()
                .into();
            id = self.send(method, again).await;
        }
    }

    fn ask(
        &mut self,
        method: &str,
        params: &Value,
        answer: &mut impl FnMut(&str, &Value) -> Value,
    ) -> Value {
        self.asked.push((method.to_owned(), params.clone()));
        answer(method, params)
    }
}

/// The key of the only question.
pub(crate) fn only_key(required: &Value) -> String {
    let questions = required["result"]["inputRequests"].as_object();
    let questions = questions.unwrap_or_else(|| panic!("no question: {required}"));
    assert_eq!(questions.len(), 1, "{required}");
    questions.keys().next().unwrap().clone()
}

/// The key of the question with this message.
pub(crate) fn key_of(required: &Value, message: &str) -> String {
    let questions = required["result"]["inputRequests"].as_object();
    let questions = questions.unwrap_or_else(|| panic!("no question: {required}"));
    let mut with = questions.iter().filter(|(_, q)| q["params"]["message"] == message);
    with.next().unwrap_or_else(|| panic!("{message} is not asked: {required}")).0.clone()
}

/// An answer to a form.
pub(crate) fn accept(content: Value) -> Value {
    json!({ "action": "accept", "content": content })
}

/// The text of a tool's result.
pub(crate) fn text(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text: {answer}"))
}
