//! `taut doctor` on each rude server: its first finding names the fault.

use std::sync::Mutex;

use serde_json::json;

use super::rude::{HABITS, TOOLS};
use super::*;

/// The first finding, and the whole document.
fn first(options: &str, server: &[String]) -> (String, String, Value) {
    let run = run(&format!("doctor --json {options}"), server);
    let mut document = run.json();
    // The rude server lists in pages, which is told of each time.
    let findings = document["findings"].as_array_mut().unwrap();
    findings.retain(|finding| !finding["what"].as_str().unwrap().starts_with("list-in-pages"));
    let finding = &document["findings"][0];
    let text = |name: &str| finding[name].as_str().unwrap_or_default().to_owned();
    (text("level"), text("what"), document)
}

/// One rude server and what is wrong with it; nothing if that is nothing.
struct Case {
    /// A habit or a tool, as `rude` lists it.
    name: &'static str,
    role: &'static str,
    options: &'static str,
    fault: Option<(&'static str, &'static str)>,
}

const fn bad(
    name: &'static str,
    role: &'static str,
    options: &'static str,
    level: &'static str,
    what: &'static str,
) -> Case {
    Case { name, role, options, fault: Some((level, what)) }
}

const fn fine(name: &'static str, role: &'static str, options: &'static str) -> Case {
    Case { name, role, options, fault: None }
}

/// Every habit of the rude server.
const OF_HABITS: [Case; 41] = [
    bad("backlog", "backlog", "", "risky", "it goes on writing after its stdin is closed: 10 MiB"),
    bad("bad-prompts", "bad-prompts", "", "risky", "in its answer to prompts/list: prompts[0]:"),
    bad(
        "banner",
        "banner",
        "",
        "risky",
        r#"it prints 38 lines on stdout that are no messages, first at byte 0: "Welcome to"#,
    ),
    bad("bom", "bom", "", "risky", "it writes a byte-order mark"),
    bad("circular", "circular", "", "broken", "its list never ends"),
    bad("close-stderr", "close-stderr", "", "note", "it closes its stderr while it runs"),
    bad("crlf", "crlf", "", "note", r"it ends its lines with CRLF (\r\n)"),
    bad("deaf", "deaf", "--timeout 1s", "broken", "it stops answering after the handshake"),
    bad(
        "die-on-list",
        "die-on-list",
        "",
        "broken",
        "it died after the handshake: it was killed by",
    ),
    bad("exit-on-initialize", "exit-on-initialize", "", "broken", "it exited with code 42"),
    bad("exit-on-probe", "exit-on-probe", "", "risky", "it exits when it is asked server/discover"),
    bad("flood", "flood", "", "risky", "it floods stderr: 9 MiB"),
    bad("flood-line", "flood-line", "", "risky", "in this short life, in lines that do not end"),
    bad(
        "flood-on-probe",
        "flood-on-probe",
        "",
        "risky",
        "it floods stderr when it is asked server/discover: 10",
    ),
    fine("greet", "greet", ""),
    bad("headers", "headers", "", "broken", "it answers lines with Content-Length headers"),
    bad(
        "headers-only",
        "headers-only",
        "--start-timeout 6s",
        "broken",
        "it understands only messages with Content-Length",
    ),
    bad("ignore-eof", "ignore-eof", "", "risky", "it does not end when its stdin is closed"),
    bad(
        "ignore-eof",
        "ignore-eof ignore-term",
        "",
        "risky",
        "it ends neither when its stdin is closed nor on SIGTERM",
    ),
    bad("ignore-term", "ignore-term", "", "note", "it does not end on SIGTERM"),
    bad("late=", "late=6000", "", "risky", "it answers server/discover only after 6."),
    fine("log-stdin", "log-stdin", ""),
    bad(
        "no-flush",
        "no-flush",
        "--start-timeout 3s",
        "broken",
        "it does not flush stdout: nothing came for 3.0 s",
    ),
    bad("no-info", "no-info", "", "broken", "its answer to initialize has no serverInfo"),
    bad(
        "no-jsonrpc",
        "no-jsonrpc",
        "--start-timeout 2s",
        "broken",
        r#"its messages have no "jsonrpc":"2.0", first at byte "#,
    ),
    bad("no-schema", "no-schema", "", "broken", "the tool t1 has no inputSchema"),
    bad("odd-name", "odd-name", "", "risky", r#""two words" is no good name for a tool: ' '"#),
    bad("odd-schema", "odd-schema", "", "risky", r#"whose type is not "object" ("string")"#),
    bad(
        "pretty",
        "pretty",
        "--start-timeout 2s",
        "broken",
        "it writes messages over several lines, first at byte 0: {",
    ),
    bad(
        "probe-code=",
        "probe-code=32000",
        "",
        "note",
        "it refuses server/discover with error -32000",
    ),
    bad("same-name", "same-name", "", "risky", "2 tools have the same name: t0"),
    fine("say-pid", "say-pid", ""),
    fine("say-secrets", "say-secrets", ""),
    bad("slow-start=", "slow-start=1500", "", "note", "until it is ready"),
    bad("slow-start=", "slow-start=6000", "", "risky", "until it is ready"),
    bad("string-schema", "string-schema", "", "broken", "t1 has a string for an inputSchema"),
    bad("swallow-probe", "swallow-probe", "", "risky", "it does not answer server/discover"),
    bad(
        "text-id",
        "text-id",
        "--start-timeout 2s",
        "broken",
        r#"and not initialize: the id of its answer is "2""#,
    ),
    bad("twice", "twice", "", "risky", "it answers twice"),
    bad(
        "unknown-id",
        "unknown-id",
        "",
        "risky",
        "it answers what nobody asked (8 times), first with the id 99999",
    ),
    bad(
        "wrong-id",
        "wrong-id",
        "--start-timeout 2s",
        "broken",
        "it answers what nobody asked, and not initialize: the id of its answer is 99999",
    ),
];

/// Every tool of the rude server, called by the doctor.
const OF_TOOLS: [Case; 17] = [
    fine("add", "", r#"--args {"a":2,"b":3}"#),
    bad("answer-and-exit", "", "", "broken", "it died after the call: it exited with code 0"),
    bad("ask", "", "", "risky", "it asks the host for roots/list, although the host did not"),
    fine("big", "", r#"--args {"size":100000}"#),
    bad("close-stdin", "", "", "broken", "it closed its stdin after the call and lives on"),
    bad("close-stdout", "", "", "broken", "it closed its stdout in the call and lives on"),
    bad("die", "", "", "broken", "it died in the call: it was killed by signal 6 (SIGABRT)"),
    fine("echo", "", ""),
    bad("endless", "", "--timeout 2s", "broken", "it writes without end in the call: "),
    bad("exit", "", "", "broken", "it died in the call: it exited with code 7"),
    fine("fail", "", ""),
    bad("grandchild", "", "", "risky", "it leaves processes behind when it ends: sleep ("),
    bad(
        "never",
        "",
        "--timeout 2s",
        "broken",
        "it stops answering in the call: tools/call was not",
    ),
    bad("progress", "", "--timeout 2s", "broken", "it reports progress for ever in the call ("),
    fine("steps", "", ""),
    bad(
        "stop",
        "",
        "--timeout 2s",
        "broken",
        "its process is stopped in the call, as if by SIGSTOP",
    ),
    bad(
        "stray",
        "",
        "--timeout 2s",
        "broken",
        r#"it answers in the call with an id that nobody asked with, "never": tools/call was not"#,
    ),
];

fn names(cases: &[Case]) -> Vec<&str> {
    let mut names: Vec<_> = cases.iter().map(|case| case.name).collect();
    names.dedup();
    names
}

/// Who teaches the rude server a new habit says here what the doctor has to say about it.
#[test]
fn every_role_has_an_expectation() {
    assert_eq!(names(&OF_HABITS), HABITS);
    assert_eq!(names(&OF_TOOLS), TOOLS);
}

/// What the doctor finds on this system: nothing if the inner one is empty, and nothing to examine if the outer
/// one is.
fn expected(case: &Case) -> Option<Option<(&'static str, &'static str)>> {
    if cfg!(unix) {
        return Some(case.fault);
    }
    Some(match case.name {
        // Under Wine the process that serves the console holds a copy of the pipe.
        "close-stderr" | "close-stdin" | "close-stdout" => return None,
        // There are no signals: none that can be ignored, and none that tells how a process died.
        "ignore-term" => None,
        "ignore-eof" => Some(("risky", "it does not end when its stdin is closed: it has to be")),
        "die-on-list" => Some(("broken", "it died after the handshake: it exited with code -")),
        "die" => Some(("broken", "it died in the call: it exited with code -")),
        "stop" => Some(("broken", "it stops answering in the call: tools/call was not")),
        // It is ended with the job, without a word.
        "grandchild" => None,
        _ => case.fault,
    })
}

/// What is wrong with what the doctor says, if anything is.
fn complaint(options: &str, role: &str, fault: Option<(&str, &str)>) -> Option<String> {
    let (level, what, document) = first(options, &server(&format!("2025-11-25 {role}")));
    let finding = &document["findings"][0];
    let says = |name: &str| !finding[name].as_str().unwrap_or_default().is_empty();
    let right = match fault {
        Some((expected, words)) => {
            level == expected && what.contains(words) && says("hurts") && says("change")
        }
        // A busy machine makes any server slow.
        None => finding.is_null() || what.contains("until it is ready"),
    };
    (!right).then(|| format!("{options} {role}: expected {fault:?}, got {document:#}"))
}

/// All of them, a few at a time: most of it is waiting. The doctor times what it sees, and a busy
/// machine makes any server slow, so what fails in company is examined again alone.
fn check(cases: &[Case], options: impl Fn(&Case) -> String + Sync) {
    let (next, failed) = (Mutex::new(cases.iter()), Mutex::new(Vec::new()));
    let examine = |case: &Case| complaint(&options(case), case.role, expected(case)?);
    let work = || {
        loop {
            let Some(case) = next.lock().unwrap().next() else { return };
            if examine(case).is_some() {
                failed.lock().unwrap().push(case);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(work);
        }
    });
    let failed = failed.into_inner().unwrap();
    let complaints: Vec<_> = failed.into_iter().filter_map(examine).collect();
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

/// T2, T19.
#[test]
fn the_first_finding_names_the_fault_of_each_habit() {
    check(&OF_HABITS, |case| case.options.to_owned());
}

/// T19.
#[test]
fn the_first_finding_names_the_fault_of_each_tool() {
    check(&OF_TOOLS, |case| format!("--call {} {}", case.name, case.options));
}

#[test]
fn a_server_of_any_revision_has_no_fault_for_that() {
    for revision in ["2024-11-05", "2025-03-26", "2025-06-18", "both"] {
        let (_, what, document) = first("", &server(revision));
        assert!(what.is_empty() || what.contains("until it is ready"), "{document:#}");
    }
    let (level, what, _) = first("", &server("1999-01-01"));
    assert!(what.contains(r#"it wants to speak version "1999-01-01""#), "{what}");
    assert_eq!(level, "broken");
}

/// That a host which knows nothing of the server's faults gets on with this bridge: everything that it reads is a
/// message, every request is answered, and the bridge ends with its input. The doctor would judge that by time,
/// and find a bridge slow on a busy machine.
fn serves(bridge: &str, server: &[String], tool: &str) {
    let request = |id: &str, method: &str, params: Value| {
        json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string()
    };
    let host = json!({ "name": "host", "version": "1" });
    let opening =
        json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": host });
    let legacy = [
        request("open", "initialize", opening),
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string(),
        request("call", "tools/call", json!({ "name": tool, "arguments": { "text": "hi" } })),
    ];
    let probe = [request("probe", "server/discover", json!({}))];
    for lines in [&legacy[..], &probe[..]] {
        let run = run_with(bridge, server, &(lines.join("\n") + "\n"));
        let parsed = run.out.lines().map(serde_json::from_str).collect::<Result<Vec<Value>, _>>();
        let messages = parsed.unwrap_or_else(|error| panic!("{error}: {run:?}"));
        let answer = |id: &str| messages.iter().find(|message| message["id"] == id);
        if lines == probe {
            assert!(answer("probe").is_some(), "{run:?}");
        } else {
            assert!(answer("open").unwrap()["result"].is_object(), "{run:?}");
            let outcome = if tool == "exit" { "error" } else { "result" };
            assert!(answer("call").unwrap()[outcome].is_object(), "{run:?}");
        }
        run.exits(0);
    }
}

/// What `taut bridge` would cure is said, with the line for the host's file.
#[test]
fn a_bridge_is_named_where_it_cures_what_was_found() {
    let table = [
        ("2025-11-25 banner", "echo", "it prints 38 lines on stdout", "bridge"),
        ("2025-11-25 headers-only", "echo", "Content-Length headers", "bridge --framing headers"),
        ("2026-07-28", "echo", "it speaks only 2026-07-28", "bridge"),
        ("2025-11-25 exit-on-probe", "echo", "server/discover", "bridge --revision 2025-11-25"),
        ("2025-11-25", "exit", "it died in the call", "bridge"),
        ("2025-11-25 ignore-eof", "echo", "does not end when its stdin is closed", "bridge"),
    ];
    let cured = |(role, tool, what, cure): (&str, &str, &str, &str)| {
        let server = server(role);
        let options = match tool {
            "exit" => "--call exit",
            // It is silent until headers are tried: 5 s before this is over, in each of two starts.
            _ if role.ends_with("headers-only") => "--start-timeout 15s",
            _ => "",
        };
        let (_, found, document) = first(options, &server);
        assert!(found.contains(what), "{role}: {document:#}");
        assert_eq!(document["findings"][0]["bridge"], true, "{role}: {document:#}");
        let words = cure.split(' ').chain(["--"]).chain(server.iter().map(String::as_str));
        let line = json!({ "command": "taut", "args": words.collect::<Vec<_>>() });
        assert_eq!(document["bridge"], line, "{role}");
        // What it says is true.
        serves(cure, &server, tool);
    };
    std::thread::scope(|scope| {
        for row in table {
            scope.spawn(move || cured(row));
        }
    });
    let run = run("doctor", &server("2025-11-25 banner bom")).exits(0);
    // The first is that it lists in pages, which stays. A busy machine may add one that is about time.
    assert!(run.out.contains("taut bridge cures 2, 3"), "{}", run.out);
    let (_, entry) =
        run.out.split_once(" without a change to the server; in the host's file:\n   \"").unwrap();
    let line = "\": { \"command\": \"taut\", \"args\": [\"bridge\",\"--\",";
    assert!(entry.lines().next().unwrap().contains(line), "{}", run.out);
    let fine = super::run("doctor --json", &server("2025-11-25")).exits(0).json();
    let curable = fine["findings"].as_array().unwrap().iter().any(|one| one["bridge"] == true);
    assert_eq!(fine["bridge"].is_null(), !curable, "{fine:#}");
}

/// What taut gets on with and the official SDKs refuse is neither hidden nor mended.
#[test]
fn what_the_official_sdks_refuse_is_told_everywhere() {
    let run = run("doctor", &server("2025-11-25 no-schema")).exits(5);
    assert!(run.out.contains("change  it is called inputSchema, not input_schema"), "{}", run.out);
    assert!(run.out.ends_with("✗ most hosts cannot use it like this: see above\n"), "{}", run.out);
    let run = super::run("smoke", &server("2025-11-25 no-schema no-info")).exits(5);
    for what in ["its answer to initialize has no serverInfo", "the tool t1 has no inputSchema"] {
        let line = format!("  · hosts       the official SDKs refuse it: {what}\n");
        assert!(run.out.contains(&line), "{}", run.out);
    }
    let list = super::run("list tools --json", &server("2025-11-25 no-schema")).exits(0).json();
    assert_eq!(list["tools"][1], serde_json::json!({ "name": "t1", "input_schema": {} }));
}

/// JSON that is not quite right is not called text, and is quoted as it came.
#[test]
fn advice_fits_what_is_wrong() {
    let advice = |options: &str, role: &str| {
        let (_, what, document) = first(options, &server(&format!("2025-11-25 {role}")));
        let text = |name: &str| document["findings"][0][name].as_str().unwrap().to_owned();
        (what, text("hurts"), text("change"))
    };
    let (what, _, change) = advice("--start-timeout 2s", "no-jsonrpc");
    assert!(what.contains(r#": {"id":2,"jsonrpc":null,"result":{"capabilities":{"#), "{what}");
    assert_eq!(change, r#"add "jsonrpc":"2.0" to every message"#);
    let (_, _, change) = advice("--start-timeout 2s", "pretty");
    assert!(change.starts_with("write each message on one line"), "{change}");
    let (_, hurts, _) = advice("", "bad-prompts");
    assert_eq!(
        hurts,
        "hosts that show prompts: they get none, or an error; tools are not affected"
    );
}

#[cfg(unix)]
#[track_caller]
fn script(options: &str, script: &str, fault: &str) {
    let (level, what, document) = first(options, &["sh", "-c", script].map(str::to_owned));
    assert!(what.contains(fault), "{script}: {document:#}");
    assert_eq!(level, "broken", "{script}: {document:#}");
}

/// T19.
#[test]
// About Unix itself: signals.
#[cfg(unix)]
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
            "offered",
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

/// T19.
#[test]
// About Unix itself: a shell plays the server, and signals end it.
#[cfg(unix)]
fn servers_that_do_not_start() {
    let (_, what, document) = first("", &["no-such-server".to_owned()]);
    assert_eq!(what, "the program \"no-such-server\" was not found; looked in:");
    assert!(document["findings"][0]["list"][0].as_str().unwrap().starts_with("/"), "{document:#}");
    assert_eq!(document["exit"], 4);
    let change = document["findings"][0]["change"].as_str().unwrap();
    assert!(change.contains("install it") && !what.contains("install"), "advice once: {what}");
    script("", "echo no license >&2; exit 42", "it ended at the start: it exited with code 42");
    script("", "exit 0", "it ended at once: it exited with code 0");
    script("", "kill -SEGV $$", "it crashed at the start: it was killed by signal 11 (SIGSEGV)");
    script("", "exec 1>&-; exec sleep 1000", "it closed its stdout and lives on");
}

/// T21.
#[test]
// About Unix itself: its programs play the server.
#[cfg(unix)]
fn servers_that_do_not_speak_mcp() {
    let quick = "--start-timeout 1s";
    script("", "exec cat", "it is an echo, not a server");
    script(quick, "exec sleep 1000", "it says nothing: initialize was not answered within");
    let http = "echo 'Serving HTTP on port 8000'; exec sleep 1000";
    script(quick, http, "it prints text on stdout where JSON should be");
}

/// The bound is on the whole start, not on each process that it takes; ending the last comes on top.
#[test]
fn the_start_timeout_bounds_the_whole_start() {
    let began = Instant::now();
    run("list --start-timeout 8s", &server("sleeper")).exits(4);
    // Two processes with 8 s each would take longer; a busy machine has time enough to start and to end them.
    assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
}

#[test]
// About Unix itself: a shell plays the server.
#[cfg(unix)]
fn a_variable_that_is_missing_is_named() {
    let script = r#"test -n "$DOCTOR_TOKEN" || { echo "set DOCTOR_TOKEN first" >&2; exit 3; }; exec taut serve"#;
    let words = ["doctor", "--json", "--", "sh", "-c", script];
    let run: Run = taut(words).env("DOCTOR_TOKEN", "x").output().unwrap().into();
    let document = run.exits(4).json();
    assert_eq!(document["findings"][0]["what"], "it needs DOCTOR_TOKEN in its environment");
    assert!(!document.to_string().contains("\"x\""), "names, never values");
}

/// D1: the first start exits, the second too, and each leaves a process behind.
#[test]
// About Unix itself: `/proc` tells what is left.
#[cfg(unix)]
fn nothing_is_left_of_a_server_that_fails_at_the_start_and_it_is_said() {
    let server = ["sh", "-c", "sleep 100000606 & sleep 0.2; exit 1"].map(str::to_owned);
    let run = run("doctor", &server).exits(4);
    eventually("nothing is left behind", || processes_with("100000606").is_empty());
    assert!(run.out.contains("✗ left behind   sleep (process "), "{}", run.out);
    assert!(run.out.contains("it leaves processes behind when it ends"), "{}", run.out);
}

/// D1: what a server says on stdout when it dies is often why it does.
#[test]
// About Unix itself: a shell plays the server.
#[cfg(unix)]
fn what_a_dying_server_says_on_stdout_is_shown() {
    let server = ["sh", "-c", "echo 'GITHUB_TOKEN is required'; exit 1"].map(str::to_owned);
    for line in ["list", "smoke -q", "call x", "shell", "watch"] {
        let run = run(line, &server).exits(4);
        assert!(run.err.contains("on stdout:"), "{line}: {}", run.err);
        let told = run.err.lines().filter(|line| line.trim() == "GITHUB_TOKEN is required");
        assert_eq!(told.count(), 1, "{line}: {}", run.err);
    }
    let document = run("list --json", &server).exits(4).json();
    assert_eq!(document["error"]["stdout"], "GITHUB_TOKEN is required");
    let run = run("doctor", &server).exits(4);
    let told = run.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(told.contains("after it wrote on stdout: GITHUB_TOKEN is required"), "{told}");
    assert!(told.contains("do what it says there"), "{told}");
}

/// What has left the session of its server is found all the same, told, and ended.
#[test]
// About Linux itself: what is left behind is found in `/proc`.
#[cfg(all(target_os = "linux", not(taut_portable)))]
fn what_has_left_the_session_of_its_server_is_named() {
    for (what, end, code) in [(1, "sleep 0.2; exit 1", 4), (2, "exec taut serve", 0)] {
        let sleep = format!("{what}000{}", std::process::id());
        let script = format!("(setsid sleep {sleep} &); setsid sleep {sleep} & {end}");
        let server = ["sh", "-c", &script].map(str::to_owned);
        let run = run("doctor", &server).exits(code);
        let told = run.out.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(told.contains("it leaves processes behind when it ends: "), "{}", run.out);
        assert!(told.contains("taut ends them"), "{}", run.out);
        assert!(
            told.contains("what has left the server's session is found by none of them"),
            "{told}"
        );
        // Not waited for: they are gone when the command is.
        assert!(processes_with(&format!("^sleep\0{sleep}")).is_empty(), "{}", run.out);
    }
}

/// Its help says so.
#[test]
// About Unix itself: a shell plays the server.
#[cfg(unix)]
fn a_server_is_started_three_times_at_most() {
    let serves = "exec taut serve".to_owned();
    let headers = server("2025-11-25 headers-only").join("' '");
    let cases = [
        ("exits", "exit 1".to_owned()),
        ("reads", "read line; exit 1".to_owned()),
        ("says", "echo nonsense; read line; exit 1".to_owned()),
        ("silent", "exec sleep 100000622".to_owned()),
        ("serves", serves),
        ("probe", format!("exec '{}'", server("2025-11-25 exit-on-probe").join("' '"))),
        ("headers", format!("exec '{headers}'")),
    ];
    for (name, script) in cases {
        let file = temporary().join(format!("starts-{name}"));
        let _ = std::fs::remove_file(&file);
        let script = format!("echo >> '{}'; {script}", file.display());
        let server = ["sh", "-c", &script].map(str::to_owned);
        run("doctor --start-timeout 5s", &server);
        let starts = std::fs::read_to_string(&file).unwrap().lines().count();
        assert!((1..=3).contains(&starts), "{name}: {starts}");
    }
}

/// A slip in what was typed is no fault of the server.
#[test]
fn a_tool_that_is_not_there_is_a_slip_of_who_typed_it() {
    let demo = ["taut", "serve"].map(str::to_owned);
    let run = run("doctor --call eco", &demo).exits(2);
    assert!(run.err.contains("the server has no tool \"eco\"; did you mean echo?"), "{}", run.err);
    assert!(run.err.contains("try: name one of those after --call"), "{}", run.err);
    assert!(run.out.is_empty(), "{}", run.out);
}
