//! The load: how requests are sent, and when it is enough.
//!
//! Three ways, each as cheap as it can be, because what the load itself costs is measured with every
//! server: a window on a wire that waits, a window or a hose on one that does not, and one large
//! request at a time.

use std::time::Duration;

use super::fault::Fault;
use super::ledger::Ledger;
use super::watch::nanos;
use super::wire::{Ask, Wire};

/// What a pipe surely takes without waiting: half of what it holds by default.
const FITS: usize = 32 << 10;

/// As much as is written at once.
const BATCH: usize = 32 << 10;

/// When a phase is over: after so many calls, or after this time, but not before `least` calls.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limit {
    pub(super) calls: usize,
    pub(super) time: Duration,
    pub(super) least: usize,
}

/// What a phase came to.
#[derive(Debug)]
pub(super) struct Counted {
    pub(super) latencies: Vec<u64>,
    pub(super) nanos: u64,
}

/// A load on one wire, whose requests are numbered from `next` on.
pub(super) struct Load<'a> {
    pub(super) wire: &'a mut Wire,
    pub(super) next: &'a mut u32,
}

impl Load<'_> {
    /// Keeps so many requests in flight.
    pub(super) fn window(
        &mut self,
        ask: &mut Ask,
        window: usize,
        limit: Limit,
    ) -> Result<Counted, Fault> {
        let bytes = ask.request.len() * window;
        if window == 1 && ask.request.len() > FITS {
            self.run(limit, |wire, ledger, most| large(wire, ask, ledger, most))
        } else if bytes <= FITS {
            self.run(limit, |wire, ledger, most| waiting(wire, ask, ledger, window, most))
        } else {
            self.run(limit, |wire, ledger, most| polling(wire, ask, ledger, window, most))
        }
    }

    /// Sends all at once, as fast as the server takes it.
    pub(super) fn hose(&mut self, ask: &mut Ask, calls: usize) -> Result<Counted, Fault> {
        let limit = Limit { calls, time: Duration::MAX, least: calls };
        self.run(limit, |wire, ledger, most| polling(wire, ask, ledger, usize::MAX, most))
    }

    fn run(
        &mut self,
        limit: Limit,
        load: impl FnOnce(&mut Wire, &mut Ledger, Most) -> Result<(), Fault>,
    ) -> Result<Counted, Fault> {
        let patience = self.wire.watch.patience();
        // Something may move all the time and still never come to an end.
        self.wire.watch.phase(limit.time.min(patience).saturating_add(patience * 3));
        let mut ledger = Ledger::new(*self.next, limit.calls);
        let began = self.wire.watch.now();
        let most = Most { limit, until: began.saturating_add(nanos(limit.time)) };
        let done = load(self.wire, &mut ledger, most);
        let ended = self.wire.watch.now();
        *self.next = ledger.next();
        done?;
        Ok(Counted { latencies: ledger.latencies(), nanos: ended - began })
    }
}

/// How far a phase may go.
#[derive(Clone, Copy)]
struct Most {
    limit: Limit,
    until: u64,
}

impl Most {
    fn more(&self, sent: usize, now: u64) -> bool {
        sent < self.limit.calls && (sent < self.limit.least || now < self.until)
    }
}

/// On a wire that waits. What is in flight fits into the pipe, so a write never waits for the server
/// while the server waits for us.
fn waiting(
    wire: &mut Wire,
    ask: &mut Ask,
    ledger: &mut Ledger,
    window: usize,
    most: Most,
) -> Result<(), Fault> {
    wire.blocking(true)?;
    let mut out = Vec::with_capacity(window * ask.request.len());
    loop {
        let now = wire.watch.now();
        if window == 1 {
            if !most.more(ledger.count(), now) {
                return Ok(());
            }
            let id = ledger.sent(now);
            wire.write_all(ask.request.numbered(id))?;
        } else {
            out.clear();
            while ledger.open() < window && most.more(ledger.count(), now) {
                ask.request.append(ledger.sent(now), &mut out);
            }
            wire.write_all(&out)?;
        }
        let open = ledger.open();
        if open == 0 {
            return Ok(());
        }
        while ledger.open() == open {
            wire.read()?;
            wire.take(ask, ledger)?;
        }
    }
}

/// On a wire that does not wait.
fn polling(
    wire: &mut Wire,
    ask: &mut Ask,
    ledger: &mut Ledger,
    window: usize,
    most: Most,
) -> Result<(), Fault> {
    wire.blocking(false)?;
    let (mut out, mut at) = (Vec::with_capacity(BATCH + ask.request.len()), 0);
    loop {
        if at == out.len() {
            out.clear();
            at = 0;
            let now = wire.watch.now();
            while out.len() < BATCH && ledger.open() < window && most.more(ledger.count(), now) {
                ask.request.append(ledger.sent(now), &mut out);
            }
        }
        if out.is_empty() && ledger.open() == 0 {
            return Ok(());
        }
        if at < out.len() {
            at += wire.push(&out[at..])?;
        }
        if wire.read()? {
            wire.take(ask, ledger)?;
        } else {
            wire.ready(at < out.len() || window == usize::MAX && most.more(ledger.count(), 0))?;
        }
    }
}

/// One request that does not fit into the pipe, after the other: written while answers are read, from
/// where it stands.
fn large(wire: &mut Wire, ask: &mut Ask, ledger: &mut Ledger, most: Most) -> Result<(), Fault> {
    wire.blocking(false)?;
    loop {
        let now = wire.watch.now();
        if !most.more(ledger.count(), now) {
            return Ok(());
        }
        let id = ledger.sent(now);
        let whole = ask.request.numbered(id).len();
        let mut at = 0;
        while ledger.open() > 0 {
            if at < whole {
                at += wire.push(&ask.request.bytes()[at..])?;
            }
            if wire.read()? {
                wire.take(ask, ledger)?;
            } else {
                wire.ready(at < whole)?;
            }
        }
    }
}
