//! Server-sent events: bytes in, events out.
//!
//! Pure. Knows the event stream format; must not know what the events say. Nothing is kept that is longer
//! than the limit. SSE-12.

use std::collections::VecDeque;
use std::fmt;

/// One event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SseEvent {
    /// The type; empty if the event names none, which means `message`.
    pub kind: String,
    /// The data lines, joined with newlines.
    pub data: Vec<u8>,
    /// The id that was sent with this event.
    pub id: Option<String>,
    /// The time to wait before the next connection, in milliseconds.
    pub retry: Option<u64>,
}

/// An event is longer than the limit. The stream cannot be read on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SseTooLong {
    /// The limit in bytes.
    pub limit: usize,
}

impl fmt::Display for SseTooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an event of the stream is longer than {} bytes", self.limit)
    }
}

impl std::error::Error for SseTooLong {}

/// Reads events from bytes, however they are cut.
#[derive(Debug)]
pub struct SseReader {
    limit: usize,
    /// The line that is not whole yet.
    line: Vec<u8>,
    /// A line has ended with CR: an LF that follows belongs to it.
    after_cr: bool,
    /// Nothing was read yet, so a byte-order mark may come.
    at_start: bool,
    event: SseEvent,
    /// Whether the event has a `data` line.
    has_data: bool,
    ready: VecDeque<SseEvent>,
}

impl SseReader {
    /// A reader for events of at most `limit` bytes.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            line: Vec::new(),
            after_cr: false,
            at_start: true,
            event: SseEvent::default(),
            has_data: false,
            ready: VecDeque::new(),
        }
    }

    /// Takes in the next bytes. The events in them are then given by [`poll_event`](Self::poll_event).
    ///
    /// # Errors
    /// An event is longer than the limit.
    pub fn handle_bytes(&mut self, mut bytes: &[u8]) -> Result<(), SseTooLong> {
        while !bytes.is_empty() {
            if std::mem::take(&mut self.after_cr) && bytes[0] == b'\n' {
                bytes = &bytes[1..];
                continue;
            }
            let Some(end) = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r')) else {
                return self.add(bytes);
            };
            self.add(&bytes[..end])?;
            self.after_cr = bytes[end] == b'\r';
            bytes = &bytes[end + 1..];
            let line = std::mem::take(&mut self.line);
            self.handle_line(&line);
        }
        Ok(())
    }

    /// The next event that is whole.
    pub fn poll_event(&mut self) -> Option<SseEvent> {
        self.ready.pop_front()
    }

    fn add(&mut self, bytes: &[u8]) -> Result<(), SseTooLong> {
        let SseEvent { kind, data, id, .. } = &self.event;
        let kept = kind.len() + data.len() + id.as_ref().map_or(0, String::len);
        if kept + self.line.len() + bytes.len() > self.limit {
            return Err(SseTooLong { limit: self.limit });
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn handle_line(&mut self, line: &[u8]) {
        let line = match std::mem::take(&mut self.at_start) {
            true => line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(line),
            false => line,
        };
        if line.is_empty() {
            return self.dispatch();
        }
        let (field, value) = match line.iter().position(|byte| *byte == b':') {
            Some(at) => {
                let value = &line[at + 1..];
                (&line[..at], value.strip_prefix(b" ").unwrap_or(value))
            }
            None => (line, &[][..]),
        };
        let text = || String::from_utf8_lossy(value).into_owned();
        match field {
            b"data" => {
                if std::mem::replace(&mut self.has_data, true) {
                    self.event.data.push(b'\n');
                }
                self.event.data.extend_from_slice(value);
            }
            b"event" => self.event.kind = text(),
            b"id" if !value.contains(&0) => self.event.id = Some(text()),
            b"retry" if !value.is_empty() && value.iter().all(u8::is_ascii_digit) => {
                self.event.retry = text().parse().ok();
            }
            // A comment begins with a colon. Other fields have no meaning.
            _ => {}
        }
    }

    /// An empty line ends an event. One that carries nothing at all is none.
    fn dispatch(&mut self) {
        self.has_data = false;
        let event = std::mem::take(&mut self.event);
        if event != SseEvent::default() {
            self.ready.push_back(event);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(bytes: &[u8]) -> Vec<SseEvent> {
        let mut reader = SseReader::new(1 << 20);
        reader.handle_bytes(bytes).unwrap();
        std::iter::from_fn(|| reader.poll_event()).collect()
    }

    fn event(kind: &str, data: &str, id: Option<&str>, retry: Option<u64>) -> SseEvent {
        let id = id.map(str::to_owned);
        SseEvent { kind: kind.to_owned(), data: data.as_bytes().to_vec(), id, retry }
    }

    /// SSE-12
    #[test]
    fn events_are_read_as_the_standard_says() {
        let data = |text: &str| event("", text, None, None);
        let cases: &[(&str, Vec<SseEvent>)] = &[
            ("data: a\n\n", vec![data("a")]),
            ("data:a\n\n", vec![data("a")]),
            ("data:  a\n\n", vec![data(" a")]),
            ("data: a\r\n\r\n", vec![data("a")]),
            ("data: a\r\r", vec![data("a")]),
            ("\u{feff}data: a\n\n", vec![data("a")]),
            ("data: a\ndata: b\n\n", vec![data("a\nb")]),
            ("data\ndata\n\n", vec![data("\n")]),
            ("data: a\n\ndata: b\n\n", vec![data("a"), data("b")]),
            (": a comment\n\n", vec![]),
            (":\n\n\n\n", vec![]),
            ("data: a\n", vec![]),
            ("event: endpoint\ndata: /m\n\n", vec![event("endpoint", "/m", None, None)]),
            ("id: 7\ndata:\n\n", vec![event("", "", Some("7"), None)]),
            ("id: 7\nretry: 500\n\n", vec![event("", "", Some("7"), Some(500))]),
            ("id: a\0b\ndata: x\n\n", vec![data("x")]),
            ("retry: 5x\ndata: x\n\n", vec![data("x")]),
            ("retry: 99999999999999999999999\ndata: x\n\n", vec![data("x")]),
            ("unknown: 1\ndata: x\n\n", vec![data("x")]),
            ("data: x:y\n\n", vec![data("x:y")]),
        ];
        for (text, wanted) in cases {
            assert_eq!(&read(text.as_bytes()), wanted, "{text:?}");
        }
    }

    #[test]
    fn an_event_without_end_is_refused_at_the_limit() {
        let mut reader = SseReader::new(100);
        reader.handle_bytes(b"data: ").unwrap();
        let mut taken = 0;
        while reader.handle_bytes(b"0123456789").is_ok() {
            taken += 10;
            assert!(taken <= 100);
        }
        let mut reader = SseReader::new(100);
        let lines = (0..1000).find(|_| reader.handle_bytes(b"data: 0123456789\n").is_err());
        assert!(lines.is_some_and(|lines| lines < 12));
        let mut reader = SseReader::new(100);
        (0..1000).for_each(|_| reader.handle_bytes(b": 0123456789\n").unwrap());
    }

    proptest! {
        #[test]
        fn any_cut_of_the_bytes_gives_the_same_events(
            pieces in proptest::collection::vec("(data|event|id|retry|:)?(: ?)?[a-c0-9]{0,3}(\n|\r|\r\n){0,3}", 0..20),
            cuts in proptest::collection::vec(0usize..400, 0..20),
        ) {
            let text = pieces.concat();
            let bytes = text.as_bytes();
            let mut reader = SseReader::new(1 << 20);
            let mut events = Vec::new();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|at| at.min(bytes.len())).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            for cut in cuts.windows(2) {
                reader.handle_bytes(&bytes[cut[0]..cut[1]]).unwrap();
                events.extend(std::iter::from_fn(|| reader.poll_event()));
            }
            prop_assert_eq!(events, read(bytes));
        }
    }
}
