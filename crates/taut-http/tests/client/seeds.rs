//! The fuzzer's check over its seeds, as an ordinary test: what was once found stays found.

use std::path::Path;

#[path = "../../../../fuzz/sse.rs"]
mod sse;

#[test]
fn any_cut_of_an_event_stream_gives_the_same_events() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/sse");
    let mut seeds = 0;
    for entry in std::fs::read_dir(&folder).unwrap() {
        let bytes = std::fs::read(entry.unwrap().path()).unwrap();
        (0..=bytes.len()).for_each(|end| sse::events(&bytes[..end]));
        seeds += 1;
    }
    assert!(seeds > 0, "no seeds in {}", folder.display());
}
