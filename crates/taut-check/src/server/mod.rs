//! Servers: started, surveyed, probed, judged.

mod checks;
pub(crate) mod run;
pub(crate) mod session;
mod survey;

pub(crate) use checks::all;
pub use run::ServerCheck;
