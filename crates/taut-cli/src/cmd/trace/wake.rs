//! What the main thread of a trace waits for: signals, the end of the server, the end of a stream.
//!
//! Knows which signals are passed on. A handler sets a flag and wakes; everything else happens outside
//! of handlers. Must not know what is done about it.

use std::io;

#[cfg(unix)]
pub(super) use unix::{Heard, Waker};

#[cfg(unix)]
mod unix {
    use std::io::{self, Read as _, Write as _};
    use std::os::unix::net::UnixStream;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    use signal_hook::consts::{
        SIGCHLD, SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGUSR1, SIGUSR2, SIGWINCH,
    };
    use signal_hook::{flag, low_level::pipe};

    /// Signals that a host may send to a server, and a terminal to whoever runs in it.
    const PASSED_ON: [i32; 9] =
        [SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGCONT, SIGTSTP, SIGWINCH];

    /// Everything that can happen, in one place to wait.
    pub(in super::super) struct Heard {
        wakes: UnixStream,
        flags: Vec<(i32, Arc<AtomicBool>)>,
    }

    /// Wakes whoever waits.
    #[derive(Clone)]
    pub(in super::super) struct Waker(Arc<UnixStream>);

    impl Waker {
        pub(in super::super) fn wake(&self) {
            // A full pipe wakes as well.
            let _ = (&*self.0).write(&[0]);
        }
    }

    impl Heard {
        /// Listens from now on. The pipe never blocks whoever wakes.
        pub(in super::super) fn new() -> io::Result<(Self, Waker)> {
            let (wakes, waker) = UnixStream::pair()?;
            waker.set_nonblocking(true)?;
            let mut flags = Vec::new();
            for signal in PASSED_ON {
                let heard = Arc::new(AtomicBool::new(false));
                // The flag first: it must be set when the wake comes.
                flag::register(signal, Arc::clone(&heard))?;
                pipe::register(signal, waker.try_clone()?)?;
                flags.push((signal, heard));
            }
            pipe::register(SIGCHLD, waker.try_clone()?)?;
            Ok((Self { wakes, flags }, Waker(Arc::new(waker))))
        }

        /// Waits until something has happened or the time is over, and says which signals came.
        pub(in super::super) fn wait(&mut self, time: Option<Duration>) -> Vec<i32> {
            // A timeout of nothing would be none at all.
            let time = time.map(|time| time.max(Duration::from_millis(1)));
            let _ = self.wakes.set_read_timeout(time);
            loop {
                match self.wakes.read(&mut [0; 64]) {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    _ => break,
                }
            }
            let came = self.flags.iter().filter(|(_, flag)| flag.swap(false, Ordering::AcqRel));
            came.map(|(signal, _)| *signal).collect()
        }
    }
}

#[cfg(not(unix))]
pub(super) use other::{Heard, Waker};

#[cfg(not(unix))]
mod other {
    use std::io;
    use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
    use std::time::Duration;

    /// Without signals the end of the process has to be looked for.
    pub(in super::super) struct Heard(Receiver<()>);

    #[derive(Clone)]
    pub(in super::super) struct Waker(SyncSender<()>);

    impl Waker {
        pub(in super::super) fn wake(&self) {
            let _ = self.0.try_send(());
        }
    }

    impl Heard {
        pub(in super::super) fn new() -> io::Result<(Self, Waker)> {
            let (send, receive) = sync_channel(8);
            Ok((Self(receive), Waker(send)))
        }

        pub(in super::super) fn wait(&mut self, _: Option<Duration>) -> Vec<i32> {
            let _ = self.0.recv_timeout(Duration::from_millis(20));
            Vec::new()
        }
    }
}

/// Listens, or says in words why it cannot.
pub(super) fn listen() -> Result<(Heard, Waker), crate::problem::Problem> {
    let failed = |error: io::Error| crate::problem::Problem::File {
        what: "listening for signals".to_owned(),
        error,
    };
    Heard::new().map_err(failed)
}
