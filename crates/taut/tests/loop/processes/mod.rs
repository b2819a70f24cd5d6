//! What only a real process shows.

mod ending;
mod flood;
mod one_shot;
mod roles;
mod signals;
mod stray;
