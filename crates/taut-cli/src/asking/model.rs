//! A question to a model, where a person is the model: shown, and answered by typing (SAM-09).

use taut::types::{
    CreateMessageParams, CreateMessageResult, SamplingContent, SamplingMessage, StopReason,
};
use taut::{Reject, Role, client::RequestContext};

use super::Host;
use super::dialogue::prompt;
use crate::desk::{Line, Typed};
use crate::output::{DIM, size};

/// Shows the conversation and takes the model's part of it from the keys.
pub(super) async fn speak(
    host: &Host,
    asking: &RequestContext,
    asked: &CreateMessageParams,
) -> Result<CreateMessageResult, Reject> {
    host.heading(asking, "asks a model", "");
    lines(asked).iter().for_each(|line| host.say(&format!("  {line}")));
    let keys = "  you are the model: an empty line ends the answer, :decline says no";
    host.note(&host.0.output.err.paint(DIM, keys));
    let mut typed: Vec<String> = Vec::new();
    loop {
        let line = Line { prompt: prompt(host, "answer"), ..Line::default() };
        match host.desk().read(line).await {
            Typed::Line(text) if text.is_empty() && !typed.is_empty() => {
                return Ok(spoken(&typed.join("\n"), "a person"));
            }
            Typed::Line(text) if text.is_empty() => host.note("  say something, or :decline"),
            Typed::Line(text) if matches!(text.trim(), ":decline" | ":cancel") => {
                return Err(Reject::by_user());
            }
            Typed::Line(text) => typed.push(text),
            Typed::Interrupted => {
                crate::signals::interrupt().await;
                return Err(Reject::by_user());
            }
            Typed::End => return Err(Reject::by_user()),
        }
    }
}

/// What the model said.
pub(super) fn spoken(text: &str, model: &str) -> CreateMessageResult {
    CreateMessageResult::new(Role::Assistant, text, model).stop_reason(StopReason::EndTurn)
}

/// The conversation, line by line.
pub(super) fn lines(asked: &CreateMessageParams) -> Vec<String> {
    let mut lines = Vec::new();
    let mut put = |who: &str, text: &str| {
        let mut first = true;
        for line in text.lines() {
            let lead = if first { format!("{who}: ") } else { "  ".to_owned() };
            lines.push(format!("{lead}{line}"));
            first = false;
        }
    };
    if let Some(system) = &asked.system_prompt {
        put("system", system);
    }
    for SamplingMessage { role, content, .. } in &asked.messages {
        for block in &content.0 {
            put(role.as_str(), &told(block));
        }
    }
    lines.push(format!("(at most {} tokens)", asked.max_tokens));
    lines
}

fn told(block: &SamplingContent) -> String {
    // Four characters of base64 are three bytes.
    let bytes = |data: &str| size(data.len() / 4 * 3);
    match block {
        SamplingContent::Text(text) => text.text.clone(),
        SamplingContent::Image(image) => format!("[{}, {}]", image.mime_type, bytes(&image.data)),
        SamplingContent::Audio(audio) => format!("[{}, {}]", audio.mime_type, bytes(&audio.data)),
        other => serde_json::to_string(other).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conversation_is_shown_with_who_says_what() {
        let picture = taut::types::ImageContent::new("AAAA".repeat(100), "image/png");
        let messages = [
            SamplingMessage::user("one\ntwo"),
            SamplingMessage::assistant("yes?"),
            SamplingMessage::user(SamplingContent::from(picture)),
        ];
        let asked = CreateMessageParams::new(messages, 50u64).system_prompt("be brief");
        let shown = [
            "system: be brief",
            "user: one",
            "  two",
            "assistant: yes?",
            "user: [image/png, 300 bytes]",
            "(at most 50 tokens)",
        ];
        assert_eq!(lines(&asked), shown);
    }
}
