//! Other people's clients and servers, both ways: `interop/run` builds this and lets it loose.
//!
//! `prepare` installs and builds peers, `run` does all their pairings and judges them, `drive` is our
//! own client, as a process of its own, with the command line that every peer's client has.

mod drive;
mod feature;
mod heard;
mod orphans;
mod peer;
mod prepare;
mod row;
mod table;
mod tried;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use feature::Feature;
use peer::Peer;
use row::{Direction, Plan, Row};
use tokio::sync::Semaphore;

/// Peers that are installed and built at a time: as many as a small machine has cores.
const PREPARED_AT_ONCE: usize = 2;

/// Rows at a time: a client and its server wait for most of theirs.
const ROWS_AT_ONCE: usize = 3;

/// Rows that get a second chance, alone: a deadline on a busy machine must not fail a run, and a fault
/// that is one shows again. More than these and it is no busy machine.
const AGAIN: usize = 8;

/// Where things are.
pub struct Places {
    /// The folder `interop`.
    pub root: PathBuf,
    pub taut: PathBuf,
    pub driver: PathBuf,
}

impl Places {
    pub fn cache(&self, peer: &str) -> PathBuf {
        self.root.join(".cache").join(peer)
    }

    pub fn logs(&self) -> PathBuf {
        self.root.join(".cache").join("logs")
    }

    fn fill(&self, peer: &Peer, command: &[String]) -> Vec<String> {
        let fill = |word: &String| {
            word.replace("{cache}", &self.cache(&peer.name).to_string_lossy())
                .replace("{peer}", &peer.folder.to_string_lossy())
                .replace("{taut}", &self.taut.to_string_lossy())
                .replace("{driver}", &self.driver.to_string_lossy())
        };
        command.iter().map(fill).collect()
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let done = match args.split_first() {
        Some((verb, rest)) if verb == "drive" => drive::main(rest).await.map(|()| true),
        Some((verb, rest)) if verb == "prepare" || verb == "run" => all(verb, rest).await,
        _ => Err("usage: interop prepare|run ROOT TAUT [PEER…], interop drive … -- SERVER".into()),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("interop: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn all(verb: &str, args: &[String]) -> Result<bool, String> {
    let [root, taut, names @ ..] = args else { return Err("ROOT and TAUT are missing".into()) };
    let own = std::env::current_exe().map_err(|e| e.to_string())?;
    let places = Arc::new(Places { root: root.into(), taut: taut.into(), driver: own });
    std::fs::create_dir_all(places.logs()).map_err(|e| e.to_string())?;
    let peers = peers(&places.root.join("peers"), names)?;
    if verb == "prepare" {
        return prepare_all(&places, peers).await.map(|()| true);
    }
    let wanted: Vec<_> = peers.iter().filter(|peer| is_wanted(peer, names)).collect();
    let mut plans = Vec::new();
    for peer in &wanted {
        plans.extend(self::plans(&places, peer, &peers)?);
    }
    let rows = run_all(&places, &peers, plans).await?;
    table::conclude(&places, &peers, &wanted, &rows, names.is_empty())
}

fn is_wanted(peer: &Peer, names: &[String]) -> bool {
    names.is_empty() || names.contains(&peer.name)
}

/// The peers that were named, or all, and those whose clients and servers they use.
fn peers(folder: &Path, names: &[String]) -> Result<Vec<Peer>, String> {
    let mut found = Vec::new();
    let entries = std::fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    for entry in entries.flatten().filter(|entry| entry.path().join("peer.toml").exists()) {
        found.push(Peer::read(&entry.path())?);
    }
    if let Some(name) = names.iter().find(|name| !found.iter().any(|peer| peer.name == **name)) {
        return Err(format!("there is no peer {name:?} in {}", folder.display()));
    }
    let wanted = found.iter().filter(|peer| is_wanted(peer, names));
    let used: Vec<String> = wanted
        .flat_map(|peer| &peer.bridged)
        .flat_map(|pair| [pair.client.clone(), pair.server.clone()])
        .collect();
    found.retain(|peer| is_wanted(peer, names) || used.contains(&peer.name));
    // Our own two ends first, the rest by name.
    found.sort_by_key(|peer| (peer.name != "taut", peer.name.clone()));
    Ok(found)
}

async fn prepare_all(places: &Arc<Places>, peers: Vec<Peer>) -> Result<(), String> {
    let slots = Arc::new(Semaphore::new(PREPARED_AT_ONCE));
    let mut tasks = tokio::task::JoinSet::new();
    for peer in peers {
        let (places, slots) = (places.clone(), slots.clone());
        tasks.spawn(async move {
            let _slot = slots.acquire().await;
            prepare::prepare(&places, &peer).await
        });
    }
    let mut faults = Vec::new();
    while let Some(done) = tasks.join_next().await {
        faults.extend(done.map_err(|e| e.to_string()).and_then(|done| done).err());
    }
    if faults.is_empty() { Ok(()) } else { Err(faults.join("\n")) }
}

async fn run_all(
    places: &Arc<Places>,
    peers: &[Peer],
    plans: Vec<Plan>,
) -> Result<Vec<Row>, String> {
    let slots = Arc::new(Semaphore::new(ROWS_AT_ONCE));
    let mut tasks = Vec::new();
    for plan in plans {
        let (places, slots) = (places.clone(), slots.clone());
        tasks.push(tokio::spawn(async move {
            let _slot = slots.acquire().await;
            let row = row::run(&places, plan).await;
            table::announce(&row);
            row
        }));
    }
    let mut rows = Vec::new();
    for task in tasks {
        rows.push(task.await.map_err(|e| e.to_string())?);
    }
    let failed: Vec<_> =
        rows.iter_mut().filter(|row| !table::faults(peers, row).is_empty()).collect();
    if failed.len() <= AGAIN {
        for row in failed {
            println!("once more, alone: {}", row.plan.name());
            *row = row::run(places, row.plan.clone()).await;
            table::announce(row);
        }
    }
    Ok(rows)
}

/// What is to be run with this peer.
fn plans(places: &Places, peer: &Peer, peers: &[Peer]) -> Result<Vec<Plan>, String> {
    let driver = places.driver.to_string_lossy().into_owned();
    let plan = |direction, mode: &str, agrees: &str| Plan {
        peer: peer.name.clone(),
        version: peer.version.clone(),
        direction,
        mode: mode.to_owned(),
        opened: mode.to_owned(),
        agrees: agrees.to_owned(),
        folder: peer.folder.clone(),
        client: vec![driver.clone(), "drive".to_owned()],
        server: Vec::new(),
        features: Feature::ALL,
    };
    let mut plans = Vec::new();
    if let Some(side) = &peer.server {
        let server = places.fill(peer, &side.command);
        plans.extend(side.modes().into_iter().map(|(mode, agrees)| Plan {
            server: server.clone(),
            ..plan(Direction::Server, &mode, &agrees)
        }));
    }
    if let Some(side) = &peer.client {
        let client = places.fill(peer, &side.command);
        plans.extend(side.modes().into_iter().map(|(mode, agrees)| Plan {
            client: client.clone(),
            ..plan(Direction::Client, &mode, &agrees)
        }));
    }
    for real in &peer.real {
        let wanted = serde_json::json!({
            "tool": real.tool, "arguments": real.arguments, "expect": real.expect,
        });
        let client = [driver.clone(), "drive".to_owned(), "--real".to_owned(), wanted.to_string()];
        plans.push(Plan {
            version: real.version.clone(),
            client: places.fill(peer, &client),
            server: places.fill(peer, &real.command),
            features: &[Feature::Connect, Feature::List, Feature::Call, Feature::InFlight],
            ..plan(Direction::Server, &real.name, &real.agrees)
        });
    }
    for pair in &peer.bridged {
        let missing = |what: &str| format!("{}: {} has no {what}", peer.name, pair.name());
        let find = |name: &str| peers.iter().find(|peer| peer.name == name);
        let client = find(&pair.client).ok_or_else(|| missing("client's peer"))?;
        let server = find(&pair.server).ok_or_else(|| missing("server's peer"))?;
        let asks = client.client.as_ref().ok_or_else(|| missing("client"))?;
        let own = server.server.as_ref().map(|side| &side.command);
        let answers = pair.command.as_ref().or(own).ok_or_else(|| missing("server"))?;
        let mut words = pair.options.clone();
        words.push("--".to_owned());
        words.extend(places.fill(server, answers));
        plans.push(Plan {
            version: format!("{}, {}", client.version, server.version),
            opened: pair.mode.clone(),
            folder: server.folder.clone(),
            client: places.fill(client, &asks.command),
            server: words,
            ..plan(Direction::Bridge, &pair.name(), &pair.agrees)
        });
    }
    Ok(plans)
}
