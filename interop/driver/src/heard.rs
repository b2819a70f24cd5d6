//! Our client as a host: how it answers, what it remembers of what came besides answers, and what was
//! said on the wire.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::json;
use taut::types::{CreateMessageResult, ElicitResult};
use taut::{Client, ClientBuilder, Role, Root};
use taut_trace::{Side, Transcript};

/// What came besides answers, until now.
#[derive(Clone, Default)]
pub struct Heard {
    pub logs: Arc<Mutex<Vec<String>>>,
    pub stderr: Arc<Mutex<Vec<String>>>,
}

impl Heard {
    pub fn logged(&self, text: &str) -> bool {
        has(&self.logs, text)
    }

    pub fn on_stderr(&self, text: &str) -> bool {
        has(&self.stderr, text)
    }
}

fn has(lines: &Mutex<Vec<String>>, text: &str) -> bool {
    lines.lock().unwrap_or_else(PoisonError::into_inner).iter().any(|line| line.contains(text))
}

fn add(lines: &Mutex<Vec<String>>, line: String) {
    lines.lock().unwrap_or_else(PoisonError::into_inner).push(line);
}

/// A host that orders coffee, knows a capital and works in one folder. It declines every other form.
pub fn host(heard: &Heard) -> ClientBuilder {
    let (logs, stderr) = (heard.logs.clone(), heard.stderr.clone());
    Client::builder()
        .on_elicit(async |form, _asking| {
            let fields = serde_json::to_value(&form.requested_schema).unwrap_or_default();
            let asks = |field: &str| fields["properties"][field].is_object();
            let answer = if asks("right") {
                json!({ "right": true })
            } else if asks("milk") {
                json!({ "size": "large", "milk": true, "name": "Ada" })
            } else {
                return ElicitResult::decline();
            };
            ElicitResult::accept(answer.as_object().cloned().unwrap_or_default())
        })
        .on_sample(async |_question, _asking| {
            CreateMessageResult::new(Role::Assistant, "Lisbon", "a-model")
        })
        .roots([Root::new("file:///interop/project")])
        .on_log(move |log| add(&logs, format!("{}: {}", log.level, log.data.text())))
        .on_stderr(move |line| {
            eprintln!("{line}");
            add(&stderr, line.to_owned());
        })
}

/// Writes down what is said from now on, as a capture.
pub fn transcript(path: &str) -> Result<(), String> {
    let file = Transcript::open(Path::new(path), Side::Client, "taut interop");
    let file = file.map_err(|e| format!("{path}: {e}"))?;
    let steps = taut::Steps::new(move |step: &str| file.step(step));
    tracing::subscriber::set_global_default(steps).map_err(|e| e.to_string())
}
