//! One row of the table: one client process with one server, what it says, and what is left of it.
//!
//! The client is a peer's, against `taut serve` or through `taut bridge` against another peer's server, or our
//! own (`drive.rs`), against a peer's server. All print the same lines and are judged in the same way.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};
use serde::Deserialize;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

use crate::Places;
use crate::feature::Feature;
use crate::orphans;

/// How long a whole client may take: every feature has a deadline of its own, well below.
const LONGEST: Duration = Duration::from_secs(240);

/// How long what was started may take to go away once its client has.
const FAREWELL: Duration = Duration::from_secs(10);

/// What is to be run.
#[derive(Clone)]
pub struct Plan {
    pub peer: String,
    pub version: String,
    pub direction: Direction,
    /// What the row is called besides the peer and the direction.
    pub mode: String,
    /// The client's `--mode`.
    pub opened: String,
    /// The revision that must be agreed on.
    pub agrees: String,
    pub folder: PathBuf,
    /// The client's program and arguments up to the two dashes.
    pub client: Vec<String>,
    pub server: Vec<String>,
    pub features: &'static [Feature],
}

/// What the peer is in a row.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Its server, with our client.
    Server,
    /// Its client, with `taut serve`.
    Client,
    /// `taut bridge`, between a client and a server of other peers.
    Bridge,
}

impl Direction {
    pub fn name(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Client => "client",
            Self::Bridge => "bridge",
        }
    }
}

/// What came of one feature.
#[derive(Clone, Debug)]
pub enum Cell {
    Passed,
    /// One of the two sides has no such thing.
    Absent(String),
    Failed(String),
    /// The revision has no such thing.
    NotInRevision,
}

/// What came of it all.
pub struct Row {
    pub plan: Plan,
    pub agreed: String,
    pub cells: BTreeMap<Feature, Cell>,
    pub took: Duration,
    pub log: PathBuf,
}

/// A line of a client.
#[derive(Deserialize)]
struct Line {
    agreed: Option<String>,
    feature: Option<String>,
    ok: Option<bool>,
    note: Option<String>,
    hold: Option<bool>,
    /// Who holds it, if it is not the client's first process.
    pid: Option<i32>,
}

impl Plan {
    pub fn name(&self) -> String {
        format!("{} {} {}", self.peer, self.direction.name(), self.mode)
    }

    fn file(&self) -> String {
        self.name().replace([' ', ':', '/'], "-")
    }
}

pub async fn run(places: &Places, plan: Plan) -> Row {
    let started = Instant::now();
    let log = places.logs().join(format!("{}.jsonl", plan.file()));
    clear(&log, plan.direction);
    let mark = format!("{}-{}", plan.file(), std::process::id());
    let mut row =
        Row { agreed: String::new(), cells: BTreeMap::new(), took: Duration::ZERO, log, plan };
    talk(&mut row, places, &mark).await;
    let left = orphans::wait(&mark, FAREWELL).await;
    worsen(&mut row.cells, Feature::InFlight, left);
    if row.cells.contains_key(&Feature::Kill) {
        let killed = kill_the_client(&row, places, &format!("{mark}-hold")).await;
        worsen(&mut row.cells, Feature::Kill, killed);
    }
    // What the far server must have been sent. A bridge's capture has both of its sides.
    let sent = match row.plan.direction {
        Direction::Server => None,
        Direction::Client => Some("\"from\":\"client\""),
        Direction::Bridge => Some("\"link\":\"server"),
    };
    if let Some(sent) = sent {
        let seen = said(&row.log);
        let from_client = |l: &str| l.contains(sent) && l.contains("\"from\":\"client\"");
        let cancelled = "\"method\":\"notifications/cancelled\"";
        if !seen.lines().any(|l| from_client(l) && l.contains(cancelled)) {
            worsen(&mut row.cells, Feature::Cancel, Some("the server never heard of it".into()));
        }
    }
    settle(&mut row);
    row.took = started.elapsed();
    row
}

/// Makes room for what is said. A bridge gets a folder, for one capture of each time that it is started.
fn clear(log: &Path, direction: Direction) {
    let _ = std::fs::remove_file(log);
    let _ = std::fs::remove_dir_all(log);
    if direction == Direction::Bridge {
        let _ = std::fs::create_dir_all(log);
    }
}

/// All that was said.
fn said(log: &Path) -> String {
    let files =
        std::fs::read_dir(log).map(|files| files.flatten().map(|file| file.path()).collect());
    let files: Vec<PathBuf> = files.unwrap_or_else(|_| vec![log.to_owned()]);
    files.iter().filter_map(|file| std::fs::read_to_string(file).ok()).collect()
}

/// Runs the client and takes down what it says.
async fn talk(row: &mut Row, places: &Places, mark: &str) {
    let mut child = match start(&row.plan, &row.log, places, mark, &[]) {
        Ok(child) => child,
        Err(error) => return fail_all(row, &error),
    };
    let listened = tokio::time::timeout(LONGEST, listen(row, &mut child)).await;
    if listened.is_err() {
        fail_all(row, &format!("the client had not ended after {} s", LONGEST.as_secs()));
    }
    end(&mut child).await;
}

async fn listen(row: &mut Row, child: &mut Child) {
    let Some(stdout) = child.stdout.take() else { return };
    let mut lines = BufReader::new(stdout).lines();
    while let Ok(Some(text)) = lines.next_line().await {
        let Ok(line) = serde_json::from_str::<Line>(&text) else { continue };
        if let Some(agreed) = line.agreed {
            row.agreed = agreed;
        }
        let Some(name) = line.feature else { continue };
        let Some(feature) = Feature::ALL.iter().find(|f| f.name() == name) else { continue };
        let note = line.note.unwrap_or_default();
        let cell = match line.ok {
            Some(true) => Cell::Passed,
            Some(false) => Cell::Failed(note),
            None => Cell::Absent(note),
        };
        row.cells.insert(*feature, cell);
    }
    let _ = child.wait().await;
}

/// Starts a client that holds a call open, kills it, and sees whether its server goes too.
async fn kill_the_client(row: &Row, places: &Places, mark: &str) -> Option<String> {
    let log = row.log.with_extension("hold.jsonl");
    clear(&log, row.plan.direction);
    let mut child = match start(&row.plan, &log, places, mark, &["--hold"]) {
        Ok(child) => child,
        Err(error) => return Some(error),
    };
    let holds = async {
        let mut lines = BufReader::new(child.stdout.take()?).lines();
        while let Ok(Some(text)) = lines.next_line().await {
            match serde_json::from_str::<Line>(&text) {
                Ok(line) if line.hold == Some(true) => return Some(line),
                _ => {}
            }
        }
        None
    };
    let holds = tokio::time::timeout(Duration::from_secs(60), holds).await.unwrap_or(None);
    // The client alone: whether the server notices is the question.
    let holder = holds.as_ref().and_then(|line| line.pid).and_then(Pid::from_raw);
    if let Some(holder) = holder {
        let _ = rustix::process::kill_process(holder, Signal::KILL);
    }
    let _ = child.start_kill();
    let _ = child.wait().await;
    let left = orphans::wait(mark, FAREWELL).await;
    if holds.is_some() { left } else { Some("the client with --hold never held a call".into()) }
}

fn start(
    plan: &Plan,
    log: &Path,
    places: &Places,
    mark: &str,
    extra: &[&str],
) -> Result<Child, String> {
    let said = std::fs::File::create(log.with_extension("stderr"));
    let said = said.map_err(|e| format!("{}: {e}", log.display()))?;
    let mut command = Command::new(&plan.client[0]);
    command.args(&plan.client[1..]).args(["--mode", &plan.opened]).args(extra);
    if plan.direction == Direction::Server {
        command.args(["--log", &log.to_string_lossy()]);
    }
    command.arg("--");
    if plan.direction != Direction::Server {
        // SDKs pass on only a few variables, so that the mark must be set on their far side.
        command.args(["env", &format!("{}={mark}", orphans::VARIABLE)]).arg(&places.taut);
    }
    match plan.direction {
        Direction::Server => {}
        Direction::Client => {
            command.args(["serve", "--page-size", "5", "--transcript"]).arg(log);
        }
        Direction::Bridge => {
            command.args(["bridge", "--record"]).arg(log);
        }
    }
    command.args(&plan.server);
    command.env(orphans::VARIABLE, mark).current_dir(&plan.folder);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(said);
    command.kill_on_drop(true).process_group(0);
    command.spawn().map_err(|e| format!("{}: {e}", plan.client[0]))
}

async fn end(child: &mut Child) {
    if let Some(pid) = child.id().and_then(|id| Pid::from_raw(id.cast_signed())) {
        let _ = rustix::process::kill_process_group(pid, Signal::KILL);
    }
    let _ = child.wait().await;
}

fn fail_all(row: &mut Row, why: &str) {
    for feature in row.plan.features {
        row.cells.entry(*feature).or_insert_with(|| Cell::Failed(why.to_owned()));
    }
}

/// What the driver saw counts more than what the client said.
fn worsen(cells: &mut BTreeMap<Feature, Cell>, feature: Feature, fault: Option<String>) {
    if let (Some(fault), Some(cell @ Cell::Passed)) = (fault, cells.get_mut(&feature)) {
        *cell = Cell::Failed(fault);
    }
}

/// Every feature gets a cell, and the wrong revision spoils the first.
fn settle(row: &mut Row) {
    for feature in row.plan.features {
        let silent = || Cell::Failed("the client said nothing about it".to_owned());
        let cell = row.cells.entry(*feature).or_insert_with(silent);
        if !feature.is_in(&row.plan.agrees) {
            *cell = Cell::NotInRevision;
        }
    }
    if row.agreed != row.plan.agrees {
        let fault = format!("agreed on {:?} instead of {:?}", row.agreed, row.plan.agrees);
        row.cells.insert(Feature::Connect, Cell::Failed(fault));
    }
}
