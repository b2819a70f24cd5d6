//! Who sends a request: tokens, a hook of the program's own, and how a client learns what it lacks.
//!
//! Knows `Authorization`, `WWW-Authenticate` and the metadata of RFC 9728; must not know sessions.
//! Each request is checked (AUS-06). AUS-01 to AUS-05.

use std::fmt;
use std::future::Future;
use std::pin::Pin;

use http::header::{AUTHORIZATION, CACHE_CONTROL, ORIGIN, WWW_AUTHENTICATE};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, Uri};
use serde::Serialize;
use taut::transport::Principal;

use super::body::Body;
use super::guard::preflight;
use super::options::Options;
use super::refusal::{Refusal, json};

/// Why a request is not served to its sender.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AuthError {
    /// There is no token: 401.
    Missing,
    /// The token is not valid here, or has expired: 401.
    Invalid {
        /// What is wrong with it, for the client's user.
        reason: String,
    },
    /// The token is valid, and does not allow this: 403.
    InsufficientScope {
        /// All scopes that the request needs.
        scopes: Vec<String>,
    },
    /// The header `Authorization` cannot be read: 400.
    Malformed {
        /// What is wrong with it.
        reason: String,
    },
    /// It cannot be told at the moment, for instance because keys could not be fetched: 503.
    Unavailable {
        /// What is missing.
        reason: String,
    },
}

impl AuthError {
    /// The token is not valid here.
    pub fn invalid(reason: impl Into<String>) -> Self {
        Self::Invalid { reason: reason.into() }
    }
}

impl fmt::Display for AuthError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("a token is needed: send Authorization: Bearer TOKEN"),
            Self::Invalid { reason } => write!(f, "the token is not accepted: {reason}"),
            Self::InsufficientScope { scopes } => {
                write!(f, "the token does not allow this; needed scopes: {}", scopes.join(" "))
            }
            Self::Malformed { reason } => write!(f, "Authorization cannot be read: {reason}"),
            Self::Unavailable { reason } => {
                write!(f, "tokens cannot be checked at the moment: {reason}")
            }
        }
    }
}

impl std::error::Error for AuthError {}

/// Finds out who sends a request.
pub(super) type Authenticate = dyn Fn(&Parts) -> AuthFuture + Send + Sync;

pub(super) type AuthFuture = Pin<Box<dyn Future<Output = Result<Principal, AuthError>> + Send>>;

/// The token of a request.
///
/// # Errors
/// There is none, or the header cannot be read.
pub fn bearer(headers: &HeaderMap) -> Result<&str, AuthError> {
    let malformed = |reason: &str| AuthError::Malformed { reason: reason.to_owned() };
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let value = values.next().ok_or(AuthError::Missing)?;
    if values.next().is_some() {
        return Err(malformed("it is there twice"));
    }
    let text = value.to_str().map_err(|_| malformed("it is not plain ASCII"))?;
    let (scheme, token) = text.split_once(' ').ok_or_else(|| malformed("it is no Bearer TOKEN"))?;
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Err(AuthError::Missing);
    }
    Ok(token.trim())
}

/// A token, and who has it.
pub(super) struct Secret {
    principal: Principal,
    token: String,
}

impl Secret {
    pub(super) fn new(principal: String, token: String) -> Self {
        Self { principal: Principal::new(principal), token }
    }

    /// Compares in a time that depends on the lengths only.
    fn is(&self, given: &str) -> bool {
        let (ours, given) = (self.token.as_bytes(), given.as_bytes());
        let mut differ = u8::from(ours.len() != given.len());
        for (at, byte) in given.iter().enumerate() {
            let other = ours.get(at).or_else(|| ours.first()).copied().unwrap_or_default();
            differ |= std::hint::black_box(byte ^ other);
        }
        // An empty token is a mistake in a script, not a token.
        std::hint::black_box(differ) == 0 && !ours.is_empty()
    }
}

/// What clients are told about where tokens come from (RFC 9728).
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct ProtectedResource {
    /// The URL of the endpoint, as clients know it.
    pub resource: String,
    /// The issuers of tokens; at least one (AUS-02).
    pub authorization_servers: Vec<String>,
    /// The scopes that clients should ask for (AUS-04).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scopes_supported: Vec<String>,
    /// Tokens are sent in the header only.
    bearer_methods_supported: [&'static str; 1],
    /// A name for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_name: Option<String>,
}

/// Where the metadata of a resource is, before the path of the resource.
const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";

impl ProtectedResource {
    /// The resource at this URL, for which this issuer gives tokens.
    pub fn new(resource: impl Into<String>, issuer: impl Into<String>) -> Self {
        Self {
            resource: resource.into(),
            authorization_servers: vec![issuer.into()],
            scopes_supported: Vec::new(),
            bearer_methods_supported: ["header"],
            resource_name: None,
        }
    }

    /// Scopes that clients should ask for. `offline_access` is left out: it is between the client and
    /// the issuer (AUS-04).
    #[must_use]
    pub fn scopes<T: Into<String>>(mut self, scopes: impl IntoIterator<Item = T>) -> Self {
        let scopes = scopes.into_iter().map(Into::into);
        self.scopes_supported = scopes.filter(|scope: &String| scope != "offline_access").collect();
        self
    }

    /// The URL of the metadata: the well-known path stands before the path of the resource.
    #[must_use]
    pub fn metadata_url(&self) -> String {
        let uri: Uri = self.resource.parse().unwrap_or_default();
        let path = uri.path().trim_end_matches('/');
        match (uri.scheme_str(), uri.authority()) {
            (Some(scheme), Some(authority)) => format!("{scheme}://{authority}{WELL_KNOWN}{path}"),
            _ => format!("{WELL_KNOWN}{path}"),
        }
    }
}

/// Whether nothing but metadata is served at a path. What guards the endpoint in front of this server
/// often lets such paths pass, because clients need them before they have a token.
pub(super) fn is_well_known(path: &str) -> bool {
    path.starts_with("/.well-known/")
}

/// The metadata, for a request to a well-known path.
pub(super) fn metadata(options: &Options, head: &Parts) -> Result<Response<Body>, Refusal> {
    let nothing = || Refusal::new(StatusCode::NOT_FOUND, "no metadata is served at this path");
    let resource = options.resource.as_deref().ok_or_else(nothing)?;
    let rest = head.uri.path().strip_prefix(WELL_KNOWN).ok_or_else(nothing)?;
    let uri: Uri = resource.resource.parse().unwrap_or_default();
    // AUS-03: with the path of the endpoint, or without.
    let same = rest.is_empty() || rest.trim_end_matches('/') == uri.path().trim_end_matches('/');
    match head.method {
        Method::GET | Method::HEAD if same => {}
        // A page that reads it with a header of its own asks first.
        Method::OPTIONS if same && head.headers.contains_key(ORIGIN) => return Ok(preflight(head)),
        _ => return Err(nothing()),
    }
    let mut response = json(StatusCode::OK, serde_json::to_vec(resource).map_err(|_| nothing())?);
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("max-age=3600"));
    Ok(response)
}

/// Who sends a request.
pub(super) async fn authenticate(options: &Options, head: &Parts) -> Result<Principal, Refusal> {
    let found = match (&options.authenticate, options.secrets.is_empty()) {
        (None, true) => return Ok(Principal::ANONYMOUS),
        (hook, false) => match bearer(&head.headers).map(|token| secret(options, token)) {
            Ok(Some(principal)) => Ok(principal),
            // The hook may know it.
            other => match (hook, other) {
                (Some(hook), _) => hook(head).await,
                (None, Err(error)) => Err(error),
                (None, Ok(_)) => Err(AuthError::invalid("it is not the one that was set")),
            },
        },
        (Some(hook), true) => hook(head).await,
    };
    found.map_err(|error| refuse(options, &error))
}

fn secret(options: &Options, token: &str) -> Option<Principal> {
    // All are compared, so that the time does not tell which one it was.
    options.secrets.iter().fold(None, |found, secret| match secret.is(token) {
        true => Some(secret.principal.clone()),
        false => found,
    })
}

fn refuse(options: &Options, error: &AuthError) -> Refusal {
    let resource = options.resource.as_deref();
    let configured = || resource.map(|resource| resource.scopes_supported.clone());
    let (status, kind, scopes) = match error {
        // RFC 6750: a request without a token is told no error code.
        AuthError::Missing => (StatusCode::UNAUTHORIZED, None, configured()),
        AuthError::Invalid { .. } => {
            (StatusCode::UNAUTHORIZED, Some("invalid_token"), configured())
        }
        // AUS-05
        AuthError::InsufficientScope { scopes } => {
            (StatusCode::FORBIDDEN, Some("insufficient_scope"), Some(scopes.clone()))
        }
        AuthError::Malformed { .. } => (StatusCode::BAD_REQUEST, Some("invalid_request"), None),
        AuthError::Unavailable { .. } => return Refusal::busy(error.to_string()),
    };
    let mut challenge = "Bearer realm=\"mcp\"".to_owned();
    let mut add = |name: &str, value: &str| {
        let plain = value.chars().filter(|c| matches!(c, ' '..='~') && !matches!(c, '"' | '\\'));
        challenge += &format!(", {name}=\"{}\"", plain.collect::<String>());
    };
    if let Some(kind) = kind {
        add("error", kind);
        add("error_description", &error.to_string());
    }
    if let Some(scopes) = scopes.filter(|scopes| !scopes.is_empty()) {
        add("scope", &scopes.join(" "));
    }
    if let Some(resource) = resource {
        add("resource_metadata", &resource.metadata_url());
    }
    let refusal = Refusal::new(status, error.to_string());
    match HeaderValue::from_str(&challenge) {
        Ok(challenge) => refusal.header(WWW_AUTHENTICATE, challenge),
        Err(_) => refusal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_the_same_only_if_every_byte_is() {
        let secret = Secret::new("p".into(), "s3cret".into());
        assert!(secret.is("s3cret"));
        for wrong in ["", "s", "s3cre", "s3crets", "S3cret", "x3cret", "ssssss"] {
            assert!(!secret.is(wrong), "{wrong:?}");
        }
        assert!(!Secret::new("p".into(), String::new()).is(""));
    }

    #[test]
    fn aus_03_the_metadata_stands_before_the_path() {
        let url = |resource: &str| ProtectedResource::new(resource, "https://i").metadata_url();
        let base = "https://a.example/.well-known/oauth-protected-resource";
        assert_eq!(url("https://a.example/mcp"), format!("{base}/mcp"));
        assert_eq!(url("https://a.example"), base);
        assert_eq!(url("https://a.example:8443/"), base.replace("example", "example:8443"));
    }
}
