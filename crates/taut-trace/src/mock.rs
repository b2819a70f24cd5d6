//! The server of a capture, played again: what to say to what a client sends.
//!
//! Pure: time is an argument. What was recorded is said in its order, each thing once the client has sent
//! all that it had sent before it. A client that takes another way is answered all the same, after a
//! moment: a request that was recorded gets its answer, another an error that says so.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use serde_json::json;

use crate::format::{Body, Side};
use crate::json;
use crate::read::Capture;
use crate::script::{Step, asked, steps};
use crate::talk::{Kind, Talk, talks};

/// How long the recorded order is kept to while the client sends nothing: longer than clients take
/// between messages that belong together.
const PATIENCE: Duration = Duration::from_millis(250);

/// What this client calls a recorded request.
#[derive(Clone, Debug)]
struct Given {
    id: String,
    token: Option<String>,
}

/// The server of a capture.
#[derive(Debug)]
pub struct Mock {
    steps: Vec<Step>,
    /// Whether the client has sent a step, or we have said it.
    done: Vec<bool>,
    /// Recorded requests that this client has sent.
    given: HashMap<usize, Given>,
    waiting: VecDeque<String>,
    last: Duration,
    ended: bool,
    unknown: usize,
}

impl Mock {
    /// Plays the server of this capture.
    #[must_use]
    pub fn new(capture: &Capture) -> Self {
        let steps = steps(capture);
        Self {
            done: vec![false; steps.len()],
            steps,
            given: HashMap::new(),
            waiting: VecDeque::new(),
            last: Duration::ZERO,
            ended: false,
            unknown: 0,
        }
    }

    /// How many requests the capture had no answer for.
    #[must_use]
    pub fn unknown(&self) -> usize {
        self.unknown
    }

    /// The client has sent something.
    pub fn handle(&mut self, now: Duration, bytes: &[u8]) {
        self.last = now;
        let body = Body::Text(String::from_utf8_lossy(bytes).into_owned());
        for talk in talks(&body) {
            match talk.kind() {
                Kind::Request => self.request(&talk),
                Kind::Notification => self.mark(|step| step.talk.label() == talk.label()),
                Kind::Answer => self.mark(|step| step.talk.id == talk.id),
                Kind::Stray => self.mark(|_| true),
            }
        }
    }

    /// The client has closed.
    pub fn closed(&mut self) {
        self.ended = true;
        for (at, step) in self.steps.iter().enumerate() {
            if step.from == Side::Client && step.text.is_none() {
                self.done[at] = true;
            }
        }
    }

    /// The next message to send, if there is one now.
    pub fn poll(&mut self, now: Duration) -> Option<String> {
        if let Some(text) = self.waiting.pop_front() {
            return Some(text);
        }
        let patient = !self.ended && now.saturating_sub(self.last) < PATIENCE;
        let next = self.in_order().or_else(|| if patient { None } else { self.out_of_order() })?;
        self.done[next] = true;
        Some(self.text(next))
    }

    /// When to ask again, if nothing comes before.
    #[must_use]
    pub fn deadline(&self) -> Option<Duration> {
        self.out_of_order().map(|_| self.last + PATIENCE)
    }

    /// The next thing to say, if everything before it has happened.
    fn in_order(&self) -> Option<usize> {
        let first = self.done.iter().position(|done| !done)?;
        (self.steps[first].from == Side::Server).then_some(first)
    }

    /// The first thing that belongs to a request that was sent.
    fn out_of_order(&self) -> Option<usize> {
        let fits = |at: &usize| {
            let step = &self.steps[*at];
            let caused = step.cause.is_some_and(|cause| self.given.contains_key(&cause));
            step.from == Side::Server && !self.done[*at] && caused
        };
        (0..self.steps.len()).find(fits)
    }

    fn request(&mut self, talk: &Talk) {
        let Some(id) = talk.id.clone() else { return };
        let given = Given { id, token: talk.progress_token() };
        let is_it = |step: &Step| {
            step.from == Side::Client
                && step.talk.kind() == Kind::Request
                && step.talk.method == talk.method
                && asked(&step.talk) == asked(talk)
        };
        let all: Vec<usize> = (0..self.steps.len()).filter(|at| is_it(&self.steps[*at])).collect();
        if let Some(at) = all.iter().find(|at| !self.done[**at]) {
            self.done[*at] = true;
            self.given.insert(*at, given);
            return;
        }
        // Asked more often than it was recorded: the last answer again.
        let answer = all.last().and_then(|cause| {
            let answers =
                |step: &&Step| step.cause == Some(*cause) && step.talk.kind() == Kind::Answer;
            self.steps.iter().rev().find(answers)
        });
        let text = match answer.and_then(|step| step.text.as_ref()) {
            Some(text) => json::replaced(text, &["id"], &given.id),
            None => {
                self.unknown += 1;
                let message = format!("the capture has no answer for {}", talk.label());
                let asked = asked(talk);
                let error =
                    json!({ "code": -32603, "message": message, "data": { "params": asked } });
                format!(r#"{{"jsonrpc":"2.0","id":{},"error":{error}}}"#, given.id)
            }
        };
        self.waiting.push_back(text);
    }

    /// Marks the first thing of the client's that has not happened yet and is meant by this.
    fn mark(&mut self, is_it: impl Fn(&Step) -> bool) {
        let fits = |at: &usize| {
            let step = &self.steps[*at];
            let plain = step.talk.kind() != Kind::Request && step.text.is_some();
            step.from == Side::Client && plain && !self.done[*at] && is_it(step)
        };
        if let Some(at) = (0..self.steps.len()).find(fits) {
            self.done[at] = true;
        }
    }

    /// What is said, with the ids and tokens of this client.
    fn text(&self, at: usize) -> String {
        let step = &self.steps[at];
        let mut text = step.text.clone().unwrap_or_default();
        let cause = step.cause.and_then(|cause| Some((cause, self.given.get(&cause)?)));
        if let Some((cause, given)) = cause {
            if step.talk.kind() == Kind::Answer {
                text = json::replaced(&text, &["id"], &given.id);
            }
            let recorded = self.steps[cause].talk.progress_token();
            if let (Some(token), true) = (&given.token, recorded.is_some()) {
                text = json::replaced(&text, &["params", "progressToken"], token);
            }
        }
        // A change is told under the id of the request that listens.
        let listens = ["params", "_meta", "io.modelcontextprotocol/subscriptionId"];
        if let Some(id) = json::member(&text, &listens) {
            let listening =
                self.given.iter().find(|(at, _)| self.steps[**at].talk.id.as_deref() == Some(id));
            if let Some((_, given)) = listening {
                text = json::replaced(&text, &listens, &given.id);
            }
        }
        text
    }
}
