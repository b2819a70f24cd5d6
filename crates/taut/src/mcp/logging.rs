//! Log notifications and their levels.
//!
//! Knows the order of the levels; must not know who asked for which. LOG-02 to LOG-11.

use super::macros::{wire_enum, wire_struct};
use super::meta::Meta;
use crate::json::RawJson;

wire_enum! {
    /// How bad it is; later ones are worse (LOG-06).
    ///
    /// An unknown level compares as the worst, so that no filter loses it; a request for one
    /// is refused (LOG-03, LOG-11).
    pub enum Level {
        /// Details for finding a fault.
        Debug = "debug",
        /// Normal events.
        Info = "info",
        /// Normal, but worth a look.
        Notice = "notice",
        /// Something may go wrong.
        Warning = "warning",
        /// Something went wrong.
        Error = "error",
        /// A part has failed.
        Critical = "critical",
        /// Somebody has to act now.
        Alert = "alert",
        /// Nothing works.
        Emergency = "emergency",
    }
}

wire_struct! {
    /// What a client says in `logging/setLevel`.
    pub struct SetLevelParams(
        /// The least severe level it wants to see (LOG-04).
        needs level: Level = "level",
    ) {
        /// Open metadata.
        may meta: Meta = "_meta" when Meta::has_any;
    }

    /// What a server says in `notifications/message`.
    pub struct LogParams(
        /// How bad it is.
        needs level: Level = "level",
        /// What happened: any JSON (LOG-07).
        needs data: RawJson = "data",
    ) {
        /// Which part of the server says so.
        may logger: String = "logger";
        /// Open metadata.
        may meta: Meta = "_meta" when Meta::has_any;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn log_06_levels_are_ordered_by_severity() {
        let words =
            ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];
        let levels = words.map(Level::from);
        assert!(levels.is_sorted());
        assert!(levels.iter().all(Level::is_known));
        assert_eq!(levels.map(|level| level.to_string()), words);
        assert!(Level::from("fatal") > Level::Emergency);
        assert!(!Level::from("DEBUG").is_known());
    }

    #[test]
    fn log_07_data_may_be_anything_even_null() {
        for data in [json!(null), json!("x"), json!({ "a": 1 })] {
            let value = json!({ "level": "info", "data": data });
            let params: LogParams = serde_json::from_value(value.clone()).unwrap();
            assert_eq!(serde_json::to_value(&params).unwrap(), value);
        }
        assert!(serde_json::from_value::<LogParams>(json!({ "level": "info" })).is_err());
    }
}
