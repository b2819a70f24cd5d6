//! Installs and builds peers: downloads are tried three times, and nothing is ever skipped for failing.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;

use crate::Places;
use crate::peer::Peer;

/// Downloads fail now and then; more often than this it is not the network.
const TRIES: u32 = 3;

/// How long one command may take: a compiler on a busy machine, or a slow registry.
const LONGEST: Duration = Duration::from_secs(900);

/// Makes a peer ready to run.
pub async fn prepare(places: &Places, peer: &Peer) -> Result<(), String> {
    let cache = places.cache(&peer.name);
    std::fs::create_dir_all(&cache).map_err(|e| format!("{}: {e}", cache.display()))?;
    let stamp = cache.join(".installed");
    let wanted = fingerprint(peer);
    if std::fs::read_to_string(&stamp).unwrap_or_default() != wanted {
        for command in &peer.install {
            run(peer, &cache, command, TRIES).await?;
        }
        std::fs::write(&stamp, wanted).map_err(|e| format!("{}: {e}", stamp.display()))?;
    }
    for command in &peer.build {
        run(peer, &cache, command, TRIES).await?;
    }
    Ok(())
}

/// What an installation depends on.
fn fingerprint(peer: &Peer) -> String {
    let mut hasher = DefaultHasher::new();
    peer.install.hash(&mut hasher);
    peer.version.hash(&mut hasher);
    for file in &peer.stamp {
        std::fs::read(peer.folder.join(file)).unwrap_or_default().hash(&mut hasher);
    }
    format!("{:016x}\n", hasher.finish())
}

async fn run(peer: &Peer, cache: &Path, command: &str, tries: u32) -> Result<(), String> {
    let mut failed = String::new();
    for attempt in 1..=tries {
        println!("[{}] $ {command}", peer.name);
        let mut shell = Command::new("bash");
        shell.args(["-euo", "pipefail", "-c", command]).current_dir(&peer.folder);
        shell.env("CACHE", cache).stdin(Stdio::null()).kill_on_drop(true);
        let out = tokio::time::timeout(LONGEST, shell.output()).await;
        failed = match out {
            Ok(Ok(out)) if out.status.success() => return Ok(()),
            Ok(Ok(out)) => {
                let said = [out.stdout, out.stderr].concat();
                let said = String::from_utf8_lossy(&said);
                let lines: Vec<_> = said.lines().collect();
                let tail = lines[lines.len().saturating_sub(30)..].join("\n");
                format!("{}: {}\n{tail}", command, out.status)
            }
            Ok(Err(error)) => format!("{command}: {error}"),
            Err(_) => format!("{command}: not done after {} s", LONGEST.as_secs()),
        };
        println!("[{}] attempt {attempt} of {tries} failed: {failed}", peer.name);
        if attempt < tries {
            tokio::time::sleep(Duration::from_secs(u64::from(attempt) * 3)).await;
        }
    }
    Err(format!("{}: {failed}", peer.name))
}
