//! Servers: started, surveyed, probed, judged.

mod again;
pub(crate) mod answers;
mod carry;
mod cause;
mod checks;
pub(crate) mod judge;
mod odd;
mod patience;
pub(crate) mod pool;
pub(crate) mod run;
pub(crate) mod session;
mod survey;

pub(crate) use checks::{all, is_key, is_reserved, odd_trace};
pub use run::ServerCheck;
