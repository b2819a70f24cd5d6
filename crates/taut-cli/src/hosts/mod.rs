//! Servers by name, from the files that hosts already have.
//!
//! `places` knows where the files are, `tree` reads them, `shape` finds the servers in them, `find` puts
//! all of it in order, `expand` fills in variables, `target` leads from what was typed to a command, `launch`
//! to a process that somebody else starts, `wrap` edits the text of a file. No file is written here, and
//! nothing is started.

mod expand;
mod find;
mod launch;
pub(crate) mod mask;
mod places;
mod shape;
mod target;
mod tree;
pub(crate) mod wrap;

pub(crate) use find::{Found, Server, find};
pub(crate) use launch::{Launched, launch_of};
pub(crate) use places::Surroundings;
pub(crate) use shape::How;
pub(crate) use target::{Target, is_known, none_found, resolve, target_of, tell_broken, unknown};
