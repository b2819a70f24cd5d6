//! Writes a value of the protocol as JSON, for one revision.
//!
//! Knows how to ask "does the reader's revision have this?"; must not know any type of the protocol.
//! LIF-19: what is newer than the agreed revision is left out.

use std::collections::BTreeMap;

use serde::ser::{Serialize, Serializer};
use serde_json::{Map, Value};

use super::revision::Revision;
use crate::json::{JsonRef, RawJson, close, quote};
use crate::rpc::Id;

/// The reader that JSON is written for: one revision, or any, which gets every member there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target(Option<Revision>);

impl Target {
    /// Every member, whichever revision it belongs to: what `Serialize` writes.
    pub const ANY: Self = Self(None);

    /// The members that `revision` knows.
    #[must_use]
    pub const fn of(revision: Revision) -> Self {
        Self(Some(revision))
    }

    /// The revision, unless this is [`Target::ANY`].
    #[must_use]
    pub const fn revision(self) -> Option<Revision> {
        self.0
    }

    /// Whether the reader knows a thing that came with `first`.
    #[must_use]
    pub fn since(self, first: Revision) -> bool {
        self.0.is_none_or(|at| at >= first)
    }

    /// Whether the reader knows a thing that `last` was the last to have.
    #[must_use]
    pub fn until(self, last: Revision) -> bool {
        self.0.is_none_or(|at| at <= last)
    }
}

/// A value of the protocol, which every revision may write differently.
///
/// This is the only way in which such a value is written: `Serialize` writes what [`Target::ANY`] gets.
pub trait WriteJson {
    /// Appends the value as JSON, with the members that `target` knows. What is absent is left out,
    /// never null.
    fn write_json(&self, target: Target, out: &mut Vec<u8>);

    /// This value as `revision` writes it, ready to be serialised.
    fn at(&self, revision: Revision) -> AtRevision<'_, Self> {
        AtRevision { value: self, target: Target::of(revision) }
    }
}

/// A value as one revision writes it: `serde_json::to_string(&tool.at(revision))`.
#[derive(Debug)]
pub struct AtRevision<'a, T: ?Sized> {
    value: &'a T,
    target: Target,
}

impl<T: WriteJson + ?Sized> Serialize for AtRevision<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = Vec::new();
        self.value.write_json(self.target, &mut out);
        let text = std::str::from_utf8(&out).map_err(serde::ser::Error::custom)?;
        JsonRef::sound(text).serialize(serializer)
    }
}

/// Implements `Serialize` for types that have [`WriteJson`].
macro_rules! serialize_any {
    ($($T:ty),* $(,)?) => {$(
        impl serde::Serialize for $T {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                $crate::mcp::write::any(self).serialize(serializer)
            }
        }
    )*};
}
pub(super) use serialize_any;

/// The value with every member there is.
pub(super) fn any<T: ?Sized>(value: &T) -> AtRevision<'_, T> {
    AtRevision { value, target: Target::ANY }
}

impl<T: WriteJson> WriteJson for Vec<T> {
    fn write_json(&self, target: Target, out: &mut Vec<u8>) {
        let start = out.len();
        for item in self {
            out.push(b',');
            item.write_json(target, out);
        }
        close(out, start, *b"[]");
    }
}

impl<T: WriteJson> WriteJson for Box<T> {
    fn write_json(&self, target: Target, out: &mut Vec<u8>) {
        (**self).write_json(target, out);
    }
}

impl WriteJson for String {
    fn write_json(&self, _: Target, out: &mut Vec<u8>) {
        quote(out, self);
    }
}

impl WriteJson for RawJson {
    fn write_json(&self, _: Target, out: &mut Vec<u8>) {
        out.extend_from_slice(self.text().as_bytes());
    }
}

/// A progress token, and the id of a request or a subscription: echoed with its type (PRG-09, SUB-03,
/// CAN-13).
impl WriteJson for Id {
    fn write_json(&self, _: Target, out: &mut Vec<u8>) {
        out.extend_from_slice(self.as_json().as_bytes());
    }
}

/// A whole number is written as one: readers of integers refuse `0.0`.
impl WriteJson for f64 {
    fn write_json(&self, target: Target, out: &mut Vec<u8>) {
        match whole(*self) {
            Some(whole) => whole.write_json(target, out),
            None => Value::from(*self).write_json(target, out),
        }
    }
}

/// The integer that a number is, if it is one that has a type.
pub(crate) fn whole(number: f64) -> Option<i64> {
    // The next larger number is beyond i64.
    const LARGEST: f64 = 9_223_372_036_854_774_784.0;
    (number.fract() == 0.0 && number.abs() <= LARGEST).then_some(number as i64)
}

/// Types that every revision writes alike, and that always have a JSON form.
macro_rules! same_in_every_revision {
    ($($T:ty),* $(,)?) => {$(
        impl $crate::mcp::write::WriteJson for $T {
            fn write_json(&self, _: $crate::mcp::write::Target, out: &mut Vec<u8>) {
                if serde_json::to_writer(&mut *out, self).is_err() {
                    out.extend_from_slice(b"null");
                }
            }
        }
    )*};
}
pub(super) use same_in_every_revision;

same_in_every_revision!(bool, u64, i64, Value);
same_in_every_revision!(Map<String, Value>, BTreeMap<String, String>);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_knows_what_lies_between_its_first_and_last_revision() {
        let june = Target::of(Revision::V2025_06_18);
        assert!(june.since(Revision::V2025_06_18) && june.until(Revision::V2025_06_18));
        assert!(!june.since(Revision::V2025_11_25));
        assert!(!june.until(Revision::V2025_03_26));
    }

    #[test]
    fn whole_numbers_are_integers_and_all_others_keep_their_digits() {
        let written = |number: f64| {
            let mut out = Vec::new();
            number.write_json(Target::ANY, &mut out);
            String::from_utf8(out).unwrap()
        };
        for (number, text) in [
            (0.0, "0"),
            (-0.0, "0"),
            (255.0, "255"),
            (-2_147_483_648.0, "-2147483648"),
            (9_007_199_254_740_993.0, "9007199254740992"),
            (-9_223_372_036_854_774_784.0, "-9223372036854774784"),
            (0.1, "0.1"),
            (1e300, "1e+300"),
            (f64::NAN, "null"),
        ] {
            assert_eq!(written(number), text);
        }
    }

    #[test]
    fn without_a_revision_everything_is_known_everything_at_once() {
        assert!(Target::ANY.since(Revision::V2026_07_28));
        assert!(Target::ANY.until(Revision::V2024_11_05));
    }
}
