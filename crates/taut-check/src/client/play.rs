//! The server that is played to a client: good, slow, rude, of one era only.
//!
//! A process of its own, started by the client. Writes down what it hears and says. Judges nothing.

use std::fs::File;
use std::io::{self, BufRead as _, Read as _, Write as _};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use serde_json::{Value, json};

use super::offers::{FUTURE, agreed};
use super::record::line;
use super::signals::Guard;
use super::{noise, offers, rounds};
use crate::cx::VERSION;

/// How long a player lives at most.
const LIFETIME: Duration = Duration::from_secs(60);

/// The longest line of a client that is answered. A longer one is skipped, and is nobody's fault.
const MAX_MESSAGE: u64 = 16 << 20;

/// How many bytes of a client's lines are written down, and what a line costs beside its own. A line that no longer
/// fits is answered, and not judged.
const MAX_HEARD: usize = 8 << 20;
const NOTE: usize = 256;

/// How many lines may be read ahead.
const AHEAD: usize = 4;

/// How long the next answer waits after the server has asked something: long enough for any client to answer.
const ASKED: Duration = Duration::from_millis(1200);

/// How long it waits at most for the roots of a client that declares them, once it has asked.
const ROOTS: Duration = Duration::from_secs(4);

/// How long a server waits for a second request, which it answers before the first. Clients that ask for several things
/// at a time write them one right after the other.
const TOGETHER: Duration = Duration::from_millis(30);

/// How long the stubborn ones stay after their stdin ended, in milliseconds.
pub(crate) const STUBBORN: u64 = 12_000;

fn now() -> u64 {
    millis(SystemTime::now())
}

fn millis(time: SystemTime) -> u64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or_default()
}

struct Player {
    scenario: String,
    log: Arc<Mutex<File>>,
    noise: bool,
    /// The version of the handshake that was answered.
    opened: Option<&'static str>,
    /// The calls that were not answered.
    kept: Vec<Value>,
    /// Whether the client had its time to answer what it was asked.
    waited: bool,
    /// Whether the client declares roots, and has not told them.
    roots: Arc<AtomicBool>,
    /// The answers to the requests of an array, which leave together.
    batch: Option<Vec<Value>>,
}

/// Plays a scenario on stdin and stdout, and writes down what happens to a new file in `folder`.
///
/// # Errors
///
/// If that file cannot be written.
pub fn play(scenario: &str, folder: &Path) -> io::Result<()> {
    let name = format!("{scenario}-{}-{}.jsonl", now(), std::process::id());
    let log = Arc::new(Mutex::new(File::create(folder.join(name))?));
    let (beats, guard) = (log.clone(), Guard::new(scenario, folder));
    // Not joined: it ends with the process.
    std::thread::spawn(move || {
        let began = Instant::now();
        let mut beat = 0;
        while began.elapsed() < LIFETIME {
            // Before the signal is looked for, which may come with it.
            let gone = guard.is_gone().then(now);
            if let Some(at) = guard.told() {
                write_at(&beats, "term", millis(at), &[]);
            }
            if let Some(at) = gone {
                write_at(&beats, "gone", at, &[]);
                break;
            }
            if beat % 10 == 0 {
                write(&beats, "alive", &[]);
            }
            beat += 1;
            std::thread::sleep(Duration::from_millis(10));
        }
        std::process::exit(0);
    });
    // Read ahead, so that what comes before an answer is written down before it.
    let (heard, lines) = std::sync::mpsc::sync_channel(AHEAD);
    let ears = log.clone();
    let roots = Arc::new(AtomicBool::new(false));
    let told = roots.clone();
    std::thread::spawn(move || {
        let mut input = io::BufReader::new(io::stdin().lock());
        let mut bytes = Vec::new();
        let mut left = MAX_HEARD;
        while matches!(input.by_ref().take(MAX_MESSAGE).read_until(b'\n', &mut bytes), Ok(1..)) {
            let whole = bytes.pop_if(|last| *last == b'\n').is_some();
            if !whole && bytes.len() as u64 >= MAX_MESSAGE {
                bytes.clear();
                write(&ears, "skipped", &[]);
                if input.skip_until(b'\n').is_err() {
                    break;
                }
                continue;
            }
            let kind = if whole { "heard" } else { "unfinished" };
            let cost = bytes.len() + NOTE;
            // Long lines leave room for the short ones behind them.
            let reserved = if cost > MAX_HEARD / 64 { MAX_HEARD / 8 } else { 0 };
            if cost + reserved <= left {
                left -= cost;
                write(&ears, kind, &bytes);
            } else {
                write(&ears, "skipped", &[]);
            }
            let bytes = std::mem::take(&mut bytes);
            let value = serde_json::from_slice::<Value>(&bytes).ok();
            if value.as_ref().is_some_and(|value| value["id"] == "roots-1") {
                told.store(false, Ordering::Relaxed);
            }
            // Answers do not wait until the server has time for them, so that their times are true.
            let asks = |value: &Value| value.get("method").is_some() || value.is_array();
            let Some(value) = value.filter(asks) else { continue };
            if heard.send(value).is_err() {
                return;
            }
        }
        write(&ears, "eof", &[]);
    });
    let last = log.clone();
    let mut player = Player {
        scenario: scenario.to_owned(),
        log,
        noise: false,
        opened: None,
        kept: Vec::new(),
        waited: false,
        roots,
        batch: None,
    };
    while let Ok(value) = lines.recv() {
        // What comes at the same time is answered the other way round.
        let next = offers::is_paged(scenario).then(|| lines.recv_timeout(TOGETHER).ok()).flatten();
        if let Some(next) = next {
            player.message(&next);
        }
        player.message(&value);
    }
    if ["stubborn", "deaf", "offer"].contains(&scenario) {
        // At first often, so that the shortest wait is seen.
        for _ in 0..30 {
            std::thread::sleep(Duration::from_millis(10));
            write(&last, "alive", &[]);
        }
        std::thread::sleep(Duration::from_millis(STUBBORN));
    }
    Ok(())
}

fn write(log: &Mutex<File>, kind: &str, bytes: &[u8]) {
    write_at(log, kind, now(), bytes);
}

fn write_at(log: &Mutex<File>, kind: &str, at: u64, bytes: &[u8]) {
    let mut file = log.lock().unwrap_or_else(PoisonError::into_inner);
    // Nobody could be told.
    let _ = file.write_all(line(kind, at, bytes).as_bytes()).and_then(|()| file.flush());
}

impl Player {
    fn is(&self, name: &str) -> bool {
        self.scenario == name
    }

    fn say(&self, value: &Value) {
        let text = format!("{value}\n");
        write(&self.log, "said", text.trim_end().as_bytes());
        let mut out = io::stdout().lock();
        // The parts of a character may arrive one by one.
        let middle = text.find(|c: char| !c.is_ascii()).map(|place| place + 1);
        let middle = middle.filter(|_| offers::is_paged(&self.scenario)).unwrap_or_default();
        let (first, rest) = text.as_bytes().split_at(middle);
        if !first.is_empty() {
            let _ = out.write_all(first).and_then(|()| out.flush());
            std::thread::sleep(TOGETHER);
        }
        let _ = out.write_all(rest).and_then(|()| out.flush());
    }

    /// Answers a message, or those of an array, which 2025-03-26 has. Elsewhere an array is left alone.
    fn message(&mut self, value: &Value) {
        let Some(list) = value.as_array() else { return self.line(value) };
        if self.opened != Some("2025-03-26") {
            return;
        }
        self.batch = Some(Vec::new());
        list.iter().for_each(|one| self.line(one));
        let answers = self.batch.take().filter(|answers| !answers.is_empty());
        answers.into_iter().for_each(|answers| self.say(&json!(answers)));
    }

    fn line(&mut self, value: &Value) {
        let (Some(method), Some(id)) = (value["method"].as_str(), value.get("id")) else {
            return self.late(value);
        };
        if self.is("slow") && method == "initialize" {
            // A server may ping before the session is open.
            self.say(&json!({ "jsonrpc": "2.0", "id": "early-1", "method": "ping" }));
        }
        if self.is("slow") || self.is("modern-slow") {
            std::thread::sleep(Duration::from_secs(1));
        }
        let asks =
            self.is_rude() || ["odd", "array", "array-0618"].contains(&self.scenario.as_str());
        if asks && self.noise && !self.waited {
            self.waited = true;
            std::thread::sleep(ASKED);
            let began = Instant::now();
            while self.roots.load(Ordering::Relaxed) && began.elapsed() + ASKED < ROOTS {
                std::thread::sleep(Duration::from_millis(20));
            }
        }
        if self.is("chatty") {
            let _ = writeln!(
                io::stderr(),
                "ERROR failed to read the cache (error 2), going on without; {method} is served"
            );
            // Whoever takes that for the end has time to do so.
            std::thread::sleep(Duration::from_millis(80));
        }
        let modern = value["params"]["_meta"].get(VERSION).is_some();
        if self.is("modern-full") && modern && method == "subscriptions/listen" {
            return self.listened(id, &value["params"]["notifications"]);
        }
        let answer = self.answer(method, &value["params"], modern);
        let Some(answer) = answer else { return self.kept.push(id.clone()) };
        let mut reply = json!({ "jsonrpc": "2.0", "id": id });
        match answer {
            Ok(mut result) => {
                if modern {
                    if result.get("resultType").is_none() && !self.is("modern-plain") {
                        result["resultType"] = json!("complete");
                    }
                    if offers::is_kept(method) && result["resultType"] != "input_required" {
                        result["ttlMs"] = json!(0);
                        result["cacheScope"] = json!("private");
                    }
                    result["_meta"] = json!({ "io.modelcontextprotocol/serverInfo": { "name": "played", "version": "1" } });
                }
                reply["result"] = result;
            }
            Err(error) => reply["error"] = error,
        }
        match &mut self.batch {
            Some(answers) => answers.push(reply.clone()),
            None => self.say(&reply),
        }
        let opening = method == "initialize" || method == "server/discover";
        // A request that is refused is no session: the client may be about to begin one.
        let served = modern && reply.get("result").is_some() || self.opened.is_some();
        if !self.noise && !opening && served {
            self.noise = true;
            if let Some(version) = self.opened.filter(|_| self.is_rude()) {
                noise::rudeness(version, |value| self.say(value));
            }
            match self.scenario.as_str() {
                "odd" => noise::oddness(|value| self.say(value)),
                "legacy-0326" => noise::batches(|value| self.say(value)),
                "array" | "array-0618" => {
                    self.say(&json!([{ "jsonrpc": "2.0", "id": "array-1", "method": "ping" }]))
                }
                "modern-ask" => noise::modern(|value| self.say(value)),
                _ => {}
            }
        }
    }

    fn answer(
        &mut self,
        method: &str,
        params: &Value,
        modern: bool,
    ) -> Option<Result<Value, Value>> {
        let error =
            |code: i64, message: &str| Some(Err(json!({ "code": code, "message": message })));
        let legacy_only = ["slow", "offer", "offer-later", "mute", "odd", "array", "array-0618"]
            .contains(&self.scenario.as_str())
            || self.scenario.starts_with("legacy")
            || self.scenario.starts_with("rude");
        let modern_only = self.scenario.starts_with("modern");
        let newest = if self.is("modern-version") { FUTURE } else { "2026-07-28" };
        let unsupported = |asked: &Value| {
            Some(Err(json!({ "code": -32022, "message": "unsupported version",
            "data": { "supported": [newest], "requested": asked } })))
        };
        if modern && legacy_only {
            return match self.scenario.as_str() {
                "legacy-silent" => None,
                "legacy-odd" => error(-32602, "invalid params"),
                "legacy-invalid" => error(-32600, "not initialized"),
                "legacy-custom" => error(-32000, "bad request"),
                "legacy-internal" => error(-32603, "internal error"),
                "legacy-zero" => error(0, "the session is not open"),
                "legacy-exits" => std::process::exit(1),
                _ => error(-32601, "method not found"),
            };
        }
        if modern && (self.is("modern-version") || params["_meta"][VERSION] != newest) {
            return unsupported(&params["_meta"][VERSION]);
        }
        if !modern && modern_only {
            return unsupported(&params["protocolVersion"]);
        }
        if let Some(round) = self.round(method, params) {
            return Some(Ok(round));
        }
        if let Some(failure) = offers::failure(method, params, &self.scenario, modern) {
            return Some(Err(failure));
        }
        let stuck = ["stuck", "legacy-stuck", "late"].contains(&self.scenario.as_str());
        let listed = method.ends_with("/list") && method != "tools/list";
        Some(match method {
            "initialize" if self.is("mute") => return None,
            "tools/call" if stuck && self.kept.is_empty() => return None,
            _ if self.is("stuck-list") && listed && self.kept.is_empty() => return None,
            "initialize" => Ok(self.initialized(params)),
            "server/discover" if modern => {
                let versions = match self.is("modern-versions") {
                    true => json!([FUTURE, "2026-07-28", "2025-11-25"]),
                    false => json!(["2026-07-28"]),
                };
                let capabilities = offers::capabilities(&self.scenario, modern);
                Ok(json!({ "supportedVersions": versions, "capabilities": capabilities }))
            }
            "ping" if !modern => Ok(json!({})),
            "tools/list" => Ok(offers::tools(&self.scenario, params, modern)),
            "tools/call" => Ok(
                json!({ "content": [{ "type": "text", "text": params["arguments"]["text"].as_str().unwrap_or("hello") }] }),
            ),
            _ => match offers::full(method, params, &self.scenario, modern) {
                Some(result) => Ok(result),
                None => return error(-32601, "method not found"),
            },
        })
    }

    /// Whether it asks a lot, and says what nobody asked.
    fn is_rude(&self) -> bool {
        self.scenario.starts_with("rude")
            || ["legacy-2024", "legacy-0326"].contains(&self.scenario.as_str())
    }

    /// Answers a call that was cancelled, in the scenario that is late.
    fn late(&mut self, value: &Value) {
        let id = &value["params"]["requestId"];
        if self.is("late") && value["method"] == "notifications/cancelled" && self.kept.contains(id)
        {
            let mut result = json!({ "content": [{ "type": "text", "text": "late" }] });
            if self.opened.is_none() {
                result["resultType"] = json!("complete");
            }
            self.say(&json!({ "jsonrpc": "2.0", "id": id, "result": result }));
        }
    }

    /// What comes before the answer to a call, in the scenarios that want it once more.
    fn round(&self, method: &str, params: &Value) -> Option<Value> {
        let call = method == "tools/call";
        match self.scenario.as_str() {
            "modern-state" if call => rounds::state(params),
            "modern-type-call" if call => Some(rounds::invalid()),
            "modern-ask" if call => rounds::undeclared(params),
            "modern-ask-page" if call => rounds::page(params),
            "modern-input" if call || ["prompts/get", "resources/read"].contains(&method) => {
                rounds::questions(params)
            }
            _ => None,
        }
    }

    /// Opens a stream of notifications, which stays open, and tells of one change.
    fn listened(&self, id: &Value, wanted: &Value) {
        let meta = json!({ "io.modelcontextprotocol/subscriptionId": id });
        let changes = wanted["toolsListChanged"] == true;
        let kept = if changes { json!({ "toolsListChanged": true }) } else { json!({}) };
        let note = |method: &str, params: Value| {
            self.say(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
        };
        let params = json!({ "notifications": kept, "_meta": meta });
        note("notifications/subscriptions/acknowledged", params);
        if changes {
            note("notifications/tools/list_changed", json!({ "_meta": meta }));
        }
    }

    fn initialized(&mut self, params: &Value) -> Value {
        let asked = params["protocolVersion"].as_str().unwrap_or_default();
        let known = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
        let asked = known.into_iter().find(|known| *known == asked);
        let version = agreed(&self.scenario).or(asked).unwrap_or("2025-11-25");
        self.opened = Some(version);
        self.roots.store(params["capabilities"]["roots"].is_object(), Ordering::Relaxed);
        json!({ "protocolVersion": version, "capabilities": offers::capabilities(&self.scenario, false), "serverInfo": { "name": "played", "version": "1" } })
    }
}
