//! What comes in: frame → message → event, and what is done about frames that are none.

use std::time::Instant;

use super::{Event, Events, Peer, Trouble, TroubleKind};
use crate::rpc::error::{ErrorObject, excerpt};
use crate::rpc::message::{Fault, Malformed, Message, Messages};
use crate::rpc::read::{Salvage, read, salvage};
use crate::rpc::write;
use crate::secrets::masked;
use crate::wire::{Frame, Framing};

/// After so many bad frames in a row they are no longer answered: two peers that take each other's
/// errors for garbage must not echo for ever.
const STORM: u32 = 100;

/// Lines for the log that wait at most; a flood of garbage is one line, not a million.
const TROUBLES: usize = 64;

impl Peer {
    /// Takes in one frame.
    #[inline]
    pub fn handle_frame<'a>(&mut self, now: Instant, frame: Frame<'a>) -> Events<'a> {
        match frame {
            Frame::Message { bytes, framing, offset, .. }
                if self.config.only_framing.is_some_and(|only| only != framing) =>
            {
                let malformed = Malformed::new(Fault::Framing);
                Events::One(self.take_malformed(malformed, framing, offset, bytes))
            }
            Frame::Message { bytes, framing, offset, bom, cr } => {
                if bom && !std::mem::replace(&mut self.bom_seen, true) {
                    self.note(TroubleKind::ByteOrderMark, offset, b"");
                }
                if cr && !std::mem::replace(&mut self.cr_seen, true) {
                    self.note(TroubleKind::CarriageReturn, offset, b"");
                }
                match read(bytes) {
                    Ok(Messages::One(message)) => {
                        self.sound(framing);
                        let framing = self.in_kind(framing);
                        Events::One(self.take_message(now, message, framing, offset, None))
                    }
                    Ok(Messages::Batch(entries)) => self.take_batch(now, entries, framing, offset),
                    Err(malformed) => {
                        Events::One(self.take_unread(malformed, framing, offset, bytes))
                    }
                }
            }
            Frame::TooLong { prefix, framing, offset } => {
                let found = salvage(prefix);
                if self.is_response(&found) {
                    // F10: it fails its call, which learns why.
                    self.note(TroubleKind::Malformed(Fault::TooLong), offset, prefix);
                    return Events::One(self.take_bad_response(found.id.as_ref(), Fault::TooLong));
                }
                let malformed = Malformed { kind: Fault::TooLong, id: found.id };
                Events::One(self.take_malformed(malformed, framing, offset, prefix))
            }
            Frame::Broken { bytes, given, found, offset } => {
                Events::One(self.take_broken(bytes, given, found, offset))
            }
            Frame::Refused { prefix, offset } => {
                self.note(TroubleKind::Malformed(Fault::Header), offset, prefix);
                Events::One(None)
            }
            Frame::BadHeader { fault, offset } => {
                self.note(
                    TroubleKind::Malformed(Fault::Header),
                    offset,
                    fault.to_string().as_bytes(),
                );
                let error = ErrorObject::new(Fault::Header.code(), fault.to_string());
                self.answer_garbage(None, &error, offset);
                Events::One(None)
            }
        }
    }

    /// Takes in what is no message. A framed one that is no JSON may only have the wrong length.
    fn take_unread(
        &mut self,
        malformed: Malformed,
        framing: Framing,
        offset: u64,
        bytes: &[u8],
    ) -> Option<Event<'static>> {
        let unread = matches!(malformed.kind, Fault::Json | Fault::SpansLines | Fault::Encoding);
        self.doubtful = self.doubting && unread;
        if self.doubtful && framing == Framing::Headers {
            self.doubted = Some(malformed);
            return None;
        }
        self.take_malformed(malformed, framing, offset, bytes)
    }

    /// A payload that is no JSON, of which the decoder knows whether the length was wrong.
    fn take_broken(
        &mut self,
        bytes: &[u8],
        given: usize,
        found: Option<usize>,
        offset: u64,
    ) -> Option<Event<'static>> {
        let doubted = self.doubted.take();
        if self.config.serving && self.heard.is_none() {
            self.framing = Framing::Headers;
        }
        let Some(found) = found else {
            let malformed = doubted.unwrap_or_else(|| Malformed::new(Fault::Json));
            return self.take_malformed(malformed, Framing::Headers, offset, bytes);
        };
        // It stands alone where a server's last lines are shown, so it says what the numbers are.
        let told = format!("Content-Length {given}, but the message has {found} bytes");
        self.note(TroubleKind::Malformed(Fault::Length), offset, told.as_bytes());
        let message = salvage(bytes);
        if self.is_response(&message) {
            return self.take_bad_response(message.id.as_ref(), Fault::Length);
        }
        let words = format!("{}: {given} given, {found} found", Fault::Length);
        let error = ErrorObject::new(Fault::Length.code(), words);
        self.answer_garbage(message.id.as_ref(), &error, offset);
        None
    }

    /// Whether the beginning of a message shows a response. One that has neither a method nor a result, but an id
    /// that we wait for, is one.
    fn is_response(&self, found: &Salvage) -> bool {
        let awaited = || found.id.as_ref().is_some_and(|id| self.awaits(id));
        found.response || !found.request && awaited()
    }

    fn take_batch<'a>(
        &mut self,
        now: Instant,
        entries: Vec<Result<Message<'a>, Malformed>>,
        framing: Framing,
        offset: u64,
    ) -> Events<'a> {
        if self.batches_refused {
            // RPC-26; but an array of responses is not answered, as one response is not.
            let kind = Fault::BatchRefused;
            if entries.iter().all(is_response) {
                self.note(TroubleKind::Malformed(kind), offset, b"[");
                return Events::One(None);
            }
            return Events::One(self.take_malformed(Malformed::new(kind), framing, offset, b"["));
        }
        let sound = entries.iter().any(Result::is_ok);
        if sound {
            self.sound(framing);
        } else if self.spanning && framing == Framing::Lines {
            // F12: an array on a line of its own, inside a message that spans lines.
            return Events::One(None);
        }
        let answering = (sound || self.count_bad(offset)) && self.config.serving;
        let framing = self.in_kind(framing);
        let batch = self.open_batch(entries.len(), framing);
        let mut events = Vec::with_capacity(entries.len());
        for entry in entries {
            let event = match entry {
                Ok(message @ Message::Request { .. }) => {
                    self.take_message(now, message, framing, offset, Some(batch))
                }
                Ok(message) => {
                    let event = self.take_message(now, message, framing, offset, None);
                    self.shrink_batch(batch);
                    event
                }
                Err(malformed) => self.take_bad_entry(malformed, offset, batch, answering),
            };
            events.extend(event);
        }
        Events::Many(events.into_iter())
    }

    fn take_bad_entry(
        &mut self,
        malformed: Malformed,
        offset: u64,
        batch: u64,
        answering: bool,
    ) -> Option<Event<'static>> {
        let answerable = malformed.is_answerable();
        let Malformed { kind, id } = malformed;
        self.note(TroubleKind::Malformed(kind), offset, b"");
        if answerable && answering {
            let (id, error) = (id.as_ref().ok_or(self.no_id), self.describe(kind));
            self.keep_in_batch(batch, id, |out| write::error(out, id, &error));
        }
        self.shrink_batch(batch);
        // Only what is a response says something about a call of ours.
        if kind.is_response() { self.take_bad_response(id.as_ref(), kind) } else { None }
    }

    fn take_message<'a>(
        &mut self,
        now: Instant,
        message: Message<'a>,
        framing: Framing,
        offset: u64,
        batch: Option<u64>,
    ) -> Option<Event<'a>> {
        match message {
            Message::Request { id, method, params } => {
                self.take_request(id, method, params, framing, offset, batch)
            }
            Message::Notification { method, params } => {
                let dialect = self.config.dialect;
                if method == dialect.cancel {
                    let withdrawn = self.withdraw(&params);
                    // CAN-11: to a calling side it may be about what that has opened itself.
                    let ours = withdrawn.is_none() && !self.config.serving;
                    withdrawn.or_else(|| ours.then_some(Event::Notification { method, params }))
                } else if Some(&*method) == dialect.progress {
                    self.take_progress(now, params)
                } else {
                    Some(Event::Notification { method, params })
                }
            }
            Message::Response { id, outcome } => self.take_response(id, outcome, offset),
        }
    }

    /// How the other side framed its last sound message.
    #[must_use]
    pub fn heard(&self) -> Option<Framing> {
        self.heard
    }

    /// A frame held a message: the peer is sound again, and this is how it frames.
    fn sound(&mut self, framing: Framing) {
        self.bad_in_a_row = 0;
        self.spanning = false;
        self.heard = Some(framing);
        if self.config.serving {
            self.framing = framing;
        }
    }

    /// How the answer to a frame is framed. F14: a calling side never mixes framings.
    fn in_kind(&self, framing: Framing) -> Framing {
        if self.config.serving { framing } else { self.framing }
    }

    fn take_malformed(
        &mut self,
        malformed: Malformed,
        framing: Framing,
        offset: u64,
        bytes: &[u8],
    ) -> Option<Event<'static>> {
        let answerable = malformed.is_answerable();
        let Malformed { mut kind, id } = malformed;
        if kind == Fault::SpansLines {
            let open = matches!(bytes.trim_ascii_start().first(), Some(b'{' | b'['));
            if framing == Framing::Headers || !open {
                kind = Fault::Json;
            }
        }
        let event = match kind {
            kind if kind.is_response() => self.take_bad_response(id.as_ref(), kind),
            _ => None,
        };
        // F12: one report for a message that spans lines, not one for each of its lines.
        if self.spanning && framing == Framing::Lines {
            return event;
        }
        self.spanning |= kind == Fault::SpansLines;
        self.note(TroubleKind::Malformed(kind), offset, bytes);
        if answerable {
            let error = self.describe(kind);
            self.answer_garbage(id.as_ref(), &error, offset);
        }
        event
    }

    fn describe(&self, kind: Fault) -> ErrorObject {
        let text = match kind {
            Fault::TooLong => {
                let limit = self.config.limits.message;
                format!("message longer than the limit of {limit} bytes, or than memory allows")
            }
            _ => kind.to_string(),
        };
        ErrorObject::new(kind.code(), text)
    }

    /// Says that a message which has not come whole is given up, and why.
    #[cfg(feature = "tokio")]
    pub(crate) fn refuse_unfinished(&mut self, why: &str) {
        self.answer_garbage(None, &ErrorObject::invalid_request(why.to_owned()), 0);
    }

    fn answer_garbage(&mut self, id: Option<&super::Id>, error: &ErrorObject, offset: u64) {
        if self.count_bad(offset) && self.config.serving {
            self.relations.add(id);
            let id = id.ok_or(self.no_id);
            self.out.frame(self.framing, |out| write::error(out, id, error));
        }
    }

    /// One more bad frame: whether it may still be answered.
    fn count_bad(&mut self, offset: u64) -> bool {
        self.bad_in_a_row = self.bad_in_a_row.saturating_add(1);
        if self.bad_in_a_row == STORM {
            self.note(TroubleKind::Storm, offset, b"");
        }
        self.bad_in_a_row < STORM
    }

    pub(super) fn note(&mut self, kind: TroubleKind, offset: u64, bytes: &[u8]) {
        if self.troubles.len() < TROUBLES {
            /// Long enough for any excerpt, however wide its characters.
            const LOOKED_AT: usize = 1024;
            let text = masked(&bytes[..bytes.len().min(LOOKED_AT)]);
            self.troubles.push_back(Trouble { kind, offset, excerpt: excerpt(&text) });
        }
    }
}

fn is_response(entry: &Result<Message<'_>, Malformed>) -> bool {
    match entry {
        Ok(message) => matches!(message, Message::Response { .. }),
        Err(malformed) => malformed.kind.is_response(),
    }
}
