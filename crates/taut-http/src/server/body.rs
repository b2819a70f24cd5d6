//! What is sent back: nothing, one message, or a stream of events.
//!
//! Knows frames of bytes; must not know why a stream ends.

use std::convert::Infallible;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Frame, SizeHint};

use super::modern::PipeStream;
use super::plain::PlainStream;
use super::stream::StreamReader;

/// The body of a response.
pub struct Body(Kind);

enum Kind {
    Full(Bytes),
    Session(Box<StreamReader>),
    Pipe(Box<PipeStream>),
    Plain(Box<PlainStream>),
}

impl Body {
    pub(super) fn empty() -> Self {
        Self(Kind::Full(Bytes::new()))
    }

    pub(super) fn full(bytes: Vec<u8>) -> Self {
        Self(Kind::Full(bytes.into()))
    }

    pub(super) fn session(reader: StreamReader) -> Self {
        Self(Kind::Session(Box::new(reader)))
    }

    pub(super) fn pipe(stream: PipeStream) -> Self {
        Self(Kind::Pipe(Box::new(stream)))
    }

    pub(super) fn plain(stream: PlainStream) -> Self {
        Self(Kind::Plain(Box::new(stream)))
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Kind::Full(_) => "Body::Full",
            _ => "Body::Stream",
        })
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let next = match &mut self.0 {
            Kind::Full(bytes) if bytes.is_empty() => None,
            Kind::Full(bytes) => Some(std::mem::take(bytes)),
            Kind::Session(reader) => std::task::ready!(reader.poll_next(cx)),
            Kind::Pipe(stream) => std::task::ready!(stream.poll_next(cx)),
            Kind::Plain(stream) => std::task::ready!(stream.poll_next(cx)),
        };
        Poll::Ready(next.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(&self.0, Kind::Full(bytes) if bytes.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Full(bytes) => SizeHint::with_exact(bytes.len() as u64),
            _ => SizeHint::default(),
        }
    }
}
