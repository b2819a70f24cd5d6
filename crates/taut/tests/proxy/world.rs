//! A server with one of each thing, a proxy in front of it, and a host that can be asked.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use serde::{Deserialize, Serialize};
use taut::types::{
    ClientCapabilities, CompletionReference, CreateMessageParams, CreateMessageResult,
    ElicitResult, PromptReference, SamplingCapability, SamplingMessage,
};
use taut::{
    AskError, Call, Client, ClientBuilder, Json, JsonSchema, Level, NoArgs, Prompt, Proxy, Reject,
    Resource, ResourceTemplate, Revision, Root, Server, Tool, UserReply, proxy::ProxyBuilder,
};

/// Legacy and modern, on either side.
pub(crate) const COMBINATIONS: [(Revision, Revision); 4] = [
    (Revision::V2025_11_25, Revision::V2025_11_25),
    (Revision::V2025_11_25, Revision::MODERN),
    (Revision::MODERN, Revision::V2025_11_25),
    (Revision::MODERN, Revision::MODERN),
];

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Line {
    line: String,
}

#[derive(Serialize, Deserialize, JsonSchema, Debug, PartialEq)]
pub(crate) struct Sum {
    pub(crate) sum: i64,
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Greet {
    name: String,
}

/// The names of the calls of `wait` that were cancelled.
static CANCELLED: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Whether the call of `wait` with this name was cancelled.
pub(crate) fn was_cancelled(name: &str) -> bool {
    CANCELLED.lock().unwrap().iter().any(|cancelled| cancelled == name)
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Named {
    #[serde(default)]
    name: String,
}

/// A server with one of each thing.
pub(crate) fn server() -> Server {
    let server = Server::builder("back", "7.1")
        .instructions("how to use it")
        .logging()
        .changing()
        .page_size(4)
        .tool("echo", async |Line { line }, _| line)
        .tool(("sum", "For tests."), async |_: NoArgs, _| Json(Sum { sum: 5 }))
        .tool(("fail", "For tests."), async |_: NoArgs, _| Err::<String, _>("it failed"))
        .tool(("progress", "For tests."), async |_: NoArgs, call: Call| {
            for step in [1.0, 2.0, 3.0] {
                // Complete each time, so that none is left out as coming too soon.
                call.progress(taut::Progress::new(step).total(step));
            }
            "done"
        })
        .tool(("log", "For tests."), async |_: NoArgs, call: Call| {
            call.log(Level::Debug, "quiet");
            call.log(Level::Error, "loud");
            "logged"
        })
        .tool(("wait", "For tests."), async |Named { name }, call: Call| {
            call.cancelled().await;
            CANCELLED.lock().unwrap().push(name);
            "cancelled"
        })
        .tool("change", async |Line { line }, call: Call| {
            let changes = call.changes();
            match line.as_str() {
                "tools" => {
                    changes.add_tool(("added", "For tests."), async |_: NoArgs, _| "here")?
                }
                "prompts" => changes.add_prompt(Prompt::new("added"), async |_: NoArgs, _| "here"),
                _ => changes.add_resource(Resource::new("a:added", "added"), async |_| "here"),
            }
            Ok::<_, taut::Error>("done")
        })
        .tool("touch", async |Line { line }, call: Call| {
            call.changes().resource_updated(&line);
            "touched"
        });
    asking(server)
        .resource(Resource::new("a:b", "b"), async |_| "inside")
        .resource_template(
            ResourceTemplate::new("note://{line}", "note"),
            async |Line { line }, _| match line.as_str() {
                "1" => Ok("one"),
                _ => {
                    Err(Reject::new(-32050, "no such note").data(&serde_json::json!({ "n": line })))
                }
            },
        )
        .prompt(Prompt::new("greet"), async |Greet { name }, _| format!("Greet {name}."))
        .completion(
            CompletionReference::Prompt(PromptReference::new("greet")),
            "name",
            async |typed, _| vec![format!("{}nn", typed.value)],
        )
        .build()
        .unwrap()
}

/// The tools that ask back.
fn asking(server: taut::ServerBuilder) -> taut::ServerBuilder {
    server
        .tool(("form", "For tests."), async |_: NoArgs, call: Call| {
            let first = call.ask::<Line>("first?").await?;
            let first = match first {
                UserReply::Accepted(Line { line }) => line,
                UserReply::Declined => return Ok::<_, AskError>("declined".to_owned()),
                _ => return Ok("closed".to_owned()),
            };
            match call.ask::<Line>(format!("after {first}?")).await? {
                UserReply::Accepted(Line { line }) => Ok(format!("{first} then {line}")),
                _ => Ok("half".to_owned()),
            }
        })
        .tool(("page", "For tests."), async |_: NoArgs, call: Call| {
            let asked = call.ask_at("https://example.com/pay", "pay there").await?;
            Ok::<_, AskError>(format!("{asked:?}"))
        })
        .tool(("sample", "For tests."), async |_: NoArgs, call: Call| {
            let params = CreateMessageParams::new([SamplingMessage::user("hi")], 10u64)
                .tools([Tool::new("add")]);
            Ok::<_, AskError>(call.sample(params).await?.model)
        })
        .tool(("roots", "For tests."), async |_: NoArgs, call: Call| {
            let roots = call.roots().await?;
            Ok::<_, AskError>(roots.into_iter().map(|root| root.uri).collect::<Vec<_>>().join(" "))
        })
}

/// A connector to `server`, which counts how often it was used.
pub(crate) fn proxy_to(server: Server, back: Revision) -> (ProxyBuilder, Arc<AtomicUsize>) {
    let opened = Arc::new(AtomicUsize::new(0));
    let counter = opened.clone();
    let connector = move |client: ClientBuilder| {
        counter.fetch_add(1, Ordering::SeqCst);
        let (near, far) = tokio::io::duplex(64 << 10);
        let server = server.clone();
        tokio::spawn(async move {
            let (reader, writer) = tokio::io::split(far);
            server.serve(reader, writer).await
        });
        let (reader, writer) = tokio::io::split(near);
        client.connect(reader, writer)
    };
    (Proxy::builder(connector).client(Client::builder().revision(back)), opened)
}

/// A client of `proxy`.
pub(crate) async fn connect(proxy: &Proxy, client: ClientBuilder) -> taut::Result<Client> {
    let (near, far) = tokio::io::duplex(64 << 10);
    let proxy = proxy.clone();
    tokio::spawn(async move {
        let (reader, writer) = tokio::io::split(far);
        proxy.serve(reader, writer).await
    });
    let (reader, writer) = tokio::io::split(near);
    client.connect(reader, writer).await
}

/// What a host was told and asked.
#[derive(Clone, Default)]
pub(crate) struct Heard(pub(crate) Arc<Mutex<Vec<String>>>);

impl Heard {
    pub(crate) fn add(&self, line: impl Into<String>) {
        self.0.lock().unwrap().push(line.into());
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

/// A host that can be asked everything.
pub(crate) fn host(heard: &Heard) -> ClientBuilder {
    let (forms, pages, samples, logs) =
        (heard.clone(), heard.clone(), heard.clone(), heard.clone());
    Client::builder()
        .capabilities(
            ClientCapabilities::new()
                .sampling(SamplingCapability::new().tools(taut::types::JsonObject::new())),
        )
        .on_elicit(move |form, _| {
            let heard = forms.clone();
            async move {
                heard.add(format!("form {}", form.message));
                let line = format!("line {}", heard.lines().len());
                let content = serde_json::json!({ "line": line });
                ElicitResult::accept(content.as_object().unwrap().clone())
            }
        })
        .on_elicit_url(move |page, _| {
            let heard = pages.clone();
            async move {
                heard.add(format!("page {}", page.url));
                ElicitResult::accept(Default::default())
            }
        })
        .on_sample(move |params, _| {
            let heard = samples.clone();
            async move {
                heard.add(format!("sample with {} tools", params.tools.map_or(0, |t| t.len())));
                CreateMessageResult::new(
                    "assistant",
                    taut::types::SamplingContent::text("hi"),
                    "model-x",
                )
            }
        })
        .roots([Root::new("file:///home")])
        .on_log(move |log| logs.add(format!("{} {}", log.level, log.data.text())))
}
