//! What a login asks first, and who it says that it is.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use taut_http::client::HttpOptions;
use taut_http::client::login::{AskUser, Login, LoginOptions, LoginRequest};
use taut_http::client::{Authorize as _, AuthorizeFuture, HttpError};

use crate::authority::*;
use crate::flow::Folder;
use crate::server::*;

pub(crate) fn login(server: &TestServer, options: LoginOptions) -> Login {
    Login::new(&server.url, &HttpOptions::new(), options).unwrap()
}

/// Finding 30: the Python SDK reads the client's id from the form, also where the secret comes in a header.
/// H7.
#[tokio::test]
async fn the_id_of_a_client_is_in_the_form_whatever_else_shows_it() {
    for method in ["client_secret_basic", "client_secret_post", "none"] {
        let authority = authority();
        authority.lock().unwrap().method = Some(method);
        authority.lock().unwrap().wants_id_in_form = true;
        let server = protected(authority.clone()).await;
        let user = User::new(&authority, Does::Pastes);
        let client = connect_with(&server, options(&user)).await.unwrap();
        // A refresh as well.
        authority.lock().unwrap().valid.clear();
        client.call("t", json!({})).await.unwrap();
        let asked = server.all(|seen| seen.path == "/token");
        assert_eq!(asked.len(), 2, "{method}");
        for asked in asked {
            let form = pairs(&asked.text);
            assert_eq!(form["client_id"], "client-1", "{method}");
            let basic = asked.header("authorization").is_some();
            assert_eq!(basic, method == "client_secret_basic", "{method}");
            assert_eq!(form.contains_key("client_secret"), method == "client_secret_post");
        }
    }
}

/// A secret that was given by hand, and an authorization server that does not say how it wants it: in the form, if
/// not in a header.
#[tokio::test]
async fn a_secret_that_is_not_taken_in_a_header_is_sent_in_the_form() {
    use taut_http::client::Secret;
    let authority = authority();
    authority.lock().unwrap().wants_secret_in_form = true;
    let server = protected(authority.clone()).await;
    let user = User::new(&authority, Does::Pastes);
    let by_hand = options(&user).client("by-hand", Some(Secret::new("client-secret-2")));
    connect_with(&server, by_hand).await.unwrap();
    let asked = server.all(|seen| seen.path == "/token");
    assert_eq!(asked.len(), 2);
    assert!(asked[0].header("authorization").is_some());
    assert_eq!(pairs(&asked[1].text)["client_secret"], "client-secret-2");
}

/// AUC-02, AUC-11 (finding 23): what the server's refusal names counts, also for a login that a person begins.
/// H8.
#[tokio::test]
async fn auc_02_and_11_a_login_asks_the_server_first() {
    let authority = authority();
    {
        let mut authority = authority.lock().unwrap();
        authority.metadata_at = Some("/custom/metadata.json");
        authority.challenge_scope = Some("read");
        authority.resource = json!({ "scopes_supported": ["read", "write", "admin"] });
    }
    let server = protected(authority.clone()).await;
    let user = User::new(&authority, Does::Pastes);
    login(&server, options(&user)).log_in().await.unwrap();
    assert!(!server.all(|seen| seen.method == "POST" && seen.path == "/mcp").is_empty());
    assert_eq!(server.all(|seen| seen.path == "/custom/metadata.json").len(), 1);
    assert_eq!(user.asked.lock().unwrap()[0]["scope"], "read");
    assert_eq!(user.asked.lock().unwrap()[0]["resource"], server.url);
}

/// A server that refuses without a word of who gives out its tokens, and one that names metadata that are not there:
/// the well-known places count.
#[tokio::test]
async fn metadata_that_are_not_where_the_server_says_are_looked_for_at_the_well_known_place() {
    let authority = authority();
    authority.lock().unwrap().names_metadata_at = Some("/nothing/there");
    let server = protected(authority.clone()).await;
    let user = User::new(&authority, Does::Pastes);
    login(&server, options(&user)).log_in().await.unwrap();
    assert_eq!(server.all(|seen| seen.path == "/nothing/there").len(), 1);
    assert_eq!(user.count(), 1);
}

/// A server that serves without a token: the user is not asked, and nothing is registered anywhere.
#[tokio::test]
async fn a_server_that_asks_for_no_login_says_so() {
    let authority = authority();
    authority.lock().unwrap().open = true;
    let server = protected(authority.clone()).await;
    let user = User::new(&authority, Does::Pastes);
    let error = login(&server, options(&user)).log_in().await.unwrap_err();
    assert!(matches!(error, HttpError::LoginNotNeeded { .. }), "{error:?}");
    assert!(error.to_string().contains("no login is needed"), "{error}");
    assert_eq!((user.count(), server.all(|seen| seen.path == "/register").len()), (0, 0));
}

/// Tools that need a login beside others that do not: the server says who gives out tokens, so there is a login.
#[tokio::test]
async fn a_server_that_serves_without_a_token_and_has_logins_is_logged_in_to() {
    let authority = authority();
    let server = protected(authority.clone()).await;
    authority.lock().unwrap().serves_all = true;
    let user = User::new(&authority, Does::Pastes);
    login(&server, options(&user)).log_in().await.unwrap();
    assert_eq!(user.count(), 1);
}

/// Metadata that cannot be had for a moment are not the same as none: nobody is led to another place.
#[tokio::test]
async fn metadata_that_cannot_be_had_for_a_moment_are_no_reason_to_guess() {
    let authority = authority();
    authority.lock().unwrap().documents_fail = true;
    let server = protected(authority.clone()).await;
    let user = User::new(&authority, Does::Pastes);
    let error = login(&server, options(&user)).log_in().await.unwrap_err().to_string();
    assert!(error.contains("answered 503") && error.contains("try again"), "{error}");
    assert_eq!((user.count(), server.all(|seen| seen.path == "/register").len()), (0, 0));
}

/// Finding 5 b: the token endpoint does not know the registration that was kept. H2.
#[tokio::test]
async fn a_registration_that_is_forgotten_is_made_anew() {
    let folder = Folder::new("forgotten");
    let authority = authority();
    let server = protected(authority.clone()).await;
    let user = User::new(&authority, Does::Pastes);
    let options = || options(&user).store(folder.store());
    login(&server, options()).log_in().await.unwrap();
    {
        let mut authority = authority.lock().unwrap();
        authority.forgets.push("client-1".to_owned());
        authority.valid.clear();
    }
    // A person begins: the authorization server is asked before the person is.
    login(&server, options()).log_in().await.unwrap();
    assert_eq!((authority.lock().unwrap().registered, user.count()), (2, 2));
    // In the middle of a session.
    authority.lock().unwrap().forgets.push("client-2".to_owned());
    authority.lock().unwrap().valid.clear();
    let client = connect_with(&server, options()).await.unwrap();
    assert_eq!(client.call("t", json!({})).await.unwrap().text().unwrap(), "hello");
    assert_eq!((authority.lock().unwrap().registered, user.count()), (3, 3));
    assert_eq!(user.asked.lock().unwrap()[2]["client_id"], "client-3");
}

/// A registration that is forgotten while the person is logging in: once more with another, and no further.
#[tokio::test]
async fn a_registration_that_is_forgotten_meanwhile_is_made_anew_once() {
    struct Forgets(Arc<User>, usize);
    impl AskUser for Forgets {
        fn ask<'a>(&'a self, request: LoginRequest<'a>) -> AuthorizeFuture<'a, String> {
            Box::pin(async move {
                let redirect = self.0.ask(request).await;
                let id = self.0.asked.lock().unwrap().last().unwrap()["client_id"].clone();
                if self.0.count() <= self.1 {
                    self.0.authority.lock().unwrap().forgets.push(id);
                }
                redirect
            })
        }
    }
    for (times, works) in [(2, true), (3, false)] {
        let folder = Folder::new("meanwhile");
        let authority = authority();
        let server = protected(authority.clone()).await;
        let user = User::new(&authority, Does::Pastes);
        let options = || options(&user).store(folder.store());
        login(&server, options()).log_in().await.unwrap();
        let forgets = options().ask(Arc::new(Forgets(user.clone(), times)));
        let outcome = login(&server, forgets).log_in().await;
        assert_eq!(outcome.is_ok(), works, "{outcome:?}");
        assert_eq!((authority.lock().unwrap().registered, user.count()), (2, 3));
    }
}

/// Finding 5 a: the page of the authorization server does not know the registration, and nobody comes back.
/// H2.
#[tokio::test]
async fn after_a_login_that_came_to_nothing_the_next_one_registers_anew() {
    let folder = Folder::new("nothing");
    let authority = authority();
    let server = protected(authority.clone()).await;
    let user = User::new(&authority, Does::Pastes);
    login(&server, options(&user).store(folder.store())).log_in().await.unwrap();
    let closes = User::new(&authority, Does::ClosesTheBrowser);
    let closed = options(&closes).store(folder.store()).timeout(Duration::from_millis(50));
    let error = login(&server, closed).log_in().await.unwrap_err();
    assert!(matches!(error, HttpError::NobodyLoggedIn { .. }), "{error}");
    assert_eq!(authority.lock().unwrap().registered, 1, "it may well have been known");
    // The tokens of the first login are still good.
    let kept = login(&server, LoginOptions::new().store(folder.store()));
    assert!(kept.token().await.unwrap().is_some());
    for _ in 0..2 {
        login(&server, options(&user).store(folder.store())).log_in().await.unwrap();
    }
    assert_eq!(authority.lock().unwrap().registered, 2, "anew once, and then it is known");
}

/// RFC 7591: a secret with an end; 0 is none.
#[tokio::test]
async fn a_registration_that_is_over_is_made_anew() {
    for (expires_at, registered) in [(0, 1), (4_000_000_000, 1), (1, 2)] {
        let folder = Folder::new("over");
        let authority = authority();
        authority.lock().unwrap().secret_expires_at = Some(expires_at);
        let server = protected(authority.clone()).await;
        let user = User::new(&authority, Does::Pastes);
        for _ in 0..2 {
            login(&server, options(&user).store(folder.store())).log_in().await.unwrap();
        }
        assert_eq!(authority.lock().unwrap().registered, registered, "{expires_at}");
    }
}

/// Finding 24: tenants of one gateway, told apart by the query of their address. H9.
#[tokio::test]
async fn servers_that_differ_in_their_query_have_logins_of_their_own() {
    let folder = Folder::new("tenants");
    let authority = authority();
    let server = protected(authority.clone()).await;
    let user = User::new(&authority, Does::Pastes);
    let at = |query: &str| {
        let url = format!("{}{query}", server.url);
        Login::new(&url, &HttpOptions::new(), options(&user).store(folder.store())).unwrap()
    };
    let mut tokens = Vec::new();
    for tenant in ["?tenant=a", "?tenant=b", ""] {
        at(tenant).log_in().await.unwrap();
        tokens.push(format!("access-secret-{}", authority.lock().unwrap().given));
    }
    assert_eq!(folder.store().list().await.unwrap().len(), 3);
    for (tenant, token) in ["?tenant=a", "?tenant=b", ""].iter().zip(&tokens) {
        let found = at(tenant).token().await.unwrap().unwrap();
        assert_eq!(found.reveal(), token, "{tenant}");
    }
    // The resource is the same for all of them, as long as the server does not say otherwise.
    for asked in user.asked.lock().unwrap().iter() {
        assert_eq!(asked["resource"], server.url);
    }
    assert!(folder.store().forget(&format!("{}?tenant=a", server.url)).await.unwrap());
    let left = folder.store().list().await.unwrap();
    assert!(left.len() == 2 && left.iter().all(|login| !login.server.ends_with("tenant=a")));
}

/// Finding 6: browsers open connections in advance, and any page can keep some open. H3.
#[tokio::test]
async fn idle_connections_do_not_hold_up_the_browser() {
    struct Idle(Arc<User>, usize);
    impl AskUser for Idle {
        fn ask<'a>(&'a self, request: LoginRequest<'a>) -> AuthorizeFuture<'a, String> {
            Box::pin(async move {
                let address = self.0.redirect(request.address());
                let host = address.split('/').nth(2).unwrap().to_owned();
                let browser = async {
                    let mut held = Vec::new();
                    for _ in 0..self.1 {
                        held.push(tokio::net::TcpStream::connect(&host).await.unwrap());
                    }
                    browse(&address, "200").await;
                };
                tokio::join!(request.redirected(), browser).0
            })
        }
    }
    for idle in [1, 3, 200] {
        let authority = authority();
        let server = protected(authority.clone()).await;
        let user = User::new(&authority, Does::LogsIn);
        let options = options(&user).ask(Arc::new(Idle(user.clone(), idle)));
        let login = login(&server, options);
        let done = tokio::time::timeout(Duration::from_secs(8), login.log_in()).await;
        done.unwrap_or_else(|_| panic!("held up by {idle}")).unwrap();
    }
}

/// Some servers answer 500 to each path that they do not know: what is found in another place counts.
#[tokio::test]
async fn a_server_that_answers_500_to_what_it_does_not_know_is_logged_in_to() {
    let authority = authority();
    authority.lock().unwrap().metadata_at = Some("/nowhere");
    authority.lock().unwrap().names_metadata_at = Some("/nowhere/else");
    authority.lock().unwrap().fails_where_it_knows_nothing = true;
    let server = protected(authority.clone()).await;
    let user = User::new(&authority, Does::Pastes);
    login(&server, options(&user)).log_in().await.unwrap();
    assert_eq!(user.count(), 1);
}
