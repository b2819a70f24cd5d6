//! Subscriptions of the modern revision: one long request, a filter, tagged notifications.
//!
//! Knows the filter and which part of it a server can honour; must not know open streams.
//! SUB-01 to SUB-12.

use super::capabilities::ServerCapabilities;
use super::macros::wire_struct;
use super::meta::{Meta, meta_keys};
use super::result::EmptyResult;
use crate::rpc::Id;

wire_struct! {
    /// Which changes a client wants to hear of; absent means no.
    #[derive(Default)]
    pub struct SubscriptionFilter() {
        /// Changes of the list of tools.
        may tools_list_changed: bool = "toolsListChanged";
        /// Changes of the list of prompts.
        may prompts_list_changed: bool = "promptsListChanged";
        /// Changes of the list of resources.
        may resources_list_changed: bool = "resourcesListChanged";
        /// Changes of these resources.
        may resource_subscriptions: Vec<String> = "resourceSubscriptions";
    }
}

impl SubscriptionFilter {
    /// The part of this filter that a server with `offer` can honour; the rest is left out, not
    /// false, and so is what taut does not know (SUB-02).
    #[must_use]
    pub fn honoured_by(&self, offer: &ServerCapabilities) -> Self {
        let both = |wanted: Option<bool>, offered: Option<bool>| {
            (wanted == Some(true) && offered == Some(true)).then_some(true)
        };
        let tools = offer.tools.as_ref().and_then(|tools| tools.list_changed);
        let prompts = offer.prompts.as_ref().and_then(|prompts| prompts.list_changed);
        let resources = offer.resources.as_ref();
        let subscribe = resources.and_then(|resources| resources.subscribe) == Some(true);
        let wanted = self.resource_subscriptions.as_ref().filter(|_| subscribe);
        Self {
            tools_list_changed: both(self.tools_list_changed, tools),
            prompts_list_changed: both(self.prompts_list_changed, prompts),
            resources_list_changed: both(
                self.resources_list_changed,
                resources.and_then(|resources| resources.list_changed),
            ),
            resource_subscriptions: wanted.cloned(),
            ..Self::new()
        }
    }

    /// Whether nothing is asked for.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let lists =
            [self.tools_list_changed, self.prompts_list_changed, self.resources_list_changed];
        let no_resource = self.resource_subscriptions.as_ref().is_none_or(Vec::is_empty);
        no_resource && self.extra.is_empty() && !lists.contains(&Some(true))
    }
}

wire_struct! {
    /// A filter on the wire: what a client asks with `subscriptions/listen` (SUB-11), and what a
    /// server says in `notifications/subscriptions/acknowledged`.
    pub struct SubscriptionParams(
        /// The filter.
        needs notifications: SubscriptionFilter = "notifications",
    ) {
        /// Open metadata.
        may meta: Meta = "_meta" when Meta::has_any;
    }

    /// What a notification says that has nothing to say: `notifications/initialized` and the
    /// list changes.
    #[derive(Default)]
    pub struct BareParams() {
        /// Open metadata.
        may meta: Meta = "_meta" when Meta::has_any;
    }
}

impl EmptyResult {
    /// How a server ends the subscription that `listen` opened (SUB-09).
    #[must_use]
    pub fn end_of_subscription(listen: Id) -> Self {
        Self::new().meta(Meta::new().with(meta_keys::SUBSCRIPTION_ID, listen))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::{
        ResourcesCapability, Revision, ServerCapabilities, ToolsCapability, WriteJson,
    };

    fn everything() -> SubscriptionFilter {
        SubscriptionFilter::new()
            .tools_list_changed(true)
            .prompts_list_changed(true)
            .resources_list_changed(true)
            .resource_subscriptions(["file:///a".to_owned()])
    }

    #[test]
    fn sub_02_what_a_server_cannot_honour_is_left_out() {
        let offer = ServerCapabilities::new()
            .tools(ToolsCapability::new().list_changed(true))
            .resources(ResourcesCapability::new().list_changed(true));
        let honoured = everything().honoured_by(&offer);
        let text = serde_json::to_string(&honoured).unwrap();
        assert_eq!(text, r#"{"toolsListChanged":true,"resourcesListChanged":true}"#);
        let subscribe = offer.resources(ResourcesCapability::new().subscribe(true));
        let honoured = everything().honoured_by(&subscribe);
        assert_eq!(honoured.resource_subscriptions, Some(vec!["file:///a".to_owned()]));
        assert!(everything().honoured_by(&ServerCapabilities::new()).is_empty());
    }

    #[test]
    fn sub_12_an_empty_filter_is_an_empty_object() {
        let params = SubscriptionParams::new(SubscriptionFilter::new());
        assert_eq!(serde_json::to_string(&params).unwrap(), r#"{"notifications":{}}"#);
        assert!(params.notifications.is_empty());
        assert!(!everything().is_empty());
    }

    #[test]
    fn sub_09_the_end_names_the_listen_request() {
        let end = EmptyResult::end_of_subscription("l-1".into());
        assert_eq!(
            serde_json::to_string(&end.at(Revision::MODERN)).unwrap(),
            concat!(
                r#"{"resultType":"complete","#,
                r#""_meta":{"io.modelcontextprotocol/subscriptionId":"l-1"}}"#
            )
        );
    }
}
