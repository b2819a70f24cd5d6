//! Every transcript, played over memory and, where it is about streams, against a process.

use std::path::Path;

use crate::fixture;
use crate::transcript::{Clock, Scene, parse, play};
use crate::wire::Wire;

pub(crate) fn scenes(file: &str) -> Vec<Scene> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts").join(file);
    parse(file, &std::fs::read_to_string(path).unwrap())
}

async fn played(file: &str) {
    let mut faults = Vec::new();
    for scene in scenes(file) {
        let wire = Wire::to(fixture::named(&scene.server));
        if let Err(fault) = play(&scene, wire, Clock::Virtual).await {
            faults.push(format!("{}: {fault}", scene.title));
        }
    }
    assert!(faults.is_empty(), "{file}:\n  {}", faults.join("\n  "));
}

/// ERR-06, ERR-09, ERR-10, ERR-11. Scenes are exact, so what stands in no file is not sent.
#[test]
fn err_10_no_transcript_has_a_code_that_means_nothing() {
    let ours = [-32700, -32600, -32601, -32602, -32603, -32022, -32021];
    // What a handler of the fixture chose.
    let theirs = [7];
    let mut seen = 0;
    for scene in FILES.iter().chain(ELSEWHERE).flat_map(|file| scenes(file)) {
        let (codes, legacy) = scene.codes();
        for code in codes {
            let known = ours.contains(&code) || theirs.contains(&code);
            assert!(known || (legacy && code == -32002), "{}: {code}", scene.title);
            seen += 1;
        }
    }
    assert!(seen > 50);
}

/// Played by `tests/asking`, on servers of its own.
const ELSEWHERE: &[&str] = &["asking.txt", "subscriptions.txt"];

macro_rules! transcripts {
    ($($name:ident)*) => {
        $(
            #[tokio::test(start_paused = true)]
            async fn $name() {
                played(concat!(stringify!($name), ".txt")).await;
            }
        )*

        #[test]
        fn no_transcript_is_forgotten() {
            let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts");
            let mut found: Vec<_> = std::fs::read_dir(dir)
                .unwrap()
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .collect();
            found.sort();
            let mut played = [FILES, ELSEWHERE].concat();
            played.sort_unstable();
            assert_eq!(found, played);
        }

        const FILES: &[&str] = &[$(concat!(stringify!($name), ".txt")),*];
    };
}

transcripts! {
    batches caching cancellation completion discover eras errors ids lifecycle logging meta paging
    progress prompts resources streams tools
}
