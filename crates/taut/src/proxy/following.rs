//! What a legacy session follows on a modern server.
//!
//! Knows how many changes become few streams; must not know how a stream is kept. A stream names all addresses, so one for
//! each change would cost the square of their number: what comes while one is opened is gathered for the next. An
//! address that the server does not take leaves the others alone, and the first ones are kept.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;

use super::state::{Back, FollowChange, FollowChanges, FrontState, LegacySession};
use crate::driver::{Either, Outcome, first, now};
use crate::json::{JsonBuf, JsonRef};
use crate::lock::lock;
use crate::rpc::{ErrorObject, code};

/// How long the end of a session waits for the stream that is being opened, and for the last one.
const LAST: Duration = Duration::from_secs(1);

/// When so many different addresses in a row are refused, each alone, the server is taken to be full.
const REFUSED: usize = 16;

/// A refusal that does not blame the address counts as so many.
const NOT_ITS_FAULT: usize = 4;

/// How long it is taken to be, unless an address is left meanwhile.
const FULL: Duration = Duration::from_secs(30);

impl FollowChanges {
    /// Whether an address is left out of a stream that is opened now.
    pub(super) fn is_untried(&self, uri: &str) -> bool {
        self.untried.contains(uri)
    }

    /// There is room again: an address was left, or there is another server.
    pub(super) fn has_room(&mut self) {
        (self.refused, self.full) = (0, None);
    }
}

fn done() -> Outcome {
    Ok(JsonBuf::copied(&["{}"]))
}

/// Follows an address, or leaves it. It is noted at once, so that the first to come are the first to be served; the
/// future waits for the server.
pub(super) fn change(
    session: &Arc<LegacySession>,
    front: &Arc<FrontState>,
    back: &Arc<Back>,
    adds: bool,
    uri: String,
) -> impl Future<Output = Outcome> + Send + use<> {
    let noted = note(session, front, back, adds, uri);
    async move {
        match noted {
            Ok(Some(changed)) => changed.await.unwrap_or_else(|_| {
                Err(ErrorObject::internal("the session has ended before the server has answered"))
            }),
            Ok(None) => done(),
            Err(error) => Err(error),
        }
    }
}

/// Notes a change. Nothing if it changes nothing: a client may subscribe twice.
fn note(
    session: &Arc<LegacySession>,
    front: &Arc<FrontState>,
    back: &Arc<Back>,
    adds: bool,
    uri: String,
) -> Result<Option<oneshot::Receiver<Outcome>>, ErrorObject> {
    let (done, changed) = oneshot::channel();
    let mut changes = lock(&session.changes);
    if adds {
        let mut followed = lock(&session.followed);
        if followed.contains(&uri) {
            return Ok(None);
        }
        if let Some((error, _)) = changes.full.as_ref().filter(|(_, until)| *until > now()) {
            return Err(error.clone());
        }
        followed.add(&uri)?;
        changes.untried.insert(uri.clone());
    } else {
        if !lock(&session.followed).remove(&uri) {
            return Ok(None);
        }
        changes.untried.remove(&uri);
        changes.has_room();
    }
    let (front, back) = (front.clone(), back.clone());
    changes.waiting.push(FollowChange { uri, adds, front, back, done });
    if !std::mem::replace(&mut changes.working, true) {
        tokio::spawn(work(session.clone()));
    }
    Ok(Some(changed))
}

/// Opens streams until no change waits any more, or the client has gone.
async fn work(session: Arc<LegacySession>) {
    loop {
        let changes = {
            let mut changes = lock(&session.changes);
            changes.working = !changes.waiting.is_empty();
            std::mem::take(&mut changes.waiting)
        };
        let Some(FollowChange { front, back, .. }) = changes.last() else { return };
        let (front, back) = (front.clone(), back.clone());
        let closed = async {
            front.closing.raised().await;
            tokio::time::sleep(LAST).await;
        };
        if let Either::Second(()) = first(session.follow(&front, &back, changes), closed).await {
            let mut changes = lock(&session.changes);
            changes.waiting.clear();
            changes.working = false;
            return;
        }
    }
}

impl LegacySession {
    /// Opens one stream for these changes. If the server refuses it, one for half of them, and so on.
    async fn follow(
        self: &Arc<Self>,
        front: &Arc<FrontState>,
        back: &Arc<Back>,
        all: Vec<FollowChange>,
    ) {
        let mut rest = VecDeque::from(all);
        let mut size = rest.len();
        while !rest.is_empty() {
            self.refuse_beyond(&mut rest);
            if rest.is_empty() {
                return;
            }
            let part: Vec<FollowChange> = rest.drain(..size.min(rest.len())).collect();
            self.try_now(&part);
            match self.listen(front, back).await {
                Ok(filter) => {
                    self.acknowledged(part, &filter);
                    size *= 2;
                }
                Err(error) if part.len() > 1 && may_take_fewer(&error, back) => {
                    size = part.len() / 2;
                    let mut changes = lock(&self.changes);
                    let added = part.iter().filter(|change| change.adds);
                    changes.untried.extend(added.map(|change| change.uri.clone()));
                    drop(changes);
                    part.into_iter().rev().for_each(|change| rest.push_front(change));
                }
                Err(error) => {
                    let alone = part.len() == 1 && may_take_fewer(&error, back);
                    part.into_iter().for_each(|change| self.refused(change, &error));
                    match alone {
                        true => self.count_refusal(&error),
                        false => rest.drain(..).for_each(|change| self.refused(change, &error)),
                    }
                    size = size.max(1);
                }
            }
        }
    }

    /// The next stream names these.
    fn try_now(&self, part: &[FollowChange]) {
        let mut changes = lock(&self.changes);
        for change in part {
            changes.untried.remove(&change.uri);
        }
    }

    /// A server that is full is sent no more addresses.
    fn refuse_beyond(&self, rest: &mut VecDeque<FollowChange>) {
        let full = lock(&self.changes).full.clone().filter(|(_, until)| *until > now());
        let Some((error, _)) = full else { return };
        let (adding, leaving): (VecDeque<_>, VecDeque<_>) =
            std::mem::take(rest).into_iter().partition(|change| change.adds);
        *rest = leaving;
        adding.into_iter().for_each(|change| self.refused(change, &error));
    }

    /// The server has opened a stream with this filter.
    fn acknowledged(&self, part: Vec<FollowChange>, filter: &str) {
        let uris = JsonRef::sound(filter).member("resourceSubscriptions");
        let honoured: HashSet<_> =
            uris.iter().flat_map(|uris| uris.elements()).filter_map(JsonRef::string).collect();
        for change in part {
            let (uri, adds) = (&*change.uri, change.adds);
            // It may have been left again meanwhile.
            if !adds || honoured.contains(uri) || !lock(&self.followed).contains(uri) {
                lock(&self.changes).refused = 0;
                let _ = change.done.send(done());
                continue;
            }
            let words = format!("the server does not tell of changes of {uri}");
            self.refused(change, &ErrorObject::invalid_params(words));
        }
    }

    /// The server does not take a change: it is undone.
    fn refused(&self, change: FollowChange, error: &ErrorObject) {
        let mut followed = lock(&self.followed);
        if change.adds {
            followed.remove(&change.uri);
        } else if !followed.contains(&change.uri) {
            // It was there before, so there is room.
            let _ = followed.add(&change.uri);
        }
        drop(followed);
        lock(&self.changes).untried.remove(&change.uri);
        let _ = change.done.send(Err(error.clone()));
    }

    /// One address was refused for itself.
    fn count_refusal(&self, error: &ErrorObject) {
        let mut changes = lock(&self.changes);
        changes.refused += if error.code == code::INVALID_PARAMS { 1 } else { NOT_ITS_FAULT };
        if changes.refused >= REFUSED {
            changes.full = now().checked_add(FULL).map(|until| (error.clone(), until));
        }
    }
}

/// Whether a server that has refused a stream with this error may take one with fewer addresses.
fn may_take_fewer(error: &ErrorObject, back: &Back) -> bool {
    error.code != code::METHOD_NOT_FOUND && !back.link.is_over()
}
