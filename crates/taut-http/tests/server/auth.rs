//! Who is served: tokens, a hook, and what a client is told that is not.

use http::Method;
use serde_json::json;
use taut::transport::Principal;
use taut_http::server::{AuthError, Options, ProtectedResource, bearer};

use crate::support::{Direct, direct};

async fn status(http: &Direct, token: Option<&str>) -> (u16, String, String) {
    let mut headers = vec![("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/list")];
    headers.extend(token.map(|token| ("authorization", token)));
    let (_, body) = crate::support::modern("tools/list", json!({}));
    let reply = http.post(&headers, body).await;
    let challenge = reply.header("www-authenticate").unwrap_or_default();
    (reply.status.as_u16(), challenge, reply.text().await)
}

/// AUS-01, AUS-06: every request needs the token.
#[tokio::test]
async fn aus_01_and_06_a_token_is_needed_each_time() {
    let (http, _) = direct(Options::new().token("s3cret"));
    assert_eq!(status(&http, Some("Bearer s3cret")).await.0, 200);
    assert_eq!(status(&http, Some("bearer s3cret")).await.0, 200);
    let (missing, challenge, body) = status(&http, None).await;
    assert_eq!((missing, challenge.as_str()), (401, "Bearer realm=\"mcp\""));
    assert!(body.contains("Authorization: Bearer"), "{body}");
    for wrong in ["Bearer s3cre", "Bearer s3cret2", "Bearer ", "Basic czNjcmV0"] {
        assert_eq!(status(&http, Some(wrong)).await.0, 401, "{wrong}");
    }
    assert!(status(&http, Some("Bearer x")).await.1.contains("error=\"invalid_token\""));
    assert_eq!(status(&http, Some("s3cret")).await.0, 400);
    // GET and DELETE as well.
    for method in [Method::GET, Method::DELETE] {
        let reply = http.send(method, &[("mcp-session-id", "x")], "").await;
        assert_eq!(reply.status, 401);
    }
}

fn guarded() -> Options {
    let resource =
        ProtectedResource::new("https://mcp.example.com/mcp", "https://login.example.com")
            .scopes(["tools", "offline_access"]);
    Options::new().protected_resource(resource).authenticate(|head| {
        let token = bearer(&head.headers).map(str::to_owned);
        async move {
            match token?.as_str() {
                "ann" => Ok(Principal::new("ann")),
                "weak" => Err(AuthError::InsufficientScope {
                    scopes: vec!["tools".to_owned(), "admin".to_owned()],
                }),
                "later" => Err(AuthError::Unavailable { reason: "no keys".to_owned() }),
                _ => Err(AuthError::invalid("it has \"expired\"")),
            }
        }
    })
}

/// AUS-01, AUS-03, AUS-04, AUS-05: what a client is told by 401 and 403.
#[tokio::test]
async fn aus_03_04_and_05_challenges() {
    let (http, _) = direct(guarded());
    assert_eq!(status(&http, Some("Bearer ann")).await.0, 200);
    let metadata =
        "resource_metadata=\"https://mcp.example.com/.well-known/oauth-protected-resource/mcp\"";
    let (code, challenge, _) = status(&http, None).await;
    assert_eq!(code, 401);
    assert_eq!(challenge, format!("Bearer realm=\"mcp\", scope=\"tools\", {metadata}"));
    let (code, challenge, body) = status(&http, Some("Bearer old")).await;
    assert_eq!(code, 401);
    assert!(challenge.contains("error=\"invalid_token\"") && challenge.contains(metadata));
    assert!(challenge.contains("it has expired"), "{challenge}");
    assert!(body.contains("expired"), "{body}");
    let (code, challenge, _) = status(&http, Some("Bearer weak")).await;
    assert_eq!(code, 403);
    assert!(challenge.contains("error=\"insufficient_scope\""));
    assert!(challenge.contains("scope=\"tools admin\"") && challenge.contains(metadata));
    assert_eq!(status(&http, Some("Bearer later")).await.0, 503);
}

/// AUS-02, AUS-03: the metadata is served without a token, with the path of the endpoint and without.
#[tokio::test]
async fn aus_02_and_03_the_metadata_is_served() {
    let (http, _) = direct(guarded());
    for (path, status) in [("", 200), ("/mcp", 200), ("/mcp/", 200), ("/other", 404)] {
        let uri = format!("/.well-known/oauth-protected-resource{path}");
        let request = http::Request::get(uri).header("host", "localhost").body(String::new());
        let response = http.0.handle(request.unwrap()).await;
        assert_eq!(response.status().as_u16(), status, "{path}");
        if status == 200 {
            use http_body_util::BodyExt;
            let body = response.into_body().collect().await.unwrap().to_bytes();
            let metadata: serde_json::Value = serde_json::from_slice(&body).unwrap();
            let expected = json!({
                "resource": "https://mcp.example.com/mcp",
                "authorization_servers": ["https://login.example.com"],
                "scopes_supported": ["tools"],
                "bearer_methods_supported": ["header"],
            });
            assert_eq!(metadata, expected);
        }
    }
}

/// HSC-01, HSC-04: pages of other sites are refused; those of named origins may ask and read.
#[tokio::test]
async fn hsc_01_and_04_pages() {
    let (http, _) = direct(Options::new().allow_origin("https://app.example"));
    let (usual, body) = crate::support::modern("tools/list", json!({}));
    for (origin, code, allowed) in [
        ("https://app.example", 200, true),
        ("http://localhost:6274", 200, false),
        ("https://evil.example", 403, false),
        ("null", 403, false),
    ] {
        let headers = usual.iter().map(|(name, value)| (*name, value.as_str()));
        let headers: Vec<_> = headers.chain([("origin", origin)]).collect();
        let reply = http.post(&headers, &body).await;
        assert_eq!(reply.status.as_u16(), code, "{origin}");
        let allow = reply.header("access-control-allow-origin");
        assert_eq!(allow.as_deref(), allowed.then_some(origin), "{origin}");
        if code == 403 {
            assert!(reply.text().await.contains("allow_origin"));
        }
    }
    let asked = [
        ("origin", "https://app.example"),
        ("access-control-request-method", "POST"),
        ("access-control-request-headers", "content-type, mcp-param-region, x-other"),
    ];
    let reply = http.send(Method::OPTIONS, &asked, "").await;
    assert_eq!(reply.status, 204);
    let allowed = reply.header("access-control-allow-headers").unwrap().to_ascii_lowercase();
    for header in ["authorization", "mcp-session-id", "last-event-id", "mcp-param-region"] {
        assert!(allowed.contains(header), "{allowed}");
    }
    assert!(!allowed.contains("x-other"));
    let exposed = reply.header("access-control-expose-headers").unwrap();
    assert!(exposed.contains("Mcp-Session-Id") && exposed.contains("WWW-Authenticate"));
    let foreign = [("origin", "https://evil.example"), ("access-control-request-method", "POST")];
    assert_eq!(http.send(Method::OPTIONS, &foreign, "").await.status, 403);
}

/// HSC-02: a name that is not the server's own is refused, also without an `Origin`.
#[tokio::test]
async fn hsc_02_foreign_hosts() {
    let (http, _) = direct(Options::new().allow_host("mcp.example.com"));
    for (host, code) in [("mcp.example.com", 200), ("evil.example", 403), ("-", 400)] {
        let (usual, body) = crate::support::modern("tools/list", json!({}));
        let headers = usual.iter().map(|(name, value)| (*name, value.as_str()));
        let headers: Vec<_> = headers.chain([("host", host)]).collect();
        let reply = http.post(&headers, body).await;
        assert_eq!(reply.status.as_u16(), code, "{host}");
        if code == 403 {
            assert!(reply.text().await.contains("--allow-host"));
        }
    }
}
