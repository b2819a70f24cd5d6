//! Asking back in the modern era: the questions of one round, and what is remembered until the next.
//!
//! Knows keys, digests and seals; must not know who asks or when. A server that needs something
//! ends the request with `input_required`; the client answers by sending the request again, with
//! the answers and the state that it was given (MRTR-01 to MRTR-14). Nothing is kept here meanwhile,
//! so the state carries everything, and is signed because it passes through other hands (MRTR-09).

use std::collections::BTreeMap;
use std::fmt;

use hmac_sha256::{HMAC, Hash};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::json::RawJson;
use super::methods::Method;

/// The longest state. It travels twice in each round, and hosts keep it in memory.
pub(crate) const MAX_STATE: usize = 64 << 10;

/// One question, as it stands in `inputRequests` (MRTR-03).
#[derive(Clone, Debug)]
pub(crate) struct Question {
    pub(crate) method: Method,
    pub(crate) params: RawJson,
}

impl Question {
    /// What names it across runs: its place in the order of asking, and what it asks. A handler
    /// that asks something else on its second run gets no answer to the first question.
    pub(crate) fn key(&self, place: usize) -> String {
        let mut hash = Hash::new();
        hash.update(self.method.as_str());
        hash.update([0]);
        hash.update(self.params.text());
        format!("{place}-{}", hex(&hash.finalize()[..8]))
    }
}

/// The result that ends a run with questions.
pub(crate) fn input_required(
    questions: &BTreeMap<String, Question>,
    state: &str,
    server_info: &RawJson,
) -> Value {
    let requests: serde_json::Map<String, Value> = questions
        .iter()
        .map(|(key, question)| {
            let params = question.params.parse().unwrap_or(Value::Null);
            (key.clone(), json!({ "method": question.method.as_str(), "params": params }))
        })
        .collect();
    // MRTR-14: no ttlMs, no cacheScope.
    json!({
        "resultType": "input_required",
        "inputRequests": requests,
        "requestState": state,
        "_meta": { super::meta_keys::SERVER_INFO: server_info },
    })
}

/// What earlier runs of a request have learnt.
#[derive(Clone, Debug, Default)]
pub(crate) struct Memory {
    /// Answers by the key of their question.
    pub(crate) answers: BTreeMap<String, Box<RawValue>>,
    /// Results of what must happen only once, by the handler's own key.
    pub(crate) onces: BTreeMap<String, Box<RawValue>>,
}

/// A memory, the request that it belongs to, and when it ends.
#[derive(Serialize, Deserialize)]
struct Sealed {
    #[serde(rename = "b")]
    bound_to: String,
    #[serde(rename = "e")]
    expires: u64,
    #[serde(rename = "a")]
    answers: BTreeMap<String, Box<RawValue>>,
    #[serde(rename = "o")]
    onces: BTreeMap<String, Box<RawValue>>,
}

/// Why a state was not accepted: the text of a −32602.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BadState {
    /// It is not one of ours, or somebody changed it, or another key was used.
    Seal,
    /// It belongs to another request.
    Other,
    /// Its time is over.
    Expired,
}

impl fmt::Display for BadState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Seal => {
                "requestState does not verify; start again without it. If it came from another \
                 process of this server, give both the same key: TAUT_SEAL_KEY or seal_key()"
            }
            Self::Other => {
                "requestState belongs to another request; start again without it, or repeat the \
                 same method, name and arguments"
            }
            Self::Expired => "requestState has expired; start again without it",
        })
    }
}

/// The key that states are signed with.
#[derive(Clone)]
pub(crate) struct SealKey(Vec<u8>);

impl fmt::Debug for SealKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SealKey")
    }
}

impl SealKey {
    pub(crate) fn new(key: impl Into<Vec<u8>>) -> Self {
        Self(key.into())
    }

    /// No key: nothing can be sealed, and nothing verifies.
    pub(crate) fn none() -> Self {
        Self(Vec::new())
    }

    /// Signs a memory for the request that `bound_to` names. Nothing if it is too long.
    pub(crate) fn seal(&self, memory: Memory, bound_to: String, expires: u64) -> Option<String> {
        let Memory { answers, onces } = memory;
        let sealed = Sealed { bound_to, expires, answers, onces };
        let text = serde_json::to_string(&sealed).ok()?;
        let state = format!("{}.{text}", hex(&HMAC::mac(&text, &self.0)));
        (state.len() <= MAX_STATE && !self.0.is_empty()).then_some(state)
    }

    /// Reads a memory back.
    ///
    /// # Errors
    /// It is not ours, not for this request, or too old.
    pub(crate) fn open(&self, state: &str, bound_to: &str, now: u64) -> Result<Memory, BadState> {
        let (mac, text) = state.split_once('.').ok_or(BadState::Seal)?;
        if state.len() > MAX_STATE || self.0.is_empty() {
            return Err(BadState::Seal);
        }
        let mut given = [0; 32];
        let verified = unhex(mac, &mut given) && {
            let mut hmac = HMAC::new(&self.0);
            hmac.update(text);
            // In constant time: how far a guess was right must not show.
            hmac.finalize_verify(&given)
        };
        let sealed: Sealed =
            verified.then(|| serde_json::from_str(text).ok()).flatten().ok_or(BadState::Seal)?;
        if sealed.bound_to != bound_to {
            return Err(BadState::Other);
        }
        if sealed.expires < now {
            return Err(BadState::Expired);
        }
        Ok(Memory { answers: sealed.answers, onces: sealed.onces })
    }
}

/// What a state is bound to: the method, the name and the arguments, however they are spelled
/// (MRTR-10).
pub(crate) fn binding(method: Method, name: &str, arguments: Option<&RawValue>) -> String {
    let mut hash = Hash::new();
    hash.update(method.as_str());
    hash.update([0]);
    hash.update(name);
    hash.update([0]);
    let arguments = arguments.and_then(|raw| serde_json::from_str::<Value>(raw.get()).ok());
    digest(&arguments.unwrap_or_else(|| json!({})), &mut hash);
    hex(&hash.finalize()[..16])
}

/// Hashes a value so that the order of members does not matter.
fn digest(value: &Value, hash: &mut Hash) {
    match value {
        Value::Object(members) => {
            let mut names: Vec<&String> = members.keys().collect();
            names.sort_unstable();
            hash.update([b'{', names.len() as u8]);
            for name in names {
                digest(&Value::String(name.clone()), hash);
                digest(&members[name], hash);
            }
        }
        Value::Array(values) => {
            hash.update([b'[', values.len() as u8]);
            values.iter().for_each(|value| digest(value, hash));
        }
        plain => {
            let text = plain.to_string();
            hash.update((text.len() as u64).to_le_bytes());
            hash.update(text);
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str, bytes: &mut [u8; 32]) -> bool {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    text.len() == 64
        && text.as_bytes().chunks(2).zip(bytes).all(|(pair, byte)| {
            let value = digit(pair[0]).zip(digit(pair[1])).map(|(high, low)| high * 16 + low);
            *byte = value.unwrap_or_default() as u8;
            value.is_some()
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(value: &Value) -> Box<RawValue> {
        serde_json::value::to_raw_value(value).unwrap()
    }

    fn memory() -> Memory {
        let mut memory = Memory::default();
        memory.answers.insert("0-ab".into(), raw(&json!({ "action": "accept" })));
        memory.onces.insert("paid".into(), raw(&json!(7)));
        memory
    }

    fn refused(key: &SealKey, state: &str, bound_to: &str, now: u64) -> BadState {
        key.open(state, bound_to, now).unwrap_err()
    }

    #[test]
    fn mrtr_09_a_state_comes_back_as_it_was_sealed() {
        let key = SealKey::new("k");
        let state = key.seal(memory(), "b".into(), 100).unwrap();
        let opened = key.open(&state, "b", 100).unwrap();
        assert_eq!(opened.answers["0-ab"].get(), r#"{"action":"accept"}"#);
        assert_eq!(opened.onces["paid"].get(), "7");
    }

    #[test]
    fn mrtr_09_10_a_state_that_was_changed_swapped_or_kept_too_long_is_refused() {
        let key = SealKey::new("k");
        let state = key.seal(memory(), "b".into(), 100).unwrap();
        assert_eq!(refused(&key, &state.replace('7', "8"), "b", 1), BadState::Seal);
        assert_eq!(refused(&key, &state[1..], "b", 1), BadState::Seal);
        assert_eq!(refused(&key, "", "b", 1), BadState::Seal);
        assert_eq!(refused(&key, "x.{}", "b", 1), BadState::Seal);
        assert_eq!(refused(&SealKey::new("other"), &state, "b", 1), BadState::Seal);
        assert_eq!(refused(&key, &state, "c", 1), BadState::Other);
        assert_eq!(refused(&key, &state, "b", 101), BadState::Expired);
    }

    #[test]
    fn a_state_over_the_limit_is_neither_made_nor_read() {
        let key = SealKey::new("k");
        let mut large = Memory::default();
        large.onces.insert("x".into(), raw(&json!("y".repeat(MAX_STATE))));
        assert!(key.seal(large, "b".into(), 1).is_none());
        let long = format!("{}.{}", "0".repeat(64), " ".repeat(MAX_STATE));
        assert_eq!(refused(&key, &long, "b", 1), BadState::Seal);
    }

    #[test]
    fn the_order_of_arguments_does_not_matter_and_everything_else_does() {
        let of = |name: &str, text: &str| {
            let raw: Box<RawValue> = serde_json::from_str(text).unwrap();
            binding(Method::CallTool, name, Some(&raw))
        };
        assert_eq!(of("t", r#"{"a":1,"b":[2]}"#), of("t", r#"{ "b": [2], "a": 1 }"#));
        assert_ne!(of("t", r#"{"a":1}"#), of("u", r#"{"a":1}"#));
        assert_ne!(of("t", r#"{"a":1}"#), of("t", r#"{"a":2}"#));
        assert_ne!(of("t", r#"{"a":["b","c"]}"#), of("t", r#"{"a":["bc"]}"#));
        assert_eq!(of("t", "{}"), binding(Method::CallTool, "t", None));
        assert_ne!(of("t", "{}"), binding(Method::GetPrompt, "t", None));
    }

    #[test]
    fn a_question_is_named_by_its_place_and_its_words() {
        let question = |text: &str| Question {
            method: Method::Elicit,
            params: json!({ "message": text }).into(),
        };
        assert_eq!(question("a").key(0), question("a").key(0));
        assert_ne!(question("a").key(0), question("a").key(1));
        assert_ne!(question("a").key(0), question("b").key(0));
    }
}
