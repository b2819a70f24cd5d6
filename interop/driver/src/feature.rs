//! The columns of the table: what is tried in each pairing, and which revisions have it.

use serde::{Deserialize, Serialize};

macro_rules! features {
    ($($Name:ident = $text:literal: $about:literal,)*) => {
        /// What is tried.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum Feature { $(#[serde(rename = $text)] $Name,)* }

        impl Feature {
            pub const ALL: &[Self] = &[$(Self::$Name,)*];

            pub fn name(self) -> &'static str {
                match self { $(Self::$Name => $text,)* }
            }

            pub fn about(self) -> &'static str {
                match self { $(Self::$Name => $about,)* }
            }
        }
    };
}

features! {
    Connect = "connect": "handshake or probe, and the revision that was expected",
    List = "list": "tools are listed",
    Paging = "paging": "a list that comes in pages is read to its end",
    Call = "call": "a tool is called and answers",
    Structured = "structured": "a structured result",
    Error = "error": "a tool's own failure, and a tool that does not exist",
    Progress = "progress": "reports of progress, rising",
    Cancel = "cancel": "a call withdrawn while it runs; the server sees it, the session lives on",
    Log = "log": "log notifications at the level asked for",
    Resources = "resources": "resources listed and read",
    Template = "template": "resource templates listed and read",
    Subscribe = "subscribe": "told of a change of one resource",
    Prompts = "prompts": "prompts listed and filled in",
    Completion = "completion": "suggestions for a prompt's and a template's argument",
    Ask = "ask": "the server asks the user with a form",
    Sample = "sample": "the server asks the client's model",
    Roots = "roots": "the server asks for the client's folders",
    Changed = "changed": "told that the list of tools has changed; the new tool works",
    Unicode = "unicode": "every kind of character there and back",
    Mib1 = "mib1": "1 MiB there and back",
    Mib10 = "mib10": "10 MiB there and back",
    Hundred = "hundred": "100 calls at once, each with its own answer",
    InFlight = "in-flight": "closed with calls running: both ends end, nothing is left",
    Kill = "kill": "either end killed: the other notices at once, nothing is left",
}

impl Feature {
    /// Whether this revision of the protocol has it.
    pub fn is_in(self, revision: &str) -> bool {
        match self {
            Self::Structured | Self::Ask => revision >= "2025-06-18",
            _ => true,
        }
    }
}
