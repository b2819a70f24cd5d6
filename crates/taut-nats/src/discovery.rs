//! NATS's own service API: a worker answers it, so that `nats micro` shows it, and the fleet is listed by it.
//!
//! Knows the three questions (PING, INFO, STATS) and their answers; must not know how calls are run.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_nats::{StatusCode, Subscriber};
use futures_util::StreamExt;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::connection::{Connection, NatsError};
use crate::names::{GROUP, ServiceName};

/// What a worker counts.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) busy: AtomicUsize,
    pub(crate) listens: AtomicUsize,
    pub(crate) calls: AtomicU64,
    pub(crate) errors: AtomicU64,
    pub(crate) bounced: AtomicU64,
    pub(crate) nanoseconds: AtomicU64,
    pub(crate) leaving: AtomicBool,
}

impl Counters {
    /// A call that has a slot has ended, or a stream of changes.
    pub(crate) fn ended(&self, began: Instant, ended: Instant, listen: bool, error: bool) {
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.errors.fetch_add(u64::from(error), Ordering::Relaxed);
        if !listen {
            let took = u64::try_from((ended - began).as_nanos()).unwrap_or(u64::MAX);
            self.nanoseconds.fetch_add(took, Ordering::Relaxed);
        }
    }
}

/// Who a worker is.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    pub(crate) service: ServiceName,
    pub(crate) worker: String,
    pub(crate) version: String,
    pub(crate) slots: usize,
    /// The name and version of the server that it runs.
    pub(crate) server: Option<String>,
    pub(crate) started: SystemTime,
}

impl Identity {
    fn head(&self, kind: &str) -> Value {
        let mut metadata = json!({
            "protocol": "mcp-2026-07-28",
            "pid": std::process::id().to_string(),
        });
        if let (Some(server), Some(metadata)) = (&self.server, metadata.as_object_mut()) {
            metadata.insert("server".to_owned(), server.as_str().into());
        }
        json!({
            "name": self.service.as_str(),
            "id": self.worker,
            "version": self.version,
            "metadata": metadata,
            "type": format!("io.nats.micro.v1.{kind}_response"),
        })
    }

    /// The answer to one of the three questions.
    fn answer(&self, verb: Verb, counters: &Counters) -> Value {
        let endpoint = json!({ "name": "call", "subject": self.service.calls().as_str(), "queue_group": GROUP });
        let mut answer = self.head(verb.kind());
        let added = match verb {
            Verb::Ping => json!({}),
            Verb::Info => json!({
                "description": "MCP requests, run by a taut worker",
                "endpoints": [endpoint],
            }),
            Verb::Stats => {
                let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
                let (calls, nanoseconds) = (read(&counters.calls), read(&counters.nanoseconds));
                let mut endpoint = endpoint;
                merge(
                    &mut endpoint,
                    json!({
                        "num_requests": calls,
                        "num_errors": read(&counters.errors),
                        "last_error": "",
                        "processing_time": nanoseconds,
                        "average_processing_time": nanoseconds.checked_div(calls).unwrap_or(0),
                        "data": {
                            "slots": self.slots,
                            "busy": counters.busy.load(Ordering::Relaxed),
                            "listens": counters.listens.load(Ordering::Relaxed),
                            "bounced": read(&counters.bounced),
                        },
                    }),
                );
                json!({ "started": rfc3339(self.started), "endpoints": [endpoint] })
            }
        };
        merge(&mut answer, added);
        answer
    }
}

fn merge(object: &mut Value, added: Value) {
    if let (Some(object), Value::Object(added)) = (object.as_object_mut(), added) {
        object.extend(added);
    }
}

#[derive(Clone, Copy)]
enum Verb {
    Ping,
    Info,
    Stats,
}

impl Verb {
    const ALL: [Self; 3] = [Self::Ping, Self::Info, Self::Stats];

    fn word(self) -> &'static str {
        match self {
            Self::Ping => "PING",
            Self::Info => "INFO",
            Self::Stats => "STATS",
        }
    }

    fn kind(self) -> &'static str {
        match self {
            Self::Ping => "ping",
            Self::Info => "info",
            Self::Stats => "stats",
        }
    }
}

/// The subscriptions of a worker for the service API.
pub(crate) struct Discoverable {
    subscriptions: Vec<(Verb, Subscriber)>,
}

impl Discoverable {
    /// Subscribes.
    ///
    /// # Errors
    /// The connection is closed.
    pub(crate) async fn new(
        connection: &Connection,
        identity: &Identity,
    ) -> Result<Self, NatsError> {
        let (service, worker) = (&identity.service, &identity.worker);
        let mut subscriptions = Vec::new();
        for verb in Verb::ALL {
            let word = verb.word();
            for subject in [
                format!("$SRV.{word}"),
                format!("$SRV.{word}.{service}"),
                format!("$SRV.{word}.{service}.{worker}"),
            ] {
                let subscribed = connection.client().subscribe(subject).await;
                let subscribed = subscribed.map_err(|error| NatsError::new(error.to_string()))?;
                subscriptions.push((verb, subscribed));
            }
        }
        Ok(Self { subscriptions })
    }

    /// Answers until it is dropped.
    pub(crate) async fn run(self, connection: Connection, identity: Identity, counters: &Counters) {
        let streams = self
            .subscriptions
            .into_iter()
            .map(|(verb, subscriber)| subscriber.map(move |message| (verb, message)));
        let mut asked = futures_util::stream::select_all(streams);
        while let Some((verb, message)) = asked.next().await {
            let Some(reply) = message.reply else { continue };
            if counters.leaving.load(Ordering::Relaxed) {
                continue;
            }
            let answer = identity.answer(verb, counters).to_string();
            if let Err(error) = connection.client().publish(reply, answer.into()).await {
                tracing::warn!("a question for this worker was not answered: {error}");
            }
        }
    }
}

/// A worker, as it describes itself.
#[derive(Clone, Debug, Serialize, PartialEq)]
#[non_exhaustive]
pub struct WorkerReport {
    /// The service that it serves.
    pub service: String,
    /// Its own id.
    pub worker: String,
    /// The server that it runs: name and version.
    pub server: Option<String>,
    /// Its process.
    pub pid: Option<String>,
    /// When it was started.
    pub started: String,
    /// How many calls it takes at once.
    pub slots: u64,
    /// How many it runs now.
    pub busy: u64,
    /// How many streams of changes it keeps.
    pub listens: u64,
    /// How many calls it has finished.
    pub calls: u64,
    /// How many of them were answered with an error.
    pub errors: u64,
    /// How many it refused because it was full.
    pub bounced: u64,
    /// How long a call took on average, in milliseconds.
    pub average_ms: f64,
}

#[derive(Deserialize)]
struct Stats {
    name: String,
    id: String,
    #[serde(default)]
    started: String,
    #[serde(default)]
    metadata: Option<std::collections::HashMap<String, String>>,
    #[serde(default)]
    endpoints: Vec<EndpointStats>,
}

#[derive(Deserialize)]
struct EndpointStats {
    #[serde(default)]
    subject: String,
    #[serde(default)]
    num_requests: u64,
    #[serde(default)]
    num_errors: u64,
    #[serde(default)]
    average_processing_time: u64,
    #[serde(default)]
    data: Option<Value>,
}

/// Reads the statistics of one service; nothing if it is no worker of a fleet.
fn report(payload: &[u8]) -> Option<WorkerReport> {
    let stats: Stats = serde_json::from_slice(payload).ok()?;
    let service: ServiceName = stats.name.parse().ok()?;
    let endpoint =
        stats.endpoints.into_iter().find(|one| one.subject == service.calls().as_str())?;
    let number = |name: &str| {
        endpoint.data.as_ref().and_then(|data| data.get(name)).and_then(Value::as_u64).unwrap_or(0)
    };
    let metadata = stats.metadata.unwrap_or_default();
    Some(WorkerReport {
        service: stats.name,
        worker: stats.id,
        server: metadata.get("server").cloned(),
        pid: metadata.get("pid").cloned(),
        started: stats.started,
        slots: number("slots"),
        busy: number("busy"),
        listens: number("listens"),
        calls: endpoint.num_requests,
        errors: endpoint.num_errors,
        bounced: number("bounced"),
        average_ms: endpoint.average_processing_time as f64 / 1e6,
    })
}

/// Lists the workers of a service, or of all. Waits until none has answered for a quarter of a second, and
/// at most for `limit`.
///
/// # Errors
/// The connection is closed.
pub async fn fleet(
    connection: &Connection,
    service: Option<&ServiceName>,
    limit: Duration,
) -> Result<Vec<WorkerReport>, NatsError> {
    let mut answers = ask(connection, Verb::Stats, service).await?;
    let mut workers = Vec::new();
    let gather = async {
        let quiet = Duration::from_millis(250).min(limit);
        while let Ok(Some(message)) = tokio::time::timeout(quiet, answers.next()).await {
            if message.status == Some(StatusCode::NO_RESPONDERS) {
                break;
            }
            workers.extend(report(&message.payload));
        }
    };
    // What has come by then counts.
    let _ = tokio::time::timeout(limit, gather).await;
    workers.sort_by(|a, b| (&a.service, &a.worker).cmp(&(&b.service, &b.worker)));
    Ok(workers)
}

/// Whether any worker of the service answers.
pub(crate) async fn is_served(connection: &Connection, service: &ServiceName) -> bool {
    let Ok(mut answers) = ask(connection, Verb::Ping, Some(service)).await else { return false };
    let answer = tokio::time::timeout(Duration::from_millis(500), answers.next()).await;
    matches!(answer, Ok(Some(message)) if message.status != Some(StatusCode::NO_RESPONDERS))
}

async fn ask(
    connection: &Connection,
    verb: Verb,
    service: Option<&ServiceName>,
) -> Result<Subscriber, NatsError> {
    let closed = |error: &dyn std::fmt::Display| NatsError::new(error.to_string());
    let client = connection.client();
    let inbox = client.new_inbox();
    let answers = client.subscribe(inbox.clone()).await.map_err(|error| closed(&error))?;
    let subject = match service {
        Some(service) => format!("$SRV.{}.{service}", verb.word()),
        None => format!("$SRV.{}", verb.word()),
    };
    let asked = client.publish_with_reply(subject, inbox, bytes::Bytes::new()).await;
    asked.map_err(|error| closed(&error))?;
    Ok(answers)
}

/// A moment as the service API writes it, in whole seconds.
fn rfc3339(moment: SystemTime) -> String {
    let seconds = moment.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let (mut days, time) = (seconds / 86_400, seconds % 86_400);
    let mut year = 1970;
    let leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    while days >= 365 + u64::from(leap(year)) {
        days -= 365 + u64::from(leap(year));
        year += 1;
    }
    let february = 28 + u64::from(leap(year));
    let months = [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 0;
    while days >= months[month] {
        days -= months[month];
        month += 1;
    }
    let (month, day) = (month + 1, days + 1);
    let (hour, minute, second) = (time / 3600, time / 60 % 60, time % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_written_as_a_date() {
        let table = [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_709_251_199, "2024-02-29T23:59:59Z"),
            (4_102_444_800, "2100-01-01T00:00:00Z"),
        ];
        for (seconds, text) in table {
            assert_eq!(rfc3339(UNIX_EPOCH + Duration::from_secs(seconds)), text);
        }
    }

    #[test]
    fn what_a_worker_tells_is_what_the_fleet_lists() {
        let identity = Identity {
            service: "search".parse().unwrap(),
            worker: "w1".into(),
            version: "0.1.0".into(),
            slots: 8,
            server: Some("demo 1.0".into()),
            started: UNIX_EPOCH,
        };
        let counters = Counters::default();
        counters.busy.store(3, Ordering::Relaxed);
        counters.calls.store(4, Ordering::Relaxed);
        counters.nanoseconds.store(8_000_000, Ordering::Relaxed);
        let stats = identity.answer(Verb::Stats, &counters);
        assert_eq!(stats["type"], "io.nats.micro.v1.stats_response");
        let report = report(stats.to_string().as_bytes()).unwrap();
        assert_eq!((report.service.as_str(), report.worker.as_str()), ("search", "w1"));
        assert_eq!((report.slots, report.busy, report.calls), (8, 3, 4));
        assert_eq!((report.server.as_deref(), report.average_ms), (Some("demo 1.0"), 2.0));
        let info = identity.answer(Verb::Info, &counters);
        assert_eq!(info["endpoints"][0]["subject"], "mcp.search.call");
        assert_eq!(
            identity.answer(Verb::Ping, &counters)["type"],
            "io.nats.micro.v1.ping_response"
        );
    }

    #[test]
    fn services_of_others_are_not_listed() {
        let other =
            r#"{"name":"x","id":"1","type":"t","endpoints":[{"name":"e","subject":"x.y"}]}"#;
        assert_eq!(report(other.as_bytes()), None);
        assert_eq!(report(b"no json"), None);
    }
}
