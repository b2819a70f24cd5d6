//! tower-mcp as a server: what `taut serve` offers.
//!
//! `--runtime mt|cur` chooses tokio's runtime; `--transport plain` the one-way stdio transport, which
//! cannot ask a client of the legacy era anything.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rust_common::offer;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tower_mcp::protocol::{
    CompleteParams, GetPromptResult, GetPromptResultBuilder, InputRequest, InputRequiredResult,
    LogLevel, LoggingMessageParams, RequestOutcome,
};
use tower_mcp::{
    BidirectionalStdioTransport, CallToolResult, CompleteResult, DynamicToolRegistry, Error,
    McpRouter, PromptBuilder, ReadResourceResult, RequestContext, ResourceBuilder,
    ResourceTemplateBuilder, StdioTransport, Tool, ToolBuilder,
};

/// Bound on one line, above the 10 MiB that are tried; its own default is 4 MiB.
const LONGEST_LINE: usize = 64 << 20;

type Outcome = Result<RequestOutcome<CallToolResult>, Error>;

/// All that the tools share.
#[derive(Clone)]
struct Shared {
    registry: DynamicToolRegistry,
    touched: Arc<AtomicU32>,
}

#[derive(Deserialize, JsonSchema)]
struct Echo {
    text: String,
}

#[derive(Deserialize, JsonSchema)]
struct Add {
    a: f64,
    b: f64,
}

#[derive(Serialize, JsonSchema)]
struct Sum {
    sum: f64,
}

fn said(text: impl Into<String>) -> Outcome {
    Ok(RequestOutcome::Complete(CallToolResult::text(text)))
}

fn modern(context: &RequestContext) -> bool {
    context.per_request_meta().is_some_and(|meta| meta.protocol_version.is_some())
}

fn text(arguments: &Value, name: &str) -> String {
    arguments[name].as_str().unwrap_or_default().to_owned()
}

/// A tool by its name in the common list; `echo` and `add` are typed, as a user would write them.
fn tool(name: String, description: String, schema: Value, shared: &Shared) -> Tool {
    let plain = name.starts_with("tool_") || name == "echo";
    let builder = ToolBuilder::new(&name).description(description);
    if plain {
        let echo = |Echo { text }| async move { Ok(CallToolResult::text(text)) };
        return builder.handler(echo).build();
    }
    if name == "add" {
        let add = |Add { a, b }| async move { CallToolResult::from_serialize(&Sum { sum: a + b }) };
        return builder.output_schema_for::<Sum>().handler(add).build();
    }
    let shared = shared.clone();
    let handler = move |context: RequestContext, arguments: Value| {
        let (shared, name) = (shared.clone(), name.clone());
        async move { call(&name, context, arguments, &shared).await }
    };
    builder.input_schema(schema).mrtr_handler(handler).build()
}

async fn call(name: &str, context: RequestContext, arguments: Value, shared: &Shared) -> Outcome {
    match name {
        "slow" => slow(&context, &arguments).await,
        "fail" => {
            let reason = arguments["reason"].as_str().unwrap_or("it was asked to fail");
            Ok(RequestOutcome::Complete(CallToolResult::error(reason)))
        }
        "big" => said(offer::big(arguments["bytes"].as_u64().unwrap_or_default() as usize)),
        "log" => {
            let level = arguments["level"].as_str().unwrap_or("info");
            let level: LogLevel = serde_json::from_value(json!(level))?;
            let line = LoggingMessageParams::new(level, arguments["message"].clone());
            context.send_log(line.with_logger("demo"));
            said("logged")
        }
        "ask" | "sample" | "roots" => ask(name, &context, &arguments).await,
        "add_tool" => {
            let (name, says) = (text(&arguments, "name"), text(&arguments, "says"));
            let later = move || {
                let says = says.clone();
                async move { Ok(CallToolResult::text(says)) }
            };
            let builder = ToolBuilder::new(&name).description("Added by add_tool.");
            shared.registry.register(builder.no_params_handler(later).build());
            said(format!("there is a tool {name:?} now"))
        }
        _ => {
            let times = shared.touched.fetch_add(1, Ordering::Relaxed) + 1;
            context.notify_resource_updated("demo://touched");
            said(times.to_string())
        }
    }
}

async fn slow(context: &RequestContext, arguments: &Value) -> Outcome {
    let steps = arguments["steps"].as_u64().unwrap_or(10);
    let step_ms = arguments["step_ms"].as_u64().unwrap_or(100);
    for step in 0..steps {
        let message = format!("step {} of {steps}", step + 1);
        context.report_progress(step as f64, Some(steps as f64), Some(&message)).await;
        tokio::select! {
            () = tokio::time::sleep(Duration::from_millis(step_ms)) => {}
            () = context.cancelled() => {
                eprintln!("slow: cancelled");
                return said("cancelled");
            }
        }
    }
    said(format!("done after {steps} steps"))
}

/// The client's answer, by a request of ours or (modern) by having it call again.
async fn ask(name: &str, context: &RequestContext, arguments: &Value) -> Outcome {
    let (method, params) = match name {
        "ask" => {
            let form = json!({ "mode": "form", "message": "What would you like?",
                "requestedSchema": offer::coffee() });
            ("elicitation/create", form)
        }
        "sample" => {
            let content = json!({ "type": "text", "text": arguments["prompt"] });
            let messages = json!([{ "role": "user", "content": content }]);
            ("sampling/createMessage", json!({ "messages": messages, "maxTokens": 200 }))
        }
        _ => ("roots/list", json!({})),
    };
    let answer = if let Some(answer) = context.input_responses().and_then(|all| all.get("it")) {
        serde_json::to_value(answer)?
    } else if modern(context) {
        let question: InputRequest =
            serde_json::from_value(json!({ "method": method, "params": params }))?;
        let needed = json!({ "resultType": "input_required", "inputRequests": { "it": question } });
        let needed: InputRequiredResult = serde_json::from_value(needed)?;
        return Ok(RequestOutcome::input_required(needed));
    } else {
        context.request_raw(method, params).await?
    };
    match name {
        "ask" if answer["action"] == "accept" => said(offer::order(&answer["content"])),
        "ask" => said("no coffee then"),
        "sample" => {
            let block = answer["content"].get(0).unwrap_or(&answer["content"]);
            said(block["text"].as_str().unwrap_or_default())
        }
        _ => {
            let roots = answer["roots"].as_array().cloned().unwrap_or_default();
            let uris: Vec<_> = roots.iter().filter_map(|root| root["uri"].as_str()).collect();
            said(uris.join("\n"))
        }
    }
}

fn router(options: &offer::Options) -> McpRouter {
    let (router, registry) =
        McpRouter::new().server_info("tower-mcp", "1.0.0").with_dynamic_tools();
    let touched = Arc::new(AtomicU32::new(0));
    let shared = Shared { registry, touched: touched.clone() };
    let mut router = router;
    if options.page > 0 {
        router = router.page_size(options.page);
    }
    let tools = offer::tools(options.tools).into_iter();
    let router = router
        .tools(tools.map(|(name, description, schema)| tool(name, description, schema, &shared)))
        .resource_subscriptions(true)
        .tools_list_changed(true)
        .mcp_logging(true);
    let readme = ResourceBuilder::new("demo://readme").name("readme").mime_type("text/markdown");
    let count = ResourceBuilder::new("demo://touched").name("touched").mime_type("text/plain");
    let count = count.handler(move || {
        let times = touched.load(Ordering::Relaxed).to_string();
        async move { Ok(ReadResourceResult::text("demo://touched", times)) }
    });
    let weather = ResourceTemplateBuilder::new("weather://{city}/today").name("weather");
    let weather = weather.handler(|uri: String, _: HashMap<String, String>| async move {
        let text = offer::weather(&uri);
        let text = text.ok_or_else(|| Error::invalid_params(format!("no weather at {uri}")))?;
        Ok(ReadResourceResult::text(uri, text))
    });
    let hello = PromptBuilder::new("hello").description("Say hello.").user_message("Say hello.");
    let greet = PromptBuilder::new("greet")
        .description("Greet somebody.")
        .required_arg("name", "Whom to greet.")
        .optional_arg("language", "In which language.")
        .handler(|arguments: HashMap<String, String>| async move { Ok(greeting(&arguments)) });
    router
        .resource(readme.text(offer::README))
        .resource(count.build())
        .resource_template(weather)
        .prompt(hello)
        .prompt(greet.build())
        .completion_handler(|params: CompleteParams| async move {
            let values = offer::completions(&params.argument.name, &params.argument.value);
            Ok(CompleteResult::new(values))
        })
}

fn greeting(arguments: &HashMap<String, String>) -> GetPromptResult {
    let language = arguments.get("language").map_or("English", String::as_str);
    let name = arguments.get("name").map_or("you", String::as_str);
    let messages = offer::greeting(name, language).into_iter();
    let all = messages.fold(GetPromptResultBuilder::new(), |all, (assistant, text)| {
        if assistant { all.assistant(text) } else { all.user(text) }
    });
    all.build()
}

async fn serve(options: offer::Options) -> Result<(), Error> {
    let router = router(&options);
    if options.transport == "plain" {
        return StdioTransport::new(router).max_frame_len(LONGEST_LINE).run().await;
    }
    BidirectionalStdioTransport::new(router).max_frame_len(LONGEST_LINE).run().await
}

fn main() {
    let options = offer::options();
    let mut builder = match options.runtime.as_str() {
        "cur" => tokio::runtime::Builder::new_current_thread(),
        _ => tokio::runtime::Builder::new_multi_thread(),
    };
    let runtime = builder.enable_all().build().expect("a runtime");
    if let Err(error) = runtime.block_on(serve(options)) {
        eprintln!("{error}");
    }
    runtime.shutdown_background();
}
