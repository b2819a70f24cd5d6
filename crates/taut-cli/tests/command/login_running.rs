//! Logins of programs that run: what another process does to the store counts, what it holds stops nobody, and what
//! is sent is masked wherever a server repeats it.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, ChildStdin, ChildStdout};

use serde_json::json;

use super::authority::{Authority, browse};
use super::login::{Prompted, User};
use super::*;

/// A bridge to a server at a URL, and a host that speaks with it.
struct Bridge {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl Bridge {
    fn start(user: &User, line: &str) -> Self {
        let mut child = user.command(line).stdin(Stdio::piped()).spawn().unwrap();
        let (to, from) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        Self { child, to, from: BufReader::new(from) }
    }

    fn send(&mut self, id: u64, method: &str, params: &Value) {
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        writeln!(self.to, "{message}").unwrap();
    }

    fn open(&mut self) {
        let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": { "name": "host", "version": "1" } });
        self.send(0, "initialize", &hello);
    }

    fn answer(&mut self, id: u64) -> Value {
        loop {
            let mut line = String::new();
            assert!(self.from.read_line(&mut line).unwrap() > 0, "the bridge has ended");
            let message: Value = serde_json::from_str(&line).unwrap();
            if message["id"] == id {
                return message;
            }
        }
    }

    /// Closes its stdin; says how long it took to end.
    fn end(self) -> (Option<i32>, Duration) {
        let Self { mut child, to, .. } = self;
        let began = Instant::now();
        drop(to);
        (child.wait().unwrap().code(), began.elapsed())
    }
}

/// Finding 7. H4.
#[test]
fn a_logout_is_final_for_a_bridge_that_runs() {
    let (authority, user) = (Authority::start(), User::new("final"));
    user.log_in(&authority).exits(0);
    let mut bridge = Bridge::start(&user, &format!("bridge {}", authority.url));
    bridge.open();
    assert!(bridge.answer(0).get("result").is_some());
    let out = user.run(&format!("logout {}", authority.url)).exits(0).out;
    assert!(out.contains("is forgotten"), "{out}");
    // An hour later.
    authority.state().expire();
    let call = json!({ "name": "get_word", "arguments": {} });
    for id in 1..3 {
        bridge.send(id, "tools/call", &call);
        let refused = bridge.answer(id);
        let words = refused["error"]["message"].as_str().unwrap_or_default();
        assert!(words.contains(&format!("taut login {}", authority.url)), "{refused}");
    }
    assert_eq!(authority.state().refreshed, 0);
    assert_eq!(user.run("logins --json").exits(0).json(), json!({ "logins": [] }));
    assert!(!std::fs::read_to_string(user.tokens()).unwrap().contains("hushed"));
    assert_eq!(bridge.end().0, Some(0));
}

/// Finding 8: a process that was stopped while it had the lock, with a token that has to be refreshed. H5.
#[test]
// About Unix itself: signals. The lock of a file that another process has opened alone, on Windows, is tested in
// taut-http.
#[cfg(unix)]
fn a_stopped_process_with_the_lock_stops_no_other_one() {
    let (authority, user) = (Authority::start(), User::new("stopped"));
    user.log_in(&authority).exits(0);
    let lock = std::fs::File::open(user.folder.join("taut/logins.json.lock")).unwrap();
    // As if it had been stopped some time ago.
    let earlier = std::time::SystemTime::now() - Duration::from_secs(60);
    let file = std::fs::File::options().write(true).open(user.folder.join("taut/logins.json.lock"));
    file.unwrap().set_modified(earlier).unwrap();
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).unwrap();
    authority.state().expire();
    user.run(&format!("list --max-time 10s {}", authority.url)).exits(0);
    authority.state().expire();
    let mut bridge = Bridge::start(&user, &format!("bridge {}", authority.url));
    bridge.open();
    let opened = bridge.answer(0);
    assert!(opened.get("result").is_some(), "{opened}");
    let (code, took) = bridge.end();
    assert_eq!(code, Some(0));
    assert!(took < Duration::from_secs(8), "{took:?}");
    assert_eq!(authority.state().refreshed, 2);
    user.run(&format!("logout {}", authority.url)).exits(0);
    assert!(user.run("logins").exits(0).out.is_empty());
}

/// Finding 14: a server that repeats the token, once from a login and once from a refresh, and one that was given.
/// H10.
#[test]
fn a_token_of_a_login_is_masked_wherever_the_server_repeats_it() {
    for (way, refresh) in [("login", false), ("login", true), ("header", false)] {
        let (authority, user) = (Authority::start(), User::new("repeated"));
        authority.state().repeats = true;
        let mut url = authority.url.clone();
        if way == "login" {
            user.log_in(&authority).exits(0);
            if refresh {
                authority.state().expire();
            }
        } else {
            let token = authority.state().give();
            let file = user.folder.join("headers.json");
            let headers = json!({ "Authorization": format!("Bearer {token}") });
            let servers = json!({ "mcpServers": { "it": { "url": url, "headers": headers } } });
            std::fs::write(&file, servers.to_string()).unwrap();
            url = format!("--config {} it", file.display());
        }
        let capture = user.folder.join("capture.jsonl");
        let mut said = String::new();
        for (line, code) in
            [("call get_word -v", 3), ("--debug call get_word", 3), ("--debug list", 0)]
        {
            let run = user.run(&format!("{line} {url}")).exits(code);
            // What a server offers is its own, on stdout.
            said += &run.err;
            assert!(run.err.contains("***") || line.ends_with("list"), "{way}: {}", run.err);
        }
        let mut bridge =
            Bridge::start(&user, &format!("bridge --record {} {url}", capture.display()));
        bridge.open();
        bridge.answer(0);
        bridge.send(1, "tools/call", &json!({ "name": "get_word", "arguments": {} }));
        bridge.answer(1);
        assert_eq!(bridge.end().0, Some(0));
        let capture = std::fs::read_to_string(capture).unwrap();
        assert!(capture.contains("upstream said no to "), "{way}: {capture}");
        assert!(capture.contains("***"), "{way}: {capture}");
        let secrets = authority.state().secrets.clone();
        for secret in secrets.iter().filter(|secret| secret.starts_with("access-")) {
            assert!(!capture.contains(secret.as_str()), "{way} {refresh}: {capture}");
            assert!(!said.contains(secret.as_str()), "{way} {refresh}: {said}");
        }
        assert_eq!(authority.state().refreshed, usize::from(refresh));
    }
}

/// The same, where the capture is made by a `taut trace` before the bridge that sends the token.
#[test]
fn a_token_of_a_login_is_masked_by_a_trace_before_the_bridge() {
    let (authority, user) = (Authority::start(), User::new("traced"));
    authority.state().repeats = true;
    user.log_in(&authority).exits(0);
    let capture = user.folder.join("capture.jsonl");
    let taut = env!("CARGO_BIN_EXE_taut");
    let line =
        format!("trace -q --record {} -- {taut} bridge {}", capture.display(), authority.url);
    let mut traced = Bridge::start(&user, &line);
    traced.open();
    traced.answer(0);
    // Not behind `Bearer`, where every long word is masked.
    traced.send(1, "tools/list", &json!({}));
    let said = traced.answer(1)["result"]["tools"][0]["description"].to_string();
    assert!(said.contains("hushed"), "the host gets what the server says: {said}");
    assert_eq!(traced.end().0, Some(0));
    let capture = std::fs::read_to_string(capture).unwrap();
    assert!(capture.contains("you are ***"), "{capture}");
    assert!(!capture.contains("hushed"), "{capture}");
}

/// Finding 30, second half: exit code 0, and nothing is opened or kept.
#[test]
fn a_server_that_serves_everyone_needs_no_login() {
    let (authority, user) = (Authority::start(), User::new("everyone"));
    authority.state().open = true;
    let run = user.run(&format!("login {}", authority.url)).exits(0);
    assert_eq!(run.out, format!("no login is needed: {} serves everyone\n", authority.url));
    assert!(run.err.is_empty(), "{}", run.err);
    assert_eq!((authority.state().registered, user.tokens().exists()), (0, false));
}

/// Finding 24: what is shown of an address hides the secrets in its query.
#[test]
fn logins_of_two_tenants_are_two_and_their_secrets_are_not_shown() {
    let (authority, user) = (Authority::start(), User::new("tenants"));
    let at = |tenant: &str| format!("{}?tenant={tenant}&api_key=hushed-{tenant}", authority.url);
    for tenant in ["a", "b"] {
        let login = Prompted::start(user.command(&format!("login {}", at(tenant))));
        browse(&authority.log_in(&login.address));
        let done = login.end("").exits(0);
        assert!(done.out.contains(&format!("?tenant={tenant}&api_key=***")), "{}", done.out);
    }
    for line in ["logins", "logins --json"] {
        let run = user.run(line).exits(0);
        assert!(run.out.contains("tenant=a") && run.out.contains("tenant=b"), "{}", run.out);
        assert!(!run.out.contains("hushed"), "{}", run.out);
    }
    user.run(&format!("logout {}", at("a"))).exits(0);
    let left = user.run("logins").exits(0).out;
    assert!(!left.contains("tenant=a") && left.contains("tenant=b"), "{left}");
}

/// A token endpoint that is not well, seen from a command: what to do is to try again, not to log in.
#[test]
fn a_token_endpoint_that_is_not_well_is_told_as_that() {
    let (authority, user) = (Authority::start(), User::new("not-well"));
    user.log_in(&authority).exits(0);
    authority.state().expire();
    authority.state().token_reply = Some((503, r#"{"error":"temporarily_unavailable"}"#));
    let run = user.run(&format!("list {}", authority.url)).exits(4);
    let words = "/token answered 503: temporarily_unavailable, try again in a moment";
    assert!(run.err.contains(words) && !run.err.contains("taut login"), "{}", run.err);
    authority.state().token_reply = None;
    user.run(&format!("list {}", authority.url)).exits(0);
}
