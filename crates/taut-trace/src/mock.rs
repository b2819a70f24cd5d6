//! The server of a capture, played again: what to say to what a client sends.
//!
//! Pure: time is an argument. What was recorded is said in its order, each thing once the client has sent
//! all that it had sent before it. A client that takes another way is answered all the same, after a
//! moment: a request that was recorded gets its answer, another an error that says so.

use std::collections::{BTreeSet, HashMap, VecDeque};
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

/// Where steps of the client are found by what they say, the first of them that has not happened yet.
#[derive(Debug, Default)]
struct Index {
    /// Requests, by their method and what they ask for.
    requests: HashMap<(Option<String>, String), Steps>,
    /// Notifications by their label.
    notifications: HashMap<String, Steps>,
    /// Answers by their id.
    answers: HashMap<Option<String>, Steps>,
    /// All that are no requests.
    plain: Steps,
}

/// Steps in their order.
#[derive(Debug, Default)]
struct Steps {
    left: VecDeque<usize>,
    last: Option<usize>,
}

impl Steps {
    fn add(&mut self, at: usize) {
        self.left.push_back(at);
        self.last = Some(at);
    }

    /// The first that has not happened.
    fn next(&mut self, done: &[bool]) -> Option<usize> {
        while let Some(at) = self.left.front() {
            if !done[*at] {
                return Some(*at);
            }
            self.left.pop_front();
        }
        None
    }
}

impl Index {
    fn new(steps: &[Step]) -> Self {
        let mut index = Self::default();
        for (at, step) in steps.iter().enumerate() {
            if step.from != Side::Client || step.text.is_none() {
                continue;
            }
            let talk = &step.talk;
            match talk.kind() {
                Kind::Request => {
                    let key = (talk.method.clone(), asked(talk));
                    index.requests.entry(key).or_default().add(at);
                    continue;
                }
                Kind::Notification => {
                    index.notifications.entry(talk.label()).or_default().add(at);
                }
                Kind::Answer => index.answers.entry(talk.id.clone()).or_default().add(at),
                Kind::Stray => {}
            }
            index.plain.add(at);
        }
        index
    }
}

/// The server of a capture.
#[derive(Debug)]
pub struct Mock {
    steps: Vec<Step>,
    index: Index,
    /// What the server says about each request, by its step.
    effects: HashMap<usize, Vec<usize>>,
    /// Whether the client has sent a step, or we have said it.
    done: Vec<bool>,
    /// All steps before this one are done.
    first: usize,
    /// What belongs to requests that this client has sent, and was not said.
    owed: BTreeSet<usize>,
    /// Recorded requests that this client has sent.
    given: HashMap<usize, Given>,
    /// The same, by the ids that were recorded.
    by_id: HashMap<String, usize>,
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
        let mut effects: HashMap<usize, Vec<usize>> = HashMap::new();
        for (at, step) in steps.iter().enumerate().filter(|(_, step)| step.from == Side::Server) {
            if let Some(cause) = step.cause {
                effects.entry(cause).or_default().push(at);
            }
        }
        Self {
            index: Index::new(&steps),
            effects,
            done: vec![false; steps.len()],
            first: 0,
            owed: BTreeSet::new(),
            steps,
            given: HashMap::new(),
            by_id: HashMap::new(),
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
            let Index { notifications, answers, plain, .. } = &mut self.index;
            let steps = match talk.kind() {
                Kind::Request => {
                    self.request(&talk);
                    continue;
                }
                Kind::Notification => notifications.get_mut(&talk.label()),
                Kind::Answer => answers.get_mut(&talk.id),
                Kind::Stray => Some(plain),
            };
            // The first thing of the client's that has not happened yet and is meant by this.
            if let Some(at) = steps.and_then(|steps| steps.next(&self.done)) {
                self.done[at] = true;
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
        self.owed.remove(&next);
        Some(self.text(next))
    }

    /// When to ask again, if nothing comes before.
    #[must_use]
    pub fn deadline(&self) -> Option<Duration> {
        self.out_of_order().map(|_| self.last + PATIENCE)
    }

    /// The next thing to say, if everything before it has happened.
    fn in_order(&mut self) -> Option<usize> {
        while *self.done.get(self.first)? {
            self.first += 1;
        }
        (self.steps[self.first].from == Side::Server).then_some(self.first)
    }

    /// The first thing that belongs to a request that was sent.
    fn out_of_order(&self) -> Option<usize> {
        self.owed.first().copied()
    }

    fn request(&mut self, talk: &Talk) {
        let Some(id) = talk.id.clone() else { return };
        let given = Given { id, token: talk.progress_token() };
        let asked = asked(talk);
        let all = self.index.requests.get_mut(&(talk.method.clone(), asked));
        let (next, last) = match all {
            Some(steps) => (steps.next(&self.done), steps.last),
            None => (None, None),
        };
        let effects = |at: usize| self.effects.get(&at).map_or(&[][..], Vec::as_slice);
        if let Some(at) = next {
            self.done[at] = true;
            self.owed.extend(effects(at).iter().filter(|effect| !self.done[**effect]));
            if let Some(id) = &self.steps[at].talk.id {
                self.by_id.insert(id.clone(), at);
            }
            self.given.insert(at, given);
            return;
        }
        // Asked more often than it was recorded: the last answer again.
        let is_answer = |at: &&usize| self.steps[**at].talk.kind() == Kind::Answer;
        let answer = last.and_then(|cause| effects(cause).iter().rev().find(is_answer));
        let answer = answer.map(|at| &self.steps[*at]);
        let text = match answer.and_then(|step| step.text.as_ref()) {
            Some(text) => json::replaced(text, &["id"], &given.id),
            None => {
                self.unknown += 1;
                let message = format!("the capture has no answer for {}", talk.label());
                let asked = crate::script::asked(talk);
                let error =
                    json!({ "code": -32603, "message": message, "data": { "params": asked } });
                format!(r#"{{"jsonrpc":"2.0","id":{},"error":{error}}}"#, given.id)
            }
        };
        self.waiting.push_back(text);
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
            let listening = self.by_id.get(id).and_then(|at| self.given.get(at));
            if let Some(given) = listening {
                text = json::replaced(&text, &listens, &given.id);
            }
        }
        text
    }
}
