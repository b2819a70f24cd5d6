//! MCP over NATS: servers on many machines behind one name.
//!
//! A [`Worker`] answers the requests of a service with a [`MessageService`](taut::transport::MessageService),
//! usually a [`taut::Proxy`] to child processes. An [`Edge`] is how a client reaches the workers: it opens
//! [`taut::Client`]s whose requests travel over NATS, one by one, to whichever worker takes them. Only
//! requests of revision 2026-07-28 travel, because each of them stands for itself.
//!
//! Servers are written with [`taut`](https://docs.rs/taut). Where one machine is enough,
//! [`taut-http`](https://docs.rs/taut-http) serves them to many clients. The command `taut`
//! ([`taut-cli`](https://docs.rs/taut-cli), feature `fleet`) has `taut worker` and `taut fleet`. There are no features
//! to choose (`broker-tests` is for our own tests). Guides in the repository: `docs/guides/fleet.md`, `docs/scale.md`.
//!
//! | file | what it knows |
//! |---|---|
//! | `names` | names of services, workers and calls, and their subjects; pure |
//! | `frame` | headers and kinds of messages; pure |
//! | `parts` | long messages in parts, and the window; pure |
//! | `message` | the few members of a JSON-RPC message that decide about its way; pure |
//! | `hash` | the hash of the tables of calls; pure |
//! | `connection` | how a broker is reached, and what to say if it is not |
//! | `discovery` | NATS's own service API, both sides |
//! | `worker` | slots, calls, heartbeats, leaving |
//! | `edge` | publishing, waiting, repeating, giving up |
//!
//! The wire is described in `docs/fleet-wire.md`, so that a worker can be written in another language.

mod connection;
mod discovery;
mod edge;
mod frame;
mod hash;
mod message;
mod names;
mod parts;
mod worker;

pub use connection::{ConnectOptions, Connection, NatsError};
pub use discovery::{WorkerReport, fleet};
pub use edge::{Edge, EdgeOptions};
pub use names::{BadServiceName, ServiceName};
pub use worker::{Worker, WorkerOptions};

/// Waits for a moment; without one, for ever.
pub(crate) async fn due(moment: Option<tokio::time::Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment).await,
        None => std::future::pending().await,
    }
}
