//! Reads one line of a server that no template knows: slow, and thorough.
//!
//! Knows what a right answer to each kind of request is. Must not wait or write: what has to be said
//! to the server is handed back.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::fault::{Fault, excerpt};
use super::request::{FIRST, payload};

/// What the answers to one kind of request have to be.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Expect {
    /// A text that contains the payload of this size.
    Payload(usize),
    /// So many tools.
    Tools(usize),
    /// Any result.
    Result,
    /// The request itself: the other end is `cat` or the like.
    Itself,
}

/// What a line was.
#[derive(Debug, PartialEq)]
pub(super) enum Said {
    /// A right answer to the request of this number.
    Answer(u32),
    /// A notification, or nothing at all.
    Nothing,
    /// A request, which wants this answer.
    Wants(String),
    /// No message.
    Junk,
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    method: Option<String>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    error: Option<Refusal>,
}

#[derive(Deserialize)]
struct Refusal {
    code: i64,
    message: String,
}

/// What the line says. A wrong answer is a fault.
pub(super) fn judge(line: &[u8], expect: &Expect) -> Result<Said, Fault> {
    if line.trim_ascii().is_empty() {
        return Ok(Said::Nothing);
    }
    let Ok(message) = serde_json::from_slice::<Envelope<'_>>(line) else { return Ok(Said::Junk) };
    match (message.method, message.id) {
        (Some(_), Some(id)) if *expect == Expect::Itself => return answered(id),
        (Some(method), Some(id)) => return Ok(Said::Wants(reply(&method, id))),
        (Some(_), None) => return Ok(Said::Nothing),
        (None, _) => {}
    }
    if let Some(Refusal { code, message }) = message.error {
        return Err(Fault::Refused { code, message: excerpt(message.as_bytes()) });
    }
    let (Some(id), Some(result)) = (message.id, message.result) else {
        return Err(Fault::Wrong(format!("neither id nor result: {}", excerpt(line))));
    };
    let said = answered(id)?;
    if let Said::Answer(id) = said {
        check(result, id, expect)?;
    }
    Ok(said)
}

fn answered(id: &RawValue) -> Result<Said, Fault> {
    // All numbers of ours are larger.
    let number = id.get().parse().ok().filter(|number| *number >= FIRST);
    let number = number.ok_or_else(|| Fault::Stranger(excerpt(id.get().as_bytes())))?;
    Ok(Said::Answer(number))
}

/// A server may ask whether we live; we have declared nothing else.
fn reply(method: &str, id: &RawValue) -> String {
    let id = id.get();
    if method == "ping" {
        return format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#) + "\n";
    }
    let error = json!({ "code": -32601, "message": "a benchmark answers only ping" });
    format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#) + "\n"
}

fn check(result: &RawValue, id: u32, expect: &Expect) -> Result<(), Fault> {
    if matches!(expect, Expect::Itself) {
        return Err(Fault::Wrong("a result from something that only repeats".to_owned()));
    }
    let result: Value = serde_json::from_str(result.get()).unwrap_or_default();
    if result["isError"] == true {
        return Err(Fault::Failed(excerpt(text(&result).as_bytes())));
    }
    match expect {
        Expect::Payload(size) => {
            let (has, wants) = (text(&result), payload(id, *size));
            if has.contains(&wants) {
                return Ok(());
            }
            let has = excerpt(has.as_bytes());
            Err(Fault::Wrong(format!("request {id} was answered with another text: {has}")))
        }
        Expect::Tools(count) => {
            let has = result["tools"].as_array().map_or(0, Vec::len);
            if has == *count {
                return Ok(());
            }
            Err(Fault::Wrong(format!("{has} tools where there were {count}")))
        }
        Expect::Result | Expect::Itself => Ok(()),
    }
}

/// All text of the result of a call.
pub(super) fn text(result: &Value) -> String {
    let blocks = result["content"].as_array().into_iter().flatten();
    blocks.filter_map(|block| block["text"].as_str()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(message: &Value, expect: &Expect) -> String {
        match judge(message.to_string().as_bytes(), expect) {
            Ok(said) => format!("{said:?}"),
            Err(fault) => fault.to_string(),
        }
    }

    fn answer(result: &Value) -> Value {
        json!({ "jsonrpc": "2.0", "id": 10_000_001, "result": result })
    }

    #[test]
    fn each_line_is_what_it_is() {
        let echo = Expect::Payload(32);
        let right = json!({ "content": [{ "type": "text", "text": payload(10_000_001, 32) }] });
        let other = json!({ "content": [{ "type": "text", "text": payload(10_000_002, 32) }] });
        let failed = json!({ "content": [{ "type": "text", "text": "no" }], "isError": true });
        let table = [
            (answer(&right), "Answer(10000001)"),
            (answer(&other), "wrong answer: request 10000001 was answered with another text"),
            (answer(&failed), "the tool reported failure: no"),
            (json!({ "id": "x", "result": {} }), "an answer to \"x\", which nobody asked"),
            (json!({ "id": 1, "error": { "code": -1, "message": "m" } }), "refused: -1 m"),
            (json!({ "id": 1 }), "wrong answer: neither id nor result"),
            (json!({ "method": "notifications/message" }), "Nothing"),
            (json!("Welcome"), "Junk"),
        ];
        for (message, wants) in table {
            assert!(
                said(&message, &echo).starts_with(wants),
                "{message}: {}",
                said(&message, &echo)
            );
        }
        let ping = json!({ "id": "p", "method": "ping" });
        assert!(said(&ping, &echo).contains("result"), "{}", said(&ping, &echo));
        assert_eq!(judge(b"  ", &echo), Ok(Said::Nothing));
    }

    #[test]
    fn a_list_has_as_many_tools_as_before() {
        let two = answer(&json!({ "tools": [{}, {}] }));
        assert_eq!(said(&two, &Expect::Tools(2)), "Answer(10000001)");
        assert_eq!(said(&two, &Expect::Tools(3)), "wrong answer: 2 tools where there were 3");
    }
}
