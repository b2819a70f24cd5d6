//! `taut check`: whether a server or a client keeps the protocol's rules.
//!
//! Only leads from options to `taut-check` and from its report to files and the screen. Knows no rule.

mod rules;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;
use taut::wire::Framing;
use taut_check::{Baseline, ClientCheck, Program, Progress, Report, ServerCheck, Stopper, Tone};
use tokio::sync::oneshot;

use crate::args::Options;
use crate::files;
use crate::hosts::resolve;
use crate::output::{BOLD, CYAN, GREEN, Output, RED, YELLOW};
use crate::own;
use crate::problem::{Exit, Problem};
use crate::signals::{self, Interrupts};
use crate::spinner::Spinner;
use crate::{help, processes, typed};

/// How often what the run does is looked at.
const LOOK: Duration = Duration::from_millis(150);

/// How long checks may take to end after a signal, when all that they have started is gone.
const AFTER_STOP: Duration = Duration::from_secs(1);

/// How long an answer may take, if --timeout does not say less: what is slower counts as missing.
const LONGEST: Duration = Duration::from_secs(10);

#[derive(clap::Args)]
#[command(after_help = help::CHECK)]
// The checks answer a server's questions themselves.
#[command(mut_arg("root", |arg| arg.hide(true)), mut_arg("answer", |arg| arg.hide(true)))]
// What listens cannot be started again and again, so options for a URL have no use.
#[command(mut_arg("header", |arg| arg.hide(true)), mut_arg("ca_file", |arg| arg.hide(true)))]
#[command(mut_arg("named", |arg| arg.help("A server by its name in a host's file: see `taut servers`")))]
pub(crate) struct CheckArgs {
    /// A server by name: see `taut servers`.
    name: Option<String>,
    /// Check a client: its command has {server} where the server's command belongs.
    #[arg(long, conflicts_with_all = ["name", "call", "fixture"])]
    client: bool,
    #[command(flatten)]
    allowed: Allowed,
    /// Allow the tools of the official conformance fixture to be called.
    #[arg(long)]
    fixture: bool,
    /// Only this check, or all whose names begin with this word; may be given again.
    #[arg(long, value_name = "ID")]
    only: Vec<String>,
    /// Print all checks with their rules, and check nothing.
    #[arg(long)]
    list: bool,
    /// Explain one check: its rule, its sentence of the specification, what is sent, and who
    /// suffers.
    #[arg(long, value_name = "ID")]
    explain: Option<String>,
    /// A broken SHOULD fails the run, too, and what the server's SDK breaks; without it they are warnings.
    #[arg(long)]
    strict: bool,
    /// Known failures, one ID@REVISION a line: only new ones fail the run. Made if it is not there.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    baseline: Option<PathBuf>,
    /// Also write the report as a JUnit file.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    junit: Option<PathBuf>,
    /// Also write the report as a SARIF 2.1.0 file.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    sarif: Option<PathBuf>,
    /// Be the server of a scenario; only --client uses it.
    #[arg(long, hide = true, num_args = 2, value_names = ["SCENARIO", "LOG"])]
    play: Vec<String>,
    #[command(flatten)]
    pub(crate) options: Options,
    /// Do not name the next command.
    #[arg(long, short, help_heading = "Output")]
    quiet: bool,
    /// The program and its arguments, untouched.
    #[arg(last = true, value_name = "COMMAND")]
    server: Vec<OsString>,
}

pub(crate) async fn run(output: &Output, args: &CheckArgs) -> Result<Exit, Problem> {
    if let [scenario, log] = args.play.as_slice() {
        return taut_check::play(scenario, log.as_ref())
            .map(|()| Exit::Worked)
            .map_err(|error| Problem::File { what: format!("playing {scenario}"), error });
    }
    if args.list {
        return rules::list(output).map(|()| Exit::Worked);
    }
    if let Some(id) = &args.explain {
        return rules::explain(output, id).map(|()| Exit::Worked);
    }
    rules::known(&args.only)?;
    let asked = &args.options.asked;
    if !asked.root.is_empty() || asked.answer.is_some() {
        let what = "the checks answer a server's questions themselves".to_owned();
        return Err(Problem::Usage {
            what,
            next: Some("leave out --root and --answer".to_owned()),
        });
    }
    let baseline = args.baseline.as_deref().map(read).transpose()?;
    for path in [&args.baseline, &args.junit, &args.sarif].into_iter().flatten() {
        writable(path)?;
    }
    let report = if args.client {
        let check = client(args)?;
        carried_out(output, check.stopper(), check.progress(), move || check.run()).await?
    } else {
        let check = server(output, args)?;
        carried_out(output, check.stopper(), check.progress(), move || check.run()).await?
    };
    let exit = tell(output, args, &report, baseline.flatten())?;
    // The table of one with findings ends with the rule to read.
    if !output.json && !args.quiet && report.revisions().is_empty() && !args.client {
        output.note_next(&typed::again("check", "doctor", &[]));
    } else if !output.json && !args.quiet && report.is_clean() {
        output.note_next(&match args.junit {
            Some(_) => typed::again("check", "check", &["--strict"]),
            None => typed::again("check", "check", &["--junit", "taut.xml"]),
        });
    }
    Ok(exit)
}

/// Does the checks in a thread of their own, so that a signal ends them at once, and all that they have started.
async fn carried_out(
    output: &Output,
    stopper: Stopper,
    progress: Progress,
    work: impl FnOnce() -> Report + Send + 'static,
) -> Result<Report, Problem> {
    let mut interrupts = Interrupts::new()?;
    let (done, mut report) = oneshot::channel();
    std::thread::spawn(move || {
        // Nobody waits for it after a signal.
        let _ = done.send(work());
    });
    let spinner = Spinner::start(output, "checking");
    let mut shown = String::new();
    let ended = loop {
        tokio::select! {
            ended = &mut report => break Some(ended),
            () = interrupts.next() => break None,
            () = tokio::time::sleep(LOOK) => {}
        }
        let words = progress.words();
        if words != shown {
            spinner.say(format!("checking: {words}"));
            shown = words;
        }
    };
    drop(spinner);
    if let Some(ended) = ended {
        return ended.map_err(|_| Problem::File {
            what: "the checks".to_owned(),
            error: std::io::Error::other(
                "they panicked, which is a fault of taut: please report it",
            ),
        });
    }
    stopper.stop();
    processes::kill_all();
    // One may just have been about to start.
    let _ = tokio::time::timeout(AFTER_STOP, report).await;
    processes::kill_all();
    Err(signals::problem())
}

/// The tools that may be called, each with the text of the `--args` that comes after it and before the next one.
#[derive(Default)]
struct Allowed {
    calls: Vec<(String, Option<String>)>,
    /// Whether an `--args` has no call of its own.
    spare: bool,
}

// By hand, because only the places of the words say which of them belong together.
impl clap::Args for Allowed {
    fn augment_args(command: clap::Command) -> clap::Command {
        let option = |name: &'static str, value: &'static str, help: &'static str| {
            let option = clap::Arg::new(name).long(name).value_name(value).help(help);
            option.action(clap::ArgAction::Append)
        };
        let tool = "Allow this tool to be called, more than once; may be given again";
        let text = "The arguments of the --call before it, a JSON object";
        command.arg(option("call", "TOOL", tool)).arg(option("args", "JSON", text).requires("call"))
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Self::augment_args(command)
    }
}

impl clap::FromArgMatches for Allowed {
    fn from_arg_matches(matches: &clap::ArgMatches) -> Result<Self, clap::Error> {
        let mut allowed = Self::default();
        allowed.update_from_arg_matches(matches)?;
        Ok(allowed)
    }

    fn update_from_arg_matches(&mut self, matches: &clap::ArgMatches) -> Result<(), clap::Error> {
        let words = |name: &str| -> Vec<(usize, String)> {
            let places = matches.indices_of(name).into_iter().flatten();
            places.zip(matches.get_many(name).into_iter().flatten().cloned()).collect()
        };
        let calls = words("call");
        self.calls = calls.iter().map(|(_, tool)| (tool.clone(), None)).collect();
        for (place, text) in words("args") {
            let before = calls.iter().rposition(|(call, _)| *call < place);
            match before.and_then(|at| self.calls.get_mut(at)) {
                Some((_, own @ None)) => *own = Some(text),
                _ => self.spare = true,
            }
        }
        Ok(())
    }
}

/// What is checked: a program with its environment, as the other commands start it.
fn server(output: &Output, args: &CheckArgs) -> Result<ServerCheck, Problem> {
    let options = &args.options;
    let target = resolve(output, options, args.name.as_deref(), &args.server)?;
    let Some(command) = target.reach.command() else {
        return Err(Problem::Usage {
            what: own::named(
                "taut check starts its server again and again, and one that listens cannot be started",
            ),
            next: Some(own::named("the server's own command: taut check -- COMMAND")),
        });
    };
    let options = &target.options;
    // Not found, or not to be started: as the other commands tell it.
    let file = command.find_program().map_err(taut::Error::from)?;
    let words = [file.into_os_string()].into_iter().chain(command.arguments().to_vec());
    let mut program = Program::new(words);
    program.env = command.effective_env().into_iter().collect();
    program.bare = true;
    program.dir.clone_from(&options.cwd);
    program.headers = options.framing == Some(Framing::Headers);
    let mut check = ServerCheck::program(program);
    if args.allowed.spare {
        return Err(Problem::usage(
            "an --args has no --call of its own right before it: --call TOOL --args JSON",
        ));
    }
    for (tool, text) in &args.allowed.calls {
        let arguments = match text {
            Some(text) => Value::Object(super::call::object(text)?),
            None => Value::Object(serde_json::Map::new()),
        };
        check = check.call(tool, arguments);
    }
    if args.fixture {
        check = check.fixture();
    }
    if args.strict {
        check = check.strict();
    }
    if let Some(revision) = options.revision {
        check = check.revision(revision);
    }
    check = check.request_timeout(options.timeout.min(LONGEST));
    if let Some(time) = options.start_timeout {
        check = check.start_timeout(time);
    }
    Ok(args.only.iter().fold(check, |check, id| check.only(id)))
}

fn client(args: &CheckArgs) -> Result<ClientCheck, Problem> {
    let placed = args.server.iter().any(|word| word.to_string_lossy().contains("{server}"));
    if !placed {
        return Err(Problem::Usage {
            what: "the client's command has no {server} in it".to_owned(),
            next: Some(own::named("taut check --client -- my-client --stdio {server}")),
        });
    }
    let own = std::env::current_exe()
        .map_err(|error| Problem::File { what: "finding this program".to_owned(), error })?;
    let player = [own.into_os_string(), "check".into(), "--play".into()];
    let mut check = ClientCheck::new(args.server.iter().cloned(), player);
    if args.strict {
        check = check.strict();
    }
    if let Some(revision) = args.options.revision {
        check = check.revision(revision);
    }
    Ok(args.only.iter().fold(check, |check, id| check.only(id)))
}

fn read(path: &Path) -> Result<Option<Baseline>, Problem> {
    match files::try_text(path, files::MESSAGE)? {
        Ok(text) => {
            let named = |what| Problem::usage(format!("{}: {what}", path.display()));
            Baseline::parse(&text).map(Some).map_err(named)
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Problem::File { what: format!("reading {}", path.display()), error }),
    }
}

/// Finds out before the checks, which take long, whether there is a place for a file.
fn writable(path: &Path) -> Result<(), Problem> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let there = std::fs::metadata(folder.unwrap_or_else(|| Path::new("."))).map(|_| ());
    there.map_err(|error| Problem::File { what: format!("cannot write {}", path.display()), error })
}

fn write(path: &PathBuf, text: &str) -> Result<(), Problem> {
    std::fs::write(path, crate::secrets::masked(text).as_bytes())
        .map_err(|error| Problem::Unwritten { what: format!("writing {}", path.display()), error })
}

fn tell(
    output: &Output,
    args: &CheckArgs,
    report: &Report,
    baseline: Option<Baseline>,
) -> Result<Exit, Problem> {
    if let Some(path) = &args.junit {
        write(path, &report.junit())?;
    }
    if let Some(path) = &args.sarif {
        let file = args
            .options
            .config
            .first()
            .map_or_else(|| "README.md".into(), |path| path.to_string_lossy());
        write(path, &format!("{:#}\n", report.sarif(&file)))?;
    }
    if output.json {
        output.document(&report.json())?;
    } else {
        let paint = |tone, text: &str| output.out.paint(style(tone), text);
        let taut = (!args.quiet).then(own::name);
        output.print(&taut_check::table(report, taut, &paint))?;
    }
    let Some(path) = &args.baseline else {
        return Ok(if report.passed() { Exit::Worked } else { Exit::ToolFailed });
    };
    let Some(baseline) = baseline else {
        write(path, &Baseline::write(report))?;
        output.note(&format!(
            "{} was not there: these failures are known from now on",
            path.display()
        ));
        let fine = report.unlisted().next().is_none() && !report.revisions().is_empty();
        return Ok(if fine { Exit::Worked } else { Exit::ToolFailed });
    };
    let compared = baseline.compare(report);
    for key in &compared.new {
        output.note(&format!("new: {key}"));
    }
    for key in &compared.fixed {
        output.note(&format!("fixed, take it out of {}: {key}", path.display()));
    }
    output.note(&format!(
        "{} new, {} known, {} fixed",
        compared.new.len(),
        compared.known.len(),
        compared.fixed.len()
    ));
    let named = report.unlisted().next().is_none();
    let fine = compared.new.is_empty() && named && !report.revisions().is_empty();
    Ok(if fine { Exit::Worked } else { Exit::ToolFailed })
}

const fn style(tone: Tone) -> anstyle::Style {
    match tone {
        Tone::Good => GREEN,
        Tone::Bad => RED,
        Tone::Weak => YELLOW,
        Tone::Advice => CYAN,
        Tone::Strong => BOLD,
    }
}
