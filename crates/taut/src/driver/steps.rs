//! The steps of every message as lines that a person can read, for a debug mode.
//!
//! The other half of `tap.rs`: it knows the fields that are told there, and puts them into words.
//! Must not know where the lines go.

use std::fmt::{Debug, Write};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};
use tracing_subscriber::Layer;

/// Every step of every message as one line of text, for a debug mode: a subscriber for `tracing`, and a
/// `Layer` for programs that have a subscriber already (`registry().with(steps)`).
///
/// Secrets that go by their usual names (`apiKey`, `password`, `Authorization` …) are already masked
/// in what it tells; the sink can take out what else must not be shown.
///
/// ```no_run
/// # fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use std::io::Write;
///
/// let steps = taut::Steps::new(|line: &str| {
///     let _ = writeln!(std::io::stderr(), "{line}");
/// });
/// tracing::subscriber::set_global_default(steps.with(env!("CARGO_CRATE_NAME")))?;
/// # Ok(())
/// # }
/// ```
///
/// ```text
/// [mcp] stdin chunk=156
/// [mcp] recv method=initialize id=0 (line) bytes=155 at=0
/// [mcp] recv json={"id":0,"jsonrpc":"2.0","method":"initialize","params":{…}}
/// [mcp] send (line) bytes=320 (result) id=0
/// ```
#[derive(Debug)]
#[must_use = "nothing is shown until events are given to it"]
pub struct Steps<F> {
    sink: F,
    crates: Vec<&'static str>,
    source: &'static str,
    sides: bool,
}

impl<F: Fn(&str) + Send + Sync + 'static> Steps<F> {
    /// Hands each line to `sink`, without a newline: what taut does, and nobody else.
    pub fn new(sink: F) -> Self {
        Self { sink, crates: vec!["taut"], source: "stdin", sides: false }
    }

    /// The events of this crate as well: your own.
    pub fn with(mut self, name: &'static str) -> Self {
        self.crates.push(name);
        self
    }

    /// Whether the event is of one of the crates that are shown.
    fn shows(&self, metadata: &Metadata<'_>) -> bool {
        let of = |name: &&str| metadata.target().split("::").next() == Some(*name);
        self.crates.iter().any(of)
    }

    fn show(&self, event: &Event<'_>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        (self.sink)(&fields.line(event.metadata().target(), self.source, self.sides));
    }
}

setters! { Steps<F>, [F: Fn(&str) + Send + Sync + 'static];
    /// What bytes come from: `stdin`, unless a client says that it is the server's `stdout`.
    source(name: &'static str) => source;

    /// Says `[front]` or `[back]` instead of `[mcp]`, for a program that has connections to clients and
    /// to servers: a proxy.
    sides() => sides = true;
}

/// Beside other layers: what is not shown here is left to them.
impl<S: Subscriber, F: Fn(&str) + Send + Sync + 'static> Layer<S> for Steps<F> {
    fn on_event(&self, event: &Event<'_>, _: tracing_subscriber::layer::Context<'_, S>) {
        if self.shows(event.metadata()) {
            self.show(event);
        }
    }
}

impl<F: Fn(&str) + Send + Sync + 'static> Subscriber for Steps<F> {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        self.shows(metadata)
    }

    fn event(&self, event: &Event<'_>) {
        self.show(event);
    }

    // Spans are passed over: a step stands for itself.
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

#[derive(Default)]
struct Fields(Vec<(&'static str, String)>);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.push((field.name(), format!("{value:?}")));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.push((field.name(), value.to_owned()));
    }
}

impl Fields {
    fn text(&self, name: &str) -> &str {
        self.0.iter().find(|(known, _)| *known == name).map_or("", |(_, value)| value)
    }

    fn line(&self, target: &str, source: &str, sides: bool) -> String {
        let of = |name| self.text(name);
        let (tag, source) = match (sides, of("serving")) {
            (true, "true") => ("front", "received"),
            (true, "false") => ("back", "received"),
            _ => ("mcp", source),
        };
        let (bytes, method, id, at) = (of("bytes"), of("method"), of("id"), of("offset"));
        let (framing, header) = match of("framing") {
            "lines" => ("line", ""),
            _ => ("framed", " headerEnd=found"),
        };
        let mark = match (of("bom"), of("cr")) {
            ("true", _) => " byte-order mark dropped",
            (_, "true") => " carriage return dropped",
            _ => "",
        };
        match (of("message"), of("way")) {
            ("read", _) => format!("[{tag}] {source} chunk={bytes}"),
            ("frame", "recv") => format!(
                "[{tag}] recv method={method} id={id} ({framing}) bytes={bytes} at={at}{header}{mark}"
            ),
            ("frame", _) => format!("[{tag}] send ({framing}) bytes={bytes} {method} id={id}"),
            ("json", way) => format!("[{tag}] {way} json={}", of("json")),
            ("stderr", _) => {
                let tag = if sides { "back" } else { tag };
                format!("[{tag}] stderr: {}", of("line"))
            }
            ("bad header", _) => format!("[{tag}] headerEnd=bad fault={:?} at={at}", of("fault")),
            ("broken payload", _) if of("found").is_empty() => {
                format!("[{tag}] recv not JSON content-length={} at={at}", of("given"))
            }
            ("broken payload", _) => format!(
                "[{tag}] recv content-length={} does not fit: {} bytes found at={at}",
                of("given"),
                of("found")
            ),
            (message, _) => self.plain(target, message),
        }
    }

    /// An event that is no step of a message, with its fields as they are.
    fn plain(&self, target: &str, message: &str) -> String {
        let mut line = format!("[{target}] {message}");
        for (name, value) in
            self.0.iter().filter(|(name, _)| !["message", "serving", "link"].contains(name))
        {
            let _ = write!(line, " {name}={value}");
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::super::tap::Tap;
    use super::*;
    use crate::wire::{Decoder, Limits};

    /// With a single subscriber `tracing` judges by the thread that happens to look, which may be another test's;
    /// with two it asks both.
    fn second() -> tracing::Dispatch {
        tracing::Dispatch::new(Steps::new(|_: &str| ()).with("mine"))
    }

    /// What is told while these bytes come in and those go out.
    fn told(received: &[u8], sent: &[u8]) -> Vec<String> {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let (keep, _second) = (lines.clone(), second());
        let steps = Steps::new(move |line: &str| keep.lock().unwrap().push(line.to_owned()));
        tracing::subscriber::with_default(steps.with("mine"), || {
            let (mut tap, mut decoder) = (Tap::new(true), Decoder::new(Limits::default()));
            tap.read(received.len());
            decoder.push(received);
            while let Some(frame) = decoder.poll_frame() {
                tap.received(&frame);
            }
            tap.sent(sent);
            tracing::debug!(target: "mine::tools", tool = "add", "ask");
            tracing::debug!(target: "minerals", "not of that crate");
        });
        std::mem::take(&mut *lines.lock().unwrap())
    }

    #[test]
    fn each_step_is_one_line_in_the_words_of_the_transport() {
        let ping = br#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{"apiKey":"hunter2"}}"#;
        let line = [b"\xEF\xBB\xBF", ping.as_slice(), b"\n"].concat();
        let lines = told(&line, b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n");
        // Where the mark is dropped, the message begins behind it.
        let recv = "[mcp] recv method=ping id=1 (line) bytes=70 at=3 byte-order mark dropped";
        assert_eq!(lines[..2], ["[mcp] stdin chunk=74", recv]);
        assert!(lines[2].starts_with("[mcp] recv json={"), "{lines:?}");
        assert!(lines[2].contains(r#""apiKey":"***""#), "{lines:?}");
        assert_eq!(lines[3], "[mcp] send (line) bytes=36 (result) id=1");
        assert!(lines[4].starts_with("[mcp] send json={"), "{lines:?}");
        assert_eq!(lines[5..], ["[mine::tools] ask tool=add"]);
    }

    #[test]
    fn it_composes_with_other_layers_and_takes_nothing_from_them() {
        use tracing_subscriber::layer::SubscriberExt;
        let (ours, theirs) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Mutex::new(Vec::new())));
        let (ours_too, theirs_too, _second) = (ours.clone(), theirs.clone(), second());
        let base = Steps::new(move |line: &str| theirs_too.lock().unwrap().push(line.to_owned()))
            .with("other");
        let layer = Steps::new(move |line: &str| ours_too.lock().unwrap().push(line.to_owned()));
        tracing::subscriber::with_default(SubscriberExt::with(base, layer), || {
            tracing::info!(target: "taut::wire", "of ours");
            tracing::info!(target: "other", "of others");
        });
        assert_eq!(*ours.lock().unwrap(), ["[taut::wire] of ours"]);
        assert_eq!(*theirs.lock().unwrap(), ["[taut::wire] of ours", "[other] of others"]);
    }

    #[test]
    fn a_carriage_return_is_told() {
        let lines = told(b"{}\r\n", b"");
        assert!(lines[1].ends_with("(line) bytes=2 at=0 carriage return dropped"), "{lines:?}");
    }

    #[test]
    fn headers_show_whether_they_were_good() {
        let lines = told(b"Content-Length: 2\r\n\r\n{}Content-Length: x\r\n\r\n", b"");
        assert!(lines[1].contains("(framed) bytes=2 at=0 headerEnd=found"), "{lines:?}");
        assert!(lines[3].starts_with("[mcp] headerEnd=bad fault="), "{lines:?}");
    }
}
