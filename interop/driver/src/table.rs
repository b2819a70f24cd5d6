//! The table: what is shown, what is written to `RESULTS.md`, and what counts as a regression.

use std::fmt::Write as _;

use crate::Places;
use crate::feature::Feature;
use crate::peer::{Footnote, Peer};
use crate::row::{Cell, Direction, Row};

/// Says what came of a row as soon as it is known.
pub fn announce(row: &Row) {
    let passed = row.cells.values().filter(|cell| matches!(cell, Cell::Passed)).count();
    println!("{}: {}, {passed} passed, {:.1?}", row.plan.name(), row.agreed, row.took);
    for (feature, cell) in &row.cells {
        match cell {
            Cell::Failed(note) => println!("    {}: failed: {note}", feature.name()),
            Cell::Absent(note) => println!("    {}: not there: {note}", feature.name()),
            Cell::Passed | Cell::NotInRevision => {}
        }
    }
}

/// Judges all rows, shows the table, and writes it down if the run was whole.
pub fn conclude(
    places: &Places,
    peers: &[Peer],
    wanted: &[&Peer],
    rows: &[Row],
    whole: bool,
) -> Result<bool, String> {
    let mut faults: Vec<_> = rows.iter().flat_map(|row| faults(peers, row)).collect();
    faults.extend(idle(wanted, rows));
    let table = table(peers, wanted, rows);
    println!("\n{table}");
    if whole {
        let path = places.root.join("RESULTS.md");
        let text = page(&table);
        std::fs::write(&path, text).map_err(|e| format!("{}: {e}", path.display()))?;
    }
    for fault in &faults {
        println!("REGRESSION {fault}");
    }
    let cells: usize = rows.iter().map(|row| row.cells.len()).sum();
    println!("{} rows, {cells} cells, {} regressions", rows.len(), faults.len());
    Ok(faults.is_empty())
}

/// Every cell of a row that neither passed nor has a footnote, and every footnote that is no longer true.
pub fn faults(peers: &[Peer], row: &Row) -> Vec<String> {
    let mut faults = Vec::new();
    for (feature, cell) in &row.cells {
        let note = footnote(peers, row, *feature);
        let name = format!("{} {}", row.plan.name(), feature.name());
        let log = row.log.display();
        match (cell, note) {
            (Cell::Failed(why), None) => faults.push(format!("{name}: failed: {why} ({log})")),
            (Cell::Absent(why), None) => {
                faults.push(format!("{name}: not there, and no footnote: {why} ({log})"));
            }
            // A limit of one of two bridged peers may be one that the bridge cures.
            (Cell::Passed, Some((peer, n, note))) if !note.flaky && peer.name == row.plan.peer => {
                faults.push(format!("{name}: passes, footnote {} is stale", n + 1));
            }
            _ => {}
        }
    }
    faults
}

/// What is known not to work in a cell: the peer, the number of its footnote, and the footnote. A bridged row also
/// has those of its client and of its server.
fn footnote<'a>(
    peers: &'a [Peer],
    row: &Row,
    feature: Feature,
) -> Option<(&'a Peer, usize, &'a Footnote)> {
    let plan = &row.plan;
    let peer = peers.iter().find(|peer| peer.name == plan.peer)?;
    let of = |name: &str, direction, mode: &str| {
        let peer = peers.iter().find(|peer| peer.name == name)?;
        peer.footnote(direction, mode, feature).map(|(n, note)| (peer, n, note))
    };
    of(&peer.name, plan.direction.name(), &plan.mode).or_else(|| {
        let pair = peer.bridged.iter().find(|pair| pair.name() == plan.mode)?;
        let server = peers.iter().find(|peer| peer.name == pair.server)?.server.as_ref()?;
        let mut modes = server.modes.keys();
        of(&pair.client, Direction::Client.name(), &pair.mode)
            .or_else(|| modes.find_map(|mode| of(&pair.server, Direction::Server.name(), mode)))
    })
}

/// Footnotes that no row has use for: the mode or the direction they name is gone.
fn idle(peers: &[&Peer], rows: &[Row]) -> Vec<String> {
    let mut idle = Vec::new();
    for peer in peers {
        let of_peer = || rows.iter().filter(|row| row.plan.peer == peer.name);
        for n in 0..peer.footnotes.len() {
            let used = of_peer().any(|row| {
                let (direction, mode) = (row.plan.direction.name(), &row.plan.mode);
                let number = |feature: &Feature| peer.footnote(direction, mode, *feature);
                row.cells.keys().any(|feature| number(feature).is_some_and(|(m, _)| m == n))
            });
            if !used {
                idle.push(format!("{}: footnote {} belongs to no cell", peer.name, n + 1));
            }
        }
    }
    idle
}

fn table(peers: &[Peer], wanted: &[&Peer], rows: &[Row]) -> String {
    let mut out = String::from(
        "| peer | package | version | it is the | opened | era | agreed on | passed | not |\n\
         |---|---|---|---|---|---|---|---|---|\n",
    );
    let mut notes = String::new();
    for peer in wanted {
        for row in rows.iter().filter(|row| row.plan.peer == peer.name) {
            line(&mut out, peers, peer, row);
        }
        for (n, note) in peer.footnotes.iter().enumerate() {
            let mark = mark(peer, n);
            let link = format!("peers/{}/evidence/{}", peer.name, note.evidence);
            let _ = writeln!(notes, "- {mark} {} ([evidence]({link}))", note.text);
        }
    }
    if !notes.is_empty() {
        let _ = write!(out, "\n{notes}");
    }
    out
}

fn line(out: &mut String, peers: &[Peer], peer: &Peer, row: &Row) {
    let plan = &row.plan;
    let applies = row.cells.values().filter(|cell| !matches!(cell, Cell::NotInRevision)).count();
    let passed = row.cells.values().filter(|cell| matches!(cell, Cell::Passed)).count();
    let missing: Vec<_> = row
        .cells
        .iter()
        .filter(|(_, cell)| matches!(cell, Cell::Failed(_) | Cell::Absent(_)))
        .map(|(feature, _)| match footnote(peers, row, *feature) {
            Some((peer, n, _)) => format!("{} {}", feature.name(), mark(peer, n)),
            None => format!("**{}**", feature.name()),
        })
        .collect();
    let era = if row.agreed.as_str() >= "2026" { "modern" } else { "legacy" };
    let _ = writeln!(
        out,
        "| {} | {} | {} | {} | {} | {era} | {} | {passed} of {applies} | {} |",
        peer.title,
        peer.package,
        plan.version,
        plan.direction.name(),
        plan.mode,
        row.agreed,
        missing.join(", ")
    );
}

fn mark(peer: &Peer, n: usize) -> String {
    format!("[{} {}]", peer.name, n + 1)
}

fn page(table: &str) -> String {
    let mut out = String::from(
        "# Other people's clients and servers\n\n\
         Written by `interop/run`; do not edit. What did not pass is named with its footnote, which tells of\n\
         the peer's own limit and shows it in a transcript. \"auto\" means that our client finds out what\n\
         the server speaks. What a revision does not have is not counted.\n\n",
    );
    out.push_str(table);
    out.push_str("\n## What is tried\n\n| feature | |\n|---|---|\n");
    for feature in Feature::ALL {
        let _ = writeln!(out, "| {} | {} |", feature.name(), feature.about());
    }
    out
}
