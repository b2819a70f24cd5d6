//! Clients: started once per scenario, with a server that is played to them.
//!
//! `play.rs` is that server, in a process of its own, which writes down what it hears; `run.rs` starts
//! the client and reads that; `checks.rs` judges it.

mod checks;
mod play;
mod record;
mod run;

pub(crate) use checks::all;
pub use play::play;
pub(crate) use record::Played;
pub use run::ClientCheck;
