//! The table of `connect.rs`, row by row.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn plan() -> Plan {
    Plan {
        pin: None,
        offer: None,
        known: None,
        only_legacy: false,
        framing: None,
        probe: 5 * SECOND,
        start: 60 * SECOND,
        restartable: true,
    }
}

/// An opening and the clock it is told.
struct Run {
    connect: Connect,
    start: Instant,
    now: Instant,
}

impl Run {
    fn new(plan: Plan) -> Self {
        let start = Instant::now();
        let mut run = Self { connect: Connect::new(plan), start, now: start };
        run.started();
        run
    }

    fn started(&mut self) {
        self.connect.handle_started(self.now);
    }

    fn discover(&mut self, answer: Value) -> &mut Self {
        let raw = serde_json::value::to_raw_value(&answer).unwrap();
        self.connect.handle_discover(self.now, Discovered::read(&raw));
        self
    }

    fn discover_error(&mut self, code: i64, data: Value) -> &mut Self {
        let error = ErrorObject::new(code, "no").with_data(&data);
        self.connect.handle_discover(self.now, Err(ConnectFault::Refused(error)));
        self
    }

    fn initialize(&mut self, answer: Value) -> &mut Self {
        let raw = serde_json::value::to_raw_value(&answer).unwrap();
        self.connect.handle_initialize(self.now, Initialized::read(&raw));
        self
    }

    fn initialize_error(&mut self, code: i64, data: Value) -> &mut Self {
        let error = ErrorObject::new(code, "no").with_data(&data);
        self.connect.handle_initialize(self.now, Err(ConnectFault::Refused(error)));
        self
    }

    fn exit(&mut self) -> &mut Self {
        self.connect.handle_exit(true);
        self
    }

    /// Lets time pass until the opening wants to know.
    fn wait(&mut self) -> &mut Self {
        self.wait_while(false)
    }

    /// The same with a process that has read nothing, or something.
    fn wait_while(&mut self, unread: bool) -> &mut Self {
        self.now = self.connect.poll_timeout().expect("something to wait for");
        self.connect.handle_time(self.now, unread);
        self
    }

    /// What is to be done, as words.
    fn actions(&mut self) -> String {
        let mut words = Vec::new();
        while let Some(action) = self.connect.poll_action() {
            words.push(match action {
                ConnectAction::Discover(revision) => format!("discover {revision}"),
                ConnectAction::Initialize(revision) => format!("initialize {revision}"),
                ConnectAction::Confirm => "confirm".to_owned(),
                ConnectAction::Restart(framing) => {
                    self.connect.handle_started(self.now);
                    format!("restart {framing}")
                }
                ConnectAction::Beside(framing, passed) => format!("beside {framing} {passed:?}"),
                ConnectAction::Done(agreed) => format!("done {}", agreed.revision),
                ConnectAction::Fail(fault) => format!("fail {}", name(&fault)),
            });
        }
        words.join(", ")
    }

    fn seconds(&self) -> u64 {
        (self.now - self.start).as_secs()
    }
}

fn name(fault: &ConnectFault) -> String {
    match fault {
        ConnectFault::Exited => "exited".to_owned(),
        ConnectFault::Silent { after } => format!("silent {after:?}"),
        ConnectFault::Echo => "echo".to_owned(),
        ConnectFault::Refused(error) => format!("refused {}", error.code),
        ConnectFault::Malformed(_) => "malformed".to_owned(),
        ConnectFault::Version(version) => format!("version {version}"),
        ConnectFault::NoCommonVersion(versions) => format!("no common version {versions:?}"),
    }
}

fn probing() -> Run {
    let mut run = Run::new(plan());
    assert_eq!(run.actions(), "discover 2026-07-28");
    run
}

fn shaking() -> Run {
    let mut run = probing();
    assert_eq!(run.discover_error(-32601, Value::Null).actions(), "initialize 2025-11-25");
    run
}

fn modern() -> Value {
    json!({ "supportedVersions": ["2026-07-28"], "capabilities": {} })
}

fn legacy(version: &str) -> Value {
    json!({ "protocolVersion": version })
}

#[test]
fn prb_02_and_l17_a_discovery_of_any_shape_is_modern() {
    for answer in [
        json!({ "supportedVersions": ["2026-07-28"] }),
        modern(),
        json!({ "supportedVersions": ["2099-01-01", "2026-07-28", "2025-11-25"],
            "capabilities": { "tools": { "new": 1 } }, "serverInfo": 5, "unknown": {},
            "_meta": { "io.modelcontextprotocol/serverInfo": { "name": "s" } } }),
    ] {
        assert_eq!(probing().discover(answer.clone()).actions(), "done 2026-07-28", "{answer}");
    }
}

#[test]
fn who_it_is_stands_in_the_meta_or_in_the_result() {
    let info = json!({ "name": "s", "version": "1" });
    for answer in [
        json!({ "supportedVersions": ["2026-07-28"], "serverInfo": info }),
        json!({ "supportedVersions": ["2026-07-28"],
            "_meta": { "io.modelcontextprotocol/serverInfo": info } }),
    ] {
        let mut run = probing();
        run.discover(answer);
        let Some(ConnectAction::Done(agreed)) = run.connect.poll_action() else { panic!() };
        assert_eq!(agreed.server_info.unwrap().name, "s");
    }
}

#[test]
fn lif_03_what_an_answer_should_have_and_has_not_is_kept() {
    let missing = |answer: Value| {
        let mut run = shaking();
        run.initialize(answer);
        run.connect.poll_action();
        let Some(ConnectAction::Done(agreed)) = run.connect.poll_action() else { panic!() };
        agreed.missing
    };
    assert_eq!(missing(legacy("2025-11-25")), ["capabilities", "serverInfo"]);
    let answer = |info: Value| json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": info });
    assert_eq!(missing(answer(json!({ "name": "s", "version": "1" }))), [""; 0]);
    assert_eq!(missing(answer(json!({ "name": "s" }))), ["serverInfo.version"]);
    let both = ["serverInfo.name", "serverInfo.version"];
    assert_eq!(missing(answer(json!({ "name": 5, "version": null }))), both);
    assert_eq!(missing(answer(json!("s"))), both);
}

#[test]
fn a_discovery_without_a_modern_version_of_ours() {
    let only =
        |versions: &[&str]| probing().discover(json!({ "supportedVersions": versions })).actions();
    assert_eq!(only(&["2024-11-05", "2025-06-18"]), "initialize 2025-06-18");
    assert_eq!(only(&["2099-01-01"]), r#"fail no common version ["2099-01-01"]"#);
    assert_eq!(only(&[]), "fail no common version []");
}

/// PRB-05.
#[test]
fn prb_04_and_l3_every_other_error_is_legacy() {
    for code in [-32601, -32602, -32600, -32002, -32000, -32020, -32021, 0, 1] {
        let actions = probing().discover_error(code, Value::Null).actions();
        assert_eq!(actions, "initialize 2025-11-25", "{code}");
    }
    assert_eq!(probing().discover(json!({ "ok": true })).actions(), "initialize 2025-11-25");
}

#[test]
fn prb_03_and_ver_02_an_unsupported_version_is_modern_and_retried_once() {
    let supported = |versions: &[&str]| json!({ "supported": versions, "requested": "x" });
    let mut run = probing();
    run.discover_error(-32022, supported(&["2026-07-28"]));
    assert_eq!(run.actions(), "discover 2026-07-28");
    run.discover_error(-32022, supported(&["2026-07-28"]));
    assert_eq!(run.actions(), r#"fail no common version ["2026-07-28"]"#);

    let once = |data| probing().discover_error(-32022, data).actions();
    assert_eq!(once(supported(&["2025-03-26"])), "initialize 2025-03-26");
    assert_eq!(once(supported(&["2099-01-01"])), r#"fail no common version ["2099-01-01"]"#);
    assert_eq!(once(json!({ "supported": 5 })), "initialize 2025-11-25");
    assert_eq!(once(Value::Null), "initialize 2025-11-25");
}

/// PRB-04.
#[test]
fn l2_silence_is_legacy_after_the_probes_budget() {
    let mut run = probing();
    run.wait().actions();
    assert_eq!(run.wait().actions(), "initialize 2025-11-25");
    assert_eq!(run.seconds(), 5);
    assert_eq!(run.initialize(legacy("2024-11-05")).actions(), "confirm, done 2024-11-05");
}

#[test]
fn l4_who_exits_on_the_probe_gets_a_fresh_process_without_one() {
    let mut run = probing();
    assert_eq!(run.exit().actions(), "restart lines, initialize 2025-11-25");
    assert_eq!(run.exit().actions(), "fail exited");

    let mut streams = Run::new(Plan { restartable: false, ..plan() });
    streams.actions();
    assert_eq!(streams.exit().actions(), "fail exited");
}

#[test]
fn l4_who_is_spoiled_by_the_probe_gets_a_fresh_process_without_one() {
    let mut run = shaking();
    let refused = run.initialize_error(-32600, Value::Null).actions();
    assert_eq!(refused, "restart lines, initialize 2025-11-25");
    assert_eq!(run.initialize_error(-32600, Value::Null).actions(), "fail refused -32600");

    let mut run = shaking();
    assert_eq!(run.exit().actions(), "restart lines, initialize 2025-11-25");
}

#[test]
fn l5_a_late_discovery_is_kept_and_used_if_the_handshake_fails() {
    let late = || {
        let mut run = probing();
        run.wait().actions();
        assert_eq!(run.wait().actions(), "initialize 2025-11-25");
        assert_eq!(run.discover(modern()).actions(), "");
        run
    };
    let handshake = late().initialize(legacy("2025-11-25")).actions();
    assert_eq!(handshake, "confirm, done 2025-11-25");
    assert_eq!(late().initialize_error(-32601, Value::Null).actions(), "done 2026-07-28");
    assert_eq!(late().initialize(json!({})).actions(), "done 2026-07-28");
    assert_eq!(late().wait().actions(), "done 2026-07-28");
}

#[test]
fn l13_and_lif_07_a_version_that_is_not_spoken_here_ends_it() {
    for version in ["1999-01-01", "2026-07-28", ""] {
        let actions = shaking().initialize(legacy(version)).actions();
        assert_eq!(actions, format!("fail version {version}"));
    }
}

#[test]
fn l12_an_error_that_lists_versions_is_an_offer() {
    let data = json!({ "supported": ["2024-11-05"] });
    let mut run = shaking();
    assert_eq!(run.initialize_error(-32602, data).actions(), "initialize 2024-11-05");
    assert_eq!(run.initialize(legacy("2024-11-05")).actions(), "confirm, done 2024-11-05");
}

#[test]
fn prb_06_a_verdict_that_turns_out_wrong_is_dropped() {
    let mut run = Run::new(Plan { known: Some(Era::Legacy), ..plan() });
    assert_eq!(run.actions(), "initialize 2025-11-25");
    let data = json!({ "supported": ["2026-07-28"] });
    assert_eq!(run.initialize_error(-32022, data.clone()).actions(), "discover 2026-07-28");
    assert_eq!(run.discover(modern()).actions(), "done 2026-07-28");

    let mut run = Run::new(Plan { known: Some(Era::Legacy), ..plan() });
    run.actions();
    run.initialize_error(-32022, data).actions();
    assert_eq!(run.discover_error(-32601, Value::Null).actions(), "fail refused -32022");
}

/// ERA-04: a modern server SHOULD list its versions in the error to initialize; not every one does.
#[test]
fn who_was_taken_for_legacy_and_knows_no_handshake_is_probed_once() {
    let known = || {
        let mut run = Run::new(Plan { known: Some(Era::Legacy), ..plan() });
        assert_eq!(run.actions(), "initialize 2025-11-25");
        run
    };
    let mut run = known();
    assert_eq!(run.initialize_error(-32601, Value::Null).actions(), "discover 2026-07-28");
    assert_eq!(run.discover(modern()).actions(), "done 2026-07-28");

    let mut run = known();
    run.initialize_error(-32601, Value::Null).actions();
    assert_eq!(run.discover_error(-32602, Value::Null).actions(), "fail refused -32601");

    let mut run = known();
    run.initialize_error(-32601, Value::Null).actions();
    assert_eq!(run.wait().actions(), "fail refused -32601", "silence is no answer either");

    let pinned = Plan { pin: Revision::parse("2025-06-18"), ..plan() };
    let mut run = Run::new(pinned);
    run.actions();
    assert_eq!(run.initialize_error(-32601, Value::Null).actions(), "fail refused -32601");
}

#[test]
fn f13_silence_in_lines_is_tried_once_with_headers_beside() {
    let mut run = probing();
    assert_eq!(run.wait().actions(), "beside Content-Length 2s");
    assert_eq!(run.wait().actions(), "initialize 2025-11-25", "the first is asked on");
    assert_eq!(run.wait().actions(), "fail silent 60s");
    assert_eq!(run.seconds(), 60, "in all");
}

/// A process that has not read what it was sent is still starting; another would take as long.
#[test]
fn f13_the_silence_counts_from_when_it_reads() {
    let mut run = probing();
    for second in [2, 4] {
        assert_eq!((run.wait_while(true).actions(), run.seconds()), (String::new(), second));
    }
    assert_eq!(run.wait_while(true).actions(), "initialize 2025-11-25", "the probe's time is over");
    assert_eq!((run.wait_while(true).actions(), run.seconds()), (String::new(), 6));
    assert_eq!((run.wait().actions(), run.seconds()), (String::new(), 8), "it has just read it");
    assert_eq!(run.wait().actions(), "beside Content-Length 10s");
}

/// What ends before it has read a byte does not end of the probe, so it is not started again.
#[test]
fn l4_who_ends_without_having_read_the_probe_is_not_started_again() {
    let mut run = probing();
    run.connect.handle_exit(false);
    assert_eq!(run.actions(), "fail exited");
    assert_eq!(probing().exit().actions(), "restart lines, initialize 2025-11-25");
}

/// L15: a server that is only slow has all of its time.
#[test]
fn who_answers_at_the_last_moment_is_used() {
    let mut run = probing();
    run.wait().actions();
    run.wait().actions();
    run.now += 4 * SECOND;
    assert_eq!(run.initialize(legacy("2025-11-25")).actions(), "confirm, done 2025-11-25");
}

/// However many processes it takes, and however little time there is for each step.
/// Also L16.
#[test]
fn the_start_is_bounded_as_a_whole() {
    let mut run = Run::new(Plan { start: 3 * SECOND, ..plan() });
    assert_eq!(run.actions(), "discover 2026-07-28");
    assert_eq!(run.wait().actions(), "initialize 2025-11-25");
    assert_eq!(run.seconds(), 1, "the handshake gets its share");
    assert_eq!(run.wait().actions(), "beside Content-Length 2s");
    assert_eq!(run.seconds(), 2);
    assert_eq!(run.wait().actions(), "fail silent 3s");
    assert_eq!(run.seconds(), 3);

    let mut run = probing();
    run.now += 50 * SECOND;
    assert_eq!(run.exit().actions(), "restart lines, initialize 2025-11-25");
    run.wait().actions();
    run.wait().actions();
    assert_eq!(run.seconds(), 60, "in all");
}

#[test]
fn who_said_anything_in_lines_is_not_spoken_to_with_headers() {
    let mut run = probing();
    run.connect.handle_heard();
    run.wait().actions();
    assert_eq!(run.wait().actions(), "fail silent 60s");

    let mut run = Run::new(Plan { framing: Some(Framing::Lines), ..plan() });
    run.actions();
    run.wait().actions();
    assert_eq!(run.wait().actions(), "fail silent 60s");
}

#[test]
fn l16_an_echo_is_called_one() {
    let mut run = probing();
    run.connect.handle_echo();
    assert_eq!(run.actions(), "fail echo");
    assert_eq!(run.discover(modern()).exit().actions(), "");
}

#[test]
fn a_pinned_revision_leaves_the_other_era_out() {
    let pinned = |pin| {
        let mut run = Run::new(Plan { pin: Some(pin), ..plan() });
        (run.actions(), run)
    };
    let (first, mut run) = pinned(Revision::V2025_03_26);
    assert_eq!(first, "initialize 2025-03-26");
    assert_eq!(run.initialize(legacy("2025-11-25")).actions(), "fail version 2025-11-25");

    let (first, mut run) = pinned(Revision::MODERN);
    assert_eq!(first, "discover 2026-07-28");
    assert_eq!(run.discover_error(-32601, Value::Null).actions(), "fail refused -32601");
    let (_, mut run) = pinned(Revision::MODERN);
    assert_eq!(run.exit().actions(), "fail exited");
    let (_, mut run) = pinned(Revision::MODERN);
    assert_eq!(run.wait().actions(), "fail silent 60s");
    assert_eq!(run.seconds(), 60);
    let (_, mut run) = pinned(Revision::MODERN);
    let legacy_only = json!({ "supportedVersions": ["2025-11-25"] });
    assert_eq!(run.discover(legacy_only).actions(), r#"fail no common version ["2025-11-25"]"#);
}
