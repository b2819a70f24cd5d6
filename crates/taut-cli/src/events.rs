//! Notifications of a server (logs, changes, progress, its end) as text and as JSON.
//!
//! Must not know where they are shown.

use serde_json::{Value, json};
use taut::types::{LogParams, ProgressParams};
use taut::{Change, Level, client::ClientEvent};

use crate::output::{CYAN, DIM, Output, RED, YELLOW};

/// One thing that was told.
#[derive(Debug)]
pub(crate) enum Event {
    Log(LogParams),
    Change(Change),
    Progress {
        of: String,
        report: ProgressParams,
    },
    /// The server is gone; how it ended, in words.
    Ended(String),
}

impl Event {
    /// As one line of words.
    pub(crate) fn line(&self, output: &Output) -> String {
        let err = output.err;
        match self {
            Self::Log(log) => {
                let style = match log.level {
                    Level::Debug | Level::Info => DIM,
                    Level::Notice => CYAN,
                    Level::Warning => YELLOW,
                    _ => RED,
                };
                let level = err.paint(style, err.line(&log.level.to_string()));
                let from = log.logger.as_ref().map(|name| format!("{name}: ")).unwrap_or_default();
                format!("{level} {}", err.line(&format!("{from}{}", words(log))))
            }
            Self::Change(change) => err.paint(CYAN, err.line(&changed(change))),
            Self::Progress { of, report } => {
                let total = report.total.map(|total| format!(" of {total}")).unwrap_or_default();
                let message =
                    report.message.as_ref().map(|m| format!(" · {m}")).unwrap_or_default();
                let line = format!("{of}: {}{total}{message}", report.progress);
                err.line(&line).into_owned()
            }
            Self::Ended(how) => err.paint(RED, err.line(how)),
        }
    }

    /// As one JSON document.
    pub(crate) fn json(&self) -> Value {
        match self {
            Self::Log(log) => {
                let data: Value = log.data.parse().unwrap_or(Value::Null);
                let mut event =
                    json!({ "event": "log", "level": log.level.as_str(), "data": data });
                if let Some(logger) = &log.logger {
                    event["logger"] = json!(logger);
                }
                event
            }
            Self::Change(Change::Resource(uri)) => {
                json!({ "event": "change", "what": "resource", "uri": uri })
            }
            Self::Change(change) => {
                let what = match change {
                    Change::Tools => "tools",
                    Change::Prompts => "prompts",
                    Change::Resources => "resources",
                    _ => "anything",
                };
                json!({ "event": "change", "what": what })
            }
            Self::Progress { of, report } => {
                let ProgressParams { progress, total, message, .. } = report;
                json!({ "event": "progress", "of": of, "progress": progress, "total": total,
                        "message": message })
            }
            Self::Ended(how) => json!({ "event": "ended", "how": how }),
        }
    }

    /// Tells it: a line beside the results, or one of them with `--json`.
    pub(crate) fn tell(&self, output: &Output) {
        if output.json {
            // A closed stdout is reported with the next result.
            let _ = output.json_line(&self.json());
        } else {
            output.note(&self.line(output));
        }
    }
}

/// Whether `notification` is told by a hook of its own.
pub(crate) fn is_told(event: &ClientEvent<'_>) -> bool {
    let ClientEvent::Notification { method, .. } = event else { return false };
    let told = ["message", "tools/list_changed", "prompts/list_changed", "resources/list_changed"];
    method.strip_prefix("notifications/").is_some_and(|what| told.contains(&what))
}

fn words(log: &LogParams) -> String {
    log.data.parse::<String>().unwrap_or_else(|_| log.data.text().to_string())
}

fn changed(change: &Change) -> String {
    match change {
        Change::Tools => "the tools have changed".to_owned(),
        Change::Prompts => "the prompts have changed".to_owned(),
        Change::Resources => "the resources have changed".to_owned(),
        Change::Resource(uri) => format!("{uri} has changed"),
        _ => "something has changed".to_owned(),
    }
}
