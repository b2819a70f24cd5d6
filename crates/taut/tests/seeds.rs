//! The fuzzers' checks over their seeds, as ordinary tests: what was once found stays found.

// Clippy's exception for tests covers `#[test]` functions, not what they call.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../../../fuzz/checks.rs"]
mod checks;

use std::path::Path;

fn each_seed_of(target: &str, check: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds").join(target);
    let mut seeds = 0;
    for entry in std::fs::read_dir(&folder).unwrap() {
        let bytes = std::fs::read(entry.unwrap().path()).unwrap();
        check(&bytes);
        // Every beginning of it too: most bugs sit where something is cut off.
        (0..bytes.len()).for_each(|end| check(&bytes[..end]));
        seeds += 1;
    }
    assert!(seeds > 0, "no seeds in {}", folder.display());
}

#[test]
fn any_cut_of_a_stream_gives_the_same_frames() {
    each_seed_of("decode", checks::decode);
}

#[test]
fn a_wrong_length_costs_its_own_message() {
    each_seed_of("wrong_length", checks::wrong_length);
}

#[test]
fn any_frame_is_read_as_json_is() {
    each_seed_of("classify", checks::classify);
}

#[test]
fn any_frames_and_actions_leave_the_peer_consistent() {
    each_seed_of("peer", checks::peer);
}
