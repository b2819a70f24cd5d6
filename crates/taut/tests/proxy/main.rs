//! The proxy: four combinations of eras by every feature, and bytes that must not change.

#![allow(clippy::unwrap_used, clippy::panic)]

mod asking;
mod bounds;
mod cancelled;
mod early;
mod faults;
mod features;
mod following;
mod raw;
mod restarts;
mod revisions;
mod roots;
mod rows;
mod sharing;
mod way;
mod world;
