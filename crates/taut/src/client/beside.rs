//! A second process, asked beside one that is silent.
//!
//! Knows that the first is never disturbed by it: whatever becomes of the second is kept to be told, and
//! whichever agrees first is used. Must not decide when it is wanted: `mcp/connect.rs` does. F13.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use super::open::{FAREWELL, farewell, start};
use super::opening::{Opening, Stopped};
use super::session::Session;
use super::settings::Settings;
use crate::error::SecondTry;
use crate::mcp::Agreed;
use crate::process::Command;
use crate::wire::Framing;

/// Who came to an end first, and to which.
pub(super) enum Came {
    First(Result<Agreed, Stopped>),
    Beside(Session, Agreed),
}

/// The second process, while there is one, and what became of it.
#[derive(Default)]
pub(super) struct Beside {
    running: Option<(Session, Opening)>,
    /// Counted from the start of the first.
    at: Duration,
    tried: Option<SecondTry>,
}

impl Beside {
    /// Starts it. That it cannot be started is no news: the first could.
    pub(super) async fn start(
        &mut self,
        settings: &Arc<Settings>,
        command: &Command,
        framing: Framing,
        at: Duration,
    ) {
        self.at = at;
        let left = settings.start.saturating_sub(at);
        if let Ok(session) = start(settings, command, framing).await {
            let mut opening = Opening::beside(settings, framing, left);
            opening.begin();
            self.running = Some((session, opening));
        }
    }

    /// Runs what is done with the first, and the second beside it.
    pub(super) async fn run(
        &mut self,
        first: impl Future<Output = Result<Agreed, Stopped>>,
    ) -> Came {
        let mut first = pin!(first);
        loop {
            let Some((session, opening)) = &mut self.running else {
                return Came::First(first.await);
            };
            let came = {
                let mut second = pin!(opening.run(session));
                std::future::poll_fn(|cx| {
                    // The first goes before: hosts speak as it is spoken to.
                    if let Poll::Ready(opened) = first.as_mut().poll(cx) {
                        return Poll::Ready(Ok(opened));
                    }
                    second.as_mut().poll(cx).map(Err)
                })
                .await
            };
            match came {
                Ok(opened) => return Came::First(opened),
                Err(Ok(agreed)) => {
                    if let Some((session, _)) = self.running.take() {
                        return Came::Beside(session, agreed);
                    }
                }
                Err(Err(_)) => self.let_go(FAREWELL).await,
            }
        }
    }

    /// Lets it go, and says what became of it, if there was one.
    pub(super) async fn farewell(&mut self, wait: Duration) -> Option<SecondTry> {
        self.let_go(wait).await;
        self.tried
    }

    async fn let_go(&mut self, wait: Duration) {
        let Some((session, _)) = self.running.take() else { return };
        let heard = session.notices.heard_any();
        self.tried = Some(SecondTry { at: self.at, exit: session.exit(), heard });
        farewell(&session, wait).await;
    }
}
