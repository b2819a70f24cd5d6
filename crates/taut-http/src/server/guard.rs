//! What is checked before a request is looked at: from where it comes, and in which form.
//!
//! Knows `Host`, `Origin`, `Accept` and `Content-Type`; must not know messages. HSC-01, HSC-02,
//! HSC-04, HTP-03, HTP-04.

use std::net::IpAddr;

use http::header::{
    ACCEPT, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE,
    ACCESS_CONTROL_REQUEST_HEADERS, CONTENT_TYPE, HOST, ORIGIN, VARY,
};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, Uri};

use super::body::Body;
use super::options::{ANY_ADDRESS, Options};
use super::refusal::{METHODS, Refusal, empty};
use crate::headers::{EVENT_STREAM, JSON, PARAM_PREFIX};

/// The one value of a header; an error if it is there twice or not plain text.
pub(super) fn single<'a>(
    headers: &'a HeaderMap,
    name: &HeaderName,
) -> Result<Option<&'a str>, Refusal> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(Refusal::bad_request(format!("the header {name} is there twice: send one")));
    }
    let text = value.to_str().map(|text| Some(text.trim()));
    text.map_err(|_| Refusal::bad_request(format!("the header {name} is not plain ASCII")))
}

/// The host of `host[:port]`, in lower case.
fn without_port(authority: &str) -> &str {
    match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => authority,
    }
}

fn address(host: &str) -> Option<IpAddr> {
    host.trim_start_matches('[').trim_end_matches(']').parse().ok()
}

fn is_loopback(host: &str) -> bool {
    host == "localhost" || address(host).is_some_and(|address| address.is_loopback())
}

/// Refuses requests that a web page of another site may have sent, and those that reached this server
/// under a name that is not its own (DNS rebinding).
pub(super) fn check_source(options: &Options, head: &Parts) -> Result<(), Refusal> {
    // In absolute form the host stands in the request line.
    let host = match (head.uri.authority(), single(&head.headers, &HOST)?) {
        (Some(authority), _) => authority.as_str(),
        (None, Some(host)) => host,
        (None, None) if options.any_host => "",
        (None, None) => {
            return Err(Refusal::bad_request("the header Host is missing: send one"));
        }
    };
    let host = without_port(host).to_ascii_lowercase();
    let known = |name: &String| *name == host || (name == ANY_ADDRESS && address(&host).is_some());
    if !options.any_host && !is_loopback(&host) && !options.hosts.iter().any(known) {
        let name: String = host.chars().take(100).collect();
        return Err(Refusal::new(
            StatusCode::FORBIDDEN,
            format!(
                "Host {name:?} is not served: use localhost, or allow this name \
                 (allow_host, --allow-host)"
            ),
        ));
    }
    let Some(origin) = single(&head.headers, &ORIGIN)? else { return Ok(()) };
    if is_named(options, origin) || is_same_host(origin, &host) {
        return Ok(());
    }
    let name: String = origin.chars().take(100).collect();
    Err(Refusal::new(
        StatusCode::FORBIDDEN,
        format!(
            "Origin {name:?} is not served: web pages of other sites are refused; allow this one \
             if it is yours (allow_origin, --allow-origin)"
        ),
    ))
}

fn is_named(options: &Options, origin: &str) -> bool {
    options.origins.iter().any(|named| origin.eq_ignore_ascii_case(named))
}

/// Whether a page comes from the host that it asks. Any port and scheme: a local tool's page is on
/// another port than the server.
fn is_same_host(origin: &str, host: &str) -> bool {
    let uri: Option<Uri> = origin.parse().ok();
    let Some(page) = uri.as_ref().and_then(Uri::host) else { return false };
    let page = page.to_ascii_lowercase();
    page == host || (is_loopback(&page) && is_loopback(host))
}

/// The headers that pages may send.
const ALLOWED_HEADERS: [&str; 8] = [
    "Authorization",
    "Content-Type",
    "Accept",
    "Last-Event-ID",
    "Mcp-Session-Id",
    "MCP-Protocol-Version",
    "Mcp-Method",
    "Mcp-Name",
];

/// The answer to a browser that asks whether it may send a request (HSC-04).
pub(super) fn preflight(head: &Parts) -> Response<Body> {
    let mut response = empty(StatusCode::NO_CONTENT);
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static(METHODS));
    // Which parameters are repeated in headers depends on the tool.
    let asked = head.headers.get(ACCESS_CONTROL_REQUEST_HEADERS);
    let asked = asked.and_then(|value| value.to_str().ok()).unwrap_or_default().split(',');
    let params = asked.map(str::trim).filter(|name| {
        name.get(..PARAM_PREFIX.len()).is_some_and(|start| start.eq_ignore_ascii_case(PARAM_PREFIX))
    });
    let allowed: Vec<&str> = ALLOWED_HEADERS.into_iter().chain(params).collect();
    if let Ok(allowed) = HeaderValue::from_str(&allowed.join(", ")) {
        headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, allowed);
    }
    headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("7200"));
    response
}

/// Lets pages of named origins read the response.
pub(super) fn allow_page(
    options: &Options,
    origin: Option<&HeaderValue>,
    response: &mut HeaderMap,
) {
    let Some(origin) = origin else { return };
    if !origin.to_str().is_ok_and(|text| is_named(options, text)) {
        return;
    }
    response.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
    response.append(VARY, HeaderValue::from_static("Origin"));
    response.insert(
        ACCESS_CONTROL_EXPOSE_HEADERS,
        HeaderValue::from_static("Mcp-Session-Id, WWW-Authenticate"),
    );
}

/// The `Accept` of nearly every client.
const USUAL: &str = "application/json, text/event-stream";

/// Whether `Accept` allows a media type. Without the header everything is allowed (RFC 9110).
fn accepts(headers: &HeaderMap, wanted: &str) -> bool {
    let mut values = headers.get_all(ACCEPT).iter().peekable();
    if values.peek().is_none() {
        return true;
    }
    let (group, _) = wanted.split_once('/').unwrap_or((wanted, ""));
    let fits = |range: &str| {
        let mut parts = range.split(';').map(str::trim);
        let kind = parts.next().unwrap_or_default();
        let refused = parts.any(|part| matches!(part, "q=0" | "q=0.0" | "q=0.00" | "q=0.000"));
        let fits = kind == "*/*"
            || kind.eq_ignore_ascii_case(wanted)
            || kind.strip_suffix("/*").is_some_and(|kind| kind.eq_ignore_ascii_case(group));
        fits && !refused
    };
    values.filter_map(|value| value.to_str().ok()).flat_map(|text| text.split(',')).any(fits)
}

/// In which form the answer to a plain JSON-RPC request may be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AnswerForm {
    Json,
    /// JSON if nothing else is to be said, else a stream.
    Either,
    Stream,
}

/// What `Accept` allows. A stream has to be named: who takes anything may have never heard of streams.
pub(super) fn answer_form(headers: &HeaderMap) -> Option<AnswerForm> {
    let text = |value: &HeaderValue| value.to_str().unwrap_or_default().to_ascii_lowercase();
    let named = headers.get_all(ACCEPT).iter().any(|value| text(value).contains(EVENT_STREAM));
    match (accepts(headers, JSON), named && accepts(headers, EVENT_STREAM)) {
        (true, true) => Some(AnswerForm::Either),
        (true, false) => Some(AnswerForm::Json),
        (false, true) => Some(AnswerForm::Stream),
        (false, false) => None,
    }
}

/// Refuses a POST to a plain JSON-RPC service whose sender could not read the answer, or whose body is no JSON.
pub(super) fn check_plain_post(head: &Parts) -> Result<(), Refusal> {
    match answer_form(&head.headers) {
        Some(_) => check_json(head),
        None => Err(Refusal::new(
            StatusCode::NOT_ACCEPTABLE,
            "an answer is JSON, or a stream where that is named: send Accept: application/json",
        )),
    }
}

/// Refuses a POST whose sender could not read the answer, or whose body is no JSON.
pub(super) fn check_post(head: &Parts) -> Result<(), Refusal> {
    // What clients send need not be taken apart each time.
    let usual = head.headers.get(ACCEPT).is_some_and(|value| *value == USUAL);
    if !usual && (!accepts(&head.headers, JSON) || !accepts(&head.headers, EVENT_STREAM)) {
        return Err(Refusal::new(
            StatusCode::NOT_ACCEPTABLE,
            "an answer is JSON or a stream: send Accept: application/json, text/event-stream",
        ));
    }
    check_json(head)
}

/// Refuses a body that is no JSON.
fn check_json(head: &Parts) -> Result<(), Refusal> {
    let media = single(&head.headers, &CONTENT_TYPE)?.unwrap_or_default();
    let kind = media.split(';').next().unwrap_or_default().trim();
    match kind.eq_ignore_ascii_case(JSON) {
        true => Ok(()),
        false => Err(Refusal::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "the body must be JSON: send Content-Type: application/json",
        )),
    }
}

/// Refuses a GET whose sender does not want a stream.
pub(super) fn check_get(head: &Parts) -> Result<(), Refusal> {
    match accepts(&head.headers, EVENT_STREAM) {
        true => Ok(()),
        false => Err(Refusal::new(
            StatusCode::NOT_ACCEPTABLE,
            "GET opens a stream of messages: send Accept: text/event-stream, or POST a message",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(headers: &[(&str, &str)]) -> Parts {
        let mut request = http::Request::builder().uri("/mcp");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap().into_parts().0
    }

    #[test]
    fn hsc_01_and_02_hosts_and_origins() {
        let options =
            Options::new().allow_host("mcp.example.com").allow_origin("https://app.example/");
        let table = [
            ("localhost:80", None, true),
            ("127.0.0.1", None, true),
            ("127.8.9.1:1", None, true),
            ("[::1]:8080", None, true),
            ("MCP.example.com", None, true),
            ("mcp.example.com:444", None, true),
            ("evil.example.com", None, false),
            ("localhost.evil.example", None, false),
            ("10.0.0.1", None, false),
            ("", None, false),
            ("localhost", Some("http://localhost:6274"), true),
            ("localhost", Some("http://127.0.0.1"), true),
            ("localhost", Some("https://app.example"), true),
            ("mcp.example.com", Some("https://mcp.example.com"), true),
            ("localhost", Some("http://evil.example.com"), false),
            ("localhost", Some("http://localhost.evil.example"), false),
            ("localhost", Some("null"), false),
            ("localhost", Some(""), false),
            ("mcp.example.com", Some("http://localhost"), false),
        ];
        for (host, origin, served) in table {
            let mut headers = vec![("host", host)];
            headers.extend(origin.map(|origin| ("origin", origin)));
            let checked = check_source(&options, &head(&headers));
            assert_eq!(checked.is_ok(), served, "{host} {origin:?}");
        }
        assert!(check_source(&options, &head(&[])).is_err());
        assert!(check_source(&options, &head(&[("host", "localhost"), ("host", "a")])).is_err());
        let any = options.listening_on([0, 0, 0, 0].into());
        assert!(check_source(&any, &head(&[("host", "10.0.0.1:5")])).is_ok());
        assert!(check_source(&any, &head(&[("host", "evil.example")])).is_err());
    }

    #[test]
    fn htp_03_and_04_media_types() {
        let table = [
            (None, true),
            (Some("application/json, text/event-stream"), true),
            (Some("text/event-stream;q=0.5, application/json;charset=utf-8"), true),
            (Some("*/*"), true),
            (Some("text/*, application/*"), true),
            (Some("application/json"), false),
            (Some("text/event-stream"), false),
            (Some("application/json, text/event-stream;q=0"), false),
            (Some(""), false),
        ];
        for (accept, served) in table {
            let mut headers = vec![("content-type", "application/json; charset=utf-8")];
            headers.extend(accept.map(|accept| ("accept", accept)));
            assert_eq!(check_post(&head(&headers)).is_ok(), served, "{accept:?}");
        }
        for kind in ["text/plain", "application/jsonp", "", "multipart/form-data"] {
            assert!(check_post(&head(&[("content-type", kind)])).is_err(), "{kind}");
        }
        assert!(check_post(&head(&[])).is_err());
    }
}
