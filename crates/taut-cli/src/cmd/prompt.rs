//! `taut prompt`: one prompt, filled in.

use std::collections::BTreeMap;

use taut::types::{GetPromptResult, WriteJson as _};
use taut::{Client, Prompt as Offered};

use crate::args::{Prompt, name_after};
use crate::arguments::closest;
use crate::content::{self, Piece};
use crate::hosts::resolve;
use crate::output::{BOLD, DIM, Output};
use crate::own;
use crate::problem::{Exit, Problem};
use crate::session::with_server;
use crate::spinner::Spinner;
use crate::word_order::{Order, SERVER, with_name};

pub(crate) async fn run(output: &Output, args: &Prompt) -> Result<Exit, Problem> {
    let (given, server) = name_after(&args.pairs, &args.server, &args.options);
    let order = Order { command: "prompt", first: &args.name, is: "the prompt", rest: &args.pairs };
    let mend = |problem| order.mend(problem, &args.options);
    let pairs = pairs(given).map_err(mend)?;
    let started = resolve(output, &args.options, server, &args.server).map_err(mend)?.reach;
    let work = async |client: &Client, spinner: &Spinner| {
        spinner.say(format!("filling in {}", args.name));
        let prompts = client.prompts().await?;
        if !prompts.iter().any(|prompt| prompt.name == args.name)
            && client.capabilities().tools.is_some()
            && client.tools().await?.iter().any(|tool| tool.name == args.name)
        {
            return Err(Problem::Usage {
                what: format!("{} is a tool, not a prompt", args.name),
                next: Some(format!("{taut} call {} …{SERVER}", args.name, taut = own::name())),
            });
        }
        check(&args.name, &pairs, &prompts)?;
        let prompt = client.prompt(args.name.as_str(), pairs).await?;
        if output.json {
            return output.document(&prompt.at(client.revision()));
        }
        show(output, &prompt)
    };
    let done = with_server(output, &args.options, started, work).await;
    done.map(|((), exit)| exit).map_err(|problem| with_name(problem, server, &args.options))
}

/// Prints who says what.
pub(crate) fn show(output: &Output, prompt: &GetPromptResult) -> Result<(), Problem> {
    if let Some(about) = &prompt.description
        && output.on_terminal()
    {
        output.print(&format!("{}\n", output.out.paint(DIM, output.out.line(about))))?;
    }
    for message in &prompt.messages {
        if output.file.is_none() && !output.verbatim {
            output.print(&format!("{}\n", output.out.paint(BOLD, message.role.as_str())))?;
        }
        content::print(output, &[Piece::of(&message.content)])?;
    }
    Ok(())
}

pub(crate) fn pairs(typed: &[String]) -> Result<BTreeMap<String, String>, Problem> {
    let mut all = BTreeMap::new();
    for pair in typed {
        let Some((key, value)) = pair.split_once('=').filter(|(key, _)| !key.is_empty()) else {
            return Err(Problem::usage(format!("{pair:?} is no key=value")));
        };
        if all.insert(key.to_owned(), value.to_owned()).is_some() {
            return Err(Problem::usage(format!("{key} takes one value")));
        }
    }
    Ok(all)
}

/// Finds slips before anything is sent.
pub(crate) fn check(
    name: &str,
    given: &BTreeMap<String, String>,
    all: &[Offered],
) -> Result<(), Problem> {
    let Some(prompt) = all.iter().find(|prompt| prompt.name == name) else {
        let names = || all.iter().map(|prompt| prompt.name.as_str());
        let meant = closest(name, names()).map(|meant| format!("; did you mean {meant}?"));
        let what = format!(
            "the server has no prompt {name:?}{}\nit has: {}",
            meant.unwrap_or_default(),
            names().collect::<Vec<_>>().join(", ")
        );
        return Err(Problem::Usage {
            what,
            next: Some(format!("`{taut} list prompts{SERVER}`", taut = own::name())),
        });
    };
    let takes = prompt.arguments.as_deref().unwrap_or_default();
    let mut mistakes = Vec::new();
    for key in given.keys().filter(|key| !takes.iter().any(|argument| argument.name == **key)) {
        let meant = closest(key, takes.iter().map(|argument| argument.name.as_str()));
        let meant = meant.map(|meant| format!("; did you mean {meant}?")).unwrap_or_default();
        mistakes.push(format!("there is no argument {key}{meant}"));
    }
    for argument in takes.iter().filter(|argument| argument.required == Some(true)) {
        if !given.contains_key(&argument.name) {
            let about = argument.description.as_ref().map(|about| format!(": {about}"));
            mistakes.push(format!("{} is missing{}", argument.name, about.unwrap_or_default()));
        }
    }
    if mistakes.is_empty() {
        return Ok(());
    }
    let needed = takes.iter().filter(|argument| argument.required == Some(true));
    let needed: String = needed.map(|argument| format!(" {}=…", argument.name)).collect();
    let takes = takes.iter().map(|argument| match argument.required {
        Some(true) => argument.name.clone(),
        _ => format!("[{}]", argument.name),
    });
    let takes: Vec<String> = takes.collect();
    let takes = if takes.is_empty() { "nothing".to_owned() } else { takes.join(", ") };
    let what = format!(
        "the arguments do not fit the prompt {name}\n  {}\nit takes: {takes}",
        mistakes.join("\n  ")
    );
    Err(Problem::Usage {
        what,
        next: Some(format!("{taut} prompt {name}{needed}{SERVER}", taut = own::name())),
    })
}
