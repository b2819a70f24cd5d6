//! `taut list --only NAME`: one thing that a server offers, whole.

use serde_json::Value;
use taut::Tool;

use super::{Offer, Row, resource_row, template_row};
use crate::arguments::closest;
use crate::output::{BOLD, Output};
use crate::problem::Problem;
use crate::schema::{Schema, fields};
use crate::sent::Sent;

/// Leaves out all but those of one name, as they are read and as they came.
fn keep<T>(
    (items, sent): (&mut Option<Vec<T>>, &mut Option<Vec<Sent>>),
    only: &str,
    names: &mut Vec<String>,
    name: fn(&T) -> &String,
) {
    let (Some(all), Some(came)) = (items.take(), sent.take()) else { return };
    names.extend(all.iter().map(|item| name(item).clone()));
    let kept: (Vec<T>, Vec<Sent>) =
        all.into_iter().zip(came).filter(|(item, _)| name(item) == only).unzip();
    if !kept.0.is_empty() {
        (*items, *sent) = (Some(kept.0), Some(kept.1));
    }
}

/// What a tool takes, gives and promises, whole.
pub(crate) fn about_tool(tool: &Tool) -> String {
    let read = |schema: &taut::types::Schema| schema.json().parse().unwrap_or(Value::Null);
    let mut text = String::new();
    let mut section = |heading: &str, none: &str, lines: String| {
        text += &if lines.is_empty() { none.to_owned() } else { format!("{heading}\n{lines}") };
    };
    section("it takes:", "it takes no arguments\n", fields(Schema::of(&read(&tool.input_schema))));
    if let Some(schema) = &tool.output_schema {
        section("it returns:", "it returns structured data\n", fields(Schema::of(&read(schema))));
    }
    let Some(hints) = &tool.annotations else { return text };
    let says = [
        (hints.read_only_hint, "only reads", "changes things"),
        (hints.destructive_hint, "may destroy", "destroys nothing"),
        (hints.idempotent_hint, "the same again changes nothing more", "each call counts"),
        (hints.open_world_hint, "reaches beyond itself", "reaches nothing beyond itself"),
    ];
    let says: Vec<&str> = says
        .iter()
        .filter_map(|(hint, yes, no)| hint.map(|hint| if hint { *yes } else { *no }))
        .collect();
    if !says.is_empty() {
        text += &format!("it says of itself: {}\n", says.join(", "));
    }
    text
}

impl Offer {
    /// Leaves out all but those of one name; there has to be one.
    pub(super) fn keep(&mut self, only: &str) -> Result<(), Problem> {
        let mut names: Vec<String> = Vec::new();
        let sent = &mut self.sent;
        keep((&mut self.tools, &mut sent.tools), only, &mut names, |tool| &tool.name);
        keep((&mut self.resources, &mut sent.resources), only, &mut names, |one| &one.uri);
        keep((&mut self.templates, &mut sent.templates), only, &mut names, |one| &one.uri_template);
        keep((&mut self.prompts, &mut sent.prompts), only, &mut names, |prompt| &prompt.name);
        if names.iter().any(|name| name == only) {
            return Ok(());
        }
        let meant = closest(only, names.iter().map(String::as_str));
        let meant = meant.map(|meant| format!("; did you mean {meant}?")).unwrap_or_default();
        Err(Problem::Usage {
            what: format!("the server has no {only:?}{meant}\nit has: {}", names.join(", ")),
            next: None,
        })
    }

    /// Each with all that it says about itself.
    pub(super) fn whole(&self, output: &Output) -> String {
        let out = output.out;
        let one = |name: &str, about: Option<&str>, more: &str| {
            let mut text = format!("{}\n", out.paint(BOLD, out.line(name)));
            for part in [about.unwrap_or_default(), more] {
                let part = part.trim_end();
                text +=
                    &if part.is_empty() { String::new() } else { format!("{}\n", out.text(part)) };
            }
            text
        };
        let mut all = Vec::new();
        for tool in self.tools.iter().flatten() {
            let about = tool.description.as_deref().or(tool.title.as_deref());
            all.push(one(&tool.name, about, &about_tool(tool)));
        }
        for Row(name, kind, about) in self.resources.iter().flatten().map(resource_row) {
            all.push(one(&name, Some(&about), &kind));
        }
        for Row(name, kind, about) in self.templates.iter().flatten().map(template_row) {
            all.push(one(&name, Some(&about), &kind));
        }
        for prompt in self.prompts.iter().flatten() {
            let line = |argument: &taut::types::PromptArgument| {
                let needed = if argument.required == Some(true) { "" } else { " (optional)" };
                let about = argument.description.as_deref().unwrap_or_default();
                format!("  {}{needed}  {about}", argument.name).trim_end().to_owned()
            };
            let lines: Vec<String> = prompt.arguments.iter().flatten().map(line).collect();
            let takes = match lines.as_slice() {
                [] => "it takes no arguments".to_owned(),
                lines => format!("it takes:\n{}", lines.join("\n")),
            };
            let about = prompt.description.as_deref().or(prompt.title.as_deref());
            all.push(one(&prompt.name, about, &takes));
        }
        all.join("\n")
    }
}
