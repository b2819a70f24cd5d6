//! Which request a message that leaves belongs to, for transports that carry whole messages.
//!
//! Knows ids and the order of messages; must not know what a message says. A byte stream needs none of
//! this, so nothing is kept unless [`Peer::track_relations`] asks for it.

use std::collections::VecDeque;

use super::Peer;
use crate::rpc::id::Id;

/// How a message of ours is related to a request of the other side.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Relation {
    /// Not at all.
    Unrelated,
    /// Progress, a log line or a question that belongs to this request.
    About(Id),
    /// The answer to this request, which is finished now.
    Answer(Id),
    /// No message: this request was withdrawn, and nothing more comes of it.
    Withdrawn(Id),
}

/// The relations of the messages that wait to be written, oldest first.
#[derive(Debug, Default)]
pub(super) struct Relations {
    kept: Option<VecDeque<Relation>>,
    /// What the next message is about.
    pub(super) next: Option<Id>,
}

impl Relations {
    /// A message is written; `answered` is the request that it answers.
    #[inline]
    pub(super) fn add(&mut self, answered: Option<&Id>) {
        if self.kept.is_some() {
            self.keep(answered);
        }
    }

    #[cold]
    fn keep(&mut self, answered: Option<&Id>) {
        let relation = match (answered, self.next.take()) {
            (Some(id), _) => Relation::Answer(id.clone()),
            (None, Some(id)) => Relation::About(id),
            (None, None) => Relation::Unrelated,
        };
        self.kept.get_or_insert_default().push_back(relation);
    }

    pub(super) fn withdrawn(&mut self, id: &Id) {
        if let Some(kept) = &mut self.kept {
            kept.push_back(Relation::Withdrawn(id.clone()));
        }
    }

    /// Says what the next message is about. Nothing is kept unless it is wanted.
    pub(super) fn about(&mut self, id: Option<&Id>) {
        if self.kept.is_some() {
            self.next = id.cloned();
        }
    }
}

impl Peer {
    /// From now on it is noted which request each message belongs to. Take the notes with
    /// [`take_relations`](Self::take_relations) whenever the [output](Self::output) is taken.
    pub fn track_relations(&mut self) {
        self.relations.kept.get_or_insert_default();
    }

    /// The relations of all messages that were written since the last time, in their order. A
    /// [`Relation::Withdrawn`] stands between messages and has none of its own.
    pub fn take_relations(&mut self) -> VecDeque<Relation> {
        self.relations.kept.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Says which request the next message is about.
    #[cfg(feature = "tokio")]
    pub(crate) fn about(&mut self, id: Option<&Id>) {
        self.relations.about(id);
    }
}
