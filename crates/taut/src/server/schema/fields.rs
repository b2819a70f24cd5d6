//! The fields of a struct in the order in which they are declared.
//!
//! A schema cannot tell: its members are sorted by name. `order.rs` hears it from `Deserialize`.

use serde::de::DeserializeOwned;

use super::order::{Heard, Probe};

/// The names, as they are read; nothing if the type does not tell (a map, or `#[serde(flatten)]`).
pub(crate) fn fields_of<T: DeserializeOwned>() -> Option<&'static [&'static str]> {
    match T::deserialize(Probe(&[])) {
        Err(Heard::Fields(names)) => Some(names),
        _ => None,
    }
}

/// Sorts what a schema has by name into the order of declaration. What was not declared comes last.
pub(crate) fn in_order<V>(items: &mut [V], names: Option<&[&str]>, name: impl Fn(&V) -> &str) {
    let Some(names) = names else { return };
    items.sort_by_key(|item| names.iter().position(|n| *n == name(item)).unwrap_or(usize::MAX));
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Deserialize)]
    #[allow(dead_code)]
    struct Trip {
        to: String,
        from: String,
        #[serde(rename = "on")]
        date: Option<String>,
    }

    #[derive(Deserialize)]
    #[allow(dead_code)]
    struct Wrapped(Trip);

    #[derive(Deserialize)]
    #[allow(dead_code)]
    struct Flat {
        #[serde(flatten)]
        trip: Trip,
    }

    #[test]
    fn a_struct_names_its_fields_as_they_are_read_and_in_order() {
        let names: &[&str] = &["to", "from", "on"];
        assert_eq!(fields_of::<Trip>(), Some(names));
        assert_eq!(fields_of::<Wrapped>(), Some(names));
    }

    #[test]
    fn what_does_not_tell_has_no_names_and_keeps_its_order() {
        assert_eq!((fields_of::<Flat>(), fields_of::<serde_json::Value>()), (None, None));
        let mut items = ["b", "a", "c"];
        in_order(&mut items, None, |item| item);
        assert_eq!(items, ["b", "a", "c"]);
        in_order(&mut items, Some(&["c", "a"]), |item| item);
        assert_eq!(items, ["c", "a", "b"]);
    }
}
