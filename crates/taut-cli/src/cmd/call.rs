//! `taut call`: one tool, once.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Map, Value};
use taut::types::WriteJson as _;
use taut::{Answer, Client, Error, Tool, error::OutputFault};

use crate::args::{Call, name_after};
use crate::arguments::{self, Mistake, closest};
use crate::cmd::list::Offer;
use crate::content::{self, Piece};
use crate::files;
use crate::hosts::resolve;
use crate::output::{CYAN, Output, RED};
use crate::own;
use crate::problem::{Exit, Problem};
use crate::schema::{Schema, fields};
use crate::session::with_server;
use crate::spinner::Spinner;
use crate::word_order::{Order, SERVER, with_name};

pub(crate) async fn run(output: &Output, args: &Call) -> Result<Exit, Problem> {
    let (pairs, server) = name_after(&args.pairs, &args.server, &args.options);
    let (given, pairs) = match (&args.args, pairs) {
        (Some(text), []) => (Some(object(text)?), pairs),
        (Some(_), _) => {
            return Err(Problem::usage("key=value and --args: only one can be meant"));
        }
        // As in the shell.
        (None, [json]) if json.starts_with('{') => (Some(object(json)?), &[][..]),
        (None, _) => (None, pairs),
    };
    let started = resolve(output, &args.options, server, &args.server);
    let order = Order { command: "call", first: &args.tool, is: "the tool", rest: &args.pairs };
    let started = started.map_err(|problem| order.mend(problem, &args.options))?.reach;
    let work = async |client: &Client, spinner: &Spinner| {
        let mut tools = Vec::new();
        let arguments = match given {
            Some(arguments) => arguments,
            None => {
                tools = client.tools().await?;
                if !tools.iter().any(|tool| tool.name == args.tool) {
                    let offer = super::list::ask(client, None).await.unwrap_or_default();
                    let problem = unknown(&args.tool, &tools);
                    return Err(instead(problem, &args.tool, &offer, "taut ", SERVER));
                }
                fit(&tools, &args.tool, pairs)?
            }
        };
        spinner.say(format!("calling {}", args.tool));
        let call = client.call(args.tool.as_str(), Value::Object(arguments));
        let answer = call.progress(spinner.watcher(&args.tool)).await?;
        if output.json {
            output.document(&answer.at(client.revision()))?;
        } else {
            show(output, &answer)?;
        }
        // Before something else is waited for, and heard.
        Ok((answer.failed(), broken(client, &tools, &answer), output.heard.said()))
    };
    let done = with_server(output, &args.options, started, work).await;
    let ((failed, broken, said), exit) =
        done.map_err(|problem| with_name(problem, server, &args.options))?;
    if let Some(error) = broken {
        output.note(&output.err.paint(RED, output.err.line(&error.to_string())));
        return Ok(Exit::Violation);
    }
    if !failed {
        return Ok(exit);
    }
    let words = format!("the tool {} reported failure", args.tool);
    output.note(&output.err.paint(RED, output.err.line(&words)));
    if said > 0 && !output.verbose {
        let lines = if said == 1 { "line".to_owned() } else { format!("{said} lines") };
        let words = format!("-v, which shows what the server wrote on stderr ({lines})");
        output.note(&format!("{} {words}", output.err.paint(CYAN, "  try:")));
    }
    // Not the tool's fault, if nobody answered what it asked.
    Ok(if exit == Exit::Refused { exit } else { Exit::ToolFailed })
}

/// How an answer breaks the schema that its tool published, if it does and the tool is listed here.
/// A schema that cannot be used proves nothing.
pub(crate) fn broken(client: &Client, tools: &[Tool], answer: &Answer) -> Option<Error> {
    let tool = tools.iter().find(|tool| tool.name == answer.tool())?;
    let known = client.revision().has_structured_content();
    let error = answer.check_against(tool).err().filter(|_| known)?;
    let Error::Output(bad) = &error else { return None };
    matches!(bad.fault, OutputFault::Missing | OutputFault::Misfit(_)).then_some(error)
}

/// Prints what the tool said; its data if it said nothing.
pub(crate) fn show(output: &Output, answer: &taut::CallToolResult) -> Result<(), Problem> {
    let mut pieces: Vec<Piece> = answer.content.iter().map(Piece::of).collect();
    if output.on_terminal()
        && let Some(data) = answer.structured_content.as_ref().and_then(|data| data.parse().ok())
        && content::is_only(&pieces, &data)
    {
        return output.print(&format!("{}\n", content::indented(output, &data)));
    }
    if pieces.is_empty()
        && let Some(data) = &answer.structured_content
    {
        let value: Value = data.parse().unwrap_or(Value::Null);
        pieces.push(Piece::Text(serde_json::to_string_pretty(&value).unwrap_or_default()));
    }
    content::print(output, &pieces)
}

/// The arguments as one JSON object: as it stands, from a file, or from stdin.
pub(crate) fn object(text: &str) -> Result<Map<String, Value>, Problem> {
    let text = match text.strip_prefix('@') {
        Some(path) => files::text(Path::new(path), files::MESSAGE)?,
        None if text == "-" => {
            let what = || "reading the arguments from stdin".to_owned();
            files::stdin(files::MESSAGE)?.map_err(|error| Problem::File { what: what(), error })?
        }
        None => text.to_owned(),
    };
    match serde_json::from_str(&text) {
        Ok(Value::Object(members)) => Ok(members),
        Ok(other) => Err(wrong_json(&format!("it is {}", name_of(&other)))),
        Err(error) => Err(wrong_json(&error.to_string())),
    }
}

fn wrong_json(why: &str) -> Problem {
    Problem::Usage {
        what: format!("--args must be a JSON object: {why}"),
        next: Some(r#"--args '{"key": "value"}', --args @file.json, or key=value"#.to_owned()),
    }
}

fn name_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// The pairs, as the tool's own schema wants them. Nothing has been called yet.
pub(crate) fn fit(
    tools: &[Tool],
    name: &str,
    pairs: &[String],
) -> Result<Map<String, Value>, Problem> {
    let Some(tool) = tools.iter().find(|tool| tool.name == name) else {
        return Err(unknown(name, tools));
    };
    let schema = tool.input_schema.json().parse().unwrap_or(Value::Null);
    arguments::read(pairs, &schema).map_err(|mistakes| wrong(tool, &schema, pairs, &mistakes))
}

pub(crate) fn unknown(name: &str, tools: &[Tool]) -> Problem {
    let names = || tools.iter().map(|tool| tool.name.as_str());
    let mut what = format!("the server has no tool {name:?}");
    if let Some(meant) = closest(name, names()) {
        let _ = write!(what, "; did you mean {meant}?");
    }
    let _ = write!(what, "\nit has: {}", names().collect::<Vec<_>>().join(", "));
    let next = format!(
        "`{taut} list tools{SERVER}`; with --args the call is sent all the same",
        taut = own::name()
    );
    Problem::Usage { what, next: Some(next) }
}

/// The same where a prompt or a resource has the name that was taken for a tool's: says so, and what to type.
/// `before` and `after` stand around that.
pub(crate) fn instead(
    problem: Problem,
    name: &str,
    offer: &Offer,
    before: &str,
    after: &str,
) -> Problem {
    let prompt = offer.prompts.iter().flatten().find(|prompt| prompt.name == name);
    let (is, typed) = if let Some(prompt) = prompt {
        let takes = prompt.arguments.iter().flatten().filter(|each| each.required == Some(true));
        let takes: String = takes.map(|each| format!(" {}=…", each.name)).collect();
        ("a prompt", format!("prompt {name}{takes}"))
    } else if offer.resources.iter().flatten().any(|resource| resource.uri == name) {
        ("a resource", format!("read {name}"))
    } else {
        return problem;
    };
    Problem::Usage {
        what: format!("{name} is {is}, not a tool"),
        next: Some(format!("{before}{typed}{after}")),
    }
}

fn wrong(tool: &Tool, schema: &Value, pairs: &[String], mistakes: &[Mistake]) -> Problem {
    let mut what = format!("the arguments do not fit the tool {}", tool.name);
    for mistake in mistakes {
        let _ = write!(what, "\n  {mistake}");
    }
    let schema = Schema::of(schema);
    match fields(schema).trim_end() {
        "" => what.push_str("\nit takes no arguments"),
        lines => what.extend(["\nit takes:\n", lines]),
    }
    let mut names = schema.required();
    // What was typed, in whichever way, is wanted.
    let typed = pairs.iter().filter_map(|pair| pair.split(['=', ':']).next());
    let named = schema.fields();
    for name in typed.filter(|typed| named.iter().any(|field| field.name == *typed)) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let example: String = names.iter().map(|name| format!(" {name}=…")).collect();
    Problem::Usage {
        what,
        next: Some(format!("{taut} call {}{example}{SERVER}", tool.name, taut = own::name())),
    }
}
