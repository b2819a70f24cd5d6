//! What must hold for any stream of server-sent events. Shared by the fuzz target and by
//! `crates/taut-http/tests/client/seeds.rs`, which runs it over the seeds as an ordinary test.
//!
//! Knows only the public API. A check panics where it fails.

use taut_http::client::{SseEvent, SseReader, SseTooLong};

/// The first byte picks the limit, the next three the sizes of the pieces; the rest is the stream.
pub(crate) fn events(data: &[u8]) {
    let Some((setting, stream)) = data.split_first_chunk::<4>() else { return };
    let limit = [16, 100, 4096][usize::from(setting[0]) % 3];
    let sizes = [setting[1], setting[2], setting[3]].map(|size| usize::from(size) % 64 + 1);
    let whole = read(stream, limit, &[usize::MAX]);
    assert_eq!(read(stream, limit, &sizes), whole, "cut into pieces of {sizes:?}");
    assert_eq!(read(stream, limit, &[1]), whole, "byte by byte");
    for event in &whole.0 {
        let id = event.id.as_ref().map_or(0, String::len);
        // Text that is no UTF-8 grows by two bytes for each one.
        assert!(event.data.len() <= limit, "{event:?}");
        assert!(event.kind.len() + id <= 3 * limit, "{event:?}");
    }
}

fn read(stream: &[u8], limit: usize, sizes: &[usize]) -> (Vec<SseEvent>, Option<SseTooLong>) {
    let mut reader = SseReader::new(limit);
    let mut events = Vec::new();
    let mut sizes = sizes.iter().cycle();
    let mut rest = stream;
    while !rest.is_empty() {
        let size = sizes.next().copied().unwrap_or(1).min(rest.len());
        let (piece, behind) = rest.split_at(size);
        let outcome = reader.handle_bytes(piece);
        events.extend(std::iter::from_fn(|| reader.poll_event()));
        if let Err(error) = outcome {
            return (events, Some(error));
        }
        rest = behind;
    }
    (events, None)
}
