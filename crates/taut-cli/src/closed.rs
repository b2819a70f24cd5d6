//! Whether stdout was closed when the process was started: `taut call … >&-`.
//!
//! Before `main`, Rust opens the null device in the place of a closed stdout, and every write to it then works. So it is
//! looked at before that. Must not know what is written. Why with `unsafe`: docs/decisions/0025-closed-stdout.md.
#![allow(unsafe_code, reason = "docs/decisions/0025-closed-stdout.md")]

use std::sync::atomic::{AtomicBool, Ordering};

static CLOSED: AtomicBool = AtomicBool::new(false);

/// What a write to stdout would have said, had it been left closed.
pub(crate) fn stdout() -> Option<std::io::Error> {
    CLOSED.load(Ordering::Relaxed).then(error)
}

#[cfg(all(target_os = "linux", not(taut_portable)))]
fn error() -> std::io::Error {
    rustix::io::Errno::BADF.into()
}

#[cfg(not(all(target_os = "linux", not(taut_portable))))]
fn error() -> std::io::Error {
    std::io::Error::other("stdout is closed")
}

// SAFETY: the loader calls what stands in this section, with any arguments, before `main`. The function asks the
// system about one descriptor and sets a flag; it uses nothing of Rust's runtime.
#[cfg(all(target_os = "linux", not(taut_portable)))]
#[used]
#[unsafe(link_section = ".init_array")]
static BEFORE_MAIN: extern "C" fn() = look;

#[cfg(all(target_os = "linux", not(taut_portable)))]
extern "C" fn look() {
    use rustix::stdio::stdout as first_descriptor;
    let closed = rustix::io::fcntl_getfd(first_descriptor()).is_err();
    CLOSED.store(closed, Ordering::Relaxed);
}
