//! `taut doctor` on each rude server: its first finding names the fault.

use super::*;

/// The first finding, and the whole document.
fn first(options: &str, server: &[String]) -> (String, String, Value) {
    let run = run(&format!("doctor --json {options}"), server);
    let document = run.json();
    let finding = &document["findings"][0];
    let text = |name: &str| finding[name].as_str().unwrap_or_default().to_owned();
    (text("level"), text("what"), document)
}

#[track_caller]
fn names(options: &str, role: &str, level: &str, fault: &str) {
    let (found, what, document) = first(options, &server(role));
    assert!(what.contains(fault), "{role}: {document:#}");
    assert_eq!(found, level, "{role}: {document:#}");
    let finding = &document["findings"][0];
    assert!(!finding["hurts"].as_str().unwrap().is_empty(), "{role}");
    assert!(!finding["change"].as_str().unwrap().is_empty(), "{role}");
}

#[track_caller]
fn script(options: &str, script: &str, fault: &str) {
    let (level, what, document) = first(options, &["sh", "-c", script].map(str::to_owned));
    assert!(what.contains(fault), "{script}: {document:#}");
    assert_eq!(level, "broken", "{script}: {document:#}");
}

#[test]
fn a_good_server_has_no_findings() {
    // On a busy machine it may be slow, and that is a finding; not in one of three tries.
    let clean = |document: &Value| document["findings"] == serde_json::json!([]);
    let mut tries = (0..3).map(|_| demo("doctor --json").exits(0).json());
    let document = tries.find(clean).unwrap_or_else(|| demo("doctor --json").json());
    assert_eq!(document["findings"], serde_json::json!([]), "{document:#}");
    let names: Vec<_> = document["phases"]
        .as_array()
        .unwrap()
        .iter()
        .map(|p| p["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        [
            "started",
            "stdout",
            "agreed",
            "listed",
            "on EOF",
            "on SIGTERM",
            "left behind",
            "environment"
        ]
    );
    let run = demo("doctor").exits(0);
    assert!(run.out.ends_with("\n✓ every host should get on with it\n"), "{}", run.out);
}

#[test]
fn servers_that_do_not_start() {
    let (_, what, document) = first("", &["no-such-server".to_owned()]);
    assert!(what.starts_with("program \"no-such-server\" not found"), "{document:#}");
    assert_eq!(document["exit"], 4);
    script("", "echo no license >&2; exit 42", "it ended at the start: it exited with code 42");
    script("", "exit 0", "it ended at once: it exited with code 0");
    script("", "kill -SEGV $$", "it crashed at the start: it was killed by signal 11 (SIGSEGV)");
    script("", "exec 1>&-; exec sleep 1000", "it closed its stdout and lives on");
    names("", "2025-11-25 exit-on-initialize", "broken", "it exited with code 42");
}

#[test]
fn servers_that_do_not_speak_mcp() {
    let quick = "--start-timeout 400ms";
    script("", "exec cat", "it is an echo, not a server");
    script(quick, "exec sleep 1000", "it says nothing: initialize was not answered within");
    let http = "echo 'Serving HTTP on port 8000'; exec sleep 1000";
    script(quick, http, "it prints text on stdout where JSON should be");
    names("", "1999-01-01", "broken", "it wants to speak version \"1999-01-01\"");
    names(
        "--start-timeout 2s",
        "2025-11-25 headers-only",
        "broken",
        "only messages with Content-Length",
    );
    names("", "2025-11-25 headers", "broken", "it answers lines with Content-Length headers");
}

#[test]
fn servers_with_bad_habits() {
    let banner =
        r#"it prints 38 lines on stdout that are no messages, first at byte 0: "Welcome to"#;
    names("", "2025-11-25 banner", "risky", banner);
    names("", "2025-11-25 bom", "risky", "a byte-order mark");
    names("", "2025-11-25 exit-on-probe", "risky", "it exits when it is asked server/discover");
    names("", "2025-11-25 swallow-probe", "risky", "it does not answer server/discover");
    names("", "2025-11-25 twice", "risky", "it answers twice");
    names("", "2025-11-25 unknown-id", "risky", "it answers what nobody asked");
    names("", "2025-11-25 flood", "risky", "it floods stderr");
    names("", "2025-11-25 slow-start=1200", "note", "until it is ready");
}

#[test]
fn servers_that_fail_after_the_handshake() {
    names("--timeout 300ms", "2025-11-25 deaf", "broken", "it stops answering after the handshake");
    names("", "2025-11-25 circular", "broken", "its list never ends");
    names(
        "",
        "2025-11-25 die-on-list",
        "broken",
        "it died after the handshake: it was killed by signal 6",
    );
}

#[test]
fn servers_that_fail_in_a_call() {
    let table = [
        ("never", "it stops answering in the call"),
        ("die", "it died in the call: it was killed by signal 6 (SIGABRT)"),
        ("exit", "it died in the call: it exited with code 7"),
        ("stop", "it stops answering in the call"),
        ("endless", "it stops answering in the call"),
        ("close-stdout", "it closed its stdin or stdout in the call and lives on"),
    ];
    for (tool, fault) in table {
        names(&format!("--timeout 300ms --call {tool}"), "2025-11-25", "broken", fault);
    }
    names(
        "--call grandchild",
        "2025-11-25",
        "risky",
        "it leaves processes behind when it ends: sleep (",
    );
}

#[test]
fn servers_that_do_not_end() {
    names("", "2025-11-25 ignore-eof", "risky", "it does not end when its stdin is closed");
    let role = "2025-11-25 ignore-eof ignore-term";
    names("", role, "risky", "neither when its stdin is closed nor on SIGTERM");
    names("", "2025-11-25 ignore-term", "note", "it does not end on SIGTERM");
}

#[test]
fn a_variable_that_is_missing_is_named() {
    let script = r#"test -n "$DOCTOR_TOKEN" || { echo "set DOCTOR_TOKEN first" >&2; exit 3; }; exec taut serve"#;
    let words = ["doctor", "--json", "--", "sh", "-c", script];
    let run: Run = taut(words).env("DOCTOR_TOKEN", "x").output().unwrap().into();
    let document = run.exits(4).json();
    assert_eq!(document["findings"][0]["what"], "it needs DOCTOR_TOKEN in its environment");
    assert!(!document.to_string().contains("\"x\""), "names, never values");
}
