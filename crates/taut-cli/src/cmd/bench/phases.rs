//! What is measured, for how long, and what comes of it: one server, one phase, one round.

use std::time::Duration;

use super::fault::Fault;
use super::figures::{Figures, forget_peak};
use super::load::{Counted, Limit};
use super::options::Kind;
use super::pinning::Pinning;
use super::session::Session;
use super::stats::percentile;
use super::target::Facts;
use super::wire::Ask;

/// One thing that is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Phase {
    Start,
    Sequential,
    InFlight(usize),
    FireHose,
    Payload(usize),
    List,
}

impl Phase {
    pub(super) fn kind(self) -> Kind {
        match self {
            Self::Start => Kind::Start,
            Self::Sequential => Kind::Sequential,
            Self::InFlight(_) => Kind::InFlight,
            Self::FireHose => Kind::FireHose,
            Self::Payload(_) => Kind::Payload,
            Self::List => Kind::List,
        }
    }

    /// What it is called in a document.
    pub(super) fn key(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Sequential => "sequential",
            Self::InFlight(_) => "in-flight",
            Self::FireHose => "fire-hose",
            Self::Payload(_) => "payload",
            Self::List => "list",
        }
    }

    pub(super) fn words(self) -> String {
        match self {
            Self::Start => "start to first answer".to_owned(),
            Self::Sequential => "one call after the other".to_owned(),
            Self::InFlight(count) => format!("{count} calls in flight"),
            Self::FireHose => "fire-hose".to_owned(),
            Self::Payload(size) => format!("payload of {}", bytes(size)),
            Self::List => "list of tools".to_owned(),
        }
    }

    /// Whether it is the number of calls that counts, and not the time of one.
    pub(super) fn is_throughput(self) -> bool {
        matches!(self, Self::InFlight(_) | Self::FireHose)
    }

    /// Where it is measured: what depends on it everywhere, the rest where the server has most room.
    pub(super) fn runs_on(self, pinning: Pinning, all: &[Pinning]) -> bool {
        let everywhere = matches!(self, Self::Sequential | Self::InFlight(_));
        everywhere || all.last() == Some(&pinning)
    }
}

/// A size as people write it.
pub(super) fn bytes(size: usize) -> String {
    match size {
        0..1024 => format!("{size} B"),
        1024..0x10_0000 => format!("{} KiB", size >> 10),
        _ => format!("{} MiB", size >> 20),
    }
}

/// What one round gave. Times are nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Measured {
    pub(super) calls: usize,
    pub(super) p50: f64,
    pub(super) p90: f64,
    pub(super) p99: f64,
    pub(super) p999: f64,
    pub(super) per_second: f64,
    /// Of the server, for each call.
    pub(super) cpu: f64,
    pub(super) switches: f64,
    /// Bytes.
    pub(super) peak: f64,
}

impl Measured {
    fn of(counted: Counted, before: Figures, after: Figures) -> Self {
        let Counted { mut latencies, nanos } = counted;
        latencies.sort_unstable();
        let calls = latencies.len().max(1) as f64;
        let each = |after: u64, before: u64| after.saturating_sub(before) as f64 / calls;
        Self {
            calls: latencies.len(),
            p50: percentile(&latencies, 0.5),
            p90: percentile(&latencies, 0.9),
            p99: percentile(&latencies, 0.99),
            p999: percentile(&latencies, 0.999),
            per_second: calls * 1e9 / nanos.max(1) as f64,
            cpu: each(after.cpu, before.cpu),
            switches: each(after.switches, before.switches),
            peak: after.peak as f64,
        }
    }

    /// The one number that servers are compared by: the less the better.
    pub(super) fn headline(&self, phase: Phase) -> f64 {
        if phase.is_throughput() { 1e9 / self.per_second } else { self.p50 }
    }
}

/// How much of everything.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extent {
    /// One tenth, to see whether it works.
    pub(super) quick: bool,
    /// Calls of the fire-hose, if the user says so.
    pub(super) fire: Option<usize>,
}

impl Extent {
    fn limit(self, calls: usize, millis: u64, least: usize) -> Limit {
        let part = if self.quick { 10 } else { 1 };
        let time = Duration::from_millis(millis) / part as u32;
        Limit { calls: (calls / part).max(1), time, least: least.min(calls) }
    }

    /// How often a server is started in one round.
    pub(super) fn starts(self) -> (usize, Duration) {
        if self.quick { (2, Duration::ZERO) } else { (9, Duration::from_millis(500)) }
    }

    /// What any server needs before it runs as it runs later: page faults, compilers, caches.
    pub(super) fn warm_up(self, session: &mut Session, facts: &Facts) -> Result<(), Fault> {
        let mut ask = facts.small();
        session.load(|load| load.window(&mut ask, 16, self.limit(20_000, 400, 1))).map(|_| ())
    }

    /// One phase on a server that runs.
    pub(super) fn measure(
        self,
        phase: Phase,
        session: &mut Session,
        facts: &Facts,
        fire: &mut Option<usize>,
    ) -> Result<Option<Measured>, Fault> {
        let once = Limit { calls: 1, time: Duration::ZERO, least: 1 };
        match phase {
            // Not on a server that runs.
            Phase::Start => Ok(None),
            Phase::Sequential => {
                let mut ask = facts.small();
                let warm = self.limit(1_000, 50, 1);
                session.load(|load| load.window(&mut ask, 1, warm))?;
                let limit = self.limit(20_000, 500, 10);
                timed(session, |session| session.load(|load| load.window(&mut ask, 1, limit)))
            }
            Phase::InFlight(count) => {
                let mut ask = facts.small();
                let limit = self.limit(100_000, 400, count);
                timed(session, |session| session.load(|load| load.window(&mut ask, count, limit)))
            }
            Phase::FireHose => {
                let mut ask = facts.small();
                let calls = match (self.fire, *fire) {
                    (Some(calls), _) | (None, Some(calls)) => calls,
                    (None, None) => self.calibrate(session, &mut ask)?,
                };
                *fire = Some(calls);
                timed(session, |session| session.load(|load| load.hose(&mut ask, calls)))
            }
            Phase::Payload(_) if !facts.takes_text() => Ok(None),
            Phase::Payload(size) => {
                let mut ask = facts.sized(size);
                session.load(|load| load.window(&mut ask, 1, once))?;
                // Some servers take a second for the largest, and there are several rounds.
                let least = if size > 1 << 20 { 1 } else { 3 };
                let limit = self.limit(2_000, 120, least);
                timed(session, |session| session.load(|load| load.window(&mut ask, 1, limit)))
            }
            Phase::List if facts.pages.is_empty() => Ok(None),
            Phase::List => {
                let mut asks = facts.list();
                list(session, &mut asks, once)?;
                let limit = self.limit(1_000, 200, 3);
                timed(session, |session| list(session, &mut asks, limit))
            }
        }
    }

    /// How many calls take about as long as a phase should.
    fn calibrate(self, session: &mut Session, ask: &mut Ask) -> Result<usize, Fault> {
        let counted = session.load(|load| load.window(ask, 64, self.limit(50_000, 200, 64)))?;
        let rate = counted.latencies.len() as f64 / (counted.nanos.max(1) as f64 / 1e9);
        let seconds = if self.quick { 0.1 } else { 0.7 };
        // Between those it is a number that fits.
        Ok((rate * seconds).clamp(200.0, 400_000.0) as usize)
    }
}

fn timed(
    session: &mut Session,
    work: impl FnOnce(&mut Session) -> Result<Counted, Fault>,
) -> Result<Option<Measured>, Fault> {
    forget_peak(session.id());
    let before = Figures::read(session.id());
    let counted = work(session)?;
    let after = Figures::read(session.id());
    Ok(Some(Measured::of(counted, before, after)))
}

/// All pages, one after the other, again and again; the time is that of the whole list.
fn list(session: &mut Session, asks: &mut [Ask], limit: Limit) -> Result<Counted, Fault> {
    if let [ask] = asks {
        return session.load(|load| load.window(ask, 1, limit));
    }
    let once = Limit { calls: 1, time: Duration::ZERO, least: 1 };
    let mut all = Counted { latencies: Vec::new(), nanos: 0 };
    while all.latencies.len() < limit.calls
        && (all.latencies.len() < limit.least || u128::from(all.nanos) < limit.time.as_nanos())
    {
        let mut sum = 0;
        for ask in asks.iter_mut() {
            let page = session.load(|load| load.window(ask, 1, once))?;
            sum += page.latencies.iter().sum::<u64>();
            all.nanos += page.nanos;
        }
        all.latencies.push(sum);
    }
    Ok(all)
}

/// From the start of a process to its first answer, a few times.
pub(super) fn starts(
    extent: Extent,
    mut start: impl FnMut() -> Result<Session, Fault>,
) -> Result<Measured, Fault> {
    let (most, time) = extent.starts();
    let (mut latencies, mut figures) = (Vec::new(), Figures::default());
    let began = std::time::Instant::now();
    while latencies.is_empty() || latencies.len() < most && began.elapsed() < time {
        let session = start()?;
        let now = Figures::read(session.id());
        figures.cpu += now.cpu;
        figures.switches += now.switches;
        figures.peak = figures.peak.max(now.peak);
        latencies.push(session.first);
        // It is killed: how it ends is not what is measured.
        drop(session);
    }
    let nanos = latencies.iter().sum();
    Ok(Measured::of(Counted { latencies, nanos }, Figures::default(), figures))
}
