//! `taut check` as people use it: reports, known failures, what is explained and what is refused.
//!
//! What the checks find is tested in `crates/taut-check`. Here each run is a few checks in one revision.

use super::*;

/// A server that answers everything with nothing, also what it does not know.
fn lax_server() -> Vec<String> {
    answering(&serde_json::json!({ "*": {} }))
}

fn check(words: &[&str], server: &[&str]) -> Run {
    let words = ["check"].iter().chain(words).chain(&["--"]).chain(server);
    taut(words).output().unwrap().into()
}

fn check_lax(words: &[&str]) -> Run {
    let server = lax_server();
    check(words, &server.iter().map(String::as_str).collect::<Vec<_>>())
}

fn lax(words: &[&str]) -> Run {
    let words: Vec<&str> = ["--revision", "2025-11-25", "--only", "rpc-unknown-method"]
        .iter()
        .chain(words)
        .copied()
        .collect();
    check_lax(&words)
}

fn file(name: &str) -> PathBuf {
    let folder = temporary().join("check");
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join(name);
    let _ = std::fs::remove_file(&path);
    path
}

/// T1: a verdict and an exit code for a server over stdio.
#[test]
fn a_good_server_passes_and_a_bad_one_does_not() {
    let good = check(&["--only", "rpc", "--revision", "2025-11-25"], &["taut", "serve"]).exits(0);
    assert!(good.out.contains("✓") && good.out.contains(" 0 failed"), "{}", good.out);
    let bad = lax(&[]).exits(1);
    assert!(bad.out.contains("✗ MUST rpc-unknown-method"), "{}", bad.out);
    assert!(bad.out.contains("> {") && bad.out.contains("< {"), "the bytes: {}", bad.out);
    assert!(bad.out.contains("next: taut check --explain rpc-unknown-method"), "{}", bad.out);
}

#[test]
fn the_table_has_colours_where_they_are_wanted() {
    let words = ["check", "--revision", "2025-11-25", "--only", "rpc-unknown-method", "--"];
    let words = words.map(str::to_owned).into_iter().chain(lax_server());
    let run: Run = taut(words).env("CLICOLOR_FORCE", "1").output().unwrap().into();
    assert!(run.exits(1).out.contains("\u{1b}[1m\u{1b}[31m✗ MUST"), "red");
}

#[test]
fn headers_are_spoken_where_they_are_asked_for() {
    let words = ["--only", "frame", "--only", "rpc", "--revision", "2025-11-25"];
    let words: Vec<&str> = words.iter().chain(&["--framing", "headers"]).copied().collect();
    let run = check(&words, &["taut", "serve"]).exits(0);
    assert!(run.out.contains(" 0 failed"), "{}", run.out);
    // A server of lines is found out by it: it answers nothing.
    let words = ["--framing", "headers", "--start-timeout", "1s", "--only", "init-opens"];
    let run = check_lax(&words).exits(1);
    assert!(run.out.contains("MUST init-opens"), "{}", run.out);
}

#[test]
fn a_baseline_is_made_then_known_then_held_against_what_changed() {
    let path = file("baseline.txt");
    let words = ["--baseline", path.to_str().unwrap()];
    let made = lax(&words).exits(0);
    assert!(made.err.contains("these failures are known from now on"), "{}", made.err);
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.contains("rpc-unknown-method@2025-11-25"), "{text}");

    let known = lax(&words).exits(0);
    assert!(known.err.contains("0 new, 1 known, 0 fixed"), "{}", known.err);

    std::fs::write(&path, "# none\n").unwrap();
    let new = lax(&words).exits(1);
    assert!(new.err.contains("new: rpc-unknown-method@2025-11-25"), "{}", new.err);

    std::fs::write(&path, text).unwrap();
    let words = ["--revision", "2025-11-25", "--only", "rpc-unknown-method", words[0], words[1]];
    let fixed = check(&words, &["taut", "serve"]).exits(0);
    assert!(fixed.err.contains("fixed, take it out of"), "{}", fixed.err);

    std::fs::write(&path, "rpc-unknown-method\n").unwrap();
    let wrong = lax(&["--baseline", path.to_str().unwrap()]).exits(2);
    assert!(wrong.err.contains("line 1") && wrong.err.contains("@2025-11-25"), "{}", wrong.err);
}

#[test]
fn every_check_is_listed_in_columns_and_explained() {
    let run: Run = taut(["check", "--list"]).output().unwrap().into();
    let run = run.exits(0);
    let rows: Vec<&str> = run.out.lines().filter(|line| line.contains("  MUST  ")).collect();
    assert!(rows.len() > 100, "{}", rows.len());
    let column = |row: &&str| row.find("  MUST  ");
    assert!(rows.iter().all(|row| column(row) == column(&rows[0])), "{}", run.out);

    let all: Run = taut(["check", "--list", "--json"]).output().unwrap().into();
    let all = all.exits(0).json();
    // Each takes a process of its own, so one of each area.
    let mut areas: Vec<&str> = Vec::new();
    for check in all.as_array().unwrap() {
        let id = check["id"].as_str().unwrap();
        let area = id.split('-').next().unwrap();
        if areas.contains(&area) {
            continue;
        }
        areas.push(area);
        let told: Run = taut(["check", "--explain", id]).output().unwrap().into();
        let told = told.exits(0).out;
        let page = "page       https://modelcontextprotocol.io/specification/2";
        assert!(told.starts_with(id) && told.contains(page), "{told}");
        assert!(told.contains(check["rules"][0].as_str().unwrap()), "{told}");
    }
    assert!(areas.len() > 15, "{areas:?}");
    let told: Run = taut(["check", "--explain", "rpc-batch"]).output().unwrap().into();
    let told = told.exits(0).out;
    let sentence = "sentence   basic: \"MUST support receiving JSON-RPC batches\"";
    assert!(told.contains(sentence), "{told}");
    let slip: Run = taut(["check", "--explain", "rpc-unknown-methd"]).output().unwrap().into();
    assert!(slip.exits(2).err.contains("rpc-unknown-method"));
}

/// T1: reports that CI systems read.
#[test]
fn reports_for_machines_are_written_beside_the_table() {
    let (junit, sarif) = (file("check.xml"), file("check.sarif"));
    let words = ["--junit", junit.to_str().unwrap(), "--sarif", sarif.to_str().unwrap()];
    let run = lax(&words).exits(1);
    assert!(run.out.contains("1 failed"), "{}", run.out);
    let junit = std::fs::read_to_string(junit).unwrap();
    assert!(junit.contains("<testsuite name=\"2025-11-25\" tests=\"1\" failures=\"1\""), "{junit}");
    let sarif: Value = serde_json::from_slice(&std::fs::read(sarif).unwrap()).unwrap();
    assert_eq!(sarif["runs"][0]["results"][0]["ruleId"], "rpc-unknown-method");
}

#[test]
fn what_cannot_be_checked_is_told_with_what_to_do() {
    let missing = check(&[], &["no-such-server-of-taut"]).exits(4);
    assert!(missing.err.contains("was not found; looked in:\n  "), "{}", missing.err);
    let rooted = check(&["--root", "/tmp"], &["taut", "serve"]).exits(2);
    assert!(rooted.err.contains("leave out --root"), "{}", rooted.err);
    let client: Run = taut(["check", "--client", "--", "cat"]).output().unwrap().into();
    assert!(client.exits(2).err.contains("{server}"));
    let ends = server("ends 1");
    let ends: Vec<&str> = ends.iter().map(String::as_str).collect();
    let dead = check(&["--start-timeout", "2s"], &ends).exits(1);
    assert!(
        dead.out.contains("MUST init-opens") && dead.out.contains("taut doctor"),
        "{}",
        dead.out
    );
}

/// A server that writes without end, in messages that take far more memory than bytes.
// About Linux itself: the program `yes`, and the memory of a process in `/proc`.
#[cfg(target_os = "linux")]
#[test]
fn a_server_that_floods_takes_bounded_memory() {
    let list = format!("[{}1]", "1,".repeat(2_000));
    let words = ["check", "--timeout", "2s", "--", "yes", list.as_str()];
    let mut child = taut(words).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    // Until it has ended; the last look before that counts.
    while child.try_wait().unwrap().is_none() {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let size = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
        peak = peak.max(size.unwrap_or_default());
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(peak > 0 && peak < 600 << 10, "{peak} KiB");
}

/// Servers that heed no signal, and what they have started, are gone when somebody ends the checks.
#[test]
// About Linux itself: what is left behind is found in `/proc`.
#[cfg(target_os = "linux")]
fn nothing_is_left_of_checks_that_are_ended() {
    use rustix::process::{Pid, Signal, kill_process};
    let sleep = format!("3001{}", std::process::id());
    let script = format!("trap '' INT TERM HUP; taut serve; sleep {sleep}");
    let words = ["sh", "-c", &script];
    let gone = || eventually("nothing is left behind", || processes_with(&sleep).is_empty());
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 130)] {
        let child = taut(["check", "--"].iter().chain(&words)).spawn().unwrap();
        eventually("servers run", || processes_with(&sleep).len() > 1);
        let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
        // Their pipes are held by nobody else.
        let run: Run = child.wait_with_output().unwrap().into();
        run.exits(code);
        gone();
    }
    let run: Run =
        taut(["check", "--max-time", "1s", "--"].iter().chain(&words)).output().unwrap().into();
    let run = run.exits(6);
    assert!(run.err.contains("error: it was not done within 1s"), "{}", run.err);
    gone();
}

/// The verdict of a check, and its words.
fn verdict(report: &Value, id: &str) -> (String, String) {
    let rows = report["checks"].as_array().unwrap();
    let row = rows.iter().find(|row| row["id"] == id).unwrap_or_else(|| panic!("no row {id}"));
    let text = |name: &str| row[name].as_str().unwrap_or_default().to_owned();
    (text("verdict"), text("what"))
}

#[test]
fn a_tool_is_called_only_if_it_is_allowed() {
    let only =
        ["--json", "--revision", "2025-11-25", "--only", "tools-text", "--only", "tools-content"];
    let closed = check(&only, &["taut", "serve"]).exits(0).json();
    let (word, why) = verdict(&closed, "tools-text");
    assert!(word == "skip" && why.contains("--call"), "{word}: {why}");
    let allowed = ["--call", "echo", "--args", r#"{"text":"hi"}"#];
    let words: Vec<&str> = only.iter().chain(&allowed).copied().collect();
    let open = check(&words, &["taut", "serve"]).exits(0).json();
    assert_eq!(verdict(&open, "tools-text").0, "pass");
    assert_eq!(verdict(&open, "tools-content").0, "pass");

    // Of a tool that is not there nothing can be checked, and that is no success.
    let words: Vec<&str> = only[1..].iter().chain(&["--call", "ech"]).copied().collect();
    let slip = check(&words, &["taut", "serve"]).exits(1);
    assert!(slip.out.contains("the server has no tool \"ech\""), "{}", slip.out);
    // One that fails may be meant, and is told.
    let words: Vec<&str> = only[1..].iter().chain(&["--call", "add"]).copied().collect();
    let failing = check(&words, &["taut", "serve"]).exits(0);
    assert!(failing.out.contains("the call of \"add\" worked in no revision"), "{}", failing.out);

    // The arguments belong to the call right before them, also where an earlier one has none.
    let words: Vec<&str> =
        only.iter().chain(&["--call", "roots"]).chain(&allowed).copied().collect();
    let passed = check(&words, &["taut", "serve"]);
    assert_eq!(verdict(&passed.json(), "tools-text").0, "pass");
    for words in [
        &["--call", "echo", "--args", "{}", "--args", "{}"][..],
        &["--args", "{}", "--call", "echo"],
    ] {
        let spare = check(words, &["taut", "serve"]).exits(2);
        assert!(spare.err.contains("an --args has no --call of its own"), "{}", spare.err);
    }
    let torn = check(&["--call", "echo", "--args", "[1"], &["taut", "serve"]).exits(2);
    assert!(!torn.err.is_empty());
}

#[test]
fn the_tools_of_the_official_fixture_are_called_if_they_are_allowed() {
    let tool =
        serde_json::json!({ "name": "test_error_handling", "inputSchema": { "type": "object" } });
    let failed = serde_json::json!({ "content": [{ "type": "text", "text": "it failed" }], "isError": true });
    let server = answering(
        &serde_json::json!({ "tools/list": { "tools": [tool] }, "tools/call": failed, "ping": {} }),
    );
    let server: Vec<&str> = server.iter().map(String::as_str).collect();
    let only = ["--json", "--revision", "2025-11-25", "--only", "tools-failure"];
    let closed = check(&only, &server).exits(0).json();
    assert_eq!(
        verdict(&closed, "tools-failure"),
        ("skip".to_owned(), "needs --fixture".to_owned())
    );
    let words: Vec<&str> = only.iter().chain(&["--fixture"]).copied().collect();
    let open = check(&words, &server).exits(0).json();
    assert_eq!(verdict(&open, "tools-failure").0, "pass");
}

#[test]
fn a_client_is_started_with_a_played_server() {
    let words = ["check", "--client", "--json", "--only", "client-initialized", "--"];
    let client = ["taut", "call", "echo", "text=hello", "--", "{server}"];
    let run: Run = taut(words.iter().chain(&client)).output().unwrap().into();
    let report = run.exits(0).json();
    assert_eq!(report["starts"], 7, "{report}");
    let (passed, failed) = (report["pass"].as_u64().unwrap(), report["fail"].as_u64().unwrap());
    assert!(passed > 0 && failed == 0, "{report}");
    // One that ends at once shows nothing.
    let run: Run =
        taut(words.iter().chain(&["taut", "--version", "{server}"])).output().unwrap().into();
    assert!(run.json()["revisions"].as_array().unwrap().is_empty());
}

/// T1: the proof that our own server and client keep every rule that can be seen, advice included.
#[test]
// It starts some sixty processes, which takes minutes under Wine; the parts are tested there one by one.
#[cfg(target_os = "linux")]
fn our_own_server_and_client_pass_every_check_in_all_revisions() {
    let calls = [
        ("echo", r#"{"text":"hello"}"#),
        ("slow", r#"{"steps":6,"step_ms":100}"#),
        ("log", r#"{"message":"hi"}"#),
        ("add", r#"{"a":1,"b":2}"#),
    ];
    let mut words = vec!["check", "--json"];
    words.extend(calls.iter().flat_map(|(tool, args)| ["--call", tool, "--args", args]));
    words.extend(["--", "taut", "serve", "--page-size", "5"]);
    let server: Run = taut(&words).output().unwrap().into();
    let client = [
        "check",
        "--client",
        "--json",
        "--",
        "taut",
        "call",
        "echo",
        "text=hello",
        "--",
        "{server}",
    ];
    let client: Run = taut(client).output().unwrap().into();
    for (run, least) in [(server, 450), (client, 70)] {
        let report = run.exits(0).json();
        let rows = report["checks"].as_array().unwrap();
        let failed: Vec<_> = rows
            .iter()
            .filter(|row| ["fail", "blocked"].iter().any(|word| row["verdict"] == *word))
            .collect();
        assert!(failed.is_empty(), "{failed:#?}");
        assert_eq!(report["revisions"].as_array().unwrap().len(), 5);
        assert!(report["pass"].as_u64().unwrap() >= least, "{}", report["pass"]);
        assert!(report["starts"].as_u64().unwrap() <= 100);
    }
}
