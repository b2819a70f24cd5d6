//! Nothing that a login writes or shows has a token, a code or a verifier in it.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex};

use serde_json::json;
use taut::Client;
use taut_http::client::login::{AskUser, Login, LoginOptions, LoginRequest};
use taut_http::client::{AuthorizeFuture, HttpOptions, HttpTransport};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::authority::*;
use crate::flow::Folder;

/// Keeps everything that is logged, at every level.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<String>>);

impl Visit for Log {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        let _ = writeln!(self.0.lock().unwrap(), "{field}={value:?}");
    }
}

impl Subscriber for Log {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        span.record(&mut self.clone());
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, values: &Record<'_>) {
        values.record(&mut self.clone());
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        event.record(&mut self.clone());
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[tokio::test]
async fn nothing_that_is_written_or_shown_has_a_secret_in_it() {
    let log = Log::default();
    // With one subscriber alone, the first thread that comes to an event decides for all threads whether it is kept,
    // and other tests have none. With two, both are asked.
    let _second = tracing::Dispatch::new(Log::default());
    let _logging = tracing::subscriber::set_default(log.clone());
    let folder = Folder::new("secrets");
    let authority = authority();
    let server = protected(authority.clone()).await;
    let user = User::new(&authority, Does::LogsIn);
    let login = options(&user).store(folder.store());
    let mut shown = format!("{login:?}");
    let login = Arc::new(Login::new(&server.url, &HttpOptions::new(), login).unwrap());
    let options = HttpOptions::new().authorize(login.clone());
    write!(shown, "{options:?} {login:?}").unwrap();
    let transport = HttpTransport::new(&server.url, options).unwrap();
    let client = transport.connect(Client::builder()).await.unwrap();
    client.call("t", json!({})).await.unwrap();
    // A refresh, a refusal of everything, and its errors.
    authority.lock().unwrap().valid.clear();
    client.call("t", json!({})).await.unwrap();
    authority.lock().unwrap().refuses_all = true;
    authority.lock().unwrap().revoked = true;
    for _ in 0..2 {
        let error = client.call("t", json!({})).await.unwrap_err();
        write!(shown, "{error} {error:?}").unwrap();
    }
    write!(shown, "{transport:?} {login:?} {:?}", folder.store()).unwrap();
    write!(shown, "{:?}", folder.store().list().await).unwrap();
    client.close().await.unwrap();

    let mut secrets = vec!["-secret-".to_owned()];
    for asked in user.asked.lock().unwrap().iter() {
        secrets.extend([asked["state"].clone(), asked["code_challenge"].clone()]);
    }
    for form in &authority.lock().unwrap().forms {
        secrets.extend(form.get("code_verifier").cloned());
    }
    assert!(secrets.len() >= 4, "the flow was whole");
    let logged = log.0.lock().unwrap().clone();
    assert!(logged.contains("refused"), "the log was kept: {logged}");
    // What a real library may log about addresses is looked at, too.
    for secret in &secrets {
        assert!(!logged.contains(secret.as_str()), "{secret} in the log: {logged}");
        assert!(!shown.contains(secret.as_str()), "{secret} was shown: {shown}");
    }
    // The one place where tokens are, which only the user can read.
    let file = std::fs::read_to_string(folder.store().path()).unwrap();
    assert!(!file.contains("code-secret"), "no code is kept");
}

/// Panics in the middle of a login, and later with everything that a program may hold.
#[tokio::test]
#[ignore = "run by the next test, as a process that crashes"]
async fn crash() {
    struct Falls;
    impl AskUser for Falls {
        fn ask<'a>(&'a self, request: LoginRequest<'a>) -> AuthorizeFuture<'a, String> {
            Box::pin(async move { panic!("in the middle of {request:?}") })
        }
    }
    let authority = authority();
    let server = protected(authority.clone()).await;
    let login = LoginOptions::new().ask(Arc::new(Falls));
    let login = Login::new(&server.url, &HttpOptions::new(), login).unwrap();
    let task = tokio::spawn(async move { login.log_in().await });
    assert!(task.await.unwrap_err().is_panic());

    let folder = Folder::new("crash");
    let user = User::new(&authority, Does::Pastes);
    let login = options(&user).store(folder.store());
    let login = Arc::new(Login::new(&server.url, &HttpOptions::new(), login).unwrap());
    let options = HttpOptions::new().authorize(login.clone());
    let transport = HttpTransport::new(&server.url, options).unwrap();
    let client = transport.connect(Client::builder()).await.unwrap();
    authority.lock().unwrap().refuses_all = true;
    let error = client.call("t", json!({})).await.unwrap_err();
    // For the test that has started this.
    let forms = authority.lock().unwrap().forms.clone();
    std::fs::write(std::env::var_os("VERIFIERS").unwrap(), forms[0]["code_verifier"].as_str())
        .unwrap();
    let listed = folder.store().list().await;
    panic!("{login:?} {transport:?} {client:?} {error:?} {error} {:?} {listed:?}", folder.store());
}

/// What a crash prints, with the longest backtrace that there is.
#[test]
fn nothing_that_a_panic_prints_has_a_secret_in_it() {
    let folder = Folder::new("crashed");
    let verifiers = folder.0.join("verifiers");
    let crashed = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "secrets::crash", "--ignored", "--nocapture"])
        .env("RUST_BACKTRACE", "full")
        .env("VERIFIERS", &verifiers)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&[crashed.stdout, crashed.stderr].concat()).into_owned();
    assert_eq!(crashed.status.code(), Some(101), "{said}");
    assert_eq!(said.matches("panicked at").count(), 2, "{said}");
    assert!(said.contains("in the middle of LoginRequest"), "{said}");
    let verifier = std::fs::read_to_string(verifiers).unwrap();
    assert!(verifier.len() >= 43);
    for secret in ["-secret-", verifier.as_str()] {
        assert!(!said.contains(secret), "{secret}: {said}");
    }
}
