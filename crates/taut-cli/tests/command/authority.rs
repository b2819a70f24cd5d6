//! A protected MCP server and its authorization server on one port, and what a user does on its login page.
//!
//! Each request has a thread and a connection of its own. A refresh token is good for one refresh, as real
//! servers do it, so two processes that use the same one are found out.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, BufReader, Read as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

use serde_json::json;

use super::*;

/// What the server does, and what it has seen.
#[derive(Default)]
pub(super) struct State {
    /// In place of what the metadata of the authorization server would say.
    pub(super) metadata: Value,
    /// In place of what the metadata of the protected server would say.
    pub(super) resource: Value,
    /// What the token endpoint answers with instead of a token: a status and a body, in which `{sent}` stands for
    /// the form that was sent.
    pub(super) token_reply: Option<(u16, &'static str)>,
    pub(super) expires_in: Value,
    /// Repeats the token of a request in errors and descriptions.
    pub(super) repeats: bool,
    /// Serves everyone, and has no authorization server.
    pub(super) open: bool,
    /// Refuses every refresh token.
    pub(super) revoked: bool,
    /// Requests with a token that is not valid are answered only when so many of them are there.
    pub(super) together: usize,
    waiting: usize,
    valid: BTreeSet<String>,
    /// The codes that were given out and not used.
    codes: BTreeSet<String>,
    pub(super) given: usize,
    pub(super) refreshed: usize,
    pub(super) registered: usize,
    /// The calls of tools that were answered.
    pub(super) calls: usize,
    /// Every token, code, verifier and client secret so far.
    pub(super) secrets: BTreeSet<String>,
    pub(super) forms: Vec<BTreeMap<String, String>>,
}

impl State {
    fn secret(&mut self, kind: &str) -> String {
        let text = format!("{kind}-hushed-{}-{}", std::process::id(), self.secrets.len());
        self.secrets.insert(text.clone());
        text
    }

    /// Gives out an access token.
    pub(super) fn give(&mut self) -> String {
        let access = self.secret("access");
        self.valid.insert(access.clone());
        access
    }

    /// Takes back all access tokens.
    pub(super) fn expire(&mut self) {
        self.valid.clear();
    }
}

pub(super) struct Authority {
    origin: String,
    /// The address of the protected server.
    pub(super) url: String,
    shared: Arc<(Mutex<State>, Condvar)>,
}

impl Authority {
    pub(super) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let origin = format!("http://{}", listener.local_addr().unwrap());
        let shared: Arc<(Mutex<State>, Condvar)> = Arc::default();
        let (of, kept) = (origin.clone(), shared.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (origin, shared) = (of.clone(), kept.clone());
                std::thread::spawn(move || serve(stream, &origin, &shared));
            }
        });
        Self { url: format!("{origin}/mcp"), origin, shared }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.shared.0.lock().unwrap()
    }

    /// What a user's browser is sent to, who has logged in on the page at `address`.
    pub(super) fn log_in(&self, address: &str) -> String {
        let query = pairs(address.split_once('?').unwrap().1);
        assert_eq!(query["code_challenge_method"], "S256");
        let mut state = self.state();
        let code = state.secret("code");
        state.codes.insert(code.clone());
        let (to, sent) = (&query["redirect_uri"], &query["state"]);
        format!("{to}?code={code}&state={sent}&iss={}", self.origin)
    }
}

/// Opens an address as a browser does, and returns what it shows.
pub(super) fn browse(address: &str) -> String {
    let (host, path) = address.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let mut stream = TcpStream::connect(host).unwrap();
    write!(stream, "GET /{path} HTTP/1.1\r\nHost: {host}\r\n\r\n").unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).unwrap();
    page
}

/// The names and values of a form or a query.
fn pairs(text: &str) -> BTreeMap<String, String> {
    let decode = |text: &str| {
        let mut bytes = Vec::new();
        let mut rest = text.bytes();
        while let Some(byte) = rest.next() {
            bytes.push(match byte {
                b'%' => {
                    let two: String = rest.by_ref().take(2).map(char::from).collect();
                    u8::from_str_radix(&two, 16).unwrap()
                }
                other => other,
            });
        }
        String::from_utf8(bytes).unwrap()
    };
    let pairs = text.split('&').filter_map(|pair| pair.split_once('='));
    pairs.map(|(name, value)| (decode(name), decode(value))).collect()
}

/// An answer: its status, further headers, and a body.
type Reply = (u16, String, String);

fn serve(mut stream: TcpStream, origin: &str, shared: &(Mutex<State>, Condvar)) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let (mut head, mut length) = (Vec::new(), 0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
        let line = line.trim_end().to_owned();
        if line.is_empty() {
            break;
        }
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
        head.push(line);
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let (status, headers, body) = answer(origin, shared, &head, &String::from_utf8(body).ok()?);
    write!(
        stream,
        "HTTP/1.1 {status} so\r\nContent-Length: {}\r\nConnection: close\r\n{headers}\r\n{body}",
        body.len()
    )
    .ok()
}

fn json_reply(status: u16, body: &Value) -> Reply {
    (status, "Content-Type: application/json\r\n".to_owned(), body.to_string())
}

fn merged(mut base: Value, over: &Value) -> Reply {
    for (name, value) in over.as_object().into_iter().flatten() {
        base[name] = value.clone();
    }
    json_reply(200, &base)
}

fn answer(origin: &str, shared: &(Mutex<State>, Condvar), head: &[String], body: &str) -> Reply {
    let mut first = head[0].split(' ');
    let (method, path) = (first.next().unwrap(), first.next().unwrap());
    let path = path.split('?').next().unwrap();
    let mut state = shared.0.lock().unwrap();
    match path {
        "/mcp" if state.open => mcp(&mut state, method, body, ""),
        _ if state.open => (404, String::new(), String::new()),
        "/.well-known/oauth-protected-resource/mcp" => merged(
            json!({ "resource": format!("{origin}/mcp"), "authorization_servers": [origin],
                    "scopes_supported": ["read"] }),
            &state.resource,
        ),
        "/.well-known/oauth-authorization-server" => merged(
            json!({ "issuer": origin, "authorization_endpoint": format!("{origin}/authorize"),
                    "token_endpoint": format!("{origin}/token"),
                    "registration_endpoint": format!("{origin}/register"),
                    "code_challenge_methods_supported": ["S256"],
                    "authorization_response_iss_parameter_supported": true }),
            &state.metadata,
        ),
        "/register" => {
            state.registered += 1;
            let secret = state.secret("client");
            json_reply(
                201,
                &json!({ "client_id": format!("id-{}", state.registered), "client_secret": secret,
                         "token_endpoint_auth_method": "client_secret_post" }),
            )
        }
        "/token" => token(&mut state, body),
        "/mcp" => {
            let token = head.iter().find_map(|line| {
                let (name, value) = line.split_once(": ")?;
                let bearer = value.strip_prefix("Bearer ")?;
                name.eq_ignore_ascii_case("authorization").then(|| bearer.to_owned())
            });
            if !token.as_ref().is_some_and(|token| state.valid.contains(token)) {
                if token.is_some() && state.waiting < state.together {
                    state.waiting += 1;
                    shared.1.notify_all();
                    let late = |state: &mut State| state.waiting < state.together;
                    drop(shared.1.wait_timeout_while(state, DEADLINE, late).unwrap());
                }
                let at = format!("{origin}/.well-known/oauth-protected-resource/mcp");
                let challenge = format!("WWW-Authenticate: Bearer resource_metadata=\"{at}\"\r\n");
                return (401, challenge, String::new());
            }
            mcp(&mut state, method, body, &token.unwrap_or_default())
        }
        _ => (404, String::new(), String::new()),
    }
}

fn token(state: &mut State, body: &str) -> Reply {
    let form = pairs(body);
    state.secrets.extend(form.get("code_verifier").cloned());
    state.forms.push(form.clone());
    if let Some((status, reply)) = state.token_reply {
        let kind = if reply.starts_with('{') { "application/json" } else { "text/html" };
        let sent = body.replace('"', "");
        return (status, format!("Content-Type: {kind}\r\n"), reply.replace("{sent}", &sent));
    }
    let good = match form["grant_type"].as_str() {
        "authorization_code" => {
            form["code_verifier"].len() >= 43 && state.codes.remove(&form["code"])
        }
        "refresh_token" => {
            state.refreshed += 1;
            let newest = format!("refresh-{}", state.given);
            let is_newest = form["refresh_token"].ends_with(&newest);
            !state.revoked && is_newest
        }
        _ => false,
    };
    if !good {
        return json_reply(400, &json!({ "error": "invalid_grant", "error_description": body }));
    }
    state.given += 1;
    let access = state.secret("access");
    state.valid = BTreeSet::from([access.clone()]);
    let refresh = format!("{}-refresh-{}", state.secret("refresh"), state.given);
    let mut reply =
        json!({ "access_token": access, "token_type": "Bearer", "refresh_token": refresh });
    if !state.expires_in.is_null() {
        reply["expires_in"] = state.expires_in.clone();
    }
    json_reply(200, &reply)
}

/// A server of 2025-11-25 without a session, with one tool.
fn mcp(state: &mut State, method: &str, body: &str, token: &str) -> Reply {
    if method != "POST" {
        return (405, String::new(), String::new());
    }
    let asked: Value = serde_json::from_str(body).unwrap_or_default();
    let result = match asked["method"].as_str().unwrap_or_default() {
        "initialize" => json!({ "protocolVersion": "2025-11-25", "capabilities": { "tools": {} },
            "serverInfo": { "name": "protected", "version": "1" } }),
        "tools/list" => {
            let who = if state.repeats { token } else { "anyone" };
            json!({ "tools": [{ "name": "get_word", "inputSchema": { "type": "object" },
            "description": format!("you are {who}"), "annotations": { "readOnlyHint": true } }] })
        }
        "tools/call" if state.repeats => {
            let message = format!("upstream said no to Bearer {token}");
            let error = json!({ "code": -32000, "message": message });
            return json_reply(
                200,
                &json!({ "jsonrpc": "2.0", "id": asked["id"], "error": error }),
            );
        }
        "tools/call" => {
            state.calls += 1;
            json!({ "content": [{ "type": "text", "text": "behind the login" }] })
        }
        _ if asked.get("id").is_none() => return (202, String::new(), String::new()),
        _ => {
            let error = json!({ "code": -32601, "message": "no such method" });
            return json_reply(
                400,
                &json!({ "jsonrpc": "2.0", "id": asked["id"], "error": error }),
            );
        }
    };
    json_reply(200, &json!({ "jsonrpc": "2.0", "id": asked["id"], "result": result }))
}
