//! Any frame: it is read without a panic, JSON where serde_json says so, and ids come back as sent.

#![no_main]

#[path = "../checks.rs"]
#[allow(dead_code)]
mod checks;

libfuzzer_sys::fuzz_target!(|data: &[u8]| checks::classify(data));
