//! `taut doctor`: what happens when a host starts this server.

use crate::args::Doctor;
use crate::output::Output;
use crate::problem::{Exit, Problem};

pub(crate) async fn run(_output: &Output, _args: &Doctor) -> Result<Exit, Problem> {
    Err(Problem::usage("not there yet"))
}
