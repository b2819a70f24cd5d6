//! Nothing that a login writes or shows has a token, a code or a verifier in it.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex};

use serde_json::json;
use taut::Client;
use taut_http::client::login::Login;
use taut_http::client::{HttpOptions, HttpTransport};
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
