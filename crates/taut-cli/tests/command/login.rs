//! `taut login`, `taut logout` and `taut logins` as processes, and what the other commands do with the tokens.
//!
//! | fault (issue 22, line 3) | test |
//! |---|---|
//! | metadata with the wrong issuer | `every_fault_of_a_login_is_told_with_its_exit_code`, `auc_04_metadata_of_another_issuer_is_refused` |
//! | `resource` that does not match | the same, `auc_06_a_resource_that_does_not_match_is_refused` |
//! | missing PKCE support | the same, `auc_05_an_authorization_server_without_pkce_is_refused` |
//! | a code of another session | `an_answer_of_another_login_is_refused`, `auc_10_a_code_of_another_session_is_of_no_use` |
//! | `state` changed | `an_answer_of_another_login_is_refused`, `auc_10_an_answer_that_belongs_to_another_login_is_refused` |
//! | token endpoint that answers HTML | `every_fault_of_a_login_is_told_with_its_exit_code`, `a_token_endpoint_that_answers_html_is_told` |
//! | `expires_in` 0 | `a_token_that_expires_in_no_time_is_used_until_it_is_refused` |
//! | refresh token revoked in the middle of a session | `a_login_that_is_revoked_in_mid_session_is_made_again_once`, `a_revoked_refresh_token_leads_to_one_login` |
//! | clock skew | `a_token_is_refreshed_when_either_clock_says_that_it_is_over` |
//! | two processes that refresh at once | `processes_that_refresh_at_once_do_it_once` |
//! | a token file that is broken | `a_broken_file_of_tokens_is_told_and_put_aside`, `a_broken_file_is_put_aside_at_the_next_login` |
//! | a token file that is read-only | `a_file_of_tokens_that_cannot_be_written_is_told` |
//! | a token file that is not ours | `a_file_of_tokens_that_is_not_ours_is_not_used`, `a_file_that_others_can_read_is_not_used` |
//! | the browser closed without answer | `a_browser_that_is_closed_ends_the_login_with_its_own_exit_code` |
//!
//! Tests that are not in this file are in `crates/taut-http/tests/login`. What must not be shown: `login_secrets.rs`.

use std::io::{BufRead as _, BufReader, Read as _};
#[cfg(unix)]
use std::os::unix::{fs::PermissionsExt as _, process::CommandExt as _};
#[cfg(unix)]
use std::path::Path;
use std::process::Child;

use serde_json::json;

use super::authority::{Authority, browse};
use super::*;

/// A user of their own, with a place for tokens.
pub(super) struct User {
    pub(super) folder: PathBuf,
}

impl User {
    pub(super) fn new(name: &str) -> Self {
        let name = format!("taut-login-{}-{name}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        Self { folder }
    }

    /// Where the tokens are.
    pub(super) fn tokens(&self) -> PathBuf {
        self.folder.join("taut/logins.json")
    }

    /// Tokens that only their owner can read.
    fn put_tokens(&self, text: &str) {
        std::fs::create_dir_all(self.folder.join("taut")).unwrap();
        std::fs::write(self.tokens(), text).unwrap();
        #[cfg(unix)]
        std::fs::set_permissions(self.tokens(), std::fs::Permissions::from_mode(0o600)).unwrap();
    }

    /// That only their owner can read them. On Windows the folder sees to it, which is the user's own.
    pub(super) fn tokens_are_private(&self) {
        #[cfg(unix)]
        {
            let mode = std::fs::metadata(self.tokens()).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "nobody else reads the tokens");
        }
    }

    pub(super) fn command(&self, line: &str) -> Command {
        let mut command = taut(line.split_whitespace());
        // Windows has no variable that says whether there is a browser.
        if cfg!(windows) && line.starts_with("login ") && !line.contains("--no-browser") {
            command.arg("--no-browser");
        }
        for name in ["DISPLAY", "WAYLAND_DISPLAY", "HTTP_PROXY", "http_proxy", "ALL_PROXY"] {
            command.env_remove(name);
        }
        command.env(if cfg!(windows) { "LOCALAPPDATA" } else { "XDG_STATE_HOME" }, &self.folder);
        command
    }

    pub(super) fn run(&self, line: &str) -> Run {
        self.command(line).output().unwrap().into()
    }

    /// Logs in with a browser.
    pub(super) fn log_in(&self, authority: &Authority) -> Run {
        let login = Prompted::start(self.command(&format!("login {}", authority.url)));
        let page = browse(&authority.log_in(&login.address));
        assert!(page.contains("You can close this window"), "{page}");
        login.end("")
    }
}

impl Drop for User {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// A `taut login` that has printed the address to open.
pub(super) struct Prompted {
    child: Child,
    pub(super) address: String,
    stderr: BufReader<std::process::ChildStderr>,
    said: String,
}

impl Prompted {
    pub(super) fn start(mut command: Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut said = String::new();
        let address = loop {
            let mut line = String::new();
            assert!(stderr.read_line(&mut line).unwrap() > 0, "no address: {said}");
            said += &line;
            if line.contains("/authorize?") {
                break line.trim().to_owned();
            }
        };
        Self { child, address, stderr, said }
    }

    /// Waits for its end, after typing this.
    pub(super) fn end(mut self, typed: &str) -> Run {
        let mut stdin = self.child.stdin.take().unwrap();
        stdin.write_all(typed.as_bytes()).unwrap();
        self.stderr.read_to_string(&mut self.said).unwrap();
        drop(stdin);
        let mut out = String::new();
        self.child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
        let code = self.child.wait().unwrap().code().unwrap();
        Run { code, out, err: self.said }
    }
}

#[test]
fn a_login_is_kept_used_by_the_other_commands_shown_and_forgotten() {
    let (authority, user) = (Authority::start(), User::new("whole"));
    let url = &authority.url;
    let empty = user.run("logins").exits(0);
    assert!(
        empty.out.is_empty() && empty.err.contains("no logins; taut login URL"),
        "{}",
        empty.err
    );

    let done = user.log_in(&authority).exits(0);
    assert_eq!(done.out, format!("logged in to {url}, for read\n"));
    user.tokens_are_private();
    for line in ["call get_word", "smoke", "list"] {
        user.run(&format!("{line} {url}")).exits(0);
    }
    assert_eq!(user.run(&format!("call get_word {url}")).out, "behind the login\n");
    assert_eq!(authority.state().given, 1, "one login served them all");

    let listed = user.run("logins").exits(0);
    assert!(listed.out.starts_with(&format!("{url}  by http://127.0.0.1:")), "{}", listed.out);
    assert!(listed.out.ends_with("renewed when needed\n"), "{}", listed.out);
    let document = user.run("logins --json").exits(0).json();
    let login = &document["logins"][0];
    assert_eq!((&login["server"], &login["scope"]), (&json!(url), &json!("read")));
    assert_eq!(login.as_object().unwrap().len(), 5, "nothing but what is known not to be secret");

    let forgotten = user.run(&format!("logout {url}")).exits(0);
    assert!(forgotten.out.contains("is forgotten"), "{}", forgotten.out);
    assert!(user.run(&format!("logout {url}")).exits(0).out.contains("there was no login"));
    assert!(!std::fs::read_to_string(user.tokens()).unwrap().contains("hushed"));
    assert!(user.run("logins").exits(0).out.is_empty());
}

/// A browser on another machine: the address that it ends at is pasted.
#[test]
fn the_address_that_a_browser_ended_at_can_be_pasted() {
    let (authority, user) = (Authority::start(), User::new("pasted"));
    let login = Prompted::start(user.command(&format!("login --no-browser {}", authority.url)));
    let redirect = authority.log_in(&login.address);
    let done = login.end(&format!("\n  {redirect} \n")).exits(0);
    assert!(done.err.contains("paste the address that it ends at"), "{}", done.err);
    assert!(done.out.starts_with("logged in to "), "{}", done.out);
}

#[test]
fn a_browser_that_is_closed_ends_the_login_with_its_own_exit_code() {
    let (authority, user) = (Authority::start(), User::new("closed"));
    let line = format!("login --browser-timeout 300ms {}", authority.url);
    let run = Prompted::start(user.command(&line)).end("").exits(6);
    assert!(run.err.contains("nobody has logged in within 300ms"), "{}", run.err);
    assert!(run.err.contains("try: try again"), "{}", run.err);
    assert!(!user.tokens().exists());
    // The same where nothing can be typed.
    let run = user.run(&line).exits(6);
    assert!(run.err.contains("nobody has logged in within 300ms"), "{}", run.err);
}

/// Nothing but `taut login` waits for a person.
#[test]
fn other_commands_say_taut_login_and_do_not_wait() {
    let (authority, user) = (Authority::start(), User::new("unasked"));
    let url = &authority.url;
    for line in ["list", "call get_word", "smoke", "doctor", "read a:b", "watch"] {
        let run = user.run(&format!("{line} {url}"));
        let all = format!("{}{}", run.out, run.err);
        assert_ne!(run.code, 0, "{line}: {all}");
        assert!(all.contains(&format!("taut login {url}")), "{line}: {all}");
    }
    assert_eq!(user.run(&format!("list {url}")).code, 4);
    let failed = user.run(&format!("list --json {url}")).exits(4).json();
    let next = failed["error"]["next"].as_str().unwrap();
    assert!(next.starts_with(&format!("taut login {url}")), "{failed}");
    assert_eq!(authority.state().registered, 0, "nobody began a login");
}

/// Each with the words that say what is wrong, and before a code is sent where that can be known.
#[test]
fn every_fault_of_a_login_is_told_with_its_exit_code() {
    type Fault = (&'static str, fn(&mut authority::State), i32, bool);
    let table: [Fault; 7] = [
        (
            "says that it is \"https://evil.example\"",
            |state| state.metadata = json!({ "issuer": "https://evil.example" }),
            3,
            false,
        ),
        (
            "the server says that it is \"https://evil.example/mcp\"",
            |state| state.resource = json!({ "resource": "https://evil.example/mcp" }),
            3,
            false,
        ),
        (
            "does not say that it supports PKCE with S256",
            |state| state.metadata = json!({ "code_challenge_methods_supported": ["plain"] }),
            3,
            false,
        ),
        (
            "does not say that it supports PKCE with S256",
            |state| state.metadata = json!({ "code_challenge_methods_supported": null }),
            3,
            false,
        ),
        (
            "a login needs https, except on this machine",
            |state| state.metadata = json!({ "token_endpoint": "http://auth.example/token" }),
            2,
            false,
        ),
        (
            "answered with something else than a token",
            |state| state.token_reply = Some((200, "<html><body>{sent}</body></html>")),
            3,
            true,
        ),
        (
            "/token answered 502 without saying why",
            |state| state.token_reply = Some((502, "<html><body>{sent}</body></html>")),
            3,
            true,
        ),
    ];
    for (words, set, code, asked) in table {
        let (authority, user) = (Authority::start(), User::new("faults"));
        set(&mut authority.state());
        let run = match asked {
            true => user.log_in(&authority),
            false => user.run(&format!("login {}", authority.url)),
        };
        let run = run.exits(code);
        assert!(run.err.contains(words), "{words}: {}", run.err);
        assert!(!run.err.contains("hushed"), "{}", run.err);
        assert!(run.out.is_empty() && !user.tokens().exists(), "{words}");
        assert_eq!(authority.state().forms.len(), usize::from(asked), "{words}");
    }
    let user = User::new("faults");
    let run = user.run("login http://127.0.0.1:9/mcp").exits(4);
    assert!(run.err.contains("cannot be reached"), "{}", run.err);
}

/// Two logins at once, whose answers are exchanged; a `state` that somebody has changed; a code that another login
/// has already used.
#[test]
fn an_answer_of_another_login_is_refused() {
    let (authority, user, other) =
        (Authority::start(), User::new("answers"), User::new("answers-2"));
    let line = format!("login {}", authority.url);
    let (first, second) =
        (Prompted::start(user.command(&line)), Prompted::start(other.command(&line)));
    let (mine, theirs) = (authority.log_in(&first.address), authority.log_in(&second.address));
    let run = first.end(&format!("{theirs}\n")).exits(3);
    assert!(run.err.contains("the answer belongs to another login"), "{}", run.err);
    let run = second.end(&format!("{}\n", theirs.replace("state=", "state=x"))).exits(3);
    assert!(run.err.contains("the answer belongs to another login"), "{}", run.err);
    assert_eq!(authority.state().forms.len(), 0, "no code was sent anywhere");

    // Our state with the code of a session that has used it.
    let used = user.log_in(&authority).exits(0);
    assert!(used.out.starts_with("logged in"), "{}", used.out);
    let code = authority.state().forms[0]["code"].clone();
    let third = Prompted::start(other.command(&line));
    let mine_now = authority.log_in(&third.address);
    let fresh = mine_now.split("code=").nth(1).unwrap().split('&').next().unwrap().to_owned();
    let run = third.end(&format!("{}\n", mine_now.replace(&fresh, &code))).exits(3);
    assert!(run.err.contains("no token was given: invalid_grant"), "{}", run.err);
    assert!(!run.err.contains("hushed"), "{}", run.err);
    assert!(!mine.is_empty() && !other.tokens().exists());
}

/// Four processes whose token is refused at the same moment. The refresh token is good for one use, so a second
/// refresh would end the login.
#[test]
fn processes_that_refresh_at_once_do_it_once() {
    let (authority, user) = (Authority::start(), User::new("at-once"));
    user.log_in(&authority).exits(0);
    for round in 1..=3 {
        {
            let mut state = authority.state();
            state.expire();
            state.together += 4;
        }
        let line = format!("call get_word {}", authority.url);
        let all = [(); 4].map(|()| user.command(&line).spawn().unwrap());
        for child in all {
            let run = Run::from(child.wait_with_output().unwrap()).exits(0);
            assert_eq!(run.out, "behind the login\n");
        }
        assert_eq!(authority.state().refreshed, round);
        assert_eq!(user.run("logins --json").exits(0).json()["logins"][0]["refreshable"], true);
    }
    user.tokens_are_private();
    let left = std::fs::read_dir(user.folder.join("taut")).unwrap().count();
    assert_eq!(left, 2, "the tokens and their lock, and no file of a write that was not finished");
}

/// In the middle of a session: the call fails and says what to do, the server is not asked in a loop, and after one
/// new login in another process the same session goes on.
#[test]
fn a_login_that_is_revoked_in_mid_session_is_made_again_once() {
    let (authority, user) = (Authority::start(), User::new("revoked"));
    user.log_in(&authority).exits(0);
    let mut bridge = user.command(&format!("bridge {}", authority.url));
    let mut bridge = bridge.stdin(Stdio::piped()).spawn().unwrap();
    let mut to = bridge.stdin.take().unwrap();
    let mut from = BufReader::new(bridge.stdout.take().unwrap());
    let mut ask = |id: u64, method: &str, params: Value| -> Value {
        writeln!(
            to,
            "{}",
            json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
        )
        .unwrap();
        loop {
            let mut line = String::new();
            assert!(from.read_line(&mut line).unwrap() > 0, "the bridge has ended");
            let message: Value = serde_json::from_str(&line).unwrap();
            if message["id"] == id {
                return message;
            }
        }
    };
    let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": { "name": "host", "version": "1" } });
    assert!(ask(0, "initialize", hello).get("result").is_some());
    let call = || json!({ "name": "get_word", "arguments": {} });
    assert!(ask(1, "tools/call", call()).get("result").is_some());
    {
        let mut state = authority.state();
        state.expire();
        state.revoked = true;
    }
    for id in 2..5 {
        let refused = ask(id, "tools/call", call());
        let words = refused["error"]["message"].as_str().unwrap_or_default();
        assert!(words.contains(&format!("taut login {}", authority.url)), "{refused}");
    }
    {
        let mut state = authority.state();
        assert_eq!(state.refreshed, 1, "what was refused once is not tried again");
        state.revoked = false;
    }
    user.log_in(&authority).exits(0);
    let again = ask(9, "tools/call", call());
    assert_eq!(again["result"]["content"][0]["text"], "behind the login", "{again}");
    assert_eq!(authority.state().registered, 1, "the registration was used again");
    drop(to);
    assert_eq!(bridge.wait().unwrap().code(), Some(0));
}

#[test]
fn a_broken_file_of_tokens_is_told_and_put_aside() {
    for broken in ["", "no JSON", "{\"version\":1}", "\u{0}\u{1}"] {
        let (authority, user) = (Authority::start(), User::new("broken"));
        user.put_tokens(broken);
        let run = user.run("logins").exits(2);
        assert!(run.err.contains("logins.json is broken; remove it"), "{}", run.err);
        let run = user.run(&format!("list {}", authority.url)).exits(4);
        assert!(run.err.contains("cannot be used") && run.err.contains("is broken"), "{}", run.err);
        let run = user.run(&format!("logout {}", authority.url)).exits(2);
        assert!(run.err.contains("is broken"), "{}", run.err);
        // A new login needs no help.
        user.log_in(&authority).exits(0);
        user.run(&format!("list {}", authority.url)).exits(0);
        let aside = user.folder.join("taut/logins.json.broken");
        assert_eq!(std::fs::read_to_string(aside).unwrap(), broken);
    }
}

/// Another user's file, and one that others can read: its tokens may be anybody's.
#[test]
// About Unix itself: owners and modes of files.
#[cfg(unix)]
fn a_file_of_tokens_that_is_not_ours_is_not_used() {
    let (authority, user) = (Authority::start(), User::new("not-ours"));
    user.log_in(&authority).exits(0);
    let tokens = user.tokens();
    let tell = |words: &str| {
        for line in ["logins".to_owned(), format!("logout {}", authority.url)] {
            let run = user.run(&line).exits(2);
            assert!(run.err.contains(words), "{line}: {}", run.err);
        }
        let run = user.run(&format!("list {}", authority.url)).exits(4);
        assert!(run.err.contains("cannot be used") && run.err.contains(words), "{}", run.err);
        // Nobody is asked to log in for nothing.
        let run = user.run(&format!("login {}", authority.url)).exits(7);
        assert!(run.err.contains(words) && !run.err.contains("/authorize?"), "{}", run.err);
    };
    std::fs::set_permissions(&tokens, std::fs::Permissions::from_mode(0o640)).unwrap();
    tell("others can read the tokens in it");

    if rustix::process::geteuid().is_root() {
        std::fs::set_permissions(&tokens, std::fs::Permissions::from_mode(0o600)).unwrap();
        std::os::unix::fs::chown(&tokens, Some(65534), None).unwrap();
    } else {
        // A file of root's, where ours should be.
        std::fs::remove_file(&tokens).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", &tokens).unwrap();
    }
    tell("it belongs to another user");
    assert_eq!(authority.state().given, 1);
}

/// A folder and a file without the right to write: what is there is used, and a new login says that it cannot be
/// kept. Root may write everywhere, so as root it is another user who does this.
#[test]
// About Unix itself: owners and modes of files.
#[cfg(unix)]
fn a_file_of_tokens_that_cannot_be_written_is_told() {
    let (authority, user) = (Authority::start(), User::new("read-only"));
    let program = user.folder.join("taut-copy");
    let is_root = rustix::process::geteuid().is_root();
    // Copied by another process: a test that forks meanwhile would inherit a handle that writes to the copy, and a
    // file that somebody has open for writing cannot be started.
    let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_taut")).arg(&program).status().unwrap();
    assert!(copied.success());
    let command = |line: &str| {
        let usual = user.command(line);
        let mut command = Command::new(&program);
        command.args(usual.get_args()).env_clear().env("XDG_STATE_HOME", &user.folder);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).current_dir("/");
        if is_root {
            command.uid(65534).gid(65534);
        }
        command
    };
    let folder = user.folder.join("taut");
    std::fs::create_dir(&folder).unwrap();
    if is_root {
        std::os::unix::fs::chown(&folder, Some(65534), Some(65534)).unwrap();
    }
    let login = Prompted::start(command(&format!("login {}", authority.url)));
    browse(&authority.log_in(&login.address));
    login.end("").exits(0);
    let rights = |folder_mode: u32, file_mode: u32| {
        let set = |path: &Path, mode: u32| {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
        };
        set(&folder, folder_mode);
        set(&user.tokens(), file_mode);
    };
    rights(0o500, 0o400);
    let list = format!("list {}", authority.url);
    let listed: Run = command(&list).output().unwrap().into();
    listed.exits(0);

    // A refresh is used, although it cannot be kept.
    let before = std::fs::read_to_string(user.tokens()).unwrap();
    authority.state().expire();
    let listed: Run = command(&list).output().unwrap().into();
    listed.exits(0);
    assert_eq!(std::fs::read_to_string(user.tokens()).unwrap(), before);

    let login = Prompted::start(command(&format!("login {}", authority.url)));
    browse(&authority.log_in(&login.address));
    let run = login.end("").exits(7);
    assert!(run.err.contains("the tokens of a login cannot be kept"), "{}", run.err);
    assert!(run.err.contains("logins.json: Permission denied"), "{}", run.err);
    assert!(run.out.is_empty(), "{}", run.out);

    // Without even the lock, nobody is asked.
    rights(0o700, 0o400);
    std::fs::remove_file(folder.join("logins.json.lock")).unwrap();
    rights(0o500, 0o400);
    let run: Run = command(&format!("login {}", authority.url)).output().unwrap().into();
    let run = run.exits(7);
    assert!(
        run.err.contains("Permission denied") && !run.err.contains("/authorize?"),
        "{}",
        run.err
    );
    rights(0o700, 0o600);
}
