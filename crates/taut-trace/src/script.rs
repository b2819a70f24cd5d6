//! A capture as a play: what the client sends, and what it is told, in order, each with a name that the
//! same thing has in another session.
//!
//! Pure. Ids, progress tokens and the like differ from session to session; names do not: an answer is
//! named after its request, the request after its method and params.

use std::collections::HashMap;
use std::fmt;

use crate::format::{Event, Framing, Side, Stream};
use crate::json::canonical;
use crate::read::Capture;
use crate::talk::{Kind, Talk, talks};

/// The name of something that is said.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    /// Who says it.
    pub from: Side,
    /// Whether it is an answer; otherwise a request or a notification.
    pub answer: bool,
    /// Method and target, for people.
    pub label: String,
    /// What tells it from others with that label: params, or the request that it belongs to.
    about: String,
    /// Which of those that are the same so far, from 1.
    pub nth: usize,
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.answer {
            f.write_str("the answer to ")?;
        }
        f.write_str(&self.label)?;
        if self.nth > 1 { write!(f, " (number {})", self.nth) } else { Ok(()) }
    }
}

/// One step of the play.
#[derive(Clone, Debug)]
pub struct Step {
    /// Its name; none for the end of the client's output.
    pub key: Option<Key>,
    /// Who says it.
    pub from: Side,
    /// The message as it was sent; nothing at the end of the client's output.
    pub text: Option<String>,
    /// How it was framed.
    pub framing: Framing,
    /// What it says.
    pub talk: Talk,
    /// For what the server says: the step of the request that it belongs to.
    pub cause: Option<usize>,
}

/// Names what is said, while it is said.
#[derive(Debug, Default)]
pub struct Names {
    /// Requests by who sent them and their id: name and step.
    requests: HashMap<(Side, String), (Key, usize)>,
    /// Tokens of progress: the request that they belong to.
    tokens: HashMap<String, (Key, usize)>,
    counts: HashMap<(Side, bool, String, String), usize>,
    last_request: Option<usize>,
}

impl Names {
    /// The name of what is said next, and the step of the request that it belongs to.
    pub fn name(&mut self, from: Side, talk: &Talk, step: usize) -> (Key, Option<usize>) {
        match talk.kind() {
            Kind::Request => {
                let key = self.count(from, false, talk.label(), asked(talk));
                let cause = if from == Side::Server { self.last_request } else { None };
                if let Some(id) = &talk.id {
                    self.requests.insert((from, id.clone()), (key.clone(), step));
                }
                if from == Side::Client {
                    if let Some(token) = talk.progress_token() {
                        self.tokens.insert(token, (key.clone(), step));
                    }
                    self.last_request = Some(step);
                }
                (key, cause)
            }
            Kind::Answer => {
                let id = talk.id.clone().unwrap_or_default();
                let request = self.requests.remove(&(from.other(), id));
                let Some((request, cause)) = request else {
                    let label = "nothing that was asked".to_owned();
                    return (self.count(from, true, label, String::new()), self.last_request);
                };
                let about = format!("{} {}", request.about, request.nth);
                let key = self.count(from, true, request.label, about);
                (Key { nth: request.nth, ..key }, Some(cause))
            }
            Kind::Notification => {
                let request =
                    talk.progress_token().and_then(|token| self.tokens.get(&token)).cloned();
                let (about, cause) = match request {
                    Some((key, step)) => {
                        (format!("{} {} {}", key.label, key.about, key.nth), Some(step))
                    }
                    None => (String::new(), self.last_request),
                };
                (self.count(from, false, talk.label(), about), cause)
            }
            Kind::Stray => {
                let label = "a line that is no message".to_owned();
                (self.count(from, false, label, String::new()), self.last_request)
            }
        }
    }

    fn count(&mut self, from: Side, answer: bool, label: String, about: String) -> Key {
        let same = (from, answer, label.clone(), about.clone());
        let nth = self.counts.entry(same).or_default();
        *nth += 1;
        Key { from, answer, label, about, nth: *nth }
    }
}

/// What a request asks for, without what differs from session to session: who asks, by which token, and
/// what the server made up before.
pub(crate) fn asked(talk: &Talk) -> String {
    let mut params = talk.value.get("params").cloned().unwrap_or_default();
    if let Some(params) = params.as_object_mut() {
        for name in ["_meta", "requestState", "cursor", "taskId"] {
            params.remove(name);
        }
    }
    canonical(&params)
}

/// The steps of a capture.
#[must_use]
pub fn steps(capture: &Capture) -> Vec<Step> {
    let mut names = Names::default();
    let mut steps = Vec::new();
    for record in &capture.records {
        match &record.event {
            Event::Message(message) if !message.cut => {
                let all = talks(&message.body);
                let [talk] = all.as_slice() else {
                    // A batch is one text with several names; it is sent whole, its answers are
                    // looked for one by one.
                    batch(&mut names, &mut steps, message.from, &message.body.text(), &all);
                    continue;
                };
                let (key, cause) = names.name(message.from, talk, steps.len());
                steps.push(Step {
                    key: Some(key),
                    from: message.from,
                    text: Some(message.body.text().into_owned()),
                    framing: message.framing,
                    talk: talk.clone(),
                    cause,
                });
            }
            Event::Close(Stream::Client) => steps.push(Step {
                key: None,
                from: Side::Client,
                text: None,
                framing: Framing::Lines,
                talk: Talk::default(),
                cause: None,
            }),
            _ => {}
        }
    }
    steps
}

fn batch(names: &mut Names, steps: &mut Vec<Step>, from: Side, text: &str, all: &[Talk]) {
    let place = steps.len();
    for (at, talk) in all.iter().enumerate() {
        let (key, cause) = names.name(from, talk, place);
        steps.push(Step {
            key: Some(key),
            from,
            // The first carries the text; the others are in it.
            text: Some(if at == 0 { text.to_owned() } else { String::new() }),
            framing: Framing::Lines,
            talk: talk.clone(),
            cause,
        });
    }
}
