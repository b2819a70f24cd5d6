//! One write to stderr that does not wait for long.
//!
//! Windows cannot write to a pipe of the host's without waiting for room, so a thread does it. The
//! caller waits a moment for its line, because the process may end right after it; once a line was
//! stuck, nobody waits for the next ones before it has left.

use std::io::{self, Write};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// How long the caller waits for its line. A pipe with room takes it in microseconds; the thread may have
/// to be started first, on a busy machine.
const MOMENT: Duration = Duration::from_millis(200);

/// The thread that writes, and what it says when it has written. One line is with it at most.
struct StderrThread {
    lines: SyncSender<Vec<u8>>,
    written: Receiver<()>,
    stuck: bool,
}

static WRITER: Mutex<Option<StderrThread>> = Mutex::new(None);

/// `Err`: the line was not taken.
pub(super) fn offer(bytes: &[u8]) -> io::Result<()> {
    let mut writer = WRITER.lock().unwrap_or_else(PoisonError::into_inner);
    let writer = match &mut *writer {
        Some(writer) => writer,
        none => none.insert(StderrThread::start()?),
    };
    writer.write(bytes)
}

impl StderrThread {
    fn start() -> io::Result<Self> {
        let (lines, inbox) = sync_channel::<Vec<u8>>(1);
        let (done, written) = sync_channel(1);
        std::thread::Builder::new().name("taut-stderr".into()).spawn(move || {
            for line in inbox {
                // A stderr that is closed has no reader who would miss the line.
                let _ = io::stderr().write_all(&line);
                if done.send(()).is_err() {
                    return;
                }
            }
        })?;
        Ok(Self { lines, written, stuck: false })
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.stuck && self.written.try_recv().is_err() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        self.stuck = false;
        match self.lines.try_send(bytes.to_vec()) {
            Ok(()) => {}
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {
                return Err(io::ErrorKind::WouldBlock.into());
            }
        }
        self.stuck = self.written.recv_timeout(MOMENT).is_err();
        Ok(())
    }
}
