//! Calls that wait for an answer of a modern client, and which connection a state belongs to.
//!
//! Knows handles, owners and bounds; must not know what is asked. A handle is random, belongs to one
//! principal and one request, and is good for one retry.

use std::hash::BuildHasher;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use super::state::{BackSlot, Flow, Parked, ParkedCall, ParkedState, ProxySettings};
use crate::driver::now;
use crate::lock::lock;
use crate::rpc::ErrorObject;
use crate::transport::Principal;

/// How many states of modern servers are remembered, for finding the connection that each came from.
const ROUTES: usize = 4_096;

impl Parked {
    pub(super) fn new(settings: &ProxySettings) -> Self {
        Self {
            state: Mutex::default(),
            time: settings.parked_for,
            max: settings.max_parked,
            max_bytes: settings.max_parked_bytes,
        }
    }

    fn lock(&self) -> MutexGuard<'_, ParkedState> {
        lock(&self.state)
    }

    /// Parks a call. Returns the handle that resumes it.
    ///
    /// # Errors
    /// Too many wait already, or no handle can be made.
    pub(super) fn park(
        self: &Arc<Self>,
        flow: Flow,
        principal: Principal,
        bound_to: String,
        bytes: usize,
    ) -> Result<String, ErrorObject> {
        let mut random = [0; 16];
        getrandom::fill(&mut random)
            .map_err(|error| ErrorObject::internal(format!("no random bytes: {error}")))?;
        let handle: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
        let expires = now().checked_add(self.time);
        let expires = expires.unwrap_or_else(|| now() + Duration::from_secs(86_400 * 365));
        let mut state = self.lock();
        if state.calls.len() >= self.max || state.bytes + bytes > self.max_bytes {
            return Err(ErrorObject::internal(format!(
                "too many calls wait for answers: {} of {} calls, {} of {} bytes",
                state.calls.len(),
                self.max,
                state.bytes,
                self.max_bytes
            )));
        }
        let (parked, key) = (Arc::downgrade(self), handle.clone());
        let timer = tokio::spawn(async move {
            tokio::time::sleep_until(expires.into()).await;
            if let Some(parked) = parked.upgrade() {
                // Dropped after the lock: the server is told that nobody answers.
                let _expired = parked.remove(&key);
            }
        });
        let timer = timer.abort_handle();
        state.bytes += bytes;
        let call = ParkedCall { flow, principal, bound_to, expires, timer, bytes };
        state.calls.insert(handle.clone(), call);
        Ok(handle)
    }

    fn remove(&self, handle: &str) -> Option<ParkedCall> {
        let mut state = self.lock();
        let call = state.calls.remove(handle)?;
        state.bytes -= call.bytes;
        Some(call)
    }

    /// Takes a call back. Nothing if the handle is unknown, has expired, or belongs to another principal
    /// or another request.
    pub(super) fn resume(
        &self,
        handle: &str,
        principal: &Principal,
        bound_to: &str,
    ) -> Option<Flow> {
        {
            let state = self.lock();
            let call = state.calls.get(handle)?;
            if call.principal != *principal || call.bound_to != bound_to || call.expires < now() {
                return None;
            }
        }
        let call = self.remove(handle)?;
        call.timer.abort();
        Some(call.flow)
    }

    /// Remembers that a state came from this slot.
    pub(super) fn remember(&self, request_state: &str, slot: &Arc<BackSlot>) {
        let mut state = self.lock();
        let key = state.hasher.hash_one(request_state);
        if state.routes.insert(key, Arc::downgrade(slot)).is_none() {
            state.order.push_back(key);
        }
        if state.order.len() > ROUTES
            && let Some(oldest) = state.order.pop_front()
        {
            state.routes.remove(&oldest);
        }
    }

    /// The slot that a state came from, while it lives.
    pub(super) fn route(&self, request_state: &str) -> Option<Arc<BackSlot>> {
        let state = self.lock();
        let key = state.hasher.hash_one(request_state);
        state.routes.get(&key)?.upgrade()
    }
}
