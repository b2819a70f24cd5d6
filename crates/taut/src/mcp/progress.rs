//! What is said about a request while it runs: progress, and cancellation.
//!
//! Knows shapes; must not know which requests are running. PRG-01 to PRG-09, CAN-01, CAN-13.

use super::macros::wire_struct;
use super::meta::Meta;
use crate::rpc::Id;

wire_struct! {
    /// What `notifications/progress` says.
    pub struct ProgressParams(
        /// The token of the request it is about (PRG-09).
        needs progress_token: Id = "progressToken",
        /// How far it is; larger each time (PRG-04).
        needs progress: f64 = "progress",
    ) {
        /// How far it will go, if that is known.
        may total: f64 = "total";
        /// What is being done (PRG-06).
        may message: String = "message" since V2025_03_26;
        /// Open metadata.
        may meta: Meta = "_meta" when Meta::has_any;
    }

    /// What `notifications/cancelled` says.
    pub struct CancelledParams(
        /// The id of the request to give up.
        needs request_id: Id = "requestId",
    ) {
        /// Why, for people.
        may reason: String = "reason";
        /// Open metadata.
        may meta: Meta = "_meta" when Meta::has_any;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::{Revision, WriteJson};

    #[test]
    fn prg_06_words_are_left_out_for_the_first_revision() {
        let progress = ProgressParams::new("t", 1).total(4).message("reading");
        let at = |revision| serde_json::to_string(&progress.at(revision)).unwrap();
        let bare = r#"{"progressToken":"t","progress":1,"total":4}"#;
        assert_eq!(at(Revision::V2024_11_05), bare);
        assert!(at(Revision::V2025_03_26).contains(r#""message":"reading""#));
    }

    #[test]
    fn can_13_an_id_keeps_its_type() {
        for text in [r#"{"requestId":1}"#, r#"{"requestId":"1"}"#] {
            let params: CancelledParams = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::to_string(&params).unwrap(), text);
        }
        assert!(serde_json::from_str::<CancelledParams>(r#"{"requestId":null}"#).is_err());
    }
}
