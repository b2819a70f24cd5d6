//! Any bytes, cut anywhere: the same frames come out, and no more is held than the limits say.

#![no_main]

#[path = "../checks.rs"]
#[allow(dead_code)]
mod checks;

libfuzzer_sys::fuzz_target!(|data: &[u8]| checks::decode(data));
