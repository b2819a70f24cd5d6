//! tower-mcp as a client, on its stdio transport.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rust_common::features::{self, Failed, Outcome, check, until};
use serde_json::{Value, json};
use tower_mcp::client::{
    ClientHandler, McpClient, McpClientBuilder, ServerNotification, StdioClientTransport,
};
use tower_mcp::protocol::{
    CallToolResult, CreateMessageParams, CreateMessageResult, ElicitRequestParams, ElicitResult,
    ListRootsResult, LogLevel, Root, SubscriptionFilter,
};
use tower_mcp::{JsonRpcError, ProtocolSupport};

/// Bound on one line, above the 10 MiB that are tried.
const LONGEST_LINE: usize = 64 << 20;

/// What the handlers heard.
#[derive(Default)]
struct Heard {
    progress: Mutex<Vec<f64>>,
    logs: Mutex<Vec<Value>>,
    changed: AtomicU32,
    updated: AtomicU32,
}

struct Handler(Arc<Heard>);

fn made<T: serde::de::DeserializeOwned>(value: Value) -> Result<T, JsonRpcError> {
    serde_json::from_value(value).map_err(|error| JsonRpcError::internal_error(error.to_string()))
}

#[async_trait::async_trait]
impl ClientHandler for Handler {
    async fn handle_create_message(
        &self,
        _: CreateMessageParams,
    ) -> Result<CreateMessageResult, JsonRpcError> {
        let content = json!({ "type": "text", "text": features::ANSWER });
        made(json!({ "role": "assistant", "model": "none", "content": content }))
    }

    async fn handle_elicit(
        &self,
        params: ElicitRequestParams,
    ) -> Result<ElicitResult, JsonRpcError> {
        let second = json!(params)["requestedSchema"]["properties"]["right"].is_object();
        let form = match second {
            true => json!({ "right": true }),
            false => json!({ "size": "large", "milk": true, "name": "Ada" }),
        };
        made(json!({ "action": "accept", "content": form }))
    }

    async fn handle_list_roots(&self) -> Result<ListRootsResult, JsonRpcError> {
        made(json!({ "roots": [{ "uri": features::ROOT }] }))
    }

    async fn on_notification(&self, notification: ServerNotification) {
        match notification {
            ServerNotification::Progress(report) => {
                self.0.progress.lock().expect("no panic").push(report.progress);
            }
            ServerNotification::LogMessage(line) => {
                self.0.logs.lock().expect("no panic").push(json!(line));
            }
            ServerNotification::ResourceUpdated { .. } => {
                self.0.updated.fetch_add(1, Ordering::Relaxed);
            }
            ServerNotification::ToolsListChanged => {
                self.0.changed.fetch_add(1, Ordering::Relaxed);
            }
            ServerNotification::Subscription { notification, .. } => {
                self.on_notification(*notification).await;
            }
            _ => {}
        }
    }
}

struct Tries {
    client: McpClient,
    heard: Arc<Heard>,
    revision: String,
}

fn text(result: &CallToolResult) -> String {
    json!(result.content)[0]["text"].as_str().unwrap_or_default().to_owned()
}

async fn slow(client: &McpClient) -> Result<CallToolResult, tower_mcp::Error> {
    client.call_tool("slow", json!({ "steps": 600, "step_ms": 100 })).await
}

impl Tries {
    async fn connect(options: &features::Options) -> Result<Self, Failed> {
        let mut command = tokio::process::Command::new(&options.server[0]);
        command.args(&options.server[1..]);
        let transport = StdioClientTransport::spawn_command(&mut command).await?;
        let transport = transport.max_frame_len(LONGEST_LINE);
        let heard = Arc::new(Heard::default());
        let modern = options.mode == "modern";
        let support = if modern { ProtocolSupport::compiled() } else { ProtocolSupport::stable() };
        let client = McpClientBuilder::new()
            .protocol_support(support)
            .request_progress()
            .request_log_level(LogLevel::Debug)
            .with_sampling()
            .with_elicitation()
            .with_roots(vec![Root::new(features::ROOT)])
            .disable_response_cache()
            .connect(transport, Handler(heard.clone()))
            .await?;
        let revision = if modern {
            client.discover("tower-mcp", "1.0.0").await?;
            client.selected_protocol_version().await.unwrap_or_default()
        } else {
            client.initialize("tower-mcp", "1.0.0").await?.protocol_version
        };
        Ok(Self { client, heard, revision })
    }

    fn modern(&self) -> bool {
        self.revision.as_str() >= "2026-07-28"
    }

    async fn tool(&self, name: &str, arguments: Value) -> Result<String, Failed> {
        Ok(text(&self.client.call_tool(name, arguments).await?))
    }

    async fn echo(&self, what: &str) -> Outcome {
        let got = self.tool("echo", json!({ "text": what })).await?;
        check(got == what, got.get(..100))
    }

    async fn list(&self) -> Outcome {
        let page = self.client.list_tools().await?;
        check(page.tools[0].name == "echo", page.tools)
    }

    async fn paging(&self) -> Outcome {
        let first = self.client.list_tools().await?;
        check(first.next_cursor.is_some(), "one page only")?;
        let all = self.client.list_all_tools().await?;
        check(all.len() >= 14, all.len())
    }

    async fn structured(&self) -> Outcome {
        let result = self.client.call_tool("add", json!({ "a": 2, "b": 3 })).await?;
        check(result.structured_content == Some(json!({ "sum": 5 })), result)
    }

    async fn error(&self) -> Outcome {
        let result = self.client.call_tool("fail", json!({ "reason": "no beans" })).await?;
        check(result.is_error && text(&result).contains("no beans"), result)
    }

    async fn progress(&self) -> Outcome {
        self.heard.progress.lock()?.clear();
        let said = self.tool("slow", json!({ "steps": 5, "step_ms": 100 })).await?;
        check(said == "done after 5 steps", said)?;
        until(|| self.heard.progress.lock().is_ok_and(|seen| seen.len() >= 3)).await;
        let seen = self.heard.progress.lock()?.clone();
        check(seen.is_sorted(), seen)
    }

    async fn cancel(&self) -> Outcome {
        self.heard.progress.lock()?.clear();
        tokio::select! {
            said = self.tool("slow", json!({ "steps": 200, "step_ms": 50 })) => check(false, said)?,
            () = until(|| self.heard.progress.lock().is_ok_and(|seen| !seen.is_empty())) => {}
        }
        self.echo("still here").await
    }

    async fn log(&self) -> Outcome {
        if !self.modern() {
            let level = json!({ "level": "debug" });
            self.client.request::<_, Value>("logging/setLevel", &level).await?;
        }
        self.tool("log", json!({ "level": "warning", "message": "careful" })).await?;
        until(|| self.heard.logs.lock().is_ok_and(|logs| !logs.is_empty())).await;
        let line = self.heard.logs.lock()?[0].clone();
        check(line["level"] == "warning" && line["data"] == "careful", line)
    }

    async fn read(&self, uri: &str) -> Result<String, Failed> {
        let result = self.client.read_resource(uri).await?;
        Ok(json!(result.contents)[0]["text"].as_str().unwrap_or_default().to_owned())
    }

    async fn listen(&self, filter: Value) -> Result<tower_mcp::client::SubscriptionHandle, Failed> {
        let filter: SubscriptionFilter = serde_json::from_value(filter)?;
        let mut stream = self.client.listen_subscriptions(filter).await?;
        stream.acknowledged().await?;
        Ok(stream)
    }

    async fn resources(&self) -> Outcome {
        let listed = self.client.list_all_resources().await?;
        check(listed[0].uri == "demo://readme", &listed)?;
        let text = self.read("demo://readme").await?;
        check(text.starts_with("# "), text)
    }

    async fn template(&self) -> Outcome {
        let listed = self.client.list_all_resource_templates().await?;
        check(listed[0].uri_template == "weather://{city}/today", &listed)?;
        let text = self.read("weather://Bern/today").await?;
        check(text.contains("Bern: sunny"), text)
    }

    async fn subscribe(&self) -> Outcome {
        let uri = "demo://touched";
        let stream = if self.modern() {
            Some(self.listen(json!({ "resourceSubscriptions": [uri] })).await?)
        } else {
            self.client.subscribe_resource(uri).await?;
            None
        };
        self.tool("touch", json!({})).await?;
        until(|| self.heard.updated.load(Ordering::Relaxed) > 0).await;
        match stream {
            Some(stream) => stream.cancel().await?,
            None => self.client.unsubscribe_resource(uri).await?,
        }
        Ok(())
    }

    async fn prompts(&self) -> Outcome {
        let listed = self.client.list_all_prompts().await?;
        check(listed.len() == 2, listed)?;
        let arguments = [("name", "Ada"), ("language", "Dutch")];
        let arguments: HashMap<_, _> = arguments
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        let result = self.client.get_prompt("greet", Some(arguments)).await?;
        check(json!(result)["messages"][0]["content"]["text"] == "Greet Ada in Dutch.", result)
    }

    async fn completion(&self) -> Outcome {
        let found = self.client.complete_prompt_arg("greet", "language", "Ge").await?;
        check(found.completion.values == ["German"], found)?;
        let template = "weather://{city}/today";
        let found = self.client.complete_resource_uri(template, "city", "be").await?;
        check(found.completion.values == ["Berlin", "Bern"], found)
    }

    async fn says(&self, name: &str, arguments: Value, wanted: &str) -> Outcome {
        let said = self.tool(name, arguments).await?;
        check(said == wanted, said)
    }

    async fn changed(&self) -> Outcome {
        let arguments = json!({ "name": "later", "says": "here I am" });
        let stream = match self.modern() {
            true => Some(self.listen(json!({ "toolsListChanged": true })).await?),
            false => None,
        };
        self.tool("add_tool", arguments).await?;
        until(|| self.heard.changed.load(Ordering::Relaxed) > 0).await;
        if let Some(stream) = stream {
            stream.cancel().await?;
        }
        let listed = self.client.list_all_tools().await?;
        check(listed.iter().any(|tool| tool.name == "later"), listed)?;
        self.says("later", json!({}), "here I am").await
    }

    async fn mib(&self, count: usize) -> Outcome {
        self.echo(&"x".repeat(count << 20)).await
    }

    async fn hundred(self: &Arc<Self>) -> Outcome {
        let mut calls = tokio::task::JoinSet::new();
        for number in 0..100 {
            let tries = self.clone();
            calls.spawn(async move { tries.echo(&format!("call {number}")).await });
        }
        calls.join_all().await.into_iter().collect()
    }
}

async fn in_flight(options: &features::Options) -> Outcome {
    let before = features::servers();
    let tries = Arc::new(Tries::connect(options).await?);
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..3 {
        let tries = tries.clone();
        calls.spawn(async move { slow(&tries.client).await });
    }
    tokio::time::sleep(Duration::from_millis(200)).await;
    let ours = features::since(&before);
    // Its `shutdown` takes the client itself, so that what runs must be let go first.
    calls.shutdown().await;
    if let Some(tries) = Arc::into_inner(tries) {
        tries.client.shutdown().await?;
    }
    features::gone(&ours).await;
    Ok(())
}

async fn killed(options: &features::Options) -> Outcome {
    let before = features::servers();
    let tries = Tries::connect(options).await?;
    let call = tokio::spawn(async move { slow(&tries.client).await });
    tokio::time::sleep(Duration::from_millis(200)).await;
    features::kill(&features::since(&before));
    let ended = tokio::time::timeout(Duration::from_secs(10), call).await??;
    check(ended.is_err(), ended)
}

#[tokio::main]
async fn main() {
    let options = features::options();
    let tries = match Tries::connect(&options).await {
        Ok(tries) => Arc::new(tries),
        Err(error) => {
            return features::say(
                &json!({ "feature": "connect", "ok": false, "note": format!("{error:?}") }),
            );
        }
    };
    if options.hold {
        tokio::spawn(async move { slow(&tries.client).await });
        tokio::time::sleep(Duration::from_millis(200)).await;
        features::say(&json!({ "hold": true }));
        return std::future::pending().await;
    }
    features::agreed(&tries.revision);
    let o = &options;
    o.run("connect", async { Ok(()) }).await;
    o.run("list", tries.list()).await;
    o.run("paging", tries.paging()).await;
    o.run("call", tries.echo("hello")).await;
    o.run("structured", tries.structured()).await;
    o.run("error", tries.error()).await;
    o.run("progress", tries.progress()).await;
    o.run("cancel", tries.cancel()).await;
    o.run("log", tries.log()).await;
    o.run("resources", tries.resources()).await;
    o.run("template", tries.template()).await;
    o.run("subscribe", tries.subscribe()).await;
    o.run("prompts", tries.prompts()).await;
    o.run("completion", tries.completion()).await;
    o.run("ask", tries.says("ask", json!({}), features::ORDER)).await;
    let prompt = json!({ "prompt": features::PROMPT });
    o.run("sample", tries.says("sample", prompt, features::ANSWER)).await;
    o.run("roots", tries.says("roots", json!({}), features::ROOT)).await;
    o.run("changed", tries.changed()).await;
    o.run("unicode", tries.echo(features::UNICODE)).await;
    o.run("mib1", tries.mib(1)).await;
    o.run("mib10", tries.mib(10)).await;
    o.run("hundred", tries.hundred()).await;
    if let Some(tries) = Arc::into_inner(tries) {
        let _ = tries.client.shutdown().await;
    }
    o.run("in-flight", in_flight(o)).await;
    o.run("kill", killed(o)).await;
}
