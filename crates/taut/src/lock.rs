//! Locks that ignore poison.
//!
//! Knows nothing of what is locked. A panic in users' code never happens under one of these locks, and a panic
//! of ours must not take the whole connection down.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks, also after a panic under this lock.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
