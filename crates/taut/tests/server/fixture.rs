//! The servers under test: one of each thing, as small as it can be.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use taut::types::{
    Annotations, CacheScope, CompletionReference, Icon, Implementation, PromptMessage,
    PromptReference, ResourceContents, ResourceReference, ToolAnnotations,
};
use taut::{
    Call, CallToolResult, Content, Json, JsonSchema, Level, Meta, NoArgs, Progress, Prompt, Reject,
    Resource, ResourceTemplate, Role, Server, ServerBuilder, Tool,
};

/// Say it again.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct Echo {
    /// What to say.
    pub(crate) text: String,
}

/// Add two numbers.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct Add {
    pub(crate) a: f64,
    pub(crate) b: f64,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Sum {
    pub(crate) sum: f64,
}

/// Take a while, in steps.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct Slow {
    #[serde(default)]
    pub(crate) steps: u32,
    pub(crate) step_ms: u64,
}

#[derive(Deserialize, JsonSchema)]
struct Log {
    level: String,
    data: serde_json::Value,
}

#[derive(Deserialize, JsonSchema)]
struct Greet {
    /// Whom to greet.
    name: String,
    language: Option<String>,
}

#[derive(Deserialize)]
struct Note {
    id: String,
}

/// The server that a scene names.
pub(crate) fn named(name: &str) -> Server {
    match name {
        "full" => full(),
        "bare" => Server::builder("bare", "1")
            .tool("echo", async |Echo { text }, _| text)
            .build()
            .unwrap(),
        "empty" => Server::builder("empty", "1").build().unwrap(),
        "paged" => paged(),
        "prompts" => Server::builder("prompts", "1")
            .prompt("hello", async |_: NoArgs, _| "Hello.")
            .build()
            .unwrap(),
        other => panic!("no such server: {other}"),
    }
}

fn full() -> Server {
    let info = Implementation::new("fixture", "1.2.3")
        .title("Fixture")
        .description("One of each")
        .website_url("https://example.com");
    let server = Server::builder("", "").info(info).instructions("Try echo.").logging();
    prompts(resources(kinds(tools(server)))).build().unwrap()
}

fn tools(server: ServerBuilder) -> ServerBuilder {
    let decorated = Tool::new("decorated")
        .title("Decorated")
        .description("Has all that a tool can have.")
        .annotations(ToolAnnotations::new().title("Old title").read_only_hint(true))
        .icons(vec![Icon::new("https://example.com/a.png").mime_type("image/png")])
        .meta(Meta::new().with("com.example/colour", serde_json::json!("red")));
    server
        .tool("echo", async |Echo { text }, _| text)
        .tool("add", async |Add { a, b }, _| Json(Sum { sum: a + b }))
        .tool("slow", slow)
        .tool("stubborn", stubborn)
        .tool(("fail", "Tool fail."), async |_: NoArgs, _| Err::<Json<Sum>, _>("the disk is full"))
        .tool(("reject", "Tool reject."), async |_: NoArgs, _| {
            Err::<(), _>(Reject::new(7, "not on Sundays"))
        })
        .tool(("panic", "Tool panic."), async |_: NoArgs, _| -> String { panic!("secret words") })
        .tool("log", async |Log { level, data }, call| {
            call.log_from("fixture", Level::from(level.as_str()), data);
        })
        .tool(decorated, async |_: NoArgs, _| "fine")
}

/// Reports each step, and stops when nobody wants the answer any more.
pub(crate) async fn slow(Slow { steps, step_ms }: Slow, call: Call) -> &'static str {
    for step in 0..steps.max(1) {
        if steps > 0 {
            call.progress(
                Progress::new(step + 1).total(steps).message(format!("step {}", step + 1)),
            );
        }
        tokio::select! {
            () = tokio::time::sleep(Duration::from_millis(step_ms)) => {}
            () = call.cancelled() => return "cancelled",
        }
    }
    "done"
}

/// Goes on when it is cancelled, and talks.
async fn stubborn(Slow { step_ms, .. }: Slow, call: Call) -> &'static str {
    call.progress(1.0);
    tokio::time::sleep(Duration::from_millis(step_ms)).await;
    call.progress(2.0);
    call.log(Level::Emergency, "still here");
    "too late"
}

fn kinds(server: ServerBuilder) -> ServerBuilder {
    // What `Json` does not send: data that is no object, in the modern revision only.
    let array = Tool::new("array")
        .description("Tool array.")
        .output_schema(serde_json::json!({ "type": "array" }));
    server
        .tool(("blocks", "Tool blocks."), async |_: NoArgs, _| {
            vec![
                Content::text("words"),
                Content::image("aW1n", "image/png"),
                Content::audio("c25k", "audio/wav"),
                Content::link("note://1", "first"),
                Content::resource(ResourceContents::new("note://1").text("one")),
            ]
        })
        .tool(("nothing", "Tool nothing."), async |_: NoArgs, _| ())
        .tool(array, async |_: NoArgs, _| {
            CallToolResult::with_text("[1,2,3]").structured_content(serde_json::json!([1, 2, 3]))
        })
        .tool(("numbers", "Tool numbers."), async |_: NoArgs, _| Json(vec![1, 2, 3]))
        .tool(("null", "Tool null."), async |_: NoArgs, _| {
            CallToolResult::new([]).structured_content(serde_json::Value::Null)
        })
        .tool(("who", "Tool who."), async |_: NoArgs, call: Call| {
            let meta = call.meta().unwrap_or_default();
            let ours = meta.value("com.example/x").map(|value| value.text().to_owned());
            let roots = call.client().capabilities().roots.is_some();
            format!(
                "name={} revision={} roots={roots} parent={} baggage={} x={}",
                call.client().name().unwrap_or("-"),
                call.revision(),
                call.trace().parent.as_deref().unwrap_or("-"),
                call.trace().baggage.as_deref().unwrap_or("-"),
                ours.as_deref().unwrap_or("-"),
            )
        })
}

fn resources(server: ServerBuilder) -> ServerBuilder {
    let readme = Resource::new("file:///readme.md", "readme")
        .title("Read me")
        .description("What this is")
        .mime_type("text/markdown")
        .size(5)
        .annotations(Annotations::new().audience(vec![Role::User]).priority(0.5))
        .icons(vec![Icon::new("data:image/png;base64,aW1n")]);
    server
        .resource(readme, async |_| "# Hi\n")
        .resource(Resource::new("file:///dot.png", "dot").mime_type("image/png"), async |_| {
            vec![1u8, 2, 3, 255]
        })
        .resource(Resource::new("file:///broken", "broken"), async |_| {
            Err::<String, _>("the disk is full")
        })
        .resource_template(
            ResourceTemplate::new("note://{id}", "note").title("Note").mime_type("text/plain"),
            async |Note { id }, _| match id.as_str() {
                "1" => Ok("one"),
                _ => Err(Reject::new(taut::types::RESOURCE_NOT_FOUND, format!("no note {id}"))),
            },
        )
        .completion(
            CompletionReference::Resource(ResourceReference::new("note://{id}")),
            "id",
            async |typed, _| (1..=150).map(|n| format!("{}{n}", typed.value)).collect(),
        )
}

fn prompts(server: ServerBuilder) -> ServerBuilder {
    server
        .prompt(Prompt::new("hello").title("Hello"), async |_: NoArgs, _| "Say hello.")
        .prompt("greet", async |Greet { name, language }: Greet, _| {
            let language = language.as_deref().unwrap_or("English");
            vec![
                PromptMessage::user(format!("Greet {name} in {language}.")),
                PromptMessage::assistant("With pleasure."),
            ]
        })
        .prompt("pictures", async |_: NoArgs, _| {
            vec![
                PromptMessage::user(Content::image("aW1n", "image/png")),
                PromptMessage::user(Content::audio("c25k", "audio/wav")),
                PromptMessage::user(Content::link("note://1", "first")),
            ]
        })
        .completion(
            CompletionReference::Prompt(PromptReference::new("greet")),
            "language",
            async |typed, _| {
                let polite = typed.chosen.get("name").is_some_and(|name| name == "Queen");
                let all = if polite { vec!["English"] } else { vec!["Dutch", "German"] };
                all.into_iter().filter(|l| l.starts_with(&typed.value)).map(str::to_owned).collect()
            },
        )
}

/// Five of each, two on a page, to be kept for a minute by anybody.
pub(crate) fn paged() -> Server {
    let mut server = Server::builder("paged", "1")
        .cache(Duration::from_secs(60), CacheScope::Public)
        .page_size(2);
    for n in 1..=5 {
        server = server
            .tool(format!("tool{n}").as_str(), async |Echo { text }, _| text)
            .resource(Resource::new(format!("a:{n}"), format!("r{n}")), async |_| "text")
            .resource_template(
                ResourceTemplate::new(format!("t{n}:{{id}}"), format!("t{n}")),
                async |Note { id }, _| id,
            )
            .prompt(format!("prompt{n}").as_str(), async |_: NoArgs, _| "Hello.");
    }
    server.build().unwrap()
}
