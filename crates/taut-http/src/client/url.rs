//! Addresses: read, compared by origin, and resolved against each other.
//!
//! Pure. Knows RFC 3986 as far as `http` and `https` need it; must not know what is asked there.

use std::fmt;

use hyper::Uri;
use hyper::http::uri::{Authority, Scheme};
use taut::secrets::user_info;

use super::error::HttpError;

/// An absolute `http` or `https` address without user, password or fragment.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Url(Uri);

/// What decides whether two addresses are the same party: scheme, host and port.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Origin {
    https: bool,
    host: String,
    port: u16,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.https { "https" } else { "http" };
        write!(f, "{scheme}://{}", self.host)?;
        if self.port == default_port(self.https) { Ok(()) } else { write!(f, ":{}", self.port) }
    }
}

fn default_port(https: bool) -> u16 {
    if https { 443 } else { 80 }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Url {
    /// Reads an address that a person or a server gave.
    pub(crate) fn parse(text: &str) -> Result<Self, HttpError> {
        let bad = |why: &str| HttpError::Address { address: shown(text), why: why.to_owned() };
        if !text.contains("://") {
            return Err(bad("it has to begin with http:// or https://"));
        }
        let text = text.split('#').next().unwrap_or_default();
        let uri: Uri = text.parse().map_err(|error| bad(&format!("it cannot be read: {error}")))?;
        match uri.scheme_str() {
            Some("http" | "https") => {}
            Some(other) => return Err(bad(&format!("{other:?} is neither http nor https"))),
            None => return Err(bad("it names no scheme")),
        }
        let Some(authority) = uri.authority() else { return Err(bad("it names no host")) };
        if authority.host().is_empty() {
            return Err(bad("it names no host"));
        }
        let behind = authority.as_str().rsplit(['@', ']']).next().unwrap_or_default();
        if behind.contains(':') && authority.port_u16().is_none_or(|port| port == 0) {
            return Err(bad("its port is not a number from 1 to 65535"));
        }
        if authority.as_str().contains('@') {
            return Err(bad("it has a user or a password in it; give those as a header"));
        }
        Ok(Self(uri))
    }

    pub(crate) fn uri(&self) -> &Uri {
        &self.0
    }

    pub(crate) fn is_https(&self) -> bool {
        self.0.scheme() == Some(&Scheme::HTTPS)
    }

    pub(crate) fn host(&self) -> &str {
        self.0.host().unwrap_or_default()
    }

    pub(crate) fn path(&self) -> &str {
        self.0.path()
    }

    pub(crate) fn origin(&self) -> Origin {
        let https = self.is_https();
        let port = self.0.port_u16().unwrap_or_else(|| default_port(https));
        Origin { https, host: self.host().to_ascii_lowercase(), port }
    }

    /// Whether it is this machine, by name or by number.
    #[cfg(feature = "login")]
    pub(crate) fn is_loopback(&self) -> bool {
        is_loopback(self.host())
    }

    /// The address that a reference in a document or a header at this address means.
    pub(crate) fn join(&self, reference: &str) -> Result<Self, HttpError> {
        let reference = reference.trim();
        let scheme = self.0.scheme_str().unwrap_or("https");
        if reference.starts_with("//") {
            return Self::parse(&format!("{scheme}:{reference}"));
        }
        if has_scheme(reference) {
            return Self::parse(reference);
        }
        let (path, query) = match reference.split('#').next().unwrap_or_default().split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (reference.split('#').next().unwrap_or_default(), None),
        };
        let (path, query) = if path.is_empty() {
            (self.path().to_owned(), query.or_else(|| self.0.query()))
        } else if path.starts_with('/') {
            (without_dots(path), query)
        } else {
            let folder = self.path().rsplit_once('/').map_or("", |(folder, _)| folder);
            (without_dots(&format!("{folder}/{path}")), query)
        };
        let authority = self.0.authority().map(Authority::as_str).unwrap_or_default();
        let query = query.map(|query| format!("?{query}")).unwrap_or_default();
        Self::parse(&format!("{scheme}://{authority}{path}{query}"))
    }

    /// The same place with another path and no query.
    #[cfg(feature = "login")]
    pub(crate) fn at_path(&self, path: &str) -> Result<Self, HttpError> {
        Self::parse(&format!("{}{path}", self.origin()))
    }
}

/// An address as errors show it: no query, which may hold a secret, and no password.
fn shown(text: &str) -> String {
    let text = match (user_info(text), text.split_once("://")) {
        (Some(user), Some((scheme, rest))) => format!("{scheme}://{}", &rest[user.len() + 1..]),
        _ => text.to_owned(),
    };
    text.split(['?', '#']).next().unwrap_or_default().chars().take(200).collect()
}

fn has_scheme(reference: &str) -> bool {
    reference.split_once(':').is_some_and(|(scheme, _)| {
        scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
    })
}

/// Takes `.` and `..` out of an absolute path.
fn without_dots(path: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let mut parts = path.split('/').skip(1).peekable();
    while let Some(part) = parts.next() {
        let last = parts.peek().is_none();
        match part {
            "." if last => kept.push(""),
            "." => {}
            ".." => {
                kept.pop();
                if last {
                    kept.push("");
                }
            }
            part => kept.push(part),
        }
    }
    format!("/{}", kept.join("/"))
}

/// Whether a host is this machine, by name or by number.
pub(crate) fn is_loopback(host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost")
        || host.parse().is_ok_and(|ip: std::net::IpAddr| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    #[test]
    fn references_are_resolved_as_rfc_3986_says() {
        let base = url("https://a.example:8443/b/c/d?q=1");
        let cases = [
            ("g", "https://a.example:8443/b/c/g"),
            ("./g", "https://a.example:8443/b/c/g"),
            ("g/", "https://a.example:8443/b/c/g/"),
            ("/g", "https://a.example:8443/g"),
            ("//h/x", "https://h/x"),
            ("?y=2", "https://a.example:8443/b/c/d?y=2"),
            ("g?y=2", "https://a.example:8443/b/c/g?y=2"),
            ("", "https://a.example:8443/b/c/d?q=1"),
            (".", "https://a.example:8443/b/c/"),
            ("..", "https://a.example:8443/b/"),
            ("../../../g", "https://a.example:8443/g"),
            ("http://z/", "http://z/"),
            ("/messages?sessionId=1:2", "https://a.example:8443/messages?sessionId=1:2"),
        ];
        for (reference, wanted) in cases {
            assert_eq!(base.join(reference).unwrap().to_string(), wanted, "{reference}");
        }
    }

    #[test]
    fn an_origin_is_scheme_host_and_port() {
        assert_eq!(url("https://A.example/x").origin(), url("https://a.example:443/y").origin());
        assert_ne!(url("https://a.example/").origin(), url("http://a.example/").origin());
        assert_ne!(url("http://a.example/").origin(), url("http://a.example:81/").origin());
        assert_eq!(url("http://[::1]:81/x").origin().to_string(), "http://[::1]:81");
    }

    #[test]
    fn what_is_no_address_of_a_server_says_why_and_shows_no_secret() {
        let cases = [
            ("ftp://x/", "neither http nor https"),
            ("example.com/mcp", "begin with http://"),
            ("https:///x", "is no usable address"),
            ("http://127.0.0.1:99999/mcp", "its port is not a number"),
            ("http://[::1]:0/", "its port is not a number"),
            ("http://x:/", "its port is not a number"),
            ("https://me:secret@x/?token=secret", "as a header"),
            ("https://me:secret?a@x/", "is no usable address"),
            ("https://me:secret/a@x/", "is no usable address"),
        ];
        for (text, why) in cases {
            let error = Url::parse(text).unwrap_err().to_string();
            assert!(error.contains(why), "{text}: {error}");
            assert!(!error.contains("secret"), "{error}");
        }
    }

    #[cfg(feature = "login")]
    #[test]
    fn loopback_is_known_by_name_and_number() {
        for local in ["http://localhost/", "http://127.0.0.1:80/", "http://[::1]/"] {
            assert!(url(local).is_loopback(), "{local}");
        }
        assert!(!url("http://localhost.example/").is_loopback());
    }
}
