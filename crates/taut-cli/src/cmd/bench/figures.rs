//! What a server has cost so far, as Linux counts it in `/proc`.
//!
//! Counts every process of the server's group, because many servers are started by a wrapper.

use std::fs;
use std::path::Path;

/// Costs up to now.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Figures {
    /// Nanoseconds of a CPU.
    pub(super) cpu: u64,
    /// How often a thread of it gave way to another.
    pub(super) switches: u64,
    /// The most memory that it had at once since it was last forgotten, in bytes.
    pub(super) peak: u64,
}

impl Figures {
    /// All of the group so far.
    pub(super) fn read(group: u32) -> Self {
        let mut all = Self::default();
        for pid in members(group) {
            let one = process(pid);
            all.cpu += one.cpu;
            all.switches += one.switches;
            all.peak += one.peak;
        }
        all
    }
}

/// Forgets how much memory it had; from now on the most is counted anew.
pub(super) fn forget_peak(group: u32) {
    for pid in members(group) {
        // Without it the peak is that of the whole life.
        let _ = fs::write(format!("/proc/{pid}/clear_refs"), "5");
    }
}

fn members(group: u32) -> Vec<u32> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid| stat(*pid).is_some_and(|stat| stat.group == group)).collect()
}

struct Stat {
    group: u32,
    /// User and system time in hundredths of a second.
    ticks: u64,
}

fn stat(pid: u32) -> Option<Stat> {
    parse_stat(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

fn parse_stat(text: &str) -> Option<Stat> {
    // The name before it may contain anything.
    let fields: Vec<&str> = text.rsplit_once(") ")?.1.split(' ').collect();
    let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
    let group = u32::try_from(number(2)?).ok()?;
    Some(Stat { group, ticks: number(11)? + number(12)? })
}

fn process(pid: u32) -> Figures {
    let root = format!("/proc/{pid}");
    let mut all = Figures::default();
    for task in fs::read_dir(format!("{root}/task")).into_iter().flatten().flatten() {
        let read = |name| fs::read_to_string(task.path().join(name)).unwrap_or_default();
        let run = read("schedstat");
        all.cpu += run.split(' ').next().and_then(|ns| ns.parse::<u64>().ok()).unwrap_or(0);
        let status = read("status");
        all.switches += field(&status, "voluntary_ctxt_switches:")
            + field(&status, "nonvoluntary_ctxt_switches:");
    }
    // Threads that have ended are counted only here, and in steps of 10 ms.
    let ticks = stat(pid).map_or(0, |stat| stat.ticks);
    all.cpu = all.cpu.max(ticks * 10_000_000);
    let status = fs::read_to_string(Path::new(&root).join("status")).unwrap_or_default();
    all.peak = field(&status, "VmHWM:") << 10;
    all
}

fn field(status: &str, name: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_blanks_and_brackets_confuses_nothing() {
        let text = "7 (a) b (c) S 1 42 42 0 -1 4194560 4876 59046 0 12 3 1 46 11 20 0";
        let stat = parse_stat(text).unwrap();
        assert_eq!((stat.group, stat.ticks), (42, 4));
    }

    #[test]
    fn we_cost_something_ourselves() {
        let own = process(std::process::id());
        assert!(own.peak > 100_000, "{own:?}");
        assert_eq!(field("a:\nVmHWM:\t  12 kB\n", "VmHWM:"), 12);
    }
}
