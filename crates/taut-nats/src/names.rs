//! Names: of services, of workers, of calls; and the subjects that are made of them.
//!
//! Pure. What comes from the network is looked at here before it becomes a part of a subject.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;

use async_nats::{Message, Subject};

/// The group of all workers of a service: each call goes to one of them.
pub(crate) const GROUP: &str = "mcp";

/// The name of a service: one word of letters, digits, `-` and `_`, as NATS's service API wants it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ServiceName(String);

/// A word that cannot be the name of a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadServiceName(String);

impl fmt::Display for BadServiceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} is no name of a service: use 1 to 64 letters, digits, - and _, such as search-eu",
            self.0
        )
    }
}

impl std::error::Error for BadServiceName {}

impl FromStr for ServiceName {
    type Err = BadServiceName;

    fn from_str(word: &str) -> Result<Self, BadServiceName> {
        if word.len() <= 64 && is_token(word) {
            Ok(Self(word.to_owned()))
        } else {
            Err(BadServiceName(word.to_owned()))
        }
    }
}

impl fmt::Display for ServiceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl ServiceName {
    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Where calls for any worker go.
    pub(crate) fn calls(&self) -> Subject {
        format!("mcp.{}.call", self.0).into()
    }

    /// Where messages for one worker go.
    pub(crate) fn of_worker(&self, worker: &str) -> Subject {
        format!("mcp.{}.worker.{worker}", self.0).into()
    }

    /// The worker of this service that a subject below its own belongs to.
    pub(crate) fn worker_of<'a>(&self, subject: &'a str) -> Option<&'a str> {
        let rest = subject.strip_prefix("mcp.")?.strip_prefix(self.0.as_str())?;
        let (worker, _) = rest.strip_prefix(".worker.")?.split_once('.')?;
        (worker.len() <= 64 && is_token(worker)).then_some(worker)
    }
}

/// The reply subject of a call, which is its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CallName(pub(crate) Subject);

/// The last word of the subject for all answers to an edge that need no headers.
const ANSWER: &str = "answer";

impl CallName {
    /// The reply subject of attempt `number` at an edge with this inbox.
    pub(crate) fn subject(inbox: &str, number: u64) -> Subject {
        // By hand: what formats numbers costs several times as much, and each call has one.
        let (mut digits, mut first, mut rest) = ([0; 20], 20, number);
        loop {
            first -= 1;
            digits[first] = b"0123456789"[(rest % 10) as usize];
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        let mut subject = String::with_capacity(inbox.len() + 1 + digits.len() - first);
        subject.push_str(inbox);
        subject.push('.');
        subject.extend(digits[first..].iter().map(|digit| char::from(*digit)));
        subject.into()
    }

    /// The name of the call that a message to an edge belongs to. An answer to `INBOX.answer` has it as its reply subject.
    pub(crate) fn number(message: &Message, inbox: &str) -> Option<u64> {
        let number =
            |subject: &Subject| subject.strip_prefix(inbox)?.strip_prefix('.')?.parse().ok();
        number(&message.subject).or_else(|| number(message.reply.as_ref()?))
    }

    /// Where an answer without headers goes that has the name as its reply subject: the same for all calls of an edge,
    /// because a broker finds a subject sooner that it has seen before. `known` is where the last one went.
    pub(crate) fn answers(&self, known: Option<&Subject>) -> Option<Subject> {
        let (inbox, number) = self.0.rsplit_once('.')?;
        if !number.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let same = |known: &&Subject| {
            known.len() == inbox.len() + 1 + ANSWER.len() && known.starts_with(inbox)
        };
        Some(known.filter(same).cloned().unwrap_or_else(|| format!("{inbox}.{ANSWER}").into()))
    }
}

impl Hash for CallName {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.as_str().hash(state);
    }
}

/// Whether a word can stand in a subject without a meaning of its own.
pub(crate) fn is_token(word: &str) -> bool {
    !word.is_empty()
        && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use bytes::Bytes;

    use super::*;

    #[test]
    fn a_service_is_one_plain_word() {
        for word in ["search", "search-eu_2", "A"] {
            assert_eq!(word.parse::<ServiceName>().unwrap().as_str(), word);
        }
        for word in ["", "a.b", "a b", "*", ">", "ä", &"x".repeat(65)] {
            assert!(word.parse::<ServiceName>().is_err(), "{word}");
        }
    }

    #[test]
    fn a_heartbeat_tells_its_worker() {
        let service: ServiceName = "a".parse().unwrap();
        let below = format!("{}.gone.7", service.of_worker("w-1"));
        assert_eq!(service.worker_of(&below), Some("w-1"));
        for other in ["mcp.a.worker.w", "mcp.ab.worker.w.gone.1", "mcp.a.worker.>.gone", "x", ""] {
            assert_eq!(service.worker_of(other), None, "{other}");
        }
    }

    #[test]
    fn an_answer_finds_its_call_by_either_subject() {
        let message = |subject: &str, reply: Option<&str>| Message {
            subject: subject.into(),
            reply: reply.map(Subject::from),
            payload: Bytes::new(),
            headers: None,
            status: None,
            description: None,
            length: 0,
        };
        let table = [
            ("_INBOX.a.7", None, Some(7)),
            ("_INBOX.a.answer", Some("_INBOX.a.7"), Some(7)),
            ("_INBOX.a.answer", None, None),
            ("_INBOX.a.answer", Some("_INBOX.b.7"), None),
            ("_INBOX.ab.7", None, None),
        ];
        for (subject, reply, number) in table {
            let found = CallName::number(&message(subject, reply), "_INBOX.a");
            assert_eq!(found, number, "{subject} {reply:?}");
        }
        let answers = |name: &str, known: Option<&str>| {
            let answers = CallName(name.into()).answers(known.map(Subject::from).as_ref());
            answers.map(|subject| subject.to_string())
        };
        assert_eq!(answers("_INBOX.a.7", None).unwrap(), "_INBOX.a.answer");
        assert_eq!(answers("_INBOX.a.7", Some("_INBOX.a.answer")).unwrap(), "_INBOX.a.answer");
        assert_eq!(answers("_INBOX.a.7", Some("_INBOX.b.answer")).unwrap(), "_INBOX.a.answer");
        assert_eq!(answers("_INBOX.a.7b", None), None);
        assert_eq!(answers("reply", None), None);
    }
}
