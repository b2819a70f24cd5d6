//! A second process, asked beside one that is silent.
//!
//! The first is never disturbed by it: the first of the two that agrees is used, and what became of the
//! second is kept for the error. Must not decide when it is wanted: `mcp/connect.rs` does. F13.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use super::handshake::{Handshake, Stopped};
use super::{GIVEN_UP, end, start};
use crate::client::connection::{ClientSettings, Session};
use crate::driver::{Either, first};
use crate::error::SecondProcess;
use crate::mcp::Agreed;
use crate::process::Command;
use crate::wire::Framing;

/// The second process, while there is one, and what became of it.
#[derive(Default)]
pub(super) struct Second {
    running: Option<(Session, Handshake)>,
    /// Counted from the start of the first.
    at: Duration,
    tried: Option<SecondProcess>,
}

impl Second {
    /// Starts it. That it cannot be started is not reported: the first could.
    pub(super) async fn start(
        &mut self,
        settings: &Arc<ClientSettings>,
        command: &Command,
        framing: Framing,
        at: Duration,
    ) {
        self.at = at;
        let left = settings.start.saturating_sub(at);
        if let Ok(session) = start(settings, command, framing).await {
            let mut handshake = Handshake::second(settings, framing, left);
            handshake.begin();
            self.running = Some((session, handshake));
        }
    }

    /// Runs `handshake`, which asks the first process, and the second beside it. Returns what the first
    /// came to, or the second if that agreed before.
    pub(super) async fn run(
        &mut self,
        handshake: impl Future<Output = Result<Agreed, Stopped>>,
    ) -> Either<Result<Agreed, Stopped>, (Session, Agreed)> {
        let mut handshake = pin!(handshake);
        loop {
            let Some((session, second)) = &mut self.running else {
                return Either::First(handshake.await);
            };
            // The first is preferred: it is spoken to as most servers expect.
            match first(handshake.as_mut(), second.run(session)).await {
                Either::First(opened) => return Either::First(opened),
                Either::Second(Ok(agreed)) => {
                    if let Some((session, _)) = self.running.take() {
                        return Either::Second((session, agreed));
                    }
                }
                Either::Second(Err(_)) => self.end_process().await,
            }
        }
    }

    /// Ends it, and returns what became of it, if there was one.
    pub(super) async fn end(&mut self) -> Option<SecondProcess> {
        self.end_process().await;
        self.tried.take()
    }

    async fn end_process(&mut self) {
        let Some((session, _)) = self.running.take() else { return };
        let (heard, exit) = (session.state.monitor.heard_any(), session.exit());
        end(&session).await;
        // A frame that is shorter than its header says is seen when the output ends.
        let _ = tokio::time::timeout(GIVEN_UP, session.over()).await;
        let first = session.state.monitor.diagnostics().first_invalid;
        let fault = first.map(|invalid| (invalid.fault, invalid.excerpt));
        self.tried = Some(SecondProcess { at: self.at, exit, heard, fault });
    }
}
