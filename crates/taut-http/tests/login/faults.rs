//! What can go wrong with a login, one by one.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use taut::Client;
use taut_http::client::login::Login;
use taut_http::client::{HttpOptions, HttpTransport};

use crate::authority::*;
use crate::flow::Folder;

/// The words of the error of a login in which `set` has changed something and the user `does` this.
async fn fault(does: Does, set: impl Fn(&mut Authority)) -> (String, usize) {
    let authority = authority();
    set(&mut authority.lock().unwrap());
    let server = protected(authority.clone()).await;
    let user = User::new(&authority, does);
    let error = connect_with(&server, options(&user)).await.unwrap_err();
    let forms = authority.lock().unwrap().forms.len();
    assert!(!format!("{error:?} {error}").contains("secret"), "{error:?}");
    (error.to_string(), forms)
}

/// AUC-04
#[tokio::test]
async fn auc_04_metadata_of_another_issuer_is_refused() {
    let (error, forms) = fault(Does::Pastes, |authority| {
        authority.metadata = json!({ "issuer": "https://evil.example" });
    })
    .await;
    assert!(error.contains("says that it is \"https://evil.example\""), "{error}");
    assert_eq!(forms, 0);
}

/// AUC-06
#[tokio::test]
async fn auc_06_a_resource_that_does_not_match_is_refused() {
    let (error, forms) = fault(Does::Pastes, |authority| {
        authority.resource = json!({ "resource": "https://evil.example/mcp" });
    })
    .await;
    assert!(error.contains("the server says that it is \"https://evil.example/mcp\""), "{error}");
    assert_eq!(forms, 0);
}

/// AUC-05
#[tokio::test]
async fn auc_05_an_authorization_server_without_pkce_is_refused() {
    for methods in [Value::Null, json!(["plain"])] {
        let (error, forms) = fault(Does::Pastes, |authority| {
            authority.metadata = json!({ "code_challenge_methods_supported": methods });
        })
        .await;
        assert!(error.contains("PKCE with S256"), "{error}");
        assert_eq!(forms, 0);
    }
}

/// AUC-04, AUC-10: what comes back is checked before the code is used.
#[tokio::test]
async fn auc_10_an_answer_that_belongs_to_another_login_is_refused() {
    for (does, words) in [
        (Does::ChangesState, "belongs to another login"),
        (Does::WrongIssuer, "the answer comes from"),
        (Does::NoIssuer, "does not say which authorization server it is from"),
        (Does::SaysNo, "the authorization server says access_denied"),
    ] {
        let (error, forms) = fault(does, |_| {}).await;
        assert!(error.contains(words), "{error}");
        assert_eq!(forms, 0, "no code was sent: {error}");
    }
}

/// AUC-05, AUC-10: a code that was given to another login and is still good there. The verifier of this login does not
/// fit it, so it gets no token, and the other login can still use it.
#[tokio::test]
async fn auc_10_a_code_of_another_session_is_of_no_use() {
    let authority = authority();
    let server = protected(authority.clone()).await;
    let user = User::new(&authority, Does::OtherCode);
    let error = connect_with(&server, options(&user)).await.unwrap_err().to_string();
    assert!(error.contains("no token was given: invalid_grant: no good"), "{error}");
    let state = authority.lock().unwrap();
    assert_eq!((state.forms.len(), state.given, user.count()), (1, 0, 1), "one try, no token");
    assert!(state.codes.iter().any(|(code, _)| code == "code-secret-of-another"));
}

#[tokio::test]
async fn a_token_endpoint_that_answers_html_is_told() {
    for (code, words) in [
        (200, "answered with something else than a token"),
        (502, "/token answered 502 without saying why"),
    ] {
        let (error, _) = fault(Does::Pastes, |authority| {
            authority.token_reply = Some((code, "text/html", "<h1>code-secret-1</h1>"));
        })
        .await;
        assert!(error.contains(words), "{error}");
    }
}

/// A server that refuses every token is not logged in to for ever.
#[tokio::test]
async fn a_token_that_is_refused_at_once_ends_the_tries() {
    let authority = authority();
    authority.lock().unwrap().refuses_all = true;
    authority.lock().unwrap().no_refresh = true;
    let server = protected(authority.clone()).await;
    let user = User::new(&authority, Does::Pastes);
    let error = connect_with(&server, options(&user)).await.unwrap_err().to_string();
    assert!(error.contains("refuses the token that was given for it just now"), "{error}");
    assert_eq!(user.count(), 1);
}

/// A token with no time left is used until it is refused; it is not refreshed before each request.
#[tokio::test]
async fn a_token_that_expires_in_no_time_is_used_until_it_is_refused() {
    let authority = authority();
    authority.lock().unwrap().expires_in = json!(0);
    let server = protected(authority.clone()).await;
    let user = User::new(&authority, Does::Pastes);
    let client = connect_with(&server, options(&user)).await.unwrap();
    for _ in 0..5 {
        client.call("t", json!({})).await.unwrap();
    }
    assert_eq!(authority.lock().unwrap().refreshed, 0);
}

/// Clocks differ: a token that the server holds for over, and one that only our clock holds for over.
#[tokio::test]
async fn a_token_is_refreshed_when_either_clock_says_that_it_is_over() {
    let authority = authority();
    authority.lock().unwrap().expires_in = json!(3600);
    let server = protected(authority.clone()).await;
    let user = User::new(&authority, Does::Pastes);
    let client = connect_with(&server, options(&user)).await.unwrap();
    authority.lock().unwrap().valid.clear();
    assert_eq!(client.call("t", json!({})).await.unwrap().text().unwrap(), "hello");
    assert_eq!(authority.lock().unwrap().refreshed, 1);

    // By our clock it is over: refreshed before it is sent.
    let folder = Folder::new("clock");
    connect_with(&server, options(&user).store(folder.store())).await.unwrap();
    let path = folder.store().path().to_owned();
    let text = std::fs::read_to_string(&path).unwrap();
    let mut kept: Value = serde_json::from_str(&text).unwrap();
    kept["logins"][0]["expires_at"] = json!(1);
    std::fs::write(&path, kept.to_string()).unwrap();
    let opened = server.all(|seen| seen.rpc() == "initialize").len();
    connect_with(&server, options(&user).store(folder.store())).await.unwrap();
    assert_eq!(authority.lock().unwrap().refreshed, 2);
    let sent = server.all(|seen| seen.rpc() == "initialize");
    assert_eq!(sent[opened].header("authorization"), Some("Bearer access-secret-4"));

    // Our clock is far ahead and there is nothing to refresh with: the server has the last word.
    let text = std::fs::read_to_string(&path).unwrap();
    let mut kept: Value = serde_json::from_str(&text).unwrap();
    kept["logins"][0]["expires_at"] = json!(1);
    kept["logins"][0].as_object_mut().unwrap().remove("refresh_token");
    std::fs::write(&path, kept.to_string()).unwrap();
    let asked = user.count();
    connect_with(&server, options(&user).store(folder.store())).await.unwrap();
    assert_eq!((user.count(), authority.lock().unwrap().refreshed), (asked, 2));
    // Our clock is far behind: the token looks good for ever, and the server's refusal counts.
    kept["logins"][0]["expires_at"] = json!(u64::MAX);
    std::fs::write(&path, kept.to_string()).unwrap();
    authority.lock().unwrap().valid.clear();
    connect_with(&server, options(&user).store(folder.store())).await.unwrap();
    assert_eq!(user.count(), asked + 1, "one new login");
}

/// A refresh token that was revoked in the middle of a session: one new login, no loop.
#[tokio::test]
async fn a_revoked_refresh_token_leads_to_one_login() {
    let folder = Folder::new("revoked");
    let authority = authority();
    let server = protected(authority.clone()).await;
    let user = User::new(&authority, Does::Pastes);
    connect_with(&server, options(&user).store(folder.store())).await.unwrap();
    // Another program, which has not logged in itself.
    let client = connect_with(&server, options(&user).store(folder.store())).await.unwrap();
    {
        let mut authority = authority.lock().unwrap();
        authority.valid.clear();
        authority.revoked = true;
    }
    let calls = [(); 5].map(|()| {
        let client = client.clone();
        tokio::spawn(async move { client.call("t", json!({})).await })
    });
    for call in calls {
        assert_eq!(call.await.unwrap().unwrap().text().unwrap(), "hello");
    }
    assert_eq!(user.count(), 2);
    assert_eq!(authority.lock().unwrap().refreshed, 1);
}

/// Two programs that refresh at once: one of them asks, the other takes what the first has got.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_programs_that_refresh_at_once_do_it_once() {
    let folder = Folder::new("two");
    let authority = authority();
    let server = protected(authority.clone()).await;
    let user = User::new(&authority, Does::Pastes);
    connect_with(&server, options(&user).store(folder.store())).await.unwrap();
    let mut clients = Vec::new();
    for _ in 0..4 {
        let login = options(&user).store(folder.store());
        clients.push(connect_with(&server, login).await.unwrap());
    }
    authority.lock().unwrap().valid.clear();
    let calls: Vec<_> = clients
        .iter()
        .cloned()
        .map(|client| tokio::spawn(async move { client.call("t", json!({})).await }))
        .collect();
    for call in calls {
        assert_eq!(call.await.unwrap().unwrap().text().unwrap(), "hello");
    }
    assert_eq!(authority.lock().unwrap().refreshed, 1);
    assert_eq!(user.count(), 1);
}

#[tokio::test]
async fn a_browser_that_is_closed_ends_the_login_in_time() {
    let authority = authority();
    let server = protected(authority.clone()).await;
    let user = User::new(&authority, Does::ClosesTheBrowser);
    let login = options(&user).timeout(Duration::from_millis(50));
    let error = connect_with(&server, login).await.unwrap_err().to_string();
    assert!(error.contains("nobody has logged in within 50ms; try again"), "{error}");
}

/// AUC-12: a login over plain http to another machine is refused before anything is sent.
#[tokio::test]
async fn auc_12_a_login_needs_https_except_on_this_machine() {
    let user = User::new(&authority(), Does::Pastes);
    let login = Login::new("http://mcp.example/", &HttpOptions::new(), options(&user));
    let error = login.unwrap_err().to_string();
    assert!(error.contains("a login needs https, except on this machine"), "{error}");
    let (error, forms) = fault(Does::Pastes, |authority| {
        authority.metadata = json!({ "token_endpoint": "http://auth.example/token" });
    })
    .await;
    assert!(error.contains("needs https"), "{error}");
    assert_eq!(forms, 0);
}

/// A login that is under way does not count as the server's time.
#[tokio::test]
async fn a_login_may_take_longer_than_a_start() {
    let authority = authority();
    let server = protected(authority.clone()).await;
    struct Slow(Arc<User>);
    impl taut_http::client::login::AskUser for Slow {
        fn ask<'a>(
            &'a self,
            request: taut_http::client::login::LoginRequest<'a>,
        ) -> taut_http::client::AuthorizeFuture<'a, String> {
            Box::pin(async move {
                tokio::time::sleep(Duration::from_millis(600)).await;
                self.0.ask(request).await
            })
        }
    }
    let user = User::new(&authority, Does::Pastes);
    let login = options(&user).ask(Arc::new(Slow(user.clone())));
    let login = Login::new(&server.url, &HttpOptions::new(), login).unwrap();
    let options = HttpOptions::new().authorize(Arc::new(login));
    let transport = HttpTransport::new(&server.url, options).unwrap();
    let builder = Client::builder().start_timeout(Duration::from_millis(500));
    transport.connect(builder).await.unwrap();
}
