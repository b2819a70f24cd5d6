//! A host that keeps a number of calls under way, and says how many were answered.
//!
//! `load CALLS WINDOW TOOL ARGUMENTS COMMAND…` starts the command as its server and calls the tool until CALLS
//! calls have ended. A call ends with the answer that has its id; an answer to no open call is an error, so that none is
//! counted twice. It prints one line of JSON: how long it took, how many failed and with which words, and the memory of
//! the command at ten moments, in KiB.

use std::collections::{BTreeMap, HashSet};
use std::error::Error;
use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::time::Instant;

const META: &str = concat!(
    r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","#,
    r#""io.modelcontextprotocol/clientCapabilities":{},"#,
    r#""io.modelcontextprotocol/clientInfo":{"name":"load","version":"1.0"}}"#
);

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [calls, window, tool, arguments, program, rest @ ..] = words.as_slice() else {
        return Err("usage: load CALLS WINDOW TOOL ARGUMENTS COMMAND…".into());
    };
    let (calls, window): (u64, u64) = (calls.parse()?, window.parse()?);
    let mut child =
        Command::new(program).args(rest).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let (Some(mut to), Some(mut from)) = (child.stdin.take(), child.stdout.take()) else {
        return Err("the command has no pipes".into());
    };
    let request = |id: u64| {
        format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"tools/call\",\"params\":{{\"name\":\"{tool}\",\"arguments\":{arguments},{META}}}}}\n"
        )
    };
    // One call before the clock starts: the way to the server is open then.
    let mut lines = Lines { from: &mut from, bytes: Vec::new() };
    to.write_all(request(0).as_bytes())?;
    let mut failed: BTreeMap<String, u64> = BTreeMap::new();
    while lines.next()?.is_empty() {}
    let began = Instant::now();
    let (mut sent, mut ended) = (0, 0);
    let mut open = HashSet::new();
    let mut memory = Vec::new();
    while ended < calls {
        let mut requests = String::new();
        while sent < calls && sent - ended < window {
            sent += 1;
            open.insert(sent);
            requests += &request(sent);
        }
        to.write_all(requests.as_bytes())?;
        for answer in lines.next()? {
            let id = id(&answer).ok_or_else(|| format!("no answer to a call: {answer}"))?;
            if !open.remove(&id) {
                return Err(format!("an answer to no open call, or a second one: {id}").into());
            }
            ended += 1;
            if let Some(error) = answer.split_once(r#""message":""#).filter(|_| answer.contains(r#""error":{"#)) {
                *failed.entry(error.1.chars().take_while(|c| *c != '"').collect()).or_default() += 1;
            }
            if ended % (calls / 10).max(1) == 0 {
                memory.push(resident(child.id())?);
            }
        }
    }
    let took = began.elapsed().as_secs_f64();
    println!("{{\"seconds\":{took:.3},\"calls\":{ended},\"failed\":{failed:?},\"memory\":{memory:?}}}");
    drop(to);
    let status = child.wait()?;
    if status.success() { Ok(()) } else { Err(status.to_string().into()) }
}

/// The id of an answer, which is a number because that of the call is.
fn id(answer: &str) -> Option<u64> {
    let (_, rest) = answer.split_once(r#""id":"#)?;
    let end = rest.find(|letter: char| !letter.is_ascii_digit())?;
    rest[..end].parse().ok()
}

/// Whole lines that are answers.
struct Lines<'a, R> {
    from: &'a mut R,
    bytes: Vec<u8>,
}

impl<R: Read> Lines<'_, R> {
    /// What has come: at least one line of some kind.
    fn next(&mut self) -> Result<Vec<String>, Box<dyn Error>> {
        let mut chunk = vec![0; 1 << 16];
        loop {
            let n = self.from.read(&mut chunk)?;
            if n == 0 {
                return Err("the command has ended".into());
            }
            self.bytes.extend_from_slice(&chunk[..n]);
            if let Some(end) = self.bytes.iter().rposition(|byte| *byte == b'\n') {
                let rest = self.bytes.split_off(end + 1);
                let text = String::from_utf8(std::mem::replace(&mut self.bytes, rest))?;
                let answers = text.lines().filter(|line| line.contains(r#""id":"#) && !line.contains(r#""method":"#));
                return Ok(answers.map(str::to_owned).collect());
            }
        }
    }
}

/// The memory of a process in KiB.
fn resident(pid: u32) -> Result<u64, Box<dyn Error>> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS")?;
    Ok(line.split_whitespace().next().ok_or("no number")?.parse()?)
}
