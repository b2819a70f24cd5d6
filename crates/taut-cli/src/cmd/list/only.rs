//! `taut list --only NAME`: one thing that a server offers, whole.

use serde_json::Value;

use super::super::call::takes;
use super::{Offer, Row, resource_row, template_row};
use crate::arguments::closest;
use crate::output::{BOLD, Output};
use crate::problem::Problem;
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
            let schema = tool.input_schema.json().parse().unwrap_or(Value::Null);
            let about = tool.description.as_deref().or(tool.title.as_deref());
            all.push(one(&tool.name, about, &takes(&schema)));
        }
        for Row(name, kind, about) in self.resources.iter().flatten().map(resource_row) {
            all.push(one(&name, Some(&about), &kind));
        }
        for Row(name, kind, about) in self.templates.iter().flatten().map(template_row) {
            all.push(one(&name, Some(&about), &kind));
        }
        for prompt in self.prompts.iter().flatten() {
            let line = |argument: &taut::PromptArgument| {
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
