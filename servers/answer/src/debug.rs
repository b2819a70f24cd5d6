//! Debug lines on stderr, and in a file: each step of each message, and of each question.
//!
//! taut tells its steps through `tracing`, target `taut::wire`; this puts them into the words that
//! users of the original know. Must not let the key through, whoever put it into a message.

use std::fmt::Debug;
use std::fs::File;
use std::io::{Write, stderr};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::config::Secret;

/// Says one line on stderr. Not `eprintln!`, which panics when a host has closed it.
pub fn say(line: &str) {
    let _ = stderr().write_all(format!("{line}\n").as_bytes());
}

/// Where debug lines go, and what must not be in them.
pub struct Log {
    pub file: Option<File>,
    pub key: Secret,
}

impl Subscriber for Log {
    /// taut and taut_answer; not the HTTP and TLS libraries.
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("taut")
    }

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let line = self.key.hide_in(&fields.line(event.metadata().target()));
        if let Some(mut file) = self.file.as_ref() {
            let _ = file.write_all(format!("{line}\n").as_bytes());
        }
        say(&line);
    }

    // Nobody here opens spans.
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
    fn line(&self, target: &str) -> String {
        let f = |name| self.0.iter().find(|(known, _)| *known == name).map_or("", |(_, v)| v);
        let (bytes, method, id, at) = (f("bytes"), f("method"), f("id"), f("offset"));
        let (framing, header) = match f("framing") {
            "lines" => ("line", ""),
            _ => ("framed", " headerEnd=found"),
        };
        let mark = if f("bom") == "true" { " byte-order mark dropped" } else { "" };
        match (f("message"), f("way")) {
            ("read", _) => format!("[mcp] stdin chunk={bytes}"),
            ("frame", "recv") => format!(
                "[mcp] recv method={method} id={id} ({framing}) bytes={bytes} at={at}{header}{mark}"
            ),
            ("frame", _) => format!("[mcp] send ({framing}) bytes={bytes} {method} id={id}"),
            ("json", way) => format!("[mcp] {way} json={}", f("json")),
            ("bad header", _) => format!("[mcp] headerEnd=bad fault={:?} at={at}", f("fault")),
            (message, _) => {
                let fields = self.0.iter().filter(|(name, _)| *name != "message");
                let fields: String =
                    fields.map(|(name, value)| format!(" {name}={value}")).collect();
                format!("[{target}] {message}{fields}")
            }
        }
    }
}
