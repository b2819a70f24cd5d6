//! What the modern revision adds to every result: its type, and how long it may be kept.
//!
//! Knows the three members; must not know any particular result. RSL-01 to RSL-05, CAC-01 to
//! CAC-05. Legacy results carry none of them.

use std::time::Duration;

use serde::de::{Deserialize, Deserializer, Error};
use serde::ser::{Serialize, Serializer};
use serde_json::value::RawValue;

use super::macros::{wire_enum, wire_struct};
use super::meta::Meta;
use super::write::same_in_every_revision;
use crate::json::JsonRef;

wire_enum! {
    /// What kind of result this is; an unknown kind makes the answer invalid (RSL-03).
    #[derive(Default)]
    pub enum ResultType {
        /// The answer; also what an absent type means (RSL-02).
        #[default]
        Complete = "complete",
        /// The server needs something from the client first.
        InputRequired = "input_required",
    }
}

impl ResultType {
    /// The type of a result that has not been read yet.
    ///
    /// # Errors
    /// When the result is no object, or its type no string.
    pub fn of(result: &RawValue) -> Result<Self, serde_json::Error> {
        let result = JsonRef::from(result);
        match result.member("resultType") {
            Some(word) => Ok(word.read::<Option<Self>>()?.unwrap_or_default()),
            None if result.is_object() => Ok(Self::default()),
            None => Err(Error::custom("a result is an object")),
        }
    }
}

wire_enum! {
    /// To whom a cached result may be given.
    #[derive(Default)]
    pub enum CacheScope {
        /// Only the client that asked. An absent scope means this, too (CAC-03).
        #[default]
        Private = "private",
        /// Every client.
        Public = "public",
    }
}

/// How long a result may be kept, in milliseconds on the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ttl(pub Duration);

impl From<Duration> for Ttl {
    fn from(time: Duration) -> Self {
        Self(time)
    }
}

impl Serialize for Ttl {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(u64::try_from(self.0.as_millis()).unwrap_or(u64::MAX))
    }
}

impl<'de> Deserialize<'de> for Ttl {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let millis = f64::deserialize(deserializer)?;
        // CAC-03: a negative time is none. The cast saturates, so no number can hurt.
        Ok(Self(Duration::from_millis(millis as u64)))
    }
}

same_in_every_revision!(Ttl);

wire_struct! {
    /// A result that says nothing but "done": the answer to `ping`, or to a subscription.
    #[derive(Default)]
    pub struct EmptyResult() {
        /// What kind of result this is.
        has result_type: ResultType = "resultType" since V2026_07_28;
        /// Open metadata.
        may meta: Meta = "_meta" when Meta::has_any;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::{Revision, WriteJson};

    fn type_of(text: &str) -> Option<ResultType> {
        ResultType::of(serde_json::from_str(text).unwrap()).ok()
    }

    #[test]
    fn the_type_is_found_without_reading_the_result() {
        assert_eq!(type_of(r#"{"content":[]}"#), Some(ResultType::Complete));
        assert_eq!(
            type_of(r#"{"x":{"resultType":"no"},"resultType":"input_required"}"#),
            Some(ResultType::InputRequired)
        );
        assert_eq!(type_of(r#"{"resultType":"task"}"#), Some(ResultType::Other("task".into())));
        assert_eq!(type_of(r#"{"resultType":5}"#), None);
        assert_eq!(type_of("[]"), None);
    }

    #[test]
    fn rsl_01_and_05_only_modern_results_carry_a_type() {
        let empty = EmptyResult::new();
        for revision in Revision::ALL {
            let text = serde_json::to_string(&empty.at(revision)).unwrap();
            let expected = if revision.is_modern() { r#"{"resultType":"complete"}"# } else { "{}" };
            assert_eq!(text, expected);
        }
    }

    #[test]
    fn cac_03_a_time_to_live_is_never_negative() {
        let ttl = |text| serde_json::from_str::<Ttl>(text).unwrap().0;
        assert_eq!(ttl("-5"), Duration::ZERO);
        assert_eq!(ttl("1500"), Duration::from_millis(1500));
        assert_eq!(ttl("1500.0"), Duration::from_millis(1500));
        assert_eq!(serde_json::to_string(&Ttl(Duration::from_secs(2))).unwrap(), "2000");
    }
}
