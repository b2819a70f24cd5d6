//! Which process carries out which probe, and how often.
//!
//! Many probes share a process, because a start can cost seconds. A probe that fails there is tried
//! again in a process of its own, with more time: only what fails twice counts. Knows no rule.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::cause::{REFUSED, refused_list};
use super::checks::SILENT;
use super::judge::EXPLAINS;
use super::odd::is_odd;
use super::pool::{SERVERS, pool};
use super::run::{MAX_STARTS, ServerCheck};
use super::session::{LATE, Live, NO_MEMORY, Times, shown};
use super::survey::{ask_back, survey};
use crate::check::{Check, Kind, Level, Verdict};
use crate::cx::{Called, Cx, Survey, askable};
use crate::ours::Revision;
use crate::process::Stopped;
use crate::seen::{Session, Step};

/// How long the handshake of a survey stays open: what must not come before its end comes then (LIF-10).
const EARLY: Duration = Duration::from_millis(150);

/// How long a server may take to end after its stdin did, beside the time of its start, and after how many that stayed
/// no more time is given to this.
const EXIT: Duration = Duration::from_secs(8);
const MAX_STAYED: usize = 2;

/// How long the start of a server takes at most, in milliseconds, that is started once more for each part of the probes.
const QUICK: usize = 150;
const PARTS: usize = 3;

/// What a server said of itself, by revision.
pub(super) type Surveys = Vec<(Revision, Survey)>;

/// What a probe gave.
pub(super) struct Outcome {
    pub(super) check: usize,
    pub(super) verdict: Verdict,
    pub(super) exchange: Vec<String>,
    /// Whether it may be tried again alone.
    pub(super) again: bool,
    pub(super) took: Duration,
}

/// A probe that failed, and in which survey.
pub(super) type Suspect = (usize, Outcome);

pub(super) struct Shared<'a> {
    /// How long the slowest start took, in milliseconds.
    pub(super) slowest: AtomicUsize,
    /// How often the server stayed when its stdin had ended.
    pub(super) stayed: AtomicUsize,
    /// How often the server did not answer any more.
    pub(super) hung: AtomicUsize,
    pub(super) settings: &'a ServerCheck,
    pub(super) checks: &'a [Check],
    pub(super) starts: AtomicUsize,
    pub(super) sessions: Mutex<Vec<Session>>,
    /// The processes of the surveys, which serve the probes that want no answer, too: a start can cost seconds.
    pub(super) idle: Mutex<Vec<(Revision, Live)>>,
}

impl Shared<'_> {
    fn start(&self, revision: Revision, times: Times, caps: &Value) -> Result<Live, String> {
        if self.starts.fetch_add(1, Ordering::Relaxed) >= MAX_STARTS {
            self.starts.fetch_sub(1, Ordering::Relaxed);
            return Err(format!("not tried: {MAX_STARTS} processes were started already"));
        }
        Live::start(&self.settings.program, revision, times, caps)
            .map_err(|error| format!("it cannot be started: {error}"))
    }

    /// Ends a session, and keeps what was said in it. A server that answered has time to end by itself, as long as that was
    /// not in vain too often; one that hangs has not, nor one that is at work.
    fn end(&self, live: Live, answered: bool) {
        let fair = answered && !live.owes() && self.stayed.load(Ordering::Relaxed) < MAX_STAYED;
        let slow = Duration::from_millis(self.slowest.load(Ordering::Relaxed) as u64);
        let mut session = live.close(if fair { EXIT + slow } else { Duration::from_millis(1500) });
        session.stayed &= fair;
        if session.stayed {
            self.stayed.fetch_add(1, Ordering::Relaxed);
        }
        self.keep(session);
    }

    fn keep(&self, session: Session) {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner).push(session);
    }

    /// Starts the server and opens a session in a revision.
    fn opened(&self, revision: Revision, times: Times) -> Result<(Live, Value), String> {
        self.start(revision, times, &json!({})).and_then(|mut live| {
            // A server that speaks first would do it now.
            live.process.listen(Duration::from_millis(60));
            let began = Instant::now();
            let opened = live.open_slowly(&json!({}), EARLY);
            let took = began.elapsed().saturating_sub(EARLY).as_millis();
            let took = usize::try_from(took).unwrap_or_default();
            self.slowest.fetch_max(took, Ordering::Relaxed);
            match opened {
                Ok(opened) => Ok((live, opened)),
                Err(why) => {
                    self.end(live, false);
                    Err(why)
                }
            }
        })
    }

    /// Opens the server in a revision, and asks what it has.
    fn survey(&self, revision: Revision) -> Result<Survey, String> {
        let (mut live, opened) = self.opened(revision, self.settings.alone_times())?;
        let settings = self.settings;
        let (calls, fixture) = (&settings.calls, settings.fixture);
        let mut survey = survey(&mut live, revision, opened, calls, fixture, settings.request);
        live.process.listen(Duration::from_millis(50));
        live.light = false;
        match live.owes() || live.is_over() {
            true => self.end(live, true),
            false => {
                self.idle.lock().unwrap_or_else(PoisonError::into_inner).push((revision, live))
            }
        }
        let named = calls.len().min(survey.calls.len());
        if !revision.is_modern() && named > 0 {
            self.ask_back(revision, &mut survey.calls[..named]);
        }
        Ok(survey)
    }

    /// Makes the allowed calls once more, as a client that can be asked; without effect where that does not open.
    fn ask_back(&self, revision: Revision, calls: &mut [Called]) {
        let (caps, times) = (askable(revision), self.settings.alone_times());
        let Ok(mut live) = self.start(revision, times, &caps) else { return };
        let opened = live.open(&caps).is_ok();
        if opened {
            ask_back(&mut live, revision, calls, self.settings.request);
            live.light = false;
        }
        self.end(live, opened);
    }

    /// Opens the server in each revision. Also says which did not open, and why.
    pub(super) fn surveys(&self) -> (Surveys, Vec<(Revision, String)>) {
        let wanted = match self.settings.revisions.as_slice() {
            [] => Revision::ALL.to_vec(),
            some => some.to_vec(),
        };
        let (mut surveys, mut closed) = (Vec::new(), Vec::new());
        self.settings.program.progress.begin("opening the server in each revision", 0);
        let mut sort = |found: Vec<(Revision, Result<Survey, String>)>| {
            let mut late = Vec::new();
            for (revision, survey) in found {
                match survey {
                    Ok(survey) => surveys.push((revision, survey)),
                    Err(why) if why.starts_with(LATE) => late.push((revision, why)),
                    Err(why) => closed.push((revision, why)),
                }
            }
            (late, surveys.is_empty())
        };
        let (mut late, none) =
            sort(pool(SERVERS, wanted, |revision| (revision, self.survey(revision))));
        // A busy machine may be late once. One that answered nothing at all is asked once more, not often.
        late.sort_by_key(|(revision, _)| *revision);
        let waiting = if none { late.split_off(1.min(late.len())) } else { Vec::new() };
        let again = |late: Vec<(Revision, String)>| {
            pool(SERVERS, late, |(revision, _)| (revision, self.survey(revision)))
        };
        let (mut still, none) = sort(again(late));
        match none {
            true => still.extend(waiting),
            false => still.extend(sort(again(waiting)).0),
        }
        closed.extend(still);
        surveys.sort_by_key(|(revision, _)| *revision);
        closed.sort_by_key(|(revision, _)| *revision);
        let modern = surveys.iter().any(|(revision, _)| revision.is_modern());
        let legacy = surveys.iter().any(|(revision, _)| !revision.is_modern());
        let asked_legacy = legacy || closed.iter().any(|(revision, _)| !revision.is_modern());
        let opens: Vec<String> = surveys.iter().map(|(it, _)| it.as_str().to_owned()).collect();
        // One that was late may speak it all the same.
        let refused = closed.iter().filter(|(_, why)| !why.starts_with(LATE));
        let more = refused.map(|(revision, _)| revision.as_str().to_owned());
        let tried: Vec<String> = opens.iter().cloned().chain(more).collect();
        for (_, survey) in &mut surveys {
            // One that was not asked may be, so it gets the benefit of the doubt.
            survey.dual = (modern && legacy) || !asked_legacy;
            (survey.opens, survey.tried) = (opens.clone(), tried.clone());
        }
        (surveys, closed)
    }

    /// The process of the survey of a revision, if it is still there.
    fn surveyed(&self, revision: Revision) -> Option<Live> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let at = idle.iter().position(|(its, _)| *its == revision)?;
        Some(idle.swap_remove(at).1)
    }

    fn cx<'s>(&self, revision: Revision, survey: &'s Survey, check: usize) -> Cx<'s> {
        let base = (i64::try_from(check).unwrap_or(0) + 10) * 100;
        Cx { revision, base, survey, fixture: self.settings.fixture }
    }

    /// Whether a probe may change how what follows it is answered.
    pub(super) fn is_odd(&self, revision: Revision, survey: &Survey, check: usize) -> bool {
        match self.checks[check].kind {
            Kind::Probe(sends, _) | Kind::Fresh(sends, _) => {
                let steps = sends(&self.cx(revision, survey, check));
                steps.is_ok_and(|steps| is_odd(revision, &steps))
            }
            Kind::Scan(_) | Kind::Played(..) => false,
        }
    }

    /// Carries out all probes, and those that failed once more.
    pub(super) fn probes(&self, surveys: &mut Surveys) -> Vec<(Revision, Outcome)> {
        let wanted = |check: &Check| self.settings.wants(check);
        let mut jobs: Vec<(usize, Vec<usize>)> = Vec::new();
        for (at, (revision, _)) in surveys.iter().enumerate() {
            let survey = &surveys[at].1;
            let newest = |check: &Check| {
                !surveys[at + 1..].iter().any(|(later, _)| check.revisions.contains(*later))
            };
            let (mut batch, mut silent, mut odd) = (Vec::new(), Vec::new(), Vec::new());
            for (index, check) in self.checks.iter().enumerate() {
                let changes = || self.is_odd(*revision, survey, index);
                if !wanted(check) || !check.revisions.contains(*revision) {
                    continue;
                }
                match check.kind {
                    Kind::Fresh(..) if !check.once || newest(check) => jobs.push((at, vec![index])),
                    // Apart, so that an answer to nothing can have no other cause.
                    Kind::Probe(..) if check.silent => silent.push(index),
                    Kind::Probe(..) if check.once && !newest(check) => {}
                    // So that no answer to another has its cause in it (STD-25).
                    Kind::Probe(..) if changes() => odd.push(index),
                    Kind::Probe(..) => batch.push(index),
                    _ => {}
                }
            }
            // What starts at once is tried in parts: they wait at the same time.
            let parts = if self.slowest.load(Ordering::Relaxed) < QUICK { PARTS } else { 1 };
            let size = batch.len().div_ceil(parts).max(1);
            jobs.extend(batch.chunks(size).map(|part| (at, part.to_vec())));
            let (loud, silent): (Vec<usize>, Vec<usize>) =
                silent.into_iter().partition(|check| self.is_odd(*revision, survey, *check));
            jobs.extend([(at, silent), (at, loud), (at, odd)]);
        }
        jobs.retain(|(_, batch)| !batch.is_empty());
        // The long ones first.
        jobs.sort_by_key(|(_, batch)| usize::MAX - batch.len());
        let count = jobs.iter().map(|(_, batch)| batch.len()).sum();
        self.settings.program.progress.begin("", count);
        let first = pool(SERVERS, jobs, |(at, batch)| {
            let (revision, survey) = &surveys[at];
            (at, self.batch(*revision, survey, &batch, self.settings.shared_times()))
        });
        for (revision, _) in surveys.iter() {
            self.surveyed(*revision).into_iter().for_each(|live| self.end(live, true));
        }
        let mut again = Vec::new();
        let mut outcomes = Vec::new();
        for (at, list) in first {
            for outcome in list {
                if outcome.again
                    && (outcome.verdict.failed() || matches!(outcome.verdict, Verdict::Blocked(_)))
                {
                    again.push((at, outcome));
                } else {
                    outcomes.push((surveys[at].0, outcome));
                }
            }
        }
        let stalled: Vec<(usize, usize)> = again
            .iter()
            .filter(|(_, outcome)| outcome.verdict.words().ends_with(SILENT))
            .map(|(at, outcome)| (*at, outcome.check))
            .collect();
        self.again(surveys, again, &mut outcomes);
        for (at, check) in stalled {
            let (revision, survey) = &mut surveys[at];
            let passed = |(its, outcome): &(Revision, Outcome)| {
                its == revision && outcome.check == check && outcome.verdict == Verdict::Pass
            };
            if outcomes.iter().any(passed) {
                survey.stalls.push(self.checks[check].id);
            }
        }
        outcomes
    }

    /// The time for an answer shrinks while the server hangs again and again: a run has to end.
    fn patient(&self, times: Times) -> Times {
        let most = match self.hung.load(Ordering::Relaxed) {
            0..4 => return times,
            4..12 => Duration::from_secs(3),
            _ => Duration::from_secs(1),
        };
        Times { request: times.request.min(most), late: times.late.min(most), ..times }
    }

    /// How long things may take alone; a server that starts slowly has more time to end, too.
    pub(super) fn alone(&self) -> Times {
        let slow = Duration::from_millis(self.slowest.load(Ordering::Relaxed) as u64);
        let times = self.settings.alone_times();
        Times { exit: times.exit + slow * 2, ..times }
    }

    /// Carries out probes one after the other, in one process if none of them ends it.
    pub(super) fn batch(
        &self,
        revision: Revision,
        survey: &Survey,
        checks: &[usize],
        times: Times,
    ) -> Vec<Outcome> {
        let mut outcomes: Vec<Outcome> = Vec::new();
        let all_silent = checks.iter().all(|index| self.checks[*index].silent);
        let shared = checks.len() > 1 && all_silent;
        // What is looked at afterwards must not have its form from one of these.
        let plain = !checks.iter().any(|check| self.is_odd(revision, survey, *check));
        let mut live = (shared && plain).then(|| self.surveyed(revision)).flatten();
        live.iter_mut().for_each(|live| live.times = self.patient(times));
        let mut strays = false;
        let mut broken: HashSet<&str> = HashSet::new();
        for &index in checks {
            let (check, began) = (&self.checks[index], Instant::now());
            let progress = &self.settings.program.progress;
            progress.tries(format!("{} in {}", check.id, revision.as_str()));
            progress.step(1);
            let cx = self.cx(revision, survey, index);
            let (sends, judge, fresh) = match check.kind {
                Kind::Probe(sends, judge) => (sends, judge, false),
                Kind::Fresh(sends, judge) => (sends, judge, true),
                Kind::Scan(_) | Kind::Played(..) => continue,
            };
            let outcome = |verdict, exchange, again| Outcome {
                check: index,
                verdict,
                exchange,
                again,
                took: began.elapsed(),
            };
            let steps = match sends(&cx) {
                Ok(steps) => steps,
                Err(why) => {
                    outcomes.push(outcome(Verdict::Skip(why), Vec::new(), false));
                    continue;
                }
            };
            if let Some(cause) = check.after.iter().find(|id| broken.contains(*id)) {
                let why = format!("{cause}{EXPLAINS}");
                outcomes.push(outcome(Verdict::Blocked(why), Vec::new(), true));
                continue;
            }
            if live.as_ref().is_none_or(Live::is_over) {
                if let Some(old) = live.take() {
                    self.end(old, false);
                }
                match self.ready(revision, times, fresh, &steps) {
                    Ok(new) => live = Some(new),
                    Err(why) => {
                        let why = format!("the session did not open: {why}");
                        outcomes.push(outcome(Verdict::Blocked(why), Vec::new(), true));
                        continue;
                    }
                }
            }
            let Some(open) = live.as_mut() else { continue };
            open.quiet = check.silent || times.quiet > self.settings.shared_times().quiet;
            open.odd |= is_odd(revision, &steps);
            let done = open.carry_out(&steps, !fresh);
            let seen = open.seen(&done);
            strays |= !seen.strays().is_empty();
            if !done.barrier && !done.died {
                self.hung.fetch_add(1, Ordering::Relaxed);
            }
            let starved = open.process.stopped == Some(Stopped::Memory);
            let refused = refused_list(survey, check, &steps);
            let verdict = match judge(&cx, &seen) {
                // A missing network, or whatever it is, that one check tells of.
                verdict if verdict.failed() && refused.is_some() => {
                    Verdict::Blocked(refused.unwrap_or_default())
                }
                verdict if starved && verdict.failed() => Verdict::Blocked(NO_MEMORY.to_owned()),
                verdict => verdict,
            };
            if verdict.failed() && check.level != Level::Advice {
                broken.insert(check.id);
            }
            let exchange = if verdict.failed() { shown(seen.entries) } else { Vec::new() };
            let stays = verdict.words().ends_with(REFUSED);
            outcomes.push(outcome(verdict, exchange, !starved && !stays));
            open.process.lighten();
            if (!done.barrier || fresh)
                && let Some(old) = live.take()
            {
                self.end(old, done.barrier && !fresh);
            }
        }
        if let Some(mut open) = live {
            if shared {
                open.process.listen(Duration::from_millis(200));
                strays |= open.strays();
            }
            self.end(open, true);
        }
        if strays && shared {
            // An answer that belongs to nothing came after its cause, maybe: ask each alone.
            for outcome in &mut outcomes {
                if self.checks[outcome.check].silent && outcome.verdict == Verdict::Pass {
                    outcome.verdict =
                        Verdict::Blocked("an answer came that belongs to nothing".into());
                }
            }
        }
        outcomes
    }

    fn ready(
        &self,
        revision: Revision,
        times: Times,
        fresh: bool,
        steps: &[Step],
    ) -> Result<Live, String> {
        let caps = steps.iter().find_map(|step| match step {
            Step::Open(caps) => Some(caps.clone()),
            _ => None,
        });
        let caps = caps.unwrap_or_else(|| json!({}));
        let mut live = self.start(revision, self.patient(times), &caps)?;
        if !fresh {
            live.open(&caps)?;
        }
        Ok(live)
    }
}
