//! What two sides say to each other, kept in a file: a capture, as `taut trace` has it.
//!
//! Knows how the library tells its steps, in which secrets are masked by their names; the values of
//! our own environment are masked here. For the owner's eyes only.

use std::path::Path;

use taut_trace::{Side, Transcript};

use crate::debug;
use crate::problem::Problem;
use crate::secrets;

/// Writes down what is said from now on.
pub(crate) fn keep(path: &Path) -> Result<(), Problem> {
    let failed = |error| Problem::File { what: format!("opening {}", path.display()), error };
    let recorder = concat!("taut ", env!("CARGO_PKG_VERSION"));
    let transcript = Transcript::open(path, Side::Server, recorder).map_err(failed)?;
    secrets::hide_ours();
    debug::listen("stdin", move |step: &str| transcript.step(&secrets::masked(step)));
    Ok(())
}
