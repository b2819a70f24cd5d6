//! `taut trace`: stand between a host and a server, record what passes, and use it again.
//!
//! Only leads from what was typed to the file that does it: `carry` (with `pump`, `ends`, `stop`, `wake`) is the
//! transparent part, `hide` says what is masked, `keep` where it
//! goes, `reached` whether a server that listens is there, `live` and `shown` show it, `page` serves the page, `view`
//! and `play` use a capture, `into` edits a host's file.

mod carry;
mod ends;
pub(super) mod hide;
mod into;
pub(super) mod keep;
mod live;
mod page;
mod play;
mod pump;
mod reached;
mod shown;
#[cfg(unix)]
mod stop;
mod view;
mod wake;

use std::ffi::OsString;
use std::io::IsTerminal as _;
use std::path::PathBuf;

use taut::secrets::Masker;
use taut_trace::{Recorder, Session, Watch};

use crate::gate;
use crate::hosts::{listens, start_of};
use crate::output::{CYAN, DIM, Output};
use crate::own;
use crate::problem::{Exit, Problem};
use crate::reach::carrier;
use crate::session::quoted;
use crate::{args, help};
use carry::Launch;
use keep::Kept;
use reached::{Elsewhere, elsewhere};

/// See what passes between a host and a server.
#[derive(clap::Args)]
#[command(after_help = help::TRACE, args_conflicts_with_subcommands = true)]
pub(crate) struct Trace {
    #[command(subcommand)]
    what: Option<Again>,
    /// A server by name (see `taut servers`), a URL, tcp:HOST:PORT or unix:PATH.
    name: Option<String>,
    /// A server by its name in a host's file (see `taut servers`), or its address.
    #[arg(long = "server", short = 's', value_name = "NAME", conflicts_with = "name")]
    named: Option<String>,
    /// Keep what passes in this file, in place of what it held; a folder gets a new file each time.
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Show what passes on a page; its address is told on stderr.
    #[arg(long)]
    page: bool,
    /// Say nothing on stderr beside what the server says there.
    #[arg(long, short, conflicts_with = "page")]
    quiet: bool,
    /// Keep secrets as they are.
    #[arg(long)]
    unmasked: bool,
    /// Mask the value of this variable of the environment too, whatever its name; may be given again.
    #[arg(long, value_name = "VARIABLE")]
    hide: Vec<String>,
    /// Put taut trace before this server in its host's own file, from its next start on.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["name", "named", "server", "page", "out_of", "quiet"])]
    into: Option<String>,
    /// Take it out again.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["name", "named", "server", "page", "record", "quiet"])]
    out_of: Option<String>,
    /// Read servers from this file, of any host, and from no other; may be given again.
    #[arg(long, value_name = "FILE")]
    config: Vec<PathBuf>,
    /// Set a variable of the server's environment; may be given again.
    #[arg(long, value_name = "KEY=VALUE", value_parser = args::variable)]
    env: Vec<(String, String)>,
    /// Start the server in this directory.
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
    /// What the server is called in the capture.
    #[arg(long = "as", value_name = "NAME", hide = true)]
    called: Option<String>,
    /// The entry in the host's file had no arguments; for --out-of.
    #[arg(long, hide = true)]
    no_args: bool,
    /// Ask to be killed with this process, and become the server.
    #[arg(long = "become", value_name = "PARENT", hide = true, requires = "server")]
    becomes: Option<i32>,
    /// The server's program and its arguments, untouched.
    #[arg(last = true, value_name = "COMMAND")]
    server: Vec<OsString>,
}

/// What can be done with a capture.
#[derive(clap::Subcommand)]
enum Again {
    /// Show a capture: as lines, as figures, as a page.
    View(view::View),
    /// Be the server of a capture.
    Mock(play::MockArgs),
    /// Be the client of a capture, and compare what a server says to it now.
    Replay(play::ReplayArgs),
    /// Compare two captures.
    Diff(play::DiffArgs),
}

impl Trace {
    /// Whether a server's command may follow two dashes.
    pub(crate) fn takes_server(&self) -> bool {
        matches!(self.what, None | Some(Again::Replay(_)))
    }
}

pub(crate) fn run(output: &Output, args: &Trace) -> Result<Exit, Problem> {
    match &args.what {
        Some(Again::View(args)) => return view::run(output, args),
        Some(Again::Mock(args)) => return play::mock(output, args),
        Some(Again::Replay(args)) => return play::replay(output, args),
        Some(Again::Diff(args)) => return play::diff(output, args),
        None => {}
    }
    #[cfg(all(target_os = "linux", not(taut_portable)))]
    if let Some(parent) = args.becomes {
        return Err(carry::become_server(parent, &args.server));
    }
    if let Some(name) = &args.into {
        return into::into(output, name, &args.config, args.record.as_deref(), args.unmasked);
    }
    if let Some(name) = &args.out_of {
        return into::out_of(output, name, &args.config);
    }
    between(output, args)
}

/// Stands between the host that started us and the server that is meant.
fn between(output: &Output, args: &Trace) -> Result<Exit, Problem> {
    let name = args.name.as_deref().or(args.named.as_deref());
    let (launch, entry) = server_of(output, name, &args.server, &args.config, &args.env)?;
    // The server may be a `taut bridge` with the tokens of a login.
    #[cfg(feature = "login")]
    let entry: Vec<_> = entry.into_iter().chain(crate::cmd::login::kept_secrets()).collect();
    let launch = Launch { cwd: args.cwd.clone().or(launch.cwd), ..launch };
    let masker =
        if args.unmasked { Masker::off() } else { hide::masker(&launch.words, &entry, &args.hide) };
    let words: Vec<String> =
        launch.words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    if let Some(name) = name
        && let Some(place) = elsewhere(name, &args.config)
    {
        tell(
            output,
            args,
            &format!("{} is reached through `{taut} bridge`", place.shown, taut = own::name()),
        );
        reached(output, args, place);
    }
    if !args.quiet {
        let server = match name {
            Some(name) => quoted([name]),
            None => "-- …".to_owned(),
        };
        for_hosts(
            output,
            "it passes on what a host says",
            &format!("{taut} smoke -- {taut} trace {server}", taut = own::name()),
        );
    }
    let known = args.called.clone().or_else(|| name.map(str::to_owned));
    let name = known.clone().unwrap_or_else(|| short_name(&words));
    let Kept { file, limit, told } = keep::keep(args.record.as_deref(), args.page, &name)?;
    for words in told {
        tell(output, args, &words);
    }
    let session = Session {
        name: known,
        command: if args.unmasked { words } else { hide::shown(&words) },
        recorder: concat!("taut ", env!("CARGO_PKG_VERSION")).to_owned(),
        limit,
    };
    gate::give_way();
    let shows = file.is_none() && !args.quiet;
    let watch = shows.then(|| Box::new(live::Live::new(output)) as Box<dyn Watch>);
    let recorder = Recorder::start(file, session, masker, watch)
        .map_err(|error| Problem::File { what: "starting the recorder".to_owned(), error })?;
    let tell = |words: &str| tell(output, args, words);
    match carry::carry(&launch, recorder, output.err.terminal.then_some(&tell))? {}
}

/// Says if nobody is there: the bridge connects only once the host asks something.
fn reached(output: &Output, args: &Trace, place: Elsewhere) {
    let (output, quiet) = (output.clone(), args.quiet);
    let look = move || {
        if let Some(why) = place.unreachable()
            && !quiet
        {
            output.note(&told(&output, &format!("{}: {why}", place.shown)));
        }
    };
    // A host must not wait for it; without a thread for it, the bridge says the same later.
    let _ = std::thread::Builder::new().name("reached".to_owned()).spawn(look);
}

fn told(output: &Output, words: &str) -> String {
    output.err.paint(DIM, format!("taut trace: {}", output.err.line(words)))
}

/// Tells a person who started it by hand what it waits for, and what to type instead.
fn for_hosts(output: &Output, does: &str, next: &str) {
    if std::io::stdin().is_terminal() {
        let words = format!("{does}: start it from a host, or type JSON and end with Ctrl-D");
        output.note(&told(output, &words));
        output.note(&format!("{} {}", output.err.paint(CYAN, "  try:"), output.err.line(next)));
    }
}

/// A line of our own on stderr.
fn tell(output: &Output, args: &Trace, words: &str) {
    if !args.quiet {
        output.note(&told(output, words));
    }
}

/// The server that is meant, and what its entry sets.
fn server_of(
    output: &Output,
    name: Option<&str>,
    words: &[OsString],
    config: &[PathBuf],
    env: &[(String, String)],
) -> Result<(Launch, Vec<(String, String)>), Problem> {
    let mut entry = env.to_vec();
    let mut launch = match (name, words) {
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
                next: Some(own::named(
                    "its command after two dashes: -- npx some-server; or its name, as `taut servers` shows it; or \
                     its URL",
                )),
            });
        }
        (None, words) => Launch { words: words.to_vec(), ..Launch::default() },
        (Some(name), []) if listens(name, config)? => {
            Launch { words: carrier(name, config)?, ..Launch::default() }
        }
        (Some(name), []) => {
            let start = start_of(output, name, config, env)?;
            entry.extend(start.env.iter().cloned());
            Launch {
                words: start.words.into_iter().map(OsString::from).collect(),
                env: start.env,
                short_env: !start.inherit,
                cwd: start.cwd,
            }
        }
    };
    launch.env.extend(env.iter().cloned());
    Ok((launch, entry))
}

/// What to call a server that has no name: its program, without the folder.
fn short_name(words: &[String]) -> String {
    let program = words.first().map_or("server", String::as_str);
    program.rsplit(['/', '\\']).next().unwrap_or(program).to_owned()
}
