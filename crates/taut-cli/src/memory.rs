//! Memory that nobody uses any more goes back to the system.
//!
//! glibc gives back only what lies above the last piece that is in use, and one small piece that was made late keeps
//! all below it: after a thousand sessions had ended, a bridge still had all their memory. Must not know what ended.
//! Other allocators give back by themselves. Why with `unsafe`: docs/decisions/0018-memory-back.md.
#![allow(unsafe_code, reason = "docs/decisions/0018-memory-back.md")]

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;

/// How long the ends of many sessions become one.
const TOGETHER: Duration = Duration::from_secs(1);

/// Gives memory back some time after it was told that something ended.
#[derive(Clone)]
pub(crate) struct GiveBack(Arc<Notify>);

impl GiveBack {
    /// Starts the task that does it. It ends with the runtime.
    pub(crate) fn start() -> Self {
        let ended = Arc::new(Notify::new());
        let told = ended.clone();
        tokio::spawn(async move {
            loop {
                told.notified().await;
                tokio::time::sleep(TOGETHER).await;
                give_back();
            }
        });
        Self(ended)
    }

    /// Something ended.
    pub(crate) fn soon(&self) {
        self.0.notify_one();
    }
}

#[cfg(all(target_os = "linux", target_env = "gnu", not(taut_portable)))]
fn give_back() {
    // SAFETY: the declaration is that of glibc's malloc.h. It may be called at any time, from any thread.
    unsafe extern "C" {
        safe fn malloc_trim(pad: usize) -> std::ffi::c_int;
    }
    malloc_trim(0);
}

#[cfg(not(all(target_os = "linux", target_env = "gnu", not(taut_portable))))]
fn give_back() {}
