//! `taut shell`: several calls in one session, typed by a person or read from a script.
//!
//! This file knows which of the two it is. What a line means is in `order.rs`, what is done in
//! `perform.rs`, the server in `running.rs`, the person's keys in `interact.rs`.

mod complete;
mod history;
mod interact;
mod order;
mod perform;
mod running;
mod script;
mod words;

use std::ffi::OsString;
use std::io::{self, IsTerminal as _};
use std::path::PathBuf;

use crate::args::Options;
use crate::asking::Host;
use crate::hosts::resolve;
use crate::output::Output;
use crate::problem::{Exit, Problem};
use crate::signals::Interrupts;
use running::Running;
use script::Script;

const HELP: &str = "\
At the prompt: tools, resources, prompts, call TOOL key=value (or just TOOL key=value), read URI, \
prompt NAME, log LEVEL, info, restart, help, quit. Tab completes names, arguments and values, and asks \
the server where it can. Ctrl-C cancels the running call, Ctrl-D leaves. A line that begins with a space \
is not kept in the history.

Without a terminal, the same lines come from --script or from stdin. The first line that fails ends the \
session; its exit code is that of the command, and its number is printed. With --keep-going all lines are \
run, and the code is that of the first that failed. --json prints one JSON document for the result of \
each line and for each notification of the server.

Examples:
  echo 'add a=2 b=3' | taut shell -- taut serve
  printf 'tools\\necho text=hi\\nread demo://readme\\n' | taut shell --json -- taut serve
  taut shell -- taut serve";

#[derive(clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Shell {
    /// A server by name (see `taut servers`), a URL, tcp:HOST:PORT or unix:PATH.
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// Run the lines of this file, and leave; - is stdin.
    #[arg(long, value_name = "FILE")]
    script: Option<PathBuf>,
    /// Run the remaining lines after a line that failed.
    #[arg(long)]
    keep_going: bool,
    #[command(flatten)]
    pub(crate) options: Options,
    /// The server's program and its arguments, passed on unchanged.
    #[arg(last = true, value_name = "COMMAND")]
    server: Vec<OsString>,
}

pub(crate) async fn run(output: &Output, args: &Shell) -> Result<Exit, Problem> {
    let reach = resolve(output, &args.options, args.name.as_deref(), &args.server)?.reach;
    crate::leftovers::keep_swept();
    let person = io::stdin().is_terminal() && io::stderr().is_terminal();
    let script = match &args.script {
        Some(path) if path != "-" => Some(Script::open(path)?),
        None if person => None,
        _ => Some(Script::stdin()),
    };
    let history = if script.is_none() { history::file() } else { None };
    let host = Host::with(output, &args.options.asked, script.is_none(), history)?;
    let mut interrupts = Interrupts::new()?;
    if script.is_none() {
        // Before the server is started, so that a person can type meanwhile.
        host.desk();
    }
    let mut running = Running::new(output, &args.options, &host, reach);
    running.start(&mut interrupts).await?;
    let done = match script {
        Some(script) => script.run(&mut running, &mut interrupts, args.keep_going).await,
        None => interact::run(&mut running, &mut interrupts).await,
    };
    let closed = running.close(&mut interrupts).await;
    let exit = done?;
    closed?;
    Ok(exit)
}
