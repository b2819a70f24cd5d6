//! The options of `taut bench` as plain data, and its help.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;

use crate::args::{Options, duration, header, variable};
use crate::asking::AskOptions;
use crate::nats::NatsArgs;

const HELP: &str = "\
Calls a tool that takes one text: `echo`, or one that declares that it only reads; --call names \
another, and --args gives it the same arguments each time. Without such a tool, it measures ping and list. Each answer is compared with the request. The \
servers take turns, in an order that changes from round to round. A ratio is taken within a round.

One core: the load and the server share it, so a round trip is two switches. Two cores: each has its \
own, so a round trip is two wake-ups. The difference is larger than that between most servers.

Columns: p50 to p99.9, the time that so many of a hundred calls need at most; calls/s; the processor time \
and the switches between tasks of the server for a call; its largest memory; ×, the first column of figures \
compared with the first server's.

Examples:
  taut bench --quick -- taut serve
  taut bench --quick --compare cat=cat -- taut serve
  taut bench --quick --only sequential --era modern --json -- taut serve
  taut bench --quick --only sequential demo
  taut bench --quick --only payload --plot payload.svg -- taut serve";

/// Options of `taut bench`.
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Bench {
    /// A server by name (see `taut servers`), a URL, tcp:HOST:PORT or unix:PATH.
    #[arg(value_name = "SERVER", conflicts_with = "server")]
    pub(crate) named: Option<String>,
    /// A server by its name in a host's file (see `taut servers`), or its address.
    #[arg(long = "server", short = 's', value_name = "NAME", help_heading = "The server")]
    #[arg(conflicts_with_all = ["named", "server"])]
    pub(crate) by_option: Option<String>,
    /// Read servers only from this file, of any host; can be repeated.
    #[arg(long, value_name = "FILE", conflicts_with = "server", help_heading = "The server")]
    pub(crate) config: Vec<PathBuf>,
    /// Also measure this server; can be repeated. The command is split at blanks, except within quotes.
    #[arg(long, value_name = "NAME=COMMAND", value_parser = compared)]
    pub(crate) compare: Vec<(String, String)>,
    /// The name of the server in the table.
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Measure only this phase; can be repeated.
    #[arg(long, value_enum, value_name = "PHASE")]
    pub(crate) only: Vec<Kind>,
    /// The number of rounds [default: 5, with --quick 1].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) rounds: Option<u16>,
    /// One round with a tenth of the calls, to check whether it works.
    #[arg(long)]
    pub(crate) quick: bool,
    /// Call this tool, even if it changes something.
    #[arg(long, value_name = "TOOL", alias = "tool")]
    pub(crate) call: Option<String>,
    /// Its arguments as one JSON object, the same in each call; @FILE reads it from a file, - from stdin.
    #[arg(long, value_name = "JSON", requires = "call", conflicts_with = "arg")]
    pub(crate) args: Option<String>,
    /// The argument of the tool that takes the text.
    #[arg(long, value_name = "KEY", requires = "call", hide = true)]
    pub(crate) arg: Option<String>,
    /// Use the protocol of this era [default: legacy, and modern if the server refuses].
    #[arg(long, value_enum)]
    pub(crate) era: Option<Era>,
    /// The kind of the server's stdin and stdout; hosts written in Node use sockets.
    #[arg(long, value_enum, default_value = "pipes")]
    pub(crate) over: Over,
    /// The number of cores; two only if the machine has them.
    #[arg(long, value_enum, default_value = "both")]
    pub(crate) cores: Cores,
    /// The number of calls in flight; can be repeated [default: 8 and 64].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=10_000))]
    pub(crate) in_flight: Vec<u16>,
    /// The number of calls of the fire-hose [default: as many as take about a second].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4_000_000))]
    pub(crate) fire: Option<u32>,
    /// The size of a payload, such as 64, 16k or 1m; can be repeated [default: 64 to 16m].
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) size: Vec<usize>,
    /// How long to wait for an answer.
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "10s")]
    #[arg(help_heading = "The server")]
    pub(crate) timeout: Duration,
    /// Set a variable in the servers' environment; can be repeated.
    #[arg(long, value_name = "KEY=VALUE", value_parser = variable, help_heading = "The server")]
    pub(crate) env: Vec<(String, String)>,
    /// Give the servers your whole environment, not only HOME, LOGNAME, PATH, SHELL, TERM, USER and what the
    /// network needs (certificates, proxies).
    #[arg(long, help_heading = "The server")]
    pub(crate) inherit_env: bool,
    /// Start the servers in this directory.
    #[arg(long, value_name = "DIR", help_heading = "The server")]
    pub(crate) cwd: Option<PathBuf>,
    /// Send this header to a server at a URL; can be repeated.
    #[arg(long, value_name = "NAME: VALUE", value_parser = header, help_heading = "The server")]
    pub(crate) header: Vec<(String, String)>,
    /// Trust the certificates in this file for a server at a URL, and no others.
    #[arg(long, value_name = "FILE", help_heading = "The server")]
    pub(crate) ca_file: Option<PathBuf>,
    /// Print one JSON document.
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
    /// Draw latency, and cost by size, into this file.
    #[arg(long, value_name = "FILE.svg", help_heading = "Output")]
    pub(crate) plot: Option<PathBuf>,
    /// The server's program and its arguments, passed on unchanged.
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) server: Vec<OsString>,
}

impl Bench {
    /// The options that say how a server that listens is reached.
    pub(crate) fn options(&self) -> Options {
        Options {
            named: None,
            config: self.config.clone(),
            timeout: self.timeout,
            start_timeout: Some(self.timeout),
            max_time: None,
            env: self.env.clone(),
            inherit_env: self.inherit_env,
            cwd: self.cwd.clone(),
            revision: None,
            framing: None,
            header: self.header.clone(),
            ca_file: self.ca_file.clone(),
            // Not used: a service on a broker is not measured.
            broker: NatsArgs::default(),
            asked: AskOptions::default(),
            json: self.json,
            verbose: false,
            out: None,
        }
    }
}

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    /// From the start of the process to its first answer.
    Start,
    /// One call after the other.
    Sequential,
    /// So many calls at once.
    InFlight,
    /// As many calls as the pipe takes, without waiting for answers.
    FireHose,
    /// From small texts to large ones.
    Payload,
    /// The whole list of tools.
    List,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Era {
    /// With a handshake: 2025-11-25.
    Legacy,
    /// Without one, and with `_meta` on each request: 2026-07-28.
    Modern,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Over {
    Pipes,
    Sockets,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Cores {
    One,
    Two,
    Both,
    /// Wherever the system puts them.
    Any,
}

/// `cat=cat`, `other=npx some-server`.
fn compared(text: &str) -> Result<(String, String), String> {
    variable(text).map_err(|_| "expected NAME=COMMAND, such as cat=cat".to_owned())
}

/// `64`, `16k`, `1m`.
fn size(text: &str) -> Result<usize, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let scale = match &text[digits.len()..].to_ascii_lowercase()[..] {
        "" | "b" => 1,
        "k" | "kb" | "kib" => 1 << 10,
        "m" | "mb" | "mib" => 1 << 20,
        unit => return Err(format!("{unit:?} is no unit; use k or m")),
    };
    let number: usize = digits.parse().map_err(|_| "expected a size such as 64, 16k or 1m")?;
    // Eight bytes tell one answer from the next; a message of taut itself may have 64 MiB.
    let bytes = number.checked_mul(scale).filter(|bytes| (16..=48 << 20).contains(bytes));
    bytes.ok_or_else(|| "expected from 16 bytes to 48m".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_people_write_them() {
        let table = [("64", 64), ("1k", 1024), ("16KiB", 16 << 10), ("1m", 1 << 20)];
        for (text, bytes) in table {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
        for text in ["", "8", "64m", "k", "1g", "-1", "99999999999999999999", "1.5m"] {
            assert!(size(text).is_err(), "{text}");
        }
    }
}
