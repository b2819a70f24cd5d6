//! Whether an MCP server or client over stdio keeps the protocol's rules.
//!
//! ```no_run
//! # fn main() {
//! let report = taut_check::server(["my-server", "--stdio"])
//!     .call("echo", serde_json::json!({ "text": "hello" }))
//!     .run();
//! report.assert_passed();
//! # }
//! ```
//!
//! It is for tests of servers and clients that are written in Rust, and the part behind `taut check` of
//! [`taut-cli`](https://docs.rs/taut-cli), which is for all others. Servers and clients are written with
//! [`taut`](https://docs.rs/taut), [`taut-http`](https://docs.rs/taut-http) carries them over HTTP, and
//! [`taut-trace`](https://docs.rs/taut-trace) reads captures. There are no features to choose (`peers` is for our own
//! tests). Guides in the repository: `docs/check.md`, `docs/guides/testing.md`.
//!
//! A check is data with a judge ([`Check`]): the rules that it proves, the revisions that it applies
//! to, what is sent, and who suffers if it fails. [`checks`] has them all. A server is started at most
//! [`MAX_STARTS`] times; nothing is called that was not allowed with [`ServerCheck::call`].
//!
//! It reads and writes raw bytes itself, and validates every message against the official JSON schema
//! of its revision.

mod check;
mod client;
mod cx;
pub mod lint;
mod ours;
mod process;
mod program;
mod progress;
mod report;
pub mod schema;
mod seen;
mod server;
mod texts;
mod wire;

use std::ffi::OsString;

pub use check::{Check, Level, Revisions, Side, Verdict};
pub use client::{ClientCheck, play};
pub use ours::Revision;
pub use process::{Entry, What};
pub use program::{Program, Stopper};
pub use progress::Progress;
pub use report::{Baseline, Compared, IdleCall, Report, Row, Sdk, Tone, plain, table};
pub use server::ServerCheck;
pub use server::run::MAX_STARTS;
pub use texts::Text;
pub use wire::{Fault, Frame};

/// Checks a server: its program and its arguments.
#[must_use]
pub fn server<W: Into<OsString>>(words: impl IntoIterator<Item = W>) -> ServerCheck {
    ServerCheck::new(words)
}

/// All checks, for servers and for clients.
#[must_use]
pub fn checks() -> Vec<Check> {
    let mut all = server::all();
    all.extend(client::all());
    all
}

/// The check with this name.
#[must_use]
pub fn find(id: &str) -> Option<Check> {
    checks().into_iter().find(|check| check.id == id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_check_has_a_name_of_its_own_words_and_rules_of_the_ledger() {
        let ledger = include_str!("../../../docs/rules.md");
        let all = checks();
        for (at, check) in all.iter().enumerate() {
            assert!(
                all[..at].iter().all(|other| other.id != check.id),
                "{} stands twice",
                check.id
            );
            assert!(!check.rules.is_empty() && !check.revisions.names().is_empty(), "{}", check.id);
            for rule in check.rules {
                assert!(ledger.contains(&format!("| {rule} |")), "{}: {rule} is no rule", check.id);
            }
            assert!(check.rule.ends_with('.') && !check.hosts.is_empty(), "{}", check.id);
            for id in check.after {
                assert!(all.iter().any(|other| other.id == *id), "{}: after {id}", check.id);
            }
        }
    }
}
