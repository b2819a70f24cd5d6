//! How a child process ended, as a person would say it.
//!
//! Knows codes and signal names. Must not know how the status was collected: no process, no I/O.

use std::fmt;

/// How a process ended: with a code, by a signal, or unseen.
///
/// ```
/// # fn show(exit: taut::process::ExitStatus) {
/// println!("the server {exit}"); // "the server exited with code 42"
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct ExitStatus {
    /// The code it exited with, unless a signal ended it.
    pub code: Option<i32>,
    /// The signal that ended it, unless it exited with a code.
    pub signal: Option<i32>,
    /// Whether it left a core dump behind.
    pub core_dumped: bool,
}

impl ExitStatus {
    /// The status was not seen: another part of this program collected it, or the process outlived
    /// SIGKILL in the kernel.
    pub(super) const UNSEEN: Self = Self { code: None, signal: None, core_dumped: false };

    /// Whether it exited with code 0.
    #[must_use]
    pub const fn success(&self) -> bool {
        matches!(self.code, Some(0))
    }
}

/// Reads on after a name: "exited with code 42", "was killed by signal 11 (SIGSEGV)".
impl fmt::Display for ExitStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.code, self.signal) {
            (Some(code), _) => write!(f, "exited with code {code}"),
            (None, Some(signal)) => {
                write!(f, "was killed by signal {signal}")?;
                if let Some(name) = signal_name(signal) {
                    write!(f, " ({name})")?;
                }
                if self.core_dumped { f.write_str(" and dumped core") } else { Ok(()) }
            }
            (None, None) => f.write_str("ended, and its status was not seen"),
        }
    }
}

/// The signals that end servers in practice and have the same number on Linux, macOS and the BSDs.
/// Others are shown by number alone.
const fn signal_name(signal: i32) -> Option<&'static str> {
    Some(match signal {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        5 => "SIGTRAP",
        6 => "SIGABRT",
        8 => "SIGFPE",
        9 => "SIGKILL",
        11 => "SIGSEGV",
        13 => "SIGPIPE",
        14 => "SIGALRM",
        15 => "SIGTERM",
        24 => "SIGXCPU",
        25 => "SIGXFSZ",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// P17
    #[test]
    fn an_exit_says_code_signal_and_name() {
        let code = |code| ExitStatus { code: Some(code), ..ExitStatus::UNSEEN };
        let signal = |signal| ExitStatus { signal: Some(signal), ..ExitStatus::UNSEEN };
        let cases = [
            (code(0), "exited with code 0"),
            (code(42), "exited with code 42"),
            (signal(11), "was killed by signal 11 (SIGSEGV)"),
            (signal(64), "was killed by signal 64"),
            (
                ExitStatus { core_dumped: true, ..signal(6) },
                "was killed by signal 6 (SIGABRT) and dumped core",
            ),
            (ExitStatus::UNSEEN, "ended, and its status was not seen"),
        ];
        for (exit, text) in cases {
            assert_eq!(exit.to_string(), text);
        }
    }
}
