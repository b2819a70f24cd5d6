//! Sessions, and the calls that are answered soon and need no task of their own.
//!
//! To open a session, or to start a task, costs more than a quick call does. Calls of 2026-07-28 share no state, so a
//! session whose call was answered has nothing of it any more, and takes the next one. The sessions of all quick
//! calls are polled together: each place has a waker that says which of them to look at. Must not know what a call
//! says, or who waits for it.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use async_nats::Subject;
use taut::transport::{MessagePipe, MessageService, Outgoing, Principal, SendMessageError};
use tokio::time::Instant;

/// A call without a task.
pub(super) struct QuickCall {
    pub(super) reply: Subject,
    pub(super) began: Instant,
    pub(super) serial: u64,
}

pub(super) struct Sessions {
    service: Arc<dyn MessageService>,
    /// Those that wait for their next call.
    idle: Vec<MessagePipe>,
    /// How many wait, at most.
    most: usize,
    places: Vec<Place>,
    /// The places without a call.
    free: Vec<usize>,
    ready: Arc<Ready>,
}

/// Room for a quick call. Used again, because its waker costs memory.
struct Place {
    taken: Option<(QuickCall, MessagePipe)>,
    waker: Waker,
}

/// Which places to look at.
#[derive(Default)]
struct Ready(Mutex<ReadyState>);

#[derive(Default)]
struct ReadyState {
    places: VecDeque<usize>,
    /// Who looks at them, if it waits.
    waiting: Option<Waker>,
}

impl Ready {
    fn lock(&self) -> MutexGuard<'_, ReadyState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct PlaceWaker {
    place: usize,
    ready: Arc<Ready>,
}

impl Wake for PlaceWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let waiting = {
            let mut state = self.ready.lock();
            // A session wakes at most once after it was polled, so there are few.
            state.places.push_back(self.place);
            state.waiting.take()
        };
        if let Some(waiting) = waiting {
            waiting.wake();
        }
    }
}

impl Sessions {
    pub(super) fn new(service: Arc<dyn MessageService>, most: usize) -> Self {
        let (idle, places, free) = (Vec::new(), Vec::new(), Vec::new());
        Self { service, idle, most, places, free, ready: Arc::default() }
    }

    /// The session that was used last, so that few are used at all; otherwise a new one. `waker` is woken when it
    /// says something.
    fn take_waking(&mut self, waker: &Waker) -> MessagePipe {
        let mut cx = Context::from_waker(waker);
        while let Some(mut session) = self.idle.pop() {
            // What it says now, or its end, would reach the wrong call.
            if session.poll_recv(&mut cx).is_pending() {
                return session;
            }
        }
        let mut session = self.service.open(Principal::ANONYMOUS);
        // A new one cannot have said anything.
        let _ = session.poll_recv(&mut cx);
        session
    }

    /// A session for a call with a task.
    pub(super) fn take(&mut self) -> MessagePipe {
        self.take_waking(Waker::noop())
    }

    /// Keeps a session whose only call was answered.
    pub(super) fn put_back(&mut self, session: MessagePipe) {
        if self.idle.len() < self.most {
            self.idle.push(session);
        }
    }

    /// Starts a call. Returns its place.
    ///
    /// # Errors
    /// The service does not take the request; nothing ran.
    pub(super) fn start(
        &mut self,
        call: QuickCall,
        json: Vec<u8>,
    ) -> Result<usize, SendMessageError> {
        let place = match self.free.pop() {
            Some(place) => place,
            None => {
                let place = self.places.len();
                let waker = Arc::new(PlaceWaker { place, ready: self.ready.clone() }).into();
                self.places.push(Place { taken: None, waker });
                place
            }
        };
        let session = self.take_waking(&self.places[place].waker.clone());
        let sent = session.try_send(json);
        match sent {
            Ok(None) => {
                self.places[place].taken = Some((call, session));
                Ok(place)
            }
            Ok(Some(_)) | Err(_) => {
                self.free.push(place);
                Err(sent.err().unwrap_or(SendMessageError::Closed))
            }
        }
    }

    /// Takes a call out of its place, with its session.
    pub(super) fn remove(&mut self, place: usize) -> Option<(QuickCall, MessagePipe)> {
        let taken = self.places.get_mut(place)?.taken.take()?;
        self.free.push(place);
        Some(taken)
    }

    /// Whether this call is still in this place.
    pub(super) fn has(&self, place: usize, serial: u64) -> bool {
        let taken = self.places.get(place).and_then(|place| place.taken.as_ref());
        taken.is_some_and(|(call, _)| call.serial == serial)
    }

    /// The next call that something is said about, and what: it is taken out of its place. Nothing if its session
    /// has ended.
    pub(super) async fn next(&mut self) -> (QuickCall, MessagePipe, Option<Outgoing>) {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    fn poll_next(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<(QuickCall, MessagePipe, Option<Outgoing>)> {
        loop {
            let place = {
                let mut state = self.ready.lock();
                let Some(place) = state.places.pop_front() else {
                    state.waiting = Some(cx.waker().clone());
                    return Poll::Pending;
                };
                place
            };
            let Place { taken, waker } = &mut self.places[place];
            let Some((_, session)) = taken else { continue };
            if let Poll::Ready(said) = session.poll_recv(&mut Context::from_waker(waker))
                && let Some((call, session)) = taken.take()
            {
                self.free.push(place);
                return Poll::Ready((call, session, said));
            }
        }
    }
}
