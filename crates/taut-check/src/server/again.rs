//! What failed beside other probes is tried once more, alone, and only that counts.
//!
//! Knows what may be left out, because another try decides it as well. Knows no rule.

use super::carry::{Outcome, Shared, Surveys, Suspect};
use super::judge::EXPLAINS;
use super::pool::{SERVERS, pool};
use crate::check::{Kind, Level, Verdict};
use crate::ours::Revision;

/// How the words of a failure begin that an answer showed.
const ANSWERED: &str = "expected error";

/// What was tried in the newest revision of a group: the others, what was seen before, and what now.
type Tried = (Vec<Suspect>, Option<Suspect>, Option<Outcome>);

impl Shared<'_> {
    /// Tries again alone what failed. What was left out because a failure explains it waits for the second try of that.
    pub(super) fn again(
        &self,
        surveys: &Surveys,
        mut suspects: Vec<Suspect>,
        outcomes: &mut Vec<(Revision, Outcome)>,
    ) {
        while !suspects.is_empty() {
            let open: Vec<(usize, &str)> =
                suspects.iter().map(|(at, it)| (*at, self.checks[it.check].id)).collect();
            let waits = |(at, outcome): &Suspect| {
                outcome.verdict.words().ends_with(EXPLAINS)
                    && self.causes(outcome).any(|cause| open.contains(&(*at, cause)))
            };
            let (later, now): (Vec<Suspect>, Vec<Suspect>) = suspects.into_iter().partition(waits);
            // A circle of causes is begun somewhere.
            let (later, now) = if now.is_empty() { (now, later) } else { (later, now) };
            let (explained, now): (Vec<Suspect>, Vec<Suspect>) =
                now.into_iter().partition(|suspect| self.is_explained(surveys, suspect, outcomes));
            outcomes.extend(explained.into_iter().map(|(at, it)| (surveys[at].0, it)));
            self.retry(surveys, now, outcomes);
            suspects = later;
        }
    }

    /// The checks whose failures explain this one.
    fn causes(&self, outcome: &Outcome) -> impl Iterator<Item = &'static str> + use<> {
        self.checks[outcome.check].after.iter().copied()
    }

    /// Whether what was left out stays left out: what explains it has failed in the end.
    fn is_explained(
        &self,
        surveys: &Surveys,
        (at, outcome): &Suspect,
        outcomes: &[(Revision, Outcome)],
    ) -> bool {
        let left_out = matches!(&outcome.verdict, Verdict::Blocked(why) if why.ends_with(EXPLAINS));
        left_out
            && self.causes(outcome).any(|cause| {
                outcomes.iter().any(|(revision, other)| {
                    let check = &self.checks[other.check];
                    *revision == surveys[*at].0
                        && check.id == cause
                        && check.level != Level::Advice
                        && other.verdict.failed()
                })
            })
    }

    /// Tries each once more in a process of its own. What failed in the same words in several revisions of one era is
    /// tried in the newest of them; if it fails there again, it counts for all.
    fn retry(
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
            self.settings.program.progress.begin("once more, alone", groups.len());
            let tried = pool(SERVERS, self.together(surveys, groups), |group| {
                self.once_more(surveys, group)
            });
            let tried = tried.into_iter().flatten();
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

    /// Puts those together that may share a process: what an answer showed, in one revision, has no other probe as its
    /// cause twice, in another company. What was silent or ended is tried alone.
    fn together(&self, surveys: &Surveys, groups: Vec<Vec<Suspect>>) -> Vec<Vec<Vec<Suspect>>> {
        let mut jobs: Vec<Vec<Vec<Suspect>>> = Vec::new();
        let place = |group: &[Suspect]| {
            let (at, outcome) = group.last()?;
            let fresh = matches!(self.checks[outcome.check].kind, Kind::Fresh(..));
            let answered = outcome.verdict.words().starts_with(ANSWERED);
            let (revision, survey) = &surveys[*at];
            let plain = !self.is_odd(*revision, survey, outcome.check);
            (answered && plain && !fresh).then_some(*at)
        };
        for group in groups {
            let at = place(&group);
            match jobs.iter_mut().find(|job| at.is_some() && place(&job[0]) == at) {
                Some(job) => job.push(group),
                None => jobs.push(vec![group]),
            }
        }
        jobs
    }

    /// Tries the newest of each of these groups in one process.
    fn once_more(&self, surveys: &Surveys, job: Vec<Vec<Suspect>>) -> Vec<Tried> {
        let newest: Vec<(usize, usize)> =
            job.iter().filter_map(|group| group.last()).map(|(at, it)| (*at, it.check)).collect();
        let Some((at, _)) = newest.first() else { return Vec::new() };
        let (revision, survey) = &surveys[*at];
        let checks: Vec<usize> = newest.iter().map(|(_, check)| *check).collect();
        let once = |checks: &[usize]| self.batch(*revision, survey, checks, self.alone());
        let judged = |outcome: &Outcome| !matches!(outcome.verdict, Verdict::Blocked(_));
        let mut first = once(&checks);
        let mut tried = Vec::new();
        for mut group in job {
            let newest = group.pop();
            let after = newest.as_ref().and_then(|(_, before)| {
                let at = first.iter().position(|outcome| outcome.check == before.check)?;
                // What a busy machine was too late for is worth another try.
                Some(first.swap_remove(at)).filter(judged).or_else(|| once(&[before.check]).pop())
            });
            tried.push((group, newest, after));
        }
        tried
    }
}
