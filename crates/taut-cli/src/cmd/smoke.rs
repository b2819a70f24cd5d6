//! `taut smoke`: handshake, list, one call, close; a transcript with times.
//!
//! Knows which tool may be called without asking anybody: `pick` is pure. Calls nothing that may
//! change something.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};
use taut::{Answer, Client, ClientEvent, Closed, Command, Rung, ServerCapabilities, Tool};

use super::call::object;
use super::list::{Offer, ask};
use crate::args::Smoke;
use crate::content::{self, Piece};
use crate::output::{BOLD, DIM, GREEN, Output, RED, YELLOW, cut, time};
use crate::problem::{Exit, Problem, exit_of};
use crate::session::{Interrupts, builder, command, shown, tell_event};
use crate::spinner::Spinner;

/// How wide the text of a step may be beside its time.
const TEXT: usize = 56;

const GREETING: &str = "hello from taut";

pub(crate) async fn run(output: &Output, args: &Smoke) -> Result<Exit, Problem> {
    let (started, name) = if args.server.is_empty() {
        let exe = std::env::current_exe()
            .map_err(|error| Problem::File { what: "finding our own program".into(), error })?;
        (command(&[exe.into(), "serve".into()], &args.options), "taut serve".to_owned())
    } else {
        (command(&args.server, &args.options), shown(&args.server))
    };
    let mut smoke = Transcript::new(output, &name)?;
    let mut interrupts = Interrupts::new()?;
    let exit = tokio::select! {
        exit = smoke.run(args, started) => exit?,
        () = interrupts.next() => return Err(Problem::Interrupted),
    };
    smoke.finish(exit)?;
    Ok(exit)
}

/// What was done so far, told while it is done.
struct Transcript<'a> {
    output: &'a Output,
    began: Instant,
    report: Map<String, Value>,
    /// What the last line says.
    summary: Vec<String>,
    spinner: Option<Spinner>,
}

impl<'a> Transcript<'a> {
    fn new(output: &'a Output, shown: &str) -> Result<Self, Problem> {
        let mut report = Map::new();
        report.insert("command".to_owned(), json!(shown));
        let smoke =
            Self { output, began: Instant::now(), report, summary: Vec::new(), spinner: None };
        let version = env!("CARGO_PKG_VERSION");
        let shown = output.out.paint(DIM, format!("$ {}", output.out.line(shown)));
        let name = output.out.paint(BOLD, format!("taut {version}"));
        smoke.line(&format!("{name}  {shown}\n"))?;
        Ok(smoke)
    }

    /// All of it: what fails is told here, and decides how to end.
    async fn run(&mut self, args: &Smoke, started: Command) -> Result<Exit, Problem> {
        let chosen = chosen(args)?;
        let spawned = Arc::new(Mutex::new(None));
        let (seen, output) = (spawned.clone(), self.output.clone());
        let began = Instant::now();
        let builder = builder(self.output, &args.options).on_event(move |event| {
            if let ClientEvent::Started { .. } = event {
                let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
                seen.get_or_insert(began.elapsed());
            }
            if output.verbose {
                tell_event(&output, event);
            }
        });
        self.wait("starting the server");
        let client = match builder.spawn(started).await {
            Ok(client) => client,
            Err(error) => return self.failed("start", &error, ""),
        };
        let spawned = spawned.lock().unwrap_or_else(PoisonError::into_inner).unwrap_or_default();
        self.agreed(&client, spawned, began.elapsed())?;
        let offer = match self.list(&client).await? {
            Ok(offer) => offer,
            Err(exit) => return Ok(exit),
        };
        let picked = match &chosen {
            Some((tool, arguments)) => Pick::Call(tool.clone(), arguments.clone()),
            None => pick(offer.tools.as_deref().unwrap_or_default()),
        };
        let called = self.call(&client, picked).await?;
        let closed = self.close(&client).await?;
        Ok(if called == Exit::Worked { closed } else { called })
    }

    fn agreed(
        &mut self,
        client: &Client,
        spawned: Duration,
        ready: Duration,
    ) -> Result<(), Problem> {
        self.step("started", "", Some(spawned))?;
        let revision = client.revision();
        let era = if revision.is_modern() { "modern" } else { "legacy" };
        let framing = client.framing().unwrap_or_default();
        self.step("agreed", &format!("{revision} ({era}), {framing}"), Some(ready - spawned))?;
        if let Some(info) = client.server_info() {
            let title = info.title.as_ref().map(|title| format!(", {title}")).unwrap_or_default();
            self.step("server", &format!("{} {}{title}", info.name, info.version), None)?;
            self.report
                .insert("server".into(), json!({ "name": info.name, "version": info.version }));
        }
        let offers = offers(client.capabilities());
        let shown = if offers.is_empty() { "nothing".to_owned() } else { offers.join(", ") };
        self.step("offers", &shown, None)?;
        self.report.insert("revision".into(), json!(revision.as_str()));
        self.report.insert("era".into(), json!(era));
        self.report.insert("framing".into(), json!(framing.to_string()));
        self.report.insert("capabilities".into(), json!(offers));
        self.report.insert("started_ms".into(), millis(spawned));
        self.report.insert("ready_ms".into(), millis(ready));
        Ok(())
    }

    async fn list(&mut self, client: &Client) -> Result<Result<Offer, Exit>, Problem> {
        self.wait("listing");
        let began = Instant::now();
        let offer = match ask(client, None).await {
            Ok(offer) => offer,
            Err(error) => {
                let exit = self.failed("list", &error, &client.stderr())?;
                // It has failed already; how it ends is no news.
                let _ = client.close().await;
                return Ok(Err(exit));
            }
        };
        let took = began.elapsed();
        let mut first = Some(took);
        let mut section = |smoke: &mut Self, what: &str, names: Option<Vec<String>>| {
            let Some(names) = names else { return Ok(()) };
            smoke.report.insert(what.to_owned(), json!(names));
            if !names.is_empty() {
                let count = names.len();
                smoke.summary.push(format!(
                    "{count} {}",
                    if count == 1 { &what[..what.len() - 1] } else { what }
                ));
            }
            let shown = match names.len() {
                0 => "none".to_owned(),
                count => format!("{count}: {}", names.join(", ")),
            };
            smoke.step(what, &shown, first.take())
        };
        let names = |tools: &Vec<Tool>| tools.iter().map(|tool| tool.name.clone()).collect();
        section(self, "tools", offer.tools.as_ref().map(names))?;
        let uris = |all: &Vec<taut::Resource>| all.iter().map(|each| each.uri.clone()).collect();
        section(self, "resources", offer.resources.as_ref().map(uris))?;
        let families = |all: &Vec<taut::ResourceTemplate>| {
            all.iter().map(|each| each.uri_template.clone()).collect()
        };
        section(self, "templates", offer.templates.as_ref().map(families))?;
        let names = |all: &Vec<taut::Prompt>| all.iter().map(|each| each.name.clone()).collect();
        section(self, "prompts", offer.prompts.as_ref().map(names))?;
        self.report.insert("list_ms".into(), millis(took));
        Ok(Ok(offer))
    }

    async fn call(&mut self, client: &Client, picked: Pick) -> Result<Exit, Problem> {
        let (tool, arguments) = match picked {
            Pick::Call(tool, arguments) => (tool, arguments),
            Pick::Nothing(why) => {
                self.report.insert("called".into(), Value::Null);
                self.report.insert("not_called".into(), json!(why));
                self.summary.push("nothing called".to_owned());
                self.spinner = None;
                let mark = self.output.out.paint(YELLOW, "·");
                self.line(&format!("  {mark} {:<10}  nothing: {why}\n", "called"))?;
                return Ok(Exit::Worked);
            }
        };
        self.wait(&format!("calling {tool}"));
        let began = Instant::now();
        let called = client.call(tool.as_str(), arguments.clone()).await;
        let took = began.elapsed();
        match called {
            Ok(answer) => self.answered(&tool, &arguments, &answer, took),
            Err(error) => self.failed("call", &error, &client.stderr()),
        }
    }

    fn answered(
        &mut self,
        tool: &str,
        arguments: &Value,
        answer: &Answer,
        took: Duration,
    ) -> Result<Exit, Problem> {
        let failed = answer.failed();
        let (colour, sign) = if failed { (RED, "✗") } else { (GREEN, "✓") };
        let mark = self.output.out.paint(colour, sign);
        self.mark(mark, "called", &format!("{tool} {arguments}"), Some(took))?;
        let pieces: Vec<Piece> = answer.content.iter().map(Piece::of).collect();
        for line in pieces.iter().flat_map(|piece| content::lines(self.output, piece)).take(5) {
            let line = self.output.out.paint(DIM, cut(&line, self.room(0)));
            self.line(&format!("                {line}\n"))?;
        }
        self.report.insert(
            "called".into(),
            json!({ "tool": tool, "arguments": arguments, "failed": failed,
                    "text": answer.text().ok(), "ms": millis(took) }),
        );
        if failed {
            self.summary = vec![format!("the tool {tool} reported failure")];
            return Ok(Exit::ToolFailed);
        }
        self.summary.push("one call".to_owned());
        Ok(Exit::Worked)
    }

    async fn close(&mut self, client: &Client) -> Result<Exit, Problem> {
        self.wait("waiting for the server to end");
        let began = Instant::now();
        match client.close().await {
            Ok(closed) => {
                let took = began.elapsed();
                self.step("ended", &ended(&closed), Some(took))?;
                self.report.insert("ended".into(), json!(ended(&closed)));
                self.report.insert("end_ms".into(), millis(took));
                let polite = closed.process.is_none_or(|ended| ended.rung <= Rung::Eof);
                if !polite {
                    self.summary.push("it had to be forced to end".to_owned());
                }
                Ok(Exit::Worked)
            }
            Err(error) => self.failed("end", &error, ""),
        }
    }

    /// Tells what failed and why; the next step of it all is the end.
    fn failed(&mut self, what: &str, error: &taut::Error, stderr: &str) -> Result<Exit, Problem> {
        self.spinner = None;
        let mark = self.output.out.paint(RED, "✗");
        self.line(&format!("  {mark} {what:<10}\n"))?;
        let problem = Problem::Server { error: error.clone(), stderr: stderr.to_owned() };
        let mut document = problem.json();
        self.report.insert("error".into(), document["error"].take());
        self.summary = vec![format!("it failed to {what}")];
        let quiet = Output { json: false, ..self.output.clone() };
        quiet.report(&problem);
        Ok(exit_of(error))
    }

    fn finish(mut self, exit: Exit) -> Result<(), Problem> {
        self.spinner = None;
        let took = self.began.elapsed();
        if self.output.json {
            self.report.insert("ok".into(), json!(exit == Exit::Worked));
            self.report.insert("exit".into(), json!(exit as u8));
            self.report.insert("total_ms".into(), millis(took));
            return self.output.document(&self.report);
        }
        let words = self.summary.join(", ");
        let total = time(took);
        let verdict = match exit {
            Exit::Worked if self.report.get("called").is_none_or(Value::is_null) => {
                self.output.out.paint(YELLOW, format!("✓ it works: {words}, {total} in all"))
            }
            Exit::Worked => {
                self.output.out.paint(GREEN, format!("✓ it works: {words}, {total} in all"))
            }
            _ => self.output.out.paint(RED, format!("✗ {words}, after {total}")),
        };
        self.line(&format!("\n{verdict}\n"))
    }

    fn wait(&mut self, label: &str) {
        // The old one wipes its line before the new one begins.
        self.spinner = None;
        self.spinner = Some(Spinner::start(self.output, label));
    }

    fn step(&mut self, name: &str, text: &str, took: Option<Duration>) -> Result<(), Problem> {
        self.mark(self.output.out.paint(GREEN, "✓"), name, text, took)
    }

    fn mark(
        &mut self,
        mark: impl std::fmt::Display,
        name: &str,
        text: &str,
        took: Option<Duration>,
    ) -> Result<(), Problem> {
        self.spinner = None;
        let took = took.map(time).unwrap_or_default();
        let reader = self.output.out;
        // A time stands in a column of its own, so what stands before it has to be short.
        let room = if took.is_empty() { self.room(0) } else { self.room(11).min(TEXT) };
        let text = reader.line(text).into_owned();
        let text = cut(&text, room);
        let pad = " ".repeat(room.saturating_sub(text.chars().count()));
        let mut line = format!("  {mark} {name:<10}  {text}");
        if !took.is_empty() {
            let _ = write!(line, "{pad}{}", reader.paint(DIM, format!("{took:>11}")));
        }
        self.line(&format!("{line}\n"))
    }

    /// How many characters the text of a step may have beside so many others.
    fn room(&self, beside: usize) -> usize {
        self.output.width().unwrap_or(100).saturating_sub(16 + beside).max(20)
    }

    fn line(&self, text: &str) -> Result<(), Problem> {
        if self.output.json { Ok(()) } else { self.output.print(text) }
    }
}

fn millis(time: Duration) -> Value {
    json!((time.as_secs_f64() * 1e6).round() / 1e3)
}

fn ended(closed: &Closed) -> String {
    closed.process.map_or_else(|| closed.to_string(), |process| process.to_string())
}

/// What the capabilities say, in words.
pub(crate) fn offers(has: &ServerCapabilities) -> Vec<&'static str> {
    let all = [
        ("tools", has.tools.is_some()),
        ("resources", has.resources.is_some()),
        ("prompts", has.prompts.is_some()),
        ("completions", has.completions.is_some()),
        ("logging", has.logging.is_some()),
        ("tasks", has.tasks.is_some()),
        ("experimental", has.experimental.is_some()),
        ("extensions", has.extensions.is_some()),
    ];
    all.iter().filter(|(_, there)| *there).map(|(name, _)| *name).collect()
}

/// Which tool to call, or why none.
#[derive(Debug, PartialEq)]
enum Pick {
    Call(String, Value),
    Nothing(String),
}

/// Names that promise to look and not to touch. Only for tools that say nothing about themselves.
const LOOKS: [&str; 12] = [
    "get", "list", "read", "show", "search", "find", "ping", "status", "version", "help", "whoami",
    "describe",
];

/// The call that the command line asks for, whatever it may do.
fn chosen(args: &Smoke) -> Result<Option<(String, Value)>, Problem> {
    let Some(tool) = &args.call else { return Ok(None) };
    let arguments = args.args.as_deref().map(object).transpose()?.unwrap_or_default();
    Ok(Some((tool.clone(), Value::Object(arguments))))
}

fn pick(tools: &[Tool]) -> Pick {
    if tools.is_empty() {
        return Pick::Nothing("it has no tools".to_owned());
    }
    let is_harmful = |tool: &Tool| {
        let hints = tool.annotations.as_ref();
        hints.is_some_and(|hints| {
            hints.read_only_hint != Some(true) && hints.destructive_hint == Some(true)
        })
    };
    if let Some((tool, argument)) = tools
        .iter()
        .filter(|tool| tool.name == "echo" && !is_harmful(tool))
        .find_map(|tool| Some((tool, only_text(tool)?)))
    {
        return Pick::Call(tool.name.clone(), json!({ argument: GREETING }));
    }
    let says = |tool: &&Tool| {
        let read_only = tool.annotations.as_ref().and_then(|hints| hints.read_only_hint);
        read_only == Some(true) && needs(tool).is_empty()
    };
    let promises = |tool: &&Tool| {
        let word = tool.name.split(['_', '-', '.', '/']).next().unwrap_or_default().to_lowercase();
        let silent = tool.annotations.as_ref().is_none_or(|hints| hints.read_only_hint.is_none());
        silent && !is_harmful(tool) && needs(tool).is_empty() && LOOKS.contains(&word.as_str())
    };
    match tools.iter().find(says).or_else(|| tools.iter().find(promises)) {
        Some(tool) => Pick::Call(tool.name.clone(), json!({})),
        None => Pick::Nothing(
            "no tool is sure to be harmless without arguments; name one with --call".to_owned(),
        ),
    }
}

fn needs(tool: &Tool) -> Vec<crate::arguments::Parameter> {
    let schema = tool.input_schema.json().parse().unwrap_or(Value::Null);
    let named: Vec<_> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let mut all = crate::arguments::parameters(&schema);
    all.retain(|parameter| parameter.required);
    // Something that has to be given and is not described cannot be guessed.
    if all.len() < named.len() {
        all.extend(named.iter().map(|name| crate::arguments::Parameter {
            name: (*name).to_owned(),
            kind: "any".to_owned(),
            required: true,
            description: String::new(),
        }));
    }
    all
}

/// The one argument that a tool needs, if that is one and text.
fn only_text(tool: &Tool) -> Option<String> {
    match needs(tool).as_slice() {
        [one] if one.kind == "string" => Some(one.name.clone()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use taut::ToolAnnotations;

    fn tool(name: &str, required: &[&str]) -> Tool {
        let properties: Map<String, Value> =
            required.iter().map(|n| ((*n).to_owned(), json!({ "type": "string" }))).collect();
        let schema = json!({ "type": "object", "properties": properties, "required": required });
        Tool::new(name).input_schema(schema)
    }

    fn read_only(name: &str, required: &[&str]) -> Tool {
        tool(name, required).annotations(ToolAnnotations::new().read_only_hint(true))
    }

    fn destructive(name: &str) -> Tool {
        tool(name, &[]).annotations(ToolAnnotations::new().destructive_hint(true))
    }

    #[test]
    fn nothing_is_called_that_may_change_something() {
        let table: Vec<(Vec<Tool>, Option<&str>)> = vec![
            (vec![], None),
            (vec![tool("delete_all", &[])], None),
            (vec![tool("run", &[]), tool("get_time", &[])], Some("get_time")),
            (vec![tool("get_time", &["zone"])], None),
            (vec![destructive("list_and_delete"), destructive("get_x")], None),
            (vec![read_only("delete_all", &[])], Some("delete_all")),
            (vec![read_only("look", &["where"])], None),
            (vec![tool("getaway", &[])], None),
            (vec![read_only("look", &[]), tool("echo", &["message"])], Some("echo")),
            (vec![tool("echo", &["a", "b"]), read_only("look", &[])], Some("look")),
        ];
        for (tools, called) in table {
            let names: Vec<_> = tools.iter().map(|tool| tool.name.clone()).collect();
            match pick(&tools) {
                Pick::Call(name, _) => assert_eq!(Some(name.as_str()), called, "{names:?}"),
                Pick::Nothing(_) => assert_eq!(None, called, "{names:?}"),
            }
        }
        assert_eq!(
            pick(&[tool("echo", &["message"])]),
            Pick::Call("echo".into(), json!({ "message": GREETING }))
        );
    }
}
