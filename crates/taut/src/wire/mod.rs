//! Bytes ⇄ frames, in both framings that stdio peers use. Pure: no I/O, no clock, no JSON.
//!
//! A [`Decoder`] takes bytes in pieces of any size and gives frames out; where the pieces were cut
//! never shows. An [`Encoder`] takes one message at a time and holds the bytes until they are
//! written.
//!
//! ```
//! use taut::wire::{Decoder, Encoder, Frame, Framing, Limits};
//!
//! let mut encoder = Encoder::default();
//! encoder.frame(Framing::Headers, |body| body.extend_from_slice(b"{\"a\":1}"));
//!
//! let mut decoder = Decoder::new(Limits::default());
//! decoder.push(encoder.bytes());
//! let Some(Frame::Message { bytes, framing, .. }) = decoder.poll_frame() else { panic!() };
//! assert_eq!((bytes, framing), (&b"{\"a\":1}"[..], Framing::Headers));
//! ```

mod decode;
mod encode;
pub(crate) mod find;
mod frame;
mod header;
mod memory;
mod opening;
mod value;

pub use decode::Decoder;
pub use encode::Encoder;
pub use frame::{Frame, HeaderFault, Limits};
pub use opening::Opening;

/// A byte-order mark, which Windows tools put before their first line (F3).
pub(crate) const BOM: &[u8] = b"\xEF\xBB\xBF";

worded! {
    /// How one message is told from the next.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    #[non_exhaustive]
    pub enum Framing {
        /// One line of JSON, ended by a newline. What MCP asks for (STD-01).
        #[default]
        Lines = "lines",
        /// A `Content-Length` header block before each body, as language servers do it.
        Headers = "Content-Length",
    }
}
