//! The raw wire to a server: bytes out, whole lines in. No client, no parser, no runtime.
//!
//! Knows one kind of request at a time, whose answers it compares (`template.rs`); only what differs is
//! read (`judge.rs`). Blocks in the two system calls themselves; `watch.rs` ends a wait.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use memchr::memchr;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::{Errno, ioctl_fionbio, read, write};

use super::fault::{Fault, excerpt};
use super::judge::{Expect, Said, judge};
use super::ledger::Ledger;
use super::request::Request;
use super::template::Template;
use super::watch::{Watch, Why};

/// As much as one read takes from a pipe.
const CHUNK: usize = 64 << 10;

/// The longest line: more than any payload, so that what never ends cannot eat our memory.
const LONGEST: usize = 128 << 20;

/// Lines in one phase that are no message: a banner is forgiven, a flood is not.
const JUNK: u32 = 1_000;

/// One kind of request, and what its answers look like.
#[derive(Debug)]
pub(super) struct Ask {
    pub(super) request: Request,
    pub(super) expect: Expect,
    template: Option<Template>,
}

impl Ask {
    pub(super) fn new(request: Request, expect: Expect) -> Self {
        Self { request, expect, template: None }
    }
}

/// Both ends.
#[derive(Debug)]
pub(super) struct Wire {
    to: OwnedFd,
    from: OwnedFd,
    pub(super) watch: Arc<Watch>,
    inbox: Vec<u8>,
    /// What has come stands from here …
    start: usize,
    /// … to here, …
    end: usize,
    /// … and up to here there is no end of a line in it.
    searched: usize,
    junk: u32,
    /// Answers that had to be parsed, because they differ from each other.
    pub(super) parsed: u64,
}

impl Wire {
    pub(super) fn new(to: OwnedFd, from: OwnedFd, watch: Arc<Watch>) -> Self {
        let inbox = vec![0; 4 * CHUNK];
        Self { to, from, watch, inbox, start: 0, end: 0, searched: 0, junk: 0, parsed: 0 }
    }

    /// Whether reads and writes wait. Our ends are our own: the server's are not touched.
    pub(super) fn blocking(&self, blocking: bool) -> Result<(), Fault> {
        let set = |fd| ioctl_fionbio(fd, !blocking);
        let done = set(&self.to).and_then(|()| set(&self.from));
        done.map_err(|error| Fault::Start(error.to_string()))
    }

    /// Writes all of it; with a wire that waits.
    pub(super) fn write_all(&self, mut bytes: &[u8]) -> Result<(), Fault> {
        while !bytes.is_empty() {
            match self.write(bytes)? {
                0 => self.ready(true)?,
                written => bytes = &bytes[written..],
            }
        }
        Ok(())
    }

    /// Writes what the pipe takes now.
    pub(super) fn write(&self, bytes: &[u8]) -> Result<usize, Fault> {
        loop {
            match write(&self.to, bytes) {
                Ok(written) => return Ok(written),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(0),
                Err(_) => return Err(self.gone()),
            }
        }
    }

    /// The same, as a sign of life if the pipe takes any.
    pub(super) fn push(&self, bytes: &[u8]) -> Result<usize, Fault> {
        let written = self.write(bytes)?;
        if written > 0 {
            self.watch.moved(self.watch.now());
        }
        Ok(written)
    }

    /// Waits until there is something to read, or room to write too.
    pub(super) fn ready(&self, writing: bool) -> Result<(), Fault> {
        let mut fds =
            [PollFd::new(&self.from, PollFlags::IN), PollFd::new(&self.to, PollFlags::OUT)];
        let count = if writing { 2 } else { 1 };
        match poll(&mut fds[..count], None) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(Fault::Junk(error.to_string())),
        }
    }

    /// Takes what has come. False if there is nothing, on a wire that does not wait.
    pub(super) fn read(&mut self) -> Result<bool, Fault> {
        self.make_room()?;
        loop {
            match read(&self.from, &mut self.inbox[self.end..]) {
                Ok(0) => return Err(self.gone()),
                Ok(count) => {
                    self.end += count;
                    return Ok(true);
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(false),
                Err(_) => return Err(self.gone()),
            }
        }
    }

    fn make_room(&mut self) -> Result<(), Fault> {
        if self.start == self.end {
            (self.start, self.end, self.searched) = (0, 0, 0);
        }
        if self.inbox.len() - self.end >= CHUNK {
            return Ok(());
        }
        if self.start > 0 {
            self.inbox.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.searched -= self.start;
            self.start = 0;
        }
        if self.inbox.len() - self.end < CHUNK {
            if self.inbox.len() >= LONGEST {
                return Err(Fault::Junk(format!("a line of over {} MiB", LONGEST >> 20)));
            }
            self.inbox.resize(self.inbox.len() * 2, 0);
        }
        Ok(())
    }

    /// The next whole line, without its end.
    fn line(&mut self) -> Option<(usize, usize)> {
        let Some(at) = memchr(b'\n', &self.inbox[self.searched..self.end]) else {
            self.searched = self.end;
            return None;
        };
        let line = (self.start, self.searched + at);
        self.start = line.1 + 1;
        self.searched = self.start;
        Some(line)
    }

    /// Goes through all that has come, and enters the answers.
    pub(super) fn take(&mut self, ask: &mut Ask, ledger: &mut Ledger) -> Result<(), Fault> {
        let (now, open) = (self.watch.now(), ledger.open());
        while let Some((from, to)) = self.line() {
            let line = &self.inbox[from..to];
            let known = ask.template.as_ref().and_then(|template| template.number(line));
            if let Some(id) = known {
                ledger.answered(id, now)?;
                continue;
            }
            self.take_slowly(from, to, ask, ledger, now)?;
        }
        // Noise is no sign of life.
        if ledger.open() < open {
            self.watch.moved(now);
        }
        Ok(())
    }

    fn take_slowly(
        &mut self,
        from: usize,
        to: usize,
        ask: &mut Ask,
        ledger: &mut Ledger,
        now: u64,
    ) -> Result<(), Fault> {
        let line = &self.inbox[from..to];
        match judge(line, &ask.expect)? {
            Said::Answer(id) => {
                ledger.answered(id, now)?;
                if ask.template.is_none() {
                    ask.template = Template::of(line.trim_ascii_end(), id).filter(|_| {
                        // With a carriage return the lines would never be the same.
                        !line.ends_with(b"\r")
                    });
                }
                self.parsed += 1;
            }
            Said::Nothing => {
                if self.watch.why().is_some() {
                    return Err(self.gone());
                }
            }
            Said::Wants(reply) => self.write_all(reply.as_bytes())?,
            Said::Junk => {
                self.junk += 1;
                if self.junk > JUNK {
                    return Err(Fault::Junk(excerpt(line)));
                }
            }
        }
        Ok(())
    }

    /// One request and its answer, whole, as it came.
    pub(super) fn exchange(&mut self, request: &[u8]) -> Result<Vec<u8>, Fault> {
        self.blocking(true)?;
        self.write_all(request)?;
        loop {
            while let Some((from, to)) = self.line() {
                let line = self.inbox[from..to].to_vec();
                if line == request.trim_ascii_end() {
                    return Ok(line);
                }
                match judge(&line, &Expect::Result)? {
                    Said::Answer(_) => return Ok(line),
                    Said::Wants(reply) => self.write_all(reply.as_bytes())?,
                    Said::Nothing | Said::Junk => {
                        if self.watch.why().is_some() {
                            return Err(self.gone());
                        }
                    }
                }
            }
            self.read()?;
        }
    }

    /// Why there will be no more. How a process died is filled in by who owns it.
    fn gone(&self) -> Fault {
        match self.watch.why() {
            Some(Why::Silent) => Fault::Silent(self.watch.patience()),
            Some(Why::Stopped) => Fault::Stopped,
            Some(Why::Gone) | None => Fault::Died { how: String::new(), words: String::new() },
        }
    }
}
