//! A protected server and its authorization server at one address, and users who log in there.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::{Value, json};
use taut::Client;
use taut_http::client::login::{AskUser, Login, LoginOptions, LoginRequest};
use taut_http::client::{AuthorizeFuture, HttpOptions, HttpTransport};

use crate::server::*;

/// What the authorization server does, and what it has seen.
#[derive(Clone, Default)]
pub(crate) struct Authority {
    /// In place of what its metadata would say.
    pub(crate) metadata: Value,
    /// In place of what the metadata of the server would say.
    pub(crate) resource: Value,
    /// In place of a token.
    pub(crate) token_reply: Option<(u16, &'static str, &'static str)>,
    /// In place of what a refresh would bring: a status and a body of JSON.
    pub(crate) refresh_reply: Option<(u16, &'static str)>,
    /// Never answers a refresh.
    pub(crate) refresh_hangs: bool,
    /// Does not know the clients that have registered so far.
    pub(crate) forgets: Vec<String>,
    pub(crate) registered: usize,
    /// How a client has to show itself that has registered; `client_secret_post`.
    pub(crate) method: Option<&'static str>,
    /// Takes no form without the id of the client, as the Python SDK does.
    pub(crate) wants_id_in_form: bool,
    /// Takes a secret from the form only, as the TypeScript SDK does.
    pub(crate) wants_secret_in_form: bool,
    /// When the secret of a registration is over, in seconds since 1970.
    pub(crate) secret_expires_at: Option<u64>,
    /// Serves without a token.
    pub(crate) serves_all: bool,
    /// The same, and there is nothing else: no metadata, no authorization server.
    pub(crate) open: bool,
    /// Answers 500 to each path that it does not know.
    pub(crate) fails_where_it_knows_nothing: bool,
    /// Answers 503 where documents are.
    pub(crate) documents_fail: bool,
    /// Where the refusal of a request says that the metadata are.
    pub(crate) names_metadata_at: Option<&'static str>,
    /// Where the metadata of the server is, in place of the well-known place.
    pub(crate) metadata_at: Option<&'static str>,
    /// The scope that the refusal of a request names.
    pub(crate) challenge_scope: Option<&'static str>,
    pub(crate) expires_in: Value,
    pub(crate) no_refresh: bool,
    /// The access tokens that the server takes.
    pub(crate) valid: Vec<String>,
    /// Refuses every refresh token.
    pub(crate) revoked: bool,
    /// The scopes without which a call is refused with 403.
    pub(crate) needs: Option<&'static str>,
    pub(crate) refuses_all: bool,
    /// The codes that were given out and not used, each with the PKCE challenge of its login.
    pub(crate) codes: Vec<(String, String)>,
    pub(crate) given: usize,
    pub(crate) refreshed: usize,
    pub(crate) forms: Vec<BTreeMap<String, String>>,
}

/// Where the metadata of the server is by default.
const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource/mcp";

pub(crate) type Shared = Arc<Mutex<Authority>>;

pub(crate) fn merge(base: Value, over: &Value) -> Value {
    let mut base = base;
    for (name, value) in over.as_object().into_iter().flatten() {
        base[name] = value.clone();
    }
    base
}

fn document(value: Value) -> Reply {
    reply(200, &[("content-type", "application/json")], value.to_string())
}

/// The names and values of a form or a query.
pub(crate) fn pairs(text: &str) -> BTreeMap<String, String> {
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

/// A server that takes only the tokens of `authority`.
pub(crate) async fn protected(authority: Shared) -> TestServer {
    TestServer::start(move |seen| {
        let authority = authority.clone();
        async move {
            let is_refresh = seen.path == "/token" && seen.text.contains("refresh_token");
            while is_refresh && authority.lock().unwrap().refresh_hangs {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            answer(&mut authority.lock().unwrap(), &seen)
        }
    })
    .await
}

fn answer(authority: &mut Authority, seen: &Seen) -> Reply {
    let origin = format!("http://{}", seen.header("host").unwrap());
    let path = seen.path.split('?').next().unwrap();
    match path {
        _ if authority.open && path != "/mcp" => status(404),
        _ if authority.documents_fail && path.starts_with("/.well-known/") => status(503),
        path if path == authority.metadata_at.unwrap_or(WELL_KNOWN) => document(merge(
            json!({ "resource": format!("{origin}/mcp"), "authorization_servers": [origin],
                    "scopes_supported": ["read"] }),
            &authority.resource,
        )),
        "/.well-known/oauth-authorization-server" => document(merge(
            json!({ "issuer": origin, "authorization_endpoint": format!("{origin}/authorize"),
                    "token_endpoint": format!("{origin}/token"),
                    "registration_endpoint": format!("{origin}/register"),
                    "code_challenge_methods_supported": ["S256"],
                    "authorization_response_iss_parameter_supported": true }),
            &authority.metadata,
        )),
        "/register" => {
            authority.registered += 1;
            let id = format!("client-{}", authority.registered);
            let method = authority.method.unwrap_or("client_secret_post");
            let mut body = json!({ "client_id": id, "client_secret": "client-secret-1",
                "token_endpoint_auth_method": method });
            if let Some(end) = authority.secret_expires_at {
                body["client_secret_expires_at"] = end.into();
            }
            reply(201, &[("content-type", "application/json")], body.to_string())
        }
        "/token" => {
            let form = pairs(&seen.text);
            let id = form.get("client_id").cloned().or_else(|| {
                let basic = seen.header("authorization")?.strip_prefix("Basic ")?;
                let basic = String::from_utf8(STANDARD.decode(basic).ok()?).ok()?;
                Some(basic.split(':').next()?.to_owned()).filter(|_| !authority.wants_id_in_form)
            });
            let in_form = !authority.wants_secret_in_form || form.contains_key("client_secret");
            match id {
                Some(id) if in_form && !authority.forgets.contains(&id) => token(authority, &form),
                _ => {
                    authority.forms.push(form);
                    let body = json!({ "error": "invalid_client" }).to_string();
                    reply(401, &[("content-type", "application/json")], body)
                }
            }
        }
        "/mcp" => serve(authority, seen, &origin),
        _ if authority.fails_where_it_knows_nothing => status(500),
        _ => status(404),
    }
}

fn token(authority: &mut Authority, form: &BTreeMap<String, String>) -> Reply {
    authority.forms.push(form.clone());
    if let Some((code, kind, body)) = authority.token_reply {
        return reply(code, &[("content-type", kind)], body);
    }
    let refuse = |error: &str| {
        let body = json!({ "error": error, "error_description": "no good" }).to_string();
        reply(400, &[("content-type", "application/json")], body)
    };
    match form["grant_type"].as_str() {
        "authorization_code" => {
            let proof = hmac_sha256::Hash::hash(form["code_verifier"].as_bytes());
            let proof = URL_SAFE_NO_PAD.encode(proof);
            let is =
                |(code, challenge): &(String, String)| *code == form["code"] && *challenge == proof;
            let known = authority.codes.iter().position(is);
            let Some(known) = known else { return refuse("invalid_grant") };
            // A code is good for one token.
            authority.codes.remove(known);
        }
        "refresh_token" => {
            authority.refreshed += 1;
            if let Some((code, body)) = authority.refresh_reply {
                return reply(code, &[("content-type", "application/json")], body);
            }
            // A refresh token is good for one refresh, and only the newest is.
            let newest = format!("refresh-secret-{}", authority.given);
            if authority.revoked || form["refresh_token"] != newest {
                return refuse("invalid_grant");
            }
        }
        _ => return refuse("unsupported_grant_type"),
    }
    authority.given += 1;
    let access = format!("access-secret-{}", authority.given);
    authority.valid = vec![access.clone()];
    let mut body = json!({ "access_token": access, "token_type": "Bearer" });
    if !authority.expires_in.is_null() {
        body["expires_in"] = authority.expires_in.clone();
    }
    if !authority.no_refresh {
        body["refresh_token"] = format!("refresh-secret-{}", authority.given).into();
    }
    reply(200, &[("content-type", "application/json")], body.to_string())
}

fn serve(authority: &mut Authority, seen: &Seen, origin: &str) -> Reply {
    let token = seen.header("authorization").and_then(|value| value.strip_prefix("Bearer "));
    let known = token.is_some_and(|token| authority.valid.iter().any(|valid| valid == token));
    let named = authority.names_metadata_at.or(authority.metadata_at);
    let metadata = format!("{origin}{}", named.unwrap_or(WELL_KNOWN));
    let open = authority.open || authority.serves_all;
    if (!known && !open) || authority.refuses_all {
        let mut challenge = format!("Bearer resource_metadata=\"{metadata}\"");
        if let Some(scope) = authority.challenge_scope {
            challenge = format!("{challenge}, scope=\"{scope}\"");
        }
        return reply(401, &[("www-authenticate", &challenge)], "");
    }
    let granted =
        authority.forms.iter().rev().find_map(|form| form.get("code_verifier").map(|_| form));
    let scope = granted.and_then(|form| form.get("asked_scope")).cloned().unwrap_or_default();
    if let Some(needs) = authority.needs
        && seen.rpc() == "tools/call"
        && !scope.split(' ').any(|scope| scope == needs)
    {
        let challenge = format!(
            "Bearer error=\"insufficient_scope\", scope=\"{needs}\", resource_metadata=\"{metadata}\""
        );
        return reply(403, &[("www-authenticate", &challenge)], "");
    }
    legacy(seen, "2025-11-25").unwrap_or_else(|| result(seen, said("hello")))
}

/// What a user does with the page of a login.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Does {
    /// Logs in; the browser comes back to the listener.
    LogsIn,
    /// Logs in, and pastes the address.
    Pastes,
    ChangesState,
    /// Brings a code that the authorization server has given to another login, which has not used it.
    OtherCode,
    WrongIssuer,
    NoIssuer,
    SaysNo,
    ClosesTheBrowser,
}

/// A user, and how often they were asked.
pub(crate) struct User {
    pub(crate) authority: Shared,
    pub(crate) does: Does,
    pub(crate) asked: Mutex<Vec<BTreeMap<String, String>>>,
}

impl User {
    pub(crate) fn new(authority: &Shared, does: Does) -> Arc<Self> {
        Arc::new(Self { authority: authority.clone(), does, asked: Mutex::default() })
    }

    pub(crate) fn count(&self) -> usize {
        self.asked.lock().unwrap().len()
    }

    /// The address that the browser is sent back to.
    pub(crate) fn redirect(&self, address: &str) -> String {
        let (page, query) = address.split_once('?').unwrap();
        let query = pairs(query);
        let number = self.count() + 1;
        let code = format!("code-secret-{number}");
        let challenge = query["code_challenge"].clone();
        self.authority.lock().unwrap().codes.push((code.clone(), challenge));
        self.asked.lock().unwrap().push(query.clone());
        let issuer = page.strip_suffix("/authorize").unwrap();
        let to = &query["redirect_uri"];
        let state = &query["state"];
        match self.does {
            Does::ChangesState => format!("{to}?code={code}&state={state}x&iss={issuer}"),
            Does::OtherCode => {
                let other = ("code-secret-of-another".to_owned(), "its challenge".to_owned());
                self.authority.lock().unwrap().codes.push(other);
                format!("{to}?code=code-secret-of-another&state={state}&iss={issuer}")
            }
            Does::WrongIssuer => format!("{to}?code={code}&state={state}&iss={issuer}/"),
            Does::NoIssuer => format!("{to}?code={code}&state={state}"),
            Does::SaysNo => format!("{to}?error=access_denied&state={state}&iss={issuer}"),
            _ => format!("{to}?code={code}&state={state}&iss={issuer}"),
        }
    }
}

impl AskUser for User {
    fn ask<'a>(&'a self, request: LoginRequest<'a>) -> AuthorizeFuture<'a, String> {
        Box::pin(async move {
            let address = self.redirect(request.address());
            match self.does {
                Does::LogsIn => {
                    // Another page of the machine tries first, and is ignored.
                    browse(&address.replace("state=", "state=x"), "404").await;
                    browse(&address.replace("/callback", "/favicon.ico"), "404").await;
                    let both =
                        async { tokio::join!(request.redirected(), browse(&address, "200")) };
                    both.await.0
                }
                Does::ClosesTheBrowser => request.redirected().await,
                _ => Ok(address),
            }
        })
    }
}

/// Opens an address as a browser does. The listener answers only while it is waited for.
pub(crate) async fn browse(address: &str, status: &'static str) {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let (host, path) = address.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let mut stream = tokio::net::TcpStream::connect(host).await.unwrap();
    let asked = format!("GET /{path} HTTP/1.1\r\nHost: {host}\r\n\r\n");
    stream.write_all(asked.as_bytes()).await.unwrap();
    let reading = async move {
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{answer}");
        assert!(!answer.contains("code-secret"), "the page shows no secret");
    };
    // Refused ones are answered later, when the listener is waited for.
    if status == "200" { reading.await } else { drop(tokio::spawn(reading)) }
}

pub(crate) fn options(user: &Arc<User>) -> LoginOptions {
    LoginOptions::new().ask(user.clone()).timeout(Duration::from_secs(20))
}

/// A connection to `server` that logs in as `login` says.
pub(crate) async fn connect_with(server: &TestServer, login: LoginOptions) -> taut::Result<Client> {
    let login = Login::new(&server.url, &HttpOptions::new(), login).unwrap();
    let options = HttpOptions::new().authorize(Arc::new(login));
    let transport = HttpTransport::new(&server.url, options).unwrap();
    tokio::time::timeout(LONG, transport.connect(Client::builder())).await.expect("it hangs")
}

pub(crate) fn authority() -> Shared {
    Arc::default()
}
