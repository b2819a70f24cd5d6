//! Ctrl-C, Ctrl-Break and the closing of the console, on Windows: what `signals.rs` hears on Unix.
//!
//! As in the library (docs/decisions/0013-windows.md): both keys are an interrupt, the rest is an end.
//! Knows console events and one thread. Must not know what is being done.

use std::io;
use std::sync::Mutex;
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use tokio::signal::windows::{ctrl_break, ctrl_c, ctrl_close, ctrl_logoff, ctrl_shutdown};

use crate::signals::Stop;

/// The way to the guard, for a Ctrl-C that the line editor took for a key.
static KEYS: OnceLock<Sender<Stop>> = OnceLock::new();

/// What a console asks for, as it comes.
pub(crate) struct Signals(Mutex<Receiver<Stop>>);

impl Signals {
    /// Listens from now on, in a thread with a runtime of its own: the command's may be busy.
    pub(crate) fn new() -> io::Result<Self> {
        let (sender, stops) = channel();
        let _ = KEYS.set(sender.clone());
        let (ready, listening) = channel();
        std::thread::Builder::new().name("taut-console".to_owned()).spawn(
            move || match runtime() {
                Ok(runtime) => runtime.block_on(listen(&sender, &ready)),
                Err(error) => drop(ready.send(Err(error))),
            },
        )?;
        listening.recv().unwrap_or_else(|_| Err(io::Error::other("the console is not heard")))?;
        Ok(Self(Mutex::new(stops)))
    }

    /// Waits for one, and not for longer than this.
    pub(crate) fn wait(&self, time: Option<Duration>) -> Option<Stop> {
        let stops = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        match time {
            Some(time) => stops.recv_timeout(time).ok(),
            None => stops.recv().ok(),
        }
    }
}

fn runtime() -> io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().build()
}

/// Passes on what comes. Once the console is closed, the system leaves a few seconds to end in.
async fn listen(to: &Sender<Stop>, ready: &Sender<io::Result<()>>) {
    let all =
        (|| Ok((ctrl_c()?, ctrl_break()?, ctrl_close()?, ctrl_logoff()?, ctrl_shutdown()?)))();
    let (mut interrupt, mut brk, mut close, mut logoff, mut shutdown) = match all {
        Ok(all) => all,
        Err(error) => return drop(ready.send(Err(error))),
    };
    let _ = ready.send(Ok(()));
    loop {
        let stop = tokio::select! {
            _ = interrupt.recv() => Stop::Interrupt,
            _ = brk.recv() => Stop::Interrupt,
            _ = close.recv() => Stop::End,
            _ = logoff.recv() => Stop::End,
            _ = shutdown.recv() => Stop::End,
        };
        if to.send(stop).is_err() {
            return;
        }
    }
}

/// Does what Ctrl-C does.
pub(crate) fn interrupt() {
    if let Some(keys) = KEYS.get() {
        let _ = keys.send(Stop::Interrupt);
    }
}
