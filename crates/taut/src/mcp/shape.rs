//! Writing one value for one revision.
//!
//! Knows how to ask "does the reader's revision have this?"; must not know any type of the
//! protocol. LIF-19: what is newer than the agreed revision is left out.

use std::collections::BTreeMap;

use serde::ser::{Serialize, SerializeSeq, Serializer};
use serde_json::{Map, Value};

use super::revision::Revision;
use crate::json::quote;

/// Which members to write: those of one revision, or all there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape(Option<Revision>);

impl Shape {
    /// Every member, whichever revision it belongs to: what plain `Serialize` writes.
    pub const FULL: Self = Self(None);

    /// The members that `revision` knows.
    #[must_use]
    pub const fn of(revision: Revision) -> Self {
        Self(Some(revision))
    }

    /// The revision, unless this is [`Shape::FULL`].
    #[must_use]
    pub const fn revision(self) -> Option<Revision> {
        self.0
    }

    /// Whether a thing that came with `first` is known.
    #[must_use]
    pub fn since(self, first: Revision) -> bool {
        self.0.is_none_or(|at| at >= first)
    }

    /// Whether a thing that `last` was the last to have is known.
    #[must_use]
    pub fn until(self, last: Revision) -> bool {
        self.0.is_none_or(|at| at <= last)
    }
}

/// A value that knows how each revision writes it.
pub trait SerializeAt {
    /// Writes the members that `shape` asks for; an absent one is left out, never null.
    ///
    /// # Errors
    /// Whatever the serializer reports.
    fn serialize_at<S: Serializer>(&self, shape: Shape, serializer: S) -> Result<S::Ok, S::Error>;

    /// Appends what [`serialize_at`](Self::serialize_at) writes, as JSON; quicker than through serde
    /// where a type knows how.
    ///
    /// # Errors
    /// The value has no JSON form; what was appended so far is for the caller to take back.
    fn write_at(&self, shape: Shape, out: &mut Vec<u8>) -> Result<(), serde_json::Error> {
        serde_json::to_writer(out, &At::shaped(self, shape))
    }

    /// This value as `revision` writes it, ready to be serialised.
    fn at(&self, revision: Revision) -> At<'_, Self> {
        At { value: self, shape: Shape::of(revision) }
    }
}

/// A value seen through one revision: `serde_json::to_string(&tool.at(revision))`.
#[derive(Debug)]
pub struct At<'a, T: ?Sized> {
    value: &'a T,
    shape: Shape,
}

impl<'a, T: ?Sized> At<'a, T> {
    pub(super) const fn shaped(value: &'a T, shape: Shape) -> Self {
        Self { value, shape }
    }
}

impl<T: SerializeAt + ?Sized> Serialize for At<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.value.serialize_at(self.shape, serializer)
    }
}

impl<T: SerializeAt> SerializeAt for Vec<T> {
    fn serialize_at<S: Serializer>(&self, shape: Shape, serializer: S) -> Result<S::Ok, S::Error> {
        let mut seq = serializer.serialize_seq(Some(self.len()))?;
        for item in self {
            seq.serialize_element(&At::shaped(item, shape))?;
        }
        seq.end()
    }

    fn write_at(&self, shape: Shape, out: &mut Vec<u8>) -> Result<(), serde_json::Error> {
        let start = out.len();
        for item in self {
            out.push(b',');
            item.write_at(shape, out)?;
        }
        close(out, start, *b"[]");
        Ok(())
    }
}

/// Ends a list or an object that was begun at `start` with a comma before each of its members.
pub(super) fn close(out: &mut Vec<u8>, start: usize, [open, end]: [u8; 2]) {
    match out.get_mut(start) {
        Some(comma) => *comma = open,
        None => out.push(open),
    }
    out.push(end);
}

impl<T: SerializeAt> SerializeAt for Box<T> {
    fn serialize_at<S: Serializer>(&self, shape: Shape, serializer: S) -> Result<S::Ok, S::Error> {
        (**self).serialize_at(shape, serializer)
    }

    fn write_at(&self, shape: Shape, out: &mut Vec<u8>) -> Result<(), serde_json::Error> {
        (**self).write_at(shape, out)
    }
}

/// Types that every revision writes alike.
macro_rules! same_in_every_revision {
    ($($T:ty),* $(,)?) => {$(
        impl $crate::mcp::shape::SerializeAt for $T {
            fn serialize_at<S: serde::Serializer>(
                &self,
                _: $crate::mcp::shape::Shape,
                serializer: S,
            ) -> Result<S::Ok, S::Error> {
                serde::Serialize::serialize(self, serializer)
            }
        }
    )*};
}
pub(super) use same_in_every_revision;

impl SerializeAt for String {
    fn serialize_at<S: Serializer>(&self, _: Shape, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self)
    }

    fn write_at(&self, _: Shape, out: &mut Vec<u8>) -> Result<(), serde_json::Error> {
        quote(out, self);
        Ok(())
    }
}

same_in_every_revision!(bool, u64, f64, Value);
same_in_every_revision!(Map<String, Value>, BTreeMap<String, String>);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shape_knows_what_lies_between_its_first_and_last_revision() {
        let june = Shape::of(Revision::V2025_06_18);
        assert!(june.since(Revision::V2025_06_18) && june.until(Revision::V2025_06_18));
        assert!(!june.since(Revision::V2025_11_25));
        assert!(!june.until(Revision::V2025_03_26));
    }

    #[test]
    fn the_full_shape_knows_everything_at_once() {
        assert!(Shape::FULL.since(Revision::V2026_07_28));
        assert!(Shape::FULL.until(Revision::V2024_11_05));
    }
}
