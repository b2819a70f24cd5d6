//! Elicitation: a server asks the user.
//!
//! Knows both ways of asking and the answer; must not know a screen. The fields of a form are in
//! `form.rs`. ELI-01 to ELI-12.

use serde::de::{Deserialize, Deserializer, Error};
use serde_json::Value;

use super::form::FormSchema;
use super::macros::{variants, wire_enum, wire_struct};
use super::meta::Meta;
use super::revision::Revision;
use super::write::{Target, serialize_any};
use crate::json::{JsonObject, JsonRef, RawJson};

wire_struct! {
    /// A form to fill in. Never ask for secrets with it (ELI-08).
    pub struct ElicitForm(
        /// What to tell the user.
        needs message: String = "message",
        /// The fields.
        needs requested_schema: FormSchema = "requestedSchema",
    ) {
        /// Absent means a form as well (ELI-03), so `mode` is kept but not asked for.
        may mode: String = "mode" since V2025_11_25;
        /// Asks for a task; as it came.
        may task: RawJson = "task" since V2025_11_25 until V2025_11_25;
        /// Open metadata.
        may meta: Meta = "_meta" until V2025_11_25 when Meta::has_any;
    }

    /// A page to visit, where the user does what the client must not see.
    pub struct ElicitUrl tagged "mode" = "url" (
        /// What to tell the user.
        needs message: String = "message",
        /// The page. Clients show it whole and open it only with consent (ELI-09).
        needs url: String = "url",
    ) {
        /// Names the question; required in 2025-11-25, gone after (ELI-05, ELI-06).
        may elicitation_id: String = "elicitationId" until V2025_11_25;
        /// Asks for a task; as it came.
        may task: RawJson = "task" since V2025_11_25 until V2025_11_25;
        /// Open metadata.
        may meta: Meta = "_meta" until V2025_11_25 when Meta::has_any;
    }
}

/// What a server asks with `elicitation/create`.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ElicitParams {
    /// A form to fill in.
    Form(ElicitForm),
    /// A page to visit.
    Url(ElicitUrl),
    /// A mode this version of taut does not know, kept as it came.
    Other(Value),
}

impl ElicitParams {
    /// Whether `revision` can carry this question at all.
    #[must_use]
    pub fn fits(&self, revision: Revision) -> bool {
        match self {
            Self::Form(form) => {
                revision.has_elicitation() && form.requested_schema.fits(Target::of(revision))
            }
            Self::Url(_) | Self::Other(_) => revision.has_url_elicitation(),
        }
    }
}

variants!(ElicitParams: Form(ElicitForm), Url(ElicitUrl));

serialize_any!(ElicitParams);

impl<'de> Deserialize<'de> for ElicitParams {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // The text is read twice: the mode may be the last member, and reading into a `Value` first would
        // lose the order of the fields.
        let params = RawJson::deserialize(deserializer)?;
        match JsonRef::from(params.raw()).member("mode").map(JsonRef::text) {
            None | Some("null" | "\"form\"") => params.parse().map(Self::Form),
            Some("\"url\"") => params.parse().map(Self::Url),
            Some(_) => params.parse().map(Self::Other),
        }
        .map_err(D::Error::custom)
    }
}

wire_enum! {
    /// What the user did with a question (ELI-07).
    pub enum ElicitAction {
        /// Answered it; for a page, agreed to go there (ELI-12).
        Accept = "accept",
        /// Said no.
        Decline = "decline",
        /// Went away without an answer.
        Cancel = "cancel",
    }
}

wire_struct! {
    /// What a client answers to `elicitation/create`.
    pub struct ElicitResult(
        /// What the user did.
        needs action: ElicitAction = "action",
    ) {
        /// What was filled in; only when a form was accepted.
        may content: JsonObject = "content";
        /// Open metadata.
        may meta: Meta = "_meta" until V2025_11_25 when Meta::has_any;
    }

    /// What `notifications/elicitation/complete` says, in 2025-11-25.
    pub struct ElicitationCompleteParams(
        /// Which question is settled.
        needs elicitation_id: String = "elicitationId",
    ) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::FormField;
    use crate::mcp::WriteJson;
    use serde_json::json;

    #[test]
    fn eli_03_a_question_without_a_mode_is_a_form() {
        let schema = json!({ "type": "object", "properties": { "n": { "type": "string" } } });
        let value = json!({ "message": "who?", "requestedSchema": schema });
        let params: ElicitParams = serde_json::from_value(value.clone()).unwrap();
        assert!(matches!(params, ElicitParams::Form(_)));
        assert_eq!(serde_json::to_value(&params).unwrap(), value);
    }

    #[test]
    fn eli_06_a_page_has_an_id_only_in_2025_11_25() {
        let params = ElicitParams::from(ElicitUrl::new("go", "https://a.b").elicitation_id("7"));
        let at = |revision| serde_json::to_string(&params.at(revision)).unwrap();
        assert_eq!(
            at(Revision::LATEST_LEGACY),
            r#"{"mode":"url","message":"go","url":"https://a.b","elicitationId":"7"}"#
        );
        assert_eq!(at(Revision::MODERN), r#"{"mode":"url","message":"go","url":"https://a.b"}"#);
        let read: ElicitParams = serde_json::from_str(&at(Revision::LATEST_LEGACY)).unwrap();
        assert_eq!(read, params);
    }

    #[test]
    fn a_mode_nobody_knows_is_kept() {
        let value = json!({ "mode": "voice", "message": "hm?" });
        let params: ElicitParams = serde_json::from_value(value.clone()).unwrap();
        assert_eq!(params, ElicitParams::Other(value));
    }

    #[test]
    fn a_question_that_a_revision_cannot_carry_says_so() {
        let url = ElicitParams::from(ElicitUrl::new("go", "https://a.b"));
        assert_eq!(Revision::ALL.map(|at| url.fits(at)), [false, false, false, true, true]);
        let form = FormSchema::new().required("tags", FormField::several(["a", "b"]));
        let form = ElicitParams::from(ElicitForm::new("which?", form));
        assert_eq!(Revision::ALL.map(|at| form.fits(at)), [false, false, false, true, true]);
        let form = FormSchema::new().required("name", FormField::text());
        let form = ElicitParams::from(ElicitForm::new("who?", form));
        assert_eq!(Revision::ALL.map(|at| form.fits(at)), [false, false, true, true, true]);
    }
}
