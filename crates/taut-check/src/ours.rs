//! What this crate takes from `taut`, and nothing more: the names of the revisions, and the validator.
//!
//! The checks read and write bytes themselves, so that a fault in the library cannot hide one.

pub use taut::Revision;
pub(crate) use taut::schema::Validator;
