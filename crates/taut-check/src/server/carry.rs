//! Which process carries out which probe, and how often.
//!
//! Many probes share a process, because a start can cost seconds. A probe that fails there is tried
//! again in a process of its own, with more time: only what fails twice counts. Knows no rule.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::checks::SILENT;
use super::pool::{SERVERS, pool};
use super::run::{MAX_STARTS, ServerCheck};
use super::session::{LATE, Live, NO_MEMORY, Times, shown};
use super::survey::{ask_back, survey};
use crate::check::{Check, Kind, Verdict};
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

/// What a server said of itself, by revision.
pub(super) type Surveys = Vec<(Revision, Survey)>;

/// What a probe gave.
pub(super) struct Outcome {
    pub(super) check: usize,
    pub(super) verdict: Verdict,
    pub(super) exchange: Vec<String>,
    /// Whether it may be tried again alone.
    pub(super) again: bool,
}

/// A probe that failed, and in which survey.
type Suspect = (usize, Outcome);

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
        self.end(live, true);
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

    fn cx<'s>(&self, revision: Revision, survey: &'s Survey, check: usize) -> Cx<'s> {
        let base = (i64::try_from(check).unwrap_or(0) + 10) * 100;
        Cx { revision, base, survey, fixture: self.settings.fixture }
    }

    /// Carries out all probes, and those that failed once more.
    pub(super) fn probes(&self, surveys: &mut Surveys) -> Vec<(Revision, Outcome)> {
        let wanted = |check: &Check| self.settings.wants(check);
        let mut jobs: Vec<(usize, Vec<usize>)> = Vec::new();
        for (at, (revision, _)) in surveys.iter().enumerate() {
            let newest = |check: &Check| {
                !surveys[at + 1..].iter().any(|(later, _)| check.revisions.contains(*later))
            };
            let (mut batch, mut silent) = (Vec::new(), Vec::new());
            for (index, check) in self.checks.iter().enumerate() {
                if !wanted(check) || !check.revisions.contains(*revision) {
                    continue;
                }
                match check.kind {
                    Kind::Fresh(..) if !check.once || newest(check) => jobs.push((at, vec![index])),
                    // Apart, so that an answer to nothing can have no other cause.
                    Kind::Probe(..) if check.silent => silent.push(index),
                    Kind::Probe(..) if !check.once || newest(check) => batch.push(index),
                    _ => {}
                }
            }
            jobs.extend([(at, batch), (at, silent)]);
        }
        jobs.retain(|(_, batch)| !batch.is_empty());
        // The long ones first.
        jobs.sort_by_key(|(_, batch)| usize::MAX - batch.len());
        let first = pool(SERVERS, jobs, |(at, batch)| {
            let (revision, survey) = &surveys[at];
            (at, self.batch(*revision, survey, &batch, self.settings.shared_times()))
        });
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

    /// Tries again alone what failed. What failed in the same words in several revisions of one era is
    /// tried in the newest of them; if it fails there again, it counts for all.
    fn again(
        &self,
        surveys: &Surveys,
        mut suspects: Vec<Suspect>,
        outcomes: &mut Vec<(Revision, Outcome)>,
    ) {
        let kind = |(at, outcome): &Suspect| {
            (outcome.check, surveys[*at].0.is_modern(), outcome.verdict.words().to_owned())
        };
        while !suspects.is_empty() {
            suspects.sort_by_key(|suspect| (kind(suspect), suspect.0));
            let mut groups: Vec<Vec<Suspect>> = Vec::new();
            for suspect in suspects.drain(..) {
                match groups.last_mut() {
                    Some(group)
                        if group.last().is_some_and(|last| kind(last) == kind(&suspect)) =>
                    {
                        group.push(suspect)
                    }
                    _ => groups.push(vec![suspect]),
                }
            }
            let tried = pool(SERVERS, groups, |mut group| {
                let newest = group.pop();
                let after = newest.as_ref().and_then(|(at, before)| {
                    let (revision, survey) = &surveys[*at];
                    let once =
                        || self.batch(*revision, survey, &[before.check], self.alone()).pop();
                    // What a busy machine was too late for is worth another try.
                    once()
                        .filter(|after| !matches!(after.verdict, Verdict::Blocked(_)))
                        .or_else(once)
                });
                (group, newest, after)
            });
            for (rest, newest, after) in tried {
                let Some((at, before)) = newest else { continue };
                // The budget may be used up: what was seen before counts then.
                let after = after.filter(|after| !matches!(after.verdict, Verdict::Blocked(_)));
                let settled = after.as_ref().is_none_or(|after| after.verdict.failed());
                outcomes.push((surveys[at].0, after.unwrap_or(before)));
                match settled {
                    true => outcomes
                        .extend(rest.into_iter().map(|(at, outcome)| (surveys[at].0, outcome))),
                    false => suspects.extend(rest),
                }
            }
        }
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
    fn alone(&self) -> Times {
        let slow = Duration::from_millis(self.slowest.load(Ordering::Relaxed) as u64);
        let times = self.settings.alone_times();
        Times { exit: times.exit + slow * 2, ..times }
    }

    /// Carries out probes one after the other, in one process if none of them ends it.
    fn batch(
        &self,
        revision: Revision,
        survey: &Survey,
        checks: &[usize],
        times: Times,
    ) -> Vec<Outcome> {
        let mut outcomes: Vec<Outcome> = Vec::new();
        let mut live: Option<Live> = None;
        let mut strays = false;
        let all_silent = checks.iter().all(|index| self.checks[*index].silent);
        for &index in checks {
            let check = &self.checks[index];
            let cx = self.cx(revision, survey, index);
            let (sends, judge, fresh) = match check.kind {
                Kind::Probe(sends, judge) => (sends, judge, false),
                Kind::Fresh(sends, judge) => (sends, judge, true),
                Kind::Scan(_) | Kind::Played(..) => continue,
            };
            let outcome =
                |verdict, exchange, again| Outcome { check: index, verdict, exchange, again };
            let steps = match sends(&cx) {
                Ok(steps) => steps,
                Err(why) => {
                    outcomes.push(outcome(Verdict::Skip(why), Vec::new(), false));
                    continue;
                }
            };
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
            let done = open.carry_out(&steps, !fresh);
            let seen = open.seen(&done);
            strays |= !seen.strays().is_empty();
            if !done.barrier && !done.died {
                self.hung.fetch_add(1, Ordering::Relaxed);
            }
            let starved = open.process.stopped == Some(Stopped::Memory);
            let verdict = match judge(&cx, &seen) {
                verdict if starved && verdict.failed() => Verdict::Blocked(NO_MEMORY.to_owned()),
                verdict => verdict,
            };
            let exchange = if verdict.failed() { shown(seen.entries) } else { Vec::new() };
            outcomes.push(outcome(verdict, exchange, !starved));
            open.process.lighten();
            if (!done.barrier || fresh)
                && let Some(old) = live.take()
            {
                self.end(old, done.barrier && !fresh);
            }
        }
        if let Some(mut open) = live {
            if checks.len() > 1 && all_silent {
                open.process.listen(Duration::from_millis(200));
                strays |= open.strays();
            }
            self.end(open, true);
        }
        if strays && checks.len() > 1 && all_silent {
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
