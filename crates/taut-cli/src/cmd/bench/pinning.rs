//! Which core each side runs on.
//!
//! A process starts where the thread that starts it may run, so only that thread is ever moved.

use std::fs;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use super::options::Cores;

/// How load and server share the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Pinning {
    /// Both on one core.
    One,
    /// Each on its own.
    Two,
    /// Wherever the system puts them.
    Any,
}

impl Pinning {
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::One => "one core",
            Self::Two => "two cores",
            Self::Any => "any core",
        }
    }

    pub(super) fn key(self) -> &'static str {
        match self {
            Self::One => "one",
            Self::Two => "two",
            Self::Any => "any",
        }
    }
}

/// The cores there are.
#[derive(Clone, Debug)]
pub(super) struct Machine {
    all: CpuSet,
    pair: Option<(usize, usize)>,
}

impl Machine {
    pub(super) fn look() -> Self {
        let all = sched_getaffinity(None).unwrap_or_default();
        let cores: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|core| all.is_set(*core)).collect();
        // Two threads of one core would get in each other's way.
        let pair = cores.first().and_then(|first| {
            let siblings = siblings(*first);
            let apart = cores.iter().find(|core| *core != first && !siblings.contains(core));
            apart.or_else(|| cores.get(1)).map(|second| (*first, *second))
        });
        Self { all, pair }
    }

    /// What of the wish can be done here; the last is where the server has the most room.
    pub(super) fn pinnings(&self, wish: Cores) -> Vec<Pinning> {
        match wish {
            Cores::Any => vec![Pinning::Any],
            Cores::One => vec![Pinning::One],
            _ if self.pair.is_none() => vec![Pinning::One],
            Cores::Two => vec![Pinning::Two],
            Cores::Both => vec![Pinning::One, Pinning::Two],
        }
    }

    /// Runs something that starts a server, where the server belongs; afterwards this thread is where
    /// the load belongs.
    pub(super) fn starting<T>(&self, pinning: Pinning, start: impl FnOnce() -> T) -> T {
        let first = self.pair.map_or_else(|| self.only(), |(first, _)| first);
        let (load, server) = match (pinning, self.pair) {
            (Pinning::Two, Some((first, second))) => (set(first), set(second)),
            (Pinning::Any, _) => (self.all, self.all),
            _ => (set(first), set(first)),
        };
        // Without the right to it, things run where they run.
        let _ = sched_setaffinity(None, &server);
        let started = start();
        let _ = sched_setaffinity(None, &load);
        started
    }

    fn only(&self) -> usize {
        (0..CpuSet::MAX_CPU).find(|core| self.all.is_set(*core)).unwrap_or(0)
    }

    /// Everywhere again.
    pub(super) fn release(&self) {
        let _ = sched_setaffinity(None, &self.all);
    }

    pub(super) fn cores(&self) -> u32 {
        self.all.count()
    }
}

fn set(core: usize) -> CpuSet {
    let mut set = CpuSet::new();
    set.set(core);
    set
}

/// The threads of the same core: `0,4` or `0-1`.
fn siblings(core: usize) -> Vec<usize> {
    let path = format!("/sys/devices/system/cpu/cpu{core}/topology/thread_siblings_list");
    ranges(&fs::read_to_string(path).unwrap_or_default())
}

fn ranges(text: &str) -> Vec<usize> {
    let mut all = Vec::new();
    for part in text.trim().split(',') {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        if let (Ok(from), Ok(to)) = (from.parse(), to.parse::<usize>()) {
            all.extend(from..=to.min(CpuSet::MAX_CPU));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cores_are_read_as_linux_writes_them() {
        assert_eq!(ranges("0,4\n"), [0, 4]);
        assert_eq!(ranges("0-2,7"), [0, 1, 2, 7]);
        assert_eq!(ranges(""), [0; 0]);
    }
}
