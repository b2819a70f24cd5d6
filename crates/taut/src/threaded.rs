//! Descriptors and handles that can only block, each served by a thread of its own.
//!
//! Knows `Read`, `Write` and polling, no descriptor. The threads are plain ones that nobody joins:
//! the runtime's blocking pool is waited for at shutdown, and a read that never returns would hold
//! the process (S9).

use std::io::{self, Read, Write};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::task::{Context, Poll, Waker, ready};
#[cfg(all(windows, feature = "client"))]
use std::time::{Duration, Instant};

use tokio::sync::mpsc;

use crate::lock::lock;
use crate::stream::{Sink, Source};

/// Bytes per read, and bytes a writer takes before it makes the loop wait. One full pipe.
const CHUNK: usize = 64 * 1024;

/// Chunks read ahead of the loop: one to work on, one to come.
const AHEAD: usize = 2;

/// How much a thread may have read that nobody has taken: what waits, one that it wants to leave there, and the one
/// that is being handed on.
#[cfg(all(windows, feature = "client"))]
pub(crate) const READ_AHEAD: usize = (AHEAD + 2) * CHUNK;

/// The reading half.
pub(crate) struct ReadHalf {
    chunks: mpsc::Receiver<io::Result<Vec<u8>>>,
    chunk: Vec<u8>,
    /// How much of `chunk` has been handed on.
    used: usize,
}

impl ReadHalf {
    /// Starts to read. The thread ends with the input, or after the first read that finds this half
    /// dropped.
    pub(crate) fn start(from: impl Read + Send + 'static) -> io::Result<Self> {
        let (sender, chunks) = mpsc::channel(AHEAD);
        std::thread::Builder::new()
            .name("taut-stdin".into())
            .spawn(move || read_all(from, &sender))?;
        Ok(Self { chunks, chunk: Vec::new(), used: 0 })
    }

    /// Reads without a runtime: what comes within this time, else `Ok(0)`, as at the end.
    #[cfg(all(windows, feature = "client"))]
    pub(crate) fn read_within(&mut self, buf: &mut Vec<u8>, time: Duration) -> io::Result<usize> {
        let deadline = Instant::now() + time;
        while self.used == self.chunk.len() {
            match self.chunks.try_recv() {
                Ok(read) => (self.chunk, self.used) = (read?, 0),
                Err(mpsc::error::TryRecvError::Empty) if Instant::now() < deadline => {
                    std::thread::sleep(Duration::from_millis(1));
                }
                Err(_) => return Ok(0),
            }
        }
        Ok(self.hand_on(buf))
    }

    fn hand_on(&mut self, buf: &mut Vec<u8>) -> usize {
        if buf.len() == buf.capacity() {
            buf.reserve(CHUNK);
        }
        let left = &self.chunk[self.used..];
        let n = left.len().min(buf.capacity() - buf.len());
        buf.extend_from_slice(&left[..n]);
        self.used += n;
        n
    }
}

fn read_all(mut from: impl Read, to: &mpsc::Sender<io::Result<Vec<u8>>>) {
    let mut room = vec![0; CHUNK];
    loop {
        let read = match from.read(&mut room) {
            Ok(0) => return,
            Ok(n) => Ok(room[..n].to_vec()),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) => Err(e),
        };
        let failed = read.is_err();
        if to.blocking_send(read).is_err() || failed {
            return;
        }
    }
}

impl Source for ReadHalf {
    fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut Vec<u8>) -> Poll<io::Result<usize>> {
        if self.used == self.chunk.len() {
            match ready!(self.chunks.poll_recv(cx)) {
                Some(read) => self.chunk = read?,
                None => return Poll::Ready(Ok(0)),
            }
            self.used = 0;
        }
        Poll::Ready(Ok(self.hand_on(buf)))
    }
}

/// The writing half.
pub(crate) struct WriteHalf(Arc<Desk>);

/// Where the loop leaves bytes and the thread fetches them.
struct Desk {
    state: Mutex<State>,
    /// For the thread: there is something to do.
    work: Condvar,
}

#[derive(Default)]
struct State {
    /// At most [`CHUNK`] bytes that the thread has not fetched.
    waiting: Vec<u8>,
    /// The thread is writing what it fetched.
    writing: bool,
    /// The loop will leave nothing more.
    closed: bool,
    /// The write that failed; nothing works after it.
    failed: Option<io::ErrorKind>,
    /// For the loop: there is room, all is written, or it failed.
    progress: Option<Waker>,
    gone: Option<Waker>,
}

impl Desk {
    fn write_all(&self, mut to: impl Write) {
        let mut bytes = Vec::with_capacity(CHUNK);
        while self.fetch(&mut bytes) {
            let done = to.write_all(&bytes).and_then(|()| to.flush());
            let mut state = lock(&self.state);
            state.writing = false;
            state.failed = done.err().map(|e| e.kind());
            let failed = state.failed.is_some();
            let progress = state.progress.take();
            let gone = if failed { state.gone.take() } else { None };
            // A waker may run foreign code, so the lock is let go first.
            drop(state);
            progress.into_iter().chain(gone).for_each(Waker::wake);
            if failed {
                return;
            }
        }
    }

    /// Waits for bytes and swaps them into `bytes`. False: there will be none.
    fn fetch(&self, bytes: &mut Vec<u8>) -> bool {
        bytes.clear();
        let mut state = lock(&self.state);
        while state.waiting.is_empty() {
            if state.closed {
                return false;
            }
            state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        std::mem::swap(&mut state.waiting, bytes);
        state.writing = true;
        let progress = state.progress.take();
        drop(state);
        progress.into_iter().for_each(Waker::wake);
        true
    }
}

impl WriteHalf {
    /// Starts to write. The thread ends when a write fails, or when this half is dropped and all is
    /// written.
    pub(crate) fn start(to: impl Write + Send + 'static) -> io::Result<Self> {
        let desk = Arc::new(Desk { state: Mutex::default(), work: Condvar::new() });
        let thread = Arc::clone(&desk);
        std::thread::Builder::new()
            .name("taut-stdout".into())
            .spawn(move || thread.write_all(to))?;
        Ok(Self(desk))
    }
}

impl Drop for WriteHalf {
    fn drop(&mut self) {
        lock(&self.0.state).closed = true;
        self.0.work.notify_one();
    }
}

impl Sink for WriteHalf {
    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let mut state = lock(&self.0.state);
        if let Some(kind) = state.failed {
            return Poll::Ready(Err(kind.into()));
        }
        let room = CHUNK - state.waiting.len();
        if room == 0 {
            state.progress = Some(cx.waker().clone());
            return Poll::Pending;
        }
        let n = bytes.len().min(room);
        state.waiting.extend_from_slice(&bytes[..n]);
        self.0.work.notify_one();
        Poll::Ready(Ok(n))
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut state = lock(&self.0.state);
        if let Some(kind) = state.failed {
            return Poll::Ready(Err(kind.into()));
        }
        if state.waiting.is_empty() && !state.writing {
            return Poll::Ready(Ok(()));
        }
        state.progress = Some(cx.waker().clone());
        Poll::Pending
    }

    fn poll_gone(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = lock(&self.0.state);
        if state.failed.is_some() {
            return Poll::Ready(());
        }
        state.gone = Some(cx.waker().clone());
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::*;

    /// Each read gives what the next message says.
    struct Script(Receiver<io::Result<Vec<u8>>>);

    impl Read for Script {
        fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
            let bytes = self.0.recv().unwrap_or_else(|_| Ok(Vec::new()))?;
            buf[..bytes.len()].copy_from_slice(&bytes);
            Ok(bytes.len())
        }
    }

    async fn read(half: &mut ReadHalf, buf: &mut Vec<u8>) -> io::Result<usize> {
        poll_fn(|cx| half.poll_read(cx, buf)).await
    }

    #[tokio::test]
    async fn a_chunk_larger_than_the_room_comes_in_parts_and_never_as_zero() {
        let (script, reads) = channel();
        let mut half = ReadHalf::start(Script(reads)).unwrap();
        script.send(Ok(b"hello".to_vec())).unwrap();
        let mut buf = Vec::with_capacity(2);
        let room = buf.capacity();
        assert_eq!(read(&mut half, &mut buf).await.unwrap(), room.min(5));
        assert_eq!(read(&mut half, &mut buf).await.unwrap(), 5 - room.min(5));
        assert_eq!(buf, b"hello");
    }

    #[tokio::test]
    async fn an_interrupted_read_is_repeated_and_an_error_is_told_before_the_end() {
        let (script, reads) = channel();
        let mut half = ReadHalf::start(Script(reads)).unwrap();
        script.send(Err(io::ErrorKind::Interrupted.into())).unwrap();
        script.send(Err(io::ErrorKind::ConnectionReset.into())).unwrap();
        let error = read(&mut half, &mut Vec::new()).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
        assert_eq!(read(&mut half, &mut Vec::new()).await.unwrap(), 0);
    }

    /// Writes only when it is let, and says how much it wrote.
    struct Gate {
        let_in: Receiver<io::Result<()>>,
        written: Sender<usize>,
    }

    impl Write for Gate {
        fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
            self.let_in.recv().unwrap_or(Ok(()))?;
            self.written.send(buf.len()).unwrap();
            Ok(buf.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn gate() -> (WriteHalf, Sender<io::Result<()>>, Receiver<usize>) {
        let (door, let_in) = channel();
        let (written, sizes) = channel();
        (WriteHalf::start(Gate { let_in, written }).unwrap(), door, sizes)
    }

    /// Offers bytes until they are refused; how many were taken.
    async fn fill(half: &mut WriteHalf) -> usize {
        poll_fn(|cx| {
            let mut taken = 0;
            while let Poll::Ready(n) = half.poll_write(cx, &[0; 1000]) {
                taken += n.unwrap();
            }
            Poll::Ready(taken)
        })
        .await
    }

    #[tokio::test]
    async fn s11_a_writer_that_is_stuck_makes_the_loop_wait_and_wakes_it_later() {
        let (mut half, door, sizes) = gate();
        let taken = fill(&mut half).await;
        // What the thread has fetched, if it has, and what waits for it.
        assert!((CHUNK..=2 * CHUNK).contains(&taken), "{taken} bytes taken");
        drop(door);
        let more = poll_fn(|cx| half.poll_write(cx, &[0; 1000])).await.unwrap();
        poll_fn(|cx| half.poll_flush(cx)).await.unwrap();
        assert_eq!(sizes.try_iter().sum::<usize>(), taken + more, "flushed means written");
    }

    #[tokio::test]
    async fn a_failed_write_ends_the_flush_and_means_that_the_reader_is_gone() {
        let (mut half, door, _sizes) = gate();
        assert_eq!(poll_fn(|cx| half.poll_write(cx, b"bytes")).await.unwrap(), 5);
        door.send(Err(io::ErrorKind::BrokenPipe.into())).unwrap();
        poll_fn(|cx| half.poll_gone(cx)).await;
        let flushed = poll_fn(|cx| half.poll_flush(cx)).await.unwrap_err();
        assert_eq!(flushed.kind(), io::ErrorKind::BrokenPipe);
        let written = poll_fn(|cx| half.poll_write(cx, b"more")).await.unwrap_err();
        assert_eq!(written.kind(), io::ErrorKind::BrokenPipe);
    }

    #[test]
    fn a_dropped_half_still_writes_what_it_took() {
        let (mut half, door, sizes) = gate();
        let mut cx = Context::from_waker(Waker::noop());
        assert!(half.poll_write(&mut cx, b"last words").is_ready());
        drop(half);
        drop(door);
        assert_eq!(sizes.into_iter().sum::<usize>(), 10);
    }
}
