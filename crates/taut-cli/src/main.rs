//! The command `taut`: try, check and debug any MCP server.
//!
//! `cargo install taut-cli`, then `taut help`. Features: `http` and `login` (both on), `fleet` (many machines).
//! It is built on [`taut`](https://docs.rs/taut), the library for servers and clients,
//! [`taut-http`](https://docs.rs/taut-http), [`taut-check`](https://docs.rs/taut-check),
//! [`taut-trace`](https://docs.rs/taut-trace) and, for fleets, [`taut-nats`](https://docs.rs/taut-nats). Guides in the
//! repository: `docs/command.md`, `docs/cures.md`, `docs/does-not-connect.md`.
//!
//! Only leads from what was typed (`args.rs`) to the one file in `cmd/` that does it, and from what
//! comes of it to an exit code (`problem.rs`).

mod answers;
mod args;
mod arguments;
mod asking;
mod browser;
mod cells;
mod closed;
mod cmd;
#[cfg(windows)]
mod console;
mod content;
mod debug;
mod demo;
mod desk;
mod events;
mod files;
mod first_word;
mod forms;
mod gate;
mod heard;
mod help;
mod hosts;
mod leftovers;
mod mask;
mod memory;
#[cfg(unix)]
mod modes;
mod nats;
mod output;
mod own;
mod problem;
mod processes;
mod programs;
mod reach;
mod remote;
mod schema;
mod screen;
mod secrets;
mod sent;
mod session;
mod settings;
mod signals;
mod spinner;
mod stamp;
mod strict;
mod transcript;
mod typed;
mod usage;
mod variables;
mod version;
mod word_order;
mod wrap;

use std::ffi::OsString;
use std::future::Future;
use std::process::ExitCode;
use std::time::Duration;

use clap::parser::ValueSource;
use clap::{ArgMatches, CommandFactory as _, FromArgMatches as _};

use args::{Args, Sub};
use output::Output;
use problem::{Exit, Problem};
use settings::Settings;

fn main() -> ExitCode {
    let exit = run(usage::meant(std::env::args_os().collect()));
    gate::flush();
    exit.into()
}

fn run(typed: Vec<OsString>) -> Exit {
    // A person who looks what this is; a program gets the help, as of every command line that is not whole.
    if typed.len() == 1 && Output::new(None).on_terminal() {
        let output = Output { discreet: true, ..Output::new(None) };
        return cmd::servers::overview(&output).unwrap_or_else(|problem| output.report(&problem));
    }
    // Hosts start it often, and it has nothing to parse.
    let args = if typed.len() == 2 && typed[1] == "serve" {
        Ok((Args::serve(), ArgMatches::default()))
    } else {
        parse(&typed)
    };
    let (mut args, matches) = match args {
        Ok(parsed) => parsed,
        Err(error) => return usage::tell(error, &typed),
    };
    // The demo starts nothing.
    if !matches!(args.command, Sub::Serve(_)) {
        taut::process::close_inherited_on_exec();
        // What a server leaves behind becomes our child, so that it can be ended.
        processes::adopt_orphans();
    }
    let settings = usage::check(&args.command, &typed).and_then(|()| settings(&mut args, &matches));
    let output = Output::new(args.command.options());
    let (json, discreet) = (wants_json(&matches), args.command.is_discreet());
    let output = Output { json, discreet, ..output };
    let screen = output.screen.clone();
    signals::before_the_end(move || screen.restore());
    let prepared = settings.and_then(|settings| prepare(&output, &args, settings.debug));
    if let Err(problem) = prepared {
        return output.report(&problem);
    }
    match args.command {
        Sub::Serve(args) => finish(&output, || cmd::serve::run(&output, &args)),
        Sub::Smoke(args) => finish(&output, || cmd::smoke::run(&output, &args)),
        Sub::List(args) => finish(&output, || cmd::list::run(&output, &args)),
        Sub::Call(args) => finish(&output, || cmd::call::run(&output, &args)),
        Sub::Read(args) => finish(&output, || cmd::read::run(&output, &args)),
        Sub::Prompt(args) => finish(&output, || cmd::prompt::run(&output, &args)),
        Sub::Complete(args) => finish(&output, || cmd::complete::run(&output, &args)),
        Sub::Completions(args) => {
            finish(&output, || async { cmd::completions::run(&output, &args) })
        }
        Sub::Man(args) => finish(&output, || async { cmd::man::run(&output, &args) }),
        Sub::Servers(args) => finish(&output, || async { cmd::servers::run(&output, &args) }),
        Sub::Shell(args) => finish(&output, || cmd::shell::run(&output, &args)),
        Sub::Watch(args) => finish(&output, || cmd::watch::run(&output, &args)),
        Sub::Trace(args) => {
            cmd::trace::run(&output, &args).unwrap_or_else(|problem| output.report(&problem))
        }
        Sub::Bridge(args) => finish(&output, || cmd::bridge::run(&output, &args)),
        Sub::Fleet(args) => finish(&output, || cmd::fleet::run(&output, &args)),
        #[cfg(feature = "login")]
        Sub::Login(args) => finish(&output, || cmd::login::run(&output, &args)),
        #[cfg(feature = "login")]
        Sub::Logout(args) => finish(&output, || cmd::login::logout(&output, &args)),
        #[cfg(feature = "login")]
        Sub::Logins(args) => finish(&output, || cmd::login::logins(&output, &args)),
        Sub::Check(args) => finish(&output, || cmd::check::run(&output, &args)),
        Sub::Doctor(args) => finish(&output, || cmd::doctor::run(&output, &args)),
        #[cfg(all(target_os = "linux", not(taut_portable)))]
        Sub::Bench(args) => {
            args.env.iter().for_each(|(name, value)| secrets::hide(name, value));
            finish(&output, || cmd::bench::run(&output, args))
        }
    }
}

fn parse(typed: &[OsString]) -> Result<(Args, ArgMatches), clap::Error> {
    let matches = Args::command().try_get_matches_from(typed)?;
    Ok((Args::from_arg_matches(&matches)?, matches))
}

/// Whether a JSON document is wanted, of whichever command: so that an error is one too, wherever it happens.
fn wants_json(matches: &ArgMatches) -> bool {
    let Some((_, matches)) = matches.subcommand() else { return false };
    matches!(matches.try_get_one::<bool>("json"), Ok(Some(true))) || wants_json(matches)
}

/// Fills in what the file of settings says.
fn settings(args: &mut Args, matches: &ArgMatches) -> Result<Settings, Problem> {
    let settings = match args.common.settings() {
        Ok(settings) => settings,
        Err(problem) if args.common.names_settings() => return Err(problem),
        Err(problem) => match args.command {
            // A mistake there costs a shell its completions and a host its server, and helps neither.
            Sub::Completions(_) | Sub::Man(_) => Settings::default(),
            Sub::Serve(_) | Sub::Bridge(_) => {
                Output::new(None).note(&format!("settings left out: {problem}"));
                Settings::default()
            }
            _ => return Err(problem),
        },
    };
    if let (Some(options), Some((_, matches))) = (args.command.options_mut(), matches.subcommand())
    {
        let typed = |name: &str| matches.value_source(name) == Some(ValueSource::CommandLine);
        settings.fill(options, typed);
    }
    Ok(settings)
}

/// Begins to tell of steps if anybody wants that, and makes room for the result.
fn prepare(output: &Output, args: &Args, debug: Option<debug::To>) -> Result<(), Problem> {
    let source = match args.command {
        Sub::Serve(_) => "stdin",
        Sub::Bridge(_) => debug::BOTH,
        _ => "stdout",
    };
    debug::start(output, source, args.common.debug(), debug)?;
    if let Some(time) = args.command.options().and_then(|options| options.max_time) {
        signals::limit(time)?;
    }
    output.prepare()
}

/// How long a file that is being written may take when all else is over.
const LEAVING: Duration = Duration::from_millis(500);

/// Does the work on a runtime of one thread, and says what came of it.
// Apart for each command: together, the stack of the largest would be touched for all.
#[inline(never)]
fn finish<F>(output: &Output, work: impl FnOnce() -> F) -> Exit
where
    F: Future<Output = Result<Exit, Problem>>,
{
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let done = match runtime {
        Ok(runtime) => {
            let done = runtime.block_on(work());
            // What a thread still does there, such as looking up a name, keeps no process alive.
            runtime.shutdown_timeout(LEAVING);
            done
        }
        Err(error) => Err(Problem::File { what: "starting".to_owned(), error }),
    };
    // Before the outcome is told: a line may still be half typed.
    output.screen.restore();
    leftovers::end();
    if matches!(done, Ok(Exit::Interrupted) | Err(Problem::Interrupted | Problem::Ended)) {
        gate::hurry();
    }
    match (done, signals::over()) {
        (Ok(Exit::Interrupted) | Err(Problem::Interrupted | Problem::Ended), Some(time)) => {
            // Also what has left the session of its server.
            processes::kill_servers();
            output.report(&Problem::Over(time))
        }
        (Ok(exit), _) => exit,
        (Err(problem), _) => output.report(&problem),
    }
}
