//! Servers: started, surveyed, probed, judged.

pub(crate) mod answers;
mod carry;
mod checks;
pub(crate) mod judge;
pub(crate) mod pool;
pub(crate) mod run;
pub(crate) mod session;
mod survey;

pub(crate) use checks::{all, is_key, is_reserved, odd_trace};
pub use run::ServerCheck;
