//! Resources: how a server describes them and what reading one returns.
//!
//! Knows shapes; must not know where the bytes come from. RES-01 to RES-15.

use super::content::{Annotations, Icon, ResourceContents};
use super::macros::wire_struct;
use super::meta::Meta;
use super::result::{CacheScope, ResultType, Ttl};
use crate::json::RawJson;

wire_struct! {
    /// A resource that a server offers.
    pub struct Resource(
        /// Its address.
        needs uri: String = "uri",
        /// A name for programs.
        needs name: String = "name",
    ) {
        /// A name for people.
        may title: String = "title" since V2025_06_18;
        /// What it is, for the model to read.
        may description: String = "description";
        /// Its media type.
        may mime_type: String = "mimeType";
        /// Its size in bytes, before any encoding.
        num size: u64 = "size";
        /// Pictures to show beside it.
        may icons: Vec<Icon> = "icons" since V2025_11_25;
        /// Hints for the reader.
        may annotations: Annotations = "annotations";
        /// Open metadata.
        may meta: Meta = "_meta" since V2025_06_18 when Meta::has_any;
    }

    /// A family of resources whose addresses follow one pattern.
    pub struct ResourceTemplate(
        /// The pattern, after RFC 6570.
        needs uri_template: String = "uriTemplate",
        /// A name for programs.
        needs name: String = "name",
    ) {
        /// A name for people.
        may title: String = "title" since V2025_06_18;
        /// What they are, for the model to read.
        may description: String = "description";
        /// Their media type, if all have the same.
        may mime_type: String = "mimeType";
        /// Pictures to show beside it.
        may icons: Vec<Icon> = "icons" since V2025_11_25;
        /// Hints for the reader.
        may annotations: Annotations = "annotations";
        /// Open metadata.
        may meta: Meta = "_meta" since V2025_06_18 when Meta::has_any;
    }

    /// What a client says in `resources/read`.
    pub struct ReadResourceParams(
        /// The address.
        needs uri: String = "uri",
    ) {
        /// Answers to what an earlier run asked for (MRTR-05).
        may input_responses: RawJson = "inputResponses" since V2026_07_28;
        /// What an earlier run wants back, byte for byte (MRTR-06).
        may request_state: String = "requestState" since V2026_07_28;
        /// Open metadata.
        may meta: Meta = "_meta" when Meta::has_any;
    }

    /// What a server answers to `resources/read`.
    pub struct ReadResourceResult(
        /// The contents; a resource may consist of several.
        needs contents: Vec<ResourceContents> = "contents",
    ) {
        /// How long this answer may be kept.
        has ttl: Ttl = "ttlMs" since V2026_07_28;
        /// Who may be served a kept answer.
        has cache_scope: CacheScope = "cacheScope" since V2026_07_28;
        /// What kind of result this is.
        has result_type: ResultType = "resultType" since V2026_07_28;
        /// Open metadata.
        may meta: Meta = "_meta" when Meta::has_any;
    }

    /// One resource by its address: `resources/subscribe`, `resources/unsubscribe` and
    /// `notifications/resources/updated` (RES-07, RES-08).
    pub struct ResourceParams(
        /// The address; an update may name a part of what was subscribed to (RES-10).
        needs uri: String = "uri",
    ) {
        /// Open metadata.
        may meta: Meta = "_meta" when Meta::has_any;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::{Revision, WriteJson};
    use serde_json::json;

    #[test]
    fn a_null_from_a_careless_writer_is_read_as_absent_and_never_written() {
        let value =
            json!({ "uri": "a:b", "name": "b", "size": null, "title": null, "icons": null });
        let resource: Resource = serde_json::from_value(value).unwrap();
        assert_eq!(resource, Resource::new("a:b", "b"));
        assert_eq!(serde_json::to_string(&resource).unwrap(), r#"{"uri":"a:b","name":"b"}"#);
    }

    #[test]
    fn a_size_is_a_plain_number() {
        let resource = Resource::new("a:b", "b").size(12);
        let written = serde_json::to_value(resource.at(Revision::V2024_11_05)).unwrap();
        assert_eq!(written, json!({ "uri": "a:b", "name": "b", "size": 12 }));
    }

    #[test]
    fn contents_are_text_or_bytes() {
        let text = ResourceContents::new("a:b").text("x");
        let bytes = ResourceContents::new("a:b").blob("eA==");
        let result = ReadResourceResult::new([text, bytes]);
        assert_eq!(
            serde_json::to_value(result.at(Revision::LATEST_LEGACY)).unwrap(),
            json!({ "contents": [{ "uri": "a:b", "text": "x" }, { "uri": "a:b", "blob": "eA==" }] })
        );
    }
}
