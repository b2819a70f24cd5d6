//! `taut serve`: the demo server on stdin and stdout.

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::time::Duration;

use taut::{Ending, Error};

use crate::output::Output;
use crate::own;
use crate::problem::{Exit, Problem};
use crate::{args, demo, help, transcript};

#[derive(clap::Args, Default)]
#[command(after_help = help::SERVE)]
pub(crate) struct Serve {
    /// Put at most so many items on one page of a list; by default all.
    #[arg(long, value_name = "ITEMS")]
    pub(crate) page_size: Option<usize>,
    /// Add so many tools that do the same as echo, for tests with long lists.
    #[arg(long, value_name = "TOOLS", default_value_t = 0)]
    pub(crate) tools: usize,
    /// How long open calls may take to finish once stdin has ended; by default as long as they need.
    #[arg(long, value_name = "TIME", value_parser = args::duration)]
    pub(crate) drain: Option<Duration>,
    /// Take messages of up to so many bytes; 64 MiB by default.
    #[arg(long, value_name = "BYTES")]
    pub(crate) max_message: Option<usize>,
    /// Append all messages to this file, as a capture for `taut trace view`.
    #[arg(long, value_name = "FILE")]
    pub(crate) transcript: Option<PathBuf>,
}

pub(crate) async fn run(output: &Output, args: &Serve) -> Result<Exit, Problem> {
    if let Some(path) = &args.transcript {
        transcript::keep(path)?;
    }
    // The default hook blocks while stderr is full, and the connection with it (A1).
    let panics = output.clone();
    std::panic::set_hook(Box::new(move |panic| panics.note(&panic.to_string())));
    if std::io::stdin().is_terminal() {
        output.note(
            "taut-demo serves MCP on stdin and stdout: start it from a host, or type JSON and end with \
             Ctrl-D",
        );
        output.note(&own::named("  try: taut smoke, which starts it and shows what it does"));
    }
    let mut server = demo::with_tools(demo::server(), args.tools);
    if let Some(items) = args.page_size {
        server = server.page_size(items);
    }
    if let Some(bytes) = args.max_message {
        server = server.limits(|config| config.limits.message = bytes);
    }
    // A demo that nobody reads any more, or that is sent a signal, ends before.
    let server = server.drain(args.drain.unwrap_or(Duration::MAX));
    match server.serve_stdio().await {
        // Which calls were dropped stands on stderr already.
        Err(Error::Ended(Ending::DrainTimedOut { .. })) => Ok(Exit::TimedOut),
        Err(error) => Err(error.into()),
        Ok(()) => Ok(Exit::Worked),
    }
}
