//! When silence is certain: the server has answered what was sent later, again and again.
//!
//! Knows how long to wait for what has to come. Must not know any check, nor judge.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::session::{BARRIERS, Live, answers, line};
use crate::cx::request;
use crate::process::{Entry, What};
use crate::seen::{Step, is_request, messages};

/// How many requests in a row are answered while something else stays silent.
const ROUNDS: u32 = 2;

/// How much longer than such a request takes what was sent before may take: a busy machine is slow with both.
const SLACK: u32 = 8;

/// What the author's own code may answer, which may take any time.
const WORK: [&str; 15] = [
    "tools/call",
    "tools/list",
    "prompts/get",
    "prompts/list",
    "resources/read",
    "resources/list",
    "resources/templates/list",
    "resources/subscribe",
    "resources/unsubscribe",
    "completion/complete",
    "tasks/get",
    "tasks/list",
    "tasks/result",
    "tasks/cancel",
    "tasks/update",
];

fn is_work(message: &Value) -> bool {
    message["method"].as_str().is_some_and(|method| WORK.contains(&method))
}

impl Live {
    /// Waits for what has to come, for `limit` at most. In an open session it is given up as soon as the server has
    /// answered requests that were sent after it, one after the other, with a pause before each. `parts` is how many
    /// requests it is the answer to. Each entry is looked at once.
    pub(super) fn comes(
        &mut self,
        limit: Duration,
        mark: usize,
        parts: u32,
        own: &mut Vec<Value>,
        mut found: impl FnMut(&Entry) -> bool,
    ) -> bool {
        if !self.opened {
            return self.process.wait(limit, mark, found);
        }
        let until = Instant::now() + limit;
        let (mut next, mut came) = (mark, false);
        let mut pause = self.times.pause * parts.max(1);
        for round in 0..=ROUNDS {
            let left = until.saturating_duration_since(Instant::now());
            let from = next;
            self.process.wait(pause.min(left), from, |entry| {
                next += 1;
                came |= found(entry);
                came
            });
            if came || self.process.ended || left <= pause || round == ROUNDS {
                return came;
            }
            let id = self.ask_harmless(own);
            let (began, from, mut answered) = (Instant::now(), next, false);
            let left = until.saturating_duration_since(began);
            self.process.wait(left, from, |entry| {
                next += 1;
                came |= found(entry);
                answered |= answers(entry, &id);
                came || answered
            });
            if came || !answered {
                return came;
            }
            pause = pause.max(began.elapsed() * SLACK);
        }
        came
    }

    /// Sends a harmless request, and gives back its id.
    pub(super) fn ask_harmless(&mut self, own: &mut Vec<Value>) -> Value {
        self.barriers += 1;
        let id = Value::from(BARRIERS + self.barriers);
        own.push(id.clone());
        let method = if self.revision.is_modern() { "server/discover" } else { "ping" };
        let message = request(self.revision, &id, method, Value::Null, &json!({}));
        self.process.send(line(&message));
        id
    }

    /// How many requests a message with this id has beside it and with it, or nothing if the author's own code answers
    /// it: that may take any time.
    pub(super) fn parts_of(&self, mark: usize, id: &Value) -> Option<u32> {
        let sent = self.process.log[mark..].iter().rev().filter_map(|entry| match &entry.what {
            What::Sent(bytes) => Some(bytes),
            _ => None,
        });
        let lines = sent.flat_map(|bytes| bytes.split(|byte| *byte == b'\n'));
        let has = |value: &Value| messages(value).iter().any(|one| one.get("id") == Some(id));
        let mut all = lines.filter_map(|line| serde_json::from_slice::<Value>(line).ok());
        let Some(message) = all.find(has) else { return Some(1) };
        if messages(&message).iter().any(is_work) {
            return None;
        }
        u32::try_from(messages(&message).iter().filter(|one| is_request(one)).count()).ok()
    }

    /// The id of the last request of a probe itself.
    pub(super) fn last_own(&self, own: &[Value]) -> Value {
        let ours = BARRIERS..=BARRIERS + self.barriers;
        let own = own.iter().rev().find(|id| id.as_i64().is_none_or(|id| !ours.contains(&id)));
        own.cloned().unwrap_or_default()
    }
}

/// Whether one of these steps asks for something that the author's own code answers.
pub(super) fn works(steps: &[Step]) -> bool {
    steps.iter().any(|step| match step {
        Step::Send(message) => messages(message).iter().any(is_work),
        Step::Follow(..) => true,
        _ => false,
    })
}
