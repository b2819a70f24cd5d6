//! What servers leave behind outside of their session, on Linux: adopted, ended, and spared where somebody wants that.
//!
//! Knows whose a child is and when it is ended; must not know what a server does. Elsewhere nothing is adopted, and what
//! leaves the session of its server lives on. See docs/decisions/0023-what-servers-leave-behind.md.

/// The variable by which a process says that it is to live on, if it is 1.
pub(crate) const LIVES_ON: &str = "TAUT_LEAVE_RUNNING";

#[cfg(not(all(target_os = "linux", not(taut_portable))))]
pub(crate) use elsewhere::{Sweeper, end, keep_swept};
#[cfg(all(target_os = "linux", not(taut_portable)))]
pub(crate) use linux::{Sweeper, end, keep_swept, stays};

#[cfg(all(target_os = "linux", not(taut_portable)))]
mod linux {
    use std::collections::{HashMap, HashSet};
    use std::time::{Duration, Instant};

    use rustix::io::Errno;
    use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, waitid};

    use super::LIVES_ON;
    use crate::processes::{self, Process};

    /// How long what is left may take to end after SIGTERM, when the command ends.
    const GRACE: Duration = Duration::from_millis(500);

    /// How long it may take after SIGKILL.
    const KILLED: Duration = Duration::from_secs(1);

    /// How far apart two looks are: what is waited for elsewhere is waited for by then.
    const PAUSE: Duration = Duration::from_secs(1);

    /// Whether a process that has left its server is left alone: it was started with the variable, or it was moved to
    /// another control group than ours, as `systemd-run --scope` and desktops do with what is to live by itself.
    pub(crate) fn stays(pid: u32) -> bool {
        let file = |pid: &str, name: &str| std::fs::read(format!("/proc/{pid}/{name}")).ok();
        let pid = pid.to_string();
        let wish = format!("{LIVES_ON}=1");
        let says = |environment: Vec<u8>| {
            environment.split(|byte| *byte == 0).any(|variable| variable == wish.as_bytes())
        };
        let moved = || match (file(&pid, "cgroup"), file("self", "cgroup")) {
            (Some(its), Some(ours)) => its != ours && !its.is_empty(),
            _ => false,
        };
        file(&pid, "environ").is_some_and(says) || moved()
    }

    /// Whether there are children at all, dead ones included.
    fn any_children() -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        !matches!(waitid(WaitId::All, options), Err(Errno::CHILD))
    }

    /// Ends what servers have left behind and what is ours by now: SIGTERM, and SIGKILL a moment later. For the end of a
    /// command, when its servers have ended.
    pub(crate) fn end() {
        if !processes::adopts() || !any_children() {
            return;
        }
        let (began, mut asked) = (Instant::now(), HashSet::new());
        loop {
            let left = processes::left_to_us();
            if left.is_empty() || began.elapsed() > GRACE + KILLED {
                return;
            }
            for process in &left {
                if began.elapsed() > GRACE {
                    processes::signal(process.pid, Signal::KILL);
                } else if asked.insert(process.pid) {
                    processes::signal(process.pid, Signal::TERM);
                }
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Looks after what was adopted while a command goes on for long.
    #[derive(Default)]
    pub(crate) struct Sweeper {
        /// How often each was seen, by its number and its start time.
        seen: HashMap<(u32, u64), u32>,
        last: Option<Instant>,
    }

    impl Sweeper {
        /// Ends what is older than every server that runs, as its own server has ended, and collects the status of what
        /// has ended. Everything is seen twice before anything is done. Returns when to look again, if there is something
        /// to look after.
        pub(crate) fn sweep(&mut self) -> Option<Duration> {
            self.look(&[], true)
        }

        /// Only collects the status of what has ended, where a server was not started by the library.
        pub(crate) fn collect(&mut self, server: u32) -> Option<Duration> {
            self.look(&[server], false)
        }

        fn look(&mut self, servers: &[u32], ends: bool) -> Option<Duration> {
            if !processes::adopts() || !any_children() {
                self.seen.clear();
                return None;
            }
            if let Some(since) = self.last.map(|last| last.elapsed()).filter(|since| *since < PAUSE)
            {
                return Some(PAUSE.saturating_sub(since));
            }
            self.last = Some(Instant::now());
            let Some(mut running) = taut::process::running() else { return Some(PAUSE) };
            running.extend(servers);
            let (all, dead) = processes::living_and_dead();
            let of_servers = all.iter().filter(|process| running.contains(&process.pid));
            let oldest = of_servers.map(|process| process.born).min();
            let adopted = |process: &&Process| processes::is_adopted(process, &running);
            let over = |process: &&Process| {
                ends && oldest.is_none_or(|oldest| process.born < oldest) && !stays(process.pid)
            };
            let mut seen = HashMap::new();
            for process in dead.iter().filter(adopted) {
                if self.count(&mut seen, process) > 1 {
                    collect(process.pid);
                }
            }
            for process in all.iter().filter(adopted).filter(over) {
                match self.count(&mut seen, process) {
                    1 => {}
                    2 => drop(processes::signal(process.pid, Signal::TERM)),
                    _ => drop(processes::signal(process.pid, Signal::KILL)),
                }
            }
            self.seen = seen;
            (!self.seen.is_empty()).then_some(PAUSE)
        }

        fn count(&self, seen: &mut HashMap<(u32, u64), u32>, process: &Process) -> u32 {
            let key = (process.pid, process.born);
            let count = self.seen.get(&key).copied().unwrap_or_default() + 1;
            seen.insert(key, count);
            count
        }
    }

    /// Collects the status of a child that has ended.
    fn collect(pid: u32) {
        let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
        let _ =
            pid.map(|pid| waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOHANG));
    }

    /// Sweeps whenever a child has ended, as long as the runtime lives.
    pub(crate) fn keep_swept() {
        tokio::spawn(async {
            let Ok(ended) = crate::signals::Signal::new(signal_hook::consts::SIGCHLD) else {
                return;
            };
            let mut sweeper = Sweeper::default();
            loop {
                ended.next().await;
                while let Some(pause) = sweeper.sweep() {
                    tokio::time::sleep(pause).await;
                }
            }
        });
    }
}

#[cfg(not(all(target_os = "linux", not(taut_portable))))]
mod elsewhere {
    use std::time::Duration;

    pub(crate) const fn end() {}

    pub(crate) const fn keep_swept() {}

    #[derive(Default)]
    pub(crate) struct Sweeper {}

    impl Sweeper {
        #[expect(clippy::unused_self, reason = "as on Linux")]
        pub(crate) const fn collect(&mut self, _: u32) -> Option<Duration> {
            None
        }
    }
}
