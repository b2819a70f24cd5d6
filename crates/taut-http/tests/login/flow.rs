//! The whole path of a login, and what comes after it.

use serde_json::json;
use taut_http::client::Secret;
use taut_http::client::login::{LoginOptions, TokenStore};

use crate::authority::*;

/// A folder for one test, removed with it.
pub(crate) struct Folder(pub(crate) std::path::PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("taut-login-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn store(&self) -> TokenStore {
        TokenStore::at(self.0.join("state/logins.json"))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// AUC-01 to AUC-07, AUC-09, AUC-10: from the first 401 to a call, by the listener and by hand.
#[tokio::test]
async fn a_user_logs_in_and_the_call_is_made() {
    for does in [Does::LogsIn, Does::Pastes] {
        let authority = authority();
        let server = protected(authority.clone()).await;
        let user = User::new(&authority, does);
        let client = connect_with(&server, options(&user)).await.unwrap();
        assert_eq!(client.call("t", json!({})).await.unwrap().text().unwrap(), "hello");
        assert_eq!(user.count(), 1);

        let asked = user.asked.lock().unwrap()[0].clone();
        let form = authority.lock().unwrap().forms[0].clone();
        assert_eq!(asked["response_type"], "code");
        assert_eq!(asked["code_challenge_method"], "S256");
        assert_eq!(asked["scope"], "read");
        assert_eq!(asked["resource"], server.url);
        assert_eq!(form["resource"], server.url);
        assert_eq!(form["redirect_uri"], asked["redirect_uri"]);
        assert!(asked["redirect_uri"].starts_with("http://127.0.0.1:"));
        assert_eq!(form["client_secret"], "client-secret-1", "as the registration said");
        assert!(form["code_verifier"].len() >= 43 && asked["state"].len() >= 43);
        let registered = &server.all(|seen| seen.path == "/register")[0].json();
        assert_eq!(registered["application_type"], "native");
        assert_eq!(registered["grant_types"], json!(["authorization_code", "refresh_token"]));
        // AUC-01: nothing of it in an address.
        assert!(server.all(|seen| seen.path.contains("secret")).is_empty());
    }
}

/// A login that is kept is used by the next program without a question, and its registration by the next
/// login.
#[tokio::test]
async fn a_login_that_is_kept_is_used_again() {
    let folder = Folder::new("kept");
    let authority = authority();
    let server = protected(authority.clone()).await;
    let user = User::new(&authority, Does::Pastes);
    for _ in 0..2 {
        connect_with(&server, options(&user).store(folder.store())).await.unwrap();
    }
    assert_eq!(user.count(), 1);
    let listed = folder.store().list().await.unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0].server, server.url);
    assert!(listed[0].refreshable);
    assert!(!format!("{listed:?}").contains("secret"));

    authority.lock().unwrap().valid.clear();
    authority.lock().unwrap().revoked = true;
    connect_with(&server, options(&user).store(folder.store())).await.unwrap();
    assert_eq!(user.count(), 2);
    assert_eq!(server.all(|seen| seen.path == "/register").len(), 1, "it is registered once");

    assert!(folder.store().forget(&server.url).await.unwrap());
    assert!(!folder.store().forget(&server.url).await.unwrap());
    assert!(folder.store().list().await.unwrap().is_empty());
}

/// Without anybody to ask, the server's refusal is the answer.
#[tokio::test]
async fn without_a_user_the_refusal_is_told() {
    let server = protected(authority()).await;
    let error = connect_with(&server, LoginOptions::new()).await.unwrap_err().to_string();
    assert!(error.contains("401 Unauthorized; it wants a login or a token"), "{error}");
}

/// AUC-11: more rights are asked for once, old ones together with new ones.
#[tokio::test]
async fn auc_11_more_rights_are_asked_for_once() {
    let authority = authority();
    authority.lock().unwrap().needs = Some("write");
    let server = protected(authority.clone()).await;
    let user = User::new(&authority, Does::Pastes);
    let client = connect_with(&server, options(&user)).await.unwrap();
    for _ in 0..3 {
        let error = client.call("t", json!({})).await.unwrap_err().to_string();
        assert!(error.contains("403 Forbidden"), "{error}");
    }
    assert_eq!(user.count(), 2, "one login, one try for more, and no further");
    assert_eq!(user.asked.lock().unwrap()[1]["scope"], "read write");
}

/// AUC-07: an id that was registered by hand goes first, and a secret goes where the server wants it.
#[tokio::test]
async fn auc_07_an_id_that_is_known_goes_before_a_registration() {
    let authority = authority();
    let server = protected(authority.clone()).await;
    let user = User::new(&authority, Does::Pastes);
    let login = options(&user).client("by-hand", Some(Secret::new("client-secret-2")));
    connect_with(&server, login).await.unwrap();
    assert_eq!(user.asked.lock().unwrap()[0]["client_id"], "by-hand");
    assert!(server.all(|seen| seen.path == "/register").is_empty());
    let tokens = server.all(|seen| seen.path == "/token");
    assert!(tokens[0].header("authorization").unwrap().starts_with("Basic "));
}

/// AUC-08: the document of a client, where the authorization server takes one.
#[tokio::test]
async fn auc_08_the_document_of_a_client_is_its_id() {
    let document = "https://client.example/taut.json";
    for supported in [true, false] {
        let authority = authority();
        authority.lock().unwrap().metadata =
            json!({ "client_id_metadata_document_supported": supported });
        let server = protected(authority.clone()).await;
        let user = User::new(&authority, Does::Pastes);
        connect_with(&server, options(&user).metadata_document(document)).await.unwrap();
        let id = user.asked.lock().unwrap()[0]["client_id"].clone();
        assert_eq!(id == document, supported);
    }
}

/// A session that ends, or that only listens, asks nobody to log in.
#[tokio::test]
async fn what_nobody_waits_for_asks_for_no_login() {
    let authority = authority();
    authority.lock().unwrap().no_refresh = true;
    let server = protected(authority.clone()).await;
    let user = User::new(&authority, Does::Pastes);
    let client = connect_with(&server, options(&user)).await.unwrap();
    authority.lock().unwrap().valid.clear();
    client.close().await.unwrap();
    assert_eq!(server.all(|seen| seen.method == "DELETE").len(), 1);
    assert_eq!(user.count(), 1);
}

/// AUC-09: another authorization server means another registration, and nothing of the first is sent there.
#[tokio::test]
async fn auc_09_another_authorization_server_gets_nothing_of_the_first() {
    let folder = Folder::new("moved");
    let (first, second) = (authority(), authority());
    first.lock().unwrap().given = 100;
    let server = protected(first.clone()).await;
    let other = protected(second.clone()).await;
    let user = User::new(&first, Does::Pastes);
    connect_with(&server, options(&user).store(folder.store())).await.unwrap();

    let issuer = other.url.strip_suffix("/mcp").unwrap().to_owned();
    first.lock().unwrap().resource = json!({ "authorization_servers": [issuer] });
    first.lock().unwrap().valid.clear();
    let user = User::new(&second, Does::Pastes);
    // The protected server does not know the second one's tokens, so the login is all that is judged.
    let refused = connect_with(&server, options(&user).store(folder.store())).await;
    assert!(refused.is_err());
    assert_eq!(user.count(), 1);
    assert_eq!(other.all(|seen| seen.path == "/register").len(), 1);
    let sent = other.all(|_| true);
    assert!(!sent.iter().any(|seen| seen.text.contains("secret-101")), "{sent:#?}");
}
