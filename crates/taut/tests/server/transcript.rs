//! Transcripts: what is sent, what must come back, and why.
//!
//! A file holds scenes; each is a connection of its own to a server of `fixture.rs`.
//!
//! ```text
//! # Why, and which rules: STD-01. Free text anywhere.
//! == what this scene shows
//! == what another shows, on paged         the server `paged` instead of `full`
//! hello 2025-06-18                        opens a legacy session; the answer is checked
//! > {"jsonrpc":"2.0", …}                  sends a line; `@modern` stands for what `_meta` must say
//! >> \xef\xbb\xbf{}\r\n                   sends just these bytes
//! < {"jsonrpc":"2.0", …}                  the next line is like this (see `pattern.rs`)
//! <= {"jsonrpc":"2.0", …}                 the next line is this, byte for byte
//! ~                                       nothing more is written
//! ~ 300ms                                 for so long
//! |                                       closes the input
//! ```
//!
//! At the end of a scene the input is closed; nothing more may come, and the server's side has to
//! end because of that. Time is virtual, so that waiting costs nothing. Against a real process,
//! where it is not, `~` is proven by a ping that is answered next.

use std::time::Duration;

use serde_json::{Value, json};
use taut::Ending;

use crate::pattern::difference;
use crate::wire::Wire;

const MODERN: &str = "\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\",\
                      \"io.modelcontextprotocol/clientCapabilities\":{}";

/// How long silence is listened to unless a scene says.
const SILENCE: Duration = Duration::from_secs(60);

pub(crate) struct Scene {
    pub(crate) title: String,
    pub(crate) server: String,
    steps: Vec<(usize, Step)>,
}

enum Step {
    Hello(String),
    Send(Vec<u8>),
    Expect(Value),
    ExpectText(String),
    Silence(Duration),
    Close,
}

/// How time passes for a scene.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Clock {
    Virtual,
    #[cfg_attr(windows, allow(dead_code, reason = "its one user is about Unix itself"))]
    Real,
}

/// Reads a file; what is wrong with it is a panic that names the line.
pub(crate) fn parse(file: &str, text: &str) -> Vec<Scene> {
    let mut scenes: Vec<Scene> = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let number = at + 1;
        if line.starts_with('#') || line.trim().is_empty() {
            continue;
        }
        if let Some(title) = line.strip_prefix("== ") {
            let (title, server) = title.rsplit_once(", on ").unwrap_or((title, "full"));
            scenes.push(Scene { title: title.into(), server: server.into(), steps: Vec::new() });
            continue;
        }
        let step = step(line).unwrap_or_else(|why| panic!("{file}:{number}: {why}: {line}"));
        let scene = scenes.last_mut().unwrap_or_else(|| panic!("{file}:{number}: no scene yet"));
        scene.steps.push((number, step));
    }
    assert!(!scenes.is_empty(), "{file} has no scene");
    scenes
}

fn step(line: &str) -> Result<Step, String> {
    let (verb, rest) = line.split_once(' ').unwrap_or((line, ""));
    let rest = rest.replace("@modern", MODERN);
    Ok(match verb {
        "hello" => Step::Hello(rest),
        ">" => Step::Send(format!("{rest}\n").into_bytes()),
        ">>" => Step::Send(unescaped(&rest)?),
        "<" => Step::Expect(serde_json::from_str(&rest).map_err(|error| error.to_string())?),
        "<=" => Step::ExpectText(rest),
        "~" if rest.is_empty() => Step::Silence(SILENCE),
        "~" => {
            let millis = rest.strip_suffix("ms").and_then(|millis| millis.parse().ok());
            Step::Silence(Duration::from_millis(millis.ok_or("a time looks like 300ms")?))
        }
        "|" => Step::Close,
        _ => return Err("no such verb".to_owned()),
    })
}

fn unescaped(text: &str) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            bytes.extend(c.encode_utf8(&mut [0; 4]).bytes());
            continue;
        }
        match chars.next() {
            Some('n') => bytes.push(b'\n'),
            Some('r') => bytes.push(b'\r'),
            Some('\\') => bytes.push(b'\\'),
            Some('x') => {
                let digits: String = chars.by_ref().take(2).collect();
                bytes.push(u8::from_str_radix(&digits, 16).map_err(|error| error.to_string())?);
            }
            other => return Err(format!("no such escape: {other:?}")),
        }
    }
    Ok(bytes)
}

impl Scene {
    /// The codes of the errors that it expects, and whether it opens a legacy session.
    pub(crate) fn codes(&self) -> (Vec<i64>, bool) {
        let codes = self.steps.iter().filter_map(|(_, step)| match step {
            Step::Expect(message) => message["error"]["code"].as_i64(),
            _ => None,
        });
        (codes.collect(), self.steps.iter().any(|(_, step)| matches!(step, Step::Hello(_))))
    }
}

/// Plays a scene on a connection, to its end.
pub(crate) async fn play(scene: &Scene, mut wire: Wire, clock: Clock) -> Result<(), String> {
    for (line, step) in &scene.steps {
        let fault = match step {
            Step::Hello(revision) => {
                let agreed = &wire.shake_hands(revision).await["protocolVersion"];
                (agreed != revision).then(|| format!("agreed on {agreed}"))
            }
            Step::Send(bytes) => {
                wire.send_bytes(bytes).await;
                None
            }
            Step::Expect(wanted) => {
                let found = next(&mut wire, *line).await?;
                let found: Value = serde_json::from_str(&found)
                    .map_err(|error| format!("line {line}: {error}: {found}"))?;
                difference(wanted, &found).map(|how| format!("{how}\n    found {found}"))
            }
            Step::ExpectText(wanted) => {
                let found = next(&mut wire, *line).await?;
                (&found != wanted).then(|| format!("found {found}"))
            }
            Step::Silence(span) => silence(&mut wire, *span, clock).await,
            Step::Close => {
                wire.close_input();
                None
            }
        };
        if let Some(fault) = fault {
            return Err(format!("line {line}: {fault}"));
        }
    }
    let (rest, ending) = wire.finish().await;
    if let Some(first) = rest.first() {
        return Err(format!("at the end there is more: {first}"));
    }
    match ending {
        None | Some(Ending::Eof) => Ok(()),
        Some(other) => Err(format!("it ended otherwise: {other}")),
    }
}

async fn next(wire: &mut Wire, line: usize) -> Result<String, String> {
    wire.line().await.ok_or_else(|| format!("line {line}: the stream ended"))
}

async fn silence(wire: &mut Wire, span: Duration, clock: Clock) -> Option<String> {
    if clock == Clock::Virtual {
        let silent = wire.is_silent(span).await;
        return if silent { None } else { Some(format!("found {:?}", wire.line().await)) };
    }
    wire.send(json!({ "jsonrpc": "2.0", "id": "barrier", "method": "ping" })).await;
    let found = wire.next().await;
    (found["id"] != "barrier").then(|| format!("found {found}"))
}
