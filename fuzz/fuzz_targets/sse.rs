//! Any event stream, cut anywhere: the same events as the whole, and nothing longer than the limit.

#![no_main]

#[path = "../sse.rs"]
mod sse;

libfuzzer_sys::fuzz_target!(|data: &[u8]| sse::events(data));
