//! On a terminal: colours, what moves, what is cleaned, and Ctrl-C.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::process::Child;
use std::sync::{Arc, Mutex};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcsetwinsize};

use super::*;

/// A run of the command whose stdout and stderr are one terminal.
pub(super) struct Terminal {
    child: Child,
    seen: Arc<Mutex<Vec<u8>>>,
    /// Ends when nobody holds the terminal any more.
    reader: std::thread::JoinHandle<()>,
    keys: File,
    /// How much of what was seen has been waited for.
    read: usize,
}

impl Terminal {
    fn start(words: &[&str]) -> Self {
        Self::start_with(words, |_| ())
    }

    /// As [`start`](Self::start), with another environment.
    pub(super) fn start_with(words: &[&str], change: impl FnOnce(&mut Command)) -> Self {
        let mut command = taut(words);
        change(&mut command);
        Self::run(command)
    }

    /// As [`start`](Self::start), so many columns wide.
    pub(super) fn sized(columns: u16, words: &[&str], change: impl FnOnce(&mut Command)) -> Self {
        let mut command = taut(words);
        change(&mut command);
        Self::run_sized(columns, command)
    }

    /// Any program on a terminal of its own.
    pub(super) fn run(command: Command) -> Self {
        Self::run_sized(90, command)
    }

    pub(super) fn run_sized(columns: u16, mut command: Command) -> Self {
        let keys = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&keys).unwrap();
        unlockpt(&keys).unwrap();
        let size = Winsize { ws_row: 40, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&keys, size).unwrap();
        let name = ptsname(&keys, Vec::new()).unwrap().into_string().unwrap();
        let screen =
            || -> OwnedFd { File::options().read(true).write(true).open(&name).unwrap().into() };
        // A controlling terminal, so that Ctrl-C is what it is for people.
        let mut session = Command::new("setsid");
        session.arg("--ctty").arg("--wait").arg(command.get_program()).args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => session.env(name, value),
                None => session.env_remove(name),
            };
        }
        if let Some(folder) = command.get_current_dir() {
            session.current_dir(folder);
        }
        command = session;
        command.env("TERM", "xterm").stdin(screen()).stdout(screen()).stderr(screen());
        let child = command.spawn().unwrap();
        drop(command);
        let keys = File::from(keys);
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (into, mut from) = (seen.clone(), keys.try_clone().unwrap());
        let reader = std::thread::spawn(move || {
            let mut chunk = [0; 4096];
            // EIO: nobody holds the other end any more.
            while let Ok(count @ 1..) = from.read(&mut chunk) {
                into.lock().unwrap().extend_from_slice(&chunk[..count]);
            }
        });
        Self { child, seen, reader, keys, read: 0 }
    }

    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.seen.lock().unwrap()).into_owned()
    }

    /// Waits until this is shown, after what was waited for before. Colours do not count.
    #[track_caller]
    pub(super) fn shows(&mut self, part: &str) -> &mut Self {
        let began = Instant::now();
        loop {
            let plain = plain(&self.text());
            let new = &plain[self.read..];
            if let Some(at) = new.find(part) {
                self.read += at + part.len();
                return self;
            }
            assert!(began.elapsed() < DEADLINE, "{part:?} was never shown: {new:?}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Types a line.
    pub(super) fn types(&mut self, line: &str) -> &mut Self {
        self.press(format!("{line}\r").as_bytes());
        self
    }

    pub(super) fn resize(&mut self, columns: u16, rows: u16) {
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&self.keys, size).unwrap();
    }

    /// Whether keys are echoed and lines are whole, as in a terminal that nobody has taken over.
    pub(super) fn is_as_before(&self) -> bool {
        let modes = rustix::termios::tcgetattr(&self.keys).unwrap().local_modes;
        modes.contains(LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG)
    }

    pub(super) fn press(&mut self, keys: &[u8]) {
        self.keys.write_all(keys).unwrap();
    }

    /// Waits for the end; what was shown, and the exit code.
    pub(super) fn end(mut self) -> (String, Option<i32>) {
        let code = self.wait();
        (self.text(), code)
    }

    /// Waits for the end; the terminal is still there.
    pub(super) fn ended(mut self) -> Self {
        self.wait();
        self
    }

    fn wait(&mut self) -> Option<i32> {
        let began = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(began.elapsed() < DEADLINE, "it never ended: {:?}", self.text());
            std::thread::sleep(Duration::from_millis(5));
        };
        // What was written last may still be on its way. A server that was left alone may hold the terminal; then
        // it has to be still for a second.
        let mut last = (self.text().len(), Instant::now());
        eventually("the screen is still", || {
            let now = self.text().len();
            if now != last.0 {
                last = (now, Instant::now());
            }
            self.reader.is_finished() || last.1.elapsed() > Duration::from_secs(1)
        });
        status.code()
    }
}

/// A test that fails leaves nothing running.
impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Without what steers a terminal: colours, and moves of the cursor.
pub(super) fn plain(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("\x1b[") {
        out.push_str(&rest[..at]);
        let Some(end) = rest[at + 2..].find(|c: char| ('@'..='~').contains(&c)) else { return out };
        rest = &rest[at + 2 + end + 1..];
    }
    // The first half of what steers may stand at the end.
    out.push_str(rest.trim_end_matches('\x1b'));
    out
}

fn on_terminal(words: &[&str]) -> (String, Option<i32>) {
    Terminal::start(words).end()
}

#[test]
fn every_command_has_colours_on_a_terminal() {
    for line in ["smoke", "list", "doctor", "prompt hello"] {
        let mut words: Vec<&str> = line.split(' ').collect();
        words.extend(["--", "taut", "serve"]);
        let (text, code) = on_terminal(&words);
        assert_eq!(code, Some(0), "{line}: {text}");
        assert!(text.contains("\x1b["), "{line}: {text:?}");
    }
    let (text, code) = on_terminal(&["smoke"]);
    assert_eq!(code, Some(0));
    assert!(text.contains("\x1b[1m\x1b[32m✓ it works: "), "a green summary: {text:?}");
}

#[test]
fn lines_end_where_the_terminal_does() {
    let (text, _) = Terminal::sized(40, &["list", "--", "taut", "serve"], |_| ()).end();
    let plain = plain(&text);
    assert!(plain.contains('…'), "{plain}");
    let widest = plain.lines().map(|line| line.trim_end().chars().count()).max().unwrap();
    assert!(widest <= 40, "{widest}: {plain}");
}

/// What is drawn on one line and over, and what stands: nothing is wider than the screen, so that
/// nothing is left behind of what moves and no column is broken.
#[test]
fn nothing_is_wider_than_a_narrow_screen() {
    for (columns, line) in [
        (80, "bench --quick --only sequential --cores one --compare another-echo=cat"),
        (40, "bench --quick --only sequential --cores one"),
        (40, "list"),
        (40, "smoke"),
        (40, "doctor"),
        (30, "call slow steps=10 step_ms=50"),
    ] {
        let mut words: Vec<&str> = line.split(' ').collect();
        words.extend(["--", "taut", "serve"]);
        let (text, code) = Terminal::sized(columns, &words, |_| ()).end();
        assert_eq!(code, Some(0), "{line}: {text}");
        for line in plain(&text).split(['\r', '\n']) {
            // Sentences are broken by the terminal, wherever they end; figures and times are not.
            let sentence = [
                "taut 0",
                "this taut is not",
                "✓ it works",
                "✓ every",
                "×:",
                "too narrow",
                "another-echo:",
            ];
            let column = !sentence.iter().any(|start| line.starts_with(start));
            let wide = line.chars().count();
            assert!(!column || wide <= usize::from(columns), "{wide} of {columns}: {line:?}");
        }
    }
    let (text, _) = Terminal::sized(40, &["list", "--", "taut", "serve"], |_| ()).end();
    assert!(plain(&text).contains("\n      Add two"), "a line of its own: {text}");
}

/// SEC-05
#[test]
fn what_a_server_says_cannot_steer_the_terminal() {
    let args = r#"{"text":"\u001b[2J\u202eab\u200b"}"#;
    let (text, code) = on_terminal(&["call", "echo", "--args", args, "--", "taut", "serve"]);
    assert_eq!(code, Some(0));
    assert!(text.contains("\\u{1b}[2J\\u{202e}ab\\u{200b}"), "{text:?}");
    assert!(!text.contains("\x1b[2J"), "{text:?}");
    let (text, _) = on_terminal(&["call", "echo", "--args", args, "--json", "--", "taut", "serve"]);
    assert!(text.contains(r"\u001b[2J\u202eab\u200b"), "{text:?}");
    assert!(!text.contains('\u{202e}'), "{text:?}");
}

#[test]
fn bytes_are_named_with_type_and_size() {
    let (text, _) = on_terminal(&["read", "demo://dot.png", "--", "taut", "serve"]);
    assert!(text.contains("[image/png, 85 bytes]"), "{text:?}");
}

#[test]
fn progress_is_a_bar_that_is_wiped_away() {
    let words = ["call", "slow", "steps=10", "step_ms=100", "--", "taut", "serve"];
    let (text, code) = on_terminal(&words);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains('█') && text.contains(" of 10"), "{text:?}");
    assert!(text.contains("\r\x1b[Kdone after 10 steps\r\n"), "{text:?}");
    assert!(text.ends_with("\r\x1b[K"), "the last line is clean: {text:?}");
}

#[test]
fn ctrl_c_withdraws_the_call_and_ends_the_server() {
    let mark = format!("ctrl-c-{}", std::process::id());
    let role = format!("2025-11-25 log-stdin {mark}");
    let mut words = vec!["call", "never", "--args", "{}", "-v", "--"];
    let server = server(&role);
    words.extend(server.iter().map(String::as_str));
    let mut terminal = Terminal::start(&words);
    eventually("the call is on its way", || terminal.text().contains("tools/call"));
    assert!(processes_with(&mark).len() >= 2, "the command and its server");
    terminal.press(b"\x03");
    let (text, code) = terminal.end();
    assert_eq!(code, Some(130), "{text}");
    assert!(text.contains("notifications/cancelled"), "{text}");
    assert!(text.contains("interrupted\r\n"), "{text}");
    eventually("nothing is left", || processes_with(&mark).is_empty());
}

#[test]
fn ctrl_c_closes_stdin_before_anything_harder() {
    let cases: [(&str, &[&str], &str); 4] = [
        ("2025-11-25 log-stdin", &["smoke", "--call", "never"], "tools/call"),
        ("2025-11-25 log-stdin", &["doctor", "--call", "never"], "tools/call"),
        // While it still opens.
        ("2025-11-25 log-stdin swallow-probe", &["smoke"], "server/discover"),
        ("2025-11-25 log-stdin swallow-probe", &["doctor"], "server/discover"),
    ];
    for (at, (role, command, seen)) in cases.into_iter().enumerate() {
        let mark = format!("polite-{at}-{}", std::process::id());
        let server = server(&format!("{role} {mark}"));
        let mut words = command.to_vec();
        words.extend(["-v", "--"]);
        words.extend(server.iter().map(String::as_str));
        // While it opens it has a quarter of a second. A busy machine may be slow once, but not each time.
        let tries = if seen == "tools/call" { 1 } else { 5 };
        let polite = (0..tries).any(|_| {
            let mut terminal = Terminal::start(&words);
            eventually("it is asked", || terminal.text().contains(seen));
            terminal.press(b"\x03");
            let (text, code) = terminal.end();
            assert_eq!(code, Some(130), "{text}");
            eventually("nothing is left", || processes_with(&mark).is_empty());
            text.contains("got the end")
        });
        assert!(polite, "{role}");
    }
}

#[test]
fn a_second_ctrl_c_does_not_wait_for_the_server() {
    let mark = format!("twice-{}", std::process::id());
    let role = format!("2025-11-25 ignore-eof ignore-term log-stdin {mark}");
    let mut words = vec!["call", "never", "--args", "{}", "-v", "--"];
    let server = server(&role);
    words.extend(server.iter().map(String::as_str));
    let mut terminal = Terminal::start(&words);
    eventually("the call is on its way", || terminal.text().contains("tools/call"));
    terminal.press(b"\x03");
    eventually("it says so", || terminal.text().contains("once more kills it"));
    let began = Instant::now();
    terminal.press(b"\x03");
    let (text, code) = terminal.end();
    assert_eq!(code, Some(130), "{text}");
    assert!(began.elapsed() < Duration::from_millis(3_900), "the grace of 4 s is not used up");
    eventually("nothing is left", || processes_with(&mark).is_empty());
}

#[test]
fn ctrl_c_while_a_server_starts_leaves_nothing() {
    for command in ["list", "smoke", "doctor"] {
        let mark = format!("{}7{}", 100_000, std::process::id());
        let mut terminal = Terminal::start(&[command, "--", "sleep", &mark]);
        // Itself, and not those that carry it in their own command line.
        let process = format!("^sleep\0{mark}");
        eventually("it runs", || !processes_with(&process).is_empty());
        // The signal handler is there before the child is.
        terminal.press(b"\x03");
        let (text, code) = terminal.end();
        assert_eq!(code, Some(130), "{command}: {text}");
        eventually("nothing is left", || processes_with(&process).is_empty());
    }
}
