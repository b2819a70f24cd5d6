//! Whether two JSON values are the same, and where they are not.
//!
//! Pure. A mask in what was recorded stands for anything; paths can be left out.

use std::fmt;

use serde_json::Value;

use crate::ours::MASK;

/// A path that is not compared: names and positions with `/` before each, `*` for any of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ignore(Vec<String>);

impl Ignore {
    /// Reads a path such as `/result/content/*/text`.
    ///
    /// # Errors
    ///
    /// If it does not begin with a slash, in words.
    pub fn parse(text: &str) -> Result<Self, String> {
        let Some(rest) = text.strip_prefix('/') else {
            return Err(format!("a path begins with /, such as /result/time; this is {text:?}"));
        };
        let part = |part: &str| part.replace("~1", "/").replace("~0", "~");
        Ok(Self(rest.split('/').map(part).collect()))
    }

    fn covers(&self, path: &[String]) -> bool {
        self.0.len() == path.len()
            && self.0.iter().zip(path).all(|(own, part)| own == "*" || own == part)
    }
}

/// A place where two values differ.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// The names and positions that lead there.
    pub path: Vec<String>,
    /// What was recorded; nothing if it was not there.
    pub recorded: Option<Value>,
    /// What there is now; nothing if it is gone.
    pub now: Option<Value>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let escape = |part: &String| part.replace('~', "~0").replace('/', "~1");
        let path: Vec<String> = self.path.iter().map(escape).collect();
        let shown = |value: &Option<Value>| match value {
            Some(value) => cut(&value.to_string()),
            None => "nothing".to_owned(),
        };
        write!(f, "/{}: {} → {}", path.join("/"), shown(&self.recorded), shown(&self.now))
    }
}

/// Long values are shown by their beginning.
fn cut(text: &str) -> String {
    const LONGEST: usize = 120;
    if text.chars().count() <= LONGEST {
        return text.to_owned();
    }
    text.chars().take(LONGEST - 1).chain(['…']).collect()
}

/// All places where two values differ, except those that are left out.
#[must_use]
pub fn differences(recorded: &Value, now: &Value, ignore: &[Ignore]) -> Vec<Difference> {
    let mut found = Vec::new();
    walk(Some(recorded), Some(now), &mut Vec::new(), ignore, &mut found);
    found
}

/// Members that only mean something to the side that made them up; another session has others.
const OPAQUE: [&str; 3] = ["requestState", "nextCursor", "taskId"];

/// Whether a member's value is made up by its sender.
pub(crate) fn is_opaque(name: &str) -> bool {
    OPAQUE.contains(&name)
}

fn walk(
    recorded: Option<&Value>,
    now: Option<&Value>,
    path: &mut Vec<String>,
    ignore: &[Ignore],
    found: &mut Vec<Difference>,
) {
    if ignore.iter().any(|ignore| ignore.covers(path)) {
        return;
    }
    match (recorded, now) {
        (Some(Value::Object(a)), Some(Value::Object(b))) => {
            let only_now = b.keys().filter(|name| !a.contains_key(*name));
            for name in a.keys().chain(only_now) {
                path.push(name.clone());
                walk(a.get(name), b.get(name), path, ignore, found);
                path.pop();
            }
        }
        (Some(Value::Array(a)), Some(Value::Array(b))) => {
            for at in 0..a.len().max(b.len()) {
                path.push(at.to_string());
                walk(a.get(at), b.get(at), path, ignore, found);
                path.pop();
            }
        }
        (Some(a), Some(b)) if same(a, b, path.last().map_or("", String::as_str)) => {}
        (a, b) => {
            found.push(Difference { path: path.clone(), recorded: a.cloned(), now: b.cloned() })
        }
    }
}

fn same(recorded: &Value, now: &Value, name: &str) -> bool {
    if recorded == now {
        return true;
    }
    match (recorded, now) {
        (Value::String(_), Value::String(_)) if is_opaque(name) => true,
        (Value::String(mask), _) if mask == MASK => true,
        (Value::String(pattern), Value::String(text)) if pattern.contains(MASK) => {
            fits(pattern, text)
        }
        // 1 and 1.0 are one number in JSON.
        (Value::Number(a), Value::Number(b)) => a.as_f64() == b.as_f64(),
        _ => false,
    }
}

/// Whether a text could be the one that was masked.
fn fits(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split(MASK);
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let parts: Vec<&str> = parts.collect();
    for (at, part) in parts.iter().enumerate() {
        let place = if at + 1 == parts.len() {
            rest.ends_with(part).then(|| rest.len() - part.len())
        } else {
            rest.find(part)
        };
        let Some(place) = place else { return false };
        rest = &rest[place + part.len()..];
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn shown(a: &Value, b: &Value, ignore: &[&str]) -> Vec<String> {
        let ignore: Vec<Ignore> = ignore.iter().map(|path| Ignore::parse(path).unwrap()).collect();
        differences(a, b, &ignore).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn every_place_that_differs_is_named() {
        let a = json!({ "a": 1, "b": [1, { "c": "x" }], "gone": true, "same": 1.0 });
        let b = json!({ "a": 2, "b": [1, { "c": "y" }, 3], "new": null, "same": 1 });
        assert_eq!(
            shown(&a, &b, &[]),
            [
                "/a: 1 → 2",
                "/b/1/c: \"x\" → \"y\"",
                "/b/2: nothing → 3",
                "/gone: true → nothing",
                "/new: nothing → null"
            ]
        );
        assert_eq!(shown(&a, &b, &["/a", "/b/*/c", "/b/2", "/gone", "/new"]), Vec::<String>::new());
        assert!(Ignore::parse("a/b").is_err());
    }

    #[test]
    fn a_mask_stands_for_anything() {
        let masked = json!({ "a": "key *** and ***.", "b": "***" });
        assert!(differences(&masked, &json!({ "a": "key 1 and 2.", "b": 7 }), &[]).is_empty());
        assert_eq!(differences(&masked, &json!({ "a": "key 1 or 2.", "b": 7 }), &[]).len(), 1);
        assert_eq!(differences(&json!("a"), &json!("***"), &[]).len(), 1);
    }
}
