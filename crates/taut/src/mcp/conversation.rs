//! Whether a conversation with a model keeps the order that tools need. SAM-06.
//!
//! Knows the order of messages; must not know who sends them, or to whom.

use std::fmt;

use super::sampling::{SamplingContent, SamplingMessage};

/// What is wrong with a conversation, and in which message, counted from 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Disorder {
    /// Results of tools stand beside something else.
    Mixed { at: usize },
    /// A result names a tool call that the message before does not have.
    Stray { at: usize, id: String },
    /// A tool call that the next message does not answer with its result.
    Unanswered { at: usize, id: String },
}

impl fmt::Display for Disorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mixed { at } => {
                write!(f, "messages[{at}] has results of tools beside other content")
            }
            Self::Stray { at, id } => {
                write!(f, "messages[{at}] has a result for {id:?}, which nothing asks for")
            }
            Self::Unanswered { at, id } => {
                write!(f, "messages[{at}] uses a tool, and what follows has no result for {id:?}")
            }
        }
    }
}

/// The first thing that is out of order, if there is one.
pub(crate) fn disorder(messages: &[SamplingMessage]) -> Option<Disorder> {
    let mut open: Vec<&str> = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        let mut results = 0;
        for block in &message.content.0 {
            if let SamplingContent::ToolResult(result) = block {
                results += 1;
                let id = result.tool_use_id.as_str();
                let Some(place) = open.iter().position(|open| *open == id) else {
                    return Some(Disorder::Stray { at, id: id.to_owned() });
                };
                open.swap_remove(place);
            }
        }
        if results > 0 && results < message.content.0.len() {
            return Some(Disorder::Mixed { at });
        }
        if let Some(id) = open.first() {
            return Some(Disorder::Unanswered { at: at - 1, id: (*id).to_owned() });
        }
        open.extend(message.content.0.iter().filter_map(|block| match block {
            SamplingContent::ToolUse(tool) => Some(tool.id.as_str()),
            _ => None,
        }));
    }
    let id = (*open.first()?).to_owned();
    Some(Disorder::Unanswered { at: messages.len() - 1, id })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::{Content, JsonObject, ToolResult, ToolUse};

    fn uses(ids: &[&str]) -> SamplingMessage {
        let tool = |id: &&str| ToolUse::new(*id, "t", JsonObject::new()).into();
        SamplingMessage::assistant(ids.iter().map(tool).collect::<Vec<SamplingContent>>())
    }

    fn results(ids: &[&str]) -> SamplingMessage {
        let result = |id: &&str| ToolResult::new(*id, [Content::text("x")]).into();
        SamplingMessage::user(ids.iter().map(result).collect::<Vec<SamplingContent>>())
    }

    #[test]
    fn sam_06_results_stand_alone_and_answer_each_use() {
        let hi = || SamplingMessage::user("hi");
        let fine = [hi(), uses(&["a", "b"]), results(&["b", "a"]), uses(&["a"]), results(&["a"])];
        assert_eq!(disorder(&fine), None);
        assert_eq!(disorder(&[]), None);
        let id = || "a".to_owned();
        let cases = [
            (vec![uses(&["a"])], Disorder::Unanswered { at: 0, id: id() }),
            (vec![hi(), uses(&["a"]), hi()], Disorder::Unanswered { at: 1, id: id() }),
            (vec![uses(&["b", "a"]), results(&["b"])], Disorder::Unanswered { at: 0, id: id() }),
            (vec![results(&["a"])], Disorder::Stray { at: 0, id: id() }),
            (
                vec![uses(&["a"]), results(&["a"]), results(&["a"])],
                Disorder::Stray { at: 2, id: id() },
            ),
        ];
        for (messages, wanted) in cases {
            assert_eq!(disorder(&messages), Some(wanted));
        }
        let mut mixed = results(&["a"]);
        mixed.content.0.push(SamplingContent::text("and more"));
        assert_eq!(disorder(&[uses(&["a"]), mixed]), Some(Disorder::Mixed { at: 1 }));
    }
}
