//! The command line as plain data.
//!
//! Has the commands, options and defaults for clap. Must not open files, start servers or print.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::styling::{AnsiColor, Styles};
use clap::{Parser, Subcommand, ValueEnum};
use taut::Revision;
use taut::transport::bounded;
use taut::wire::Framing;

use crate::arguments::closest;
use crate::asking::AskOptions;
use crate::cmd::completions::Completions;
use crate::cmd::doctor::Doctor;
use crate::cmd::man::Man;
use crate::cmd::servers::Servers;
use crate::files;
use crate::help;
use crate::own;
use crate::problem::Problem;
use crate::settings::Common;

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default());

/// Try, check and debug any MCP server.
#[derive(Parser)]
#[command(name = "taut", version, styles = STYLES, after_help = help::taut(), max_term_width = 100)]
#[command(disable_help_subcommand = true, propagate_version = true)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(subcommand)]
    pub(crate) command: Sub,
}

#[derive(Subcommand)]
pub(crate) enum Sub {
    /// Check whether a server works: handshake, list, one call, close.
    Smoke(Smoke),
    /// Show what a server offers.
    List(List),
    /// Call a tool.
    Call(Call),
    /// Read a resource.
    Read(Read),
    /// Fill in a prompt.
    Prompt(Prompt),
    /// Show what a server suggests for an argument of a prompt or a template.
    Complete(crate::cmd::complete::Complete),
    /// Make several calls in one session, typed or from a script.
    Shell(crate::cmd::shell::Shell),
    /// Show the notifications of a server as they come: changes and logs.
    Watch(crate::cmd::watch::Watch),
    /// See what passes between a host and a server, keep it, and use it again.
    Trace(crate::cmd::trace::Trace),
    /// Connect any client to any server: eras, framings, stray output, crashes, orphans.
    Bridge(crate::cmd::bridge::Bridge),
    #[command(flatten)]
    Fleet(crate::cmd::fleet::FleetSub),
    /// Log in to a server at a URL that asks who you are.
    #[cfg(feature = "login")]
    Login(crate::cmd::login::LoginArgs),
    /// Forget the login to a server.
    #[cfg(feature = "login")]
    Logout(crate::cmd::login::LogoutArgs),
    /// Show where you are logged in.
    #[cfg(feature = "login")]
    Logins(crate::cmd::login::LoginsArgs),
    /// Find out why a server does not connect, and which hosts will have problems with it.
    Doctor(Doctor),
    /// See whether a server, or a client, keeps the protocol's rules.
    Check(crate::cmd::check::CheckArgs),
    /// Show the servers in the configuration files of hosts, by name.
    Servers(Servers),
    /// Measure how fast a server is, compared with others.
    #[cfg(all(target_os = "linux", not(taut_portable)))]
    Bench(crate::cmd::bench::options::Bench),
    /// Run the demo server, which has one of each thing that MCP has.
    Serve(crate::cmd::serve::Serve),
    /// Print a script that completes the words of this command in a shell.
    Completions(Completions),
    /// Print the manual page.
    Man(Man),
}

impl Args {
    /// What `taut serve` says, without parsing it.
    pub(crate) fn serve() -> Self {
        Self { common: Common::default(), command: Sub::Serve(crate::cmd::serve::Serve::default()) }
    }
}

/// The options of a command that starts a server, by shared or by mutable reference.
macro_rules! options {
    ($command:expr) => {
        match $command {
            Self::Smoke(Smoke { options, .. })
            | Self::List(List { options, .. })
            | Self::Call(Call { options, .. })
            | Self::Read(Read { options, .. })
            | Self::Prompt(Prompt { options, .. })
            | Self::Complete(crate::cmd::complete::Complete { options, .. })
            | Self::Shell(crate::cmd::shell::Shell { options, .. })
            | Self::Watch(crate::cmd::watch::Watch { options, .. })
            | Self::Check(crate::cmd::check::CheckArgs { options, .. })
            | Self::Doctor(Doctor { options, .. }) => Some(options),
            Self::Servers(_) | Self::Completions(_) | Self::Man(_) | Self::Serve(_) => None,
            Self::Trace(_) | Self::Bridge(_) | Self::Fleet(_) => None,
            #[cfg(feature = "login")]
            Self::Login(_) | Self::Logout(_) | Self::Logins(_) => None,
            #[cfg(all(target_os = "linux", not(taut_portable)))]
            Self::Bench(_) => None,
        }
    };
}

impl Sub {
    pub(crate) fn options(&self) -> Option<&Options> {
        options!(self)
    }

    /// Whether a server's command may follow two dashes.
    pub(crate) fn takes_server(&self) -> bool {
        match self {
            #[cfg(all(target_os = "linux", not(taut_portable)))]
            Self::Bench(_) => true,
            Self::Trace(trace) => trace.takes_server(),
            Self::Bridge(_) | Self::Fleet(_) => true,
            other => other.options().is_some(),
        }
    }

    /// Whether secrets are masked in its result too: the result is a report, not data that was asked for.
    pub(crate) fn is_discreet(&self) -> bool {
        match self {
            Self::Smoke(_) | Self::Doctor(_) | Self::Watch(_) | Self::Check(_) => true,
            #[cfg(all(target_os = "linux", not(taut_portable)))]
            Self::Bench(_) => true,
            _ => false,
        }
    }

    pub(crate) fn options_mut(&mut self) -> Option<&mut Options> {
        options!(self)
    }
}

#[derive(clap::Args)]
#[command(after_help = help::SMOKE)]
pub(crate) struct Smoke {
    /// A server by name (see `taut servers`), a URL, tcp:HOST:PORT or unix:PATH.
    pub(crate) name: Option<String>,
    /// Check every server that `taut servers` shows.
    #[arg(long, conflicts_with_all = ["name", "named", "server", "call"])]
    pub(crate) all: bool,
    /// Call this tool instead of a harmless one that taut chooses.
    #[arg(long, value_name = "TOOL")]
    pub(crate) call: Option<String>,
    /// Its arguments as one JSON object; @FILE reads it from a file, - from stdin.
    #[arg(long, value_name = "JSON", requires = "call")]
    pub(crate) args: Option<String>,
    #[command(flatten)]
    pub(crate) options: Options,
    /// Do not name the next command.
    #[arg(long, short, help_heading = "Output")]
    pub(crate) quiet: bool,
    /// The server's program and its arguments, passed on unchanged; the demo by default.
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) server: Vec<OsString>,
}

#[derive(clap::Args)]
#[command(after_help = help::LIST)]
pub(crate) struct List {
    /// What to list: tools, resources, templates or prompts; all of them by default.
    #[arg(value_name = "KIND")]
    first: Option<String>,
    /// A server by name (see `taut servers`), a URL, tcp:HOST:PORT or unix:PATH.
    #[arg(value_name = "NAME")]
    second: Option<String>,
    /// Show one item with its whole schema: a tool or prompt by name, a resource by address.
    #[arg(long, value_name = "NAME")]
    pub(crate) only: Option<String>,
    #[command(flatten)]
    pub(crate) options: Options,
    /// The server's program and its arguments, passed on unchanged.
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) server: Vec<OsString>,
}

impl List {
    /// What is listed, and the server's name. Either may be left out: no server can have the name of a kind.
    pub(crate) fn words(&self) -> Result<(Option<Kind>, Option<&str>), Problem> {
        let kind = |word: &Option<String>| Kind::from_str(word.as_deref()?, false).ok();
        match (kind(&self.first), kind(&self.second)) {
            (Some(kind), _) => Ok((Some(kind), self.second.as_deref())),
            (None, Some(kind)) => Ok((Some(kind), self.first.as_deref())),
            (None, None) => match (&self.first, &self.second) {
                (Some(first), Some(second)) => Err(Problem::Usage {
                    what: format!("{first:?} is not tools, resources, templates or prompts"),
                    next: Some(match meant_kind(first) {
                        Some(kind) => format!("{taut} list {kind} {second}", taut = own::name()),
                        None => format!(
                            "if it is a command: {taut} list -- {first} {second}",
                            taut = own::name()
                        ),
                    }),
                }),
                // There is a command, so the word is not the name of a server.
                (Some(word), None) if !self.server.is_empty() => Err(Problem::Usage {
                    what: format!("{word:?} is not tools, resources, templates or prompts"),
                    next: Some(match meant_kind(word) {
                        Some(kind) => format!("{taut} list {kind} -- …", taut = own::name()),
                        None => format!("leave out {word}, or the -- and what follows it"),
                    }),
                }),
                (first, _) => Ok((None, first.as_deref())),
            },
        }
    }
}

/// The kind that a word with a typing error means.
pub(crate) fn meant_kind(word: &str) -> Option<&'static str> {
    closest(word, ["tools", "resources", "templates", "prompts"].into_iter())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    Tools,
    Resources,
    Templates,
    Prompts,
}

#[derive(clap::Args)]
#[command(after_help = help::CALL)]
pub(crate) struct Call {
    /// The tool's name.
    pub(crate) tool: String,
    /// Arguments, read as the tool's schema says; a last word without = is the name of a server.
    #[arg(value_name = "KEY=VALUE")]
    pub(crate) pairs: Vec<String>,
    /// All arguments as one JSON object, sent without a check; @FILE reads it from a file, - from stdin.
    #[arg(long, value_name = "JSON")]
    pub(crate) args: Option<String>,
    #[command(flatten)]
    pub(crate) options: Options,
    /// The server's program and its arguments, passed on unchanged.
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) server: Vec<OsString>,
}

#[derive(clap::Args)]
#[command(after_help = help::READ)]
pub(crate) struct Read {
    /// The resource's address.
    pub(crate) uri: String,
    /// A server by name (see `taut servers`), a URL, tcp:HOST:PORT or unix:PATH.
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<String>,
    #[command(flatten)]
    pub(crate) options: Options,
    /// The server's program and its arguments, passed on unchanged.
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) server: Vec<OsString>,
}

#[derive(clap::Args)]
#[command(after_help = help::PROMPT)]
pub(crate) struct Prompt {
    /// The prompt's name.
    pub(crate) name: String,
    /// The arguments of the prompt; a last word without = is the name of a server.
    #[arg(value_name = "KEY=VALUE")]
    pub(crate) pairs: Vec<String>,
    #[command(flatten)]
    pub(crate) options: Options,
    /// The server's program and its arguments, passed on unchanged.
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) server: Vec<OsString>,
}

/// The pairs, and the server's name after them. It has no `=`, and nothing else may say which server.
pub(crate) fn name_after<'a>(
    pairs: &'a [String],
    server: &[OsString],
    options: &Options,
) -> (&'a [String], Option<&'a str>) {
    match pairs.split_last() {
        Some((last, before))
            if !last.contains('=')
                && !last.starts_with('{')
                && server.is_empty()
                && options.named.is_none() =>
        {
            (before, Some(last))
        }
        _ => (pairs, None),
    }
}

/// The options of every command that starts a server.
#[derive(clap::Args, Clone)]
pub(crate) struct Options {
    /// A server by its name in a host's file (see `taut servers`), or its address.
    #[arg(long = "server", short = 's', value_name = "NAME", help_heading = "The server")]
    pub(crate) named: Option<String>,
    /// Read servers only from this file, of any host; can be repeated.
    #[arg(long, value_name = "FILE", help_heading = "The server")]
    pub(crate) config: Vec<PathBuf>,
    /// How long to wait for an answer; each report of progress starts the time again.
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "60s")]
    #[arg(help_heading = "The server")]
    pub(crate) timeout: Duration,
    /// How long the server may take to be ready [default: 60s, doctor 30s].
    #[arg(long, value_name = "TIME", value_parser = duration, help_heading = "The server")]
    pub(crate) start_timeout: Option<Duration>,
    /// How long the whole command may take; then it ends with exit code 6.
    #[arg(long, value_name = "TIME", value_parser = duration, help_heading = "The server")]
    pub(crate) max_time: Option<Duration>,
    /// Set a variable in the server's environment; can be repeated.
    #[arg(long, value_name = "KEY=VALUE", value_parser = variable, help_heading = "The server")]
    pub(crate) env: Vec<(String, String)>,
    /// Give the server your whole environment, not only HOME, LOGNAME, PATH, SHELL, TERM, USER and what the network
    /// needs (certificates, proxies).
    #[arg(long, help_heading = "The server")]
    pub(crate) inherit_env: bool,
    /// Start the server in this directory.
    #[arg(long, value_name = "DIR", help_heading = "The server")]
    pub(crate) cwd: Option<PathBuf>,
    /// Use only this revision of the protocol, such as 2025-11-25.
    #[arg(long, value_name = "DATE", value_parser = revision, help_heading = "The server")]
    pub(crate) revision: Option<Revision>,
    /// Use only this framing: lines or headers.
    #[arg(long, value_name = "FRAMING", value_parser = framing, help_heading = "The server")]
    pub(crate) framing: Option<Framing>,
    /// Send this header to a server at a URL; can be repeated.
    #[arg(long, value_name = "NAME: VALUE", value_parser = header, help_heading = "The server")]
    pub(crate) header: Vec<(String, String)>,
    /// Trust the certificates in this file for a server at a URL, and no others.
    #[arg(long, value_name = "FILE", help_heading = "The server")]
    #[arg(value_parser = files::plain, value_hint = clap::ValueHint::FilePath)]
    pub(crate) ca_file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) broker: crate::nats::NatsArgs,
    #[command(flatten)]
    pub(crate) asked: AskOptions,
    /// Print one JSON document.
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
    /// Show the server's stderr and all events as they happen.
    #[arg(long, short, help_heading = "Output")]
    pub(crate) verbose: bool,
    /// Write the result to a file; - writes content to stdout as the server sent it.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) out: Option<PathBuf>,
}

/// `5s`, `500ms`, `1.5m`; a bare number is seconds.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    if digits.is_empty() {
        return Err("expected a time such as 5s or 500ms".to_owned());
    }
    let scale = match &text[digits.len()..] {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        unit => return Err(format!("{unit:?} is no unit; use ms, s, m or h")),
    };
    let number: f64 = digits.parse().map_err(|_| "expected a time such as 5s or 500ms")?;
    let seconds = number * scale;
    if seconds.is_nan() || seconds < 0.0 {
        return Err("expected a time such as 5s or 500ms".to_owned());
    }
    // What is longer than any clock counts means "for ever".
    let time = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
    if time.is_zero() {
        return Err("expected more than no time".to_owned());
    }
    Ok(bounded(time))
}

pub(crate) fn variable(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err(format!("expected KEY=VALUE; to pass on your own: {text}=\"${text}\"")),
    }
}

/// `Name: value`, as it stands in a request.
pub(crate) fn header(text: &str) -> Result<(String, String), String> {
    match text.split_once(':') {
        Some((name, value)) if !name.trim().is_empty() => {
            Ok((name.trim().to_owned(), value.trim().to_owned()))
        }
        _ => Err("expected NAME: VALUE, such as \"Authorization: Bearer …\"".to_owned()),
    }
}

pub(crate) fn revision(text: &str) -> Result<Revision, String> {
    Revision::parse(text).ok_or_else(|| {
        let all: Vec<_> = Revision::ALL.iter().map(|known| known.as_str()).collect();
        format!("expected one of {}", all.join(", "))
    })
}

pub(crate) fn framing(text: &str) -> Result<Framing, String> {
    match text {
        "lines" => Ok(Framing::Lines),
        "headers" => Ok(Framing::Headers),
        _ => Err("expected lines or headers".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_definition_is_sound() {
        Args::command().debug_assert();
    }

    #[test]
    fn times_are_read_as_people_write_them() {
        let table =
            [("5s", 5_000), ("500ms", 500), ("1.5m", 90_000), ("2", 2_000), ("1h", 3_600_000)];
        for (text, millis) in table {
            assert_eq!(duration(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        // As long as any clock counts, and no longer: it is added to the time of day.
        for text in ["99999999999h", "1e300h", &"9".repeat(400)] {
            assert_eq!(duration(text), Ok(bounded(Duration::MAX)), "{text}");
        }
        for text in ["", "s", "5 s", "-1s", "0", "5 years", "NaN", "inf"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn everything_after_two_dashes_is_the_servers() {
        let typed = ["taut", "call", "x", "a=1", "--", "srv", "--json", "-v", "--", "--timeout"];
        let Sub::Call(call) = Args::try_parse_from(typed).ok().unwrap().command else { panic!() };
        assert_eq!(call.server, ["srv", "--json", "-v", "--", "--timeout"]);
        assert!(!call.options.json && call.pairs == ["a=1"]);
    }
}
