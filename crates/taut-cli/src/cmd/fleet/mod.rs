//! `taut worker` and `taut fleet`: servers on many machines, behind one name on a NATS broker.
//!
//! Only leads from options to `taut-nats`. In a build without it, says how to get one.

#[cfg(feature = "fleet")]
mod table;
#[cfg(feature = "fleet")]
mod worker;

#[cfg(not(feature = "fleet"))]
use std::ffi::OsString;

use crate::output::Output;
use crate::problem::{Exit, Problem};

#[derive(clap::Subcommand)]
pub(crate) enum FleetSub {
    /// Run a server for a service, beside others on as many machines as you like.
    #[cfg(feature = "fleet")]
    Worker(worker::WorkerArgs),
    /// Show the services on a broker, and who serves them.
    #[cfg(feature = "fleet")]
    Fleet(table::FleetArgs),
    /// Needs a build with the feature `fleet`.
    #[cfg(not(feature = "fleet"))]
    #[command(hide = true, disable_help_flag = true)]
    Worker(Words),
    /// Needs a build with the feature `fleet`.
    #[cfg(not(feature = "fleet"))]
    #[command(hide = true, disable_help_flag = true)]
    Fleet(Words),
}

/// Whatever was typed.
#[cfg(not(feature = "fleet"))]
#[derive(clap::Args)]
pub(crate) struct Words {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    _words: Vec<OsString>,
}

#[cfg(not(feature = "fleet"))]
pub(crate) async fn run(_output: &Output, command: &FleetSub) -> Result<Exit, Problem> {
    Err(crate::nats::left_out(&match command {
        FleetSub::Worker(_) => crate::own::named("taut worker"),
        FleetSub::Fleet(_) => crate::own::named("taut fleet"),
    }))
}

#[cfg(feature = "fleet")]
pub(crate) async fn run(output: &Output, command: &FleetSub) -> Result<Exit, Problem> {
    crate::leftovers::keep_swept();
    match command {
        FleetSub::Worker(args) => worker::run(output, args).await,
        FleetSub::Fleet(args) => table::run(output, args).await,
    }
}
