//! Clients: started once per scenario, with a server that is played to them.
//!
//! `play.rs` is that server, in a process of its own, which writes down what it hears, with what it offers in
//! `offers.rs` and `rounds.rs`, and what nobody asked for in `noise.rs`, as one of `scenarios.rs`; `run.rs` starts the client and reads that; `checks/` judges it.

mod checks;
mod links;
mod noise;
mod offers;
mod play;
mod record;
mod rounds;
mod run;
mod scenarios;
mod signals;

pub(crate) use checks::all;
pub use play::play;
pub(crate) use record::Played;
pub use run::ClientCheck;
