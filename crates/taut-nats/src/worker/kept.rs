//! What was sent last for calls that have ended, for edges that ask for it again.
//!
//! An answer can be lost between here and its edge, when a broker dies or a connection breaks. The edge
//! then asks for it. Knows bytes and age; must not know why something was lost.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;

use crate::frame::{Frame, Kind};
use crate::names::CallName;

/// How long an answer is kept. An edge asks for it for a shorter time.
const AGE: Duration = Duration::from_secs(60);

/// What an entry takes beside its bytes, about.
const ENTRY: usize = 1024;

/// The newest answers, oldest first. They are seldom asked for, so they are searched and not indexed.
pub(super) struct Kept {
    limit: usize,
    bytes: usize,
    answers: VecDeque<Answer>,
}

/// What was sent for a call and not acknowledged.
struct Answer {
    call: CallName,
    ended: Instant,
    size: usize,
    sent: Sent,
}

/// What was sent.
enum Sent {
    /// A whole answer without headers, as nearly all are.
    Plain(Bytes),
    Frames(Vec<Frame>),
}

/// A whole answer without headers.
pub(super) fn plain_answer(json: Bytes) -> Frame {
    Frame { payload: json, ..Frame::bare(Kind::Answer) }
}

impl Kept {
    /// Keeps up to `limit` bytes, and the newest answer even if it is longer.
    pub(super) fn new(limit: usize) -> Self {
        Self { limit, bytes: 0, answers: VecDeque::new() }
    }

    /// Keeps what was sent for a call and not acknowledged.
    pub(super) fn keep(&mut self, call: CallName, mut frames: Vec<Frame>) {
        if frames.is_empty() {
            return;
        }
        // A part shares its memory with the whole message.
        for frame in frames.iter_mut().filter(|frame| !frame.is_plain()) {
            frame.payload = Bytes::copy_from_slice(&frame.payload);
        }
        let bytes = frames.iter().map(|frame| frame.payload.len()).sum();
        self.add(call, bytes, Sent::Frames(frames), Instant::now());
    }

    /// Keeps the answer to a call that has ended now.
    pub(super) fn keep_plain(&mut self, call: CallName, json: Bytes, now: Instant) {
        self.add(call, json.len(), Sent::Plain(json), now);
    }

    fn add(&mut self, call: CallName, bytes: usize, sent: Sent, ended: Instant) {
        let size = ENTRY + bytes;
        while let Some(oldest) = self.answers.front()
            && (self.bytes + size > self.limit || ended - oldest.ended > AGE)
        {
            self.bytes -= oldest.size;
            self.answers.pop_front();
        }
        self.bytes += size;
        self.answers.push_back(Answer { call, ended, size, sent });
    }

    /// What an edge has not got of a call, if it has taken `count` messages. `None` if the call is not known.
    pub(super) fn after(&self, call: &CallName, count: u64) -> Option<Vec<Frame>> {
        let answer = self.answers.iter().rev().find(|answer| answer.call == *call)?;
        let wanted = |frame: &Frame| !frame.is_data() || frame.sequence >= count;
        let frames = match &answer.sent {
            Sent::Plain(json) => vec![plain_answer(json.clone())],
            Sent::Frames(frames) => frames.clone(),
        };
        Some(frames.into_iter().filter(wanted).collect())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn name(reply: &str) -> CallName {
        CallName(reply.into())
    }

    fn answer(length: usize) -> Vec<Frame> {
        vec![Frame { payload: vec![0; length].into(), ..Frame::bare(Kind::Answer) }]
    }

    #[tokio::test(start_paused = true)]
    async fn the_newest_are_kept_within_bytes_and_time() {
        let mut kept = Kept::new(3 * (ENTRY + 100));
        for reply in ["a", "b", "c", "d"] {
            kept.keep(name(reply), answer(100));
        }
        assert!(kept.after(&name("a"), 0).is_none());
        assert_eq!(kept.after(&name("b"), 0).unwrap(), answer(100));
        assert_eq!(kept.bytes, 3 * (ENTRY + 100));
        // One that is too long for the limit is alone.
        kept.keep(name("long"), answer(10_000));
        assert_eq!(kept.answers.len(), 1);
        tokio::time::advance(AGE + Duration::from_secs(1)).await;
        kept.keep(name("late"), answer(1));
        assert!(kept.after(&name("long"), 0).is_none() && kept.after(&name("late"), 0).is_some());
        assert_eq!(kept.bytes, ENTRY + 1);
    }

    #[test]
    fn only_what_is_missing_is_sent_again() {
        let mut kept = Kept::new(1 << 20);
        let part = |sequence| Frame { sequence, ..answer(9).remove(0) };
        kept.keep(name("a"), vec![part(5), part(6)]);
        assert_eq!(kept.after(&name("a"), 6).unwrap(), [part(6)]);
        assert_eq!(kept.after(&name("a"), 7).unwrap(), []);
        let failed = Frame::bare(Kind::Failed { may_have_run: true });
        kept.keep(name("b"), vec![failed.clone()]);
        assert_eq!(kept.after(&name("b"), 3).unwrap(), [failed]);
        let plain = plain_answer(vec![0; 9].into());
        kept.keep_plain(name("d"), plain.payload.clone(), Instant::now());
        assert_eq!(kept.after(&name("d"), 0).unwrap(), [plain]);
        assert_eq!(kept.after(&name("d"), 1).unwrap(), []);
        kept.keep(name("c"), Vec::new());
        assert!(kept.after(&name("c"), 0).is_none());
    }
}
