//! Tokens that are over: what keeps them, what forgets them, and what waits for whom.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use taut_http::client::login::{LoginOptions, TokenStore};
use taut_http::client::{Authorize as _, HttpOptions};

use crate::authority::*;
use crate::first::login;
use crate::flow::Folder;
use crate::server::*;

/// A server, and a store with a login to it.
async fn logged_in(folder: &Folder, authority: &Shared) -> TestServer {
    let server = protected(authority.clone()).await;
    let user = User::new(authority, Does::Pastes);
    login(&server, options(&user).store(folder.store())).log_in().await.unwrap();
    server
}

/// What the file of tokens holds for the one server in it.
fn kept(store: &TokenStore) -> Value {
    let text = std::fs::read_to_string(store.path()).unwrap();
    serde_json::from_str::<Value>(&text).unwrap()["logins"][0].clone()
}

fn change(store: &TokenStore, change: impl FnOnce(&mut Value)) {
    let text = std::fs::read_to_string(store.path()).unwrap();
    let mut all: Value = serde_json::from_str(&text).unwrap();
    change(&mut all["logins"][0]);
    std::fs::write(store.path(), all.to_string()).unwrap();
}

fn in_seconds(seconds: u64) -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() + seconds
}

/// Finding 4: only `invalid_grant` says that a refresh token is of no use any more. H1.
#[tokio::test]
async fn a_token_endpoint_that_is_not_well_costs_no_login() {
    for (status, body) in [
        (503, r#"{"error":"temporarily_unavailable"}"#),
        (500, r#"{"error":"server_error"}"#),
        (503, r#"{"timestamp":"x","status":503,"error":"Service Unavailable","path":"/token"}"#),
        (429, r#"{"error":"slow_down"}"#),
        (429, r#"{"error":"too_many_requests","error_description":"later"}"#),
        (500, r#"{"error":"invalid_grant"}"#),
        (403, r#"{"error":"forbidden"}"#),
        (400, r#"{"error":"invalid_request"}"#),
        (404, r#"{"error":"Not Found"}"#),
        (200, r#"{"error":"temporarily_unavailable"}"#),
        (400, r#"{"error":"temporarily_unavailable"}"#),
        (200, "<h1>We will be back soon</h1>"),
        (401, "{}"),
    ] {
        let folder = Folder::new("not-well");
        let authority = authority();
        let server = logged_in(&folder, &authority).await;
        authority.lock().unwrap().valid.clear();
        authority.lock().unwrap().refresh_reply = Some((status, body));
        let options = || LoginOptions::new().store(folder.store());
        let error = connect_with(&server, options()).await.unwrap_err().to_string();
        assert!(!error.contains("secret"), "{error}");
        if status >= 429 || body.contains("temporarily_unavailable") {
            assert!(error.contains("try again in a moment"), "{status} {body}: {error}");
            assert!(error.contains(&format!("answered {status}")), "{error}");
        }
        assert_eq!(kept(&folder.store())["refresh_token"], "refresh-secret-1", "{status} {body}");
        // Well again, for another program.
        authority.lock().unwrap().refresh_reply = None;
        connect_with(&server, options()).await.unwrap();
    }
}

/// As above, for a program that goes on: the next request tries again, whatever was said about this one.
/// H1.
#[tokio::test]
async fn a_program_that_goes_on_has_its_login_when_the_endpoint_is_well_again() {
    for (status, body) in [
        (503, r#"{"error":"temporarily_unavailable"}"#),
        (400, r#"{"error":"temporarily_unavailable"}"#),
        (400, r#"{"error":"slow_down"}"#),
        (400, r#"{"error":"invalid_request"}"#),
        (403, r#"{"error":"forbidden"}"#),
        (404, r#"{"error":"Not Found"}"#),
        (200, "<h1>We will be back soon</h1>"),
    ] {
        let folder = Folder::new("well-again");
        let authority = authority();
        let server = logged_in(&folder, &authority).await;
        let options = LoginOptions::new().store(folder.store());
        let client = connect_with(&server, options).await.unwrap();
        authority.lock().unwrap().valid.clear();
        authority.lock().unwrap().refresh_reply = Some((status, body));
        let error = client.call("t", json!({})).await.unwrap_err().to_string();
        if body.contains("temporarily") {
            let words = format!("answered {status}: temporarily_unavailable");
            assert!(error.contains(&words), "{error}");
        }
        authority.lock().unwrap().refresh_reply = None;
        let answered = client.call("t", json!({})).await;
        assert_eq!(answered.unwrap().text().unwrap(), "hello", "{status} {body}");
    }
}

/// `invalid_grant`, with whichever status servers send it, does cost it: it would never get better.
#[tokio::test]
async fn a_refresh_token_that_is_refused_is_not_kept() {
    for status in [400, 401, 403, 200] {
        let folder = Folder::new("refused");
        let authority = authority();
        let server = logged_in(&folder, &authority).await;
        authority.lock().unwrap().valid.clear();
        authority.lock().unwrap().refresh_reply = Some((status, r#"{"error":"invalid_grant"}"#));
        for _ in 0..2 {
            let options = LoginOptions::new().store(folder.store());
            let error = connect_with(&server, options).await.unwrap_err().to_string();
            assert!(error.contains("it wants a login"), "{status}: {error}");
        }
        assert!(kept(&folder.store()).get("refresh_token").is_none());
        assert_eq!(authority.lock().unwrap().refreshed, 1, "what was refused is not tried again");
    }
}

/// Finding 7: a logout in another process is final, also for a program that has the tokens in its memory.
/// H4.
#[tokio::test]
async fn a_login_that_is_forgotten_stays_forgotten() {
    for forget_registration in [false, true] {
        let folder = Folder::new("final");
        let authority = authority();
        let server = logged_in(&folder, &authority).await;
        let options = || LoginOptions::new().store(folder.store());
        let running = Arc::new(login(&server, options()));
        assert!(running.token().await.unwrap().is_some());
        let http = HttpOptions::new().authorize(running.clone());
        let transport = taut_http::client::HttpTransport::new(&server.url, http).unwrap();
        let client = transport.connect(taut::Client::builder()).await.unwrap();
        client.call("t", json!({})).await.unwrap();

        assert!(folder.store().forget(&server.url).await.unwrap());
        // An hour later; also where the authorization server refuses the refresh token.
        authority.lock().unwrap().valid.clear();
        authority.lock().unwrap().revoked = forget_registration;
        for _ in 0..2 {
            let error = client.call("t", json!({})).await.unwrap_err().to_string();
            assert!(error.contains("it wants a login"), "{error}");
        }
        assert!(folder.store().list().await.unwrap().is_empty());
        assert!(!std::fs::read_to_string(folder.store().path()).unwrap().contains("client-1"));
        assert_eq!(authority.lock().unwrap().refreshed, 0);
        assert!(running.token().await.unwrap().is_none(), "not even in its memory");
        // A new login serves the program that runs.
        let user = User::new(&authority, Does::Pastes);
        let anew = crate::authority::options(&user).store(folder.store());
        login(&server, anew).log_in().await.unwrap();
        client.call("t", json!({})).await.unwrap();
    }
}

/// A program notices a logout by itself, long before its token is over.
#[tokio::test]
async fn a_program_that_runs_notices_a_logout() {
    let folder = Folder::new("notices");
    let authority = authority();
    let server = logged_in(&folder, &authority).await;
    let running = login(&server, LoginOptions::new().store(folder.store()));
    assert!(running.token().await.unwrap().is_some());
    folder.store().forget(&server.url).await.unwrap();
    let until = Instant::now() + LONG;
    while running.token().await.unwrap().is_some() {
        assert!(Instant::now() < until, "it still uses the token");
        tokio::task::yield_now().await;
    }
}

/// A logout while a refresh is under way in another process, which has the lock. H4.
#[tokio::test]
async fn a_logout_during_a_refresh_is_final() {
    let folder = Folder::new("during");
    let authority = authority();
    let server = logged_in(&folder, &authority).await;
    let client = connect_with(&server, LoginOptions::new().store(folder.store())).await.unwrap();
    authority.lock().unwrap().valid.clear();
    authority.lock().unwrap().refresh_hangs = true;
    let call = tokio::spawn(async move { client.call("t", json!({})).await });
    server.wait(1, |seen| seen.text.contains("grant_type=refresh_token")).await;
    let impatient = folder.store().lock_timeout(Duration::from_millis(50));
    assert!(impatient.forget(&server.url).await.unwrap());
    authority.lock().unwrap().refresh_hangs = false;
    let _ = call.await.unwrap();
    assert_eq!(authority.lock().unwrap().refreshed, 1, "the refresh came to its end");
    assert!(folder.store().list().await.unwrap().is_empty());
}

/// Finding 8: a process that was stopped while it had the lock. H5.
#[tokio::test]
async fn a_lock_that_is_not_given_back_stops_no_other_program() {
    let folder = Folder::new("lock");
    let authority = authority();
    let server = logged_in(&folder, &authority).await;
    let lock = folder.store().path().with_extension("json.lock");
    let held = std::fs::File::open(&lock).unwrap();
    rustix::fs::flock(&held, rustix::fs::FlockOperation::LockExclusive).unwrap();
    authority.lock().unwrap().valid.clear();
    let store = || folder.store().lock_timeout(Duration::from_millis(200));
    let began = Instant::now();
    let client = connect_with(&server, LoginOptions::new().store(store())).await.unwrap();
    client.call("t", json!({})).await.unwrap();
    assert_eq!(kept(&store())["access_token"], "access-secret-2", "what it got is kept");
    let user = User::new(&authority, Does::Pastes);
    login(&server, options(&user).store(store())).log_in().await.unwrap();
    assert!(store().forget(&server.url).await.unwrap());
    assert!(store().list().await.unwrap().is_empty());
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
}

/// Finding 16: the token is good for some seconds, and its endpoint hangs. No request waits for that.
/// H6.
#[tokio::test]
async fn a_token_endpoint_that_hangs_holds_up_no_request() {
    let folder = Folder::new("hangs");
    let authority = authority();
    let server = logged_in(&folder, &authority).await;
    change(&folder.store(), |login| login["expires_at"] = json!(in_seconds(20)));
    authority.lock().unwrap().refresh_hangs = true;
    let began = Instant::now();
    let client = connect_with(&server, LoginOptions::new().store(folder.store())).await.unwrap();
    let calls: Vec<_> = (0..3)
        .map(|_| {
            let client = client.clone();
            tokio::spawn(async move { client.call("t", json!({})).await })
        })
        .collect();
    for call in calls {
        assert_eq!(call.await.unwrap().unwrap().text().unwrap(), "hello");
    }
    assert!(began.elapsed() < Duration::from_secs(9), "{:?}", began.elapsed());
    assert_eq!(kept(&folder.store())["refresh_token"], "refresh-secret-1");
}

/// The token is over, and its endpoint hangs: one try for all who wait.
#[tokio::test]
async fn those_who_wait_for_a_token_share_one_failure() {
    let folder = Folder::new("share");
    let authority = authority();
    let server = logged_in(&folder, &authority).await;
    let limit = Duration::from_secs(2);
    let running = LoginOptions::new().store(folder.store()).renewal_timeout(limit);
    let client = connect_with(&server, running).await.unwrap();
    // What the connection does by itself is over.
    client.call("t", json!({})).await.unwrap();
    server.wait(1, |seen| seen.method == "GET" && seen.path == "/mcp").await;
    authority.lock().unwrap().valid.clear();
    authority.lock().unwrap().refresh_hangs = true;
    let began = Instant::now();
    let calls: Vec<_> = (0..8)
        .map(|_| {
            let client = client.clone();
            tokio::spawn(async move { client.call("t", json!({})).await })
        })
        .collect();
    for call in calls {
        let error = call.await.unwrap().unwrap_err().to_string();
        assert!(error.contains("did not come within 2s"), "{error}");
    }
    assert!(began.elapsed() < 4 * limit, "{:?}", began.elapsed());
    let asked = server.all(|seen| seen.text.contains("grant_type=refresh_token")).len();
    assert_eq!(asked, 1, "one try");
    authority.lock().unwrap().refresh_hangs = false;
    client.call("t", json!({})).await.unwrap();
}

/// A refresh token is good for one use: a request that is given up must not take the new one with it.
#[tokio::test]
async fn a_request_that_is_given_up_does_not_cost_the_login() {
    let folder = Folder::new("given-up");
    let authority = authority();
    let server = logged_in(&folder, &authority).await;
    authority.lock().unwrap().valid.clear();
    tokio::select! {
        biased;
        _ = server.wait(1, |seen| seen.text.contains("grant_type=refresh_token")) => {}
        _ = connect_with(&server, LoginOptions::new().store(folder.store())) => {}
    }
    let until = Instant::now() + LONG;
    while kept(&folder.store())["access_token"] != "access-secret-2" {
        assert!(Instant::now() < until, "the new token is lost");
        tokio::task::yield_now().await;
    }
}
