//! Asking back in the modern era: the questions of one round, and what is remembered until the next.
//!
//! Knows keys, digests and seals; must not know who asks or when. A server that needs something
//! ends the request with `input_required`; the client answers by sending the request again, with
//! the answers and the state that it was given (MRTR-01 to MRTR-14). Nothing is kept here meanwhile,
//! so the state carries everything, and is signed because it passes through other hands (MRTR-09).

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use hmac_sha256::{HMAC, Hash};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::meta::Meta;
use super::methods::Method;
use super::result::ResultType;
use crate::json::RawJson;

/// The longest state. It travels twice in each round, and hosts keep it in memory.
pub(crate) const MAX_STATE: usize = 64 << 10;

/// One question, as it stands in `inputRequests` (MRTR-03).
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Question {
    pub(crate) method: &'static str,
    pub(crate) params: RawJson,
}

impl Question {
    /// What it asks, in short. With its place among those that ask the same it is what names the
    /// question across runs: so a handler that asks something else on its second run gets no answer
    /// to the first question, and one whose questions come in another order gets the right ones.
    pub(crate) fn digest(&self) -> String {
        let mut hash = Hash::new();
        hash.update(self.method);
        hash.update([0]);
        hash.update(self.params.text());
        hex(&hash.finalize()[..8])
    }
}

/// The result that ends a run with questions. It has no ttlMs and no cacheScope (MRTR-14).
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct InputRequired {
    pub(crate) result_type: ResultType,
    pub(crate) input_requests: BTreeMap<String, Question>,
    pub(crate) request_state: String,
    #[serde(rename = "_meta")]
    pub(crate) meta: Meta,
}

/// What earlier runs of a request have learnt.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Memory {
    /// Answers by the key of their question.
    pub(crate) answers: BTreeMap<String, Box<RawValue>>,
    /// The questions that the client was sent and has not answered.
    pub(crate) asked: BTreeSet<String>,
    /// Results of what must happen only once, by the handler's own key.
    pub(crate) onces: BTreeMap<String, Box<RawValue>>,
}

impl Memory {
    /// Takes in what the client brings. Answers to what was not asked are passed over (MRTR-12), and
    /// what was answered once stays as it is.
    pub(crate) fn learn(&mut self, answers: BTreeMap<String, Box<RawValue>>) {
        let asked = std::mem::take(&mut self.asked);
        self.answers.extend(answers.into_iter().filter(|(key, _)| asked.contains(key)));
    }
}

/// A memory, the request that it belongs to, and when it ends.
#[derive(Serialize, Deserialize)]
struct Sealed {
    bound_to: String,
    expires: u64,
    memory: Memory,
}

worded! {
    /// Why a state was not accepted: the text of a −32602.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum BadState {
        /// It was not made here, was changed, or was made with another key.
        Seal =
            "requestState does not verify; start again without it. If it came from another process \
             of this server, give both the same key: TAUT_SEAL_KEY or seal_key()",
        /// It belongs to another request.
        Other =
            "requestState belongs to another request; start again without it, or repeat the same \
             method, name and arguments",
        /// Its time is over.
        Expired = "requestState has expired; start again without it",
    }
}

worded! {
    /// Why a memory cannot be sealed: the text of a −32603.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum Unsealed {
        /// The state would be too long.
        TooLong =
            "what this call must remember, answers and results of once(), is over {MAX_STATE} bytes",
        /// There is no key.
        NoKey = "this server has no key to sign with; set TAUT_SEAL_KEY or seal_key()",
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
    /// With an empty key no memory can be sealed, and none verifies. Cursors are still made and read: one gives no
    /// more than the list that it belongs to.
    pub(crate) fn new(key: impl Into<Vec<u8>>) -> Self {
        Self(key.into())
    }

    /// Signs a memory for the request that `bound_to` names.
    ///
    /// # Errors
    /// It is too long, or there is no key.
    pub(crate) fn seal(
        &self,
        memory: Memory,
        bound_to: String,
        expires: u64,
    ) -> Result<String, Unsealed> {
        if self.0.is_empty() {
            return Err(Unsealed::NoKey);
        }
        let sealed = Sealed { bound_to, expires, memory };
        // Of strings, numbers and JSON that was read before: it has a JSON form.
        let text = serde_json::to_string(&sealed).map_err(|_| Unsealed::TooLong)?;
        let state = format!("{}.{text}", hex(&HMAC::mac(&text, &self.0)));
        if state.len() > MAX_STATE { Err(Unsealed::TooLong) } else { Ok(state) }
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
        Ok(sealed.memory)
    }
}

/// What a state is bound to: the method, the name and the arguments, however they are spelled
/// (MRTR-10).
pub(crate) fn binding(method: Method, name: &str, arguments: Option<&str>) -> String {
    let mut hash = Hash::new();
    hash.update(method.as_str());
    hash.update([0]);
    hash.update(name);
    hash.update([0]);
    digest(arguments.unwrap_or("{}"), 0, &mut hash);
    hex(&hash.finalize()[..16])
}

/// What is nested deeper than this is compared as it is spelled: each level is read once more, and
/// the stack has an end. Few arguments are so deep, and clients repeat them as they were.
const DEEP: usize = 16;

/// Hashes JSON so that neither the order of members nor white space matters. Numbers count as they
/// are spelled: read as floats, large ones would fall together.
fn digest(text: &str, depth: usize, hash: &mut Hash) {
    match text.as_bytes().first().filter(|_| depth < DEEP) {
        Some(b'{') => {
            if let Ok(members) = serde_json::from_str::<BTreeMap<Cow<'_, str>, &RawValue>>(text) {
                count(b'{', members.len(), hash);
                for (name, value) in members {
                    count(b'"', name.len(), hash);
                    hash.update(name.as_bytes());
                    digest(value.get(), depth + 1, hash);
                }
                return;
            }
        }
        Some(b'[') => {
            if let Ok(values) = serde_json::from_str::<Vec<&RawValue>>(text) {
                count(b'[', values.len(), hash);
                values.iter().for_each(|value| digest(value.get(), depth + 1, hash));
                return;
            }
        }
        Some(b'"') => {
            if let Ok(string) = serde_json::from_str::<Cow<'_, str>>(text) {
                count(b'"', string.len(), hash);
                hash.update(string.as_bytes());
                return;
            }
        }
        _ => {}
    }
    count(b'=', text.len(), hash);
    hash.update(text);
}

/// What follows and how much of it: two values that differ never look the same.
fn count(kind: u8, length: usize, hash: &mut Hash) {
    hash.update([kind]);
    hash.update((length as u64).to_le_bytes());
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
#[path = "input_tests.rs"]
mod tests;
