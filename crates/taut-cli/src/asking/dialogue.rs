//! A form on a terminal: asks field by field, asks again if a value does not fit, and shows all values
//! before they are sent.
//!
//! `forms/` decides what fits into a field; `desk.rs` is the editor.

use std::sync::Arc;

use serde_json::Value;
use taut::client::RequestContext;
use taut::types::{ElicitResult, JsonObject};

use super::Host;
use crate::cells::cut;
use crate::desk::{Complete, Line, Typed};
use crate::forms::{Field, Form, Kind, Mistake};
use crate::gate::escape;
use crate::output::{CYAN, DIM, YELLOW};

/// Characters of a value that are shown beside what is typed: it has to leave room for that.
const SHOWN: usize = 40;

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
    asking: &RequestContext,
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

/// Asks for one field until the value fits. The present value is shown in brackets, and Enter takes it.
async fn ask(host: &Host, field: &Field, before: Option<&Value>) -> Step {
    describe(host, field, before.is_some());
    let words = match before {
        Some(value) => format!("{} [{}]", field.label(), cut(&field.shown(value), SHOWN)),
        None => field.label().to_owned(),
    };
    loop {
        let line = Line {
            prompt: prompt(host, &words),
            complete: Some(choices(field)),
            remembered: false,
        };
        let typed = match host.desk().read(line).await {
            Typed::Line(typed) => typed,
            Typed::Interrupted => {
                crate::signals::interrupt().await;
                return Step::Cancel;
            }
            Typed::End => return Step::Cancel,
        };
        match (command(&typed), before) {
            (Some(step), _) => return step,
            (None, Some(value)) if typed.trim().is_empty() => {
                return Step::Value(Some(value.clone()));
            }
            _ => {}
        }
        // Nothing, where nothing is what Enter alone does not say; and a text that looks like one of
        // the words above.
        let text = match typed.strip_prefix("\\:") {
            Some(rest) => format!(":{rest}"),
            None if typed.trim() == ":empty" => String::new(),
            None => typed,
        };
        match field.read(&text) {
            Ok(value) => return Step::Value(value),
            Err(mistake) => complain(host, field, &text, &mistake),
        }
    }
}

/// Says what does not fit, with what was typed: the line is empty again.
fn complain(host: &Host, field: &Field, typed: &str, mistake: &Mistake) {
    let typed = cut(typed.trim(), SHOWN);
    let said = match mistake {
        // They say it themselves, or there is nothing to say.
        Mistake::Missing | Mistake::NoChoice { .. } => String::new(),
        _ => format!("{typed:?} does not fit: "),
    };
    let words = format!("{}: {said}{mistake}", field.label());
    host.note(&host.0.output.err.paint(YELLOW, format!("  {}", escape::line(&words))));
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
fn describe(host: &Host, field: &Field, filled: bool) {
    let err = host.0.output.err;
    let about = field.about().map(|about| format!("{about} ")).unwrap_or_default();
    let wanted = if field.choices().is_empty() { field.wanted() } else { several(field) };
    let optional = match (field.required, filled) {
        (true, _) => "",
        (false, true) => ", :empty leaves it out",
        (false, false) => ", may stay empty",
    };
    let note = err.paint(DIM, format!("({}{optional})", escape::line(&wanted)));
    host.note(&format!("  {}{note}", escape::line(&about)));
    for (at, choice) in field.choices().iter().enumerate() {
        let number = err.paint(CYAN, at + 1);
        host.note(&format!("    {number} {}", escape::line(&choice.shown())));
    }
}

fn several(field: &Field) -> String {
    match field.kind() {
        Kind::Several { .. } => "any of these, with commas between".to_owned(),
        _ => "one of these".to_owned(),
    }
}

/// Shows all that was filled in: ELI asks that it can be changed before it is sent.
async fn look_over(host: &Host, form: &Form, filled: &[Option<Value>]) -> Step {
    for (field, value) in form.fields.iter().zip(filled) {
        let shown = value.as_ref().map(|value| field.shown(value));
        let shown = shown.as_deref().map_or_else(|| "–".into(), escape::line);
        host.note(&format!("    {}: {shown}", escape::line(field.label())));
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
                crate::signals::interrupt().await;
                return Step::Cancel;
            }
            Typed::End => return Step::Cancel,
        }
    }
}

/// A prompt, painted.
pub(super) fn prompt(host: &Host, words: &str) -> String {
    format!("  {} › ", host.0.output.err.paint(CYAN, escape::line(words)))
}

/// Completes what there is to choose from; of several, the last one.
fn choices(field: &Field) -> Complete {
    let words: Vec<String> = match field.kind() {
        Kind::YesNo => vec!["yes".to_owned(), "no".to_owned()],
        _ => field.choices().iter().map(|c| escape::line(&c.shown()).into_owned()).collect(),
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
