//! How every Rust peer's client tells what it tried.

use std::collections::BTreeSet;
use std::fmt::{Debug, Display};
use std::time::Duration;

use serde_json::{Value, json};

pub const ORDER: &str = "one large coffee, with milk, for Ada";
pub const PROMPT: &str = "Capital of Portugal?";
pub const ANSWER: &str = "Lisbon";
pub const ROOT: &str = "file:///interop/project";
pub const UNICODE: &str =
    "π ☕ 日本語 👩\u{200d}👩\u{200d}👧 e\u{301} \u{2028} \u{2029} \u{85} \u{0} \"\\ \t\r\n end";

/// Why a feature did not work.
#[derive(Debug)]
pub enum Failed {
    /// The SDK does not have it.
    Missing(&'static str),
    Because(String),
}

impl<E: Display> From<E> for Failed {
    fn from(error: E) -> Self {
        Self::Because(error.to_string())
    }
}

pub type Outcome = Result<(), Failed>;

pub struct Options {
    pub mode: String,
    pub hold: bool,
    only: Option<String>,
    pub server: Vec<String>,
}

pub fn options() -> Options {
    let mut options =
        Options { mode: "default".into(), hold: false, only: None, server: Vec::new() };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        match word.as_str() {
            "--mode" => options.mode = words.next().expect("a mode"),
            "--only" => options.only = words.next(),
            "--hold" => options.hold = true,
            "--" => options.server = words.by_ref().collect(),
            other => panic!("there is no option {other}"),
        }
    }
    options
}

pub fn say(line: &Value) {
    println!("{line}");
}

pub fn agreed(revision: &str) {
    let era = if revision >= "2026-07-28" { "modern" } else { "legacy" };
    say(&json!({ "agreed": revision, "era": era }));
}

impl Options {
    /// Try one feature within its deadline.
    pub async fn run(&self, name: &str, feature: impl Future<Output = Outcome>) {
        if self.only.as_ref().is_some_and(|only| !only.split(',').any(|one| one == name)) {
            return;
        }
        let (ok, note) = match tokio::time::timeout(Duration::from_secs(45), feature).await {
            Ok(Ok(())) => (Value::Bool(true), String::new()),
            Ok(Err(Failed::Missing(what))) => (Value::Null, what.to_owned()),
            Ok(Err(Failed::Because(why))) => (Value::Bool(false), why.chars().take(400).collect()),
            Err(_) => (Value::Bool(false), "nothing within 45 s".to_owned()),
        };
        say(&json!({ "feature": name, "ok": ok, "note": note }));
    }
}

/// `what` is told unless it is true.
pub fn check(true_: bool, what: impl Debug) -> Outcome {
    if true_ { Ok(()) } else { Err(Failed::Because(format!("{what:?}"))) }
}

/// Wait for a condition; the feature's deadline ends it.
pub async fn until(mut condition: impl FnMut() -> bool) {
    while !condition() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// The children of this process that live.
pub fn servers() -> BTreeSet<u32> {
    let me = std::process::id().to_string();
    let pids = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    pids.filter_map(|entry| {
        let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
        let stat = std::fs::read_to_string(entry.path().join("stat")).ok()?;
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
        (fields.next()? != "Z" && fields.next()? == me).then_some(pid)
    })
    .collect()
}

pub fn since(before: &BTreeSet<u32>) -> BTreeSet<u32> {
    servers().difference(before).copied().collect()
}

pub fn kill(pids: &BTreeSet<u32>) {
    for pid in pids {
        let _ = std::process::Command::new("kill").args(["-9", &pid.to_string()]).status();
    }
}

pub async fn gone(pids: &BTreeSet<u32>) {
    until(|| servers().is_disjoint(pids)).await;
}
