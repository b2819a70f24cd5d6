//! Requests and their answers, put together while records come, and what can be counted about them.
//!
//! Pure: records in, rows and figures out. What is kept is bounded, also where names and ids are foreign and long.

use std::collections::{BTreeMap, HashMap};

use crate::format::{Event, Message, Record, Side};
use crate::talk::{Kind, Talk, talks};

/// How many requests may be open at once; of more, the answers are shown without their request.
const OPEN: usize = 16 << 10;

/// How many labels are counted apart; more are counted together, as [`OTHERS`].
const LABELS: usize = 4 << 10;

/// The label of all calls beyond the ones that are counted apart.
const OTHERS: &str = "others";

/// The longest label or id that is kept, in bytes. A longer label is cut; a request with a longer id is not
/// matched with its answer.
const LONGEST: usize = 256;

/// How many times are kept for each label: more would not change a percentile.
const TIMES: usize = 64 << 10;

/// A request that waits for its answer.
#[derive(Clone, Debug)]
pub struct Open {
    /// When it was sent, in microseconds.
    pub at: u64,
    /// What was asked, such as `tools/call echo`.
    pub label: String,
    /// Whether it was withdrawn.
    pub cancelled: bool,
}

/// One thing that a message says, with what is known about its request.
#[derive(Clone, Debug)]
pub struct Row {
    /// The connection that it passed on, in a capture of several.
    pub link: Option<String>,
    /// Who said it.
    pub from: Side,
    /// What.
    pub talk: Talk,
    /// For an answer, its request.
    pub request: Option<Open>,
    /// How long the body was.
    pub bytes: usize,
}

/// What was counted of one method and target.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    /// How many requests there were.
    pub calls: usize,
    /// How many were answered with an error, or by a tool that failed.
    pub failed: usize,
    /// How many were withdrawn.
    pub cancelled: usize,
    /// Bytes of the requests and of the answers.
    pub bytes: (u64, u64),
    times: Vec<u64>,
}

impl Figures {
    /// The time within which so many of a hundred were answered, in microseconds.
    #[must_use]
    pub fn percentile(&self, percent: usize) -> Option<u64> {
        let mut times = self.times.clone();
        times.sort_unstable();
        let at = (times.len() * percent).div_ceil(100).saturating_sub(1);
        times.get(at).copied()
    }

    /// How many were answered.
    #[must_use]
    pub fn answered(&self) -> usize {
        self.times.len()
    }
}

/// Puts requests and answers together.
#[derive(Debug, Default)]
pub struct Calls {
    /// By the connection, who asked, and the id.
    open: HashMap<(Option<String>, bool, String), Open>,
    /// By the connection, who asked, and what.
    pub figures: BTreeMap<(Option<String>, bool, String), Figures>,
    /// Lines that are no messages, from the server.
    pub stray: usize,
    /// Messages in all.
    pub messages: usize,
    /// Bytes of the messages from the client and from the server.
    pub bytes: (u64, u64),
    /// Records that are missing.
    pub missing: u64,
}

impl Calls {
    /// Takes the next record; says what it means if it is a message.
    pub fn handle(&mut self, record: &Record) -> Vec<Row> {
        let message = match &record.event {
            Event::Message(message) => message,
            Event::Gap(gap) => {
                self.missing += gap.records;
                return Vec::new();
            }
            _ => return Vec::new(),
        };
        let bytes = message.body.bytes().len();
        self.messages += 1;
        match message.from {
            Side::Client => self.bytes.0 += bytes as u64,
            Side::Server => self.bytes.1 += bytes as u64,
        }
        let rows = talks(&message.body).into_iter();
        rows.map(|talk| self.row(record.at, message, talk, bytes)).collect()
    }

    /// The requests that wait for an answer, the oldest first.
    #[must_use]
    pub fn open(&self) -> Vec<&Open> {
        let mut open: Vec<&Open> = self.open.values().collect();
        open.sort_by_key(|open| open.at);
        open
    }

    fn row(&mut self, at: u64, message: &Message, talk: Talk, bytes: usize) -> Row {
        let (from, link) = (message.from, message.link.clone());
        let client = from == Side::Client;
        let mut request = None;
        match (talk.kind(), &talk.id) {
            (Kind::Request, Some(id)) => {
                let label = short(talk.label());
                let figures = self.figures_of((link.clone(), client, label.clone()));
                figures.calls += 1;
                figures.bytes.0 += bytes as u64;
                if self.open.len() < OPEN && id.len() <= LONGEST {
                    let open = Open { at, label, cancelled: false };
                    self.open.insert((link.clone(), client, id.clone()), open);
                }
            }
            (Kind::Answer, Some(id)) => {
                request = self.open.remove(&(link.clone(), !client, id.clone()));
                if let Some(open) = &request {
                    let key = (link.clone(), !client, open.label.clone());
                    let figures = self.figures_of(key);
                    figures.bytes.1 += bytes as u64;
                    figures.failed += usize::from(talk.failure().is_some());
                    if figures.times.len() < TIMES {
                        figures.times.push(at.saturating_sub(open.at));
                    }
                }
            }
            (Kind::Notification, _) => {
                if let Some(id) = talk.cancelled()
                    && let Some(open) = self.open.get_mut(&(link.clone(), client, id))
                {
                    open.cancelled = true;
                    let key = (link.clone(), client, open.label.clone());
                    self.figures_of(key).cancelled += 1;
                }
            }
            (Kind::Stray, _) if !client => self.stray += 1,
            _ => {}
        }
        Row { link, from, talk, request, bytes }
    }

    fn figures_of(&mut self, key: (Option<String>, bool, String)) -> &mut Figures {
        let apart = self.figures.len() < LABELS || self.figures.contains_key(&key);
        let key = if apart { key } else { (None, key.1, OTHERS.to_owned()) };
        self.figures.entry(key).or_default()
    }
}

fn short(mut label: String) -> String {
    if label.len() > LONGEST {
        let mut end = LONGEST;
        while !label.is_char_boundary(end) {
            end -= 1;
        }
        label.truncate(end);
        label.push('…');
    }
    label
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::record;

    fn handle(calls: &mut Calls, from: &str, message: &serde_json::Value) -> Vec<Row> {
        let line =
            serde_json::json!({ "t": 0, "kind": "message", "from": from, "message": message });
        calls.handle(&record(format!("{line}\n").as_bytes()).unwrap())
    }

    /// A peer that never says the same name twice, and names without end, costs bounded memory.
    #[test]
    fn names_and_ids_of_strangers_are_kept_within_bounds() {
        let (mut calls, long) = (Calls::default(), "é".repeat(4_000));
        let request = |id: String, name: String| {
            let params = serde_json::json!({ "name": name });
            serde_json::json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
        };
        for number in 0..LABELS + 100 {
            handle(&mut calls, "client", &request(number.to_string(), format!("{number}{long}")));
            let answer =
                serde_json::json!({ "jsonrpc": "2.0", "id": number.to_string(), "result": {} });
            let rows = handle(&mut calls, "server", &answer);
            assert!(rows[0].request.is_some(), "{number}");
        }
        assert_eq!(calls.figures.len(), LABELS + 1);
        assert!(calls.figures.keys().all(|(_, _, label)| label.len() <= LONGEST + 3));
        let others = &calls.figures[&(None, true, OTHERS.to_owned())];
        assert_eq!((others.calls, others.answered()), (100, 100));
        // An id that is too long to keep: the call is counted, and its answer stands alone.
        handle(&mut calls, "client", &request(long.clone(), "x".to_owned()));
        let answer = serde_json::json!({ "jsonrpc": "2.0", "id": long, "result": {} });
        assert!(handle(&mut calls, "server", &answer)[0].request.is_none());
        assert!(calls.open().is_empty());
    }
}
