//! A place for a connection to the server: opened on demand, and opened again when it was lost.
//!
//! Knows when to connect and what waits for it; must not know what is done with a connection. Whatever
//! comes while it opens is done in the order in which it came, and is bounded in bytes.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::connector::ProxyEvent;
use super::state::{
    Back, BackJob, BackSlot, BackState, FrontState, Identity, LocalStreams, ProxyShared, SlotPhase,
    SlotState,
};
use super::text::{closed, no_answer};
use crate::client::{Relayed, RestartPolicy};
use crate::driver::{Either, Flag, first, isolated, now};
use crate::lock::lock;
use crate::mcp::{Era, Method};
use crate::rpc::{ErrorObject, take};
use crate::transport::Principal;

/// What a job costs beside the bytes of its request.
const JOB: usize = 256;

impl BackSlot {
    /// For one legacy session alone (`dedicated`), or for several clients.
    pub(super) fn new(shared: &Arc<ProxyShared>, identity: Identity, dedicated: bool) -> Arc<Self> {
        let number = shared.next_slot.fetch_add(1, Ordering::Relaxed);
        let slot = Arc::new(Self {
            shared: Arc::downgrade(shared),
            number,
            dedicated,
            identity,
            streams: LocalStreams::new(shared.settings.max_subscription_bytes),
            sessions: Arc::default(),
            max_waiting_bytes: shared.settings.max_waiting_bytes,
            closing: Flag::default(),
            state: Mutex::default(),
        });
        lock(&shared.all).insert(number, Arc::downgrade(&slot));
        slot
    }

    fn lock(&self) -> MutexGuard<'_, SlotState> {
        lock(&self.state)
    }

    /// The connection, if it is open and nothing waits for it.
    pub(super) fn ready(&self) -> Option<Arc<Back>> {
        match &self.lock().phase {
            // One that has ended is none, although nothing has been done about it so far.
            SlotPhase::Ready(back) if !back.link.is_over() => Some(back.clone()),
            _ => None,
        }
    }

    /// How many calls are under way or wait.
    pub(super) fn load(&self) -> usize {
        match &self.lock().phase {
            SlotPhase::Idle | SlotPhase::Closed => 0,
            SlotPhase::Opening { waiting, .. } => waiting.len(),
            SlotPhase::Ready(back) => back.state.open_calls(),
        }
    }

    /// A legacy session uses it from now on.
    pub(super) fn attach(&self, front: &Arc<FrontState>) {
        let mut fronts = lock(&self.sessions.fronts);
        fronts.retain(|known| known.strong_count() > 0);
        fronts.push(Arc::downgrade(front));
        if self.dedicated {
            let _ = self.sessions.owner.set(front.link.clone());
        }
    }

    /// Does `job` with the connection: now, or when it is open, after what waits already. `size` is how
    /// many bytes the job keeps meanwhile.
    pub(super) fn run(self: &Arc<Self>, size: usize, job: BackJob) {
        let mut state = self.lock();
        match &mut state.phase {
            SlotPhase::Ready(back) if back.link.is_over() => {
                // What watches it opens the next one, as soon as its process has ended as well.
                let ended = Some(back.clone());
                let (waiting, bytes) = (vec![job], size + JOB);
                state.phase = SlotPhase::Opening { waiting, bytes, ended };
            }
            SlotPhase::Ready(back) => {
                let back = back.clone();
                drop(state);
                job(Ok(&back));
            }
            SlotPhase::Opening { bytes, .. } if *bytes + size > self.max_waiting_bytes => {
                drop(state);
                let words = format!(
                    "busy: {} bytes of requests may wait for the server to start \
                     (ProxyBuilder::max_waiting_bytes); try again",
                    self.max_waiting_bytes
                );
                job(Err(&no_answer("busy", words, false)));
            }
            SlotPhase::Opening { waiting, bytes, .. } => {
                *bytes += size + JOB;
                waiting.push(job);
            }
            SlotPhase::Idle => {
                let (waiting, bytes) = (vec![job], size + JOB);
                state.phase = SlotPhase::Opening { waiting, bytes, ended: None };
                drop(state);
                tokio::spawn(self.clone().open_after(Duration::ZERO));
            }
            SlotPhase::Closed => {
                drop(state);
                job(Err(&closed()));
            }
        }
    }

    /// Connects after `delay` and does what waits. Boxed, because a lost connection is opened again.
    fn open_after(self: Arc<Self>, delay: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(async move {
            let mut next = Some(delay);
            while let Some(delay) = next {
                next = self.open(delay).await;
            }
        })
    }

    /// One try. Returns when to make the next one, if this one has failed and there is to be another.
    async fn open(self: &Arc<Self>, delay: Duration) -> Option<Duration> {
        if !delay.is_zero()
            && let Either::Second(()) =
                first(tokio::time::sleep(delay), self.closing.raised()).await
        {
            return None;
        }
        let shared = self.shared.upgrade()?;
        let relay = Arc::new(BackState {
            shared: self.shared.clone(),
            sessions: self.sessions.clone(),
            streams: self.streams.clone(),
            promised_roots: self.identity.capabilities.roots.is_some(),
            ..BackState::default()
        });
        let mut builder = shared.settings.client.clone();
        let settings = &mut builder.settings;
        settings.relay =
            Some(Relayed { relay: relay.clone(), initialize: self.identity.initialize.clone() });
        settings.capabilities = self.identity.capabilities.clone();
        if let Some(info) = &self.identity.info {
            settings.info = info.clone();
        }
        if self.identity.era == Era::Legacy && settings.revision.is_none() {
            settings.known = Some(Era::Legacy);
        }
        let opening = shared.connector.connect(builder);
        // P4, P19: dropped half-way, it leaves nothing behind.
        let back = match first(opening, self.closing.raised()).await {
            Either::Second(()) => return None,
            Either::First(Ok(client)) => Back::new(&shared, client, relay),
            Either::First(Err(error)) => {
                let error = error.to_string();
                let words = format!("no connection to the server: {error}");
                let again = self.failed(&no_answer("unreachable", words, false), &shared);
                shared.tell(&ProxyEvent::Failed { error });
                return again;
            }
        };
        shared
            .tell(&ProxyEvent::Opened { revision: back.client.revision(), pid: back.client.pid() });
        if !self.dedicated && !back.is_modern() {
            // A session says by itself when it is ready; here there may be several, or none.
            let _ = back.link.notify(None, Method::Initialized.as_str(), None);
        }
        self.streams.attach(&back);
        let again = std::mem::replace(&mut self.lock().had, true);
        let (counted, began) = (shared.open.subscribe(), now());
        if self.settle(&back, again) {
            back.state.tell_early(&back.client.0.session.state, back.capabilities());
        }
        // Not before: it would find an end that comes at once, and no connection that was ready.
        tokio::spawn(Self::watch(Arc::downgrade(self), back, counted, began));
        None
    }

    /// Does what waits, in order, and is ready when nothing waits any more. Before that, sessions that had
    /// another connection (`again`) go on with this one. Says whether it is ready.
    fn settle(&self, back: &Arc<Back>, again: bool) -> bool {
        if again {
            self.resumed(back);
        }
        loop {
            let jobs = {
                let mut state = self.lock();
                match &mut state.phase {
                    SlotPhase::Opening { waiting, .. } if waiting.is_empty() => {
                        state.phase = SlotPhase::Ready(back.clone());
                        return true;
                    }
                    SlotPhase::Opening { waiting, bytes, .. } => {
                        *bytes = 0;
                        std::mem::take(waiting)
                    }
                    // Closed meanwhile: the connection ends with its last owner.
                    _ => return false,
                }
            };
            jobs.into_iter().for_each(|job| job(Ok(back)));
        }
    }

    /// There is no connection: what waits is told. Returns when to try again, if clients listen and the policy says
    /// so; otherwise the next request does.
    fn failed(&self, error: &ErrorObject, shared: &ProxyShared) -> Option<Duration> {
        let (waiting, again) = {
            let mut state = self.lock();
            // Closed meanwhile, it stays so.
            let SlotPhase::Opening { waiting, .. } = &mut state.phase else { return None };
            let waiting = std::mem::take(waiting);
            let again = self.next_try(&mut state, &shared.settings.restart, Duration::ZERO);
            state.phase = match again {
                Some(_) => SlotPhase::opening(),
                None => SlotPhase::Idle,
            };
            (waiting, again)
        };
        if again.is_none() {
            self.streams.give_up();
        }
        waiting.into_iter().for_each(|job| job(Err(error)));
        again
    }

    /// When to connect again after a connection that lasted so long, if clients listen and the policy says so.
    fn next_try(
        &self,
        state: &mut SlotState,
        policy: &RestartPolicy,
        uptime: Duration,
    ) -> Option<Duration> {
        // What a request starts is not counted.
        let listening = !self.sessions.all().is_empty() || !self.streams.is_empty();
        listening.then(|| state.backoff.handle_lost(policy, uptime)).flatten()
    }

    /// Waits for the end of a connection and takes care of what follows.
    async fn watch(
        slot: Weak<Self>,
        back: Arc<Back>,
        counted: watch::Receiver<()>,
        began: Instant,
    ) {
        // Nothing here keeps the connection: it ends when nobody uses it any more.
        let (ended, calls) = (back.client.0.session.over(), back.state.clone());
        drop(back);
        let closed = ended.await;
        drop(counted);
        calls.over();
        let Some(slot) = slot.upgrade() else { return };
        let Some(shared) = slot.shared.upgrade() else { return };
        let Some(again) = slot.lost(&calls, &shared.settings.restart, began) else { return };
        shared.tell(&ProxyEvent::Lost { reason: closed.to_string() });
        match again {
            Some(delay) => slot.open_after(delay).await,
            None => slot.streams.give_up(),
        }
    }

    /// The connection has ended. Returns when to open the next one, if that is wanted at all, or nothing if the
    /// connection was closed here.
    fn lost(
        &self,
        ended: &Arc<BackState>,
        policy: &RestartPolicy,
        began: Instant,
    ) -> Option<Option<Duration>> {
        let mut state = self.lock();
        let is_it = |back: &Arc<Back>| Arc::ptr_eq(&back.state, ended);
        let waited_for = match &state.phase {
            SlotPhase::Ready(back) if is_it(back) => false,
            SlotPhase::Opening { ended: Some(back), .. } if is_it(back) => true,
            _ => return None,
        };
        let uptime = now().saturating_duration_since(began);
        let again = self.next_try(&mut state, policy, uptime);
        // A request that waits tries again at once where nothing else would, as one does that comes later.
        let again = again.or_else(|| waited_for.then_some(Duration::ZERO));
        match (&mut state.phase, again) {
            (SlotPhase::Opening { ended, .. }, Some(_)) => *ended = None,
            (phase, Some(_)) => *phase = SlotPhase::opening(),
            (phase, None) => *phase = SlotPhase::Idle,
        }
        Some(again)
    }

    /// A new connection stands in for a lost one: sessions go on, and clients are told that everything may
    /// have changed.
    fn resumed(&self, back: &Arc<Back>) {
        for front in self.sessions.all() {
            if let Some(session) = front.session() {
                session.resume(&front, back);
            }
        }
        back.state.tell_all_changed(back.capabilities());
    }

    /// Closes the connection politely and lets nothing new in.
    pub(super) async fn close(&self) {
        let phase = std::mem::replace(&mut self.lock().phase, SlotPhase::Closed);
        self.closing.raise();
        match phase {
            SlotPhase::Ready(back) => {
                let _ = back.client.close().await;
                if let Some(shared) = self.shared.upgrade() {
                    shared.tell(&ProxyEvent::Closed);
                }
            }
            SlotPhase::Opening { waiting, .. } => {
                let error = closed();
                waiting.into_iter().for_each(|job| job(Err(&error)));
            }
            SlotPhase::Idle | SlotPhase::Closed => {}
        }
    }
}

impl SlotPhase {
    /// A connection is to be opened, and nothing waits for it.
    fn opening() -> Self {
        Self::Opening { waiting: Vec::new(), bytes: 0, ended: None }
    }
}

/// Taken off the list at once: a list of slots that are gone would keep their memory.
impl Drop for BackSlot {
    fn drop(&mut self) {
        if let Some(shared) = self.shared.upgrade() {
            let _gone = take(&mut lock(&shared.all), &self.number);
        }
    }
}

impl ProxyShared {
    pub(super) fn tell(&self, event: &ProxyEvent) {
        match event {
            ProxyEvent::Failed { .. } | ProxyEvent::Lost { .. } => {
                tracing::warn!(%event, "proxy");
            }
            _ => tracing::debug!(%event, "proxy"),
        }
        if let Some(hook) = &self.settings.on_event {
            isolated(|| hook(event));
        }
    }

    /// The slot for a modern request of this principal, or for any request where all share a pool. Opened
    /// with the identity that `identity` gives, if it is the first.
    pub(super) fn shared_slot(
        self: &Arc<Self>,
        principal: &Principal,
        identity: impl Fn() -> Identity,
    ) -> Arc<BackSlot> {
        let pool = self.settings.children;
        let key = if pool.is_some() { Principal::ANONYMOUS } else { principal.clone() };
        let mut all = lock(&self.slots);
        let given_up = match all.contains_key(&key) {
            true => Vec::new(),
            false => self.give_up_idle(&mut all),
        };
        let slots = all.entry(key).or_default();
        let idlest = slots.iter().min_by_key(|slot| slot.load()).cloned();
        let slot = match idlest {
            Some(slot) if slot.load() == 0 || slots.len() >= pool.unwrap_or(1) => slot,
            _ => {
                let slot = BackSlot::new(self, identity(), false);
                slots.push(slot.clone());
                slot
            }
        };
        slot.lock().used = Some(now());
        drop(all);
        // Their connections end here, and not under the lock.
        drop(given_up);
        slot
    }

    /// Takes out the slots of principals that have not asked for a long time, so that their number does not
    /// grow with everyone who ever came. What is still used stays.
    fn give_up_idle(&self, all: &mut HashMap<Principal, Vec<Arc<BackSlot>>>) -> Vec<Arc<BackSlot>> {
        let now = now();
        let mut given_up = Vec::new();
        all.retain(|_, slots| {
            given_up.extend(slots.extract_if(.., |slot| {
                let idle = slot
                    .lock()
                    .used
                    .is_none_or(|used| now.saturating_duration_since(used) >= self.settings.idle);
                // A client that has asked keeps the slot while it is connected.
                idle && Arc::strong_count(slot) == 1 && slot.load() == 0 && slot.streams.is_empty()
            }));
            !slots.is_empty()
        });
        given_up
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::ClientBuilder;
    use crate::mcp::ClientCapabilities;
    use crate::proxy::Proxy;

    #[test]
    fn nothing_is_kept_of_a_slot_that_is_gone() {
        let never = |_: ClientBuilder| std::future::pending();
        let shared = Proxy::builder(never).build().shared;
        let open = || {
            let capabilities = ClientCapabilities::default();
            let identity =
                Identity { era: Era::Legacy, initialize: None, info: None, capabilities };
            BackSlot::new(&shared, identity, true)
        };
        let (first, second) = (open(), open());
        drop(first);
        assert_eq!(lock(&shared.all).keys().collect::<Vec<_>>(), [&second.number]);
    }
}
