//! `taut trace`: stand between a host and a server, record what passes, and use it again.
//!
//! Only leads from what was typed to the file that does it: `carry` (with `pump`, `ends`, `wake`) is the
//! transparent part, `hide` says what is masked.

mod carry;
mod ends;
mod hide;
mod pump;
mod wake;

use std::ffi::OsString;
use std::path::PathBuf;

use taut_trace::{Masker, Recorder, Session, create};

use crate::hosts::{Launched, Surroundings, find, launch_of, unknown};
use crate::output::{DIM, Output};
use crate::problem::{Exit, Problem};
use crate::{args, help};
use carry::Launch;

/// See what passes between a host and a server.
#[derive(clap::Args)]
#[command(after_help = help::TRACE)]
pub(crate) struct Trace {
    /// A server by name: see `taut servers`.
    name: Option<String>,
    /// Keep what passes in this file, in place of what it held; a folder gets a new file each time.
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Say nothing on stderr beside what the server says there.
    #[arg(long, short)]
    quiet: bool,
    /// Keep secrets as they are.
    #[arg(long)]
    unmasked: bool,
    /// Mask the value of this variable of the environment too, whatever its name; may be given again.
    #[arg(long, value_name = "VARIABLE")]
    hide: Vec<String>,
    /// Read servers from this file, of any host, and from no other; may be given again.
    #[arg(long, value_name = "FILE")]
    config: Vec<PathBuf>,
    /// Set a variable of the server's environment; may be given again.
    #[arg(long, value_name = "KEY=VALUE", value_parser = args::variable)]
    env: Vec<(String, String)>,
    /// Start the server in this directory.
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
    /// Ask to be killed with this process, and become the server.
    #[arg(long = "become", value_name = "PARENT", hide = true, requires = "server")]
    becomes: Option<i32>,
    /// The server's program and its arguments, untouched.
    #[arg(last = true, value_name = "COMMAND")]
    server: Vec<OsString>,
}

pub(crate) fn run(output: &Output, args: &Trace) -> Result<Exit, Problem> {
    #[cfg(target_os = "linux")]
    if let Some(parent) = args.becomes {
        return Err(carry::become_server(parent, &args.server));
    }
    between(output, args)
}

/// Stands between the host that started us and the server that is meant.
fn between(output: &Output, args: &Trace) -> Result<Exit, Problem> {
    let (launch, entry) = launch(args)?;
    let masker =
        if args.unmasked { Masker::off() } else { hide::masker(&launch.words, &entry, &args.hide) };
    let words: Vec<String> =
        launch.words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let name = args.name.clone().unwrap_or_else(|| short_name(&words));
    let file = match &args.record {
        Some(path) => {
            let what = format!("making {}", path.display());
            let (file, path) =
                create(path, &name).map_err(|error| Problem::File { what, error })?;
            tell(output, args, &format!("recording to {}", path.display()));
            Some(file)
        }
        None => None,
    };
    let session = Session {
        name: args.name.clone(),
        command: if args.unmasked { words } else { hide::shown(&words) },
        recorder: concat!("taut ", env!("CARGO_PKG_VERSION")).to_owned(),
    };
    let recorder = Recorder::start(file, session, masker, None)
        .map_err(|error| Problem::File { what: "starting the recorder".to_owned(), error })?;
    match carry::carry(&launch, recorder)? {}
}

/// A line of our own on stderr.
fn tell(output: &Output, args: &Trace, words: &str) {
    if !args.quiet {
        output.note(&output.err.paint(DIM, format!("taut trace: {words}")));
    }
}

/// The server that is meant, and what its entry sets.
fn launch(args: &Trace) -> Result<(Launch, Vec<(String, String)>), Problem> {
    let mut entry = args.env.clone();
    let mut launch = match (&args.name, args.server.as_slice()) {
        (Some(name), [_, ..]) => {
            return Err(Problem::Usage {
                what: format!(
                    "a server is named, {name:?}, and a command is given: only one can be meant"
                ),
                next: Some(format!("leave out {name}, or the -- and what follows it")),
            });
        }
        (None, []) => {
            return Err(Problem::Usage {
                what: "which server?".to_owned(),
                next: Some("taut trace NAME, as `taut servers` shows it, or -- COMMAND".to_owned()),
            });
        }
        (None, words) => Launch { words: words.to_vec(), ..Launch::default() },
        (Some(name), []) => {
            let found = find(Surroundings::here(), &args.config);
            let server = found.named(name).ok_or_else(|| unknown(&found, name))?;
            let Launched { start, base } = launch_of(&found, server, &args.env)?;
            entry.extend(start.env.iter().cloned());
            Launch {
                words: start.words.into_iter().map(OsString::from).collect(),
                env: base.into_iter().chain(start.env).collect(),
                clear_env: !start.inherit,
                cwd: start.cwd,
            }
        }
    };
    launch.env.extend(args.env.iter().cloned());
    launch.cwd = args.cwd.clone().or(launch.cwd);
    Ok((launch, entry))
}

/// What to call a server that has no name: its program, without the folder.
fn short_name(words: &[String]) -> String {
    let program = words.first().map_or("server", String::as_str);
    program.rsplit(['/', '\\']).next().unwrap_or(program).to_owned()
}
