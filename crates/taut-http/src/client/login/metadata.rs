//! What a server and its authorization server say about themselves, where it is found, and whether it may
//! be believed.
//!
//! Pure. AUC-02 to AUC-06, AUC-08, AUC-11.

use serde::Deserialize;

use crate::client::HttpError;
use crate::client::url::Url;

/// RFC 9728: what a protected server says about itself.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct ResourceMetadata {
    pub(super) resource: Option<String>,
    #[serde(default)]
    pub(super) authorization_servers: Vec<String>,
    pub(super) scopes_supported: Option<Vec<String>>,
}

/// RFC 8414 and OpenID Connect Discovery: what an authorization server says about itself.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct ServerMetadata {
    pub(super) issuer: String,
    #[serde(default)]
    pub(super) authorization_endpoint: Option<String>,
    pub(super) token_endpoint: String,
    #[serde(default)]
    pub(super) registration_endpoint: Option<String>,
    #[serde(default)]
    pub(super) scopes_supported: Option<Vec<String>>,
    #[serde(default)]
    code_challenge_methods_supported: Option<Vec<String>>,
    #[serde(default)]
    pub(super) token_endpoint_auth_methods_supported: Option<Vec<String>>,
    #[serde(default)]
    pub(super) client_id_metadata_document_supported: bool,
    #[serde(default)]
    pub(super) authorization_response_iss_parameter_supported: bool,
    /// Assumed by 2025-03-26, not read from a document.
    #[serde(skip)]
    assumed: bool,
}

pub(super) fn refuse(why: impl Into<String>) -> HttpError {
    HttpError::Login { why: why.into() }
}

impl ServerMetadata {
    /// 2025-03-26 without a document: the server itself, at the default paths (AUC-03).
    pub(super) fn assumed(server: &Url) -> Self {
        let at = |path: &str| format!("{}{path}", server.origin());
        Self {
            issuer: server.origin().to_string(),
            authorization_endpoint: Some(at("/authorize")),
            token_endpoint: at("/token"),
            registration_endpoint: Some(at("/register")),
            assumed: true,
            ..Self::default()
        }
    }

    /// Whether the document belongs to the issuer that was asked for, and all its addresses are safe.
    pub(super) fn check(&self, issuer: &str) -> Result<(), HttpError> {
        // AUC-04: as plain strings.
        if self.issuer != issuer {
            return Err(refuse(format!(
                "the authorization server {issuer} says that it is {:?}",
                crate::client::http::excerpt(&self.issuer)
            )));
        }
        let addresses = [
            self.authorization_endpoint.as_deref(),
            Some(self.token_endpoint.as_str()),
            self.registration_endpoint.as_deref(),
        ];
        addresses.into_iter().flatten().try_for_each(|address| safe(address).map(drop))
    }

    /// AUC-05
    pub(super) fn check_pkce(&self) -> Result<(), HttpError> {
        let methods = self.code_challenge_methods_supported.as_deref().unwrap_or_default();
        match self.assumed || methods.iter().any(|method| method == "S256") {
            true => Ok(()),
            false => Err(refuse(
                "the authorization server does not say that it supports PKCE with S256, without which \
                 a login is not safe",
            )),
        }
    }
}

/// An address that may be asked with secrets: https, or this machine.
pub(super) fn safe(address: &str) -> Result<Url, HttpError> {
    let url = Url::parse(address)?;
    match url.is_https() || url.is_loopback() {
        true => Ok(url),
        false => Err(HttpError::Address {
            address: crate::client::http::shown(&url),
            why: "a login needs https, except on this machine".to_owned(),
        }),
    }
}

/// The resource metadata at its well-known places: with the path, then at the root (AUC-02).
pub(super) fn resource_metadata_at(server: &Url) -> Vec<Result<Url, HttpError>> {
    const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";
    let path = server.path().trim_end_matches('/');
    let mut found = Vec::new();
    if !path.is_empty() {
        found.push(server.at_path(&format!("{WELL_KNOWN}{path}")));
    }
    found.push(server.at_path(WELL_KNOWN));
    found
}

/// The metadata of an issuer at its well-known places, in order (AUC-03).
pub(super) fn server_metadata_at(issuer: &Url) -> Vec<Result<Url, HttpError>> {
    const OAUTH: &str = "/.well-known/oauth-authorization-server";
    const OPENID: &str = "/.well-known/openid-configuration";
    let path = issuer.path().trim_end_matches('/');
    let mut found =
        vec![issuer.at_path(&format!("{OAUTH}{path}")), issuer.at_path(&format!("{OPENID}{path}"))];
    if !path.is_empty() {
        found.push(issuer.at_path(&format!("{path}{OPENID}")));
    }
    found
}

/// The name of a server in tokens: its address without a trailing slash at the root (AUC-06).
pub(super) fn canonical(server: &Url) -> String {
    match server.path() {
        "/" | "" => server.origin().to_string(),
        path => format!("{}{path}", server.origin()),
    }
}

/// The name of a server in the store: gateways tell their tenants apart by the query.
pub(super) fn key(server: &Url) -> String {
    match server.uri().query() {
        None | Some("") => canonical(server),
        Some(query) => format!("{}?{query}", canonical(server)),
    }
}

/// The resource that a token is asked for: what the metadata names, if it covers the server.
pub(super) fn resource(server: &Url, stated: Option<&str>) -> Result<String, HttpError> {
    let Some(stated) = stated else { return Ok(canonical(server)) };
    let covers = Url::parse(stated).is_ok_and(|resource| {
        let folder = resource.path().trim_end_matches('/');
        let inside = server.path().strip_prefix(folder);
        let tenant = resource.uri().query();
        resource.origin() == server.origin()
            && tenant.is_none_or(|tenant| server.uri().query() == Some(tenant))
            && inside.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    });
    match covers {
        true => Ok(stated.to_owned()),
        false => Err(refuse(format!(
            "the server says that it is {:?}, which is another address than {}",
            crate::client::http::excerpt(stated),
            crate::client::http::shown(server)
        ))),
    }
}

/// The scopes to ask for (AUC-11): what the server named, else all that it knows, else none; what was
/// asked for before, so that nothing is lost; and a refresh token, where the authorization server has that.
pub(super) fn scope(
    challenged: Option<&str>,
    resource: Option<&[String]>,
    before: Option<&str>,
    authorization_server: Option<&[String]>,
) -> Option<String> {
    const OFFLINE: &str = "offline_access";
    let mut scopes: Vec<&str> = Vec::new();
    let named: Vec<&str> = match (challenged, resource) {
        (Some(challenged), _) => challenged.split_ascii_whitespace().collect(),
        (None, Some(known)) => known.iter().map(String::as_str).collect(),
        (None, None) => Vec::new(),
    };
    let before = before.unwrap_or_default().split_ascii_whitespace();
    for scope in before.chain(named) {
        if !scopes.contains(&scope) {
            scopes.push(scope);
        }
    }
    let offline = authorization_server.is_some_and(|known| known.iter().any(|s| s == OFFLINE));
    if offline && !scopes.contains(&OFFLINE) {
        scopes.push(OFFLINE);
    }
    (!scopes.is_empty()).then(|| scopes.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(found: Vec<Result<Url, HttpError>>) -> Vec<String> {
        found.into_iter().map(|url| url.unwrap().to_string()).collect()
    }

    /// AUC-02
    #[test]
    fn auc_02_resource_metadata_is_looked_for_with_the_path_and_at_the_root() {
        let at = |server: &str| texts(resource_metadata_at(&Url::parse(server).unwrap()));
        assert_eq!(
            at("https://x.example/public/mcp"),
            [
                "https://x.example/.well-known/oauth-protected-resource/public/mcp",
                "https://x.example/.well-known/oauth-protected-resource"
            ]
        );
        assert_eq!(
            at("https://x.example/"),
            ["https://x.example/.well-known/oauth-protected-resource"]
        );
    }

    /// AUC-03
    #[test]
    fn auc_03_an_issuer_is_looked_up_in_the_order_of_the_revisions() {
        let at = |issuer: &str| texts(server_metadata_at(&Url::parse(issuer).unwrap()));
        assert_eq!(
            at("https://a.example/tenant1"),
            [
                "https://a.example/.well-known/oauth-authorization-server/tenant1",
                "https://a.example/.well-known/openid-configuration/tenant1",
                "https://a.example/tenant1/.well-known/openid-configuration",
            ]
        );
        assert_eq!(
            at("https://a.example"),
            [
                "https://a.example/.well-known/oauth-authorization-server",
                "https://a.example/.well-known/openid-configuration",
            ]
        );
    }

    /// AUC-06
    #[test]
    fn auc_06_the_resource_has_to_cover_the_server() {
        let server = Url::parse("https://x.example/mcp").unwrap();
        for good in [
            "https://x.example/mcp",
            "https://x.example",
            "https://x.example/",
            "https://X.example:443/mcp",
        ] {
            assert_eq!(resource(&server, Some(good)).unwrap(), good, "as it was written");
        }
        for bad in
            ["https://evil.example/mcp", "https://x.example/m", "http://x.example/mcp", "nonsense"]
        {
            assert!(resource(&server, Some(bad)).is_err(), "{bad}");
        }
        assert_eq!(resource(&server, None).unwrap(), "https://x.example/mcp");
        assert_eq!(canonical(&Url::parse("https://x.example/").unwrap()), "https://x.example");
        let tenant = Url::parse("https://x.example/mcp?tenant=a").unwrap();
        assert_eq!(resource(&tenant, None).unwrap(), "https://x.example/mcp", "RFC 8707: no query");
        for (stated, good) in [("?tenant=a", true), ("", true), ("?tenant=b", false)] {
            let stated = format!("https://x.example/mcp{stated}");
            assert_eq!(resource(&tenant, Some(&stated)).is_ok(), good, "{stated}");
        }
        assert_eq!(key(&tenant), "https://x.example/mcp?tenant=a");
        assert_eq!(key(&Url::parse("https://x.example/mcp?").unwrap()), "https://x.example/mcp");
    }

    /// AUC-11
    #[test]
    fn auc_11_scopes_come_from_the_challenge_or_the_metadata_and_add_up() {
        let known = ["a".to_owned(), "b".to_owned()];
        let offline = ["offline_access".to_owned()];
        let of = |challenged, resource: Option<&[String]>, before, server: Option<&[String]>| {
            scope(challenged, resource, before, server).unwrap_or_default()
        };
        assert_eq!(of(Some("c"), Some(&known), None, None), "c");
        assert_eq!(of(None, Some(&known), None, None), "a b");
        assert_eq!(of(None, None, None, None), "");
        assert_eq!(of(Some("c a"), None, Some("a b"), None), "a b c");
        assert_eq!(of(Some("c"), None, None, Some(&offline)), "c offline_access");
        assert_eq!(of(Some("c"), None, None, Some(&known)), "c");
    }

    /// AUC-04, AUC-05, AUC-12: another issuer, no PKCE and plain http are refused.
    #[test]
    fn auc_04_and_05_metadata_that_cannot_be_believed_is_refused() {
        let read = |text: &str| serde_json::from_str::<ServerMetadata>(text).unwrap();
        let good = read(
            r#"{"issuer":"https://a.example","authorization_endpoint":"https://a.example/auth",
                "token_endpoint":"https://a.example/token","code_challenge_methods_supported":["S256"]}"#,
        );
        assert!(good.check("https://a.example").is_ok() && good.check_pkce().is_ok());
        assert!(good.check("https://a.example/").is_err(), "not even a slash may differ");
        for methods in ["null", "[]", r#"["plain"]"#] {
            let text = format!(
                r#"{{"issuer":"i","token_endpoint":"t","code_challenge_methods_supported":{methods}}}"#
            );
            assert!(read(&text).check_pkce().is_err(), "{methods}");
        }
        let plain = read(r#"{"issuer":"https://a.example","token_endpoint":"http://a.example/t"}"#);
        assert!(plain.check("https://a.example").unwrap_err().to_string().contains("needs https"));
        let server = Url::parse("http://localhost:1/mcp").unwrap();
        assert!(ServerMetadata::assumed(&server).check_pkce().is_ok());
    }
}
