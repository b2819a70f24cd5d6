//! One started server, spoken to as far as it must be before it can be measured.
//!
//! Knows the opening of both eras and how to page through a list.

use std::ffi::OsString;
use std::time::Duration;

use serde_json::Value;

use super::fault::Fault;
use super::load::Load;
use super::options::Era;
use super::process::{Process, Start};
use super::request::{self, FIRST, INITIALIZED, Request};
use super::wire::Wire;

/// A first run may install the server.
const START: Duration = Duration::from_secs(30);

/// Pages of a list: more is a list that never ends.
const PAGES: usize = 1_000;

/// Bytes of a list, its cursors included: as for `taut list`.
const LIST: usize = 64 << 20;

/// What a server said when it was opened.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Opened {
    pub(super) era: Era,
    pub(super) revision: String,
    pub(super) name: String,
    pub(super) version: String,
    /// It gives back what it gets and is no server: `cat`, or a terminal.
    pub(super) repeats: bool,
}

/// A page of a list: what leads to it, and how many tools stand on it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Page {
    pub(super) cursor: Option<String>,
    pub(super) tools: usize,
}

/// A server that runs and has been opened.
#[derive(Debug)]
pub(super) struct Session {
    process: Process,
    wire: Wire,
    next: u32,
    pub(super) opened: Opened,
    /// From the start of the process to its first answer, in nanoseconds.
    pub(super) first: u64,
}

impl Session {
    /// Starts a server and opens it; in the modern era if it refuses the other and none is wished.
    pub(super) fn start(words: &[OsString], how: &Start, era: Option<Era>) -> Result<Self, Fault> {
        let began = std::time::Instant::now();
        let failed = |error: std::io::Error| Fault::Start(error.to_string());
        let (mut process, to, from) = Process::start(words, how).map_err(failed)?;
        let watch = process.watch.clone();
        watch.be_patient(how.patience.max(START));
        let mut wire = Wire::new(to, from, watch);
        let mut next = FIRST;
        let asked = era.unwrap_or(Era::Legacy);
        let first = |wire: &mut Wire, next: &mut u32, asked| {
            let opened = open(wire, next, asked);
            (opened, began.elapsed().as_nanos() as u64)
        };
        let (opened, mut nanos) = first(&mut wire, &mut next, asked);
        let opened = match opened {
            Err(Fault::Refused { .. }) if era.is_none() => {
                let (opened, second) = first(&mut wire, &mut next, Era::Modern);
                nanos = second;
                opened
            }
            other => other,
        };
        let opened = opened.map_err(|fault| explain(fault, &mut process))?;
        // It may have been silent for longer until now than it may be from now on.
        wire.watch.moved(wire.watch.now());
        wire.watch.be_patient(how.patience);
        Ok(Self { process, wire, next, opened, first: nanos })
    }

    /// One request, and the result that answers it.
    pub(super) fn ask(&mut self, request: &mut Request) -> Result<Value, Fault> {
        let (wire, next) = (&mut self.wire, &mut self.next);
        result(wire, next, request).map_err(|fault| explain(fault, &mut self.process))
    }

    /// All tools, and the pages that they stand on.
    pub(super) fn tools(&mut self) -> Result<(Vec<Value>, Vec<Page>), Fault> {
        let (mut tools, mut pages, mut cursor) = (Vec::new(), Vec::new(), None);
        let mut bytes = 0;
        for _ in 0..PAGES {
            let mut request = request::list(self.opened.era, cursor.as_deref());
            let mut page = self.ask(&mut request)?;
            bytes += page.to_string().len();
            if bytes > LIST {
                let most = LIST >> 20;
                return Err(Fault::Wrong(format!("its list of tools has more than {most} MiB")));
            }
            let Value::Array(mut found) = page["tools"].take() else { break };
            pages.push(Page { cursor, tools: found.len() });
            tools.append(&mut found);
            match page["nextCursor"].take() {
                Value::String(next) => cursor = Some(next),
                _ => return Ok((tools, pages)),
            }
        }
        Err(Fault::Wrong("its list of tools is none, or never ends".to_owned()))
    }

    pub(super) fn load<T>(
        &mut self,
        work: impl FnOnce(&mut Load<'_>) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let mut load = Load { wire: &mut self.wire, next: &mut self.next };
        work(&mut load).map_err(|fault| explain(fault, &mut self.process))
    }

    /// How many answers had to be parsed so far.
    pub(super) fn parsed(&self) -> u64 {
        self.wire.parsed
    }

    /// The number of its process and of the group of all that it starts.
    pub(super) fn id(&self) -> u32 {
        self.process.id()
    }

    /// Closes its stdin and waits for a while.
    pub(super) fn finish(self) {
        drop(self.wire);
        self.process.finish();
    }
}

/// Says how a process died that is known to be gone.
fn explain(fault: Fault, process: &mut Process) -> Fault {
    match fault {
        Fault::Died { .. } => {
            let how = process.ended();
            Fault::Died { how, words: process.last_words() }
        }
        other => other,
    }
}

fn open(wire: &mut Wire, next: &mut u32, era: Era) -> Result<Opened, Fault> {
    let mut opening = request::opening(era);
    let said = result(wire, next, &mut opening)?;
    let mut opened = Opened {
        era,
        revision: "2026-07-28".to_owned(),
        name: String::new(),
        version: String::new(),
        repeats: said.is_null(),
    };
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let info = match era {
        Era::Legacy => {
            opened.revision = text(&said["protocolVersion"]);
            &said["serverInfo"]
        }
        Era::Modern => &said["_meta"]["io.modelcontextprotocol/serverInfo"],
    };
    (opened.name, opened.version) = (text(&info["name"]), text(&info["version"]));
    if era == Era::Legacy && !opened.repeats {
        wire.write_all(INITIALIZED)?;
    }
    Ok(opened)
}

/// The result of a request; nothing if the request itself came back.
fn result(wire: &mut Wire, next: &mut u32, request: &mut Request) -> Result<Value, Fault> {
    let patience = wire.watch.patience();
    wire.watch.phase(patience.saturating_mul(2));
    let id = *next;
    *next += 1;
    let line = wire.exchange(request.numbered(id))?;
    let mut message: Value = serde_json::from_slice(&line).unwrap_or_default();
    if message["method"].is_string() {
        return Ok(Value::Null);
    }
    if message["id"] != id {
        return Err(Fault::Stranger(message["id"].to_string()));
    }
    Ok(message["result"].take())
}
