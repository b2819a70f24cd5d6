//! What an authorization server gives out: tokens, and errors instead of them.
//!
//! Pure. Time is an argument.

use serde::Deserialize;
use taut::secrets::Secrets;

use super::metadata::refuse;
use crate::client::http::excerpt;
use crate::client::{HttpError, Secret};

/// Tokens of one login, as they are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tokens {
    pub(super) access: Secret,
    pub(super) refresh: Option<Secret>,
    /// The scopes that they are for.
    pub(super) scope: Option<String>,
    /// When the access token is over, in seconds since 1970; `None` if that is not known.
    pub(super) expires_at: Option<u64>,
}

/// How long before its end a token is no longer used: clocks differ, and a request takes time.
const MARGIN: u64 = 30;

impl Tokens {
    /// Whether the access token is over, as far as our clock says.
    pub(super) fn is_over(&self, now: u64) -> bool {
        self.expires_at.is_some_and(|end| now.saturating_add(MARGIN) >= end)
    }

    /// Whether it is over even without a margin.
    pub(super) fn has_ended(&self, now: u64) -> bool {
        self.expires_at.is_some_and(|end| now >= end)
    }
}

/// The answer of a token endpoint.
#[derive(Deserialize)]
struct Answer {
    access_token: Option<String>,
    token_type: Option<String>,
    refresh_token: Option<String>,
    scope: Option<String>,
    expires_in: Option<serde_json::Value>,
}

/// The error that an endpoint of an authorization server answers with.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct OauthError {
    error: String,
    error_description: Option<String>,
}

impl OauthError {
    pub(super) fn new(error: String, error_description: Option<String>) -> Self {
        Self { error, error_description }
    }

    pub(super) fn is(&self, error: &str) -> bool {
        self.error == error
    }

    /// Whether the grant will never be good again. Every other error may be over in a moment (RFC 6749, 5.2).
    pub(super) fn is_final(&self) -> bool {
        self.is("invalid_grant")
    }

    /// Whether the authorization server does not know the client, or not any more.
    pub(super) fn forgets_the_client(&self) -> bool {
        self.is("invalid_client") || self.is("unauthorized_client")
    }

    /// Whether the server says that it cannot answer now, with whichever status.
    pub(super) fn is_temporary(&self) -> bool {
        ["temporarily_unavailable", "server_error", "slow_down", "too_many_requests"]
            .contains(&&*self.error)
    }

    /// The name of the error alone, if it looks like one: a server may put anything there.
    pub(super) fn name(&self) -> String {
        let plain = |c: char| c.is_ascii_alphabetic() || matches!(c, '_' | '-' | ' ');
        match self.error.len() <= 60 && self.error.chars().all(plain) {
            true => self.error.clone(),
            false => String::new(),
        }
    }

    /// In a sentence, without the secrets that were sent.
    pub(super) fn words(&self, secrets: &[&Secret]) -> String {
        let mut text = self.error.clone();
        if let Some(description) = &self.error_description {
            text = format!("{text}: {description}");
        }
        let sent = Secrets::new();
        secrets.iter().for_each(|secret| sent.hide_always(secret.reveal()));
        excerpt(&sent.masked(&text))
    }
}

/// Reads the body of a token endpoint's answer that says yes.
pub(super) fn read(body: &[u8], asked_scope: Option<&str>, now: u64) -> Result<Tokens, HttpError> {
    let Ok(answer) = serde_json::from_slice::<Answer>(body) else {
        return Err(refuse("the token endpoint answered with something else than a token"));
    };
    let kind = answer.token_type.as_deref().unwrap_or("Bearer");
    if !kind.eq_ignore_ascii_case("bearer") {
        return Err(refuse(format!("the token is of the kind {:?}, not Bearer", excerpt(kind))));
    }
    let visible = |token: &String| {
        !token.is_empty() && token.bytes().all(|byte| (0x21..=0x7e).contains(&byte))
    };
    let Some(access) = answer.access_token.filter(visible) else {
        return Err(refuse("the token endpoint answered without a usable token"));
    };
    // Some servers write the number as text. One that has no time left is used until it is refused: asking
    // for another before each request would never end.
    let seconds = match &answer.expires_in {
        Some(serde_json::Value::Number(number)) => number.as_u64(),
        Some(serde_json::Value::String(text)) => text.parse().ok(),
        _ => None,
    };
    let expires_at = seconds.filter(|seconds| *seconds > MARGIN).map(|s| now.saturating_add(s));
    Ok(Tokens {
        access: Secret::new(access),
        refresh: answer.refresh_token.filter(visible).map(Secret::new),
        // RFC 6749: unsaid means what was asked for.
        scope: answer.scope.or_else(|| asked_scope.map(str::to_owned)),
        expires_at,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_read_and_its_end_is_known() {
        let read = |text: &str| read(text.as_bytes(), Some("asked"), 1000);
        let tokens = read(
            r#"{"access_token":"a","token_type":"bearer","expires_in":3600,"refresh_token":"r"}"#,
        );
        let tokens = tokens.unwrap();
        assert_eq!(tokens.scope.as_deref(), Some("asked"));
        assert!(!tokens.is_over(1000) && !tokens.is_over(4569) && tokens.is_over(4570));
        // A clock that was set back, or one that is wrong, only delays the refusal.
        assert!(!tokens.is_over(0));
        let text = read(r#"{"access_token":"a","expires_in":"3600","scope":"given"}"#).unwrap();
        assert_eq!((text.expires_at, text.scope.as_deref()), (Some(4600), Some("given")));
        for useless in ["0", "-1", "\"x\"", "null", "1", "1e99"] {
            let tokens =
                read(&format!(r#"{{"access_token":"a","expires_in":{useless}}}"#)).unwrap();
            assert!(!tokens.is_over(u64::MAX), "{useless}: used until it is refused");
        }
    }

    #[test]
    fn what_was_sent_is_in_no_error() {
        for repeated in ["code+77/x", r"code\u002B77\/x", "code%2B77%2Fx"] {
            let words = format!("{repeated} is over");
            let error = OauthError::new("invalid_grant".to_owned(), Some(words));
            let sent = Secret::new("code+77/x");
            assert_eq!(error.words(&[&sent]), "invalid_grant: *** is over", "{repeated}");
        }
    }

    #[test]
    fn what_is_no_token_is_refused() {
        for (body, why) in [
            ("<html>login</html>", "something else than a token"),
            ("{}", "without a usable token"),
            (r#"{"access_token":""}"#, "without a usable token"),
            (r#"{"access_token":"a\nb"}"#, "without a usable token"),
            (r#"{"access_token":"a","token_type":"DPoP"}"#, "of the kind \"DPoP\""),
        ] {
            let error = read(body.as_bytes(), None, 0).unwrap_err().to_string();
            assert!(error.contains(why), "{body}: {error}");
        }
    }
}
