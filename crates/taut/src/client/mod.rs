//! Being written.

mod command;
mod exit;
mod ladder;
mod lookup;
mod spawn_error;
#[cfg_attr(not(windows), allow(dead_code, reason = "tested everywhere, used on Windows"))]
mod windows;

#[cfg(unix)]
#[allow(dead_code, reason = "the client that starts children is being written")]
mod child;
#[cfg(unix)]
mod forker;
#[cfg(unix)]
mod keeper;
#[cfg(unix)]
#[allow(dead_code, reason = "the driver that reads and writes is being written")]
mod pipe;
#[cfg(unix)]
mod reaper;
#[cfg(unix)]
mod stderr;

pub use command::Command;
pub use exit::{Ended, Exit};
pub use ladder::{Grace, Rung};
pub use spawn_error::{Hint, SpawnError};
