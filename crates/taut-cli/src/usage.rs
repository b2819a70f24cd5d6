//! Errors in the command line, and what was probably meant.
//!
//! clap finds most of them. This file adds that options stand after the command, that a server's command
//! stands after `--`, and that a word is the name of a server. Leaves out tips of clap that are wrong here.
//! Must not know what a command does.

use std::ffi::{OsStr, OsString};

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, CommandFactory as _};

use crate::args::{Args, Sub};
use crate::arguments::closest;
use crate::gate::{self, RED};
use crate::hosts::{Surroundings, find};
use crate::output::Output;
use crate::own;
use crate::problem::{Exit, Problem};
use crate::{first_word, typed, version, wrap};

/// The words as they are parsed: `taut help smoke` is `taut smoke --help`.
pub(crate) fn meant(mut typed: Vec<OsString>) -> Vec<OsString> {
    if let Some(at) = command_without_dashes(&typed) {
        typed.insert(at, "--".into());
    }
    if typed.get(1).is_some_and(|word| word == "help") {
        typed.remove(1);
        typed.truncate(2);
        typed.push("--help".into());
    }
    typed
}

/// Where the command of `taut bridge` begins, if its two dashes were eaten on the way: mcp-proxy and the Inspector's
/// `--cli` do that. A word with a `/` or a path's ending is a command, and so are several words.
fn command_without_dashes(typed: &[OsString]) -> Option<usize> {
    if typed.get(1).is_none_or(|word| word != "bridge") || typed.iter().any(|word| word == "--") {
        return None;
    }
    let commands = Args::command();
    let bridge = commands.find_subcommand("bridge")?;
    let takes_value = |word: &str| {
        let options = bridge.get_opts().chain(commands.get_opts());
        options.into_iter().any(|option| {
            let long = option.get_long_and_visible_aliases().unwrap_or_default();
            let short = option.get_short_and_visible_aliases().unwrap_or_default();
            let is_long = word.strip_prefix("--").is_some_and(|word| long.contains(&word));
            let is_short =
                matches!(word.as_bytes(), [b'-', letter] if short.contains(&(*letter as char)));
            option.get_action().takes_values()
                && option.get_num_args().is_none_or(|count| count.min_values() > 0)
                && (is_long || is_short)
        })
    };
    let mut at = 2;
    while let Some(word) = typed.get(at).map(|word| word.to_string_lossy()) {
        if !word.starts_with('-') {
            break;
        }
        at += if takes_value(&word) { 2 } else { 1 };
    }
    let word = typed.get(at)?.to_string_lossy();
    let is_address = crate::remote::is_url(&word)
        || word.starts_with("tcp:")
        || word.starts_with("unix:")
        || word.starts_with("nats:");
    let known: Vec<&str> = bridge.get_opts().filter_map(clap::Arg::get_long).collect();
    let is_ours = |word: &OsString| {
        let word = word.to_string_lossy();
        let name = word.split('=').next().unwrap_or_default();
        name == "-v"
            || name == "-s"
            || known.iter().any(|known| name.strip_prefix("--") == Some(known))
    };
    // The name of a server may have our own options after it.
    let several = typed.get(at + 1).is_some_and(|next| !is_ours(next));
    let path = std::path::Path::new(&*word);
    let ending = path.extension().and_then(OsStr::to_str).unwrap_or_default();
    let is_path = word.contains(['/', std::path::MAIN_SEPARATOR])
        || ["js", "mjs", "cjs", "ts", "py", "rb", "sh", "exe", "cmd", "bat", "jar"]
            .contains(&ending);
    if is_address || !(is_path || several) {
        return None;
    }
    // The slip of somebody who names a server is told as that.
    let is_server = !is_path && find(Surroundings::here(), &[]).named(&word).is_some();
    (!is_server).then_some(at)
}

/// Errors that clap does not find: a `--` with nothing after it, as `-- $CMD` gives if the variable is empty; a
/// current folder that no longer exists.
pub(crate) fn check(command: &Sub, typed: &[OsString]) -> Result<(), Problem> {
    // Else every start fails, and blames the program.
    let elsewhere = command.options().is_some_and(|options| options.cwd.is_some());
    if command.takes_server() && !elsewhere && std::env::current_dir().is_err() {
        return Err(Problem::Usage {
            what: "the folder that this is started in no longer exists".to_owned(),
            next: Some("cd to another one, or --cwd DIR".to_owned()),
        });
    }
    let dashes = typed.iter().position(|word| word == "--");
    if !command.takes_server() || dashes != Some(typed.len() - 1) {
        return Ok(());
    }
    let name = typed.get(1).map(|word| word.to_string_lossy()).unwrap_or_default();
    Err(Problem::Usage {
        what: "no command was given: nothing follows the --".to_owned(),
        next: Some(format!(
            "{} {name} -- npx some-server; without a command, leave out the --",
            own::name()
        )),
    })
}

/// Help and version, and what is wrong with what was typed.
pub(crate) fn tell(mut error: clap::Error, typed: &[OsString]) -> Exit {
    if !error.use_stderr() {
        let output = Output::new(None);
        if error.kind() == ErrorKind::DisplayVersion {
            let json = typed.iter().any(|word| word == "--json");
            let printed =
                gate::result(&output.out.pass(&version::text(json))).map_err(Problem::output);
            return printed.map_or_else(|problem| output.report(&problem), |()| Exit::Worked);
        }
        let width = output.width().map_or(wrap::WIDEST, |width| width.min(wrap::WIDEST));
        let printed = gate::result(&output.out.help(&error, width)).map_err(Problem::output);
        return printed.map_or_else(|problem| output.report(&problem), |()| Exit::Worked);
    }
    let wrong = matches!(error.kind(), ErrorKind::InvalidSubcommand | ErrorKind::UnknownArgument);
    if wrong && let Some(problem) = first_word::meant(typed) {
        // An option before the word is ours; those after it belong to what was meant.
        let json = typed.iter().skip(1).take_while(|word| word.to_string_lossy().starts_with('-'));
        let output =
            Output { json: json.into_iter().any(|word| word == "--json"), ..Output::new(None) };
        return output.report(&problem);
    }
    let hint = hint(&error, typed);
    prune(&mut error, hint.is_some());
    let ours = typed.iter().take_while(|word| *word != "--");
    if ours.clone().any(|word| word == "--json") {
        let output = Output { json: true, ..Output::new(None) };
        let problem = Problem::Usage { what: message(&error), next: hint.clone() };
        // If it cannot be written, the words below say what is wrong all the same.
        let _ = output.document(&problem.json());
    }
    let output = Output::new(None);
    let text = error.render().to_string();
    match text.strip_prefix("error:") {
        Some(said) => {
            output.note(&format!("{}{}", output.err.paint(RED, "error:"), said.trim_end()))
        }
        // The help, for who typed no command at all.
        None => output.note(wrap::wrapped(text.trim_end(), wrap::WIDEST).as_str()),
    }
    if let Some(hint) = hint {
        output.note(&format!("\n{hint}"));
    }
    Exit::Usage
}

/// Leaves out tips that are wrong here: what follows `--` is a server's command, and never a value of
/// ours. One that we know better replaces what merely sounds alike.
fn prune(error: &mut clap::Error, known: bool) {
    if known {
        error.remove(ContextKind::SuggestedSubcommand);
        error.remove(ContextKind::SuggestedArg);
    }
    if let Some(ContextValue::StyledStrs(tips)) = error.remove(ContextKind::Suggested) {
        let right: Vec<_> =
            tips.into_iter().filter(|tip| !tip.to_string().starts_with("to pass ")).collect();
        if !right.is_empty() {
            error.insert(ContextKind::Suggested, ContextValue::StyledStrs(right));
        }
    }
}

/// What clap says, on one line and without the usage.
fn message(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let said = text.split("\n\nUsage:").next().unwrap_or_default();
    let said = said.split("\n\nFor more").next().unwrap_or_default();
    let said = said.strip_prefix("error: ").unwrap_or(said);
    said.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn hint(error: &clap::Error, typed: &[OsString]) -> Option<String> {
    let word = |kind| match error.get(kind) {
        Some(ContextValue::String(word)) => Some(word.as_str()),
        _ => None,
    };
    match error.kind() {
        ErrorKind::UnknownArgument => {
            unknown_argument(error, word(ContextKind::InvalidArg)?, typed)
        }
        _ => None,
    }
}

fn unknown_argument(error: &clap::Error, wrong: &str, typed: &[OsString]) -> Option<String> {
    let taut = own::name();
    let commands = Args::command();
    let known = |word: &OsString| commands.get_subcommands().any(|each| word == each.get_name());
    let at = typed.iter().position(known)?;
    let command = typed[at].to_string_lossy();
    let place = typed.iter().position(|word| is_option(word, wrong))?;
    if place < at {
        return Some(format!("options go after the command: {taut} {command} {wrong} …"));
    }
    let sounds_alike = match error.get(ContextKind::SuggestedArg) {
        // Clap takes --a for --args.
        Some(ContextValue::String(meant)) => closest(wrong, [meant.as_str()].into_iter()).is_some(),
        other => other.is_some(),
    };
    let words: Vec<String> = typed.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    if matches!(command.as_ref(), "smoke" | "doctor" | "bench")
        && wrong.contains('=')
        && words.iter().any(|word| word == "--call")
        && let Some(meant) = typed::with_json_args(&words)
    {
        let line = typed::line(&meant);
        return Some(format!("the arguments of --call are one JSON object: {line}"));
    }
    if sounds_alike || !takes_server(&commands, &command) {
        return None;
    }
    let before: Vec<_> = typed[at + 1..place].iter().map(|word| word.to_string_lossy()).collect();
    let ways = commands.find_subcommand(&*command)?.get_subcommands().map(Command::get_name);
    if let Some(meant) = before.first().and_then(|first| closest(first, ways)) {
        return Some(format!("did you mean {taut} {command} {meant}?"));
    }
    let plain = before.iter().filter(|word| !word.starts_with('-') && !word.contains('='));
    let dashed = typed.iter().any(|word| word == "--");
    // The first word of these is the tool or the prompt.
    let filled_in = matches!(command.as_ref(), "call" | "prompt");
    match (wrong.strip_prefix("--"), plain.count()) {
        (Some(name), 1) if filled_in => Some(format!(
            "arguments are written key=value: {taut} {command} {} {name}=…",
            before[0]
        )),
        (_, 1..) if !dashed => Some(format!(
            "the server's command goes after two dashes: {taut} {command} -- npx some-server"
        )),
        _ => None,
    }
}

/// Whether a word is where clap found the option: `--text=x` is `--text`, and `-all` is `-a`.
fn is_option(word: &OsStr, wrong: &str) -> bool {
    let Some(rest) = word.to_str().and_then(|word| word.strip_prefix(wrong)) else { return false };
    rest.is_empty() || rest.starts_with('=') || !wrong.starts_with("--")
}

fn takes_server(commands: &Command, name: &str) -> bool {
    let command = commands.find_subcommand(name);
    command.is_some_and(|command| command.get_positionals().any(clap::Arg::is_last_set))
}
