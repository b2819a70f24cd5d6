//! Signals that a command hears: the wish to stop it, and whatever else it asks for.
//!
//! Knows what each means to a command, and hears it without the runtime's own signals, which cost every
//! start. Must not know what is being done.

use std::io;

use crate::problem::Problem;

/// What a signal asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// Ctrl-C: what is being done.
    Interrupt,
    /// Everything.
    End,
}

/// Signals that ask us to stop.
pub(crate) struct Interrupts {
    #[cfg(unix)]
    signals: [Heard; 3],
}

impl Interrupts {
    pub(crate) fn new() -> Result<Self, Problem> {
        Self::listen()
            .map_err(|error| Problem::File { what: "listening for signals".into(), error })
    }

    #[cfg(unix)]
    fn listen() -> io::Result<Self> {
        use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
        let signals = [Heard::new(SIGINT)?, Heard::new(SIGTERM)?, Heard::new(SIGHUP)?];
        Ok(Self { signals })
    }

    #[cfg(not(unix))]
    fn listen() -> io::Result<Self> {
        Ok(Self {})
    }

    /// Waits for any of them.
    pub(crate) async fn next(&mut self) {
        self.next_stop().await;
    }

    /// Waits for the next, and says what it asks for.
    #[cfg(unix)]
    pub(crate) async fn next_stop(&mut self) -> Stop {
        let [interrupt, terminate, hangup] = &self.signals;
        tokio::select! {
            () = interrupt.next() => Stop::Interrupt,
            () = terminate.next() => Stop::End,
            () = hangup.next() => Stop::End,
        }
    }

    #[cfg(not(unix))]
    pub(crate) async fn next_stop(&mut self) -> Stop {
        std::future::pending().await
    }
}

/// One signal, for as long as this lives; several that come before anybody asks are one.
#[cfg(unix)]
pub(crate) struct Heard {
    bytes: tokio::net::UnixStream,
    registered: signal_hook::SigId,
}

#[cfg(unix)]
impl Heard {
    pub(crate) fn new(signal: i32) -> io::Result<Self> {
        let (bytes, handler) = std::os::unix::net::UnixStream::pair()?;
        bytes.set_nonblocking(true)?;
        let bytes = tokio::net::UnixStream::from_std(bytes)?;
        let registered = signal_hook::low_level::pipe::register(signal, handler)?;
        Ok(Self { bytes, registered })
    }

    pub(crate) async fn next(&self) {
        loop {
            match self.bytes.try_read(&mut [0; 64]) {
                Ok(1..) => return,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if self.bytes.readable().await.is_err() {
                        break;
                    }
                }
                Ok(0) | Err(_) => break,
            }
        }
        // The handler keeps its end as long as this lives: only a broken runtime leads here.
        std::future::pending().await
    }
}

#[cfg(unix)]
impl Drop for Heard {
    fn drop(&mut self) {
        signal_hook::low_level::unregister(self.registered);
    }
}

/// Does what Ctrl-C does, where the terminal takes it for a key: in the middle of a line.
pub(crate) fn interrupt() {
    #[cfg(unix)]
    {
        // There is no harm in a signal that does not come.
        let _ =
            rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::INT);
    }
}
