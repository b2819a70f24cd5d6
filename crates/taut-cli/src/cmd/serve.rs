//! `taut serve`: the demo server on stdin and stdout.

use std::io::{IsTerminal as _, Write as _};

use crate::demo;
use crate::problem::{Exit, Problem};

pub(crate) async fn run() -> Result<Exit, Problem> {
    if std::io::stdin().is_terminal() {
        let hint = "serving MCP on this terminal: type JSON, end with Ctrl-D. For a look at it: taut smoke";
        let _ = writeln!(std::io::stderr(), "{hint}");
    }
    demo::server().serve_stdio().await?;
    Ok(Exit::Worked)
}
