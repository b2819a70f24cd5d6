//! rmcp as a server: what `taut serve` offers.
//!
//! `--runtime mt|cur` and `--transport stdio|pipes` choose what the benchmark compares.

#![allow(deprecated, reason = "sampling, roots and logging are, and are what is tried")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rmcp::model::*;
use rmcp::service::{RequestContext, RoleServer, SubscriptionContext};
use rmcp::{ErrorData, ServerHandler, ServiceExt};
use rust_common::offer;
use serde_json::{Value, json};
use tokio::sync::broadcast;

/// What listeners of the modern era are told.
#[derive(Clone)]
enum Change {
    Tools,
    Touched,
}

struct Peer {
    page: usize,
    tools: Mutex<Vec<Tool>>,
    added: Mutex<BTreeMap<String, String>>,
    subscribed: Mutex<BTreeSet<String>>,
    level: Mutex<LoggingLevel>,
    touched: AtomicU32,
    changes: broadcast::Sender<Change>,
}

fn object(value: Value) -> JsonObject {
    let Value::Object(object) = value else { panic!("it is an object") };
    object
}

fn said(text: impl Into<String>) -> CallToolResponse {
    CallToolResult::success(vec![ContentBlock::text(text)]).into()
}

fn failed(text: impl Into<String>) -> CallToolResponse {
    CallToolResult::error(vec![ContentBlock::text(text)]).into()
}

fn text(arguments: &JsonObject, name: &str) -> Result<String, ErrorData> {
    let found = arguments.get(name).and_then(Value::as_str);
    found
        .map(str::to_owned)
        .ok_or_else(|| ErrorData::invalid_params(format!("{name} is missing"), None))
}

type Context = RequestContext<RoleServer>;

fn modern(context: &Context) -> bool {
    context.protocol_version().is_some_and(|version| version.as_str() >= "2026-07-28")
}

impl Peer {
    fn new(options: &offer::Options) -> Self {
        let tools = offer::tools(options.tools).into_iter().map(|(name, description, schema)| {
            let output = (name == "add").then(|| Arc::new(object(offer::sum_schema())));
            let mut tool = Tool::new(name, description, object(schema));
            tool.output_schema = output;
            tool
        });
        Self {
            page: options.page,
            tools: Mutex::new(tools.collect()),
            added: Mutex::default(),
            subscribed: Mutex::default(),
            level: Mutex::new(LoggingLevel::Debug),
            touched: AtomicU32::new(0),
            changes: broadcast::channel(16).0,
        }
    }

    /// The client's answer, by a request of ours or (modern) by having it call again.
    async fn asked(
        &self,
        request: &CallToolRequestParams,
        context: &Context,
        question: InputRequest,
    ) -> Result<Result<Value, InputRequiredResult>, ErrorData> {
        if let Some(answer) = request.input_responses.as_ref().and_then(|all| all.get("it")) {
            return Ok(Ok(answer.clone()));
        }
        if modern(context) {
            let requests = InputRequests::from([("it".to_owned(), question)]);
            return Ok(Err(InputRequiredResult::from_input_requests(requests)));
        }
        let peer = &context.peer;
        let answer = match question {
            InputRequest::Elicitation(ask) => {
                peer.create_elicitation(ask.params).await.map(|answer| json!(answer))
            }
            InputRequest::CreateMessage(ask) => {
                peer.create_message(ask.params).await.map(|answer| json!(answer))
            }
            _ => peer.list_roots().await.map(|answer| json!(answer)),
        };
        answer.map(Ok).map_err(|error| ErrorData::internal_error(error.to_string(), None))
    }

    async fn ask(
        &self,
        request: &CallToolRequestParams,
        context: &Context,
    ) -> Result<CallToolResponse, ErrorData> {
        let question = match request.name.as_ref() {
            "ask" => InputRequest::Elicitation(ElicitRequest::new(
                ElicitRequestParams::FormElicitationParams {
                    meta: None,
                    message: "What would you like?".into(),
                    requested_schema: serde_json::from_value(offer::coffee()).expect("it is one"),
                },
            )),
            "sample" => {
                let prompt =
                    text(request.arguments.as_ref().unwrap_or(&JsonObject::new()), "prompt")?;
                let message = SamplingMessage::user_text(prompt);
                let params = CreateMessageRequestParams::new(vec![message], 200);
                InputRequest::CreateMessage(CreateMessageRequest::new(params))
            }
            _ => InputRequest::ListRoots(ListRootsRequest::default()),
        };
        let answer = match self.asked(request, context, question).await? {
            Ok(answer) => answer,
            Err(needed) => return Ok(needed.into()),
        };
        Ok(said(match request.name.as_ref() {
            "ask" if answer["action"] == "accept" => offer::order(&answer["content"]),
            "ask" => "no coffee then".to_owned(),
            "sample" => {
                let block = answer["content"].get(0).unwrap_or(&answer["content"]);
                block["text"].as_str().unwrap_or_default().to_owned()
            }
            _ => {
                let roots = answer["roots"].as_array().cloned().unwrap_or_default();
                let uris: Vec<_> = roots.iter().filter_map(|root| root["uri"].as_str()).collect();
                uris.join("\n")
            }
        }))
    }

    async fn slow(&self, arguments: &JsonObject, context: &Context) -> CallToolResponse {
        let number = |name, default| arguments.get(name).and_then(Value::as_u64).unwrap_or(default);
        let (steps, step_ms) = (number("steps", 10), number("step_ms", 100));
        for step in 0..steps {
            if let Some(token) = context.meta.get_progress_token() {
                let report = ProgressNotificationParam::new(token, step as f64)
                    .with_total(steps as f64)
                    .with_message(format!("step {} of {steps}", step + 1));
                let _ = context.peer.notify_progress(report).await;
            }
            tokio::select! {
                () = tokio::time::sleep(Duration::from_millis(step_ms)) => {}
                () = context.ct.cancelled() => {
                    eprintln!("slow: cancelled");
                    return failed("cancelled");
                }
            }
        }
        said(format!("done after {steps} steps"))
    }

    async fn log(
        &self,
        arguments: &JsonObject,
        context: &Context,
    ) -> Result<CallToolResponse, ErrorData> {
        let message = text(arguments, "message")?;
        let name = arguments.get("level").and_then(Value::as_str).unwrap_or("info");
        let Ok(level) = serde_json::from_value::<LoggingLevel>(json!(name)) else {
            return Ok(failed(format!("there is no level {name}")));
        };
        let rank = |level: LoggingLevel| {
            let name = json!(level);
            offer::LEVELS.iter().position(|one| name == *one)
        };
        let least = match modern(context) {
            true => context.meta.log_level(),
            false => Some(*self.level.lock().expect("no panic")),
        };
        if least.is_some_and(|least| rank(level) >= rank(least)) {
            let line = LoggingMessageNotificationParam::new(level, json!(message));
            let _ = context.peer.notify_logging_message(line.with_logger("demo")).await;
        }
        Ok(said("logged"))
    }

    async fn add_tool(
        &self,
        arguments: &JsonObject,
        context: &Context,
    ) -> Result<CallToolResponse, ErrorData> {
        let (name, says) = (text(arguments, "name")?, text(arguments, "says")?);
        self.added.lock().expect("no panic").insert(name.clone(), says);
        let tool =
            Tool::new(name.clone(), "Added by add_tool.", object(json!({ "type": "object" })));
        self.tools.lock().expect("no panic").push(tool);
        if modern(context) {
            let _ = self.changes.send(Change::Tools);
        } else {
            let _ = context.peer.notify_tool_list_changed().await;
        }
        Ok(said(format!("there is a tool {name:?} now")))
    }

    async fn touch(&self, context: &Context) -> CallToolResponse {
        let times = self.touched.fetch_add(1, Ordering::Relaxed) + 1;
        let uri = "demo://touched";
        if modern(context) {
            let _ = self.changes.send(Change::Touched);
        } else if self.subscribed.lock().expect("no panic").contains(uri) {
            let param = ResourceUpdatedNotificationParam::new(uri);
            let _ = context.peer.notify_resource_updated(param).await;
        }
        said(times.to_string())
    }
}

impl ServerHandler for Peer {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_prompts()
            .enable_completions()
            .enable_logging()
            .build();
        ServerConfig::new(capabilities).with_server_info(Implementation::new("rmcp", "1.0.0"))
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = self.tools.lock().expect("no panic");
        if self.page == 0 {
            return Ok(ListToolsResult::with_all_items(tools.clone()));
        }
        let start = request.and_then(|request| request.cursor?.parse().ok()).unwrap_or(0);
        let end = tools.len().min(start + self.page);
        let mut result = ListToolsResult::with_all_items(tools[start..end].to_vec());
        result.next_cursor = (end < tools.len()).then(|| end.to_string());
        Ok(result)
    }

    async fn call_tool(
        &self,
        mut request: CallToolRequestParams,
        context: Context,
    ) -> Result<CallToolResponse, ErrorData> {
        let name = request.name.clone();
        if matches!(name.as_ref(), "ask" | "sample" | "roots") {
            return self.ask(&request, &context).await;
        }
        let arguments = request.arguments.take().unwrap_or_default();
        Ok(match name.as_ref() {
            "echo" => said(text(&arguments, "text")?),
            "add" => {
                let term = |name| arguments.get(name).and_then(Value::as_f64).unwrap_or_default();
                CallToolResult::structured(json!({ "sum": term("a") + term("b") })).into()
            }
            "slow" => self.slow(&arguments, &context).await,
            "fail" => failed(text(&arguments, "reason").unwrap_or("it was asked to fail".into())),
            "big" => {
                let bytes = arguments.get("bytes").and_then(Value::as_u64).unwrap_or_default();
                said(offer::big(bytes as usize))
            }
            "log" => self.log(&arguments, &context).await?,
            "add_tool" => self.add_tool(&arguments, &context).await?,
            "touch" => self.touch(&context).await,
            plain if plain.starts_with("tool_") => said(text(&arguments, "text")?),
            other => match self.added.lock().expect("no panic").get(other) {
                Some(says) => said(says),
                None => {
                    let message = format!("there is no tool {other:?}");
                    return Err(ErrorData::invalid_params(message, None));
                }
            },
        })
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(ListResourcesResult::with_all_items(vec![
            Resource::new("demo://readme", "readme").with_mime_type("text/markdown"),
            Resource::new("demo://touched", "touched").with_mime_type("text/plain"),
        ]))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let template = ResourceTemplate::new("weather://{city}/today", "weather");
        Ok(ListResourceTemplatesResult::with_all_items(vec![template.with_mime_type("text/plain")]))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: Context,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let uri = request.uri;
        let text = match uri.as_str() {
            "demo://readme" => Some(offer::README.to_owned()),
            "demo://touched" => Some(self.touched.load(Ordering::Relaxed).to_string()),
            other => offer::weather(other),
        };
        let text = text.ok_or_else(|| {
            ErrorData::resource_not_found(format!("there is no resource {uri}"), None)
        })?;
        Ok(ReadResourceResult::new(vec![ResourceContents::text(text, uri)]).into())
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        _: Context,
    ) -> Result<(), ErrorData> {
        self.subscribed.lock().expect("no panic").insert(request.uri);
        Ok(())
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _: Context,
    ) -> Result<(), ErrorData> {
        self.subscribed.lock().expect("no panic").remove(&request.uri);
        Ok(())
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        Some(requested.supported_by(&self.get_info().capabilities))
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let mut changes = self.changes.subscribe();
        loop {
            let change = tokio::select! {
                () = context.cancelled() => return Ok(()),
                change = changes.recv() => change,
            };
            // The sink knows what this listener wants; an unwanted change is an error of it.
            let _ = match change {
                Ok(Change::Tools) => context.sink().notify_tool_list_changed().await,
                Ok(Change::Touched) => {
                    context.sink().notify_resource_updated("demo://touched").await
                }
                Err(_) => return Ok(()),
            };
        }
    }

    async fn set_level(&self, request: SetLevelRequestParams, _: Context) -> Result<(), ErrorData> {
        *self.level.lock().expect("no panic") = request.level;
        Ok(())
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListPromptsResult, ErrorData> {
        let arguments = vec![
            PromptArgument::new("name").with_required(true),
            PromptArgument::new("language").with_required(false),
        ];
        Ok(ListPromptsResult::with_all_items(vec![
            Prompt::new("hello", Some("Say hello."), None),
            Prompt::new("greet", Some("Greet somebody."), Some(arguments)),
        ]))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: Context,
    ) -> Result<GetPromptResponse, ErrorData> {
        let value = json!(request.arguments);
        let messages = match request.name.as_str() {
            "hello" => vec![PromptMessage::new_text(Role::User, "Say hello.")],
            "greet" => {
                let name = value["name"].as_str();
                let name =
                    name.ok_or_else(|| ErrorData::invalid_params("name is missing", None))?;
                let language = value["language"].as_str().unwrap_or("English");
                let role = |assistant| if assistant { Role::Assistant } else { Role::User };
                let greeting = offer::greeting(name, language).into_iter();
                greeting.map(|(who, text)| PromptMessage::new_text(role(who), text)).collect()
            }
            other => {
                let message = format!("there is no prompt {other:?}");
                return Err(ErrorData::invalid_params(message, None));
            }
        };
        Ok(GetPromptResult::new(messages).into())
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        _: Context,
    ) -> Result<CompleteResult, ErrorData> {
        let values = offer::completions(&request.argument.name, &request.argument.value);
        let info = CompletionInfo::with_all_values(values);
        Ok(CompleteResult::new(info.map_err(|error| ErrorData::internal_error(error, None))?))
    }
}

/// Serves Streamable HTTP on a port of this machine.
#[cfg(feature = "http")]
async fn serve_http(options: offer::Options, port: u16) -> std::io::Result<()> {
    use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
    use rmcp::transport::streamable_http_server::tower::StreamableHttpService;
    let make = move || Ok(Peer::new(&options));
    let service = StreamableHttpService::new(make, Arc::<LocalSessionManager>::default(), Default::default());
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await?;
    axum::serve(listener, axum::Router::new().nest_service("/mcp", service)).await
}

async fn serve(options: offer::Options) {
    #[cfg(feature = "http")]
    if let Some(port) = options.transport.strip_prefix("http:").and_then(|port| port.parse().ok()) {
        if let Err(error) = serve_http(options, port).await {
            eprintln!("{error}");
        }
        return;
    }
    let peer = Peer::new(&options);
    let running = match options.transport.as_str() {
        "pipes" => peer.serve(rmcp::transport::io::stdio_pipes()).await,
        _ => peer.serve(rmcp::transport::io::stdio()).await,
    };
    match running {
        Ok(running) => drop(running.waiting().await),
        Err(error) => eprintln!("{error}"),
    }
}

fn main() {
    let options = offer::options();
    let mut builder = match options.runtime.as_str() {
        "cur" => tokio::runtime::Builder::new_current_thread(),
        _ => tokio::runtime::Builder::new_multi_thread(),
    };
    let runtime = builder.enable_all().build().expect("a runtime");
    runtime.block_on(serve(options));
    // A read of stdin that is still going on in the blocking pool must not hold the process.
    runtime.shutdown_background();
}
