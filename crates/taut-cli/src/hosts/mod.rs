//! Servers by name, from the files that hosts already have.
//!
//! `places` knows where the files are, `read` and `tree` read them, `shape` finds the servers in them,
//! `find` orders them, `expand` fills in variables, `target` makes a command of what was typed,
//! `wrap` edits the text of a file. Writes no file and starts nothing.

mod expand;
mod find;
mod places;
mod read;
mod shape;
mod target;
mod tree;
pub(crate) mod wrap;

pub(crate) use find::{Found, Server, find};
pub(crate) use places::Surroundings;
pub(crate) use shape::How;
pub(crate) use target::{
    Target, WITHIN, is_known, listens, none_found, none_named, resolve, start_of, target_of,
    tell_broken, unknown,
};
