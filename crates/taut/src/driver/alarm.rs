//! A moment to wait for, as a timer that is only touched when the moment moves.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use tokio::time::Sleep;

/// A moment to wait for, which may move.
#[derive(Default)]
pub(super) struct Alarm {
    at: Option<Instant>,
    sleep: Option<Pin<Box<Sleep>>>,
}

impl Alarm {
    pub(super) fn set(&mut self, at: Instant) {
        if self.at == Some(at) {
            return;
        }
        self.at = Some(at);
        match &mut self.sleep {
            Some(sleep) => sleep.as_mut().reset(at.into()),
            empty => *empty = Some(Box::pin(tokio::time::sleep_until(at.into()))),
        }
    }

    /// Sets the moment to `wait` from now. A moment that no clock can count to never comes.
    pub(super) fn set_after(&mut self, wait: Duration) {
        match super::now().checked_add(wait) {
            Some(at) => self.set(at),
            None => self.clear(),
        }
    }

    pub(super) fn clear(&mut self) {
        self.at = None;
    }

    /// Ready once, when the moment has come.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let (Some(_), Some(sleep)) = (self.at, &mut self.sleep) else { return Poll::Pending };
        std::task::ready!(sleep.as_mut().poll(cx));
        self.at = None;
        Poll::Ready(())
    }
}
