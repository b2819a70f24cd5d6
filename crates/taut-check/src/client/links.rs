//! Which messages of one life belong together. Found once for all judges, in time that grows with the messages and not with
//! their square: a client may write some hundred thousand.
//!
//! Knows places and ids, no rule.

use std::collections::HashMap;

use serde_json::Value;

use super::record::Note;
use crate::seen::{is_request, is_response, messages};

/// Places of messages, counted from the first note of the life. Ids are JSON text, so that 1 and "1" differ.
#[derive(Clone, Debug, Default)]
pub(super) struct Links {
    requests: Vec<usize>,
    by_id: HashMap<String, Vec<usize>>,
    replies: HashMap<usize, usize>,
    cancels: HashMap<String, Vec<usize>>,
    /// The requests of the server, and the answers of the client: each with its place within an array.
    ours: HashMap<String, (usize, usize)>,
    answers: HashMap<String, (usize, usize)>,
    /// The requests of the client that came in arrays.
    in_arrays: HashMap<String, usize>,
    /// Whether the server sent an array.
    array: bool,
}

impl Links {
    pub(super) fn of(notes: &[Note]) -> Self {
        let mut links = Self::default();
        let mut open: HashMap<String, Vec<usize>> = HashMap::new();
        for (place, note) in notes.iter().enumerate() {
            links.add_parts(place, note);
            match note {
                Note::Heard { value: Some(value), .. } if is_request(value) => {
                    let id = value["id"].to_string();
                    links.requests.push(place);
                    links.by_id.entry(id.clone()).or_default().push(place);
                    open.entry(id).or_default().push(place);
                }
                Note::Heard { value: Some(value), .. }
                    if value["method"] == "notifications/cancelled" =>
                {
                    let id = value["params"].get("requestId");
                    links.cancels.entry(key(id)).or_default().push(place);
                }
                // An id may be used again, so the first answer ends all that wait for it.
                Note::Said { value, .. } if is_response(value) => {
                    let waiting = open.remove(&key(value.get("id")));
                    let answered = waiting.into_iter().flatten();
                    links.replies.extend(answered.map(|asked| (asked, place)));
                }
                _ => {}
            }
        }
        links
    }

    /// Adds what is said to the client, and what it answers, which may be in arrays.
    fn add_parts(&mut self, place: usize, note: &Note) {
        let (value, heard) = match note {
            Note::Heard { value: Some(value), .. } => (value, true),
            Note::Said { value, .. } => (value, false),
            _ => return,
        };
        self.array |= !heard && value.is_array();
        for (index, one) in messages(value).iter().enumerate() {
            let Some(id) = one.get("id") else { continue };
            if heard && value.is_array() && is_request(one) {
                self.in_arrays.entry(id.to_string()).or_insert(place);
            }
            let joined = match heard {
                true if is_response(one) => &mut self.answers,
                false if is_request(one) => &mut self.ours,
                _ => continue,
            };
            joined.entry(id.to_string()).or_insert((place, index));
        }
    }

    /// The first request of the server with this id: its place, and that within an array.
    pub(super) fn ours(&self, id: &Value) -> Option<(usize, usize)> {
        self.ours.get(&id.to_string()).copied()
    }

    /// The first answer of the client with this id.
    pub(super) fn answer(&self, id: &Value) -> Option<(usize, usize)> {
        self.answers.get(&id.to_string()).copied()
    }

    /// The place of the first array with a request that has this id.
    pub(super) fn in_array(&self, id: &Value) -> Option<usize> {
        self.in_arrays.get(&id.to_string()).copied()
    }

    /// Whether the server sent an array.
    pub(super) fn has_array(&self) -> bool {
        self.array
    }

    /// The place of the answer to the request at a place.
    pub(super) fn reply(&self, asked: usize) -> Option<usize> {
        self.replies.get(&asked).copied()
    }

    /// The last request with this id before a place.
    pub(super) fn asked(&self, id: &Value, before: usize) -> Option<usize> {
        let places = self.by_id.get(&id.to_string())?;
        last_below(places, before)
    }

    /// The first cancellation of this id after a place.
    pub(super) fn cancelled(&self, id: &Value, after: usize) -> Option<usize> {
        let places = self.cancels.get(&id.to_string())?;
        places.get(places.partition_point(|place| *place <= after)).copied()
    }

    /// The requests right before and right after the one at a place.
    pub(super) fn beside(&self, asked: usize) -> (Option<usize>, Option<usize>) {
        let later = self.requests.partition_point(|place| *place <= asked);
        (last_below(&self.requests, asked), self.requests.get(later).copied())
    }
}

fn key(id: Option<&Value>) -> String {
    id.map(Value::to_string).unwrap_or_default()
}

fn last_below(places: &[usize], limit: usize) -> Option<usize> {
    let below = places.partition_point(|place| *place < limit);
    below.checked_sub(1).and_then(|last| places.get(last)).copied()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn heard(value: Value) -> Note {
        Note::Heard { at: 0, line: Vec::new(), value: Some(value) }
    }

    fn ask(id: &Value) -> Note {
        heard(json!({ "jsonrpc": "2.0", "id": id, "method": "ping" }))
    }

    fn answer(id: &Value) -> Note {
        Note::Said { at: 0, value: json!({ "jsonrpc": "2.0", "id": id, "result": {} }) }
    }

    fn cancel(id: &Value) -> Note {
        let params = json!({ "requestId": id });
        heard(json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params }))
    }

    #[test]
    fn messages_are_joined_by_the_id_that_was_used_last() {
        let (one, text) = (json!(1), json!("1"));
        let notes = [
            ask(&one),
            ask(&text),
            answer(&one),
            ask(&one),
            cancel(&one),
            cancel(&one),
            answer(&text),
        ];
        let links = Links::of(&notes);
        assert_eq!([0, 1, 3].map(|at| links.reply(at)), [Some(2), Some(6), None]);
        assert_eq!([1, 3, 4].map(|at| links.asked(&one, at)), [Some(0), Some(0), Some(3)]);
        assert_eq!([0, 4, 5].map(|at| links.cancelled(&one, at)), [Some(4), Some(5), None]);
        assert_eq!(links.cancelled(&text, 0), None);
        assert_eq!(
            [0, 1, 3].map(|at| links.beside(at)),
            [(None, Some(1)), (Some(0), Some(3)), (Some(1), None)]
        );
    }

    /// With a walk over all notes for each of them it would take hours.
    #[test]
    fn a_hundred_thousand_messages_are_joined_at_once() {
        let notes: Vec<Note> = (0..100_000)
            .flat_map(|n| [ask(&json!(n)), cancel(&json!(n)), answer(&json!(n))])
            .collect();
        let links = Links::of(&notes);
        assert!((0..100_000).all(|n| {
            let joined = links.reply(3 * n) == Some(3 * n + 2);
            joined && links.cancelled(&json!(n), 3 * n) == Some(3 * n + 1)
        }));
    }
}
