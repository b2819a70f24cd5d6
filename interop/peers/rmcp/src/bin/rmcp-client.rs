//! rmcp as a client, on its child-process transport.

#![allow(deprecated, reason = "sampling, roots and logging are, and are what is tried")]

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rmcp::model::*;
use rmcp::service::{NotificationContext, RequestContext, RoleClient, RunningService};
use rmcp::transport::TokioChildProcess;
use rmcp::{ClientHandler, ClientLifecycleMode, ClientServiceExt, ErrorData, ServiceExt};
use rust_common::features::{self, Failed, Outcome, check, until};
use serde_json::{Value, json};

/// What the handlers heard.
#[derive(Default)]
struct Heard {
    progress: Mutex<Vec<f64>>,
    logs: Mutex<Vec<LoggingMessageNotificationParam>>,
    changed: AtomicU32,
    updated: AtomicU32,
}

#[derive(Clone, Default)]
struct Handler(Arc<Heard>);

type Note = NotificationContext<RoleClient>;

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        let capabilities = ClientCapabilities::builder()
            .enable_elicitation()
            .enable_sampling()
            .enable_roots()
            .build();
        ClientConfig::new(capabilities, Implementation::new("rmcp", "1.0.0"))
    }

    async fn create_message(
        &self,
        _: CreateMessageRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        let message = SamplingMessage::assistant_text(features::ANSWER);
        Ok(CreateMessageResult::new(message, "none".to_owned()))
    }

    async fn list_roots(
        &self,
        _: RequestContext<RoleClient>,
    ) -> Result<ListRootsResult, ErrorData> {
        Ok(ListRootsResult::new(vec![Root::new(features::ROOT)]))
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let second = json!(request)["requestedSchema"]["properties"]["right"].is_object();
        let form = match second {
            true => json!({ "right": true }),
            false => json!({ "size": "large", "milk": true, "name": "Ada" }),
        };
        Ok(ElicitResult::new(ElicitationAction::Accept).with_content(form))
    }

    async fn on_progress(&self, params: ProgressNotificationParam, _: Note) {
        self.0.progress.lock().expect("no panic").push(params.progress);
    }

    async fn on_logging_message(&self, params: LoggingMessageNotificationParam, _: Note) {
        self.0.logs.lock().expect("no panic").push(params);
    }

    async fn on_resource_updated(&self, _: ResourceUpdatedNotificationParam, _: Note) {
        self.0.updated.fetch_add(1, Ordering::Relaxed);
    }

    async fn on_tool_list_changed(&self, _: Note) {
        self.0.changed.fetch_add(1, Ordering::Relaxed);
    }
}

struct Tries {
    client: RunningService<RoleClient, Handler>,
    heard: Arc<Heard>,
}

fn call(name: &str, arguments: Value) -> CallToolRequestParams {
    let mut params = CallToolRequestParams::new(name.to_owned());
    params.arguments = arguments.as_object().cloned();
    params
}

fn text(result: &CallToolResult) -> String {
    json!(result.content)[0]["text"].as_str().unwrap_or_default().to_owned()
}

fn slow() -> CallToolRequestParams {
    call("slow", json!({ "steps": 600, "step_ms": 100 }))
}

impl Tries {
    async fn connect(options: &features::Options) -> Result<Self, Failed> {
        #[cfg(feature = "http")]
        if options.server[0].starts_with("http://") {
            let url = options.server[0].clone();
            let transport = rmcp::transport::StreamableHttpClientTransport::from_uri(url);
            return Self::over(transport, options).await;
        }
        let mut command = tokio::process::Command::new(&options.server[0]);
        command.args(&options.server[1..]);
        Self::over(TokioChildProcess::new(command)?, options).await
    }

    async fn over<E, A>(
        transport: impl rmcp::transport::IntoTransport<RoleClient, E, A>,
        options: &features::Options,
    ) -> Result<Self, Failed>
    where
        E: std::error::Error + Send + Sync + 'static,
    {
        let handler = Handler::default();
        let heard = handler.0.clone();
        let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
        let client = match options.mode.as_str() {
            "auto" => {
                let mode = ClientLifecycleMode::Auto { preferred_versions, legacy_version: None };
                handler.serve_with_lifecycle(transport, mode).await?
            }
            "modern" => {
                let mode = ClientLifecycleMode::Discover { preferred_versions };
                handler.serve_with_lifecycle(transport, mode).await?
            }
            _ => handler.serve(transport).await?,
        };
        Ok(Self { client, heard })
    }

    fn revision(&self) -> String {
        self.client.peer_info().map_or_else(String::new, |info| info.protocol_version.to_string())
    }

    fn modern(&self) -> bool {
        self.revision().as_str() >= "2026-07-28"
    }

    async fn tool(&self, name: &str, arguments: Value) -> Result<String, Failed> {
        Ok(text(&self.client.call_tool(call(name, arguments)).await?))
    }

    async fn echo(&self, what: &str) -> Outcome {
        let got = self.tool("echo", json!({ "text": what })).await?;
        check(got == what, got.get(..100))
    }

    async fn list(&self) -> Outcome {
        let page = self.client.list_tools(None).await?;
        check(page.tools[0].name == "echo", page.tools)
    }

    async fn paging(&self) -> Outcome {
        let first = self.client.list_tools(None).await?;
        check(first.next_cursor.is_some(), "one page only")?;
        let all = self.client.list_all_tools().await?;
        check(all.len() >= 14, all.len())
    }

    async fn structured(&self) -> Outcome {
        let result = self.client.call_tool(call("add", json!({ "a": 2, "b": 3 }))).await?;
        check(result.structured_content == Some(json!({ "sum": 5 })), result)
    }

    async fn error(&self) -> Outcome {
        let result = self.client.call_tool(call("fail", json!({ "reason": "no beans" }))).await?;
        check(result.is_error == Some(true) && text(&result).contains("no beans"), result)
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
        let mut params = call("log", json!({ "level": "warning", "message": "careful" }));
        if self.modern() {
            let mut meta = RequestMetaObject::new();
            meta.set_log_level(LoggingLevel::Debug);
            params.meta = Some(meta);
        } else {
            self.client.set_level(SetLevelRequestParams::new(LoggingLevel::Debug)).await?;
        }
        self.client.call_tool(params).await?;
        until(|| self.heard.logs.lock().is_ok_and(|logs| !logs.is_empty())).await;
        let line = self.heard.logs.lock()?[0].clone();
        check(line.level == LoggingLevel::Warning && line.data == "careful", line)
    }

    async fn read(&self, uri: &str) -> Result<String, Failed> {
        let result = self.client.read_resource(ReadResourceRequestParams::new(uri)).await?;
        Ok(json!(result.contents)[0]["text"].as_str().unwrap_or_default().to_owned())
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
        if self.modern() {
            let filter = SubscriptionFilter::builder().resource_subscription("demo://touched");
            let mut changes = self.client.listen(filter.build()).await?;
            self.tool("touch", json!({})).await?;
            let change = changes.next().await?;
            let updated =
                matches!(change, Some(ServerNotification::ResourceUpdatedNotification(_)));
            check(updated, change)?;
            return Ok(changes.cancel().await?);
        }
        self.client.subscribe(SubscribeRequestParams::new("demo://touched")).await?;
        self.tool("touch", json!({})).await?;
        until(|| self.heard.updated.load(Ordering::Relaxed) > 0).await;
        Ok(self.client.unsubscribe(UnsubscribeRequestParams::new("demo://touched")).await?)
    }

    async fn prompts(&self) -> Outcome {
        let listed = self.client.list_all_prompts().await?;
        check(listed.len() == 2, listed)?;
        let mut params = GetPromptRequestParams::new("greet");
        params.arguments = json!({ "name": "Ada", "language": "Dutch" })
            .as_object()
            .map(|map| serde_json::from_value(json!(map)).expect("an object"));
        let result = self.client.get_prompt(params).await?;
        check(json!(result)["messages"][0]["content"]["text"] == "Greet Ada in Dutch.", result)
    }

    async fn completion(&self) -> Outcome {
        let found = self.client.complete_prompt_argument("greet", "language", "Ge", None).await?;
        check(found.values == ["German"], found)?;
        let template = "weather://{city}/today";
        let found = self.client.complete_resource_argument(template, "city", "be", None).await?;
        check(found.values == ["Berlin", "Bern"], found)
    }

    async fn says(&self, name: &str, arguments: Value, wanted: &str) -> Outcome {
        let said = self.tool(name, arguments).await?;
        check(said == wanted, said)
    }

    async fn changed(&self) -> Outcome {
        let arguments = json!({ "name": "later", "says": "here I am" });
        if self.modern() {
            let filter = SubscriptionFilter::builder().tools_list_changed().build();
            let mut changes = self.client.listen(filter).await?;
            self.tool("add_tool", arguments).await?;
            let change = changes.next().await?;
            let changed =
                matches!(change, Some(ServerNotification::ToolListChangedNotification(_)));
            check(changed, change)?;
            changes.cancel().await?;
        } else {
            self.tool("add_tool", arguments).await?;
            until(|| self.heard.changed.load(Ordering::Relaxed) > 0).await;
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
    let tries = Tries::connect(options).await?;
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..3 {
        let peer = tries.client.peer().clone();
        calls.spawn(async move { peer.call_tool(slow()).await });
    }
    tokio::time::sleep(Duration::from_millis(200)).await;
    let ours = features::since(&before);
    tries.client.cancel().await?;
    let ended = calls.join_all().await;
    check(ended.iter().all(Result::is_err), ended)?;
    features::gone(&ours).await;
    Ok(())
}

async fn killed(options: &features::Options) -> Outcome {
    let before = features::servers();
    let tries = Tries::connect(options).await?;
    let peer = tries.client.peer().clone();
    let call = tokio::spawn(async move { peer.call_tool(slow()).await });
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
        let peer = tries.client.peer().clone();
        tokio::spawn(async move { peer.call_tool(slow()).await });
        tokio::time::sleep(Duration::from_millis(200)).await;
        features::say(&json!({ "hold": true }));
        return std::future::pending().await;
    }
    features::agreed(&tries.revision());
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
    // Over HTTP a request may have 4 MiB.
    if !o.server[0].starts_with("http://") {
        o.run("mib10", tries.mib(10)).await;
    }
    o.run("hundred", tries.hundred()).await;
    if let Some(tries) = Arc::into_inner(tries) {
        let _ = tries.client.cancel().await;
    }
    if o.server[0].starts_with("http://") {
        // It runs already, and is not ours to end.
        return;
    }
    o.run("in-flight", in_flight(o)).await;
    o.run("kill", killed(o)).await;
}
