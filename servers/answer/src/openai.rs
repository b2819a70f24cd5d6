//! One question to the Responses API: the request, its time limit, its second tries.
//!
//! Knows HTTP and what may go wrong with it. Must not know MCP; what stands in a response is read in
//! `citations.rs`. Dropping the future closes the connection: a cancelled call costs nothing more.

use std::error::Error;
use std::time::Duration;

use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::Bytes;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use hyper::{Request, StatusCode};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::{Client, connect::HttpConnector};
use hyper_util::rt::TokioExecutor;
use serde_json::{Value, json};

use crate::config::Config;

/// An answer with its sources is some tens of KiB; this only stops a body that never ends.
const MAX_BODY: usize = 16 << 20;
/// The first wait before another try, unless the service names a longer one; each is twice the last.
const FIRST_WAIT: Duration = Duration::from_millis(300);
/// A service that asks for more patience than this is down, as far as a person is concerned.
const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// How much of a service's own words is passed on, in characters.
const LONGEST_MESSAGE: usize = 400;

/// A service that speaks the Responses API, as the configuration describes it.
pub struct OpenAi {
    http: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    pub config: Config,
    policy: String,
}

/// Why a try failed, in words; and, if another may help, how long the service asks us to wait.
type Failed = (String, Option<Duration>);

impl OpenAi {
    pub fn new(config: Config, policy: String) -> Self {
        let https = HttpsConnectorBuilder::new().with_webpki_roots();
        let https = https.https_or_http().enable_http1().build();
        Self { http: Client::builder(TokioExecutor::new()).build(https), config, policy }
    }

    /// Asks until there is a response, a refusal, or no try left; `waiting` hears of each wait.
    pub async fn ask(
        &self,
        profile: [&str; 3],
        input: &str,
        waiting: impl Fn(String),
    ) -> Result<Value, String> {
        let body = Bytes::from(request_body(profile, &self.policy, input).to_string());
        let limit = Duration::from_millis(self.config.number("request.timeout_ms").into());
        let retries = self.config.number("request.max_retries");
        let too_slow = |_| Err((format!("no answer within {limit:?} (request.timeout_ms)"), None));
        let mut tried = 0;
        loop {
            let attempt = tokio::time::timeout(limit, self.attempt(body.clone()));
            let (why, asked) = match attempt.await.unwrap_or_else(too_slow) {
                Ok(response) => return Ok(response),
                Err(failed) => failed,
            };
            let wait = asked.map(|asked| asked.max(FIRST_WAIT * 2_u32.saturating_pow(tried)));
            tracing::debug!(tried, why, ?wait, "no answer");
            let Some(wait) = wait.filter(|wait| tried < retries && *wait <= LONGEST_WAIT) else {
                return Err(why);
            };
            waiting(format!("trying again in {wait:?}: {why}"));
            // Up to a quarter more: those who were turned away together must not return together.
            let part = f64::from(getrandom::u32().unwrap_or_default()) / f64::from(u32::MAX);
            tokio::time::sleep(wait.mul_f64(1.0 + part / 4.0)).await;
            tried += 1;
        }
    }

    async fn attempt(&self, body: Bytes) -> Result<Value, Failed> {
        let for_good = |why: String| (why, None);
        let response = self.http.request(self.request(body).map_err(for_good)?).await;
        let response = response.map_err(|error| {
            let url = self.config.text("openai.base_url");
            for_good(format!("{url} did not answer: {}", root_cause(&error)))
        })?;
        let (head, body) = response.into_parts();
        let body = Limited::new(body, MAX_BODY).collect().await.map(|body| body.to_bytes());
        tracing::debug!(status = head.status.as_u16(), whole = body.is_ok(), "response");
        if !head.status.is_success() {
            let words = self.message_of(&body.unwrap_or_default());
            let mut why = format!("the service said {}: {words}", head.status);
            if head.status == StatusCode::UNAUTHORIZED {
                why += &format!(" (check the key in {})", self.config.text("openai.api_key_env"));
            }
            let asked = asked_wait(&head.headers);
            if !asked.is_zero() {
                why += &format!(" (it asks to wait {asked:?})");
            }
            return Err((why, matches!(head.status.as_u16(), 429 | 500..).then_some(asked)));
        }
        let body = body.map_err(|error| match error.is::<LengthLimitError>() {
            true => for_good(format!("the response is longer than {MAX_BODY} bytes")),
            false => for_good(format!("the response broke off: {}", root_cause(error.as_ref()))),
        })?;
        serde_json::from_slice(&body)
            .map(|response| self.config.key.hide_in_json(response))
            .map_err(|error| for_good(format!("the response is not JSON: {error}")))
    }

    fn request(&self, body: Bytes) -> Result<Request<Full<Bytes>>, String> {
        let variable = self.config.text("openai.api_key_env");
        let key = self.config.key.reveal().ok_or_else(|| {
            format!("there is no API key: set {variable} in this server's environment, restart it")
        })?;
        let mut bearer = HeaderValue::try_from(format!("Bearer {key}")).map_err(|_| {
            format!("the key in {variable} has characters that no header can carry")
        })?;
        bearer.set_sensitive(true);
        let base = self.config.text("openai.base_url").trim_end_matches('/');
        let request = Request::post(format!("{base}/responses")).header(AUTHORIZATION, bearer);
        let request = request.header(CONTENT_TYPE, "application/json").body(Full::new(body));
        request.map_err(|error| format!("openai.base_url cannot be used: {error}"))
    }

    /// The service's own words: `error.message` where there is one.
    fn message_of(&self, body: &[u8]) -> String {
        let parsed = serde_json::from_slice::<Value>(body).unwrap_or_default();
        let message = parsed["error"]["message"].as_str().map(Into::into);
        let message = message.unwrap_or_else(|| String::from_utf8_lossy(body));
        self.config.key.hide_in(message.trim()).chars().take(LONGEST_MESSAGE).collect()
    }
}

/// What is asked. Only some models take an effort, and only gpt-5 a verbosity; others refuse it.
fn request_body(profile: [&str; 3], instructions: &str, input: &str) -> Value {
    let [model, effort, verbosity] = profile;
    let mut body = json!({
        "model": model,
        "instructions": instructions,
        "input": [{ "role": "user", "content": [{ "type": "input_text", "text": input }] }],
        "tools": [{ "type": "web_search" }],
        "include": ["web_search_call.action.sources"],
    });
    if model.starts_with("gpt-5") {
        body["text"] = json!({ "verbosity": verbosity });
    }
    if ["gpt-5", "o3", "o4"].iter().any(|family| model.starts_with(family)) {
        body["reasoning"] = json!({ "effort": effort });
    }
    body
}

/// How long the service asks us to wait. A date instead of seconds is left to our own wait.
fn asked_wait(headers: &HeaderMap) -> Duration {
    let number = |name: &str| headers.get(name)?.to_str().ok()?.trim().parse::<f64>().ok();
    let seconds = number("retry-after-ms").map(|ms| ms / 1000.0).or_else(|| number("retry-after"));
    Duration::try_from_secs_f64(seconds.unwrap_or_default()).unwrap_or_default()
}

/// The innermost reason, which is the one that helps: "connection refused", not "client error".
fn root_cause(mut error: &(dyn Error + 'static)) -> String {
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}
