//! The processes that a server has started, from `/proc`.
//!
//! Linux only; elsewhere the lists are empty, and [`LISTED`] says so. A process is identified by its number and its start time,
//! because numbers are used again.

use std::fmt;
#[cfg(all(target_os = "linux", not(taut_portable)))]
use std::sync::atomic::{AtomicBool, Ordering};
#[cfg(all(target_os = "linux", not(taut_portable)))]
use std::time::{Duration, Instant};

/// Whether this system tells what a process has started.
pub(crate) const LISTED: bool = cfg!(all(target_os = "linux", not(taut_portable)));

/// A process of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) pid: u32,
    pub(crate) name: String,
    /// Whether it left the server's session, so that no host would find it.
    pub(crate) escaped: bool,
    parent: u32,
    #[cfg(all(target_os = "linux", not(taut_portable)))]
    group: u32,
    session: u32,
    /// When it was started, in ticks since the system was.
    pub(crate) born: u64,
}

impl fmt::Display for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (process {})", self.name, self.pid)
    }
}

/// The program that a process runs.
pub(crate) fn program(pid: u32) -> Option<String> {
    let path = std::fs::read_link(format!("/proc/{pid}/exe")).ok()?;
    Some(path.display().to_string())
}

/// Everything that a process has started and that still runs, itself left out.
pub(crate) fn family(root: u32) -> Vec<Process> {
    let all = all();
    let mut found: Vec<Process> = Vec::new();
    loop {
        let known = |pid: u32| pid == root || found.iter().any(|process| process.pid == pid);
        let next = all
            .iter()
            .find(|p| p.pid != root && !known(p.pid) && (known(p.parent) || p.session == root));
        match next {
            Some(process) => {
                found.push(Process { escaped: process.session != root, ..process.clone() });
            }
            None => return found,
        }
    }
}

/// What of a family still runs now that its head is gone, and what has joined its session since.
pub(crate) fn left(root: u32, family: &[Process]) -> Vec<Process> {
    let of_family = |p: &Process| family.iter().any(|old| old.pid == p.pid && old.born == p.born);
    let all = all().into_iter().filter(|p| p.pid != root && (p.session == root || of_family(p)));
    all.map(|p| Process { escaped: p.session != root, ..p }).collect()
}

/// From now on a process of a server whose parent has ended becomes our child, whatever session it is in, so
/// that it can be found.
pub(crate) fn adopt_orphans() {
    #[cfg(all(target_os = "linux", not(taut_portable)))]
    {
        // Where the system refuses it, what stays in a server's session is still found.
        let ours = rustix::process::getpid();
        let adopts = rustix::process::set_child_subreaper(Some(ours)).is_ok();
        ADOPTS.store(adopts, Ordering::SeqCst);
    }
}

#[cfg(all(target_os = "linux", not(taut_portable)))]
static ADOPTS: AtomicBool = AtomicBool::new(false);

/// What servers have left behind and became our child, with what it has started. `servers` have the numbers of
/// all servers that were started.
pub(crate) fn adopted(servers: &[u32]) -> Vec<Process> {
    #[cfg(all(target_os = "linux", not(taut_portable)))]
    if ADOPTS.load(Ordering::SeqCst) {
        let all = all();
        let heirs = descendants(&all, std::process::id(), &lives_on);
        let is_left = |p: &&Process| !servers.contains(&p.pid) && !is_ours(p);
        let escaped = |p: Process| Process { escaped: !servers.contains(&p.session), ..p };
        return heirs.iter().filter(is_left).cloned().map(escaped).collect();
    }
    let _ = servers;
    Vec::new()
}

/// Whether orphans become our children.
#[cfg(all(target_os = "linux", not(taut_portable)))]
pub(crate) fn adopts() -> bool {
    ADOPTS.load(Ordering::SeqCst)
}

/// Whether a process is a child of ours that was left behind: no server that runs, and not opened by us.
#[cfg(all(target_os = "linux", not(taut_portable)))]
pub(crate) fn is_adopted(process: &Process, servers: &[u32]) -> bool {
    process.parent == std::process::id() && !servers.contains(&process.pid) && !is_ours(process)
}

/// What is to be ended with the command: all that it has started, but for what lives on, with all that this has started.
#[cfg(all(target_os = "linux", not(taut_portable)))]
pub(crate) fn left_to_us() -> Vec<Process> {
    descendants(&all(), std::process::id(), &|process| is_ours(process) || lives_on(process))
}

/// Whether it has left its server, and is to live on.
#[cfg(all(target_os = "linux", not(taut_portable)))]
fn lives_on(process: &Process) -> bool {
    let servers = taut::process::running().unwrap_or_default();
    let of_server = servers.contains(&process.pid) || servers.contains(&process.session);
    let ours = place(std::process::id()).map(|ours| ours.session);
    !of_server && ours != Some(process.session) && crate::leftovers::stays(process.pid)
}

/// Whether it belongs to us and not to a server: a browser that shows a page.
#[cfg(all(target_os = "linux", not(taut_portable)))]
fn is_ours(process: &Process) -> bool {
    crate::browser::has_started(process.group)
}

/// All that a process has started, by their parents, but for what is `spared`, with all that this has started.
#[cfg(all(target_os = "linux", not(taut_portable)))]
fn descendants(all: &[Process], root: u32, spared: &dyn Fn(&Process) -> bool) -> Vec<Process> {
    let mut found: Vec<Process> = Vec::new();
    let mut parents = vec![root];
    while let Some(parent) = parents.pop() {
        for child in all.iter().filter(|process| process.parent == parent) {
            if spared(child) {
                continue;
            }
            parents.push(child.pid);
            found.push(child.clone());
        }
    }
    found
}

fn all() -> Vec<Process> {
    living_and_dead().0
}

/// All processes: those that run, and those that have ended and were not waited for.
pub(crate) fn living_and_dead() -> (Vec<Process>, Vec<Process>) {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Default::default() };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let (living, dead): (Vec<_>, Vec<_>) = pids.filter_map(look).partition(|(_, lives)| *lives);
    let processes = |those: Vec<(Process, bool)>| those.into_iter().map(|(p, _)| p).collect();
    (processes(living), processes(dead))
}

/// Where a process stands among others. A number is 0 if its leader is not in our namespace, as in many containers;
/// `getsid` and `getpgrp` of rustix must not be used there.
#[cfg(unix)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) group: u32,
    pub(crate) session: u32,
}

#[cfg(all(target_os = "linux", not(taut_portable)))]
pub(crate) fn place(pid: u32) -> Option<Place> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat.rsplit_once(") ")?.1.split(' ').skip(2).map(str::parse);
    Some(Place { group: fields.next()?.ok()?, session: fields.next()?.ok()? })
}

#[cfg(all(unix, not(all(target_os = "linux", not(taut_portable)))))]
#[expect(clippy::disallowed_methods, reason = "only Linux has namespaces of processes")]
pub(crate) fn place(pid: u32) -> Option<Place> {
    use rustix::process::{Pid, getpgid, getsid};
    let pid = Pid::from_raw(i32::try_from(pid).ok()?)?;
    let number = |pid: Pid| u32::try_from(pid.as_raw_pid()).ok();
    Some(Place {
        group: number(getpgid(Some(pid)).ok()?)?,
        session: number(getsid(Some(pid)).ok()?)?,
    })
}

/// A process that runs.
#[cfg(unix)]
fn one(pid: u32) -> Option<Process> {
    look(pid).filter(|(_, lives)| *lives).map(|(process, _)| process)
}

/// A process, and whether it runs; one that does not is only not waited for.
fn look(pid: u32) -> Option<(Process, bool)> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (head, rest) = stat.rsplit_once(") ")?;
    let name = head.split_once('(')?.1.to_owned();
    let fields: Vec<&str> = rest.split(' ').collect();
    let lives = !matches!(*fields.first()?, "Z" | "X");
    let process = Process {
        pid,
        name,
        escaped: false,
        parent: fields.get(1)?.parse().ok()?,
        #[cfg(all(target_os = "linux", not(taut_portable)))]
        group: fields.get(2)?.parse().ok()?,
        session: fields.get(3)?.parse().ok()?,
        born: fields.get(19)?.parse().ok()?,
    };
    Some((process, lives))
}

/// Whether a process is stopped, as by SIGSTOP, or by reading from a terminal that is not its own.
pub(crate) fn is_stopped(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T'))
}

/// How long the servers may take to be gone after SIGKILL.
#[cfg(all(target_os = "linux", not(taut_portable)))]
const KILLED: Duration = Duration::from_secs(1);

/// Kills the servers that this process has started, with all that they have started, and waits until they
/// are gone.
pub(crate) fn kill_servers() {
    #[cfg(all(target_os = "linux", not(taut_portable)))]
    kill_children(|process| is_ours(process) || lives_on(process));
}

/// Kills everything that this process has started, and waits until it is gone.
pub(crate) fn kill_all() {
    #[cfg(all(target_os = "linux", not(taut_portable)))]
    kill_children(lives_on);
}

#[cfg(all(target_os = "linux", not(taut_portable)))]
fn kill_children(spared: impl Fn(&Process) -> bool) {
    use rustix::process::{Pid, Signal, kill_process_group};
    let (ours, began) = (std::process::id(), Instant::now());
    loop {
        let servers = descendants(&all(), ours, &spared);
        if servers.is_empty() || began.elapsed() > KILLED {
            return;
        }
        for process in servers {
            let pid = i32::try_from(process.pid).ok().and_then(Pid::from_raw);
            // It may be gone by now, or lead no group.
            let _ = pid.map(|pid| kill_process_group(pid, Signal::KILL));
            signal(process.pid, Signal::KILL);
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Sends SIGTERM to one process, as most hosts do.
#[cfg(unix)]
pub(crate) fn terminate(pid: u32) -> bool {
    signal(pid, rustix::process::Signal::TERM)
}

#[cfg(not(unix))]
pub(crate) fn terminate(_: u32) -> bool {
    false
}

/// Ends what was left in the server's session. What has left that is ended with the command, on Linux.
pub(crate) fn end(left: &[Process]) {
    #[cfg(unix)]
    for process in left.iter().filter(|process| !process.escaped) {
        if one(process.pid).is_some_and(|now| now.born == process.born) {
            signal(process.pid, rustix::process::Signal::KILL);
        }
    }
    #[cfg(not(unix))]
    let _ = left;
}

#[cfg(unix)]
pub(crate) fn signal(pid: u32, signal: rustix::process::Signal) -> bool {
    let pid = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
    pid.is_some_and(|pid| rustix::process::kill_process(pid, signal).is_ok())
}
