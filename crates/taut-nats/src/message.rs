//! The few members of a JSON-RPC message that decide about its way.
//!
//! Pure. Values are never written anew: a state that is marked with its worker keeps its own bytes. A request
//! as our own clients write it is read by its first bytes; any other is parsed.

use std::borrow::Cow;
use std::sync::LazyLock;

use bytes::Bytes;
use memchr::memchr;
use memchr::memmem::{self, Finder};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use crate::frame::Trace;
use crate::names::is_token;

/// What stands before the name of the worker in a marked state.
const MARK: &str = "taut-fleet.";

/// What tells that a request has such a mark, or trace context, and that an answer has a state.
static MARKED: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(MARK));
static TRACED: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("traceparent"));
static STATED: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"requestState\""));

/// What tells that an error may be of a proxy.
static PROXIED: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"mayHaveRun\""));

/// What an edge has to know of a message of its client.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Outbound {
    Request(Request),
    /// A call is withdrawn: the JSON text of its id.
    Cancelled(String),
    /// Nothing that a worker could use.
    Other,
}

/// What an edge has to know of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    /// The JSON text of its id.
    pub(crate) id: String,
    pub(crate) method: String,
    /// The worker that has to take it, because it issued the state.
    pub(crate) worker: Option<String>,
    pub(crate) trace: Trace,
    /// The message as it travels: without the mark in its state.
    pub(crate) json: Bytes,
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

#[derive(Deserialize, Default)]
struct Params<'a> {
    #[serde(borrow)]
    name: Option<&'a RawValue>,
    #[serde(borrow, rename = "requestId")]
    request_id: Option<&'a RawValue>,
    #[serde(borrow, rename = "requestState")]
    request_state: Option<&'a RawValue>,
    #[serde(borrow, rename = "_meta")]
    meta: Option<&'a RawValue>,
}

#[derive(Deserialize, Default)]
struct Meta<'a> {
    #[serde(borrow)]
    traceparent: Option<Cow<'a, str>>,
    #[serde(borrow)]
    tracestate: Option<Cow<'a, str>>,
}

/// Reads a message of a client.
pub(crate) fn outbound(json: Vec<u8>) -> Outbound {
    let read = read(&json);
    match read {
        Read::Other => Outbound::Other,
        Read::Cancelled(id) => Outbound::Cancelled(id),
        Read::Request { mut request, mark } => {
            request.json = match mark {
                // The mark is cut out; what is left are the server's own bytes.
                Some((start, end)) => {
                    let mut json = json;
                    json.drain(start..end);
                    json.into()
                }
                None => json.into(),
            };
            Outbound::Request(request)
        }
    }
}

/// The number that is the id of a message which begins as we write it, and what follows.
fn numbered(json: &[u8]) -> Option<(&[u8], &[u8])> {
    let rest = json.strip_prefix(b"{\"jsonrpc\":\"2.0\",\"id\":")?;
    let digits = rest.iter().position(|byte| !byte.is_ascii_digit())?;
    (digits > 0).then(|| rest.split_at(digits))
}

/// The id and the method of a request that begins as our own clients write it, and that has no escapes: then
/// everything in it reads as it is written.
fn opening(json: &[u8]) -> Option<(&str, &str)> {
    let (id, rest) = numbered(json)?;
    let rest = rest.strip_prefix(b",\"method\":\"")?;
    let method = &rest[..memchr(b'"', rest)?];
    let whole = json.ends_with(b"}") && memchr(b'\\', json).is_none();
    whole.then_some((std::str::from_utf8(id).ok()?, std::str::from_utf8(method).ok()?))
}

/// The tool that a request calls.
pub(crate) fn tool(request: &Request) -> Option<String> {
    let envelope = serde_json::from_slice::<Envelope<'_>>(&request.json).ok()?;
    let params: Params<'_> = serde_json::from_str(envelope.params?.get()).ok()?;
    let name = params.name.filter(|_| request.method == "tools/call")?;
    serde_json::from_str(name.get()).ok()
}

enum Read {
    Request { request: Request, mark: Option<(usize, usize)> },
    Cancelled(String),
    Other,
}

fn read(json: &[u8]) -> Read {
    if let Some((id, method)) = opening(json)
        && MARKED.find(json).is_none()
        && TRACED.find(json).is_none()
    {
        let request = Request {
            id: id.to_owned(),
            method: method.to_owned(),
            worker: None,
            trace: Trace::default(),
            json: Bytes::new(),
        };
        return Read::Request { request, mark: None };
    }
    let Ok(envelope) = serde_json::from_slice::<Envelope<'_>>(json) else { return Read::Other };
    let Some(method) = envelope.method else { return Read::Other };
    let params = envelope.params.and_then(|raw| serde_json::from_str(raw.get()).ok());
    let params: Params<'_> = params.unwrap_or_default();
    let Some(id) = envelope.id else {
        return match params.request_id {
            Some(id) if method == "notifications/cancelled" => Read::Cancelled(id.get().to_owned()),
            _ => Read::Other,
        };
    };
    let meta = params.meta.and_then(|raw| serde_json::from_str(raw.get()).ok());
    let meta: Meta<'_> = meta.unwrap_or_default();
    let marked = params.request_state.and_then(|state| {
        let (worker, length) = marked_worker(state.get())?;
        // After the quote that opens the text.
        let start = offset(json, state.get())? + 1;
        Some((worker.to_owned(), (start, start + length)))
    });
    let (worker, mark) = marked.unzip();
    Read::Request {
        request: Request {
            id: id.get().to_owned(),
            worker,
            trace: Trace::new(meta.traceparent.as_deref(), meta.tracestate.as_deref()),
            method: method.into_owned(),
            json: Bytes::new(),
        },
        mark,
    }
}

/// The worker that a state is marked with, and the length of the mark.
fn marked_worker(state: &str) -> Option<(&str, usize)> {
    let rest = state.strip_prefix('"')?.strip_prefix(MARK)?;
    let (worker, _) = rest.split_once('.')?;
    is_token(worker).then_some((worker, MARK.len() + worker.len() + 1))
}

/// Where `part` begins in `whole`, of which it is a part.
fn offset(whole: &[u8], part: &str) -> Option<usize> {
    let offset = (part.as_ptr() as usize).checked_sub(whole.as_ptr() as usize)?;
    (offset + part.len() <= whole.len()).then_some(offset)
}

#[derive(Deserialize)]
struct Answer<'a> {
    #[serde(borrow)]
    result: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Stated<'a> {
    #[serde(borrow, rename = "requestState")]
    request_state: Option<&'a RawValue>,
}

/// Whether there may be a state in an answer. If not, nobody needs to know which worker it came from.
pub(crate) fn may_have_state(answer: &[u8]) -> bool {
    STATED.find(answer).is_some()
}

/// Marks the state in an answer, if it has one, with the worker that it came from: so that the retry finds
/// it, from any edge.
pub(crate) fn mark_state(answer: &Bytes, worker: &str) -> Vec<u8> {
    let place = || {
        may_have_state(answer).then_some(())?;
        let read: Answer<'_> = serde_json::from_slice(answer).ok()?;
        let stated: Stated<'_> = serde_json::from_str(read.result?.get()).ok()?;
        let state = stated.request_state.map(RawValue::get)?;
        state.starts_with('"').then(|| offset(answer, state))?
    };
    match place() {
        None => answer.to_vec(),
        Some(quote) => {
            let (before, after) = answer.split_at(quote + 1);
            [before, MARK.as_bytes(), worker.as_bytes(), b".", after].concat()
        }
    }
}

/// The method, if this is a request. One that begins as our own clients write it is not read to its end: if it is
/// no JSON there, the service says so.
pub(crate) fn method_of_request(json: &[u8]) -> Option<Cow<'_, str>> {
    if let Some((_, method)) = opening(json) {
        return Some(method.into());
    }
    let envelope = serde_json::from_slice::<Envelope<'_>>(json).ok()?;
    envelope.id.and(envelope.method)
}

/// Whether an answer is an error. Looks at which of the two names comes first.
pub(crate) fn is_error(answer: &[u8]) -> bool {
    if numbered(answer).is_some_and(|(_, rest)| rest.starts_with(b",\"result\":")) {
        return false;
    }
    let head = &answer[..answer.len().min(1024)];
    match memmem::find(head, b"\"result\"") {
        Some(result) => memmem::find(&head[..result], b"\"error\"").is_some(),
        None => memmem::find(head, b"\"error\"").is_some(),
    }
}

/// What the proxy in front of a server says of a call that the server has not answered.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NoAnswer {
    pub(crate) words: String,
    pub(crate) may_have_run: bool,
}

/// Whether an answer is an error of the proxy in front of the server: the server died, or could not be started. It is
/// told by its data, which has a reason and says whether the call may have run.
pub(crate) fn no_answer(answer: &[u8]) -> Option<NoAnswer> {
    #[derive(Deserialize)]
    struct Answer {
        error: ErrorMember,
    }
    #[derive(Deserialize)]
    struct ErrorMember {
        message: String,
        data: Data,
    }
    #[derive(Deserialize)]
    struct Data {
        #[serde(rename = "bridge")]
        _bridge: IgnoredAny,
        #[serde(rename = "mayHaveRun")]
        may_have_run: bool,
    }
    PROXIED.find(answer)?;
    let Answer { error: ErrorMember { message, data } } = serde_json::from_slice(answer).ok()?;
    let words = match data.may_have_run {
        true => format!("the worker's server did not answer the call; it may have run: {message}"),
        false => format!("the worker has no server for the call; nothing ran: {message}"),
    };
    Some(NoAnswer { words, may_have_run: data.may_have_run })
}

/// Whether a message says that another could not be read: an error that belongs to no request.
pub(crate) fn is_refusal(json: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Refusal {
        method: Option<IgnoredAny>,
        error: Option<IgnoredAny>,
    }
    serde_json::from_slice(json)
        .is_ok_and(|read: Refusal| read.method.is_none() && read.error.is_some())
}

/// Whether a request of this method only reads, so that it may run twice. Calls of tools are for the
/// tool's annotations to say.
pub(crate) fn only_reads(method: &str) -> bool {
    matches!(
        method,
        "server/discover"
            | "tools/list"
            | "resources/list"
            | "resources/templates/list"
            | "resources/read"
            | "prompts/list"
            | "prompts/get"
            | "completion/complete"
            | "subscriptions/listen"
    )
}

/// An answer that is an error, with what a program can know of it.
pub(crate) fn error_answer(id: &str, message: &str, data: &serde_json::Value) -> Vec<u8> {
    let message = serde_json::Value::from(message);
    format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{{\"code\":-32603,\"message\":{message},\"data\":{data}}}}}"
    )
    .into_bytes()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn request(json: &str) -> Request {
        match outbound(json.as_bytes().to_vec()) {
            Outbound::Request(request) => request,
            other => unreachable!("{other:?}"),
        }
    }

    #[test]
    fn a_request_tells_where_it_wants_to_go() {
        let json = r#"{"jsonrpc":"2.0","id":"a\n1","method":"tools/call","params":{"name":"add","_meta":{"traceparent":"00-1","tracestate":"x"}}}"#;
        let read = request(json);
        assert_eq!(read.id, r#""a\n1""#);
        assert_eq!(tool(&read).as_deref(), Some("add"));
        assert_eq!(read.trace, Trace::new(Some("00-1"), Some("x")));
        assert_eq!((read.worker, &read.json[..]), (None, json.as_bytes()));
        let prompt = request(r#"{"id":1,"method":"prompts/get","params":{"name":"p"}}"#);
        assert_eq!(tool(&prompt), None);
        assert_eq!(request(r#"{"id":1,"method":"tools/list"}"#).method, "tools/list");
        assert_eq!(request(r#"{"id":1,"method":"x","params":[1]}"#).method, "x");
    }

    #[test]
    fn a_request_reads_the_same_however_it_is_written() {
        let ours =
            r#"{"jsonrpc":"2.0","id":17,"method":"tools/call","params":{"name":"a\u0064d"}}"#;
        let plain = ours.replace("\\u0064", "d");
        let spaced = plain.replace("{\"jsonrpc\"", "{ \"jsonrpc\"");
        assert!(opening(plain.as_bytes()).is_some());
        assert!(opening(ours.as_bytes()).is_none() && opening(spaced.as_bytes()).is_none());
        for json in [ours, &plain, &spaced] {
            let read = request(json);
            assert_eq!((&*read.id, &*read.method), ("17", "tools/call"));
            assert_eq!(tool(&read).as_deref(), Some("add"));
            assert_eq!(method_of_request(json.as_bytes()).as_deref(), Some("tools/call"));
        }
        let traced = plain.replace("}}", r#","_meta":{"traceparent":"00-1"}}}"#);
        assert_eq!(request(&traced).trace, Trace::new(Some("00-1"), None));
        for json in
            [r#"{"jsonrpc":"2.0","id":,"method":"x"}"#, r#"{"jsonrpc":"2.0","id":1,"method":"x"#]
        {
            assert_eq!(outbound(json.into()), Outbound::Other, "{json}");
        }
    }

    #[test]
    fn a_withdrawn_call_is_known_by_the_text_of_its_id() {
        let json = r#"{"method":"notifications/cancelled","params":{"requestId":7}}"#;
        assert_eq!(outbound(json.into()), Outbound::Cancelled("7".into()));
        for json in ["", "{}", r#"{"id":1,"result":{}}"#, r#"{"method":"notifications/x"}"#] {
            assert_eq!(outbound(json.into()), Outbound::Other, "{json}");
        }
    }

    #[test]
    fn a_state_leads_back_to_its_worker_and_keeps_its_bytes() {
        let table = [r#""s.1""#, r#""""#, r#""ä\u00e4\"\n""#, r#""taut-fleet.other.x""#];
        for state in table {
            let answer = format!(r#"{{"id":1,"result":{{"requestState": {state} ,"a":1.50}}}}"#);
            let marked = mark_state(&Bytes::from(answer.clone().into_bytes()), "w7");
            let marked = String::from_utf8(marked).unwrap();
            let marked_state = marked.split("requestState\": ").nth(1).unwrap();
            let marked_state = marked_state.split(" ,").next().unwrap();
            let retry = format!(
                r#"{{"id":2,"method":"tools/call","params":{{"requestState":{marked_state},"n":1e2}}}}"#
            );
            let read = request(&retry);
            assert_eq!(read.worker.as_deref(), Some("w7"), "{state}");
            let plain = format!(
                r#"{{"id":2,"method":"tools/call","params":{{"requestState":{state},"n":1e2}}}}"#
            );
            assert_eq!(&read.json[..], plain.as_bytes());
        }
    }

    #[test]
    fn answers_without_a_state_pass_as_they_are() {
        for answer in [
            r#"{"id":1,"result":{"text":"requestState"}}"#,
            r#"{"id":1,"result":{"x":{"requestState":"a"}}}"#,
            r#"{"id":1,"result":{"requestState":null}}"#,
            r#"{"id":1,"error":{"code":1,"message":"requestState"}}"#,
        ] {
            let bytes = Bytes::from_static(answer.as_bytes());
            assert_eq!(mark_state(&bytes, "w"), answer.as_bytes());
        }
    }

    #[test]
    fn only_a_request_can_be_answered() {
        assert_eq!(method_of_request(br#"{"id":1,"method":"x"}"#).as_deref(), Some("x"));
        for json in [r#"{"method":"x"}"#, r#"{"id":1,"result":{}}"#, "[]", "{"] {
            assert_eq!(method_of_request(json.as_bytes()), None, "{json}");
        }
    }

    #[test]
    fn an_error_of_the_proxy_is_told_from_one_of_the_server() {
        let error = |error: &str| no_answer(format!(r#"{{"id":1,"error":{error}}}"#).as_bytes());
        let said = |ran| {
            let data = format!(r#"{{"bridge":"lost","mayHaveRun":{ran}}}"#);
            error(&format!(r#"{{"code":-32603,"message":"it \"died\"","data":{data}}}"#)).unwrap()
        };
        let (died, none) = (said(true), said(false));
        assert!(died.may_have_run && died.words.ends_with("it may have run: it \"died\""));
        assert!(!none.may_have_run && none.words.ends_with("nothing ran: it \"died\""));
        for of_the_server in [
            r#"{"code":1,"message":"m"}"#,
            r#"{"code":1,"message":"m","data":{"mayHaveRun":true}}"#,
            r#"{"code":1,"message":"m","data":{"fleet":"lost","mayHaveRun":true}}"#,
            r#"{"code":1,"message":"m","data":{"bridge":"lost","mayHaveRun":"no"}}"#,
        ] {
            assert_eq!(error(of_the_server), None, "{of_the_server}");
        }
        let result = br#"{"id":1,"result":{"data":{"bridge":"lost","mayHaveRun":true}}}"#;
        assert_eq!(no_answer(result), None);
    }

    #[test]
    fn an_error_is_told_from_a_result() {
        assert!(is_error(br#"{"id":1,"error":{"code":1,"message":"result"}}"#));
        assert!(!is_error(br#"{"id":1,"result":{"error":1}}"#));
        assert!(!is_error(b""));
        let json = error_answer("\"x\"", "say \"hi\"", &serde_json::json!({ "mayHaveRun": true }));
        assert!(is_error(&json));
        let value: serde_json::Value = serde_json::from_slice(&json).unwrap();
        assert_eq!(value["error"]["message"], "say \"hi\"");
        assert_eq!(value["error"]["data"]["mayHaveRun"], true);
    }
}
