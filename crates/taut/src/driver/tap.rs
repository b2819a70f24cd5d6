//! Wire-level debug: every step of every message, through `tracing`, for who asks for it.
//!
//! Knows frames and how to hide secrets; costs one check of a flag when nobody listens. Target
//! `taut::wire`: level DEBUG for the steps, TRACE for the JSON as well.

use std::sync::atomic::{AtomicU64, Ordering};

use tracing::Level;
use tracing::level_filters::LevelFilter;

use crate::rpc::{Fault, Message, Messages, read};
use crate::secrets::masked;
use crate::wire::{Decoder, Frame, Framing, Limits};

/// Where the lines go.
pub(crate) const TARGET: &str = "taut::wire";

/// Which connection of this process something happens on.
#[derive(Clone, Copy)]
struct Place {
    /// Whether we answer on it, as a server, or ask, as a client.
    serving: bool,
    /// Its number: no other connection of this process has it.
    link: u64,
}

/// Follows one connection.
pub(crate) struct Tap {
    place: Place,
    /// Reads our own output back, so that both directions are told in the same words.
    sent: Option<Decoder>,
}

impl Tap {
    pub(crate) fn new(serving: bool) -> Self {
        static LINKS: AtomicU64 = AtomicU64::new(1);
        let link = LINKS.fetch_add(1, Ordering::Relaxed);
        Self { place: Place { serving, link }, sent: None }
    }

    /// Bytes came in.
    #[inline]
    pub(crate) fn read(&self, bytes: usize) {
        if is_on() {
            tell_read(self.place, bytes);
        }
    }

    /// A frame was found in what came in.
    #[inline]
    pub(crate) fn received(&self, frame: &Frame<'_>) {
        if is_on() {
            tell(self.place, "recv", frame);
        }
    }

    /// Bytes are about to leave.
    #[inline]
    pub(crate) fn sent(&mut self, bytes: &[u8]) {
        if is_on() && !bytes.is_empty() {
            self.tell_sent(bytes);
        }
    }

    #[cold]
    fn tell_sent(&mut self, bytes: &[u8]) {
        if !is_wanted() {
            return;
        }
        let decoder = self.sent.get_or_insert_with(|| Decoder::new(Limits::default()));
        decoder.push(bytes);
        while let Some(frame) = decoder.poll_frame() {
            tell(self.place, "send", &frame);
        }
    }
}

/// Whether anybody may listen, which is quickly said.
#[inline]
fn is_on() -> bool {
    LevelFilter::current() >= LevelFilter::DEBUG
}

/// Whether somebody does.
fn is_wanted() -> bool {
    tracing::enabled!(target: TARGET, Level::DEBUG)
}

#[cold]
fn tell_read(place: Place, bytes: usize) {
    let Place { serving, link } = place;
    tracing::debug!(target: TARGET, serving, link, bytes, "read");
}

#[cold]
fn tell(place: Place, way: &'static str, frame: &Frame<'_>) {
    if !is_wanted() {
        return;
    }
    let Place { serving, link } = place;
    match frame {
        Frame::Message { bytes, framing, offset, bom, cr } => {
            let (method, id) = name(bytes, *framing);
            tracing::debug!(
                target: TARGET, serving, link, way, %framing, bytes = bytes.len(), offset, bom, cr,
                method, id, "frame"
            );
            tracing::trace!(target: TARGET, serving, link, way, %framing, json = masked(bytes), "json");
        }
        Frame::Refused { offset, .. } => {
            tracing::debug!(target: TARGET, serving, link, way, offset, "refused");
        }
        Frame::TooLong { framing, offset, .. } => {
            tracing::debug!(target: TARGET, serving, link, way, %framing, offset, "frame over the limit");
        }
        Frame::Broken { given, found, offset, .. } => {
            tracing::debug!(target: TARGET, serving, link, way, given, found, offset, "broken payload");
        }
        Frame::BadHeader { fault, offset } => {
            tracing::debug!(target: TARGET, serving, link, way, %fault, offset, "bad header");
        }
    }
}

/// What a frame is about: its method, and its id.
fn name(bytes: &[u8], framing: Framing) -> (String, String) {
    match read(bytes) {
        Ok(Messages::One(Message::Request { id, method, .. })) => (method.into(), id.to_string()),
        Ok(Messages::One(Message::Notification { method, .. })) => (method.into(), "-".into()),
        Ok(Messages::One(Message::Response { id, outcome })) => (
            if outcome.is_ok() { "(result)" } else { "(error)" }.into(),
            id.map_or_else(|| "-".into(), |id| id.to_string()),
        ),
        Ok(Messages::Batch(entries)) => (format!("(batch of {})", entries.len()), "-".into()),
        Err(malformed) => {
            // A framed message may span lines, but this one has no end.
            let framed = framing == Framing::Headers && malformed.kind == Fault::SpansLines;
            let kind = if framed { Fault::Json } else { malformed.kind };
            (format!("({kind})"), "-".into())
        }
    }
}
