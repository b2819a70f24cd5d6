//! An answer that is written before the peer sees it.
//!
//! Knows how a result stands in its message. Results are users' code: it may fail, panic, or use the
//! connection, so it never writes among other messages; and it may be long, so what it has written
//! is not copied when it can be handed over.

use super::id::Id;

/// The answer to one request, under way.
#[derive(Debug, Default)]
pub(crate) struct Draft(Vec<u8>);

impl Draft {
    /// Begins the answer to `id`, and gives the place to which the result is to be appended. What was
    /// there before is forgotten.
    pub(crate) fn begin(&mut self, id: &Id) -> &mut Vec<u8> {
        self.0.clear();
        self.0.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
        self.0.extend_from_slice(id.as_bytes());
        self.0.extend_from_slice(b",\"result\":");
        &mut self.0
    }

    /// The whole message. Whoever takes its bytes leaves another buffer, or the same one empty.
    pub(super) fn end(&mut self) -> &mut Vec<u8> {
        self.0.push(b'}');
        &mut self.0
    }
}
