//! What is left of a row: processes that carry its mark in their environment.

use std::time::Duration;

use tokio::time::{Instant, sleep};

/// Set for everything that a row starts.
pub const VARIABLE: &str = "INTEROP_ROW";

/// Waits until nothing with this mark runs any more; says what does when the time is up.
pub async fn wait(mark: &str, limit: Duration) -> Option<String> {
    let deadline = Instant::now() + limit;
    loop {
        let left = with_mark(mark);
        if left.is_empty() {
            return None;
        }
        if Instant::now() > deadline {
            left.iter().for_each(|(pid, _)| kill(*pid));
            let names: Vec<_> = left.into_iter().map(|(_, name)| name).collect();
            return Some(format!("left running: {}", names.join("; ")));
        }
        sleep(Duration::from_millis(50)).await;
    }
}

/// The processes with this mark, and their command lines.
fn with_mark(mark: &str) -> Vec<(i32, String)> {
    let wanted = format!("{VARIABLE}={mark}");
    let own = std::process::id().cast_signed();
    let Ok(all) = std::fs::read_dir("/proc") else { return Vec::new() };
    all.flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok())
        .filter(|pid| *pid != own)
        .filter_map(|pid| {
            let environ = std::fs::read(format!("/proc/{pid}/environ")).ok()?;
            let marked = environ.split(|b| *b == 0).any(|variable| variable == wanted.as_bytes());
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            marked.then(|| (pid, line.trim().to_owned()))
        })
        .collect()
}

fn kill(pid: i32) {
    if let Some(pid) = rustix::process::Pid::from_raw(pid) {
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    }
}
