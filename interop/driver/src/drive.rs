//! Our own client, driven through every feature against one server.
//!
//! Knows the command line and the lines that every client of a peer has too (`README.md`), and when a
//! fresh connection is needed. What is tried in each feature stands in `tried.rs`.

use std::time::Duration;

use serde_json::{Value, json};
use taut::wire::Framing;
use taut::{Client, Command, Revision};

use crate::feature::Feature;
use crate::heard::{self, Heard};
use crate::tried;

/// How long one feature may take.
const DEADLINE: Duration = Duration::from_secs(20);

/// How long a server may take to be there: some start a virtual machine first, on a busy one.
const START: Duration = Duration::from_secs(60);

/// Why a feature did not pass.
#[derive(Debug)]
pub enum Fault {
    /// The server does not offer it.
    Absent(String),
    Wrong(String),
}

impl From<taut::Error> for Fault {
    fn from(error: taut::Error) -> Self {
        match error {
            taut::Error::NotOffered { .. } => Self::Absent(error.to_string()),
            _ => Self::Wrong(error.to_string()),
        }
    }
}

/// What was typed.
pub struct Typed {
    mode: String,
    hold: bool,
    real: Option<Value>,
    server: Vec<String>,
}

fn typed(args: &[String]) -> Result<Typed, String> {
    let mut typed = Typed { mode: "auto".into(), hold: false, real: None, server: Vec::new() };
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or_else(|| format!("{arg} wants a value"));
        match arg.as_str() {
            "--mode" => typed.mode = value()?.clone(),
            "--hold" => typed.hold = true,
            "--log" => heard::transcript(value()?)?,
            "--real" => {
                typed.real = Some(serde_json::from_str(value()?).map_err(|e| e.to_string())?);
            }
            "--" => typed.server = args.by_ref().cloned().collect(),
            _ => return Err(format!("{arg:?} is not understood")),
        }
    }
    if typed.server.is_empty() { Err("no server after --".into()) } else { Ok(typed) }
}

/// A connection, and what came by it besides answers.
pub struct Open {
    pub client: Client,
    pub heard: Heard,
    framing: Option<Framing>,
}

impl Typed {
    /// Opens a connection as the mode says.
    pub async fn open(&self) -> Result<Open, taut::Error> {
        let heard = Heard::default();
        let (framing, opening) = match self.mode.split_once(':') {
            Some(("headers", rest)) => (Some(Framing::Headers), rest),
            Some(("lines", rest)) => (Some(Framing::Lines), rest),
            _ => (None, self.mode.as_str()),
        };
        let mut builder = heard::host(&heard).start_timeout(START);
        if let Some(framing) = framing {
            builder = builder.framing(framing);
        }
        if let Some(revision) = Revision::parse(opening) {
            builder = builder.revision(revision);
        }
        let mut command = Command::new(&self.server[0]).args(&self.server[1..]).inherit_env();
        if let Ok(mark) = std::env::var(crate::orphans::VARIABLE) {
            command = command.env(crate::orphans::VARIABLE, mark);
        }
        let client = builder.spawn(command).await?;
        Ok(Open { client, heard, framing })
    }
}

pub async fn main(args: &[String]) -> Result<(), String> {
    let typed = typed(args)?;
    let open = match typed.open().await {
        Ok(open) => open,
        Err(error) => {
            report(Feature::Connect, &Err(error.into()));
            return Ok(());
        }
    };
    if typed.hold {
        let call = open.client.call("slow", json!({ "steps": 600, "step_ms": 100 }));
        tokio::spawn(async move { call.without_timeout().await.map(|_| ()) });
        tokio::time::sleep(Duration::from_millis(300)).await;
        println!("{}", json!({ "hold": true }));
        std::future::pending::<()>().await;
    }
    let revision = open.client.revision();
    let era = if revision.is_modern() { "modern" } else { "legacy" };
    println!("{}", json!({ "agreed": revision.as_str(), "era": era }));
    let framing = open.client.framing();
    let connected = match open.framing {
        Some(wanted) if framing != Some(wanted) => {
            Err(Fault::Wrong(format!("framed as {framing:?}")))
        }
        _ => Ok(()),
    };
    report(Feature::Connect, &connected);
    match typed.real.clone() {
        Some(real) => every_real(&typed, &real, open).await,
        None => every(&typed, open).await,
    }
    Ok(())
}

/// All features, one after the other, on one connection as long as it lives.
async fn every(typed: &Typed, mut open: Open) {
    for feature in &Feature::ALL[1..] {
        if !feature.is_in(open.client.revision().as_str()) {
            continue;
        }
        let outcome = match feature {
            Feature::InFlight | Feature::Kill => within(tried::ending(*feature, typed)).await,
            _ => within(tried::feature(*feature, &open)).await,
        };
        report(*feature, &outcome);
        let over = tokio::time::timeout(Duration::ZERO, open.client.ended()).await.is_ok();
        if over {
            match typed.open().await {
                Ok(fresh) => open = fresh,
                Err(_) => return,
            }
        }
    }
    let _ = open.client.close().await;
}

async fn every_real(typed: &Typed, real: &Value, open: Open) {
    report(Feature::List, &within(tried::real_list(&open, real)).await);
    report(Feature::Call, &within(tried::real_call(&open, real)).await);
    report(Feature::InFlight, &within(tried::real_close(typed, real)).await);
    let _ = open.client.close().await;
}

async fn within(tried: impl Future<Output = Result<(), Fault>>) -> Result<(), Fault> {
    let late = |_| Err(Fault::Wrong(format!("nothing after {} s", DEADLINE.as_secs())));
    tokio::time::timeout(DEADLINE, tried).await.unwrap_or_else(late)
}

fn report(feature: Feature, outcome: &Result<(), Fault>) {
    let (ok, note) = match outcome {
        Ok(()) => (Some(true), ""),
        Err(Fault::Absent(note)) => (None, note.as_str()),
        Err(Fault::Wrong(note)) => (Some(false), note.as_str()),
    };
    println!("{}", json!({ "feature": feature.name(), "ok": ok, "note": note }));
}
