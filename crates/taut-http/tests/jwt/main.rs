//! The example `jwt` as it is: a server that takes the JWTs of one issuer, and an issuer that publishes its keys.

#![allow(clippy::unwrap_used, clippy::panic, clippy::expect_used)]
// The server is shared with the tests of the client, which use more of it.
#![allow(dead_code)]

#[path = "../../examples/jwt/keys.rs"]
mod keys;
#[path = "../client/server.rs"]
mod server;

use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use serde_json::{Value, json};
use taut::{Call, Client, NoArgs, Server};
use taut_http::client::{HttpError, HttpOptions, connect};
use taut_http::server::{Options, ProtectedResource, serve};

use keys::Keys;
use server::{TestServer, reply, status};

const ISSUER: &str = "https://login.example.com";

/// A key for signing (P-256), made for this run.
fn signing_key() -> EncodingKey {
    // A private key as PKCS #8 writes it: a fixed beginning, and the number.
    let mut der = vec![
        0x30, 0x41, 2, 1, 0, 0x30, 0x13, 6, 7, 0x2a, 0x86, 0x48, 0xce, 0x3d, 2, 1, 6, 8, 0x2a,
        0x86, 0x48, 0xce, 0x3d, 3, 1, 7, 4, 0x27, 0x30, 0x25, 2, 1, 1, 4, 0x20,
    ];
    let mut number = [0; 32];
    getrandom::fill(&mut number).unwrap();
    // Below the order of the curve, and not 0.
    number[0] &= 0x7f;
    number[31] |= 1;
    der.extend(number);
    EncodingKey::from_ec_der(&der)
}

fn published(key: &EncodingKey, id: &str) -> Value {
    let mut jwk = Jwk::from_encoding_key(key, Algorithm::ES256).unwrap();
    jwk.common.key_id = Some(id.to_owned());
    serde_json::to_value(jwk).unwrap()
}

/// An issuer whose document of keys a test can change. `None` means that it answers 500.
struct Issuer {
    keys: Arc<Mutex<Option<Vec<Value>>>>,
    server: TestServer,
}

impl Issuer {
    async fn start(keys: Vec<Value>) -> Self {
        let keys = Arc::new(Mutex::new(Some(keys)));
        let kept = keys.clone();
        let server = TestServer::start(move |_| {
            let keys = kept.lock().unwrap().clone();
            async move {
                match keys {
                    Some(keys) => {
                        let body = json!({ "keys": keys }).to_string();
                        reply(200, &[("content-type", "application/json")], body)
                    }
                    None => status(500),
                }
            }
        })
        .await;
        Self { keys, server }
    }

    fn asked(&self) -> usize {
        self.server.all(|_| true).len()
    }
}

/// Serves a tool that tells who asks, as the example does. Returns its URL, which is the audience.
async fn protected(issuer: &Issuer) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let keys = Arc::new(Keys::new(ISSUER, &url, "mcp", &issuer.server.url).unwrap());
    let options = Options::new()
        .protected_resource(ProtectedResource::new(&url, ISSUER).scopes(["mcp"]))
        .authenticate(move |head| keys.clone().principal(&head.headers));
    let server = Server::builder("who", "1.0")
        .tool(("who", "Tell who asks."), async |_: NoArgs, call: Call<()>| {
            call.principal().id().unwrap_or("nobody").to_owned()
        })
        .build()
        .unwrap();
    tokio::spawn(serve(listener, Arc::new(server), options));
    url
}

fn now() -> u64 {
    jsonwebtoken::get_current_timestamp()
}

fn claims(url: &str) -> Value {
    json!({ "iss": ISSUER, "aud": url, "sub": "ann", "exp": now() + 600, "scope": "read mcp" })
}

fn signed(key: &EncodingKey, id: Option<&str>, claims: &Value) -> String {
    let mut header = Header::new(Algorithm::ES256);
    header.kid = id.map(str::to_owned);
    jsonwebtoken::encode(&header, claims, key).unwrap()
}

async fn with(url: &str, token: &str) -> taut::Result<Client> {
    connect(url, HttpOptions::new().bearer(token)).await
}

/// The status of the refusal of a token.
async fn refusal(url: &str, token: &str) -> u16 {
    let error = with(url, token).await.map(drop).unwrap_err();
    let status = match HttpError::of(&error) {
        Some(HttpError::Unauthorized { status, .. }) => *status,
        other => panic!("{other:?}: {error}"),
    };
    assert!(!format!("{error} {error:?}").contains(token), "{error:?}");
    status
}

/// The answer to a request with this token, as any HTTP client sees it.
async fn answer(url: &str, token: &str) -> String {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let host = url.strip_prefix("http://").unwrap().strip_suffix("/mcp").unwrap();
    let mut stream = tokio::net::TcpStream::connect(host).await.unwrap();
    let request = format!(
        "GET /mcp HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

async fn challenge(url: &str, token: &str) -> String {
    let answer = answer(url, token).await;
    let line = answer.lines().find(|line| line.to_lowercase().starts_with("www-authenticate:"));
    line.unwrap_or_else(|| panic!("{answer}")).to_owned()
}

#[tokio::test]
async fn a_good_token_is_taken_and_the_handler_sees_whose_it_is() {
    let key = signing_key();
    let issuer = Issuer::start(vec![published(&key, "k1")]).await;
    let url = protected(&issuer).await;
    let client = with(&url, &signed(&key, Some("k1"), &claims(&url))).await.unwrap();
    let said = client.call("who", json!({})).await.unwrap();
    assert_eq!(said.text().unwrap(), format!("ann at {ISSUER}"));
    // Several audiences, of which we are one, are good as well.
    let mut many = claims(&url);
    many["aud"] = json!(["https://other.example", url]);
    with(&url, &signed(&key, Some("k1"), &many)).await.unwrap();
    assert_eq!(issuer.asked(), 1, "the keys are kept");
}

#[tokio::test]
async fn a_token_with_a_wrong_or_missing_claim_is_refused() {
    let key = signing_key();
    let issuer = Issuer::start(vec![published(&key, "k1")]).await;
    let url = protected(&issuer).await;
    for (claim, value, words) in [
        // A minute of difference between clocks is allowed.
        ("exp", json!(now() - 120), "it has expired"),
        ("exp", Value::Null, "a claim is missing or cannot be read"),
        ("exp", json!("never"), "a claim is missing or cannot be read"),
        ("nbf", json!(now() + 600), "it is not valid yet"),
        ("aud", json!("https://other.example/mcp"), "it is for another server"),
        ("aud", Value::Null, "a claim is missing or cannot be read"),
        ("iss", json!("https://evil.example"), "it is of another issuer"),
        ("iss", Value::Null, "a claim is missing or cannot be read"),
        ("sub", Value::Null, "a claim is missing or cannot be read"),
    ] {
        let mut claims = claims(&url);
        match value.is_null() {
            true => drop(claims.as_object_mut().unwrap().remove(claim)),
            false => claims[claim] = value.clone(),
        }
        let token = signed(&key, Some("k1"), &claims);
        assert_eq!(refusal(&url, &token).await, 401, "{claim} {value}");
        let challenge = challenge(&url, &token).await;
        assert!(challenge.contains("error=\"invalid_token\""), "{challenge}");
        assert!(challenge.contains(words), "{claim} {value}: {challenge}");
        assert!(challenge.contains("resource_metadata="), "{challenge}");
    }
    let mut weak = claims(&url);
    weak["scope"] = json!("read mcpx");
    assert_eq!(refusal(&url, &signed(&key, Some("k1"), &weak)).await, 403);
}

#[tokio::test]
async fn a_token_that_no_key_of_the_issuer_signed_is_refused() {
    let (key, foreign) = (signing_key(), signing_key());
    let secret = json!({ "kty": "oct", "kid": "oct", "k": "c2VjcmV0" });
    let issuer = Issuer::start(vec![published(&key, "k1"), secret]).await;
    let url = protected(&issuer).await;
    let good = claims(&url);
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let body = part(&good);
    let none = format!("{}.{body}.", part(&json!({ "alg": "none", "typ": "JWT", "kid": "k1" })));
    let hmac = |id: &str, secret: &[u8]| {
        let mut header = Header::new(Algorithm::HS256);
        header.kid = Some(id.to_owned());
        jsonwebtoken::encode(&header, &good, &EncodingKey::from_secret(secret)).unwrap()
    };
    let honest = signed(&key, Some("k1"), &good);
    let mut changed = good.clone();
    changed["sub"] = json!("root");
    let mut parts = honest.split('.').map(str::to_owned).collect::<Vec<_>>();
    parts[1] = part(&changed);
    let public = published(&key, "k1")["x"].as_str().unwrap().to_owned();
    for (token, words) in [
        (none, "it is not a signed JWT"),
        ("no.jwt.atall".to_owned(), "it is not a signed JWT"),
        ("opaque".to_owned(), "it is not a signed JWT"),
        (signed(&key, None, &good), "it does not name its key"),
        (signed(&key, Some("unknown"), &good), "its key is not one of the issuer's"),
        (signed(&foreign, Some("k1"), &good), "its signature is wrong"),
        (parts.join("."), "its signature is wrong"),
        (hmac("k1", public.as_bytes()), "another algorithm than its key has"),
        (hmac("oct", b"secret"), "another algorithm than its key has"),
    ] {
        assert_eq!(refusal(&url, &token).await, 401, "{words}");
        let challenge = challenge(&url, &token).await;
        assert!(challenge.contains(words), "{words}: {challenge}");
    }
    assert!(issuer.asked() <= 2, "invented key ids do not make us ask each time");
}

#[tokio::test]
async fn keys_that_cannot_be_had_are_the_servers_trouble_and_not_the_tokens() {
    let key = signing_key();
    let issuer = Issuer::start(vec![published(&key, "k1")]).await;
    let url = protected(&issuer).await;
    let keys = issuer.keys.lock().unwrap().take();
    let token = signed(&key, Some("k1"), &claims(&url));
    let said = answer(&url, &token).await;
    assert!(said.starts_with("HTTP/1.1 503 "), "{said}");
    assert!(said.contains("tokens cannot be checked at the moment"), "{said}");
    // As soon as they can be had, it works.
    *issuer.keys.lock().unwrap() = keys;
    with(&url, &token).await.unwrap();
    let plain = Keys::new(ISSUER, &url, "mcp", "http://keys.example/jwks");
    assert!(plain.err().unwrap().to_string().contains("https://"));
}
