//! Checks the server that is given on the command line, and prints what came of it.
//!
//! `cargo run -p taut-check --example check_server -- my-server --stdio`

use std::io::Write as _;

fn main() -> std::io::Result<()> {
    let mut check = taut_check::server(std::env::args_os().skip(1));
    if let Ok(calls) = std::env::var("CALLS") {
        for line in calls.lines() {
            let (tool, args) = line.split_once(' ').unwrap_or((line, "{}"));
            check = check.call(tool, serde_json::from_str(args)?);
        }
    }
    let report = check.run();
    std::io::stdout().write_all(taut_check::table(&report, None, &taut_check::plain).as_bytes())
}
