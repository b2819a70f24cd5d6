//! The example of a host, run as people run it: something is typed, something is read.

use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};
use std::sync::mpsc;

use rustix::process::{Pid, Signal, kill_process};

use super::DEADLINE;
use super::roles::Place;

/// A script that starts the demo server, because the example is given programs.
fn script(place: &Place, name: &str) {
    let path = place.0.join(name);
    let binary = std::env::current_exe().unwrap();
    let text = format!(
        "#!/bin/sh\nexport TAUT_ROLE=demo TAUT_PLACE='{}'\nexec 3>&1 >/dev/null\n\
         exec '{}' --ignored --exact role --nocapture\n",
        place.0.display(),
        binary.display()
    );
    super::system::write_script(&path, &text);
}

/// A host that is typed to.
struct Terminal {
    child: std::process::Child,
    said: mpsc::Receiver<Vec<u8>>,
    /// What it said and nobody has looked for yet.
    unread: String,
}

impl Terminal {
    fn start(place: &Place) -> Self {
        let command = place.server("example");
        let mut child = Command::new(command.program())
            .args(command.arguments())
            .env("TAUT_ROLE", "example")
            .env("TAUT_PLACE", &place.0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdout = child.stdout.take().unwrap();
        let (tell, said) = mpsc::channel();
        std::thread::spawn(move || {
            let mut piece = [0; 4096];
            while let Ok(1..) = stdout.read(&mut piece).inspect(|n| {
                let _ = tell.send(piece[..*n].to_vec());
            }) {}
        });
        Self { child, said, unread: String::new() }
    }

    fn type_in(&mut self, line: &str) {
        let stdin = self.child.stdin.as_mut().unwrap();
        stdin.write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    /// Reads up to one of these words: which.
    fn until<'a>(&mut self, words: &[&'a str]) -> &'a str {
        loop {
            let found = words.iter().filter_map(|word| Some((self.unread.find(word)?, *word)));
            if let Some((at, word)) = found.min() {
                self.unread.drain(..at + word.len());
                return word;
            }
            let piece = self.said.recv_timeout(DEADLINE);
            let piece = piece.unwrap_or_else(|_| panic!("never said {words:?}: {}", self.unread));
            self.unread.push_str(&String::from_utf8_lossy(&piece));
        }
    }
}

#[test]
fn the_example_starts_two_servers_fills_in_a_form_and_survives_a_crash() {
    let place = Place::new("example");
    script(&place, "one");
    script(&place, "two");
    let mut host = Terminal::start(&place);
    host.type_in(r#"two echo {"text":"hello"}"#);
    host.until(&["hello"]);
    host.type_in("one ask {}");
    host.until(&["What would you like?"]);
    for _ in 0..3 {
        match host.until(&["size: ", "milk: ", "name: "]) {
            "size: " => host.type_in("large"),
            "milk: " => host.type_in("false"),
            _ => host.type_in("Ada"),
        }
    }
    host.until(&["That is one large coffee, black."]);
    host.type_in("true");
    host.until(&["one large coffee, black, for Ada"]);
    for pid in place.pids() {
        kill_process(Pid::from_raw(pid.try_into().unwrap()).unwrap(), Signal::KILL).unwrap();
    }
    host.until(&["lost: the server was killed"]);
    host.until(&["ready"]);
    host.until(&["ready"]);
    host.type_in(r#"one echo {"text":"back again"}"#);
    host.until(&["back again"]);
    drop(host.child.stdin.take());
    assert!(host.child.wait().unwrap().success());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(place.assert_empty());
}
