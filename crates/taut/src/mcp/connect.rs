//! How a client opens a connection: what to send first, and what each answer means.
//!
//! Pure: answers, exits and the time go in, actions come out. Must not know how a message is sent
//! or a process is started; `client/open/` does what this says. PRB-01 to PRB-09, LIF-01 to
//! LIF-09, VER-02; scars L2 to L5, L12, L13, L16, L17.
//!
//! | while | what happens | what it means |
//! |---|---|---|
//! | probing | a discovery with a version of ours | modern |
//! | probing | a discovery with legacy versions only | handshake with the newest of them |
//! | probing | −32022 that lists a modern version of ours | ask once more; a second one fails |
//! | probing | −32022 that lists legacy versions only | handshake with the newest of them |
//! | probing | any other error, a broken result | legacy: handshake (L3) |
//! | probing | silence for the probe's budget | legacy: handshake, same process (L2) |
//! | probing | exit | legacy: handshake in a fresh process, no probe (L4) |
//! | shaking | a version that we speak | legacy, that version |
//! | shaking | a version that we do not speak | failed (L13) |
//! | shaking | a late discovery | kept, and used if the handshake fails (L5) |
//! | shaking | an error that lists versions | probe again, or offer one of them; once (L12) |
//! | shaking | another error, and nothing was probed yet | probe: a modern server need not know `initialize` |
//! | shaking | another error, or exit, after a probe | fresh process, no probe; once (L4) |
//! | any | nothing at all for two seconds | another process beside it, other framing; once (F13) |
//! | any | the same, and not a byte of what it was sent has been read | it has not begun: asked again after as long |
//! | any | exit, and not a byte of what it was sent has been read | failed: it cannot have been the probe |
//! | any | our own request comes back | failed: an echo (L16) |
//!
//! A pinned revision leaves out the other era: legacy is not probed, modern is not shaken. A known
//! verdict only saves time: it is dropped when it turns out wrong (PRB-06).

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use serde::Deserialize;

use super::codes::UNSUPPORTED_PROTOCOL_VERSION;
use super::opened::{Agreed, ConnectFault, Discovered, Initialized};
use super::revision::{Era, Revision};
use crate::rpc::ErrorObject;
use crate::wire::Framing;

/// How long a server may be silent before another is started beside it that is asked with headers. Most servers
/// have said something by then, and a person who waits for a server that reads only headers waits no longer than
/// that. One that has not read what it was sent is still starting: its silence counts from when it reads.
const SILENCE: Duration = Duration::from_secs(2);

/// What the caller wants, and what can be done for it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    /// This revision and no other.
    pub(crate) pin: Option<Revision>,
    /// The revision that a handshake offers first; the newest unless set.
    pub(crate) offer: Option<Revision>,
    /// What an earlier connection found out.
    pub(crate) known: Option<Era>,
    /// Legacy revisions and no others.
    pub(crate) only_legacy: bool,
    /// This framing and no other.
    pub(crate) framing: Option<Framing>,
    /// How long silence counts as "perhaps modern".
    pub(crate) probe: Duration,
    /// How long it may take in all, however many processes that takes.
    pub(crate) start: Duration,
    /// Whether a fresh process can be had.
    pub(crate) restartable: bool,
}

/// What is to be done now.
#[derive(Debug)]
pub(crate) enum ConnectAction {
    /// Send `server/discover` in this revision.
    Discover(Revision),
    /// Send `initialize` with this revision.
    Initialize(Revision),
    /// Send `notifications/initialized`.
    Confirm,
    /// End the process and start another, which is spoken to in this framing.
    Restart(Framing),
    /// Leave the process alone, and start another beside it, which is asked in this framing; whichever
    /// answers first is the one. So much time has passed.
    Beside(Framing, Duration),
    /// Both sides agree.
    Done(Box<Agreed>),
    /// They do not.
    Fail(ConnectFault),
}

/// Where the opening stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ConnectState {
    /// Nothing runs yet.
    Idle,
    Probing,
    Shaking,
    Over,
}

/// The opening of one connection, as the client sees it.
#[derive(Debug)]
pub(crate) struct Connect {
    plan: Plan,
    state: ConnectState,
    framing: Framing,
    /// What the handshake asks for.
    offer: Revision,
    /// The next process is not probed.
    skip_probe: bool,
    /// The process that runs now was probed.
    probed: bool,
    /// The process that runs now said anything at all.
    heard: bool,
    /// A fresh process was had.
    restarted: bool,
    /// Another is asked beside it, or was.
    beside: bool,
    /// −32022 was answered with another probe.
    retried: bool,
    /// Another version was offered.
    reoffered: bool,
    /// A handshake that failed in favour of another probe.
    refused: Option<ConnectFault>,
    /// A discovery that came while the handshake was under way.
    kept: Option<Box<Agreed>>,
    probe_due: Option<Instant>,
    /// When another is asked beside a silent one.
    beside_due: Option<Instant>,
    /// It had read nothing when that was asked last.
    unread: bool,
    /// When everything has had its time.
    end: Option<Instant>,
    actions: VecDeque<ConnectAction>,
}

impl Connect {
    pub(crate) fn new(plan: Plan) -> Self {
        let known = plan.only_legacy || plan.known == Some(Era::Legacy);
        let legacy = plan.pin.map_or(known, |pin| !pin.is_modern());
        Self {
            plan,
            state: ConnectState::Idle,
            framing: plan.framing.unwrap_or_default(),
            offer: plan
                .pin
                .or(plan.offer)
                .filter(|offer| !offer.is_modern())
                .unwrap_or(Revision::LATEST_LEGACY),
            skip_probe: legacy,
            probed: false,
            heard: false,
            restarted: false,
            beside: false,
            retried: false,
            reoffered: false,
            refused: None,
            kept: None,
            probe_due: None,
            beside_due: None,
            unread: false,
            end: None,
            actions: VecDeque::new(),
        }
    }

    /// The next thing to do, until there is nothing more to do now.
    pub(crate) fn poll_action(&mut self) -> Option<ConnectAction> {
        self.actions.pop_front()
    }

    /// When [`handle_time`](Self::handle_time) wants to be called next.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let probe = match self.state {
            ConnectState::Probing => self.probe_due,
            ConnectState::Shaking => None,
            ConnectState::Idle | ConnectState::Over => return None,
        };
        let beside = self.beside_due.filter(|_| !self.heard);
        [probe, beside, self.end].into_iter().flatten().min()
    }

    /// The framing that the process which runs now is spoken to in.
    pub(crate) fn framing(&self) -> Framing {
        self.framing
    }

    /// A process runs, or the streams are there.
    pub(crate) fn handle_started(&mut self, now: Instant) {
        self.probed = false;
        self.heard = false;
        self.unread = false;
        self.kept = None;
        self.end = self.end.or_else(|| now.checked_add(self.plan.start));
        self.beside_due = match self.other_framing() {
            // A third of a short time is kept for it.
            true => now.checked_add(SILENCE.min(self.plan.start * 2 / 3)),
            false => None,
        };
        if self.skip_probe { self.shake(self.offer) } else { self.probe(now) }
    }

    /// Something came, whatever it was.
    pub(crate) fn handle_heard(&mut self) {
        self.heard = true;
    }

    /// The answer to `server/discover`.
    pub(crate) fn handle_discover(
        &mut self,
        now: Instant,
        answer: Result<Discovered, ConnectFault>,
    ) {
        self.heard = true;
        match self.state {
            ConnectState::Probing => match answer {
                Ok(discovered) => self.judge_discovered(discovered),
                Err(ConnectFault::Refused(error)) if error.code == UNSUPPORTED_PROTOCOL_VERSION => {
                    self.judge_unsupported(now, error);
                }
                Err(fault) => self.fall_back(fault),
            },
            // L5: the server is modern, but slow. The handshake goes on, because it was sent already.
            ConnectState::Shaking => {
                if let Ok(discovered) = answer
                    && let Some(revision) = newest(&discovered.versions, Era::Modern)
                {
                    self.kept = Some(Box::new(discovered.agree(revision)));
                }
            }
            ConnectState::Idle | ConnectState::Over => {}
        }
    }

    /// The answer to `initialize`.
    pub(crate) fn handle_initialize(
        &mut self,
        now: Instant,
        answer: Result<Initialized, ConnectFault>,
    ) {
        self.heard = true;
        if self.state != ConnectState::Shaking {
            return;
        }
        match answer {
            Ok(result) => self.judge_initialized(result),
            Err(fault) => self.shake_failed(now, fault),
        }
    }

    /// The process has ended, or its stream has. What has read nothing of what it was sent has not ended of that, so
    /// another would end as well.
    pub(crate) fn handle_exit(&mut self, has_read: bool) {
        match self.state {
            ConnectState::Idle | ConnectState::Over => {}
            _ if has_read && self.can_restart_unprobed() => self.restart(),
            _ => self.fail(ConnectFault::Exited),
        }
    }

    /// Our own request came back.
    pub(crate) fn handle_echo(&mut self) {
        if self.state != ConnectState::Over {
            self.fail(ConnectFault::Echo);
        }
    }

    /// Time has passed. `unread`: the process has not read a byte of what it was sent.
    pub(crate) fn handle_time(&mut self, now: Instant, unread: bool) {
        let due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        if due(self.beside_due)
            && matches!(self.state, ConnectState::Probing | ConnectState::Shaking)
        {
            self.ask_beside(now, unread);
        }
        match self.state {
            ConnectState::Probing if due(self.probe_due) || due(self.end) => {
                self.fall_back(ConnectFault::Silent { after: self.probe_budget() });
            }
            ConnectState::Shaking if due(self.end) => self.shake_timed_out(),
            _ => {}
        }
    }

    /// A silent one may only be slow, so it is asked on.
    fn ask_beside(&mut self, now: Instant, unread: bool) {
        self.beside_due = None;
        if self.heard || !self.other_framing() {
            return;
        }
        let was_unread = std::mem::replace(&mut self.unread, unread);
        if unread || was_unread {
            self.beside_due = now.checked_add(SILENCE);
            return;
        }
        self.beside = true;
        let left = self.end.map_or(Duration::ZERO, |end| end.saturating_duration_since(now));
        let passed = self.plan.start.saturating_sub(left);
        self.actions.push_back(ConnectAction::Beside(Framing::Headers, passed));
    }

    fn probe(&mut self, now: Instant) {
        self.state = ConnectState::Probing;
        self.probed = true;
        self.probe_due = now.checked_add(self.probe_budget());
        self.actions.push_back(ConnectAction::Discover(Revision::MODERN));
    }

    fn shake(&mut self, offer: Revision) {
        self.state = ConnectState::Shaking;
        self.offer = offer;
        self.actions.push_back(ConnectAction::Initialize(offer));
    }

    fn judge_discovered(&mut self, discovered: Discovered) {
        let versions = &discovered.versions;
        match (newest(versions, Era::Modern), newest(versions, Era::Legacy)) {
            (Some(revision), _) => self.done(Box::new(discovered.agree(revision))),
            (None, Some(legacy)) if !self.pinned_modern() => self.shake(legacy),
            _ => self.fail(ConnectFault::NoCommonVersion(discovered.versions)),
        }
    }

    fn judge_unsupported(&mut self, now: Instant, error: ErrorObject) {
        let Some(versions) = versions_in(&error) else {
            return self.fall_back(ConnectFault::Refused(error));
        };
        match (newest(&versions, Era::Modern), newest(&versions, Era::Legacy)) {
            // VER-02: once; a server that refuses what it lists would be asked for ever.
            (Some(_), _) if !std::mem::replace(&mut self.retried, true) => self.probe(now),
            (None, Some(legacy)) if !self.pinned_modern() => self.shake(legacy),
            _ => self.fail(ConnectFault::NoCommonVersion(versions)),
        }
    }

    /// PRB-04, PRB-05: whatever is not recognised as modern is legacy.
    fn fall_back(&mut self, fault: ConnectFault) {
        if let Some(earlier) = self.refused.take() {
            return self.fail(earlier);
        }
        if self.pinned_modern() { self.fail(fault) } else { self.shake(self.offer) }
    }

    fn judge_initialized(&mut self, result: Initialized) {
        let agreed = Revision::parse(&result.versions).filter(|rev| !rev.is_modern());
        match agreed {
            Some(revision) if self.plan.pin.is_none_or(|pin| pin == revision) => {
                self.actions.push_back(ConnectAction::Confirm);
                self.done(Box::new(result.agree(revision)));
            }
            // LIF-07: the server chose a version that this client does not speak, so the connection ends.
            _ => self.fail(ConnectFault::Version(result.versions)),
        }
    }

    fn shake_failed(&mut self, now: Instant, fault: ConnectFault) {
        if let Some(agreed) = self.kept.take() {
            return self.done(agreed);
        }
        let versions = match &fault {
            ConnectFault::Refused(error) => versions_in(error).unwrap_or_default(),
            _ => Vec::new(),
        };
        // Who was taken for legacy, and knows no handshake, may be modern only. It need not say so.
        let unknown = matches!(fault, ConnectFault::Refused(_))
            && versions.is_empty()
            && !self.probed
            && !self.restarted;
        let may_be_modern = (unknown || newest(&versions, Era::Modern).is_some())
            && self.plan.pin.is_none()
            && !self.plan.only_legacy
            && self.refused.is_none();
        let legacy = newest(&versions, Era::Legacy)
            .filter(|version| *version != self.offer && self.plan.pin.is_none());
        if may_be_modern {
            self.refused = Some(fault);
            self.probe(now);
        } else if let Some(version) = legacy
            && !std::mem::replace(&mut self.reoffered, true)
        {
            self.shake(version);
        } else if self.can_restart_unprobed() {
            self.restart();
        } else {
            self.fail(fault);
        }
    }

    fn shake_timed_out(&mut self) {
        match self.kept.take() {
            Some(agreed) => self.done(agreed),
            None => self.fail(ConnectFault::Silent { after: self.plan.start }),
        }
    }

    /// Whether it can still be spoken to in another way.
    fn other_framing(&self) -> bool {
        self.plan.restartable
            && !self.beside
            && self.plan.framing.is_none()
            && self.framing == Framing::Lines
            && !self.pinned_modern()
    }

    fn can_restart_unprobed(&self) -> bool {
        self.probed && self.plan.restartable && !self.restarted && !self.pinned_modern()
    }

    fn restart(&mut self) {
        self.state = ConnectState::Idle;
        self.restarted = true;
        self.skip_probe = true;
        self.actions.push_back(ConnectAction::Restart(self.framing));
    }

    fn done(&mut self, agreed: Box<Agreed>) {
        self.state = ConnectState::Over;
        self.actions.push_back(ConnectAction::Done(agreed));
    }

    fn fail(&mut self, fault: ConnectFault) {
        self.state = ConnectState::Over;
        self.actions.push_back(ConnectAction::Fail(fault));
    }

    /// How long the probe may take. A server that has to be modern gets the whole time for the start.
    fn probe_budget(&self) -> Duration {
        if self.pinned_modern() {
            return self.plan.start;
        }
        // A handshake has to fit in behind it.
        self.plan.probe.min(self.plan.start / 3)
    }

    fn pinned_modern(&self) -> bool {
        self.plan.pin.is_some_and(Revision::is_modern)
    }
}

/// The newest of `versions` that belongs to `era` and is spoken here.
fn newest(versions: &[String], era: Era) -> Option<Revision> {
    versions.iter().filter_map(|name| Revision::parse(name)).filter(|rev| rev.era() == era).max()
}

/// The versions that an error lists, whatever its code.
fn versions_in(error: &ErrorObject) -> Option<Vec<String>> {
    #[derive(Deserialize)]
    struct Data {
        supported: Vec<String>,
    }
    let data: Data = serde_json::from_str(error.data.as_deref()?.get()).ok()?;
    Some(data.supported)
}

#[cfg(test)]
#[path = "connect_tests.rs"]
mod tests;
