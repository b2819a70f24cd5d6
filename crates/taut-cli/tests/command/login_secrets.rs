//! No token, code, verifier or client secret in anything that a whole flow writes, but for the one file of tokens,
//! which only its owner can read (issue 22, line 4).
//!
//! The flow: a login, calls, a refresh, a second login, errors that repeat what was sent, a capture, a bridge that
//! crashes. All of it with `--debug`, and with `-v` where that exists. What a panic prints:
//! `crates/taut-http/tests/login/secrets.rs`.

use std::io::{BufRead as _, BufReader};
use std::path::Path;

use serde_json::json;

use super::authority::{Authority, browse};
use super::login::{Prompted, User};
use super::*;

/// Every file below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found
}

/// What all the commands of one flow have said.
struct Flow<'a> {
    user: &'a User,
    authority: &'a Authority,
    /// Each command line, and its stdout and stderr.
    said: Vec<(String, String)>,
}

impl Flow<'_> {
    /// A command with its steps in a file of its own.
    fn command(&self, line: &str) -> Command {
        let steps = self.user.folder.join(format!("steps-{}.log", self.said.len()));
        let mut command = self.user.command(line);
        command.env("TAUT_DEBUG", steps).env("RUST_BACKTRACE", "full");
        command
    }

    fn keep(&mut self, line: &str, run: &Run) {
        self.said.push((line.to_owned(), format!("{}{}", run.out, run.err)));
    }

    fn run(&mut self, line: &str, code: i32) {
        let line = format!("{line} {}", self.authority.url);
        let run: Run = self.command(&line).output().unwrap().into();
        self.keep(&line, &run);
        run.exits(code);
    }

    fn log_in(&mut self, paste: bool, code: i32) {
        let line = format!("login --no-browser {}", self.authority.url);
        let login = Prompted::start(self.command(&line));
        let redirect = self.authority.log_in(&login.address);
        let run = match paste {
            true => login.end(&format!("{redirect}\n")),
            false => {
                let page = browse(&redirect);
                self.said.push(("the page of the browser".to_owned(), page));
                login.end("")
            }
        };
        self.keep(&line, &run);
        run.exits(code);
    }

    /// A host's session with a bridge, which `ends` in some way.
    fn bridge(&mut self, line: &str, ends: impl FnOnce(&mut std::process::Child)) {
        let mut child = self.command(line).stdin(Stdio::piped()).spawn().unwrap();
        let mut to = child.stdin.take().unwrap();
        let mut from = BufReader::new(child.stdout.take().unwrap());
        let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": { "name": "host", "version": "1" } } });
        let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
            "name": "get_word", "arguments": {} } });
        let mut said = String::new();
        for message in [hello, call] {
            writeln!(to, "{message}").unwrap();
            from.read_line(&mut said).unwrap();
        }
        assert!(said.contains("behind the login"), "{line}: {said}");
        ends(&mut child);
        drop(to);
        let rest = child.wait_with_output().unwrap();
        said += &String::from_utf8_lossy(&rest.stderr);
        self.said.push((line.to_owned(), said));
    }
}

#[test]
fn nothing_that_a_whole_flow_writes_has_a_secret_in_it() {
    let (authority, user) = (Authority::start(), User::new("secrets"));
    let url = authority.url.clone();
    let mut flow = Flow { user: &user, authority: &authority, said: Vec::new() };
    flow.log_in(false, 0);
    for line in ["call get_word -v", "call get_word --json", "list -v", "smoke -v", "doctor --json"]
    {
        flow.run(line, 0);
    }
    // A refresh, then a login that was taken back, and another login.
    authority.state().expire();
    flow.run("call get_word -v", 0);
    assert_eq!(authority.state().refreshed, 1);
    {
        let mut state = authority.state();
        state.expire();
        state.revoked = true;
    }
    flow.run("call get_word -v", 4);
    authority.state().revoked = false;
    flow.log_in(true, 0);

    let capture = user.folder.join("capture.jsonl");
    flow.bridge(&format!("trace --record {} -- taut bridge {url}", capture.display()), |_| {});
    let capture_text = std::fs::read_to_string(&capture).unwrap();
    assert!(capture_text.contains("behind the login"), "the session was recorded: {capture_text}");
    // A crash in the middle of a session.
    flow.bridge(&format!("bridge {url}"), |child| {
        rude::system::crash(child);
    });

    // Servers that repeat what they were sent: the code, the verifier, the client's secret, the refresh token.
    for reply in [
        (400, r#"{"error":"invalid_grant","error_description":"{sent}"}"#),
        (200, "<html>{sent}</html>"),
        (500, "<html>{sent}</html>"),
    ] {
        authority.state().token_reply = Some(reply);
        flow.log_in(true, 3);
        authority.state().expire();
        flow.run("call get_word -v", 4);
    }
    authority.state().token_reply = None;
    for line in ["logins", "logins --json"] {
        let run: Run = flow.command(line).output().unwrap().into();
        flow.keep(line, &run);
    }

    let secrets = authority.state().secrets.clone();
    for kind in ["access-", "refresh-", "code-", "client-"] {
        assert!(secrets.iter().any(|secret| secret.starts_with(kind)), "{kind}: {secrets:?}");
    }
    let verifiers = secrets.iter().filter(|secret| !secret.contains("hushed")).count();
    assert!(verifiers >= 5, "each login had a verifier: {secrets:?}");
    for (line, said) in &flow.said {
        for secret in &secrets {
            assert!(!said.contains(secret.as_str()), "{secret} was shown by {line}: {said}");
        }
    }
    let (mut steps, mut kept) = (0, 0);
    for path in files(&user.folder) {
        let text = String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned();
        steps +=
            usize::from(path.to_string_lossy().contains("steps-") && text.contains("tools/call"));
        let secret = secrets.iter().find(|secret| text.contains(secret.as_str()));
        if path == user.tokens() {
            kept += usize::from(secret.is_some());
            assert!(!secrets.iter().any(|s| s.starts_with("code-") && text.contains(s.as_str())));
            user.tokens_are_private();
        } else {
            assert!(secret.is_none(), "{secret:?} is in {}: {text}", path.display());
        }
    }
    assert!(steps >= 5, "--debug has told the steps of the calls: {steps}");
    assert_eq!(kept, 1, "the tokens were kept where they belong");
}
