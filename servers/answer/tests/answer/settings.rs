//! Configuration: what beats what, what is refused and how, and what a missing key does.

use std::path::PathBuf;

use serde_json::json;

use crate::fine;
use crate::host::{Host, KEY, binary, run};
use crate::service::Service;

fn file(name: &str, text: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, text).unwrap();
    path
}

#[test]
fn the_command_line_beats_the_environment_beats_the_file_beats_the_default() {
    let yaml = "request: {max_retries: 7, timeout_ms: 1000}\npolicy:\n  max_citations: 2\n\
                search: {defaults: {domains: [example.org, example.com]}}\n";
    let path = file("order.yaml", yaml);
    let (output, shown) = run(binary()
        .args(["--show-config", "--set", "request.max_retries=9", "--config"])
        .arg(&path)
        .env("OPENAI_MAX_RETRIES", "8")
        .env("OPENAI_API_TIMEOUT", "2000")
        .env("ANSWER_EFFORT", "")
        .env("OPENAI_API_KEY", KEY));
    assert!(output.status.success() && output.stdout.is_empty());
    let from_file = format!("file {}", path.display());
    for line in [
        "openai.api_key: \"***\"  # environment OPENAI_API_KEY",
        "request.max_retries: \"9\"  # command line",
        "request.timeout_ms: \"2000\"  # environment OPENAI_API_TIMEOUT",
        &format!("policy.max_citations: \"2\"  # {from_file}"),
        &format!("search.defaults.domains: \"example.org,example.com\"  # {from_file}"),
        "search.defaults.max_results: \"5\"  # default",
        "model_profiles.answer.reasoning_effort: \"medium\"  # default",
        "model_profiles.answer_quick.model: \"\"  # default",
    ] {
        assert!(shown.lines().any(|shown| shown == line), "{line} is not in {shown}");
    }
}

#[test]
fn debug_is_judged_command_line_first() {
    let path = file("debug.yaml", "server: {debug: true}");
    let shown = |args: &[&str], variable: &str| {
        let mut command = binary();
        command.arg("--show-config").arg("--config").arg(&path).env("DEBUG", variable);
        // A file that the variable names is made there.
        command.current_dir(env!("CARGO_TARGET_TMPDIR"));
        run(command.args(args))
            .1
            .lines()
            .find(|l| l.starts_with("server.debug:"))
            .unwrap()
            .to_owned()
    };
    assert!(shown(&[], "").starts_with("server.debug: \"true\"  # file"));
    assert_eq!(shown(&[], "0"), "server.debug: \"false\"  # environment DEBUG");
    assert_eq!(shown(&["--debug"], "0"), "server.debug: \"true\"  # command line");
    assert_eq!(shown(&[], "./x.log"), "server.debug: \"true\"  # environment DEBUG");
}

/// Other programs read `DEBUG`, too, and give it values of their own.
#[test]
fn an_unknown_debug_in_the_environment_is_off_and_told() {
    for value in ["*", "app", "on", "app:*", "express:router/*", "/nowhere/at/all.log"] {
        let mut host = Host::start(binary().env("DEBUG", value));
        assert_eq!(host.ask("ping", json!({}))["result"], json!({}), "{value}");
        let log = host.end();
        assert!(log.contains("DEBUG") && log.contains("debug is off"), "{value}: {log}");
        assert!(!log.contains("recv method"), "{value}: {log}");
    }
    let (output, stderr) = run(binary().args(["--stdio", "--set", "server.debug=on"]));
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr.contains("true, false, ./debug.log"), "{stderr}");
}

#[test]
fn a_bad_value_is_refused_by_key_value_and_what_is_allowed() {
    let table = [
        ("OPENAI_MAX_RETRIES", "11", "request.max_retries is \"11\"", "0 to 10"),
        ("MAX_CITATIONS", "many", "policy.max_citations is \"many\"", "1 to 10"),
        ("OPENAI_API_TIMEOUT", "-5", "request.timeout_ms is \"-5\"", "1 to 86400000"),
        ("ANSWER_EFFORT", "lazy", "reasoning_effort is \"lazy\"", "low, medium, high, xhigh"),
        ("OPENAI_BASE_URL", "ftp://x", "openai.base_url is ***", "http://… or https://…"),
    ];
    for (variable, value, named, allowed) in table {
        let (output, stderr) = run(binary().arg("--stdio").env(variable, value));
        assert_eq!(output.status.code(), Some(2));
        let from = format!("(from environment {variable}) but must be: ");
        assert!(stderr.contains(named) && stderr.contains(&from), "{stderr}");
        assert!(stderr.contains(allowed), "{stderr}");
    }
}

/// SEC-11.
#[test]
fn a_bad_file_is_refused_and_shows_no_secret() {
    let table = [
        ("unknown", "policy: {require_dates_iso: true}", "no key policy.require_dates_iso"),
        ("key", &format!("openai: {{api_key: {KEY}}}"), "no key openai.api_key "),
        ("misplaced", &format!("openai: {{api_key_env: {KEY}}}"), "openai.api_key_env is ***"),
        ("broken", &format!("openai: {{ {KEY}"), "broken.yaml: "),
        ("list", "- a", "list.yaml)"),
        ("domain", "search: {defaults: {domains: ['a b']}}", "domains such as example.org"),
        ("policy", "policy: {system: {source: file, path: ./gone.txt}}", "policy.system.path is"),
    ];
    for (name, text, named) in table {
        let path = file(&format!("{name}.yaml"), text);
        let (output, stderr) = run(binary().arg("--config").arg(path));
        assert_eq!(output.status.code(), Some(2), "{name}");
        assert!(stderr.contains(named), "{stderr}");
    }
    let (output, stderr) = run(binary().args(["--config", "/nowhere/config.yaml"]));
    assert!(
        output.status.code() == Some(2) && stderr.contains("/nowhere/config.yaml: "),
        "{stderr}"
    );
}

#[test]
fn profiles_and_policy_come_from_the_file() {
    let words = file("policy.txt", "Speak like a pirate.");
    let yaml = format!(
        "model_profiles:\n  answer_detailed: {{model: o3-deep, reasoning_effort: high}}\n  \
         answer_quick: {{model: small-1}}\npolicy: {{system: {{source: file, merge: prepend, \
         path: {}}}}}\n",
        words.display()
    );
    let path = file("profiles.yaml", &yaml);
    let service = Service::that([fine()]);
    let mut host = Host::open_with(&service, "2025-11-25", |c| c.arg("--config").arg(path));
    host.call("answer_detailed", json!({ "query": "q" }));
    let body = service.next().body;
    assert_eq!((&body["model"], &body["reasoning"]["effort"]), (&json!("o3-deep"), &json!("high")));
    assert!(body.get("text").is_none(), "only gpt-5 takes a verbosity");
    assert!(body["instructions"].as_str().unwrap().starts_with("Speak like a pirate.\n\nYou are"));
    host.call("answer_quick", json!({ "query": "q" }));
    let body = service.next().body;
    assert_eq!(body["model"], "small-1");
    assert!(body.get("reasoning").is_none() && body.get("text").is_none());
    host.end();
}

#[test]
fn without_a_key_it_lists_and_says_what_to_do() {
    let service = Service::that([fine()]);
    let mut host = Host::open_with(&service, "2025-06-18", |c| c.env_remove("OPENAI_API_KEY"));
    let list = host.ask("tools/list", json!({}));
    assert_eq!(list["result"]["tools"].as_array().unwrap().len(), 3);
    let text = host.failure(json!({ "query": "q" }));
    assert!(text.contains("there is no API key: set OPENAI_API_KEY"), "{text}");
    let log = host.end();
    assert!(log.contains("no API key: OPENAI_API_KEY is not set"), "{log}");
    assert!(service.was_asked_no_more());
}

#[test]
fn the_log_goes_into_the_file_that_was_named_as_well() {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("debug.log");
    let _ = std::fs::remove_file(&path);
    let service = Service::that([fine()]);
    let mut host = Host::open_with(&service, "2025-11-25", |c| c.env("DEBUG", "0").arg(&path));
    host.answer(json!({ "query": format!("what is {KEY}?") }));
    let log = host.end();
    let written = std::fs::read_to_string(&path).unwrap();
    assert!(written.contains("recv method=tools/call") && log.contains(&written), "{written}");
    assert!(!written.contains(KEY), "{written}");
    let mode = std::os::unix::fs::MetadataExt::mode(&std::fs::metadata(&path).unwrap());
    assert_eq!(mode & 0o777, 0o600, "for its owner only");
}

#[test]
fn help_and_version_are_for_people() {
    let (output, _) = run(binary().arg("--help"));
    let help = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && help.contains("--show-config"), "{help}");
    let (output, _) = run(binary().arg("-v"));
    assert_eq!(output.stdout, concat!("taut-answer ", env!("CARGO_PKG_VERSION"), "\n").as_bytes());
    assert_eq!(run(binary().arg("--frobnicate")).0.status.code(), Some(2));
}

/// Hosts that start it without arguments get a server; a person is told what it is.
#[test]
fn it_serves_in_a_pipe_and_says_what_it_is_on_a_terminal() {
    let mut host = Host::start(&mut binary());
    let params = json!({ "protocolVersion": "2025-06-18", "capabilities": {},
                         "clientInfo": { "name": "test", "version": "1" } });
    let answer = host.ask("initialize", params);
    assert_eq!(answer["result"]["serverInfo"]["name"], "taut-answer", "{answer}");
    host.end();

    // `script` runs it on a terminal of its own.
    let line = format!("{} 2>&1", env!("CARGO_BIN_EXE_taut-answer"));
    let mut command = std::process::Command::new("script");
    command.args(["-qec", &line, "/dev/null"]);
    let (output, _) = run(&mut command);
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{shown}");
    assert!(shown.contains("is an MCP server") && shown.contains("taut smoke"), "{shown}");
}
