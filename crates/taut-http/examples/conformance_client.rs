//! The client of the official conformance suite: does what each scenario asks for, with the library.
//!
//! `conformance client --command target/debug/examples/conformance_client` starts it once for each
//! scenario, with the address of the scenario's server as the last argument. `interop/http/client` runs the
//! suite.

use std::sync::Arc;

use bytes::Bytes;
use http_body_util::Full;
use hyper_util::client::legacy::Client as HttpClient;
use hyper_util::rt::TokioExecutor;
use serde_json::{Map, Value, json};
use taut::types::{CreateMessageResult, ElicitForm, ElicitResult};
use taut::{Client, Reject, Revision, client::RequestContext};
use taut_http::client::login::{AskUser, Login, LoginOptions, LoginRequest};
use taut_http::client::{AuthorizeFuture, HttpError, HttpOptions, HttpTransport, Secret};

type Fallible<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// A user whose browser is sent back at once.
struct Obedient;

impl AskUser for Obedient {
    fn ask<'a>(&'a self, request: LoginRequest<'a>) -> AuthorizeFuture<'a, String> {
        Box::pin(async move {
            let failed = |why: String| HttpError::Login { why };
            let browser: HttpClient<_, Full<Bytes>> =
                HttpClient::builder(TokioExecutor::new()).build_http();
            let address = request.address().parse().map_err(|_| failed("no address".into()))?;
            let page = browser.get(address).await.map_err(|error| failed(error.to_string()))?;
            let location = page.headers().get("location").and_then(|value| value.to_str().ok());
            location.map(str::to_owned).ok_or_else(|| failed("the page asks for something".into()))
        })
    }
}

/// Fills in the defaults of a form, and makes another call meanwhile where the scenario wants one.
async fn fill_in(form: ElicitForm, context: RequestContext, scenario: String) -> ElicitResult {
    if scenario == "sep-2322-client-request-state"
        && let Some(client) = context.client()
    {
        let _ = client.call("test_mrtr_unrelated", json!({})).await;
    }
    let form = serde_json::to_value(&form).unwrap_or_default();
    let mut content = Map::new();
    for (name, field) in form["requestedSchema"]["properties"].as_object().into_iter().flatten() {
        if let Some(default) = field.get("default") {
            content.insert(name.clone(), default.clone());
        }
    }
    if scenario == "sep-2322-client-request-state" {
        content.insert("confirmed".to_owned(), true.into());
    }
    ElicitResult::accept(content.into_iter().collect())
}

async fn play(client: &Client, scenario: &str, context: &Value) -> Fallible<()> {
    let tools = client.tools().await?;
    let named = |name: &str| tools.iter().any(|tool| tool.name == name);
    match scenario {
        "initialize" | "request-metadata" | "json-schema-ref-no-deref" => {}
        "tools_call" => {
            client.call("add_numbers", json!({ "a": 5, "b": 3 })).await?;
        }
        "http-custom-headers" => {
            for call in context["toolCalls"].as_array().into_iter().flatten() {
                let name = call["name"].as_str().unwrap_or_default().to_owned();
                client.call(name, &call["arguments"]).await?;
            }
        }
        "http-standard-headers" => {
            for tool in &tools {
                client.call(tool.name.clone(), json!({})).await?;
            }
            for resource in client.resources().await? {
                client.read(resource.uri).await?;
            }
            for prompt in client.prompts().await? {
                client.prompt(prompt.name, [] as [(String, String); 0]).await?;
            }
        }
        "json-schema-2020-12-preservation" => {
            for tool in tools.iter().filter(|tool| tool.name != "json_schema_echo") {
                let schema: Value = serde_json::to_value(&tool.input_schema)?;
                client.call("json_schema_echo", json!({ "schema": schema })).await?;
            }
        }
        "sep-2322-client-request-state" => {
            for tool in ["test_mrtr_echo_state", "test_mrtr_no_state", "test_mrtr_no_result_type"] {
                client.call(tool, json!({})).await?;
            }
        }
        _ if named("test-tool") => {
            // Twice, because a server may change its mind in between.
            client.call("test-tool", json!({})).await?;
            client.call("test-tool", json!({})).await?;
        }
        _ => {
            for tool in &tools {
                client.call(tool.name.clone(), json!({})).await?;
            }
        }
    }
    Ok(())
}

fn login(url: &str, context: &Value, scenario: &str) -> Fallible<Login> {
    let text = |name: &str| context[name].as_str();
    let mut options = LoginOptions::new()
        .metadata_document("https://conformance-test.local/client-metadata.json")
        .ask(Arc::new(Obedient));
    if let Some(id) = text("client_id") {
        options = options.client(id, text("client_secret").map(Secret::new));
    }
    if scenario.contains("client-credentials") {
        options = options.as_machine();
    }
    Ok(Login::new(url, &HttpOptions::new(), options)?)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Fallible<()> {
    let url = std::env::args().next_back().unwrap_or_default();
    let set = |name: &str| std::env::var(name).unwrap_or_default();
    let scenario = set("MCP_CONFORMANCE_SCENARIO");
    let context: Value = serde_json::from_str(&set("MCP_CONFORMANCE_CONTEXT")).unwrap_or_default();
    let revision: Revision = set("MCP_CONFORMANCE_PROTOCOL_VERSION").parse()?;

    let login = Arc::new(login(&url, &context, &scenario)?);
    let transport = HttpTransport::new(&url, HttpOptions::new().authorize(login))?;
    let asked = scenario.clone();
    let builder = Client::builder()
        .revision(revision)
        // Declared so that the suite can look at them; no scenario asks.
        .roots([])
        .on_sample(async |_, _| Err::<CreateMessageResult, _>(Reject::by_user()))
        .on_elicit(move |form, context| fill_in(form, context, asked.clone()));
    let client = transport.connect(builder).await?;
    let played = play(&client, &scenario, &context).await;
    client.close().await?;
    played
}
