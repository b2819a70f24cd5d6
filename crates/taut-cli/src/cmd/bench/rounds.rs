//! Who is measured when: rounds, in each of which every server has its turn, in another order.
//!
//! What else the machine does then falls on all of them. A server that fails in a phase is started
//! again for the next one, and the phase is not tried again: it would only fail again, and slowly.

use std::collections::BTreeMap;
use std::ffi::OsString;

use super::fault::Fault;
use super::options::Era;
use super::phases::{Extent, Measured, Phase, starts};
use super::pinning::{Machine, Pinning};
use super::process::Start;
use super::progress::Progress;
use super::session::Session;
use super::target::{Facts, Wish};

/// What is to be done.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) rounds: usize,
    pub(super) pinnings: Vec<Pinning>,
    pub(super) phases: Vec<Phase>,
    pub(super) extent: Extent,
    pub(super) era: Option<Era>,
    pub(super) tool: Option<Wish>,
}

impl Plan {
    /// The phases on these cores.
    pub(super) fn on(&self, pinning: Pinning) -> impl Iterator<Item = Phase> {
        let phases = self.phases.iter().copied();
        phases.filter(move |phase| phase.runs_on(pinning, &self.pinnings))
    }

    /// Everything that has a place in the result, in order.
    pub(super) fn keys(&self) -> Vec<(Phase, Pinning)> {
        let mut all = Vec::new();
        for phase in &self.phases {
            let here = |pinning: &&Pinning| phase.runs_on(**pinning, &self.pinnings);
            all.extend(self.pinnings.iter().filter(here).map(|pinning| (*phase, *pinning)));
        }
        all
    }
}

/// What one phase gave, round by round.
#[derive(Clone, Debug, Default)]
pub(super) struct Cell {
    pub(super) rounds: Vec<Option<Measured>>,
    pub(super) fault: Option<Fault>,
}

/// One server and all about it.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) name: String,
    pub(super) words: Vec<OsString>,
    /// What only this one gets in its environment.
    pub(super) env: Vec<(String, String)>,
    pub(super) facts: Option<Facts>,
    /// Why it could not be measured at all.
    pub(super) fault: Option<Fault>,
    pub(super) cells: BTreeMap<(Phase, Pinning), Cell>,
    /// Whether answers differ from each other so that each had to be parsed.
    pub(super) parsed: bool,
    fire: Option<usize>,
}

impl Row {
    pub(super) fn new(name: String, words: Vec<OsString>) -> Self {
        let cells = BTreeMap::new();
        Self {
            name,
            words,
            env: Vec::new(),
            facts: None,
            fault: None,
            cells,
            parsed: false,
            fire: None,
        }
    }

    /// Whether this phase has failed before, wherever that was.
    fn failed(&self, phase: Phase) -> bool {
        self.fault.is_some()
            || self.cells.iter().any(|(key, cell)| key.0 == phase && cell.fault.is_some())
    }

    /// The first thing that went wrong.
    pub(super) fn first_fault(&self) -> Option<&Fault> {
        self.fault.as_ref().or_else(|| self.cells.values().find_map(|cell| cell.fault.as_ref()))
    }
}

/// Does all of it.
pub(super) fn run(
    plan: &Plan,
    machine: &Machine,
    how: &Start,
    rows: &mut [Row],
    progress: &mut Progress,
) -> Result<(), Fault> {
    for round in 0..plan.rounds {
        for pinning in &plan.pinnings {
            for turn in 0..rows.len() {
                let at = (turn + round) % rows.len();
                let row = &mut rows[at];
                let place = format!("round {} of {}, {}", round + 1, plan.rounds, pinning.words());
                progress.place(&place, &row.name);
                Turn { plan, machine, how, pinning: *pinning, round }.run(row, progress)?;
            }
        }
    }
    Ok(())
}

/// One server's turn.
struct Turn<'a> {
    plan: &'a Plan,
    machine: &'a Machine,
    how: &'a Start,
    pinning: Pinning,
    round: usize,
}

impl Turn<'_> {
    fn run(&self, row: &mut Row, progress: &mut Progress) -> Result<(), Fault> {
        let mut session = None;
        for phase in self.plan.on(self.pinning) {
            progress.step(&phase.words());
            if row.failed(phase) {
                continue;
            }
            let measured = self.phase(phase, row, &mut session);
            if let Err(Fault::Stopped) = measured {
                return Err(Fault::Stopped);
            }
            let cell = row.cells.entry((phase, self.pinning)).or_default();
            cell.rounds.resize(self.round, None);
            match measured {
                Ok(measured) => cell.rounds.push(measured),
                Err(fault) => {
                    cell.rounds.push(None);
                    cell.fault = Some(fault);
                    // What is still on the wire belongs to what failed.
                    session = None;
                }
            }
        }
        if let Some(session) = session {
            session.finish();
        }
        Ok(())
    }

    fn phase(
        &self,
        phase: Phase,
        row: &mut Row,
        session: &mut Option<Session>,
    ) -> Result<Option<Measured>, Fault> {
        if phase == Phase::Start {
            let measured = starts(self.plan.extent, || self.start(row)).map(Some);
            return measured.inspect_err(|fault| row.fault = Some(fault.clone()));
        }
        if session.is_none() {
            // If it comes to nothing here, it will not elsewhere.
            let opened = self.open(row).inspect_err(|fault| row.fault = Some(fault.clone()));
            *session = Some(opened?);
        }
        let (Some(session), Some(facts)) = (session, &row.facts) else { return Ok(None) };
        let parsed = session.parsed();
        let measured = self.plan.extent.measure(phase, session, facts, &mut row.fire)?;
        // The first answer of each kind is always parsed.
        let calls = measured.map_or(0, |measured| measured.calls);
        row.parsed |= calls > 20 && session.parsed() - parsed > calls as u64 / 2;
        Ok(measured)
    }

    fn start(&self, row: &Row) -> Result<Session, Fault> {
        let era = row.facts.as_ref().map(|facts| facts.opened.era).or(self.plan.era);
        let env = row.env.iter().chain(&self.how.env).cloned().collect();
        let how = Start { env, ..self.how.clone() };
        self.machine.starting(self.pinning, || Session::start(&row.words, &how, era))
    }

    /// A server that is ready to be measured.
    fn open(&self, row: &mut Row) -> Result<Session, Fault> {
        let mut session = self.start(row)?;
        let facts = match row.facts.take() {
            Some(facts) => facts,
            None => Facts::find(&mut session, self.plan.tool.as_ref())?,
        };
        let warm = self.plan.extent.warm_up(&mut session, &facts);
        row.facts = Some(facts);
        warm.map(|()| session)
    }
}
