//! For the tests of stdio: the wire as the other side sees it, read in a thread.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::sync::mpsc;
use std::time::Duration;

/// What a role writes before the wire begins: the harness greets on stdout first.
pub(super) const MARK: &[u8] = b"\n--- the wire ---\n";

/// Far above what anything here needs, far below what a person would wait for.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);

/// Does something that might hang, and fails if it does.
pub(super) fn in_time<T: Send + 'static>(what: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, result) = mpsc::channel();
    std::thread::spawn(move || done.send(what()));
    result.recv_timeout(PATIENCE).expect("it hangs")
}

/// Reads a wire in a thread, so that a silent one fails the test instead of stopping it.
pub(super) struct Tail {
    reads: mpsc::Receiver<Vec<u8>>,
    /// Read and not yet asked for.
    kept: VecDeque<u8>,
}

impl Tail {
    pub(super) fn of(mut from: impl Read + Send + 'static) -> Self {
        let (sender, reads) = mpsc::channel();
        std::thread::spawn(move || {
            let mut room = [0; 65536];
            while let Ok(n @ 1..) = from.read(&mut room) {
                if sender.send(room[..n].to_vec()).is_err() {
                    return;
                }
            }
        });
        Self { reads, kept: VecDeque::new() }
    }

    /// A wire whose role has begun.
    pub(super) fn begun(from: impl Read + Send + 'static) -> Self {
        let mut tail = Self::of(from);
        tail.until(MARK);
        tail
    }

    /// The next byte; `None` at the end.
    fn byte(&mut self) -> Option<u8> {
        while self.kept.is_empty() {
            match self.reads.recv_timeout(PATIENCE) {
                Ok(read) => self.kept.extend(read),
                Err(mpsc::RecvTimeoutError::Disconnected) => return None,
                Err(mpsc::RecvTimeoutError::Timeout) => panic!("neither a byte nor the end"),
            }
        }
        self.kept.pop_front()
    }

    /// All up to and with `end`.
    pub(super) fn until(&mut self, end: &[u8]) -> Vec<u8> {
        let mut seen = Vec::new();
        while !seen.ends_with(end) {
            match self.byte() {
                Some(byte) => seen.push(byte),
                None => panic!("the end after {:?}", String::from_utf8_lossy(&seen)),
            }
        }
        seen
    }

    /// The next `n` bytes.
    #[cfg(unix)]
    pub(super) fn exactly(&mut self, n: usize) -> Vec<u8> {
        (0..n).map(|_| self.byte().expect("more bytes")).collect()
    }

    pub(super) fn line(&mut self) -> String {
        String::from_utf8(self.until(b"\n")).unwrap()
    }

    /// What has come so far.
    pub(super) fn so_far(&mut self) -> Vec<u8> {
        self.kept.extend(self.reads.try_iter().flatten());
        self.kept.drain(..).collect()
    }

    /// All that is left up to the end, of a wire that carries text.
    pub(super) fn rest(self) -> String {
        String::from_utf8(self.rest_bytes()).unwrap()
    }

    /// All that is left up to the end.
    pub(super) fn rest_bytes(mut self) -> Vec<u8> {
        std::iter::from_fn(|| self.byte()).collect()
    }
}

/// Writes in a thread, so that a peer that does not read fails the test instead of stopping it.
pub(super) fn feed(mut to: impl Write + Send + 'static, bytes: Vec<u8>) {
    std::thread::spawn(move || to.write_all(&bytes));
}
