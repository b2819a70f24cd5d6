//! A JSON Schema, as tools publish it.
//!
//! Knows the type of its root; must not know how to check a value against it (`schema/`).

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::write::{Target, WriteJson};
use crate::json::{JsonRef, RawJson};

/// A JSON Schema; by default the one that any object fits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Schema(RawJson);

impl Schema {
    /// The schema's JSON.
    #[must_use]
    pub fn json(&self) -> &RawJson {
        &self.0
    }

    /// Whether the root says `"type": "object"`.
    #[must_use]
    pub fn has_object_root(&self) -> bool {
        let kind = JsonRef::from(self.0.raw()).member("type");
        kind.is_some_and(|kind| kind.text() == "\"object\"")
    }

    /// For `outputSchema`: an object root until 2025-11-25 (TOL-15), any schema after (TOL-16).
    pub(super) fn fits_output(&self, target: Target) -> bool {
        target.revision().is_none_or(|at| at.has_any_structured_content()) || self.has_object_root()
    }
}

impl Default for Schema {
    fn default() -> Self {
        // Every tool begins with it, so it is made once.
        static ANY_OBJECT: LazyLock<Schema> = LazyLock::new(|| json!({ "type": "object" }).into());
        ANY_OBJECT.clone()
    }
}

impl<T: Into<RawJson>> From<T> for Schema {
    fn from(json: T) -> Self {
        Self(json.into())
    }
}

impl WriteJson for Schema {
    fn write_json(&self, target: Target, out: &mut Vec<u8>) {
        self.0.write_json(target, out);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn the_root_type_of_a_schema_is_found_wherever_it_stands() {
        let root = |schema: Value| Schema::from(schema).has_object_root();
        assert!(root(json!({ "properties": { "type": { "type": "array" } }, "type": "object" })));
        assert!(!root(json!({ "properties": { "type": "object" } })));
        assert!(!root(json!({ "type": ["object", "null"] })));
        assert!(!root(json!(true)));
        assert!(Schema::default().has_object_root());
    }
}
