//! One file per command: what it asks the server, and how the answer is shown.

#[cfg(all(target_os = "linux", not(taut_portable)))]
pub(crate) mod bench;
pub(crate) mod bridge;
pub(crate) mod call;
pub(crate) mod check;
pub(crate) mod complete;
pub(crate) mod completions;
pub(crate) mod doctor;
pub(crate) mod fleet;
pub(crate) mod list;
#[cfg(feature = "login")]
pub(crate) mod login;
pub(crate) mod man;
pub(crate) mod prompt;
pub(crate) mod read;
pub(crate) mod serve;
pub(crate) mod servers;
pub(crate) mod shell;
pub(crate) mod smoke;
pub(crate) mod trace;
pub(crate) mod watch;
