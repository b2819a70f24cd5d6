//! Server-sent events, written.
//!
//! Knows the format of an event; must not know what its data says. The reader is the client's.

/// One event with a message. `data` is one line; `id` is for resumption.
pub(crate) fn event(id: Option<&str>, data: &[u8]) -> Vec<u8> {
    let id_bytes = id.map_or(0, |id| id.len() + 5);
    let mut out = Vec::with_capacity(data.len() + id_bytes + 24);
    if let Some(id) = id {
        out.extend_from_slice(b"id: ");
        out.extend_from_slice(id.as_bytes());
        out.push(b'\n');
    }
    out.extend_from_slice(b"event: message\ndata: ");
    out.extend_from_slice(data);
    out.extend_from_slice(b"\n\n");
    out
}

/// An event without a message, so that the client knows an id from which to resume (SSE-05).
pub(crate) fn priming(id: &str) -> Vec<u8> {
    format!("id: {id}\ndata: \n\n").into_bytes()
}

/// Tells the client to come back after so many milliseconds (SSE-05).
pub(crate) fn retry(id: &str, milliseconds: u128) -> Vec<u8> {
    format!("id: {id}\nretry: {milliseconds}\ndata: \n\n").into_bytes()
}

/// A line that says nothing and keeps the connection open (SSE-11).
pub(crate) const KEEP_ALIVE: &[u8] = b": keep-alive\n\n";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_written_as_the_standard_says() {
        assert_eq!(event(Some("1.2"), b"{}"), b"id: 1.2\nevent: message\ndata: {}\n\n");
        assert_eq!(event(None, b"{}"), b"event: message\ndata: {}\n\n");
        assert_eq!(priming("3.0"), b"id: 3.0\ndata: \n\n");
        assert_eq!(retry("3.0", 500), b"id: 3.0\nretry: 500\ndata: \n\n");
    }
}
