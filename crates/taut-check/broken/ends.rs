//! Calls that take a while or ask back: threads that answer later.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};

use crate::Out;

/// How many of these calls are under way.
pub(crate) static BUSY: AtomicUsize = AtomicUsize::new(0);

/// How many of them asked for logs.
pub(crate) static LOGGING: AtomicUsize = AtomicUsize::new(0);

/// What a call that runs beside the loop needs.
pub(crate) struct Later {
    pub(crate) out: Out,
    pub(crate) id: Value,
    pub(crate) token: Option<Value>,
    pub(crate) modern: bool,
    /// Whether the request asked for logs.
    pub(crate) logs: bool,
    /// A subscription that was open when it began.
    pub(crate) stream: Option<Value>,
    pub(crate) cancelled: Arc<Mutex<Vec<Value>>>,
    /// How many were cancelled when it began.
    pub(crate) before: usize,
}

impl Later {
    fn is_cancelled(&self) -> bool {
        let cancelled = self.cancelled.lock().unwrap_or_else(PoisonError::into_inner);
        cancelled.contains(&self.id)
            || self.out.is("cancel-all") && cancelled.len() > self.before
            || cancelled.iter().skip(self.before).any(Value::is_null)
    }

    /// Reports so many steps, each after a pause; then gives the result. Stops when it is cancelled.
    pub(crate) fn run(self, steps: u32, pause: Duration, result: &Value) {
        LOGGING.fetch_add(usize::from(self.logs), Ordering::Relaxed);
        self.steps(steps, pause, result);
        LOGGING.fetch_sub(usize::from(self.logs), Ordering::Relaxed);
        // There it leaves something behind that never ends, however late the end of stdin is seen.
        if !self.out.is("frame-exit-busy") {
            BUSY.fetch_sub(1, Ordering::Relaxed);
        }
    }

    fn steps(&self, steps: u32, pause: Duration, result: &Value) {
        let deaf = self.out.is("cancel-silent") || self.out.is("cancel-silent-modern");
        let log = |said: &str| {
            self.out.send(&json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": { "level": "info", "data": said } }));
        };
        if self.out.is("cancel-told") && self.logs {
            log("it begins");
        }
        let told = if self.out.is("progress-fixture") && steps == 3 { 1 } else { steps };
        for step in 0..steps {
            if self.is_cancelled() && self.out.is("cut-short") {
                break;
            }
            if self.is_cancelled() && !deaf {
                if (self.out.is("cancel-logs") || self.out.is("cancel-told")) && self.logs {
                    log("cancelled");
                }
                if let (true, Some(token)) = (self.out.is("cancel-done"), &self.token) {
                    let params =
                        json!({ "progressToken": token, "progress": steps, "total": steps });
                    self.out.send(&json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params }));
                }
                if let (true, Some(token)) = (self.out.is("progress-cancelled"), &self.token) {
                    std::thread::sleep(Duration::from_millis(200));
                    let params = json!({ "progressToken": token, "progress": 1000 });
                    self.out.send(&json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params }));
                }
                if self.out.is("cancel-empty") {
                    std::thread::sleep(Duration::from_millis(100));
                    self.out.send(
                        &json!({ "jsonrpc": "2.0", "id": self.id, "result": { "content": [] } }),
                    );
                }
                if self.out.is("log-cancelled") && self.logs {
                    std::thread::sleep(pause * 2);
                    self.out.send(&json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": { "level": "info", "data": "cleaned up" } }));
                }
                return;
            }
            if let Some(token) = self.token.as_ref().filter(|_| step < told) {
                let token = match token {
                    _ if self.out.is("progress-known") => json!("another"),
                    Value::Number(number) if self.out.is("token-text") => json!(number.to_string()),
                    token => token.clone(),
                };
                let falls = self.out.is("progress-falls") && steps == 3;
                let value = if self.out.is("progress-rises") { 1 } else { step + 1 };
                let value = if falls { steps - step } else { value };
                let mut params =
                    json!({ "progressToken": token, "progress": value, "total": steps });
                if self.out.is("total-text") {
                    params["total"] = json!(steps.to_string());
                }
                if let (true, Some(id)) = (self.out.is("progress-tagged"), &self.stream) {
                    params["_meta"] = json!({ "io.modelcontextprotocol/subscriptionId": id });
                }
                if self.out.is("progress-untagged") && self.modern {
                    params["_meta"] = json!({ "io.modelcontextprotocol/subscriptionId": 1 });
                }
                self.out.send(&json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params }));
            }
            for _ in 0..10 {
                let prompt =
                    ["cut-short", "cancel-logs", "cancel-told", "cancel-done", "cancel-empty"];
                let prompt = prompt.iter().any(|role| self.out.is(role));
                if !(prompt && self.is_cancelled()) {
                    std::thread::sleep(pause / 10);
                }
            }
        }
        if !self.is_cancelled() || deaf || self.out.is("cut-short") {
            self.out.send(&json!({ "jsonrpc": "2.0", "id": self.id, "result": result }));
        }
        if let (true, Some(token)) = (self.out.is("progress-late"), &self.token) {
            let params = json!({ "progressToken": token, "progress": steps + 1, "total": steps });
            self.out.send(
                &json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params }),
            );
        }
    }
}
