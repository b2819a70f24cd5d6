//! Carries bytes between the host and the server, in three threads that only read and write.
//!
//! A piece is handed to the recorder before it is passed on, so that an answer is never recorded before
//! its request; the recorder never makes them wait. The ends of streams are passed on as well: whoever
//! closes, or stops to read, is noticed by the other side as without us. Only for a terminal the bytes are looked at.

use std::borrow::Cow;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use taut_trace::{Recorder, Stream, Tap};

use super::carry::{ChildStderr, ChildStdin, ChildStdout};
use super::ends::{self, Out};
use super::wake::Waker;
use crate::gate::Reader;

/// How much is carried at once: the capacity of a Linux pipe.
const PIECE: usize = 64 << 10;

/// What has ended, and what is on its way.
#[derive(Debug)]
pub(super) struct Progress {
    /// The host has closed our stdin, or the server has stopped to read.
    stdin: AtomicBool,
    stdout: Output,
    stderr: Output,
}

/// One of the server's outputs.
#[derive(Debug)]
struct Output {
    /// It has ended, or nobody reads it any more.
    ended: AtomicBool,
    /// Bytes were read and are not yet passed on.
    carrying: AtomicBool,
    /// The pipe, for as long as it is read.
    pipe: Weak<File>,
}

impl Output {
    fn new(pipe: &Arc<File>) -> Self {
        let (ended, carrying) = (AtomicBool::new(false), AtomicBool::new(false));
        Self { ended, carrying, pipe: Arc::downgrade(pipe) }
    }

    fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    fn is_quiet(&self) -> bool {
        self.has_ended() || (!self.carrying.load(Ordering::Acquire) && !has_bytes(&self.pipe))
    }
}

impl Progress {
    /// Everything that the server wrote has been passed on, and no more comes.
    pub(super) fn has_ended(&self) -> bool {
        self.stdout.has_ended() && self.stderr.has_ended()
    }

    /// Nothing is on its way at this moment.
    pub(super) fn is_quiet(&self) -> bool {
        self.stdout.is_quiet() && self.stderr.is_quiet()
    }

    /// The host has closed our stdin.
    pub(super) fn host_closed(&self) -> bool {
        self.stdin.load(Ordering::Acquire)
    }
}

#[cfg(unix)]
fn has_bytes(pipe: &Weak<File>) -> bool {
    let left = pipe.upgrade().and_then(|pipe| rustix::io::ioctl_fionread(&*pipe).ok());
    left.is_some_and(|left| left > 0)
}

#[cfg(not(unix))]
fn has_bytes(_: &Weak<File>) -> bool {
    false
}

#[cfg(unix)]
fn file(pipe: impl Into<std::os::fd::OwnedFd>) -> Arc<File> {
    Arc::new(File::from(pipe.into()))
}

#[cfg(not(unix))]
fn file(pipe: impl Into<std::os::windows::io::OwnedHandle>) -> Arc<File> {
    Arc::new(File::from(pipe.into()))
}

/// The server's ends.
pub(super) struct Ends {
    pub(super) stdin: ChildStdin,
    pub(super) stdout: ChildStdout,
    pub(super) stderr: ChildStderr,
}

/// Starts to carry.
pub(super) fn start(
    ends: Ends,
    recorder: &Recorder,
    wake: &Waker,
) -> std::io::Result<Arc<Progress>> {
    let Ends { stdin, stdout, stderr } = ends;
    let (stdout, stderr) = (file(stdout), file(stderr));
    let progress = Arc::new(Progress {
        stdin: AtomicBool::new(false),
        stdout: Output::new(&stdout),
        stderr: Output::new(&stderr),
    });
    let thread = |name: &str, work: Box<dyn FnOnce(&Progress) + Send>| {
        let (progress, wake) = (Arc::clone(&progress), wake.clone());
        let named = std::thread::Builder::new().name(name.to_owned());
        let work = move || {
            work(&progress);
            wake.wake();
        };
        named.stack_size(256 << 10).spawn(work).map(|_| ())
    };
    let tap = recorder.tap(Stream::Client);
    thread("to server", Box::new(move |progress| to_server(stdin, &tap, progress)))?;
    let tap = recorder.tap(Stream::Server);
    thread("from server", Box::new(move |progress| from_server(stdout, &tap, progress)))?;
    let tap = recorder.tap(Stream::Stderr);
    thread("stderr", Box::new(move |progress| stderr_of(stderr, &tap, progress)))?;
    Ok(progress)
}

fn to_server(mut server: ChildStdin, tap: &Tap, progress: &Progress) {
    let mut buffer = vec![0; PIECE];
    // A read that fails is the end: there is no other way to tell the server.
    while let Ok(read @ 1..) = ends::read(&mut buffer) {
        tap.bytes(&buffer[..read]);
        if server.write_all(&buffer[..read]).is_err() {
            // The server reads no more; the host must not think that it does.
            ends::give_up_stdin();
            break;
        }
    }
    drop(server);
    tap.closed();
    progress.stdin.store(true, Ordering::Release);
}

fn from_server(server: Arc<File>, tap: &Tap, progress: &Progress) {
    let mut way = Way::to(Reader::of_stdout());
    each_piece(&server, &progress.stdout, |bytes| {
        tap.bytes(bytes);
        ends::write(Out::Stdout, &way.pass(bytes)).is_ok()
    });
    // Either side learns that the other is gone.
    drop(server);
    ends::give_up_stdout();
    tap.closed();
    progress.stdout.ended.store(true, Ordering::Release);
}

fn stderr_of(server: Arc<File>, tap: &Tap, progress: &Progress) {
    // Without a reader for it the server must still be able to write.
    let mut reads = true;
    let mut way = Way::to(Reader::of_stderr());
    each_piece(&server, &progress.stderr, |bytes| {
        tap.bytes(bytes);
        reads = reads && ends::write(Out::Stderr, &way.pass(bytes)).is_ok();
        true
    });
    tap.closed();
    progress.stderr.ended.store(true, Ordering::Release);
}

/// The way to one of our streams. A host gets every byte as it is. A terminal is no host: there the text of a server
/// is escaped, as everywhere in the command (SEC-05).
struct Way {
    reader: Reader,
    /// The first bytes of a character whose rest has not come yet.
    begun: Vec<u8>,
}

impl Way {
    const fn to(reader: Reader) -> Self {
        Self { reader, begun: Vec::new() }
    }

    fn pass<'a>(&mut self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        if !self.reader.terminal {
            return Cow::Borrowed(bytes);
        }
        self.begun.extend_from_slice(bytes);
        let begun = self.begun.split_off(whole_characters(&self.begun));
        let whole = std::mem::replace(&mut self.begun, begun);
        let text = String::from_utf8_lossy(&whole);
        self.reader.pass(&text).as_str().as_bytes().to_vec().into()
    }
}

/// How many of these bytes come before a character that is not all there yet.
fn whole_characters(bytes: &[u8]) -> usize {
    let last = bytes.iter().rev().take(4).position(|byte| byte & 0xc0 != 0x80);
    let Some(at) = last.map(|back| bytes.len() - 1 - back) else { return bytes.len() };
    let length = match bytes[at] {
        0xc0..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xff => 4,
        _ => 1,
    };
    if at + length > bytes.len() { at } else { bytes.len() }
}

/// Reads until the end, or until nobody wants more.
fn each_piece(mut pipe: &File, output: &Output, mut pass_on: impl FnMut(&[u8]) -> bool) {
    let mut buffer = vec![0; PIECE];
    loop {
        let read = pipe.read(&mut buffer);
        output.carrying.store(true, Ordering::Release);
        let goes_on = match read {
            Ok(read @ 1..) => pass_on(&buffer[..read]),
            Err(error) => error.kind() == std::io::ErrorKind::Interrupted,
            Ok(0) => false,
        };
        output.carrying.store(false, Ordering::Release);
        if !goes_on {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SEC-05, also where a character comes in two pieces.
    #[test]
    fn a_terminal_gets_the_bytes_of_a_server_escaped_and_a_pipe_as_they_are() {
        let bytes = "a\u{202e}é\u{1b}]0;x\u{7}\u{9b}2J 日本\n".as_bytes();
        for cut in 0..bytes.len() {
            let mut pipe = Way::to(Reader::file());
            let mut terminal = Way::to(Reader { terminal: true, colour: true });
            let (mut plain, mut shown) = (Vec::new(), Vec::new());
            for piece in [&bytes[..cut], &bytes[cut..]] {
                plain.extend_from_slice(&pipe.pass(piece));
                shown.extend_from_slice(&terminal.pass(piece));
            }
            assert_eq!(plain, bytes);
            let shown = String::from_utf8(shown).unwrap();
            assert!(shown.contains('é') && shown.ends_with("日本\n"), "{shown}");
            assert!(
                !shown.contains(['\u{1b}', '\u{7}', '\u{9b}', '\u{202e}', '\u{fffd}']),
                "{shown:?}"
            );
        }
    }
}
