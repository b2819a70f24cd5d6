//! `taut bench` with the demo, with `cat`, and with servers that die, lie, stop or shuffle.
//!
//! What it measures is not looked at beyond being there: how fast a machine is proves nothing.

use std::io::Read as _;

use serde_json::json;

use super::*;

/// A server with one tool `echo` and one habit, which it shows from its fiftieth call on.
pub(super) fn play(habit: &str) {
    let (mut calls, mut held, mut chunk) = (0, Vec::new(), vec![0; 64 << 10]);
    while let Ok(read @ 1..) = std::io::stdin().read(&mut chunk) {
        held.extend_from_slice(&chunk[..read]);
        let mut answers = Vec::new();
        while let Some(end) = held.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = held.drain(..=end).collect();
            let message: Value = serde_json::from_slice(&line).unwrap();
            if message.get("id").is_some() {
                calls += usize::from(message["method"] == "tools/call");
                answers.extend(answer(habit, &message, calls));
            }
        }
        if habit == "shuffles" {
            answers.reverse();
        }
        let text: String = answers.iter().map(|answer| format!("{answer}\n")).collect();
        let mut stdout = std::io::stdout().lock();
        if stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).is_err() {
            return;
        }
    }
}

fn answer(habit: &str, message: &Value, calls: usize) -> Vec<Value> {
    let shows = calls >= 50 && message["method"] == "tools/call";
    let text = message["params"]["arguments"]["text"].as_str().unwrap_or_default();
    let echo = |text: &str| json!({ "content": [{ "type": "text", "text": text }] });
    let result = match message["method"].as_str().unwrap() {
        "initialize" => json!({ "protocolVersion": "2025-11-25", "capabilities": { "tools": {} },
            "serverInfo": { "name": "b", "version": "1" } }),
        "tools/list" if habit.ends_with("less") => json!({ "tools": [] }),
        "tools/list" => json!({ "tools": [{ "name": "echo", "inputSchema": { "type": "object",
            "properties": { "text": { "type": "string" } }, "required": ["text"] } }] }),
        "ping" => json!({}),
        _ if shows && habit == "lies" => echo(&text.replace("fox", "cow")),
        _ if habit == "dates" => {
            let mut result = echo(text);
            result["_meta"] = json!({ "call": "x".repeat(calls % 7) });
            result
        }
        _ => echo(text),
    };
    let answer = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result });
    match habit {
        "pingless" if message["method"] == "ping" => {
            let error = json!({ "code": -32601, "message": "no such method" });
            vec![json!({ "jsonrpc": "2.0", "id": message["id"], "error": error })]
        }
        "dies" if shows => {
            eprintln!("out of memory");
            std::process::exit(9);
        }
        "stops" if shows => vec![],
        "twice" if shows => vec![answer.clone(), answer],
        "stranger" if shows => vec![json!({ "jsonrpc": "2.0", "id": 7, "result": result })],
        "noisy" => {
            eprintln!("{}", "noise ".repeat(100));
            vec![answer]
        }
        _ => vec![answer],
    }
}

fn cell<'a>(document: &'a Value, phase: &str, name: &str) -> &'a Value {
    let phases = document["phases"].as_array().unwrap();
    let found = phases.iter().find(|entry| entry["phase"] == phase);
    let found = found.unwrap_or_else(|| panic!("{phase} in {document}"));
    let servers = found["servers"].as_array().unwrap();
    let cell = servers.iter().find(|server| server["name"] == name);
    cell.unwrap_or_else(|| panic!("{name} in {found}"))
}

/// T23
#[test]
fn every_phase_has_figures_and_cat_is_a_floor() {
    let document = demo("bench --quick --json --compare cat=cat").exits(0).json();
    for phase in ["start", "sequential", "in-flight", "fire-hose", "payload", "list"] {
        let cell = cell(&document, phase, "taut");
        let of =
            |name: &str| cell["median"][name].as_f64().unwrap_or_else(|| panic!("{name} {cell}"));
        assert!(of("p50_us") > 0.0 && of("p50_us") <= of("p99_us"), "{cell}");
        assert!(of("p90_us") <= of("p999_us") && of("per_second") > 0.0, "{cell}");
        assert!(of("cpu_us") > 0.0 && of("peak_bytes") > 100_000.0, "{cell}");
        assert_eq!(cell["ratio"], 1.0, "{cell}");
    }
    assert!(cell(&document, "sequential", "cat")["ratio"].as_f64().unwrap() > 0.0);
    let [taut, cat] = document["servers"].as_array().unwrap().as_slice() else { panic!() };
    assert_eq!(taut["called"], json!({ "tool": "echo", "argument": "text", "compared": true }));
    assert_eq!((&taut["failed"], &taut["parsed"]), (&Value::Null, &Value::Bool(false)));
    assert!(cat["notes"][0].as_str().unwrap().contains("no server"), "{cat}");
    assert!(document["machine"]["cores"].as_u64().unwrap() >= 1);
}

#[test]
fn people_get_a_table_and_a_picture() {
    let picture = std::env::temp_dir().join(format!("taut-bench-{}.svg", std::process::id()));
    let line = format!("bench --quick --name mine --plot {}", picture.display());
    let run = demo(&line).exits(0);
    for words in ["p99.9", "one call after the other, one core", "list of ", "\n  mine "] {
        assert!(run.out.contains(words), "{words}\n{}", run.out);
    }
    assert!(
        run.out.ends_with("✓ every request was answered exactly once, and rightly\n"),
        "{}",
        run.out
    );
    let besides = run.err.lines().filter(|line| !line.starts_with("this taut is not"));
    assert_eq!(besides.count(), 0, "{}", run.err);
    let svg = std::fs::read_to_string(&picture).unwrap();
    std::fs::remove_file(&picture).unwrap();
    assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
    for words in ["One call after the other", "against its size", "prefers-color-scheme:dark"] {
        assert!(svg.contains(words), "{words}");
    }
    assert!(!svg.contains("NaN"), "{svg}");
}

#[test]
fn both_eras_and_sockets_are_measured_too() {
    for options in ["--era modern", "--over sockets", "--era modern --over sockets --cores any"] {
        let line = format!("bench --quick --json --only in-flight --only sequential {options}");
        let document = demo(&line).exits(0).json();
        let era = if options.contains("modern") { "modern" } else { "legacy" };
        assert_eq!(document["servers"][0]["era"], era);
        assert!(cell(&document, "in-flight", "taut")["median"]["calls"].as_u64().unwrap() > 0);
    }
}

/// A server that fails is told as such, and keeps nobody from being measured.
#[test]
fn a_server_that_fails_says_how_and_stops_nobody() {
    let table = [
        ("dies", 5, "it exited with code 9: out of memory"),
        ("lies", 5, "wrong answer: request 100"),
        ("twice", 5, "was answered twice"),
        ("stranger", 5, "an answer to 7, which nobody asked"),
        ("stops", 6, "no answer within 3.0 s"),
    ];
    for (habit, code, words) in table {
        let role = server(&format!("bench {habit}"));
        // Only one of them has to be waited for; a busy machine may stop any server for a while.
        let timeout = if habit == "stops" { "3s" } else { "30s" };
        let options = format!("--timeout {timeout} --name bad --compare cat=cat");
        let line = format!("bench --quick --json --only in-flight {options}");
        let run = run(&line, &role);
        let document = run.exits(code).json();
        let fault = cell(&document, "in-flight", "bad")["fault"].as_str().unwrap_or_default();
        assert!(fault.contains(words), "{habit}: {fault}");
        assert!(cell(&document, "in-flight", "cat")["median"]["calls"].as_u64().unwrap() > 0);
    }
}

#[test]
fn a_server_may_shuffle_make_noise_and_never_say_the_same_twice() {
    for habit in ["shuffles", "noisy", "dates"] {
        let role = server(&format!("bench {habit}"));
        let line = "bench --quick --json --name odd --only in-flight --only sequential";
        let document = run(line, &role).exits(0).json();
        assert!(cell(&document, "in-flight", "odd")["median"]["calls"].as_u64().unwrap() > 60);
        assert_eq!(document["servers"][0]["parsed"], habit == "dates", "{habit}: {document}");
    }
}

#[test]
fn a_server_without_a_tool_for_texts_is_pinged_and_listed() {
    let role = server("bench toolless");
    let document = run("bench --quick --json --name x", &role).exits(0).json();
    assert_eq!(document["servers"][0]["called"], "ping");
    assert!(cell(&document, "list", "x")["median"]["calls"].as_u64().unwrap() > 0);
    assert!(!document.to_string().contains("\"payload\""), "{document}");
    let role = server("bench pingless");
    let document = run("bench --quick --json --name x", &role).exits(0).json();
    assert_eq!(document["servers"][0]["called"], "tools/list");
    // The list of this one has three pages.
    let document = run("bench --quick --json --name x", &server("2025-11-25")).exits(0).json();
    assert_eq!(document["servers"][0]["tools"], 6);
    assert!(cell(&document, "list", "x")["median"]["calls"].as_u64().unwrap() > 0);
}

#[test]
fn what_cannot_be_measured_is_an_error_with_its_own_code() {
    let table = [
        ("bench --quick -- no-such-program", 4, "could not be started"),
        ("bench --quick --timeout 300ms -- sh -c 'exit 3'", 5, "it exited with code 3"),
        ("bench --quick --tool nothing -- taut serve", 5, "it has no tool nothing"),
        ("bench --only x -- taut serve", 2, "possible values: start, sequential"),
        ("bench --compare x= -- taut serve", 2, "no command"),
        ("bench --plot /no/such/folder/x.svg -- taut serve", 2, "cannot write"),
    ];
    for (line, code, words) in table {
        let path = taut(["--version"]);
        let path = path.get_envs().find(|(name, _)| *name == "PATH").unwrap().1.unwrap().to_owned();
        let line = format!("exec {} {line}", env!("CARGO_BIN_EXE_taut"));
        let output = Command::new("sh").args(["-c", &line]).env("PATH", path).output().unwrap();
        let run = Run::from(output).exits(code);
        assert!(
            format!("{}{}", run.out, run.err).contains(words),
            "{line}: {} {}",
            run.out,
            run.err
        );
    }
}

/// Every command that takes a server takes one that listens.
#[test]
#[cfg(feature = "http")]
fn a_server_that_listens_is_measured_too() {
    let bridge = http::Listening::start("", &["taut".to_owned(), "serve".to_owned()]);
    let host = bridge.host();
    let place = hosts::Place::empty();
    let entry =
        json!({ "mcpServers": { "far": { "type": "http", "url": format!("http://{host}/mcp") } } });
    place.put(".mcp.json", &entry.to_string());
    let config = place.project().join(".mcp.json");
    let named = format!("far --config {}", config.display());
    for server in [format!("http://{host}/mcp"), format!("tcp:{host}"), named] {
        let line = format!("bench --quick --json --only sequential --cores any {server}");
        let run = run(&line, &[]).exits(0);
        let document = run.json();
        let name = format!("{}, bridged", server.split(' ').next().unwrap());
        assert!(cell(&document, "sequential", &name)["median"]["calls"].as_u64().unwrap() > 0);
        assert!(run.err.contains("measured through `taut bridge`"), "{}", run.err);
    }
    let run = run("bench --quick http://127.0.0.1:9/mcp", &[]).exits(4);
    assert!(run.err.contains("cannot be reached"), "{}", run.err);
}

#[test]
fn an_interrupt_ends_the_servers_and_the_command() {
    let mut words: Vec<String> = ["bench", "--rounds", "1000", "--"].map(str::to_owned).into();
    let name = format!("interrupted-{}", std::process::id());
    words.extend(server(&format!("bench {name}")));
    let mut child = taut(words).spawn().unwrap();
    eventually("a server is measured", || {
        // The command itself is one of them.
        processes_with(&format!("TAUT_ROLE=bench {name}")).len() >= 2
    });
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let mut status = None;
    eventually("the command ends", || {
        status = child.try_wait().unwrap();
        status.is_some()
    });
    assert_eq!(status.unwrap().code(), Some(130));
    eventually("the server ends", || processes_with(&format!("TAUT_ROLE=bench {name}")).is_empty());
}
