//! `taut serve`: the demo server on stdin and stdout.

use std::io::IsTerminal as _;
use std::path::PathBuf;

use crate::output::Output;
use crate::problem::{Exit, Problem};
use crate::{demo, help, transcript};

#[derive(clap::Args, Default)]
#[command(after_help = help::SERVE)]
pub(crate) struct Serve {
    /// Put at most so many items on one page of a list; by default all.
    #[arg(long, value_name = "ITEMS")]
    pub(crate) page_size: Option<usize>,
    /// Add so many tools that do the same as echo, for tests with long lists.
    #[arg(long, value_name = "TOOLS", default_value_t = 0)]
    pub(crate) tools: usize,
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
        output.note("  try: taut smoke, which starts it and shows what it does");
    }
    let mut server = demo::with_tools(demo::server(), args.tools);
    if let Some(items) = args.page_size {
        server = server.page_size(items);
    }
    server.serve_stdio().await?;
    Ok(Exit::Worked)
}
