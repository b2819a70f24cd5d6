//! The demo server, for trying clients.
//!
//! Has one of each thing that a server can do, each in a few lines.

use std::io::Write as _;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use taut::types::{
    Annotations, CompletionReference, CreateMessageParams, Implementation, PromptMessage,
    PromptReference, ResourceReference, SamplingContent, SamplingMessage, ToolAnnotations,
};
use taut::{
    AskError, Call, Content, Json, JsonSchema, Level, NoArgs, Progress, Prompt, Resource,
    ResourceTemplate, Role, Server, ServerBuilder, Tool, UserReply,
};

/// Say it again.
#[derive(Deserialize, JsonSchema)]
struct Echo {
    /// What to say.
    text: String,
}

/// Add two numbers.
#[derive(Deserialize, JsonSchema)]
struct Add {
    /// The first number.
    a: f64,
    /// The second number.
    b: f64,
}

/// What adding gives.
#[derive(Serialize, JsonSchema)]
struct Sum {
    /// The sum.
    sum: f64,
}

/// Take a while, in steps, with progress. Can be cancelled.
#[derive(Deserialize, JsonSchema)]
struct Slow {
    /// How many steps.
    #[serde(default = "ten")]
    steps: u32,
    /// How long each step takes, in milliseconds.
    #[serde(default = "hundred")]
    step_ms: u64,
}

fn ten() -> u32 {
    10
}

fn hundred() -> u64 {
    100
}

/// Fail, as a tool does: with words for the model.
#[derive(Deserialize, JsonSchema)]
struct Fail {
    /// What to complain about.
    #[serde(default)]
    reason: Option<String>,
}

/// Print to standard output, which must not reach the wire.
#[derive(Deserialize, JsonSchema)]
struct Print {
    /// What to print.
    #[serde(default)]
    text: Option<String>,
}

/// Return so many bytes of text.
#[derive(Deserialize, JsonSchema)]
struct Big {
    /// How many bytes, up to 64 MiB.
    bytes: usize,
}

/// Write a line to the client's log.
#[derive(Deserialize, JsonSchema)]
struct Log {
    /// How bad it is: debug, info, notice, warning, error, critical, alert or emergency.
    #[serde(default = "info")]
    level: String,
    /// What to log.
    message: String,
}

fn info() -> String {
    "info".to_owned()
}

/// Greet somebody.
#[derive(Deserialize, JsonSchema)]
struct Greet {
    /// Whom to greet.
    name: String,
    /// In which language.
    #[serde(default)]
    language: Option<String>,
}

/// Order a coffee: asks what kind, then asks whether that is right.
#[derive(Deserialize, JsonSchema)]
struct Ask {}

/// Your coffee
#[derive(Serialize, Deserialize, JsonSchema)]
struct Coffee {
    /// Which size?
    size: Size,
    /// With milk?
    #[serde(default = "yes")]
    milk: bool,
    /// A name for the cup
    name: Option<String>,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Size {
    Small,
    Large,
}

#[derive(Deserialize, JsonSchema)]
struct Confirm {
    /// Is that right?
    right: bool,
}

fn yes() -> bool {
    true
}

/// Ask the client's model.
#[derive(Deserialize, JsonSchema)]
struct Sample {
    /// What to ask it.
    prompt: String,
}

/// Add a tool, which then says something.
#[derive(Deserialize, JsonSchema)]
struct AddTool {
    /// Its name.
    name: String,
    /// What it says.
    says: String,
}

/// What the demo keeps.
#[derive(Default)]
pub(crate) struct Demo {
    touched: AtomicU32,
}

#[derive(Deserialize)]
struct City {
    city: String,
}

const CITIES: [&str; 6] = ["Amsterdam", "Athens", "Berlin", "Bern", "Lisbon", "Tokyo"];
const LANGUAGES: [&str; 4] = ["Dutch", "English", "German", "Japanese"];

/// A red dot, 5 by 5 pixels.
const RED_DOT: &str = "iVBORw0KGgoAAAANSUhEUgAAAAUAAAAFCAYAAACNbyblAAAAHElEQVQI12P4//8/w38GIAXDIBKE0DHxgljNBAAO9TXL0Y4OHwAAAABJRU5ErkJggg==";

/// The demo server.
pub(crate) fn server() -> ServerBuilder<Demo> {
    let info = Implementation::new("taut-demo", env!("CARGO_PKG_VERSION"))
        .title("taut demo")
        .description("One of each thing that an MCP server can do");
    let server = Server::with_state(&info.name, &info.version, Demo::default())
        .info(info)
        .instructions("A server to try clients against. Start with the tool `echo`.")
        .logging()
        .changing();
    prompts(resources(asking(tools(server))))
}

/// So many more tools, each of which says again what it is told.
#[allow(dead_code, reason = "the library's example and tests do without")]
pub(crate) fn with_tools(server: ServerBuilder<Demo>, count: usize) -> ServerBuilder<Demo> {
    (0..count).fold(server, |server, n| {
        let tool = Tool::new(format!("tool_{n:03}")).description(format!("Plain tool number {n}."));
        server.tool(tool, async |Echo { text }, _call| text)
    })
}

fn tools(server: ServerBuilder<Demo>) -> ServerBuilder<Demo> {
    let harmless = || ToolAnnotations::new().read_only_hint(true).open_world_hint(false);
    server
        .tool(
            Tool::new("echo").title("Echo").annotations(harmless()),
            async |Echo { text }, _call| text,
        )
        .tool(Tool::new("add").title("Add").annotations(harmless()), async |Add { a, b }, _call| {
            Json(Sum { sum: a + b })
        })
        .tool(Tool::new("slow").title("Slow").annotations(harmless()), slow)
        .tool("fail", async |Fail { reason }, _call| {
            Err::<(), _>(reason.unwrap_or_else(|| "it was asked to fail".to_owned()))
        })
        .tool(
            Tool::new("panic").description("Panic. It costs this call, and nothing else."),
            panicking,
        )
        .tool("print", print)
        .tool("big", async |Big { bytes }, _call| {
            const MOST: usize = 64 << 20;
            if bytes > MOST {
                return Err(format!("{bytes} bytes are more than the {MOST} that it can do"));
            }
            Ok("0123456789abcdef".repeat(bytes.div_ceil(16))[..bytes].to_owned())
        })
        .tool("log", async |Log { level, message }, call| {
            let level = Level::from(level.as_str());
            if !level.is_known() {
                return Err(format!("there is no level {level}"));
            }
            call.log_from("demo", level, message);
            Ok("logged")
        })
        .tool(
            Tool::new("image").description("Return a small picture.").annotations(harmless()),
            async |_: NoArgs, _call| {
                vec![Content::text("A red dot:"), Content::image(RED_DOT, "image/png")]
            },
        )
}

fn asking(server: ServerBuilder<Demo>) -> ServerBuilder<Demo> {
    server
        .tool(Tool::new("ask").title("Order a coffee"), ask)
        .tool(Tool::new("sample").title("Ask a model"), async |Sample { prompt }, call| {
            let params = CreateMessageParams::new([SamplingMessage::user(prompt)], 200u64);
            let answer = call.sample(params).await?;
            let texts = answer.content.0.iter().filter_map(|block| match block {
                SamplingContent::Text(text) => Some(text.text.as_str()),
                _ => None,
            });
            Ok::<_, AskError>(texts.collect::<Vec<_>>().join("\n"))
        })
        .tool(
            Tool::new("roots").description("Tell which folders the client works in."),
            async |_: NoArgs, call| {
                let roots = call.roots().await?;
                let lines: Vec<_> = roots.iter().map(|root| root.uri.as_str()).collect();
                Ok::<_, AskError>(lines.join("\n"))
            },
        )
        .tool("add_tool", async |AddTool { name, says }, call| {
            let tool = Tool::new(&name).description("Added by add_tool.");
            call.changes().add_tool(tool, move |_: NoArgs, _call| {
                let says = says.clone();
                async move { says }
            })?;
            Ok::<_, taut::Error>(format!("there is a tool {name:?} now"))
        })
        .tool(
            Tool::new("touch").description("Change the resource demo://touched."),
            async |_: NoArgs, call| {
                let times = call.state().touched.fetch_add(1, Ordering::Relaxed) + 1;
                call.changes().resource_updated("demo://touched");
                match times {
                    1 => "touched once".to_owned(),
                    _ => format!("touched {times} times"),
                }
            },
        )
}

/// Two rounds: the first answer is needed to put the second question.
async fn ask(_: Ask, call: Call<Demo>) -> Result<String, AskError> {
    let UserReply::Accepted(coffee) = call.ask::<Coffee>("What would you like?").await? else {
        return Ok("no coffee then".to_owned());
    };
    let milk = if coffee.milk { "with milk" } else { "black" };
    let order = format!("one {} coffee, {milk}", format!("{:?}", coffee.size).to_lowercase());
    match call.ask::<Confirm>(format!("That is {order}.")).await? {
        UserReply::Accepted(Confirm { right: true }) => {
            let name = coffee.name.unwrap_or_else(|| "you".to_owned());
            Ok(format!("{order}, for {name}"))
        }
        _ => Ok("no coffee then".to_owned()),
    }
}

async fn slow(Slow { steps, step_ms }: Slow, call: Call<Demo>) -> String {
    for step in 0..steps {
        call.progress(
            Progress::new(step).total(steps).message(format!("step {} of {steps}", step + 1)),
        );
        tokio::select! {
            () = tokio::time::sleep(Duration::from_millis(step_ms)) => {}
            () = call.cancelled() => {
                // The answer reaches nobody; this does.
                let _ = writeln!(std::io::stderr(), "slow: cancelled at step {step}");
                return format!("cancelled at step {step}");
            }
        }
    }
    format!("done after {steps} steps")
}

#[allow(clippy::panic, reason = "it is what the tool is for")]
async fn panicking(_: NoArgs, _call: Call<Demo>) -> String {
    panic!("this tool always panics")
}

#[allow(clippy::print_stdout, reason = "it is what the tool is for")]
async fn print(Print { text }: Print, _call: Call<Demo>) -> &'static str {
    println!("{}", text.unwrap_or_else(|| "a stray line".to_owned()));
    "printed; if you can read the line on the wire, something is wrong"
}

fn resources(server: ServerBuilder<Demo>) -> ServerBuilder<Demo> {
    let for_people = Annotations::new().audience(vec![Role::User]).priority(0.5);
    let weather = "weather://{city}/today";
    server
        .resource(
            Resource::new("demo://readme", "readme")
                .title("Read me")
                .description("What this server is")
                .mime_type("text/markdown")
                .annotations(for_people),
            async |_call| "# taut demo\n\nOne of each thing that an MCP server can do.\n",
        )
        .resource(
            Resource::new("demo://dot.png", "dot").title("A red dot").mime_type("image/png"),
            async |_call| taut::types::ResourceContents::new("demo://dot.png").blob(RED_DOT),
        )
        .resource(
            Resource::new("demo://touched", "touched")
                .title("How often it was touched")
                .description("Changes with the tool `touch`; subscribe to it")
                .mime_type("text/plain"),
            async |call| call.state().touched.load(Ordering::Relaxed).to_string(),
        )
        .resource_template(
            ResourceTemplate::new(weather, "weather")
                .title("Weather")
                .description("Today's weather in a city")
                .mime_type("text/plain"),
            async |City { city }, _call| match CITIES
                .iter()
                .find(|known| known.eq_ignore_ascii_case(&city))
            {
                Some(city) => Ok(format!("{city}: sunny, as always in a demo")),
                None => Err(taut::Reject::new(
                    taut::types::RESOURCE_NOT_FOUND,
                    format!("no weather for {city:?}; try one of {}", CITIES.join(", ")),
                )),
            },
        )
        .completion(
            CompletionReference::Resource(ResourceReference::new(weather)),
            "city",
            async |typed, _call| starting_with(&CITIES, &typed.value),
        )
}

fn prompts(server: ServerBuilder<Demo>) -> ServerBuilder<Demo> {
    server
        .prompt(
            Prompt::new("hello").title("Hello").description("Say hello."),
            async |_: NoArgs, _call| "Say hello.",
        )
        .prompt(Prompt::new("greet").title("Greet"), async |Greet { name, language }, _call| {
            let language = language.unwrap_or_else(|| "English".to_owned());
            vec![
                PromptMessage::user(format!("Greet {name} in {language}.")),
                PromptMessage::assistant("With pleasure. In one sentence or in two?"),
                PromptMessage::user("In one."),
            ]
        })
        .completion(
            CompletionReference::Prompt(PromptReference::new("greet")),
            "language",
            async |typed, _call| starting_with(&LANGUAGES, &typed.value),
        )
}

fn starting_with(words: &[&str], start: &str) -> Vec<String> {
    let start = start.to_lowercase();
    words.iter().filter(|w| w.to_lowercase().starts_with(&start)).map(|w| (*w).to_owned()).collect()
}
