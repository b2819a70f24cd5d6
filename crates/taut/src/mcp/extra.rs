//! Members of an object that this version does not know.
//!
//! Hardly any object has such members, but each type has a field for them, so the field is one pointer.

use std::ops::{Deref, DerefMut};
use std::sync::LazyLock;

use serde_json::Value;

use crate::json::JsonObject;

/// Members of an object that this version of taut does not know, kept as they came. Used as the map
/// that it is.
///
/// ```
/// let mut text = taut::types::TextContent::new("hello");
/// assert!(text.extra.is_empty());
/// text.extra.insert("com.example/tone".into(), "cheerful".into());
/// assert_eq!(text.extra["com.example/tone"], "cheerful");
/// ```
#[derive(Clone, Debug, Default)]
pub struct Extra(Option<Box<JsonObject>>);

impl Deref for Extra {
    type Target = JsonObject;

    fn deref(&self) -> &JsonObject {
        static NONE: LazyLock<JsonObject> = LazyLock::new(JsonObject::new);
        self.0.as_deref().unwrap_or(&NONE)
    }
}

impl DerefMut for Extra {
    fn deref_mut(&mut self) -> &mut JsonObject {
        self.0.get_or_insert_default()
    }
}

impl PartialEq for Extra {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<'a> IntoIterator for &'a Extra {
    type Item = (&'a String, &'a Value);
    type IntoIter = std::iter::Flatten<std::option::IntoIter<&'a JsonObject>>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.as_deref().into_iter().flatten()
    }
}

impl From<Extra> for JsonObject {
    fn from(extra: Extra) -> Self {
        extra.0.map(|members| *members).unwrap_or_default()
    }
}

impl From<JsonObject> for Extra {
    fn from(members: JsonObject) -> Self {
        Self((!members.is_empty()).then(|| Box::new(members)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn none_is_none_however_it_came_about() {
        let mut emptied = Extra::default();
        emptied.insert("a".into(), 1.into());
        assert_ne!(emptied, Extra::default());
        emptied.remove("a");
        assert_eq!(emptied, Extra::default());
        assert_eq!(Extra::from(JsonObject::new()), Extra::default());
        assert_eq!((emptied.len(), (&emptied).into_iter().count()), (0, 0));
        assert_eq!(JsonObject::from(emptied), JsonObject::new());
    }
}
