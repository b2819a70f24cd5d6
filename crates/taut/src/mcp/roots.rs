//! Roots: where the user's files are.
//!
//! Knows shapes; must not know the file system. ROO-01 to ROO-05.

use super::macros::wire_struct;
use super::meta::Meta;

wire_struct! {
    /// A place a server may work in: guidance, not access control (ROO-06).
    pub struct Root(
        /// Its address, `file://` and on (ROO-02).
        needs uri: String = "uri",
    ) {
        /// A name for people.
        may name: String = "name";
        /// Open metadata.
        may meta: Meta = "_meta" since V2025_06_18 when Meta::has_any;
    }

    /// What a client answers to `roots/list`.
    pub struct ListRootsResult(
        /// The roots.
        needs roots: Vec<Root> = "roots",
    ) {
        /// Open metadata.
        may meta: Meta = "_meta" until V2025_11_25 when Meta::has_any;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_are_a_list_of_addresses() {
        let result =
            ListRootsResult::new([Root::new("file:///a").name("A"), Root::new("file:///b")]);
        assert_eq!(
            serde_json::to_string(&result).unwrap(),
            r#"{"roots":[{"uri":"file:///a","name":"A"},{"uri":"file:///b"}]}"#
        );
    }
}
