//! Words about what is wrong with a stream.
//!
//! Knows kinds of trouble; must not know who serves.

use crate::rpc::{Trouble, TroubleKind};
use crate::stdio;

/// Says what is wrong with a stream: in the log always, on stderr each kind once.
pub(crate) struct Reporter {
    on_stdio: bool,
    said: Vec<std::mem::Discriminant<TroubleKind>>,
}

impl Reporter {
    pub(crate) fn new(on_stdio: bool) -> Self {
        Self { on_stdio, said: Vec::new() }
    }

    pub(crate) fn say(&self, line: &str) {
        tracing::warn!("{line}");
        if self.on_stdio {
            stdio::say(line);
        }
    }

    pub(crate) fn trouble(&mut self, trouble: &Trouble) {
        let Trouble { kind, offset, excerpt, .. } = trouble;
        let line = match kind {
            TroubleKind::Malformed(fault) => {
                format!("bad message at byte {offset} of the input ({fault}): {excerpt}")
            }
            TroubleKind::ByteOrderMark => {
                "the input has a byte-order mark; it was dropped".to_owned()
            }
            TroubleKind::CarriageReturn => "the input has lines that end with CRLF".to_owned(),
            TroubleKind::Storm => {
                "100 bad messages in a row: they are no longer answered".to_owned()
            }
            TroubleKind::Late => format!("late answer to call {excerpt}, dropped"),
            TroubleKind::Unknown => format!("answer to {excerpt}, which was never asked; dropped"),
            TroubleKind::DuplicateId => format!("id {excerpt} is still in use; refused"),
            TroubleKind::Busy => format!("request {excerpt} refused: the queue is full"),
        };
        let seen = std::mem::discriminant(kind);
        // These do no harm, so they are logged only for debugging.
        let quiet =
            matches!(kind, TroubleKind::Late | TroubleKind::Unknown | TroubleKind::CarriageReturn);
        if quiet || self.said.contains(&seen) {
            tracing::debug!("{line}");
        } else {
            self.said.push(seen);
            self.say(&line);
        }
    }
}
