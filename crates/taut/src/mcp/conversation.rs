//! Whether a conversation with a model keeps the order that tools need. SAM-06.
//!
//! Knows the order of messages; must not know who sends them, or to whom.

use super::sampling::{SamplingContent, SamplingMessage};

/// The first thing that is out of order and in which message, counted from 0, if there is one.
pub(crate) fn disorder(messages: &[SamplingMessage]) -> Option<String> {
    let unanswered = |at: usize, id: &str| {
        format!("messages[{at}] uses a tool, and what follows has no result for {id:?}")
    };
    let mut open: Vec<&str> = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        let mut results = 0;
        for block in &message.content.0 {
            if let SamplingContent::ToolResult(result) = block {
                results += 1;
                let id = result.tool_use_id.as_str();
                let Some(place) = open.iter().position(|open| *open == id) else {
                    let stray = format!("a result for {id:?}, which nothing asks for");
                    return Some(format!("messages[{at}] has {stray}"));
                };
                open.swap_remove(place);
            }
        }
        if results > 0 && results < message.content.0.len() {
            return Some(format!("messages[{at}] has results of tools beside other content"));
        }
        if let Some(id) = open.first() {
            return Some(unanswered(at - 1, id));
        }
        open.extend(message.content.0.iter().filter_map(|block| match block {
            SamplingContent::ToolUse(tool) => Some(tool.id.as_str()),
            _ => None,
        }));
    }
    open.first().map(|id| unanswered(messages.len() - 1, id))
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
        let unanswered = "uses a tool, and what follows has no result for \"a\"";
        let stray = "has a result for \"a\", which nothing asks for";
        let cases = [
            (vec![uses(&["a"])], 0, unanswered),
            (vec![hi(), uses(&["a"]), hi()], 1, unanswered),
            (vec![uses(&["b", "a"]), results(&["b"])], 0, unanswered),
            (vec![results(&["a"])], 0, stray),
            (vec![uses(&["a"]), results(&["a"]), results(&["a"])], 2, stray),
        ];
        for (messages, at, wanted) in cases {
            assert_eq!(disorder(&messages), Some(format!("messages[{at}] {wanted}")));
        }
        let mut mixed = results(&["a"]);
        mixed.content.0.push(SamplingContent::text("and more"));
        let wanted = "messages[1] has results of tools beside other content";
        assert_eq!(disorder(&[uses(&["a"]), mixed]).as_deref(), Some(wanted));
    }
}
