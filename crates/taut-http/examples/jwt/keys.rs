//! Checks JWTs by the keys that their issuer publishes.
//!
//! Knows what makes a token good for one server: a signature by a key of the issuer, the issuer, the audience, the
//! time, the scope. Must not know HTTP beyond one GET of the keys.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::{HeaderMap, Request};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use jsonwebtoken::jwk::{AlgorithmParameters, Jwk, JwkSet, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey, Validation};
use serde::{Deserialize, Serialize};
use taut::transport::Principal;
use taut_http::server::{AuthError, bearer};
use tokio::sync::Mutex;

/// The longest document of keys. Real ones have a few KiB.
const MAX_DOCUMENT: usize = 256 << 10;

/// How long the issuer may take to send its keys.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Keys are asked for again at most this often: a token with an invented key id must not make us flood the issuer.
const AT_MOST_EVERY: Duration = Duration::from_secs(30);

/// Keys that were fetched longer ago are fetched again, so that a key that was withdrawn is no longer used.
const FRESH: Duration = Duration::from_secs(3600);

/// The keys of one issuer, for tokens of one server.
pub(crate) struct Keys {
    issuer: String,
    audience: String,
    scope: String,
    document: hyper::Uri,
    http: Client<HttpsConnector<HttpConnector>, Empty<Bytes>>,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    keys: Option<(Instant, JwkSet)>,
    asked: Option<Instant>,
}

/// What is read of a token; the rest of its claims is checked by `jsonwebtoken`.
#[derive(Deserialize, Serialize)]
struct Claims {
    sub: String,
    #[serde(default)]
    scope: String,
}

impl Keys {
    /// Takes tokens of `issuer` for `audience` with `scope`, signed by the keys in `document`.
    pub(crate) fn new(
        issuer: &str,
        audience: &str,
        scope: &str,
        document: &str,
    ) -> Result<Self, Box<dyn std::error::Error>> {
        let document: hyper::Uri = document.parse()?;
        // Over plain http anybody in between could put a key of their own there.
        let local = ["127.0.0.1", "[::1]", "localhost"].map(Some).contains(&document.host());
        if document.scheme_str() != Some("https") && !local {
            return Err("the address of the keys has to begin with https://".into());
        }
        let mut roots = rustls::RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let connector =
            HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http().enable_http1();
        Ok(Self {
            issuer: issuer.to_owned(),
            audience: audience.to_owned(),
            scope: scope.to_owned(),
            document,
            http: Client::builder(TokioExecutor::new()).build(connector.build()),
            known: Mutex::default(),
        })
    }

    /// Who sends a request with these headers: a function for `Options::authenticate`.
    pub(crate) fn principal(
        self: Arc<Self>,
        headers: &HeaderMap,
    ) -> impl Future<Output = Result<Principal, AuthError>> + Send + use<> {
        let token = bearer(headers).map(str::to_owned);
        async move { self.check(&token?).await }
    }

    async fn check(&self, token: &str) -> Result<Principal, AuthError> {
        // Refuses `alg: none` too, which is not among the algorithms of the crate.
        let header = jsonwebtoken::decode_header(token)
            .map_err(|_| AuthError::invalid("it is not a signed JWT"))?;
        let id = header.kid.ok_or_else(|| AuthError::invalid("it does not name its key"))?;
        let key = self.key(&id).await?;
        // The key says which algorithm is right, never the token: otherwise a public key could be taken for the
        // secret of an HMAC.
        let Some(algorithm) = algorithm_of(&key).filter(|algorithm| *algorithm == header.alg)
        else {
            return Err(AuthError::invalid("it is signed with another algorithm than its key has"));
        };
        let key = DecodingKey::from_jwk(&key).map_err(|_| AuthError::Unavailable {
            reason: "the issuer publishes a key that cannot be read".to_owned(),
        })?;
        let mut rules = Validation::new(algorithm);
        rules.set_issuer(&[&self.issuer]);
        rules.set_audience(&[&self.audience]);
        rules.set_required_spec_claims(&["exp", "iss", "aud", "sub"]);
        rules.validate_nbf = true;
        let claims = jsonwebtoken::decode::<Claims>(token, &key, &rules).map_err(|error| {
            use jsonwebtoken::errors::ErrorKind;
            AuthError::invalid(match error.kind() {
                ErrorKind::ExpiredSignature => "it has expired",
                ErrorKind::ImmatureSignature => "it is not valid yet",
                ErrorKind::InvalidAudience => "it is for another server",
                ErrorKind::InvalidIssuer => "it is of another issuer",
                ErrorKind::InvalidSignature => "its signature is wrong",
                _ => "a claim is missing or cannot be read",
            })
        })?;
        if !claims.claims.scope.split(' ').any(|scope| scope == self.scope) {
            return Err(AuthError::InsufficientScope { scopes: vec![self.scope.clone()] });
        }
        // A subject is unique at its issuer only.
        Ok(Principal::new(format!("{} at {}", claims.claims.sub, self.issuer)))
    }

    /// The key with this id. An unknown one may be new, so the keys are asked for again, but not too often.
    async fn key(&self, id: &str) -> Result<Jwk, AuthError> {
        let mut known = self.known.lock().await;
        let fresh = known.keys.as_ref().filter(|(at, _)| at.elapsed() < FRESH);
        if let Some(key) = fresh.and_then(|(_, keys)| usable(keys, id)) {
            return Ok(key);
        }
        if known.asked.is_none_or(|at| at.elapsed() >= AT_MOST_EVERY) {
            known.asked = Some(Instant::now());
            match self.fetch().await {
                Ok(keys) => known.keys = Some((Instant::now(), keys)),
                Err(reason) => {
                    // The next request may try again at once if there is nothing to go by.
                    known.asked = known.asked.filter(|_| known.keys.is_some());
                    return Err(AuthError::Unavailable { reason });
                }
            }
        }
        let found = known.keys.as_ref().and_then(|(_, keys)| usable(keys, id));
        found.ok_or_else(|| AuthError::invalid("its key is not one of the issuer's"))
    }

    async fn fetch(&self) -> Result<JwkSet, String> {
        let asking = async {
            let request = Request::get(self.document.clone()).body(Empty::new());
            let request = request.map_err(|error| error.to_string())?;
            let answer = self.http.request(request).await.map_err(|error| error.to_string())?;
            if answer.status() != 200 {
                return Err(format!("the issuer answered {} instead of its keys", answer.status()));
            }
            let body = Limited::new(answer.into_body(), MAX_DOCUMENT).collect().await;
            let body = body.map_err(|error| error.to_string())?.to_bytes();
            serde_json::from_slice(&body).map_err(|_| "the issuer's keys cannot be read".to_owned())
        };
        tokio::time::timeout(TIMEOUT, asking)
            .await
            .unwrap_or_else(|_| Err("the issuer did not send its keys in time".to_owned()))
    }
}

/// The key with this id, if it is for signatures.
fn usable(keys: &JwkSet, id: &str) -> Option<Jwk> {
    let key = keys.find(id)?;
    let signs = matches!(key.common.public_key_use, None | Some(PublicKeyUse::Signature));
    signs.then(|| key.clone())
}

/// The algorithm of a public key; none for a secret, which nobody publishes on purpose.
fn algorithm_of(key: &Jwk) -> Option<Algorithm> {
    use jsonwebtoken::jwk::{EllipticCurve, KeyAlgorithm};
    let stated = key.common.key_algorithm;
    match &key.algorithm {
        AlgorithmParameters::RSA(_) => match stated {
            None | Some(KeyAlgorithm::RS256) => Some(Algorithm::RS256),
            Some(KeyAlgorithm::PS256) => Some(Algorithm::PS256),
            Some(_) => None,
        },
        AlgorithmParameters::EllipticCurve(curve) => match curve.curve {
            EllipticCurve::P256 => Some(Algorithm::ES256),
            EllipticCurve::P384 => Some(Algorithm::ES384),
            _ => None,
        },
        AlgorithmParameters::OctetKeyPair(_) => Some(Algorithm::EdDSA),
        _ => None,
    }
}
