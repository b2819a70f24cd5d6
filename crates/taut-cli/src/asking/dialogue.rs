//! A form on a terminal: field by field, asked again kindly, looked over before it is sent.
//!
//! Knows the words and keys. What fits into a field is `forms/`; the editor is `desk.rs`.

use std::sync::Arc;

use serde_json::Value;
use taut::{Asking, ElicitResult, JsonObject};

use super::Host;
use crate::desk::{Complete, Line, Typed};
use crate::forms::{Field, Form, Kind};
use crate::output::{CYAN, DIM, YELLOW};
use crate::sanitize;

/// What somebody did at one field.
enum Step {
    Value(Option<Value>),
    Back,
    Decline,
    Cancel,
}

/// Asks for every field in turn.
pub(super) async fn fill_in(
    host: &Host,
    asking: &Asking,
    message: &str,
    form: &Form,
) -> ElicitResult {
    host.heading(asking, "asks", message);
    let err = host.0.output.err;
    let keys =
        "  :back goes back, :decline says no, :cancel or Ctrl-D goes away, Ctrl-C ends the call";
    host.note(&err.paint(DIM, keys));
    let mut filled: Vec<Option<Value>> =
        form.fields.iter().map(|field| field.default.clone()).collect();
    let mut at = 0;
    loop {
        while let Some(field) = form.fields.get(at) {
            match ask(host, field, filled[at].as_ref()).await {
                Step::Value(value) => {
                    filled[at] = value;
                    at += 1;
                }
                Step::Back => at = at.saturating_sub(1),
                Step::Decline => return ElicitResult::decline(),
                Step::Cancel => return ElicitResult::cancel(),
            }
        }
        // One field has been looked at already.
        if form.fields.len() == 1 {
            return ElicitResult::accept(content(form, &filled));
        }
        match look_over(host, form, &filled).await {
            Step::Value(_) => return ElicitResult::accept(content(form, &filled)),
            Step::Back => at = 0,
            Step::Decline => return ElicitResult::decline(),
            Step::Cancel => return ElicitResult::cancel(),
        }
    }
}

fn content(form: &Form, filled: &[Option<Value>]) -> JsonObject {
    let pairs = form.fields.iter().zip(filled);
    pairs.filter_map(|(field, value)| Some((field.name.clone(), value.clone()?))).collect()
}

/// Asks for one field until it fits.
async fn ask(host: &Host, field: &Field, before: Option<&Value>) -> Step {
    describe(host, field);
    let mut initial = before.map(|value| field.shown(value)).unwrap_or_default();
    loop {
        let line = Line {
            prompt: prompt(host, field.label()),
            // What a server has put there is shown by the editor, which takes it as it is.
            initial: sanitize::line(&initial).into_owned(),
            complete: Some(choices(field)),
            remembered: false,
        };
        let typed = match host.desk().read(line).await {
            Typed::Line(typed) => typed,
            Typed::Interrupted => {
                crate::session::interrupt();
                return Step::Cancel;
            }
            Typed::End => return Step::Cancel,
        };
        // Where nothing can stand there to begin with, nothing typed means what would have.
        let typed = if typed.is_empty() && !host.desk().prefills { initial.clone() } else { typed };
        // Also behind what stands there to begin with: who wants to leave need not tidy up first.
        let behind = typed.strip_prefix(initial.as_str()).unwrap_or(&typed);
        if let Some(step) = command(behind).or_else(|| command(&typed)) {
            return step;
        }
        // A text that looks like one of the words above.
        let text =
            typed.strip_prefix("\\:").map_or_else(|| typed.clone(), |rest| format!(":{rest}"));
        match field.read(&text) {
            Ok(value) => return Step::Value(value),
            Err(mistake) => {
                let words = format!("  {}: {mistake}", field.label());
                let err = host.0.output.err;
                host.note(&err.paint(YELLOW, format!("  {}", sanitize::line(words.trim()))));
                // Words are mended; a wrong choice is only in the way of the right one.
                let one_of_few = matches!(field.kind, Kind::One(_) | Kind::YesNo);
                initial = if one_of_few { String::new() } else { typed };
            }
        }
    }
}

fn command(typed: &str) -> Option<Step> {
    match typed.trim() {
        ":back" => Some(Step::Back),
        ":decline" => Some(Step::Decline),
        ":cancel" => Some(Step::Cancel),
        _ => None,
    }
}

/// What a field is about, and what there is to choose from.
fn describe(host: &Host, field: &Field) {
    let err = host.0.output.err;
    let about = field.about().map(|about| format!("{about} ")).unwrap_or_default();
    let wanted = if field.choices().is_empty() { field.wanted() } else { several(field) };
    let optional = if field.required { "" } else { ", may stay empty" };
    let note = err.paint(DIM, format!("({}{optional})", sanitize::line(&wanted)));
    host.note(&format!("  {}{note}", sanitize::line(&about)));
    for (at, choice) in field.choices().iter().enumerate() {
        let number = err.paint(CYAN, at + 1);
        host.note(&format!("    {number} {}", sanitize::line(choice.shown())));
    }
}

fn several(field: &Field) -> String {
    match &field.kind {
        Kind::Several { .. } => "any of these, with commas between".to_owned(),
        _ => "one of these".to_owned(),
    }
}

/// Shows all that was filled in: ELI asks that it can be changed before it is sent.
async fn look_over(host: &Host, form: &Form, filled: &[Option<Value>]) -> Step {
    for (field, value) in form.fields.iter().zip(filled) {
        let shown = value.as_ref().map(|value| field.shown(value));
        let shown = shown.as_deref().map_or_else(|| "–".into(), sanitize::line);
        host.note(&format!("    {}: {shown}", sanitize::line(field.label())));
    }
    loop {
        let line = Line { prompt: prompt(host, "send it? [yes/no/edit]"), ..Line::default() };
        match host.desk().read(line).await {
            Typed::Line(typed) => match typed.trim().to_lowercase().as_str() {
                "" | "y" | "yes" => return Step::Value(None),
                "n" | "no" | ":decline" => return Step::Decline,
                "e" | "edit" | ":back" => return Step::Back,
                ":cancel" => return Step::Cancel,
                _ => host.note("  yes sends it, no declines, edit goes through it again"),
            },
            Typed::Interrupted => {
                crate::session::interrupt();
                return Step::Cancel;
            }
            Typed::End => return Step::Cancel,
        }
    }
}

/// A prompt, measured and painted.
pub(super) fn prompt(host: &Host, words: &str) -> (String, String) {
    let words = sanitize::line(words);
    let plain = format!("  {words} › ");
    let painted = format!("  {} › ", host.0.output.err.paint(CYAN, &words));
    (plain, painted)
}

/// Completes what there is to choose from; of several, the last one.
fn choices(field: &Field) -> Complete {
    let words: Vec<String> = match &field.kind {
        Kind::YesNo => vec!["yes".to_owned(), "no".to_owned()],
        _ => field.choices().iter().map(|c| sanitize::line(c.shown()).into_owned()).collect(),
    };
    Arc::new(move |typed, at| {
        let before = &typed[..at];
        let start = before.rfind(',').map_or(0, |comma| comma + 1);
        let start = start + before[start..].len() - before[start..].trim_start().len();
        let begun = before[start..].to_lowercase();
        let fits = |word: &&String| word.to_lowercase().starts_with(&begun);
        (start, words.iter().filter(fits).cloned().collect())
    })
}
