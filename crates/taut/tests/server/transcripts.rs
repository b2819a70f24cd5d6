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
            let mut played = vec![$(concat!(stringify!($name), ".txt")),*];
            played.sort_unstable();
            assert_eq!(found, played);
        }
    };
}

transcripts! {
    batches caching cancellation completion discover eras errors ids lifecycle logging meta paging
    progress prompts resources streams tools
}
