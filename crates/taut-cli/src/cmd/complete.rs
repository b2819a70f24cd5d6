//! `taut complete`: what a server suggests for an argument that is being typed.

use std::ffi::OsString;

use taut::Client;
use taut::types::{Completion, CompletionReference, PromptReference, ResourceReference};

use crate::args::{Options, name_after};
use crate::arguments::closest;
use crate::help;
use crate::hosts::resolve;
use crate::output::{DIM, Output};
use crate::own;
use crate::problem::{Exit, Problem};
use crate::session::with_server;
use crate::spinner::Spinner;
use crate::word_order::{Order, SERVER, with_name};

#[derive(clap::Args)]
#[command(after_help = help::COMPLETE)]
pub(crate) struct Complete {
    /// The name of a prompt, or a template of resources such as weather://{city}/today.
    #[arg(value_name = "PROMPT|TEMPLATE")]
    what: String,
    /// The arguments so far, the last one to be completed; a last word without = is the name of a server.
    #[arg(value_name = "KEY=VALUE")]
    pairs: Vec<String>,
    #[command(flatten)]
    pub(crate) options: Options,
    /// The server's program and its arguments, passed on unchanged.
    #[arg(last = true, value_name = "COMMAND")]
    server: Vec<OsString>,
}

pub(crate) async fn run(output: &Output, args: &Complete) -> Result<Exit, Problem> {
    let (given, server) = name_after(&args.pairs, &args.server, &args.options);
    let order =
        Order { command: "complete", first: &args.what, is: "what to complete", rest: &args.pairs };
    let mend = |problem| order.mend(problem, &args.options);
    let pairs = pairs(given).map_err(mend)?;
    if pairs.is_empty() {
        return Err(which(&args.what));
    }
    let started = resolve(output, &args.options, server, &args.server).map_err(mend)?.reach;
    let work = async |client: &Client, spinner: &Spinner| {
        spinner.say(format!("completing {}", args.what));
        let found = ask(client, &args.what, &pairs).await?;
        if output.json { output.document(&found) } else { show(output, &found) }
    };
    let done = with_server(output, &args.options, started, work).await;
    done.map(|((), exit)| exit).map_err(|problem| with_name(problem, server, &args.options))
}

/// The arguments so far.
pub(crate) fn pairs(typed: &[String]) -> Result<Vec<(&str, &str)>, Problem> {
    let mut all = Vec::new();
    for text in typed {
        all.push(match text.split_once('=') {
            Some(pair) if !pair.0.is_empty() => pair,
            _ => return Err(Problem::usage(format!("{text:?} is no key=value"))),
        });
    }
    Ok(all)
}

fn which(what: &str) -> Problem {
    Problem::Usage {
        what: "which argument is to be completed?".to_owned(),
        next: Some(format!("{taut} complete {what} KEY=BEGINNING{SERVER}", taut = own::name())),
    }
}

/// What the server suggests for the last pair.
pub(crate) async fn ask(
    client: &Client,
    what: &str,
    pairs: &[(&str, &str)],
) -> Result<Completion, Problem> {
    let Some(((key, value), chosen)) = pairs.split_last() else { return Err(which(what)) };
    let (reference, keys) = known(client, what).await?;
    pairs.iter().try_for_each(|(key, _)| check(what, key, &keys))?;
    Ok(client.complete_with(reference, *key, *value, chosen.iter().copied()).await?)
}

/// Prints it, one to a line, and says what is left out.
pub(crate) fn show(output: &Output, found: &Completion) -> Result<(), Problem> {
    let lines = found.values.iter().map(|value| format!("{}\n", output.out.line(value)));
    output.print(&lines.collect::<String>())?;
    let shown = found.values.len() as u64;
    let more = match found.total.filter(|total| *total > shown) {
        Some(total) => format!("{shown} of {total}"),
        None if found.has_more == Some(true) => format!("{shown}, and there are more"),
        None if shown == 0 => "the server suggests nothing".to_owned(),
        None => return Ok(()),
    };
    output.note(&output.err.paint(DIM, more));
    Ok(())
}

/// Finds a slip in the name of an argument before anything is sent. Without a list of them any may be right.
fn check(what: &str, key: &str, keys: &[String]) -> Result<(), Problem> {
    if keys.is_empty() || keys.iter().any(|known| known == key) {
        return Ok(());
    }
    let meant = closest(key, keys.iter().map(String::as_str));
    let meant = meant.map(|meant| format!("; did you mean {meant}?")).unwrap_or_default();
    let all = keys.join(", ");
    Err(Problem::usage(format!("{what} has no argument {key:?}{meant}\nit has: {all}")))
}

/// The names of the variables in a template: `weather://{city}/today`, `{+path}`, `{?from,to*}`.
fn variables(template: &str) -> Vec<String> {
    let parts = template.split('{').skip(1).filter_map(|part| part.split_once('}'));
    let names = parts.flat_map(|(inside, _)| inside.split(','));
    let is_name = |c: char| c.is_alphanumeric() || "_.%".contains(c);
    let names =
        names.map(|name| name.split(':').next().unwrap_or(name).trim_matches(|c| !is_name(c)));
    names.filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// The prompt or the template that is meant, with the names of its arguments; it has to be one of the
/// server's.
async fn known(client: &Client, what: &str) -> Result<(CompletionReference, Vec<String>), Problem> {
    let has = client.capabilities();
    let mut names = Vec::new();
    let mut prompts = Vec::new();
    if has.prompts.is_some() {
        prompts = client.prompts().await?;
        names.extend(prompts.iter().map(|prompt| prompt.name.clone()));
    }
    if has.resources.is_some() {
        // Many servers have resources and no templates.
        let templates = client.resource_templates().await.unwrap_or_default();
        names.extend(templates.into_iter().map(|template| template.uri_template));
    }
    match names.iter().position(|name| name == what) {
        Some(at) if at < prompts.len() => {
            let takes = prompts[at].arguments.iter().flatten();
            let keys = takes.map(|argument| argument.name.clone()).collect();
            Ok((CompletionReference::Prompt(PromptReference::new(what)), keys))
        }
        Some(_) => {
            let reference = CompletionReference::Resource(ResourceReference::new(what));
            Ok((reference, variables(what)))
        }
        None => {
            let meant = closest(what, names.iter().map(String::as_str));
            let meant = meant.map(|meant| format!("; did you mean {meant}?")).unwrap_or_default();
            let all = if names.is_empty() { "nothing".to_owned() } else { names.join(", ") };
            Err(Problem::Usage {
                what: format!(
                    "the server has no prompt or template {what:?}{meant}\nit has: {all}"
                ),
                next: Some(format!(
                    "`{taut} list prompts{SERVER}` and `{taut} list templates{SERVER}`",
                    taut = own::name()
                )),
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::variables;

    #[test]
    fn the_variables_of_a_template_are_found() {
        assert_eq!(variables("weather://{city}/today"), ["city"]);
        assert_eq!(
            variables("x://{+path}{?from,to*,n:3}/{#part}"),
            ["path", "from", "to", "n", "part"]
        );
        assert!(variables("plain://").is_empty());
    }
}
