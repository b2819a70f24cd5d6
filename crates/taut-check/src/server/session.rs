//! One session with a server: opened in a revision, probed, closed.
//!
//! Knows how a session opens and how long things may take. Must not know any check.

use std::collections::HashSet;
use std::time::Duration;

use serde_json::{Value, json};

use super::answers::reply_to;
use super::patience::works;
use crate::cx::{initialize, request};
use crate::ours::Revision;
use crate::process::{Entry, Process, Stopped, What};
use crate::program::Program;
use crate::seen::{Seen, Session, Step, is_meant, is_request, is_response, messages};

/// How long things may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    /// Until the first answer.
    pub(crate) start: Duration,
    /// Until an answer that has to come.
    pub(crate) request: Duration,
    /// For answers after the barrier was answered, of what may take any time: they may come in any order.
    pub(crate) late: Duration,
    /// Before each of the requests whose answers make the silence of an earlier one certain.
    pub(crate) pause: Duration,
    /// After all of that, for what must not come.
    pub(crate) quiet: Duration,
    /// From the end of stdin to the end of the process.
    pub(crate) exit: Duration,
}

/// Why a session did not open, if it took too long.
pub(super) const LATE: &str = "it did not answer in time";

/// Why something was not tried, if what was kept of the run takes too much memory.
pub(super) const NO_MEMORY: &str =
    "the answers of this server take too much memory to look at more of them";

/// How long a second answer may take where the first did not come.
const AGAIN: Duration = Duration::from_millis(500);

/// The id of the request that opens a session.
pub(crate) const OPENING: i64 = 1;

/// Where the ids of barriers begin.
pub(crate) const BARRIERS: i64 = 1_000_000;

/// A session that is under way.
pub(crate) struct Live {
    pub(crate) process: Process,
    pub(super) revision: Revision,
    pub(super) times: Times,
    pub(super) barriers: i64,
    /// Whether the handshake is over, or the era was asked for.
    pub(super) opened: bool,
    /// Whether something was sent that may change how what follows is answered.
    pub(crate) odd: bool,
    /// Whether a probe is followed by a time in which nothing may come.
    pub(crate) quiet: bool,
    /// Whether long messages are let go once they are judged.
    pub(crate) light: bool,
}

impl Live {
    pub(crate) fn start(
        program: &Program,
        revision: Revision,
        times: Times,
        caps: &Value,
    ) -> std::io::Result<Self> {
        let mut process = Process::start(program)?;
        let caps = caps.clone();
        process.responder = Some(Box::new(move |value| {
            let asked = messages(value).iter().filter(|value| is_request(value));
            asked.map(|request| line(&reply_to(request, &caps))).collect()
        }));
        Ok(Self {
            process,
            revision,
            times,
            barriers: 0,
            opened: false,
            odd: false,
            quiet: true,
            light: true,
        })
    }

    /// Opens the session; what the server said of itself, or why that did not work.
    pub(crate) fn open(&mut self, caps: &Value) -> Result<Value, String> {
        self.open_slowly(caps, Duration::ZERO)
    }

    /// The same, with a pause before the handshake is finished.
    pub(crate) fn open_slowly(&mut self, caps: &Value, pause: Duration) -> Result<Value, String> {
        let id = Value::from(OPENING);
        let message = if self.revision.is_modern() {
            request(self.revision, &id, "server/discover", Value::Null, caps)
        } else {
            initialize(&id, self.revision.as_str(), caps)
        };
        self.process.send(line(&message));
        let repeats = |entry: &Entry| entry.value() == Some(&message);
        self.process.wait(self.times.start, 0, |entry| answers(entry, &id) || repeats(entry));
        if self.process.log.iter().any(repeats) {
            return Err("it sends back what it is sent, so it is no MCP server".to_owned());
        }
        let Some(reply) = reply(&self.process.log, &id) else {
            let how = match self.process.stopped {
                Some(Stopped::Flood) => "it wrote without end, and no answer",
                Some(Stopped::Memory) => NO_MEMORY,
                None if self.process.ended => "it ended",
                None => LATE,
            };
            return Err(format!("{how}{}", self.last_words()));
        };
        let Some(result) = reply.get("result") else {
            return Err(format!("it refused: {}", reply["error"]));
        };
        let result = result.clone();
        if !self.revision.is_modern() {
            let agreed = result["protocolVersion"].as_str().unwrap_or_default();
            if agreed != self.revision.as_str() {
                return Err(format!("it offered {agreed:?} instead"));
            }
            // One that cannot wait for it would speak now.
            self.process.listen(pause);
            let note = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
            self.process.send(line(&note));
        }
        self.opened = true;
        Ok(result)
    }

    fn last_words(&self) -> String {
        let stderr = self.process.stderr();
        match stderr.lines().rev().find(|line| !line.trim().is_empty()) {
            Some(last) => format!("; the end of its stderr: {}", last.trim()),
            None => String::new(),
        }
    }

    /// Whether nothing more can be asked.
    pub(crate) fn is_over(&self) -> bool {
        self.process.ended
    }

    /// Sends one request and waits for its answer.
    pub(crate) fn ask(&mut self, message: &Value, limit: Duration) -> Option<Value> {
        let id = message["id"].clone();
        let mark = self.process.log.len();
        self.process.send(line(message));
        self.process.wait(limit, mark, |entry| answers(entry, &id));
        reply(&self.process.log, &id).cloned()
    }

    pub(crate) fn timed_ask(&mut self, message: &Value, limit: Duration) -> (Option<Value>, u64) {
        let began = std::time::Instant::now();
        let reply = self.ask(message, limit);
        (reply, u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX))
    }

    /// Carries out the steps of a probe. `barrier`: a harmless request follows them.
    pub(crate) fn carry_out(&mut self, steps: &[Step], barrier: bool) -> Done {
        let mark = self.process.log.len();
        let mut done = Done {
            mark,
            barrier: true,
            died: false,
            gone: None,
            opened: None,
            own: vec![],
            missed: false,
            hears: vec![],
            unheard: false,
        };
        done.own.push(Value::from(OPENING));
        let mut closed = false;
        for step in steps {
            self.step(step, &mut done, &mut closed);
        }
        if barrier && !closed {
            done.barrier = self.barrier(&mut done.own);
        }
        if !closed {
            let mut wanted = wanted(steps);
            if !wanted.is_empty() {
                let all = |entry: &Entry| {
                    wanted.retain(|id| !answers(entry, id));
                    wanted.is_empty()
                };
                match works(steps) {
                    true => self.process.wait(self.times.late, mark, all),
                    false => self.comes(self.times.request, mark, 1, &mut done.own, all),
                };
            }
            if self.quiet {
                self.process.listen(self.times.quiet);
            }
            done.died = self.process.ended;
        }
        done
    }

    fn step(&mut self, step: &Step, done: &mut Done, closed: &mut bool) {
        match step {
            Step::Send(message) => {
                let ids = messages(message).iter().filter_map(|one| one.get("id"));
                done.own.extend(ids.filter(|id| !id.is_null()).cloned());
                self.process.send(line(message));
            }
            Step::Raw(bytes) => {
                for part in bytes.split(|byte| *byte == b'\n') {
                    let value: Value = serde_json::from_slice(part).unwrap_or_default();
                    let ids = messages(&value).iter().filter_map(|one| one.get("id"));
                    done.own.extend(
                        ids.filter(|id| id.is_string() || id.is_i64() || id.is_u64()).cloned(),
                    );
                }
                self.process.send(bytes.clone());
            }
            // What was never sent is not waited for.
            Step::Follow(id, ..) | Step::Await(id) if !done.own.contains(id) => {}
            Step::Await(id) => {
                // The first answer of a process may take as long as its start.
                let silent = !self.process.log.iter().any(|entry| entry.value().is_some());
                let limit = if silent { self.times.start } else { self.times.request };
                // Who left one unanswered may leave them all.
                let limit = if done.missed { limit.min(AGAIN) } else { limit };
                let came = match self.parts_of(done.mark, id) {
                    None => self.process.wait(limit, done.mark, |entry| answers(entry, id)),
                    Some(n) => {
                        self.comes(limit, done.mark, n, &mut done.own, |entry| answers(entry, id))
                    }
                };
                done.missed |= !came;
            }
            Step::Hear(method) => {
                let last = self.last_own(&done.own);
                done.hears.push(method);
                let due = done.hears.iter().filter(|other| *other == method).count();
                let limit = self.times.request;
                let limit = if done.unheard { limit.min(AGAIN) } else { limit };
                let mut came = 0;
                let mut heard = |entry: &Entry| {
                    let told = entry.value().is_some_and(|value| value["method"] == **method);
                    came += usize::from(told);
                    came >= due || answers(entry, &last)
                };
                done.unheard |= !match self.parts_of(done.mark, &last) {
                    None => self.process.wait(limit, done.mark, heard),
                    Some(n) => self.comes(limit, done.mark, n, &mut done.own, &mut heard),
                };
            }
            Step::Follow(id, next, make) => {
                self.step(&Step::Await(id.clone()), done, closed);
                let log = &self.process.log[done.mark..];
                let made = reply(log, id).zip(request_of(log, id));
                let made = made.and_then(|(reply, request)| make(reply, next, &request));
                if let Some(message) = made {
                    self.step(&Step::Send(message), done, closed);
                }
            }
            Step::Mute => self.process.responder = None,
            Step::Listen(millis) => self.process.listen(Duration::from_millis(*millis)),
            Step::Open(caps) => done.opened = self.open(caps).ok(),
            Step::Barrier => done.barrier &= self.barrier(&mut done.own),
            Step::Close => {
                *closed = true;
                done.died = self.process.ended;
                self.process.close_input();
                // One that said nothing yet may still be starting: it cannot end before it has begun.
                let silent = !self.process.log.iter().any(|entry| entry.value().is_some());
                let start = if silent { self.times.start } else { Duration::ZERO };
                done.gone = self.process.gone_within(self.times.exit + start);
            }
        }
    }

    /// Sends a harmless request and says whether it was answered.
    fn barrier(&mut self, own: &mut Vec<Value>) -> bool {
        let mark = self.process.log.len();
        let id = self.ask_harmless(own);
        self.process.wait(self.times.request, mark, |entry| answers(entry, &id))
    }

    /// What was seen since a probe began.
    pub(crate) fn seen<'a>(&'a self, done: &Done) -> Seen<'a> {
        Seen {
            entries: &self.process.log[done.mark..],
            barrier: done.barrier,
            died: done.died,
            flooded: self.process.stopped == Some(Stopped::Flood),
            gone: done.gone,
            opened: done.opened.clone(),
            own: done.own.clone(),
        }
    }

    /// Ends the session, and gives back what was said in it. The process has this long to end by itself.
    pub(crate) fn close(mut self, patience: Duration) -> Session {
        // Who was asked to end before was judged for that.
        let asked = self.process.is_closed();
        self.process.close_input();
        let stays = self.process.gone_within(patience).is_none();
        self.process.kill();
        if self.light {
            self.process.lighten();
        }
        let entries = std::mem::take(&mut self.process.log);
        let (stayed, odd) = (stays && !asked, self.odd);
        Session { stayed, odd, ..Session::new(self.revision, entries) }
    }
}

/// What carrying out a probe gave.
pub(crate) struct Done {
    mark: usize,
    pub(crate) barrier: bool,
    pub(crate) died: bool,
    gone: Option<Duration>,
    opened: Option<Value>,
    own: Vec<Value>,
    /// Whether an answer did not come that was waited for.
    missed: bool,
    /// The notifications that were waited for, and whether one did not come.
    hears: Vec<&'static str>,
    unheard: bool,
}

/// The ids that an answer may be expected for: not those of streams, nor of what is cancelled.
fn wanted(steps: &[Step]) -> Vec<Value> {
    let sent: Vec<&Value> = steps
        .iter()
        .filter_map(|step| match step {
            Step::Send(message) => Some(message),
            _ => None,
        })
        .collect();
    let cancelled: Vec<&Value> =
        sent.iter().filter_map(|message| message.pointer("/params/requestId")).collect();
    let asks = |message: &&&Value| {
        let id = message.get("id");
        is_request(message)
            && message["method"] != "subscriptions/listen"
            && id.is_some_and(|id| (id.is_string() || id.is_number()) && !cancelled.contains(&id))
    };
    sent.iter().filter(asks).filter_map(|message| message.get("id")).cloned().collect()
}

pub(crate) fn line(message: &Value) -> Vec<u8> {
    let mut bytes = message.to_string().into_bytes();
    bytes.push(b'\n');
    bytes
}

fn reply<'a>(log: &'a [Entry], id: &Value) -> Option<&'a Value> {
    let mut all = log.iter().filter_map(Entry::value).flat_map(messages);
    all.find(|value| is_response(value) && is_meant(value.get("id"), id))
}

/// The request with this id that was sent.
fn request_of(log: &[Entry], id: &Value) -> Option<Value> {
    log.iter().rev().find_map(|entry| match &entry.what {
        What::Sent(bytes) => {
            let sent = serde_json::from_slice::<Value>(bytes).ok();
            sent.filter(|value| is_request(value) && value.get("id") == Some(id))
        }
        _ => None,
    })
}

/// Whether an entry has the answer to a request, even one that has neither a result nor an error.
pub(super) fn answers(entry: &Entry, id: &Value) -> bool {
    let list = entry.value().map(messages).unwrap_or_default();
    let answers = |value: &Value| value.get("method").is_none() || is_response(value);
    list.iter().any(|value| answers(value) && is_meant(value.get("id"), id))
}

/// The bytes of a session as lines, `>` from us and `<` from the peer.
pub(crate) fn shown(entries: &[Entry]) -> Vec<String> {
    let one = |entry: &Entry| match &entry.what {
        What::Sent(bytes) => {
            format!("> {}", excerpt(bytes.strip_suffix(b"\n").unwrap_or(bytes)))
        }
        What::Got(frame) => format!("< {}", excerpt(&frame.raw)),
        What::Closed => "> (end of stdin)".to_owned(),
        What::Eof => "< (end of stdout)".to_owned(),
    };
    let Some(left) = entries.len().checked_sub(2 * MAX_SHOWN).filter(|left| *left > 0) else {
        return entries.iter().map(one).collect();
    };
    let (first, last) = (&entries[..MAX_SHOWN], &entries[entries.len() - MAX_SHOWN..]);
    let between = format!("({left} more)");
    first.iter().map(one).chain([between]).chain(last.iter().map(one)).collect()
}

/// How many entries are shown from the beginning and from the end, and how many bytes of each.
const MAX_SHOWN: usize = 100;
const MAX_LINE: usize = 64 << 10;

/// The bytes as text; of a long one its beginning.
fn excerpt(bytes: &[u8]) -> String {
    match bytes.get(..MAX_LINE) {
        Some(start) if bytes.len() > MAX_LINE => {
            format!("{}… ({} bytes)", String::from_utf8_lossy(start), bytes.len())
        }
        _ => String::from_utf8_lossy(bytes).into_owned(),
    }
}

impl Live {
    /// Whether a call of a tool has no answer: the server may still be at work. One that was cancelled needs none.
    pub(crate) fn owes(&self) -> bool {
        let mut open = HashSet::new();
        let key = |value: &Value| value.get("id").map(Value::to_string);
        for entry in &self.process.log {
            match &entry.what {
                What::Sent(bytes) => {
                    let sent: Value = serde_json::from_slice(bytes).unwrap_or_default();
                    let works = |one: &&Value| is_request(one) && one["method"] == "tools/call";
                    open.extend(messages(&sent).iter().filter(works).filter_map(key));
                    if sent["method"] == "notifications/cancelled" {
                        open.remove(&sent["params"]["requestId"].to_string());
                    }
                }
                What::Got(_) => {
                    let got = entry.value().map(messages).unwrap_or_default();
                    for id in got.iter().filter(|one| is_response(one)).filter_map(key) {
                        open.remove(&id);
                    }
                }
                _ => {}
            }
        }
        !open.is_empty()
    }

    /// Whether any answer so far belongs to no request of ours.
    pub(crate) fn strays(&self) -> bool {
        let session = Session::new(self.revision, self.process.log.clone());
        let known = |id: &Value| session.sent.iter().any(|(_, sent)| is_meant(sent.get("id"), id));
        let mut answers = session.received().filter(|(_, value, _)| is_response(value));
        answers.any(|(_, value, _)| value.get("id").is_none_or(|id| id.is_null() || !known(id)))
    }
}
