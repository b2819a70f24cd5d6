//! `taut doctor`: what happens when a host starts this server.
//!
//! `exam.rs` and `again.rs` start it and write down what it does in `facts.rs`, `findings/` judges that, the lint of
//! `taut-check` judges the schemas of its tools, and `show.rs` and `markdown.rs` show all of it. `all.rs` does that with
//! every server of the hosts. Knows no rule of its own.

mod again;
mod all;
mod entry;
mod exam;
mod facts;
mod findings;
mod markdown;
mod show;

use std::ffi::OsString;
use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::args::Options;
use crate::help;
use crate::hosts::{Target, resolve};
use crate::mask;
use crate::output::Output;
use crate::problem::{Exit, Problem};
use crate::signals::Interrupts;
use crate::spinner::Spinner;
use crate::typed;
use entry::{cure, entry, in_full, started_with};
use exam::Exam;
use facts::Facts;
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
    /// Start every server of the hosts' files, one after another, without asking.
    #[arg(long, conflicts_with_all = ["name", "named", "server", "call", "markdown"])]
    pub(crate) all: bool,
    /// Print the report as Markdown, to paste it into the issue tracker of the server.
    #[arg(long, conflicts_with = "json", help_heading = "Output")]
    pub(crate) markdown: bool,
    #[command(flatten)]
    pub(crate) options: Options,
    /// Do not name the next command.
    #[arg(long, short, help_heading = "Output")]
    pub(crate) quiet: bool,
    /// The server's program and its arguments, passed on unchanged.
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) server: Vec<OsString>,
}

pub(crate) async fn run(output: &Output, args: &Doctor) -> Result<Exit, Problem> {
    if args.call.is_some()
        && args.args.is_none()
        && args.name.as_deref().is_some_and(|name| name.contains('='))
    {
        return Err(typed::json_args_wanted("doctor"));
    }
    let call = match (&args.call, &args.args) {
        (Some(tool), Some(text)) => Some((tool.clone(), super::call::object(text)?)),
        (Some(tool), None) => Some((tool.clone(), Map::new())),
        (None, _) => None,
    };
    let nothing = args.name.is_none() && args.options.named.is_none() && args.server.is_empty();
    if args.all || (nothing && !args.markdown) {
        return all::run(output, args).await;
    }
    let target = resolve(output, &args.options, args.name.as_deref(), &args.server)?;
    let mut interrupts = Interrupts::new()?;
    let words = "starting the server";
    let mut seen = examine(output, target, call, args.lint, words, &mut interrupts).await?;
    if let Some(mistyped) = seen.facts.mistyped.take() {
        return Err(mistyped);
    }
    let Seen { name, facts, found, exit, .. } = &seen;
    let (cure, exit) = (seen.cure(), *exit);
    let called = args.name.as_deref().or(args.options.named.as_deref());
    let entry = (!cure.is_empty()).then(|| entry(called, &cure, &seen.words, &seen.options));
    if output.json {
        output.document(&seen.document())?;
    } else if args.markdown {
        return markdown::print(output, name, facts, found, entry.as_deref()).map(|()| exit);
    } else {
        show::show(output, name, facts, found, entry.as_deref())?;
    }
    if exit != Exit::Worked && !output.verbose {
        // One line alone is in the report.
        if facts.stdout.lines().count() > 1 {
            output.last_words("stdout", &facts.stdout);
        }
        output.last_words("stderr", &facts.stderr);
    }
    if !args.quiet && !output.json {
        output.note_next(&seen.next());
    }
    Ok(exit)
}

/// What was seen of one server, and what it comes to.
struct Seen {
    /// Its command or address for people.
    name: String,
    /// The words of its command, with secrets masked; none if it is not started here.
    words: Vec<String>,
    options: Options,
    facts: Facts,
    found: Vec<Finding>,
    exit: Exit,
    took: Duration,
}

/// Starts a server, and judges what it does.
async fn examine(
    output: &Output,
    target: Target,
    call: Option<(String, Map<String, Value>)>,
    lint: bool,
    words: &str,
    interrupts: &mut Interrupts,
) -> Result<Seen, Problem> {
    let began = std::time::Instant::now();
    let Target { reach, shown: name, options } = target;
    let command = in_full(&reach.words(), options.cwd.as_deref());
    let command = mask::words(command.iter().map(String::as_str));
    let reach = reach.plain();
    let spinner = Spinner::start(output, words);
    let exam = Exam::new(output, &options, &reach);
    let mut work = Box::pin(exam.run(call, &spinner));
    tokio::select! {
        () = &mut work => drop(work),
        () = interrupts.next() => {
            exam.hang_up(work, interrupts).await;
            return Err(Problem::Interrupted);
        }
    }
    drop(spinner);
    let mut facts = exam.facts();
    facts.lints_wanted = lint;
    let found = findings::judge(&facts);
    let broken = found.iter().any(|finding| finding.level == Level::Broken);
    let exit = if broken { facts.exit() } else { Exit::Worked };
    Ok(Seen { name, words: command, options, facts, found, exit, took: began.elapsed() })
}

impl Seen {
    /// Whether no host has a problem with it.
    fn is_fine(&self) -> bool {
        self.found.iter().all(|finding| finding.level == Level::Note)
    }

    fn cure(&self) -> Vec<String> {
        cure(&self.facts, &self.found, &self.words)
    }

    fn document(&self) -> Value {
        document(&self.name, &self.facts, &self.found, &self.cure(), self.exit)
    }

    /// What to type next: the cure, the report for its author, or the next question about it.
    fn next(&self) -> String {
        match (self.is_fine(), self.words.is_empty()) {
            // One that listens cannot be started again and again.
            (true, true) => typed::again("doctor", "list", &[]),
            (true, false) => typed::again("doctor", "check", &[]),
            (false, _) if !self.cure().is_empty() => typed::bridged("doctor"),
            (false, _) => typed::again("doctor", "doctor", &["--markdown"]),
        }
    }
}

fn document(name: &str, facts: &Facts, found: &[Finding], cure: &[String], exit: Exit) -> Value {
    let millis = |time: Duration| (time.as_secs_f64() * 1e6).round() / 1e3;
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
    let bridge = (!cure.is_empty()).then(|| {
        let (command, args) = started_with(cure);
        json!({ "command": command, "args": args })
    });
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
