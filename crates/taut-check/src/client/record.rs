//! What a played server wrote down, read back: one JSON line for each thing that happened.

use std::io::Read as _;
use std::path::Path;
use std::sync::OnceLock;

use serde_json::{Value, json};

use super::links::Links;
use crate::ours::Revision;
use crate::seen::{is_request, messages};

/// One thing that happened to the played server.
#[derive(Clone, Debug)]
pub(crate) enum Note {
    /// The client wrote this line.
    Heard { at: u64, line: Vec<u8>, value: Option<Value> },
    /// The client's last line, which has no end: it was ended while it wrote, or it forgot the newline.
    Unfinished { line: Vec<u8> },
    /// The client wrote a line that was too long to be kept.
    Skipped,
    /// The server wrote this.
    Said { at: u64, value: Value },
    /// The client closed our stdin.
    Eof { at: u64 },
    /// The server was told to end, by SIGTERM.
    Term { at: u64 },
    /// The server was killed.
    Gone { at: u64 },
    /// The server was still there.
    Alive { at: u64 },
}

/// One start of the server, in one scenario. A client may start it more than once.
#[derive(Clone, Debug, Default)]
pub(crate) struct Life {
    pub(crate) notes: Vec<Note>,
    /// Whether more was written down than is read: its end is not known.
    pub(crate) cut: bool,
    /// Made from the notes when it is first needed.
    links: OnceLock<Links>,
}

impl Life {
    #[cfg(test)]
    pub(crate) fn of(notes: Vec<Note>) -> Self {
        Self { notes, ..Self::default() }
    }

    /// Every message of the client, with its place.
    pub(crate) fn heard(&self) -> impl Iterator<Item = (usize, &Value)> {
        self.notes.iter().enumerate().filter_map(|(at, note)| match note {
            Note::Heard { value: Some(value), .. } => Some((at, value)),
            _ => None,
        })
    }

    pub(crate) fn lines(&self) -> impl Iterator<Item = (&[u8], Option<&Value>)> {
        self.notes.iter().filter_map(|note| match note {
            Note::Heard { line, value, .. } => Some((line.as_slice(), value.as_ref())),
            _ => None,
        })
    }

    pub(crate) fn said(&self) -> impl Iterator<Item = (usize, &Value)> {
        self.notes.iter().enumerate().filter_map(|(at, note)| match note {
            Note::Said { value, .. } => Some((at, value)),
            _ => None,
        })
    }

    /// The first message with this method.
    pub(crate) fn first(&self, method: &str) -> Option<(usize, &Value)> {
        self.heard().find(|(_, value)| value["method"] == method)
    }

    fn links(&self) -> &Links {
        self.links.get_or_init(|| Links::of(&self.notes))
    }

    /// The place where the client cancelled a request of its own, the first one after a place.
    pub(crate) fn cancelled(&self, id: Option<&Value>, after: usize) -> Option<usize> {
        self.links().cancelled(id?, after)
    }

    /// What the client answered to a request of ours.
    pub(crate) fn answer(&self, id: &Value) -> Option<&Value> {
        let (place, index) = self.links().answer(id)?;
        let Some(Note::Heard { value: Some(value), .. }) = self.notes.get(place) else {
            return None;
        };
        messages(value).get(index)
    }

    /// Where the client answered a request of ours.
    pub(crate) fn answered(&self, id: &Value) -> Option<usize> {
        self.links().answer(id).map(|(place, _)| place)
    }

    /// Our request with this id.
    pub(crate) fn ours(&self, id: &Value) -> Option<&Value> {
        let (place, index) = self.links().ours(id)?;
        let Some(Note::Said { value, .. }) = self.notes.get(place) else { return None };
        messages(value).get(index)
    }

    /// Whether the server sent an array.
    pub(crate) fn has_array(&self) -> bool {
        self.links().has_array()
    }

    /// The answer to the request at a place: the first one with its id that comes later. An id may be used again.
    pub(crate) fn reply(&self, place: usize) -> Option<(usize, &Value)> {
        let at = self.links().reply(place)?;
        let Some(Note::Said { value, .. }) = self.notes.get(at) else { return None };
        Some((at, value))
    }

    /// The last request with this id before a place, and where it is.
    pub(crate) fn request(&self, id: &Value, before: usize) -> Option<(usize, &Value)> {
        let at = self.links().asked(id, before)?;
        let Some(Note::Heard { value: Some(value), .. }) = self.notes.get(at) else { return None };
        Some((at, value))
    }

    /// Whether a request with this id came in an array before a place.
    pub(crate) fn asked_in_array(&self, id: &Value, before: usize) -> bool {
        self.links().in_array(id).is_some_and(|place| place < before)
    }

    /// The request that the answer at a place belongs to: the last one with its id that came before.
    pub(crate) fn asked(&self, place: usize) -> Option<&Value> {
        let Some(Note::Said { value: answer, .. }) = self.notes.get(place) else { return None };
        self.request(answer.get("id")?, place).map(|(_, value)| value)
    }

    /// Whether the request at a place was answered, or cancelled, before another place.
    pub(crate) fn is_over(&self, asked: usize, at: usize) -> bool {
        let Some(Note::Heard { value: Some(request), .. }) = self.notes.get(asked) else {
            return false;
        };
        let before = |place: Option<usize>| place.is_some_and(|place| place < at);
        before(self.links().reply(asked)) || before(self.cancelled(request.get("id"), asked))
    }

    /// The places of the requests right before and right after the one at a place.
    pub(crate) fn beside(&self, asked: usize) -> (Option<usize>, Option<usize>) {
        self.links().beside(asked)
    }

    /// When the note at a place was written, in milliseconds since 1970; zero if that is not known.
    pub(crate) fn when(&self, place: usize) -> u64 {
        match self.notes.get(place) {
            Some(Note::Heard { at, .. } | Note::Said { at, .. }) => *at,
            _ => 0,
        }
    }

    /// Whether the client stayed for a second after the server said something with this id: one that
    /// was about to leave, or ended the server, owes no answer.
    pub(crate) fn stayed_after(&self, id: &str) -> bool {
        let said = self.notes.iter().find_map(|note| match note {
            Note::Said { at, value } if value["id"] == id => Some(*at),
            _ => None,
        });
        said.is_some_and(|said| self.left().is_none_or(|left| left > said + 1000))
    }

    /// When the client closed the server's stdin.
    pub(crate) fn closed(&self) -> Option<u64> {
        self.notes.iter().find_map(|note| match note {
            Note::Eof { at } => Some(*at),
            _ => None,
        })
    }

    /// Whether the client closed the server's stdin before the message at a place.
    pub(crate) fn closed_before(&self, place: usize) -> bool {
        self.notes.iter().take(place).any(|note| matches!(note, Note::Eof { .. }))
    }

    /// When the client closed the server's stdin, or the server was there for the last time; nothing if that was not
    /// written down.
    pub(crate) fn left(&self) -> Option<u64> {
        let closed = self.closed();
        let last = self.notes.iter().rev().find_map(|note| match note {
            Note::Alive { at } | Note::Heard { at, .. } | Note::Said { at, .. } => Some(*at),
            _ => None,
        });
        closed.or_else(|| last.filter(|_| !self.cut))
    }

    /// Whether the client closed the server's stdin so many milliseconds or more after the note at a place.
    pub(crate) fn left_after(&self, place: usize, millis: u64) -> bool {
        self.closed().is_some_and(|left| left >= self.when(place) + millis)
    }

    pub(crate) fn requests(&self) -> impl Iterator<Item = (usize, &Value)> {
        self.heard().filter(|(_, value)| is_request(value))
    }

    /// As lines for a report, `>` from the client.
    pub(crate) fn shown(&self) -> Vec<String> {
        self.notes
            .iter()
            .filter_map(|note| match note {
                Note::Heard { line, .. } => Some(format!("> {}", String::from_utf8_lossy(line))),
                Note::Said { value, .. } => Some(format!("< {value}")),
                Note::Unfinished { line } => {
                    Some(format!("> {} (no newline)", String::from_utf8_lossy(line)))
                }
                Note::Skipped => Some("> (a long line)".to_owned()),
                Note::Eof { .. } => Some("> (end of stdin)".to_owned()),
                Note::Term { .. } => Some("> (SIGTERM)".to_owned()),
                Note::Gone { .. } => Some("> (SIGKILL)".to_owned()),
                Note::Alive { .. } => None,
            })
            .collect()
    }
}

/// One scenario that was played.
#[derive(Clone, Debug)]
pub(crate) struct Scene {
    pub(crate) name: &'static str,
    pub(crate) lives: Vec<Life>,
    /// When the client ended, in milliseconds since 1970; nothing if it had to be killed.
    pub(crate) ended: Option<u64>,
}

impl Scene {
    /// Whether the client speaks to this process with `Content-Length` headers, and has a reason to try them: another
    /// process has said nothing to its lines for a second. The specification knows lines only, but a server that reads
    /// headers only can be found in no other way, and the process with the lines is left alone.
    pub(crate) fn is_trial(&self, life: &Life) -> bool {
        let first = |life: &Life| {
            life.notes.iter().find_map(|note| match note {
                Note::Heard { at, line, .. } => Some((*at, is_header(line))),
                _ => None,
            })
        };
        let Some((began, true)) = first(life) else { return false };
        self.lives.iter().any(|other| {
            let said = |note: &Note| matches!(note, Note::Said { at, .. } if *at < began);
            matches!(first(other), Some((at, false)) if at + SILENT <= began)
                && !other.notes.iter().any(said)
        })
    }
}

/// How long a process has to be silent before the other framing may be tried, in milliseconds.
const SILENT: u64 = 1000;

/// Whether a line is a header of the other framing, or the empty one after them.
pub(crate) fn is_header(line: &[u8]) -> bool {
    let line = line.trim_ascii();
    line.is_empty() || line.to_ascii_lowercase().starts_with(b"content-length:")
}

/// All that a judge of clients has.
pub(crate) struct Played<'a> {
    pub(crate) scenes: Vec<&'a Scene>,
    /// The scenarios that the client ended by itself, also those where it spoke no revision.
    pub(crate) ended: Vec<&'static str>,
    /// Whether the client speaks both eras, and the scenarios in which it asked what the server speaks before it sent
    /// `initialize`.
    pub(crate) both: bool,
    pub(crate) probed: Vec<&'static str>,
    /// Whether the client never sent `initialize`, to no server.
    pub(crate) modern_only: bool,
    /// The revision that the client speaks in these scenes.
    pub(crate) revision: Revision,
}

impl<'a> Played<'a> {
    pub(crate) fn lives(&self) -> impl Iterator<Item = (&'static str, &'a Life)> {
        self.scenes.iter().flat_map(|scene| scene.lives.iter().map(|life| (scene.name, life)))
    }

    pub(crate) fn scene(&self, name: &str) -> Option<&'a Scene> {
        self.scenes.iter().find(|scene| scene.name == name).copied()
    }
}

const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// A note as the player writes it.
pub(crate) fn line(kind: &str, at: u64, bytes: &[u8]) -> String {
    let mut hex = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        hex.push(DIGITS[usize::from(byte >> 4)] as char);
        hex.push(DIGITS[usize::from(byte & 15)] as char);
    }
    format!("{}\n", json!({ "kind": kind, "at": at, "hex": hex }))
}

/// Reads what one player wrote, up to so many bytes; says how many are left.
pub(crate) fn read(path: &Path, most: u64) -> (Life, u64) {
    let mut text = String::new();
    let mut whole = 0;
    if let Ok(file) = std::fs::File::open(path) {
        whole = file.metadata().map_or(0, |meta| meta.len());
        // A line that is cut is no note.
        let _ = file.take(most).read_to_string(&mut text);
    }
    let left = most - (text.len() as u64).min(most);
    let mut life = Life { cut: whole > text.len() as u64, ..Life::default() };
    for line in text.lines() {
        let Ok(note) = serde_json::from_str::<Value>(line) else { continue };
        let at = note["at"].as_u64().unwrap_or_default();
        let bytes = bytes(note["hex"].as_str().unwrap_or_default());
        let value: Option<Value> = serde_json::from_slice(&bytes).ok();
        life.notes.push(match note["kind"].as_str().unwrap_or_default() {
            "heard" => Note::Heard { at, line: bytes, value },
            "unfinished" => Note::Unfinished { line: bytes },
            "skipped" => Note::Skipped,
            "said" => Note::Said { at, value: value.unwrap_or_default() },
            "eof" => Note::Eof { at },
            "term" => Note::Term { at },
            "gone" => Note::Gone { at },
            _ => Note::Alive { at },
        });
    }
    (life, left)
}

fn bytes(hex: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(hex.len() / 2);
    for pair in hex.as_bytes().chunks_exact(2) {
        if let [Some(high), Some(low)] = [digit(pair[0]), digit(pair[1])] {
            bytes.push(high << 4 | low);
        }
    }
    bytes
}

fn digit(of: u8) -> Option<u8> {
    match of {
        b'0'..=b'9' => Some(of - b'0'),
        b'a'..=b'f' => Some(of - b'a' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(at: u64, line: &str) -> Note {
        Note::Heard { at, line: line.into(), value: serde_json::from_str(line).ok() }
    }

    /// Whether the second process is a trial, which is spoken to with headers from this time on.
    fn is_trial(first: Vec<Note>, at: u64) -> bool {
        let second = Life::of(vec![heard(at, "Content-Length: 2\r"), heard(at, "\r")]);
        let lives = vec![Life::of(first), second];
        let scene = Scene { name: "mute", lives, ended: None };
        scene.is_trial(&scene.lives[1])
    }

    #[test]
    fn headers_are_tried_only_in_a_second_process_beside_a_silent_one() {
        let asked = heard(1_000, r#"{"jsonrpc":"2.0","id":1,"method":"server/discover"}"#);
        let said = |at| Note::Said { at, value: json!({ "id": 1 }) };
        assert!(is_trial(vec![asked.clone()], 3_000));
        assert!(is_trial(vec![asked.clone(), said(3_500)], 3_000), "it answered later");
        assert!(!is_trial(vec![asked.clone()], 1_500), "it had no time");
        assert!(!is_trial(vec![asked, said(2_000)], 3_000), "it was not silent");
        assert!(!is_trial(vec![heard(1_000, "Content-Length: 2\r")], 3_000), "it got no line");
        assert!(!is_trial(vec![], 3_000), "there is no other");
    }
}
