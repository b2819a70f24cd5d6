//! Requests and their answers, put together while records come, and what can be counted about them.
//!
//! Pure: records in, rows and figures out. What is open is bounded in number.

use std::collections::{BTreeMap, HashMap};

use crate::format::{Event, Message, Record, Side};
use crate::talk::{Kind, Talk, talks};

/// How many requests may be open at once; of more, the answers are shown without their request.
const OPEN: usize = 16 << 10;

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
                let label = talk.label();
                let figures =
                    self.figures.entry((link.clone(), client, label.clone())).or_default();
                figures.calls += 1;
                figures.bytes.0 += bytes as u64;
                if self.open.len() < OPEN {
                    let open = Open { at, label, cancelled: false };
                    self.open.insert((link.clone(), client, id.clone()), open);
                }
            }
            (Kind::Answer, Some(id)) => {
                request = self.open.remove(&(link.clone(), !client, id.clone()));
                if let Some(open) = &request {
                    let key = (link.clone(), !client, open.label.clone());
                    let figures = self.figures.entry(key).or_default();
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
                    self.figures.entry(key).or_default().cancelled += 1;
                }
            }
            (Kind::Stray, _) if !client => self.stray += 1,
            _ => {}
        }
        Row { link, from, talk, request, bytes }
    }
}
