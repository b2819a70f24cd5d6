//! `taut serve`: the demo server on stdin and stdout.

use std::io::{IsTerminal as _, Write as _};
use std::path::PathBuf;

use crate::problem::{Exit, Problem};
use crate::{demo, help, transcript};

#[derive(clap::Args, Default)]
#[command(after_help = help::SERVE)]
pub(crate) struct Serve {
    /// Put so many items on a page of a list, instead of all of them.
    #[arg(long, value_name = "ITEMS")]
    pub(crate) page_size: Option<usize>,
    /// Have so many more tools, which do what echo does: for long lists.
    #[arg(long, value_name = "TOOLS", default_value_t = 0)]
    pub(crate) tools: usize,
    /// Add what is said to this file, as a capture for `taut trace view`.
    #[arg(long, value_name = "FILE")]
    pub(crate) transcript: Option<PathBuf>,
}

pub(crate) async fn run(args: &Serve) -> Result<Exit, Problem> {
    if let Some(path) = &args.transcript {
        transcript::keep(path)?;
    }
    if std::io::stdin().is_terminal() {
        let hint = "serving MCP on this terminal: type JSON, end with Ctrl-D. For a look at it: taut smoke";
        let _ = writeln!(std::io::stderr(), "{hint}");
    }
    let mut server = demo::with_tools(demo::server(), args.tools);
    if let Some(items) = args.page_size {
        server = server.page_size(items);
    }
    server.serve_stdio().await?;
    Ok(Exit::Worked)
}
