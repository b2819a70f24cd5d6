//! The client of a capture, played again: what to send next, what to wait for, what came.
//!
//! Pure: whoever carries the messages keeps the time. The client's messages go out in their order, each
//! only after all that the server had said before it; ids of the server's own questions and values that
//! the server makes up are exchanged for those of this session.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use crate::compare::{Ignore, is_opaque};
use crate::diff::{self, Finding, Said};
use crate::format::{Body, Framing, Side};
use crate::json;
use crate::read::Capture;
use crate::script::{Key, Names, Step, steps};
use crate::talk::{Kind, talks};

/// What the carrier has to do.
#[derive(Clone, Debug)]
pub enum Next {
    /// Send this message.
    Send(String, Framing),
    /// Close the server's stdin.
    Close,
    /// Wait until the server has said this, or give it up.
    Wait(Key),
    /// Everything was sent and everything has come.
    Done,
}

/// The client of a capture.
#[derive(Debug)]
pub struct Replay {
    steps: Vec<Step>,
    at: usize,
    /// Steps by their names.
    named: HashMap<Key, usize>,
    /// The server's last question with each id, of those before the step that is next.
    questions: HashMap<String, Key>,
    names: Names,
    said: Vec<Said>,
    arrived: HashSet<Key>,
    given_up: HashSet<Key>,
    /// The server's own questions: the text of their ids in this session.
    asked: HashMap<Key, String>,
    /// Values that the server made up: as they were recorded, and as they are now.
    exchanged: HashMap<String, String>,
}

impl Replay {
    /// Plays the client of this capture.
    #[must_use]
    pub fn new(capture: &Capture) -> Self {
        let steps = steps(capture);
        let mut named = HashMap::new();
        for (at, step) in steps.iter().enumerate() {
            if let Some(key) = &step.key {
                named.entry(key.clone()).or_insert(at);
            }
        }
        Self {
            steps,
            at: 0,
            named,
            questions: HashMap::new(),
            names: Names::default(),
            said: Vec::new(),
            arrived: HashSet::new(),
            given_up: HashSet::new(),
            asked: HashMap::new(),
            exchanged: HashMap::new(),
        }
    }

    /// What to do now.
    pub fn poll(&mut self) -> Next {
        while let Some(step) = self.steps.get(self.at) {
            if step.from == Side::Server {
                match &step.key {
                    Some(key) if !self.arrived.contains(key) && !self.given_up.contains(key) => {
                        return Next::Wait(key.clone());
                    }
                    _ => {
                        let asks = step.talk.kind() == Kind::Request;
                        if let (true, Some(id), Some(key)) = (asks, &step.talk.id, &step.key) {
                            // Ids may be used again; the last question before the answer counts.
                            self.questions.insert(id.clone(), key.clone());
                        }
                        self.at += 1;
                    }
                }
                continue;
            }
            let step = step.clone();
            let here = self.at;
            self.at += 1;
            let Some(text) = &step.text else { return Next::Close };
            self.names.name(Side::Client, &step.talk, here);
            if text.is_empty() {
                // It was sent with the batch that it is in.
                continue;
            }
            if let Some(text) = self.as_now(text, &step) {
                return Next::Send(text, step.framing);
            }
        }
        Next::Done
    }

    /// A message with what belongs to this session; nothing if the question it answers never came.
    fn as_now(&self, text: &str, step: &Step) -> Option<String> {
        let mut text = text.to_owned();
        if step.talk.kind() == Kind::Answer {
            let question = self.questions.get(step.talk.id.as_ref()?)?;
            text = json::replaced(&text, &["id"], self.asked.get(question)?);
        }
        if !self.exchanged.is_empty() {
            text = json::exchanged(&text, &self.exchanged);
        }
        Some(text)
    }

    /// The server has said something.
    pub fn handle(&mut self, bytes: &[u8]) {
        let body = match std::str::from_utf8(bytes) {
            Ok(text) => Body::Text(text.to_owned()),
            Err(_) => Body::Bytes(bytes.to_vec()),
        };
        for talk in talks(&body) {
            let (key, _) = self.names.name(Side::Server, &talk, self.at);
            if let (Kind::Request, Some(id)) = (talk.kind(), &talk.id) {
                self.asked.insert(key.clone(), id.clone());
            }
            if let Some(at) = self.named.get(&key) {
                exchange(&self.steps[*at].talk.value, &talk.value, &mut self.exchanged);
            }
            self.said.push(Said::new(key.clone(), &talk.value));
            self.arrived.insert(key);
        }
    }

    /// What is waited for does not come.
    pub fn give_up(&mut self) {
        if let Next::Wait(key) = self.poll() {
            self.given_up.insert(key);
        }
    }

    /// What differs from the capture, once nothing more comes.
    #[must_use]
    pub fn findings(&self, ignore: &[Ignore]) -> Vec<Finding> {
        let recorded = diff::said(&self.steps, Some(Side::Server));
        diff::compare(&recorded, &self.said, ignore)
    }

    /// How many messages the server has sent so far.
    #[must_use]
    pub fn heard(&self) -> usize {
        self.said.len()
    }

    /// How many messages of the client there are.
    #[must_use]
    pub fn sends(&self) -> usize {
        let is_sent = |step: &&Step| step.from == Side::Client && step.text.is_some();
        self.steps.iter().filter(is_sent).count()
    }
}

/// Notes values that the server made up, where they differ.
fn exchange(recorded: &Value, now: &Value, into: &mut HashMap<String, String>) {
    match (recorded, now) {
        (Value::Object(a), Value::Object(b)) => {
            for (name, value) in a {
                let Some(other) = b.get(name) else { continue };
                if is_opaque(name) && value.is_string() && other.is_string() && value != other {
                    into.insert(value.to_string(), other.to_string());
                } else {
                    exchange(value, other, into);
                }
            }
        }
        (Value::Array(a), Value::Array(b)) => {
            a.iter().zip(b).for_each(|(a, b)| exchange(a, b, into));
        }
        _ => {}
    }
}
