//! Every name of the `taut` library that this crate uses.
//!
//! One place, so that a change in the library touches one file here. Must not add anything of its own.

pub(crate) use taut::rpc::Fault;
pub(crate) use taut::secrets::{MASK, Masker};
pub(crate) use taut::wire::{Decoder, Frame, Framing as Wire, Limits};
