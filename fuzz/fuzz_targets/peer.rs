//! Any frames and actions on a peer: each request is answered at most once, and nothing is leaked.

#![no_main]

#[path = "../checks.rs"]
#[allow(dead_code)]
mod checks;

libfuzzer_sys::fuzz_target!(|data: &[u8]| checks::peer(data));
