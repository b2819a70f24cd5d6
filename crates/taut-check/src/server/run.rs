//! Carries out the checks for servers: which process runs which probe, how often, and in what time.
//!
//! Many probes share a process, because a start can cost seconds. A probe that fails there is tried
//! again in a process of its own, with more time: only what fails twice counts. Knows no rule.

use std::ffi::OsString;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::session::{Live, Times, shown};
use super::survey::survey;
use crate::check::{Check, Kind, Verdict};
use crate::cx::{Cx, Survey};
use crate::ours::Revision;
use crate::process::Program;
use crate::report::{Report, Row};
use crate::seen::{All, Session};

/// How many processes are started at most, all together.
pub const MAX_STARTS: usize = 100;

/// How many processes run at a time.
const AT_ONCE: usize = 4;

/// Checks a server: set it up, then [`run`](Self::run).
#[derive(Clone, Debug)]
pub struct ServerCheck {
    program: Program,
    calls: Vec<(String, Value)>,
    fixture: bool,
    revisions: Vec<Revision>,
    only: Vec<String>,
    start: Duration,
    request: Duration,
}

/// What a probe gave.
struct Outcome {
    check: usize,
    verdict: Verdict,
    exchange: Vec<String>,
    /// Whether it may be tried again alone.
    again: bool,
}

/// A probe that failed, and in which survey.
type Suspect = (usize, Outcome);

struct Shared<'a> {
    /// How long the slowest start took, in milliseconds.
    slowest: AtomicUsize,
    settings: &'a ServerCheck,
    checks: &'a [Check],
    starts: AtomicUsize,
    sessions: Mutex<Vec<Session>>,
}

impl ServerCheck {
    /// Checks the server that this program is.
    #[must_use]
    pub fn new<W: Into<OsString>>(words: impl IntoIterator<Item = W>) -> Self {
        Self::program(Program::new(words))
    }

    /// The same, with an environment and a directory.
    #[must_use]
    pub fn program(program: Program) -> Self {
        Self {
            program,
            calls: Vec::new(),
            fixture: false,
            revisions: Vec::new(),
            only: Vec::new(),
            start: Duration::from_secs(30),
            request: Duration::from_secs(10),
        }
    }

    /// Allows a tool to be called with these arguments, more than once. Without it nothing is called.
    #[must_use]
    pub fn call(mut self, tool: impl Into<String>, args: Value) -> Self {
        self.calls.push((tool.into(), args));
        self
    }

    /// Allows the tools of the official conformance fixture to be called.
    #[must_use]
    pub fn fixture(mut self) -> Self {
        self.fixture = true;
        self
    }

    /// Checks this revision, and not all that the server speaks; may be given again.
    #[must_use]
    pub fn revision(mut self, revision: Revision) -> Self {
        self.revisions.push(revision);
        self
    }

    /// Carries out this check, or those whose names begin with it and a dash; may be given again.
    #[must_use]
    pub fn only(mut self, id: impl Into<String>) -> Self {
        self.only.push(id.into());
        self
    }

    /// How long the server may take until its first answer. 30 seconds if not said.
    #[must_use]
    pub fn start_timeout(mut self, time: Duration) -> Self {
        self.start = time;
        self
    }

    /// How long an answer may take. 10 seconds if not said.
    #[must_use]
    pub fn request_timeout(mut self, time: Duration) -> Self {
        self.request = time;
        self
    }

    /// How long things may take while many probes share a process.
    fn shared_times(&self) -> Times {
        let short = Duration::from_millis(400);
        let quiet = Duration::from_millis(12);
        let exit = Duration::from_secs(5);
        Times { start: self.start, request: self.request, late: short, quiet, exit }
    }

    /// How long they may take alone, when a verdict counts.
    fn alone_times(&self) -> Times {
        let late = self.request.min(Duration::from_secs(4));
        let quiet = Duration::from_millis(300);
        let exit = Duration::from_secs(8);
        Times { start: self.start, request: self.request, late, quiet, exit }
    }

    /// Carries out all checks.
    #[must_use]
    pub fn run(&self) -> Report {
        let began = Instant::now();
        let checks = super::all();
        let shared = Shared {
            settings: self,
            checks: &checks,
            slowest: AtomicUsize::new(0),
            starts: AtomicUsize::new(0),
            sessions: Mutex::default(),
        };
        let (surveys, closed) = shared.surveys();
        let mut outcomes = shared.probes(&surveys);
        let sessions = shared.sessions.into_inner().unwrap_or_else(PoisonError::into_inner);
        scans(&checks, self, &surveys, &sessions, &mut outcomes);
        let mut rows: Vec<Row> = Vec::new();
        for (revision, outcome) in outcomes {
            rows.push(Row::new(&checks[outcome.check], revision, outcome.verdict, outcome.exchange));
        }
        rows.sort_by_key(|row| (row.revision, checks.iter().position(|check| check.id == row.id)));
        explain(&checks, &mut rows);
        let starts = shared.starts.into_inner();
        Report::new(self.program.words.clone(), rows, closed, starts, began.elapsed())
    }

    fn wants(&self, check: &Check) -> bool {
        self.only.is_empty()
            || self.only.iter().any(|only| {
                check.id == only
                    || check.id.strip_prefix(only.as_str()).is_some_and(|rest| rest.starts_with('-'))
            })
    }
}

/// What a server said of itself, by revision.
type Surveys = Vec<(Revision, Survey)>;

impl Shared<'_> {
    fn start(&self, revision: Revision, times: Times, caps: &Value) -> Result<Live, String> {
        if self.starts.fetch_add(1, Ordering::Relaxed) >= MAX_STARTS {
            self.starts.fetch_sub(1, Ordering::Relaxed);
            return Err(format!("not tried: {MAX_STARTS} processes were started already"));
        }
        Live::start(&self.settings.program, revision, times, caps)
            .map_err(|error| format!("it cannot be started: {error}"))
    }

    fn keep(&self, session: Session) {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner).push(session);
    }

    /// Opens the server once in each revision. Also says which did not open, and why.
    fn surveys(&self) -> (Surveys, Vec<(Revision, String)>) {
        let wanted = match self.settings.revisions.as_slice() {
            [] => Revision::ALL.to_vec(),
            some => some.to_vec(),
        };
        let found = pool(wanted, |revision| {
            let times = self.settings.alone_times();
            let opened = self.start(revision, times, &json!({})).and_then(|mut live| {
                // A server that speaks first would do it now.
                live.process.listen(Duration::from_millis(60));
                let began = Instant::now();
                let opened = live.open(&json!({}));
                let took = usize::try_from(began.elapsed().as_millis()).unwrap_or_default();
                self.slowest.fetch_max(took, Ordering::Relaxed);
                match opened {
                    Ok(opened) => Ok((live, opened)),
                    Err(why) => {
                        self.keep(live.close());
                        Err(why)
                    }
                }
            });
            let survey = opened.map(|(mut live, opened)| {
                let settings = self.settings;
                let (calls, fixture) = (&settings.calls, settings.fixture);
                let survey =
                    survey(&mut live, revision, opened, calls, fixture, settings.request);
                live.process.listen(Duration::from_millis(50));
                self.keep(live.close());
                survey
            });
            (revision, survey)
        });
        let (mut surveys, mut closed) = (Vec::new(), Vec::new());
        for (revision, survey) in found {
            match survey {
                Ok(survey) => surveys.push((revision, survey)),
                Err(why) => closed.push((revision, why)),
            }
        }
        surveys.sort_by_key(|(revision, _)| *revision);
        closed.sort_by_key(|(revision, _)| *revision);
        let modern = surveys.iter().any(|(revision, _)| revision.is_modern());
        let legacy = surveys.iter().any(|(revision, _)| !revision.is_modern());
        let asked_legacy = legacy || closed.iter().any(|(revision, _)| !revision.is_modern());
        let opens: Vec<String> = surveys.iter().map(|(it, _)| it.as_str().to_owned()).collect();
        let more = closed.iter().map(|(revision, _)| revision.as_str().to_owned());
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
    fn probes(&self, surveys: &Surveys) -> Vec<(Revision, Outcome)> {
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
        let first = pool(jobs, |(at, batch)| {
            let (revision, survey) = &surveys[at];
            (at, self.batch(*revision, survey, &batch, self.settings.shared_times()))
        });
        let mut again = Vec::new();
        let mut outcomes = Vec::new();
        for (at, list) in first {
            for outcome in list {
                if outcome.again && (outcome.verdict.failed() || matches!(outcome.verdict, Verdict::Blocked(_))) {
                    again.push((at, outcome));
                } else {
                    outcomes.push((surveys[at].0, outcome));
                }
            }
        }
        self.again(surveys, again, &mut outcomes);
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
                    Some(group) if group.last().is_some_and(|last| kind(last) == kind(&suspect)) => group.push(suspect),
                    _ => groups.push(vec![suspect]),
                }
            }
            let tried = pool(groups, |mut group| {
                let newest = group.pop();
                let after = newest.as_ref().and_then(|(at, before)| {
                    let (revision, survey) = &surveys[*at];
                    self.batch(*revision, survey, &[before.check], self.alone()).pop()
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
                    true => outcomes.extend(rest.into_iter().map(|(at, outcome)| (surveys[at].0, outcome))),
                    false => suspects.extend(rest),
                }
            }
        }
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
            let outcome = |verdict, exchange, again| Outcome { check: index, verdict, exchange, again };
            let steps = match sends(&cx) {
                Ok(steps) => steps,
                Err(why) => {
                    outcomes.push(outcome(Verdict::Skip(why), Vec::new(), false));
                    continue;
                }
            };
            if live.as_ref().is_none_or(Live::is_over) {
                if let Some(old) = live.take() {
                    self.keep(old.close());
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
            let verdict = judge(&cx, &seen);
            let exchange = if verdict.failed() { shown(seen.entries) } else { Vec::new() };
            outcomes.push(outcome(verdict, exchange, true));
            if (!done.barrier || fresh) && let Some(old) = live.take() {
                self.keep(old.close());
            }
        }
        if let Some(mut open) = live {
            if checks.len() > 1 && all_silent {
                open.process.listen(Duration::from_millis(200));
                strays |= open.strays();
            }
            self.keep(open.close());
        }
        if strays && checks.len() > 1 && all_silent {
            // An answer that belongs to nothing came after its cause, maybe: ask each alone.
            for outcome in &mut outcomes {
                if self.checks[outcome.check].silent && outcome.verdict == Verdict::Pass {
                    outcome.verdict = Verdict::Blocked("an answer came that belongs to nothing".into());
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
        steps: &[crate::seen::Step],
    ) -> Result<Live, String> {
        let caps = steps.iter().find_map(|step| match step {
            crate::seen::Step::Open(caps) => Some(caps.clone()),
            _ => None,
        });
        let caps = caps.unwrap_or_else(|| json!({}));
        let mut live = self.start(revision, times, &caps)?;
        if !fresh {
            live.open(&caps)?;
        }
        Ok(live)
    }
}

/// Carries out the checks that send nothing.
fn scans(
    checks: &[Check],
    settings: &ServerCheck,
    surveys: &Surveys,
    sessions: &[Session],
    outcomes: &mut Vec<(Revision, Outcome)>,
) {
    for (revision, survey) in surveys {
        let all = All::new(sessions.iter().filter(|session| session.revision == *revision));
        for (index, check) in checks.iter().enumerate() {
            let Kind::Scan(judge) = check.kind else { continue };
            if !settings.wants(check) || !check.revisions.contains(*revision) {
                continue;
            }
            let base = 0;
            let cx = Cx { revision: *revision, base, survey, fixture: settings.fixture };
            let verdict = judge(&cx, &all);
            let exchange = match &verdict {
                Verdict::Fail { shown, .. } => shown.iter().map(|line| format!("< {line}")).collect(),
                _ => Vec::new(),
            };
            let outcome = Outcome { check: index, verdict, exchange, again: false };
            outcomes.push((*revision, outcome));
        }
    }
}

/// Turns failures that another failure explains into `Blocked`, each with its reason.
pub(crate) fn explain(checks: &[Check], rows: &mut [Row]) {
    let failed: Vec<(Revision, &'static str)> =
        rows.iter().filter(|row| row.verdict.failed()).map(|row| (row.revision, row.id)).collect();
    let shown: Vec<(Revision, Vec<String>)> = rows
        .iter()
        .filter(|row| row.id != "schema-valid")
        .filter_map(|row| match &row.verdict {
            Verdict::Fail { shown, .. } => Some((row.revision, shown.clone())),
            _ => None,
        })
        .collect();
    for row in rows.iter_mut().filter(|row| row.verdict.failed()) {
        let after = checks.iter().find(|check| check.id == row.id).map_or(&[] as &[_], |c| c.after);
        let cause = after.iter().find(|id| failed.contains(&(row.revision, **id)));
        if let Some(cause) = cause {
            row.verdict = Verdict::Blocked(format!("{cause} explains it"));
            continue;
        }
        let Verdict::Fail { shown: own, .. } = &row.verdict else { continue };
        let told = |line: &String| {
            shown.iter().any(|(revision, lines)| *revision == row.revision && lines.contains(line))
        };
        if row.id == "schema-valid" && !own.is_empty() && own.iter().all(told) {
            let why = "other checks name what is wrong with these messages".to_owned();
            row.verdict = Verdict::Blocked(why);
        }
    }
}

/// Does jobs on a few threads; the results come in no order.
pub(crate) fn pool<J: Send, R: Send>(jobs: Vec<J>, work: impl Fn(J) -> R + Sync) -> Vec<R> {
    let (jobs, results) = (Mutex::new(jobs.into_iter()), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let job = jobs.lock().unwrap_or_else(PoisonError::into_inner).next();
                    let Some(job) = job else { break };
                    let result = work(job);
                    results.lock().unwrap_or_else(PoisonError::into_inner).push(result);
                }
            });
        }
    });
    results.into_inner().unwrap_or_else(PoisonError::into_inner)
}
