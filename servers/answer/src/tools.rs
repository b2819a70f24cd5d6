//! The three tools: their arguments, how they are checked, and what they answer.
//!
//! Knows MCP through taut. An argument that does not fit never reaches a handler: the check is part
//! of reading it, so taut answers for us.

use std::time::Duration;

use jiff::{Timestamp, tz};
use serde::{Deserialize, Serialize};
use taut::Tool;
use taut::types::Implementation;
use taut::types::ToolAnnotations;
use taut::{Call, Json, JsonSchema, Progress, Reject, Revision, Server};
use tokio::time::{Instant, interval};

use crate::citations::{self, Citation};
use crate::config::{Config, is_domain};
use crate::openai::OpenAi;

/// How often a client that wants progress hears that we are still at it.
const TICK: Duration = Duration::from_secs(1);

/// Whose today it is: Tokyo's, as users of the original know it.
const TODAY_IN: tz::Offset = tz::offset(9);

/// What users of the original get for arguments that do not fit.
const INVALID_ARGUMENTS: i64 = -32001;

/// The arguments as they come.
#[derive(Deserialize, JsonSchema)]
struct Asked {
    /// The question, in any language.
    #[schemars(required, length(min = 1))]
    query: Option<String>,
    /// How recent sources should be, in days.
    #[schemars(range(min = 0))]
    recency_days: Option<f64>,
    /// How many search results to look at.
    #[schemars(range(min = 1))]
    max_results: Option<f64>,
    /// Sites to prefer, such as example.org.
    domains: Option<Vec<String>>,
    /// How the answer should look.
    style: Option<Style>,
}

#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Style {
    Summary,
    Bullets,
    CitationsOnly,
}

/// Arguments that make sense.
#[derive(Deserialize, JsonSchema)]
#[serde(try_from = "Asked")]
struct Question(Asked);

impl TryFrom<Asked> for Question {
    type Error = String;

    fn try_from(asked: Asked) -> Result<Self, String> {
        let less = |number: Option<f64>, least: f64| number.is_some_and(|number| number < least);
        let mut domains = asked.domains.iter().flatten();
        if asked.query.as_ref().is_none_or(|query| query.trim().is_empty()) {
            Err("query is required".to_owned())
        } else if less(asked.recency_days, 0.0) {
            Err("recency_days must be 0 or more".to_owned())
        } else if less(asked.max_results, 1.0) {
            Err("max_results must be 1 or more".to_owned())
        } else if let Some(bad) = domains.find(|domain| !is_domain(domain)) {
            Err(format!("domains: {bad:?} is no domain such as example.org"))
        } else {
            Ok(Self(asked))
        }
    }
}

type Reply = Result<Json<Answer>, String>;

/// What a tool answers.
#[derive(Serialize, JsonSchema)]
struct Answer {
    /// The answer, in the language of the question, with its sources at the end.
    answer: String,
    /// Whether the web was searched for it.
    used_search: bool,
    /// Where it comes from.
    citations: Vec<Citation>,
    /// The model that answered.
    model: String,
}

/// The server. Fails if the configuration names a policy that cannot be read.
pub fn server(config: Config) -> Result<Server<impl Send + Sync + 'static>, String> {
    let info = Implementation::new("taut-answer", env!("CARGO_PKG_VERSION")).title("Answer");
    let tool = |name: &str, title: &str, description: &str| {
        let hints = ToolAnnotations::new().read_only_hint(true).open_world_hint(true);
        Tool::new(name).title(title).description(description).annotations(hints)
    };
    let answer = tool("answer", "Answer", "Answer a question with web search and dated citations.");
    let detailed = tool("answer_detailed", "Answer in detail", "As `answer`, with more thought.");
    let quick = tool("answer_quick", "Answer quickly", "As `answer`, for short questions.");
    let policy = policy(&config)?;
    // What was asked before stdin ended is answered: a question has its own limits of time.
    let drain = match config.number("server.drain_ms") {
        0 => Duration::MAX,
        drain => Duration::from_millis(drain.into()),
    };
    let longest = config.number("server.max_message_bytes") as usize;
    Server::with_state(&info.name, &info.version, OpenAi::new(config, policy))
        .info(info)
        .drain(drain)
        .limits(|limits| limits.limits.message = longest)
        .instructions("Ask `answer` for facts that may have changed; it searches and cites.")
        // Clients up to 2025-06-18 were promised an error; with newer ones the model reads the reason.
        .on_bad_arguments(|bad| {
            let error = Reject::new(INVALID_ARGUMENTS, "answer: invalid arguments")
                .data(&serde_json::json!({ "reason": bad.reason }));
            (bad.revision <= Revision::V2025_06_18).then_some(error)
        })
        .tool(answer, async |question, call| reply("answer", question, call).await)
        .tool(detailed, async |question, call| reply("answer_detailed", question, call).await)
        .tool(quick, async |question, call| reply("answer_quick", question, call).await)
        .build()
        .map_err(|error| error.to_string())
}

/// Asks the service, tells the client how it goes, and stops when the client no longer wants it.
async fn reply(tool: &str, question: Question, call: Call<OpenAi>) -> Reply {
    let (service, config) = (call.state(), &call.state().config);
    let profile = ["model", "reasoning_effort", "verbosity"].map(|field| {
        let own = config.text(&format!("model_profiles.{tool}.{field}"));
        let shared = config.text(&format!("model_profiles.answer.{field}"));
        if own.is_empty() { shared } else { own }
    });
    let began = Instant::now();
    let tell = |what| call.progress(Progress::new(began.elapsed().as_secs_f64()).message(what));
    let input = input(config, &question.0);
    tracing::debug!(tool, ?profile, "ask");
    let mut work = std::pin::pin!(service.ask(profile, &input, tell));
    let mut tick = interval(TICK);
    let response = loop {
        tokio::select! {
            response = &mut work => break response?,
            // Returning drops `work`, and with it the request.
            () = call.cancelled() => return Err("cancelled".to_owned()),
            _ = tick.tick() => tell(format!("searching, {} s", began.elapsed().as_secs())),
        }
    };
    let most = config.number("policy.max_citations") as usize;
    let today = TODAY_IN.to_datetime(Timestamp::now()).date().to_string();
    let (answer, used_search, citations) = citations::read(&response, &today, most)?;
    tracing::debug!(used_search, citations = citations.len(), "done");
    let model = response["model"].as_str().unwrap_or(profile[0]).to_owned();
    Ok(Json(Answer { answer, used_search, citations, model }))
}

/// The question and, below it, what the caller or else the configuration prefers.
fn input(config: &Config, asked: &Asked) -> String {
    let number = |own: Option<f64>, key| own.unwrap_or_else(|| config.number(key).into());
    let days = number(asked.recency_days, "search.defaults.recency_days");
    let results = number(asked.max_results, "search.defaults.max_results");
    let query = asked.query.as_deref().unwrap_or_default();
    let mut text = format!("{query}\n[Hints] recency_days={days}, max_results={results}.");
    let usual = config.text("search.defaults.domains").replace(',', ", ");
    let domains = asked.domains.as_ref().map_or(usual, |domains| domains.join(", "));
    if !domains.is_empty() {
        text += &format!(" domains: {domains}");
    }
    if let Ok(serde_json::Value::String(style)) = serde_json::to_value(&asked.style) {
        text += &format!(" style: {style}");
    }
    text
}

/// What the model is told to be: our own words, the user's, or both.
fn policy(config: &Config) -> Result<String, String> {
    let (ours, path) = (include_str!("policy.txt"), config.path("policy.system.path"));
    let theirs = || std::fs::read_to_string(&path);
    let bad = |error| format!("policy.system.path is {path:?}: {error}");
    Ok(match (config.text("policy.system.source"), config.text("policy.system.merge")) {
        ("builtin", _) => ours.to_owned(),
        (_, "prepend") => format!("{}\n\n{ours}", theirs().map_err(bad)?),
        (_, "append") => format!("{ours}\n\n{}", theirs().map_err(bad)?),
        _ => theirs().map_err(bad)?,
    })
}
