//! Calls that wait for an answer of a modern client, and which connection a state belongs to.
//!
//! Knows handles, owners and bounds; must not know what is asked. A handle is random, belongs to one
//! principal and one request, and is good for one retry.

use std::hash::BuildHasher;
use std::sync::Arc;

use super::state::{AbortOnDrop, BackSlot, Flow, ParkedCall, ProxyShared};
use crate::lock::lock;
use crate::rpc::ErrorObject;
use crate::transport::Principal;

impl ProxyShared {
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
        let (max, max_bytes) = (self.settings.max_parked, self.settings.max_parked_bytes);
        let mut parked = lock(&self.parked);
        if parked.calls.len() >= max || parked.bytes + bytes > max_bytes {
            return Err(ErrorObject::internal(format!(
                "too many calls wait for answers: {} of {max} calls, {} of {max_bytes} bytes \
                 (ProxyBuilder::parked)",
                parked.calls.len(),
                parked.bytes,
            )));
        }
        let (shared, key, time) = (Arc::downgrade(self), handle.clone(), self.settings.parked_for);
        let timer = tokio::spawn(async move {
            tokio::time::sleep(time).await;
            if let Some(shared) = shared.upgrade() {
                // Dropped after the lock: the server is told that nobody answers.
                let _expired = shared.take_parked(&key, |_| true);
            }
        });
        let _timer = AbortOnDrop(timer.abort_handle());
        parked.bytes += bytes;
        parked
            .calls
            .insert(handle.clone(), ParkedCall { flow, principal, bound_to, _timer, bytes });
        Ok(handle)
    }

    fn take_parked(&self, handle: &str, fits: impl Fn(&ParkedCall) -> bool) -> Option<ParkedCall> {
        let mut parked = lock(&self.parked);
        parked.calls.get(handle).filter(|call| fits(call))?;
        let call = parked.calls.remove(handle)?;
        parked.bytes -= call.bytes;
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
        let own = |call: &ParkedCall| call.principal == *principal && call.bound_to == bound_to;
        self.take_parked(handle, own).map(|call| call.flow)
    }

    /// Remembers that a state came from this slot. Beyond the bound the oldest is forgotten.
    pub(super) fn remember(&self, request_state: &str, slot: &Arc<BackSlot>) {
        let mut routes = lock(&self.routes);
        let key = routes.hasher.hash_one(request_state);
        if routes.slots.insert(key, Arc::downgrade(slot)).is_none() {
            routes.order.push_back(key);
        }
        if routes.order.len() > self.settings.max_routes
            && let Some(oldest) = routes.order.pop_front()
        {
            routes.slots.remove(&oldest);
        }
    }

    /// The slot that a state came from, while it lives.
    pub(super) fn route(&self, request_state: &str) -> Option<Arc<BackSlot>> {
        let routes = lock(&self.routes);
        let key = routes.hasher.hash_one(request_state);
        routes.slots.get(&key)?.upgrade()
    }
}
