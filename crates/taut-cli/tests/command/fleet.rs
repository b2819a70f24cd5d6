//! What a build without NATS says to those who want it.

use super::*;

#[test]
fn a_build_without_the_fleet_says_how_to_get_it() {
    let typed: [&[&str]; 4] = [
        &["worker", "search", "--slots", "2", "--", "some-server"],
        &["fleet", "--json"],
        &["bridge", "nats:search"],
        &["call", "add", "a=1", "nats:search"],
    ];
    for words in typed {
        let run: Run = taut(words).output().unwrap().into();
        let err = run.exits(2).err;
        assert!(
            err.contains("cargo install --path crates/taut-cli --profile dist --features fleet"),
            "{words:?}: {err}"
        );
    }
}
