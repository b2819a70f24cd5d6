//! `taut doctor`: what happens when a host starts this server.
//!
//! `exam.rs` and `again.rs` start it and write down what it does in `facts.rs`, `findings/` judges that, the lint of
//! `taut-check` judges the schemas of its tools, and this file shows all of it. Knows no rule of its own.

mod again;
mod exam;
mod facts;
mod findings;

use std::ffi::OsString;
use std::path::Path;

use serde_json::{Value, json};

use crate::args::Options;
use crate::cells::{cut, pad, wide};
use crate::help;
use crate::hosts::resolve;
use crate::mask;
use crate::output::{BOLD, CYAN, DIM, GREEN, Output, RED, YELLOW, time};
use crate::problem::{Exit, Problem};
use crate::signals::Interrupts;
use crate::spinner::Spinner;
use crate::typed;
use exam::Exam;
use facts::{Facts, Phase};
use findings::{Finding, Level};

#[derive(clap::Args)]
#[command(after_help = help::DOCTOR)]
pub(crate) struct Doctor {
    /// A server by name (see `taut servers`), a URL, tcp:HOST:PORT or unix:PATH.
    pub(crate) name: Option<String>,
    /// Also call this tool, with the arguments of --args.
    #[arg(long, value_name = "TOOL")]
    pub(crate) call: Option<String>,
    /// The arguments of the call as one JSON object.
    #[arg(long, value_name = "JSON", requires = "call")]
    pub(crate) args: Option<String>,
    /// Also tell what only makes tools hard to use: no description, no type, open arguments, no annotations.
    #[arg(long)]
    pub(crate) lint: bool,
    #[command(flatten)]
    pub(crate) options: Options,
    /// The server's program and its arguments, passed on unchanged.
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) server: Vec<OsString>,
}

pub(crate) async fn run(output: &Output, args: &Doctor) -> Result<Exit, Problem> {
    if args.call.is_some()
        && args.args.is_none()
        && args.name.as_deref().is_some_and(|name| name.contains('='))
    {
        return Err(typed::json_args_wanted("taut doctor"));
    }
    let call = match (&args.call, &args.args) {
        (Some(tool), Some(text)) => Some((tool.clone(), super::call::object(text)?)),
        (Some(tool), None) => Some((tool.clone(), serde_json::Map::new())),
        (None, _) => None,
    };
    let target = resolve(output, &args.options, args.name.as_deref(), &args.server)?;
    let words = in_full(&target.reach.words(), args.options.cwd.as_deref());
    let words = mask::words(words.iter().map(String::as_str));
    let (reach, name) = (target.reach.plain(), target.shown);
    let mut interrupts = Interrupts::new()?;
    let spinner = Spinner::start(output, "starting the server");
    let exam = Exam::new(output, &args.options, &reach);
    let mut work = Box::pin(exam.run(call, &spinner));
    tokio::select! {
        () = &mut work => drop(work),
        () = interrupts.next() => {
            exam.hang_up(work, &mut interrupts).await;
            return Err(Problem::Interrupted);
        }
    }
    drop(spinner);
    let mut facts = exam.facts();
    if let Some(mistyped) = facts.mistyped.take() {
        return Err(mistyped);
    }
    facts.lints_wanted = args.lint;
    let found = findings::judge(&facts);
    let exit = if found.iter().any(|finding| finding.level == Level::Broken) {
        facts.exit()
    } else {
        Exit::Worked
    };
    if output.json {
        let cure = cure(&facts, &found, &words);
        output.document(&document(&name, &facts, &found, &cure, exit))?;
    } else {
        let cure = cure(&facts, &found, &words);
        let entry = (!cure.is_empty()).then(|| entry(&cure, &words, &target.options));
        show(output, &name, &facts, &found, entry.as_deref())?;
    }
    if exit != Exit::Worked && !output.verbose {
        // One line alone is in the report.
        if facts.stdout.lines().count() > 1 {
            output.last_words("stdout", &facts.stdout);
        }
        output.last_words("stderr", &facts.stderr);
    }
    Ok(exit)
}

/// The words after `taut` that cure something of what was found; none if nothing is.
fn cure(facts: &Facts, found: &[Finding], server: &[String]) -> Vec<String> {
    if server.is_empty() || !found.iter().any(|finding| finding.bridged) {
        return Vec::new();
    }
    findings::bridge(facts).into_iter().chain(server.iter().cloned()).collect()
}

/// The whole entry of a host's file that starts the server with these words.
fn entry(cure: &[String], server: &[String], options: &Options) -> String {
    let mut members =
        vec![format!("\"command\": {}", json!(own_name())), format!("\"args\": {}", json!(cure))];
    if !options.env.is_empty() {
        let env = options.env.iter().map(|(name, value)| {
            let shown = if taut::secrets::is_secret_name(name) {
                mask::env(value)
            } else {
                mask::one(value)
            };
            (name.clone(), Value::from(shown))
        });
        members.push(format!("\"env\": {}", Value::Object(env.collect())));
    }
    format!("{}: {{ {} }}", json!(name_of(server)), members.join(", "))
}

/// How a host starts this program: by its name where that is on the PATH, else by its path.
fn own_name() -> String {
    let found =
        taut::Command::new("taut").find_program().ok().and_then(|path| path.canonicalize().ok());
    let own = std::env::current_exe().ok();
    match own.clone().and_then(|own| own.canonicalize().ok()) {
        own if own.is_some() && own == found => "taut".to_owned(),
        _ => own.map_or_else(|| "taut".to_owned(), |own| own.display().to_string()),
    }
}

/// A name for an entry: of the script or package that is run, without its ending.
fn name_of(server: &[String]) -> String {
    const RUNNERS: [&str; 12] = [
        "node", "python", "python3", "npx", "uvx", "uv", "bun", "deno", "env", "sh", "run", "ruby",
    ];
    let stem = |word: &String| Some(Path::new(word).file_stem()?.to_str()?.to_owned());
    let is_plain = |word: &&String| !word.starts_with('-') && !word.contains(['=', ' ']);
    let stems = server.iter().filter(is_plain).filter_map(stem);
    let mut stems = stems.filter(|stem| !RUNNERS.contains(&stem.as_str()));
    stems.next().unwrap_or_else(|| "server".to_owned())
}

/// The words with the paths of files that are here in full: a host starts a server in another folder.
fn in_full(words: &[String], cwd: Option<&Path>) -> Vec<String> {
    let here = |word: &String| {
        let path = Path::new(word);
        let is_path = word.contains(['/', '.']) && !word.starts_with('-') && path.is_relative();
        let base = std::env::current_dir().ok()?;
        let base = cwd.map_or_else(|| base.clone(), |cwd| base.join(cwd));
        let full = is_path.then(|| base.join(path)).filter(|full| full.exists())?;
        // `./x` is `x` in this folder.
        std::path::absolute(full.components().collect::<std::path::PathBuf>()).ok()
    };
    words
        .iter()
        .map(|word| here(word).map_or_else(|| word.clone(), |full| full.display().to_string()))
        .collect()
}

fn document(name: &str, facts: &Facts, found: &[Finding], cure: &[String], exit: Exit) -> Value {
    let millis = |time: std::time::Duration| (time.as_secs_f64() * 1e6).round() / 1e3;
    let phases = facts.phases();
    let phases = phases.iter().map(|phase| {
        json!({ "name": phase.name, "ok": phase.ok, "text": phase.text, "at_ms": phase.at.map(millis) })
    });
    let found = found.iter().map(|finding| {
        let mut what = json!({ "level": finding.level.word(), "what": finding.what,
            "hurts": finding.hurts, "change": finding.change, "bridge": finding.bridged });
        if !finding.list.is_empty() {
            what["list"] = json!(finding.list);
        }
        what
    });
    let bridge = (!cure.is_empty()).then(|| json!({ "command": "taut", "args": cure }));
    json!({
        "command": name,
        "phases": phases.collect::<Vec<_>>(),
        "findings": found.collect::<Vec<_>>(),
        "bridge": bridge,
        "environment": facts.environment,
        "stdout": facts.stdout,
        "stderr": facts.stderr,
        "exit": exit as u8,
    })
}

/// How wide the words of a finding may be: wider is hard to read.
const WIDTH: usize = 100;

/// Columns of one text: a server may have names of megabytes.
const LONGEST: usize = 4000;

/// How wide the column of texts is at least, beside the times.
const TEXT: usize = 56;

fn show(
    output: &Output,
    name: &str,
    facts: &Facts,
    found: &[Finding],
    entry: Option<&str>,
) -> Result<(), Problem> {
    let reader = output.out;
    let title = reader.paint(BOLD, format!("taut {}", env!("CARGO_PKG_VERSION")));
    let mut text = format!("{title}  {}\n", reader.paint(DIM, format!("$ {}", reader.line(name))));
    for phase in facts.phases() {
        text += &row(output, &phase);
    }
    for (number, finding) in found.iter().enumerate() {
        let style = match finding.level {
            Level::Broken => RED,
            Level::Hurts => YELLOW,
            Level::Note => CYAN,
        };
        let head = format!("{}. {}", number + 1, finding.level.word());
        let head = reader.paint(style, format!("{head:<9}"));
        let width = output.width().unwrap_or(WIDTH).clamp(40, WIDTH);
        let wrapped = |words: &str, indent| wrap(&reader.line(words), width, indent);
        text += &format!("\n{head}  {}\n", wrapped(&finding.what, 11));
        for line in &finding.list {
            text += &format!("{:13}{}\n", "", cut(&reader.line(line), LONGEST));
        }
        text += &format!("   {}   {}\n", reader.paint(DIM, "hurts"), wrapped(&finding.hurts, 11));
        text += &format!("   {}  {}\n", reader.paint(DIM, "change"), wrapped(&finding.change, 11));
    }
    if let Some(entry) = entry {
        let numbered = found.iter().enumerate().filter(|(_, finding)| finding.bridged);
        let numbers: Vec<String> = numbered.map(|(at, _)| (at + 1).to_string()).collect();
        let all =
            if numbers.len() == found.len() { "all of it".to_owned() } else { numbers.join(", ") };
        let label = reader.paint(CYAN, "taut bridge");
        text +=
            &format!("\n{label} cures {all} without a change to the server; in the host's file:\n");
        text += &format!("   {}\n", reader.line(&crate::secrets::masked(entry)));
    }
    let count = |level| found.iter().filter(|finding| finding.level == level).count();
    let (broken, hurts) = (count(Level::Broken), count(Level::Hurts));
    let verdict = match (broken, hurts) {
        (0, 0) => reader.paint(GREEN, "✓ every host should get on with it"),
        (0, _) => reader.paint(YELLOW, "✓ it works, but not everywhere: see above"),
        _ if facts.error().is_none() && !facts.objections.is_empty() => {
            reader.paint(RED, "✗ most hosts cannot use it like this: see above")
        }
        _ if facts.full_environment.is_some() => {
            let words =
                "✗ only hosts that pass on the whole environment can use it like this: see above";
            reader.paint(RED, words)
        }
        _ => reader.paint(RED, "✗ no host can use it like this: see above"),
    };
    output.print(&format!("{text}\n{verdict}\n"))
}

/// Breaks words into lines; all but the first are indented, and the first has so much before it.
fn wrap(text: &str, width: usize, indent: usize) -> String {
    // Before it is broken up: no one knows a secret by its half.
    let text = crate::secrets::masked(text);
    let text = cut(&text, LONGEST);
    let mut out = String::new();
    let mut used = indent;
    for (at, word) in text.split(' ').enumerate() {
        let long = wide(word);
        if at > 0 && used + 1 + long > width {
            out.push('\n');
            out.push_str(&" ".repeat(indent));
            used = indent;
        } else if at > 0 {
            out.push(' ');
            used += 1;
        }
        out.push_str(word);
        used += long;
    }
    out
}

fn row(output: &Output, phase: &Phase) -> String {
    let reader = output.out;
    let mark = match phase.ok {
        Some(true) => reader.paint(GREEN, "✓"),
        Some(false) => reader.paint(RED, "✗"),
        None => reader.paint(DIM, "·"),
    };
    let text = reader.line(&phase.text);
    let Some(at) = phase.at else {
        let width = output.width().unwrap_or(usize::MAX);
        // The reason of a failure ends with what to do about it, so it is not cut. Names of variables are only a list.
        let text = match phase.name {
            "environment" => cut(&text, width.saturating_sub(18).max(8)).into_owned(),
            _ => wrap(&text, width, 18),
        };
        return format!("  {mark} {:<12}  {text}\n", phase.name);
    };
    // A terminal has the times at its right edge, up to where they are hard to follow.
    let room = output.width().map_or(LONGEST, |width| width.saturating_sub(29).max(8));
    let text = cut(&text, room);
    let pad = pad(&text, room.min(TEXT));
    let at = reader.paint(DIM, format!("{:>11}", time(at)));
    format!("  {mark} {:<12}  {text}{pad}{at}\n", phase.name)
}
