//! Every method of the protocol: its name, who sends it, and which revisions have it.
//!
//! The only place where a method's name is written down. Knows no params. Matrix sections 1, 2.

use super::revision::Revision;
use crate::rpc::Dialect;

/// Who sends a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sender {
    Client,
    Server,
    Both,
}

/// Whether a message wants an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MethodKind {
    Request,
    Notification,
}

macro_rules! methods {
    ($(
        $Variant:ident = $name:literal $Kind:ident $Sender:ident
        $(since $since:ident)? $(until $until:ident)? ;
    )*) => {
        /// A method of the core protocol.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub(crate) enum Method { $( $Variant, )* }

        impl Method {
            #[cfg(test)]
            pub(crate) const ALL: &[Self] = &[$( Self::$Variant, )*];

            /// The name on the wire.
            pub(crate) const fn as_str(self) -> &'static str {
                match self { $( Self::$Variant => $name, )* }
            }

            /// The method with this name; exact and case-sensitive (RPC-32).
            pub(crate) fn parse(name: &str) -> Option<Self> {
                match name { $( $name => Some(Self::$Variant), )* _ => None }
            }

            /// Request or notification.
            pub(crate) const fn kind(self) -> MethodKind {
                match self { $( Self::$Variant => MethodKind::$Kind, )* }
            }

            /// The first and the last revision that have it.
            const fn span(self) -> (Revision, Revision) {
                match self {
                    $( Self::$Variant => (
                        [$( Revision::$since, )? Revision::V2024_11_05][0],
                        [$( Revision::$until, )? Revision::MODERN][0],
                    ), )*
                }
            }

            const fn usual_sender(self) -> Sender {
                match self { $( Self::$Variant => Sender::$Sender, )* }
            }
        }
    };
}

methods! {
    Initialize = "initialize" Request Client until V2025_11_25;
    Discover = "server/discover" Request Client since V2026_07_28;
    Ping = "ping" Request Both until V2025_11_25;
    ListTools = "tools/list" Request Client;
    CallTool = "tools/call" Request Client;
    ListResources = "resources/list" Request Client;
    ListResourceTemplates = "resources/templates/list" Request Client;
    ReadResource = "resources/read" Request Client;
    Subscribe = "resources/subscribe" Request Client until V2025_11_25;
    Unsubscribe = "resources/unsubscribe" Request Client until V2025_11_25;
    Listen = "subscriptions/listen" Request Client since V2026_07_28;
    ListPrompts = "prompts/list" Request Client;
    GetPrompt = "prompts/get" Request Client;
    Complete = "completion/complete" Request Client;
    SetLevel = "logging/setLevel" Request Client until V2025_11_25;
    ListRoots = "roots/list" Request Server until V2025_11_25;
    CreateMessage = "sampling/createMessage" Request Server until V2025_11_25;
    Elicit = "elicitation/create" Request Server since V2025_06_18 until V2025_11_25;
    GetTask = "tasks/get" Request Both since V2025_11_25 until V2025_11_25;
    TaskResult = "tasks/result" Request Both since V2025_11_25 until V2025_11_25;
    ListTasks = "tasks/list" Request Both since V2025_11_25 until V2025_11_25;
    CancelTask = "tasks/cancel" Request Both since V2025_11_25 until V2025_11_25;
    Initialized = "notifications/initialized" Notification Client until V2025_11_25;
    Cancelled = "notifications/cancelled" Notification Both;
    Progress = "notifications/progress" Notification Both;
    Message = "notifications/message" Notification Server;
    ToolsChanged = "notifications/tools/list_changed" Notification Server;
    PromptsChanged = "notifications/prompts/list_changed" Notification Server;
    ResourcesChanged = "notifications/resources/list_changed" Notification Server;
    ResourceUpdated = "notifications/resources/updated" Notification Server;
    RootsChanged = "notifications/roots/list_changed" Notification Client until V2025_11_25;
    ElicitationComplete = "notifications/elicitation/complete" Notification Server
        since V2025_11_25 until V2025_11_25;
    TaskStatus = "notifications/tasks/status" Notification Both since V2025_11_25 until V2025_11_25;
    Acknowledged = "notifications/subscriptions/acknowledged" Notification Server since V2026_07_28;
}

/// What the engine must recognise of MCP, on either side.
pub(crate) const DIALECT: Dialect = Dialect {
    cancel: Method::Cancelled.as_str(),
    cancel_member: "requestId",
    cancel_is_answered: false,
    progress: Some(Method::Progress.as_str()),
    urgent: &[Method::Ping.as_str()],
    open_ended: &[Method::Listen.as_str()],
    // LIF-16, L14; LIF-09 for the probe: a server that is slow to see it must not see it withdrawn.
    firm: &[Method::Initialize.as_str(), Method::Discover.as_str()],
};

impl Method {
    /// Whether `revision` has this message on the wire (DEP-02, DEP-03, TSK-13).
    pub(crate) fn known_in(self, revision: Revision) -> bool {
        let (since, until) = self.span();
        since <= revision && revision <= until
    }

    /// Whether `side` may send it in `revision`.
    pub(crate) fn may_come_from(self, side: Sender, revision: Revision) -> bool {
        let sender = match self {
            // PRG-11: only servers send progress once requests go one way (RPC-36).
            Self::Progress if revision.is_modern() => Sender::Server,
            // CAN-11: a modern server ends a subscription with it, so both stay.
            _ => self.usual_sender(),
        };
        self.known_in(revision) && (sender == Sender::Both || sender == side)
    }

    /// Whether a modern server asks it inside `input_required` instead of on the wire (MRTR-03).
    pub(crate) fn is_embedded_in_modern(self) -> bool {
        matches!(self, Self::ListRoots | Self::CreateMessage | Self::Elicit)
    }

    /// Whether a modern server may answer it with `input_required` (MRTR-01).
    pub(crate) fn may_require_input(self) -> bool {
        matches!(self, Self::CallTool | Self::GetPrompt | Self::ReadResource)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_method_has_a_name_of_its_own_and_is_found_by_it() {
        let names: HashSet<_> = Method::ALL.iter().map(|method| method.as_str()).collect();
        assert_eq!(names.len(), Method::ALL.len());
        for &method in Method::ALL {
            assert_eq!(Method::parse(method.as_str()), Some(method));
            let prefixed = method.as_str().starts_with("notifications/");
            assert_eq!(prefixed, method.kind() == MethodKind::Notification);
        }
        assert_eq!(Method::parse("Tools/List"), None);
    }

    #[test]
    fn dep_02_and_03_what_the_modern_revision_removed_is_unknown_there() {
        let removed: Vec<_> = Method::ALL
            .iter()
            .filter(|m| m.known_in(Revision::LATEST_LEGACY) && !m.known_in(Revision::MODERN))
            .map(|m| m.as_str())
            .collect();
        assert_eq!(
            removed,
            [
                "initialize",
                "ping",
                "resources/subscribe",
                "resources/unsubscribe",
                "logging/setLevel",
                "roots/list",
                "sampling/createMessage",
                "elicitation/create",
                "tasks/get",
                "tasks/result",
                "tasks/list",
                "tasks/cancel",
                "notifications/initialized",
                "notifications/roots/list_changed",
                "notifications/elicitation/complete",
                "notifications/tasks/status",
            ]
        );
    }

    #[test]
    fn the_number_of_methods_per_revision_is_the_matrix_column() {
        let count = |at: Revision| Method::ALL.iter().filter(|method| method.known_in(at)).count();
        assert_eq!(Revision::ALL.map(count), [24, 24, 25, 31, 18]);
    }

    #[test]
    fn rpc_36_a_modern_server_sends_no_request_of_its_own() {
        for &method in Method::ALL.iter().filter(|m| m.kind() == MethodKind::Request) {
            assert!(!method.may_come_from(Sender::Server, Revision::MODERN), "{method:?}");
        }
        assert!(Method::CreateMessage.may_come_from(Sender::Server, Revision::LATEST_LEGACY));
        assert!(!Method::Progress.may_come_from(Sender::Client, Revision::MODERN));
        assert!(Method::Cancelled.may_come_from(Sender::Server, Revision::MODERN));
    }
}
