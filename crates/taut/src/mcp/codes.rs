//! The error codes that MCP adds to JSON-RPC, and the data they carry.
//!
//! Knows numbers and shapes; must not know when to send them. ERR-02 to ERR-10.

use super::capabilities::ClientCapabilities;
use super::macros::wire_struct;
use super::revision::Revision;
use crate::rpc::code;

/// A resource that does not exist, until 2025-11-25 (ERR-02).
pub const RESOURCE_NOT_FOUND: i64 = -32002;

/// A client lacks a capability that the request needs (ERR-07).
pub const MISSING_CLIENT_CAPABILITY: i64 = -32021;

/// A modern request names a version that is not served (ERR-08).
pub const UNSUPPORTED_PROTOCOL_VERSION: i64 = -32022;

/// The user has to visit a URL first; 2025-11-25 only (ERR-05, ERR-06).
pub const URL_ELICITATION_REQUIRED: i64 = -32042;

/// The code for a resource that does not exist (ERR-02, ERR-03).
#[must_use]
pub fn resource_not_found(revision: Revision) -> i64 {
    // ERR-03: the modern revision folds it into JSON-RPC's own invalid params.
    if revision.is_modern() { code::INVALID_PARAMS } else { RESOURCE_NOT_FOUND }
}

wire_struct! {
    /// The data of [`UNSUPPORTED_PROTOCOL_VERSION`].
    pub struct UnsupportedVersion(
        /// The versions that are served.
        needs supported: Vec<String> = "supported",
        /// The version that was asked for.
        needs requested: String = "requested",
    ) {}

    /// The data of [`MISSING_CLIENT_CAPABILITY`]: an object, not a list of names.
    pub struct MissingCapability(
        /// What the client would have to declare.
        needs required: ClientCapabilities = "requiredCapabilities",
    ) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::SamplingCapability;

    #[test]
    fn err_02_and_03_not_found_has_a_code_of_its_own_only_in_legacy() {
        assert_eq!(resource_not_found(Revision::LATEST_LEGACY), -32002);
        assert_eq!(resource_not_found(Revision::MODERN), -32602);
    }

    #[test]
    fn err_07_the_missing_capability_is_an_object() {
        let wanted = ClientCapabilities::new().sampling(SamplingCapability::new());
        let data = serde_json::to_string(&MissingCapability::new(wanted)).unwrap();
        assert_eq!(data, r#"{"requiredCapabilities":{"sampling":{}}}"#);
    }
}
