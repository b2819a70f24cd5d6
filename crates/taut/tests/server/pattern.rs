//! What an expected message may leave open. Everything else has to be exactly as it stands.
//!
//! - an object: the same members in any order; with a member `"..."`, others may be there as well
//! - an array: the same items in order; with `"..."` as its last item, more may follow
//! - a string with `*` in it: any text in its place; `"*"` alone is any value at all
//! - numbers compare by value, everything else by type and value

use serde_json::Value;

const OPEN: &str = "...";

/// Where and how `found` differs from `wanted`, if it does.
pub(crate) fn difference(wanted: &Value, found: &Value) -> Option<String> {
    compare(wanted, found, "$")
}

fn compare(wanted: &Value, found: &Value, at: &str) -> Option<String> {
    match (wanted, found) {
        (Value::String(text), _) if text == "*" => None,
        (Value::String(text), Value::String(found)) if text.contains('*') => {
            (!glob(text, found)).then(|| format!("{at}: {found:?} is not like {text:?}"))
        }
        (Value::Object(wanted), Value::Object(found)) => {
            for (name, value) in wanted.iter().filter(|(name, _)| *name != OPEN) {
                let Some(found) = found.get(name) else {
                    return Some(format!("{at}.{name} is missing"));
                };
                let inner = compare(value, found, &format!("{at}.{name}"));
                if inner.is_some() {
                    return inner;
                }
            }
            let extra = found.keys().find(|name| !wanted.contains_key(*name));
            let extra = extra.filter(|_| !wanted.contains_key(OPEN))?;
            Some(format!("{at}.{extra} should not be there"))
        }
        (Value::Array(wanted), Value::Array(found)) => {
            let open = wanted.last().is_some_and(|last| last == OPEN);
            let wanted = if open { &wanted[..wanted.len() - 1] } else { wanted };
            if found.len() < wanted.len() || (found.len() > wanted.len() && !open) {
                return Some(format!("{at} has {} items, not {}", found.len(), wanted.len()));
            }
            let mut pairs = wanted.iter().zip(found).enumerate();
            pairs.find_map(|(n, (wanted, found))| compare(wanted, found, &format!("{at}[{n}]")))
        }
        (Value::Number(wanted), Value::Number(found)) => {
            (wanted.as_f64() != found.as_f64()).then(|| format!("{at} is {found}, not {wanted}"))
        }
        _ => (wanted != found).then(|| format!("{at} is {found}, not {wanted}")),
    }
}

fn glob(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let last = parts.pop().unwrap_or_default();
    for part in parts {
        match rest.find(part) {
            Some(found) => rest = &rest[found + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[test]
fn patterns_are_exact_where_they_are_not_open() {
    use serde_json::json;
    let fits = |wanted: Value, found: Value| difference(&wanted, &found).is_none();
    assert!(fits(json!({ "a": 1, "b": [1, 2] }), json!({ "b": [1, 2], "a": 1.0 })));
    assert!(!fits(json!({ "a": 1 }), json!({ "a": 1, "b": 2 })));
    assert!(!fits(json!({ "a": 1, "b": 2 }), json!({ "a": 1 })));
    assert!(fits(json!({ "a": 1, "...": 0 }), json!({ "a": 1, "b": 2 })));
    assert!(fits(json!([1, "..."]), json!([1, 2, 3])) && !fits(json!([1]), json!([1, 2])));
    assert!(!fits(json!([1, 2, "..."]), json!([1])));
    assert!(fits(json!("*"), json!({ "a": 1 })) && fits(json!("a*c*"), json!("abcd")));
    assert!(!fits(json!("a*c"), json!("abcd")) && !fits(json!("a*"), json!("ba")));
    assert!(!fits(json!(1), json!("1")) && !fits(json!(null), json!(false)));
}
