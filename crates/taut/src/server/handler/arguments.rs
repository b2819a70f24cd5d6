//! The arguments of a call, read into their type, and what a model is told if they do not fit.
//!
//! Arguments that fit are read once, straight from the text. Only those that do not are looked at
//! again: models write `10.0` for a whole number and hosts `null` for what was left out, and both are
//! taken. Then everything that is wrong is told at once, in the words of JSON.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::json::JsonRef;
use crate::rpc::without_place;

/// Longer arguments are not looked at again: the first thing that is wrong is told.
const LONGEST_AGAIN: usize = 1 << 20;

/// So many things that are wrong are told, at most.
const MOST_PROBLEMS: usize = 16;

/// So deep in objects is looked for what is wrong.
const DEEPEST: usize = 8;

/// So many characters of a text that is wrong are quoted.
const QUOTED: usize = 64;

/// How serde begins to say that a field is missing.
const MISSING: &str = "missing field `";

/// Reads the arguments of a call; absent ones are `{}` (TOL-26). `required` names the members that the
/// schema requires.
///
/// # Errors
/// What is wrong, each with its field.
pub(super) fn read<A: DeserializeOwned>(
    raw: Option<JsonRef<'_>>,
    required: impl FnOnce() -> Vec<String>,
) -> Result<A, String> {
    let text = raw.map_or("{}", JsonRef::text);
    serde_json::from_str(text).or_else(|error| {
        let first = || words(without_place(&error.to_string()), "");
        if text.len() > LONGEST_AGAIN {
            return Err(first());
        }
        let Ok(mut value) = serde_json::from_str::<Value>(text) else { return Err(first()) };
        whole_numbers(&mut value);
        if let Ok(arguments) = read_again(&value) {
            return Ok(arguments);
        }
        let Value::Object(members) = value else { return Err(first()) };
        let mut given = members.clone();
        given.retain(|_, member| !member.is_null());
        if let Ok(arguments) = read_again(&Value::Object(given)) {
            return Ok(arguments);
        }
        let mut problems = Vec::new();
        look_into::<A>(&members, &mut Vec::new(), &mut problems);
        // A type that checks by itself has words of its own for what is missing.
        if !problems.is_empty() || error.to_string().starts_with(MISSING) {
            let missing = required().into_iter().filter(|name| !members.contains_key(name));
            problems.extend(missing.map(|name| format!("`{name}` is missing")));
        }
        problems.truncate(MOST_PROBLEMS);
        Err(if problems.is_empty() { first() } else { problems.join("; ") })
    })
}

/// By way of text, as the first time: some types read nothing else.
fn read_again<A: DeserializeOwned>(value: &Value) -> Result<A, serde_json::Error> {
    serde_json::from_str(&value.to_string())
}

/// Makes `10.0` a `10`, everywhere.
fn whole_numbers(value: &mut Value) {
    match value {
        Value::Number(number) => {
            // Every whole number below this can be told from its neighbours.
            const EXACT: f64 = 9_007_199_254_740_992.0;
            if let Some(float) = number.as_f64().filter(|_| number.is_f64())
                && float.fract() == 0.0
                && float.abs() < EXACT
            {
                #[allow(clippy::cast_possible_truncation, reason = "looked at just before")]
                let whole = float as i64;
                *value = whole.into();
            }
        }
        Value::Array(items) => items.iter_mut().for_each(whole_numbers),
        Value::Object(members) => members.values_mut().for_each(whole_numbers),
        _ => {}
    }
}

/// Reads each member alone: what is wrong with it cannot be hidden by another. `path` leads to the
/// object.
fn look_into<A: DeserializeOwned>(
    members: &Map<String, Value>,
    path: &mut Vec<String>,
    problems: &mut Vec<String>,
) {
    for (name, member) in members {
        if problems.len() >= MOST_PROBLEMS {
            return;
        }
        path.push(name.clone());
        if let Some(problem) = problem_at::<A>(path, member) {
            let before = problems.len();
            if let Value::Object(inner) = member
                && path.len() < DEEPEST
            {
                look_into::<A>(inner, path, problems);
            }
            if problems.len() == before {
                problems.push(problem);
            }
        }
        path.pop();
    }
}

/// What is wrong with the value at `path`, or in it, if there were nothing else.
fn problem_at<A: DeserializeOwned>(path: &[String], value: &Value) -> Option<String> {
    let alone = path
        .iter()
        .rev()
        .fold(value.clone(), |inner, name| Value::Object(Map::from_iter([(name.clone(), inner)])));
    let error = serde_path_to_error::deserialize::<_, A>(&alone).err()?;
    // What is wrong further out is missing there, because everything else was left out.
    let inside = error.path().iter().count() >= path.len();
    inside.then(|| words(&error.inner().to_string(), &error.path().to_string()))
}

/// What serde says, in the words of JSON, with the place before it.
fn words(error: &str, path: &str) -> String {
    if let Some(name) = error.strip_prefix(MISSING).and_then(|rest| rest.split('`').next()) {
        let dot = if path.is_empty() { "" } else { "." };
        return format!("`{path}{dot}{name}` is missing");
    }
    let unfit = || {
        let (got, wanted) = error
            .strip_prefix("invalid type: ")
            .or_else(|| error.strip_prefix("invalid value: "))?
            .rsplit_once(", expected ")?;
        Some(format!("must be {}, not {}", kind(wanted), found(got)))
    };
    let unknown = || {
        let (got, wanted) = error.strip_prefix("unknown variant ")?.split_once(", expected ")?;
        Some(format!("must be {wanted}, not {}", cut(got)))
    };
    // A struct may be read from an array, but no schema says so.
    let array = || {
        let (_, wanted) =
            error.strip_prefix("invalid length ")?.split_once(", expected struct ")?;
        wanted.contains(" element").then(|| "must be an object, not an array".to_owned())
    };
    let problem = unfit().or_else(unknown).or_else(array).unwrap_or_else(|| cut(error));
    if path.is_empty() { problem } else { format!("`{path}`: {problem}") }
}

/// What was wanted: types of Rust as types of JSON.
fn kind(wanted: &str) -> String {
    let from = |least: i128, most: i128| format!("a whole number from {least} to {most}");
    match wanted {
        "u8" => from(0, u8::MAX.into()),
        "u16" => from(0, u16::MAX.into()),
        "u32" => from(0, u32::MAX.into()),
        "i8" => from(i8::MIN.into(), i8::MAX.into()),
        "i16" => from(i16::MIN.into(), i16::MAX.into()),
        "i32" => from(i32::MIN.into(), i32::MAX.into()),
        "u64" | "u128" | "usize" => "a whole number, 0 or more".to_owned(),
        "i64" | "i128" | "isize" => "a whole number".to_owned(),
        "f32" | "f64" => "a number".to_owned(),
        "a sequence" => "an array".to_owned(),
        "a map" => "an object".to_owned(),
        "string or map" => "a string or an object".to_owned(),
        "unit" => "null".to_owned(),
        "a character" => "a string of one character".to_owned(),
        other if other.starts_with("struct ") => "an object".to_owned(),
        other if other.starts_with("tuple") || other.starts_with("a tuple") => {
            "an array".to_owned()
        }
        other => other.to_owned(),
    }
}

/// What was there instead.
fn found(got: &str) -> String {
    if let Some(text) = got.strip_prefix("integer ").or_else(|| got.strip_prefix("floating point "))
    {
        return format!("the number {}", text.trim_matches('`'));
    }
    if let Some(text) = got.strip_prefix("boolean ") {
        return text.trim_matches('`').to_owned();
    }
    match got {
        "sequence" => "an array".to_owned(),
        "map" => "an object".to_owned(),
        _ if got.starts_with("string ") => format!("the {}", cut(got)),
        _ => cut(got),
    }
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(QUOTED + "string ".len()) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
