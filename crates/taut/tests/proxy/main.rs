//! The proxy: four combinations of eras by every feature, and bytes that must not change.

#![allow(clippy::unwrap_used, clippy::panic)]

mod asking;
mod bounds;
mod faults;
mod features;
mod raw;
mod revisions;
mod rows;
mod sharing;
mod way;
mod world;
