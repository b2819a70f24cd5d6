//! What each side says it can do, and who it says it is.
//!
//! Knows the declarations; must not know when they are exchanged. Matrix section 3; LIF-17,
//! ELI-01, CAP-03, EXT-01.

use super::content::Icon;
use super::macros::wire_struct;
use super::meta::{Meta, meta_keys};
use super::write::Target;
use crate::json::{JsonObject, RawJson};

wire_struct! {
    /// The name and version of a client or server. Untrusted text: never decide by it (MET-04).
    pub struct Implementation(
        /// A name for programs.
        needs name: String = "name",
        /// The version.
        needs version: String = "version",
    ) {
        /// A name for people.
        may title: String = "title" since V2025_06_18;
        /// What it is for.
        may description: String = "description" since V2025_11_25;
        /// Pictures to show beside it.
        may icons: Vec<Icon> = "icons" since V2025_11_25;
        /// Where to read more.
        may website_url: String = "websiteUrl" since V2025_11_25;
    }

    /// What a client can do for a server.
    #[derive(Default)]
    pub struct ClientCapabilities() {
        /// It can tell where the user's files are.
        may roots: RootsCapability = "roots";
        /// It can ask a language model.
        may sampling: SamplingCapability = "sampling";
        /// It can ask the user.
        may elicitation: ElicitationCapability = "elicitation" since V2025_06_18
            when ElicitationCapability::fits;
        /// It can run requests as tasks; as it came.
        may tasks: RawJson = "tasks" since V2025_11_25 until V2025_11_25;
        /// Features outside the standard.
        may experimental: JsonObject = "experimental";
        /// Extensions by their prefixed name; `{}` means supported.
        may extensions: JsonObject = "extensions" since V2026_07_28;
    }

    /// How a client offers roots.
    #[derive(Default)]
    pub struct RootsCapability() {
        /// It says when they change (ROO-01).
        may list_changed: bool = "listChanged" until V2025_11_25;
    }

    /// How a client offers its language model.
    #[derive(Default)]
    pub struct SamplingCapability() {
        /// The model may be given tools (SAM-05).
        may tools: JsonObject = "tools" since V2025_11_25;
        /// The model may be given context of servers (SAM-08).
        may context: JsonObject = "context" since V2025_11_25;
    }

    /// How a client can ask its user.
    #[derive(Default)]
    pub struct ElicitationCapability() {
        /// By a form.
        may form: JsonObject = "form" since V2025_11_25;
        /// By sending the user to a URL.
        may url: JsonObject = "url" since V2025_11_25;
    }
}

impl ElicitationCapability {
    /// Whether the client shows forms: saying nothing means that it does (CAP-03).
    #[must_use]
    pub fn supports_form(&self) -> bool {
        self.form.is_some() || self.url.is_none()
    }

    /// Whether the client opens URLs.
    #[must_use]
    pub fn supports_url(&self) -> bool {
        self.url.is_some()
    }

    /// 2025-06-18 has forms only: a client that shows none must not seem to offer them there.
    fn fits(&self, target: Target) -> bool {
        self.supports_form() || target.revision().is_none_or(|at| at.has_url_elicitation())
    }
}

wire_struct! {
    /// What a server offers. Only what is listed here may be asked for (ERR-13, ERR-14).
    #[derive(Default)]
    pub struct ServerCapabilities() {
        /// Tools.
        may tools: ToolsCapability = "tools";
        /// Resources.
        may resources: ResourcesCapability = "resources";
        /// Prompts.
        may prompts: PromptsCapability = "prompts";
        /// Completion of arguments; 2024-11-05 has the method without the flag (CMP-01).
        may completions: JsonObject = "completions" since V2025_03_26;
        /// Log notifications (LOG-01).
        may logging: JsonObject = "logging";
        /// Requests as tasks; as it came.
        may tasks: RawJson = "tasks" since V2025_11_25 until V2025_11_25;
        /// Features outside the standard.
        may experimental: JsonObject = "experimental";
        /// Extensions by their prefixed name; `{}` means supported.
        may extensions: JsonObject = "extensions" since V2026_07_28;
    }

    /// How a server offers tools.
    #[derive(Default)]
    pub struct ToolsCapability() {
        /// It says when the list changes.
        may list_changed: bool = "listChanged";
    }

    /// How a server offers resources.
    #[derive(Default)]
    pub struct ResourcesCapability() {
        /// It says when one resource changes.
        may subscribe: bool = "subscribe";
        /// It says when the list changes.
        may list_changed: bool = "listChanged";
    }

    /// How a server offers prompts.
    #[derive(Default)]
    pub struct PromptsCapability() {
        /// It says when the list changes.
        may list_changed: bool = "listChanged";
    }
}

impl Meta {
    /// Who answered, as a modern server says on each result (MET-05).
    #[must_use]
    pub fn server_info(&self) -> Option<Implementation> {
        self.value(meta_keys::SERVER_INFO)?.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::{Revision, WriteJson};
    use serde_json::{Value, json};

    fn client(value: Value) -> ClientCapabilities {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn cap_03_an_empty_elicitation_means_forms_only() {
        let elicitation = |value| client(json!({ "elicitation": value })).elicitation.unwrap();
        let empty = elicitation(json!({}));
        assert!(empty.supports_form() && !empty.supports_url());
        let url = elicitation(json!({ "url": {} }));
        assert!(!url.supports_form() && url.supports_url());
        let both = elicitation(json!({ "form": {}, "url": {} }));
        assert!(both.supports_form() && both.supports_url());
    }

    #[test]
    fn a_client_that_only_opens_urls_offers_nothing_to_2025_06_18() {
        let urls = client(json!({ "elicitation": { "url": {} } }));
        let forms = client(json!({ "elicitation": { "form": {}, "url": {} } }));
        let at = Revision::V2025_06_18;
        assert_eq!(serde_json::to_string(&urls.at(at)).unwrap(), "{}");
        assert_eq!(serde_json::to_string(&forms.at(at)).unwrap(), r#"{"elicitation":{}}"#);
    }

    #[test]
    fn a_capability_nobody_knows_yet_survives() {
        let value = json!({ "tools": { "listChanged": true, "sorted": {} }, "teleport": {} });
        let server: ServerCapabilities = serde_json::from_value(value.clone()).unwrap();
        assert_eq!(serde_json::to_value(&server).unwrap(), value);
    }
}
