//! JSON text, read and written without building values where that is possible.
//!
//! Knows the grammar of JSON; must not know JSON-RPC, MCP, or what any member means. Pure. serde_json
//! does all that is unusual; what is here handles the usual case faster, and tests compare the two.

#[cfg(all(feature = "server", feature = "client"))]
pub(crate) mod edit;
mod plain;
mod raw;
pub(crate) mod read;
pub(crate) mod scan;
mod text;
mod write;

pub(crate) use plain::plain;
pub use raw::{JsonObject, RawJson};
pub use text::JsonRef;
pub use write::JsonBuf;
pub(crate) use write::{ObjectWriter, close, quote};
