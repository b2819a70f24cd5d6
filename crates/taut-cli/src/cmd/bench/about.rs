//! The machine, as the result names it.

use std::fs;

use serde_json::{Value, json};

use super::pinning::Machine;

/// For programs.
pub(super) fn document(machine: &Machine) -> Value {
    let kernel = rustix::system::uname();
    json!({
        "cpu": cpu(),
        "cores": machine.cores(),
        "system": kernel.sysname().to_string_lossy(),
        "kernel": kernel.release().to_string_lossy(),
    })
}

/// For people.
pub(super) fn words(machine: &Machine) -> String {
    let cores = machine.cores();
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    let version: String = release.split('.').take(2).collect::<Vec<_>>().join(".");
    format!("{}, {cores} core{}, Linux {version}", cpu(), if cores == 1 { "" } else { "s" })
}

fn cpu() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = text.lines().find_map(|line| line.strip_prefix("model name"));
    let name = name.and_then(|rest| rest.split_once(':')).map(|(_, name)| name.trim());
    name.unwrap_or(std::env::consts::ARCH).to_owned()
}
