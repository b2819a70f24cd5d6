//! What was said, in the shape that judges read: one exchange, or all sessions of a revision.
//!
//! Knows what is a request, an answer and a notification. Judges nothing itself.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use serde_json::Value;

use crate::ours::Revision;
use crate::process::{Entry, What};
use crate::wire::Frame;

/// One thing that a probe does.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// Writes a message as one line.
    Send(Value),
    /// Writes bytes as they are.
    Raw(Vec<u8>),
    /// Waits for the answer with this id, for as long as a request may take.
    Await(Value),
    /// Waits for one more notification with this method than the steps before it, or for an answer to the last request.
    Hear(&'static str),
    /// Waits for the answer to the first id, and sends what is made of it, of the second id and of its request.
    Follow(Value, Value, fn(&Value, &Value, &Value) -> Option<Value>),
    /// Listens for this many milliseconds.
    Listen(u64),
    /// Opens the session, in a probe that has a process of its own, with these client capabilities.
    Open(Value),
    /// Answers no question of the peer from here on.
    Mute,
    /// Sends a harmless request and waits for its answer.
    Barrier,
    /// Closes the peer's stdin and waits until it is gone.
    Close,
}

/// What has a result or an error is an answer, even if it also has a method: `rpc-one-of` tells that.
pub(crate) fn is_response(value: &Value) -> bool {
    value.get("result").is_some() || value.get("error").is_some()
}

pub(crate) fn is_notification(value: &Value) -> bool {
    value.get("method").is_some() && value.get("id").is_none()
}

pub(crate) fn is_request(value: &Value) -> bool {
    value.get("method").is_some() && value.get("id").is_some() && !is_response(value)
}

/// Whether an answer with this id is meant for a request with that id. An id of another JSON type is
/// forgiven, so that one broken rule does not hide the others: the checks of ids tell it.
pub(crate) fn is_meant(given: Option<&Value>, id: &Value) -> bool {
    given.is_some_and(|given| given == id || key(given) == key(id))
}

/// An id as text, the same for every JSON type of the same number.
fn key(id: &Value) -> String {
    let number = match id {
        Value::String(text) => text.parse().ok(),
        other => other.as_f64(),
    };
    // Others are sent by the checks of ids themselves, as a number and as a string. 1 opens a session.
    match number.filter(|number| *number == 1.0 || *number >= 10.0 && number.fract() == 0.0) {
        Some(number) if number < 9e15 => format!("{number:.0}"),
        _ => id.to_string(),
    }
}

/// An integer that is not negative. JSON Schema counts 3.0 among the integers.
pub(crate) fn is_count(value: &Value) -> bool {
    value.as_f64().is_some_and(|number| number >= 0.0 && number.fract() == 0.0)
}

/// Whether two values are the same to a reader of JSON, who does not tell 3.0 from 3.
pub(crate) fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(left), Value::Number(right)) => {
            left == right || left.as_f64() == right.as_f64()
        }
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len()
                && left.iter().zip(right).all(|(left, right)| same(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            let has = |(name, value): (&String, &Value)| {
                right.get(name).is_some_and(|found| same(value, found))
            };
            left.len() == right.len() && left.iter().all(has)
        }
        _ => one == other,
    }
}

/// The messages in what was received: one, or those of a batch.
pub(crate) fn messages(value: &Value) -> &[Value] {
    match value {
        Value::Array(list) => list,
        one => std::slice::from_ref(one),
    }
}

/// What happened while a probe was carried out.
pub(crate) struct Seen<'a> {
    pub(crate) entries: &'a [Entry],
    /// Whether the harmless request at the end was answered.
    pub(crate) barrier: bool,
    /// Whether the stream ended before we closed it.
    pub(crate) died: bool,
    /// Whether it wrote without end, so that we ended it.
    pub(crate) flooded: bool,
    /// How long after its stdin was closed the process was gone; nothing if it stayed, or was not asked.
    pub(crate) gone: Option<Duration>,
    /// What opening the session gave, in a probe that has a process of its own.
    pub(crate) opened: Option<Value>,
    /// Ids that belong to us: those of the probe and of its barrier.
    pub(crate) own: Vec<Value>,
}

impl<'a> Seen<'a> {
    pub(crate) fn got(&self) -> impl Iterator<Item = &'a Value> + use<'a> {
        self.entries.iter().filter_map(Entry::value).flat_map(messages)
    }

    pub(crate) fn frames(&self) -> impl Iterator<Item = &'a Frame> + use<'a> {
        self.entries.iter().filter_map(|entry| match &entry.what {
            What::Got(frame) => Some(frame),
            _ => None,
        })
    }

    pub(crate) fn replies(&self, id: &Value) -> Vec<&'a Value> {
        let mine = |value: &&Value| is_response(value) && is_meant(value.get("id"), id);
        self.got().filter(mine).collect()
    }

    pub(crate) fn reply(&self, id: &Value) -> Option<&'a Value> {
        self.replies(id).first().copied()
    }

    pub(crate) fn result(&self, id: &Value) -> Option<&'a Value> {
        self.reply(id).filter(|reply| !reply["error"].is_object())?.get("result")
    }

    pub(crate) fn code(&self, id: &Value) -> Option<i64> {
        self.reply(id).and_then(|reply| reply.pointer("/error/code")).and_then(Value::as_i64)
    }

    pub(crate) fn notifications(&self) -> impl Iterator<Item = &'a Value> + use<'a> {
        self.got().filter(|value| is_notification(value))
    }

    /// Answers that belong to no request of ours.
    pub(crate) fn strays(&self) -> Vec<&'a Value> {
        let stray = |value: &&Value| {
            is_response(value) && !self.own.iter().any(|own| is_meant(value.get("id"), own))
        };
        self.got().filter(stray).collect()
    }

    /// The lines that were received, for a report.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.frames().map(Frame::text).collect()
    }
}

/// One process from start to end.
pub(crate) struct Session {
    pub(crate) revision: Revision,
    pub(crate) entries: Vec<Entry>,
    /// Every message that we sent and that can be read, with its place.
    pub(crate) sent: Vec<(usize, Value)>,
    /// What we sent that is no JSON.
    pub(crate) torn: Vec<String>,
    /// Whether it still ran long after its stdin was closed.
    pub(crate) stayed: bool,
    /// Whether something was sent that may change how what follows is answered: its results say nothing of others.
    pub(crate) odd: bool,
}

/// An answer with its request.
pub(crate) struct Answered<'a> {
    pub(crate) method: &'a str,
    pub(crate) params: &'a Value,
    pub(crate) reply: &'a Value,
    /// The line that has the answer.
    pub(crate) line: &'a Frame,
}

impl Answered<'_> {
    /// The result; nothing if an error stands beside it.
    pub(crate) fn result(&self) -> Option<&Value> {
        self.reply.get("result").filter(|_| !self.reply["error"].is_object())
    }
}

impl Session {
    /// Whether this is a result that may have its form from something else that was sent to the process (STD-25).
    pub(crate) fn is_clouded(&self, reply: &Value) -> bool {
        self.odd && self.revision.is_modern() && reply.get("result").is_some()
    }

    pub(crate) fn frames(&self) -> impl Iterator<Item = (usize, &Frame)> {
        self.entries.iter().enumerate().filter_map(|(index, entry)| match &entry.what {
            What::Got(frame) => Some((index, frame)),
            _ => None,
        })
    }

    /// Every message that was received, with its place and its line.
    pub(crate) fn received(&self) -> impl Iterator<Item = (usize, &Value, &Frame)> {
        self.frames().flat_map(|(index, frame)| {
            let list = frame.value.as_ref().map(messages).unwrap_or_default();
            list.iter().map(move |value| (index, value, frame))
        })
    }
}

impl Session {
    pub(crate) fn new(revision: Revision, entries: Vec<Entry>) -> Self {
        let (mut sent, mut torn) = (Vec::new(), Vec::new());
        for (index, entry) in entries.iter().enumerate() {
            let What::Sent(bytes) = &entry.what else { continue };
            for line in bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
                match serde_json::from_slice::<Value>(line) {
                    Ok(value) => {
                        sent.extend(messages(&value).iter().map(|one| (index, one.clone())))
                    }
                    Err(_) => torn.push(String::from_utf8_lossy(line).into_owned()),
                }
            }
        }
        Self { revision, entries, sent, torn, stayed: false, odd: false }
    }
}

impl Session {
    /// The requests that were sent before a place with this progress token, of the same JSON type.
    pub(crate) fn with_token(&self, token: &Value, before: usize) -> impl Iterator<Item = &Value> {
        let sent = self.sent.iter().take_while(move |(place, _)| *place < before);
        let token = token.clone();
        sent.map(|(_, message)| message)
            .filter(move |one| one.pointer("/params/_meta/progressToken") == Some(&token))
    }

    /// From which place on a cancelled request is over: two later requests were answered by then.
    pub(crate) fn forgotten(&self, id: &Value) -> Option<usize> {
        let cancels = |message: &Value| {
            message["method"] == "notifications/cancelled"
                && message["params"].get("requestId") == Some(id)
        };
        let (cancelled, _) = self.sent.iter().find(|(_, message)| cancels(message))?;
        let answers =
            self.received().filter(|(place, value, _)| place > cancelled && is_response(value));
        answers.map(|(place, ..)| place).nth(1)
    }

    /// The place of the first answer to each id, by the id as JSON text.
    pub(crate) fn ends(&self) -> HashMap<String, usize> {
        let mut ends = HashMap::new();
        for (place, reply, _) in self.received().filter(|(_, reply, _)| is_response(reply)) {
            ends.entry(reply["id"].to_string()).or_insert(place);
        }
        ends
    }
}

/// The requests of a session by their id.
pub(crate) struct Requests<'a>(HashMap<String, Vec<&'a (usize, Value)>>);

impl<'a> Requests<'a> {
    fn of(session: &'a Session) -> Self {
        let mut all: HashMap<String, Vec<&'a (usize, Value)>> = HashMap::new();
        for sent in session.sent.iter().filter(|(_, message)| is_request(message)) {
            all.entry(key(&sent.1["id"])).or_default().push(sent);
        }
        Self(all)
    }

    /// The last request with this id that was sent before a place.
    pub(crate) fn before(&self, id: &Value, place: usize) -> Option<&'a (usize, Value)> {
        let list = self.0.get(&key(id))?;
        list.iter().rev().find(|(index, _)| *index < place).copied()
    }

    /// How many have this id, with the same JSON type.
    pub(crate) fn count(&self, id: &Value) -> usize {
        let same = |sent: &&&(usize, Value)| sent.1["id"] == *id;
        self.0.get(&key(id)).map_or(0, |list| list.iter().filter(same).count())
    }
}

/// All that was said in one revision.
pub(crate) struct All<'a> {
    pub(crate) sessions: Vec<(&'a Session, Requests<'a>)>,
    answers: Vec<Answered<'a>>,
}

impl<'a> All<'a> {
    pub(crate) fn new(sessions: impl IntoIterator<Item = &'a Session>) -> Self {
        let with = |session: &'a Session| (session, Requests::of(session));
        let sessions: Vec<_> = sessions.into_iter().map(with).collect();
        let mut answers = Vec::new();
        for (session, requests) in &sessions {
            // A second answer to a request belongs to something else, and says nothing of that request.
            let mut answered: HashSet<*const Value> = HashSet::new();
            for (index, reply, line) in session.received() {
                let Some(id) = reply.get("id").filter(|_| is_response(reply)) else { continue };
                let Some((_, request)) = requests.before(id, index) else { continue };
                let Some(method) = request["method"].as_str() else { continue };
                if session.is_clouded(reply) {
                    continue;
                }
                if !answered.insert(std::ptr::from_ref(request)) {
                    continue;
                }
                answers.push(Answered { method, params: &request["params"], reply, line });
            }
        }
        Self { sessions, answers }
    }

    /// Every message received.
    pub(crate) fn received(&self) -> impl Iterator<Item = (&'a Value, &'a Frame)> + '_ {
        self.sessions
            .iter()
            .flat_map(|(session, _)| session.received().map(|(_, value, frame)| (value, frame)))
    }

    pub(crate) fn frames(&self) -> impl Iterator<Item = &'a Frame> + '_ {
        self.sessions.iter().flat_map(|(session, _)| session.frames().map(|(_, frame)| frame))
    }

    /// Every notification received.
    pub(crate) fn notifications(&self) -> impl Iterator<Item = (&'a Value, &'a Frame)> + '_ {
        self.received().filter(|(value, _)| is_notification(value))
    }

    /// Every answer that belongs to a request of ours.
    pub(crate) fn answers(&self) -> impl Iterator<Item = &Answered<'a>> {
        self.answers.iter()
    }
}
