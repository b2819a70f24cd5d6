//! The transcripts about asking and subscriptions, played on the servers of this folder.

use std::path::Path;

use crate::fixture::named;
use crate::transcript::{Clock, parse, play};
use crate::wire::Wire;

async fn played(file: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts").join(file);
    let text = std::fs::read_to_string(path).unwrap();
    let mut faults = Vec::new();
    for scene in parse(file, &text) {
        let wire = Wire::to(named(&scene.server));
        if let Err(fault) = play(&scene, wire, Clock::Virtual).await {
            faults.push(format!("{}: {fault}", scene.title));
        }
    }
    assert!(faults.is_empty(), "{file}:\n  {}", faults.join("\n  "));
}

#[tokio::test(start_paused = true)]
async fn asking() {
    played("asking.txt").await;
}

#[tokio::test(start_paused = true)]
async fn subscriptions() {
    played("subscriptions.txt").await;
}
