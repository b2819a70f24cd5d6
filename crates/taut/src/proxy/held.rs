//! Questions of a legacy server that wait for their answers, and their bounds.
//!
//! Knows how many there are; must not know whose they are. A question counts until it is answered, or until
//! nobody keeps it any more: one that the server has withdrawn may still wait for its call.

use std::sync::Arc;

use super::state::{BackState, HeldQuestion, HeldQuestions};
use crate::lock::lock;
use crate::rpc::ErrorObject;

/// What a question takes beside its params.
const QUESTION: usize = 256;

impl BackState {
    /// Counts a question with params of this size, if there is room for it.
    ///
    /// # Errors
    /// The error for the server, which names the bounds.
    pub(super) fn hold(self: &Arc<Self>, params: usize) -> Result<HeldQuestion, ErrorObject> {
        let Some(shared) = self.shared.upgrade() else {
            return Err(ErrorObject::internal("the proxy has ended"));
        };
        let (max, max_bytes) = (shared.settings.max_held, shared.settings.max_held_bytes);
        let mut held = lock(&self.held);
        let HeldQuestions { count, bytes } = &mut *held;
        if *count >= max || *bytes >= max_bytes {
            return Err(ErrorObject::internal(format!(
                "too many questions wait for answers: {count} of {max} questions, {bytes} of {max_bytes} bytes"
            )));
        }
        let size = params + QUESTION;
        *count += 1;
        *bytes += size;
        Ok(HeldQuestion { state: self.clone(), size })
    }
}

impl Drop for HeldQuestion {
    fn drop(&mut self) {
        let mut held = lock(&self.state.held);
        held.count -= 1;
        held.bytes -= self.size;
    }
}
