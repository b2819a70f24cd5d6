//! What the Rust peers share, free of any SDK: what a server offers, and how a client tells what
//! it tried.

pub mod features;
pub mod offer;
