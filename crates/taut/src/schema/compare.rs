//! Which JSON values are the same, and in which order the others stand.
//!
//! `1` and `1.0` are the same number, and members have no order. Counts what it looks at, so that a
//! comparison is as bounded as anything else.

use std::cmp::Ordering;

use serde_json::{Map, Number, Value};

use super::rule::JsonType;

/// Compares by value; `spent` grows with what was looked at, and past `limit` all are the same.
pub(super) fn compare(a: &Value, b: &Value, spent: &mut u64, limit: u64) -> Ordering {
    *spent += 1;
    if *spent > limit {
        return Ordering::Equal;
    }
    match (a, b) {
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Number(a), Value::Number(b)) => numbers(a, b),
        (Value::String(a), Value::String(b)) => {
            *spent += a.len().min(b.len()) as u64 / 64;
            a.cmp(b)
        }
        (Value::Array(a), Value::Array(b)) => a.len().cmp(&b.len()).then_with(|| {
            let pairs = a.iter().zip(b).map(|(a, b)| compare(a, b, spent, limit));
            first_difference(pairs)
        }),
        (Value::Object(a), Value::Object(b)) => a.len().cmp(&b.len()).then_with(|| {
            let pairs = sorted(a).into_iter().zip(sorted(b));
            first_difference(
                pairs.map(|(a, b)| a.0.cmp(b.0).then_with(|| compare(a.1, b.1, spent, limit))),
            )
        }),
        _ => JsonType::of(a).cmp(&JsonType::of(b)),
    }
}

fn first_difference(mut pairs: impl Iterator<Item = Ordering>) -> Ordering {
    pairs.find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
}

/// By name: whether serde_json keeps the order in which they came is not ours to know.
fn sorted(members: &Map<String, Value>) -> Vec<(&String, &Value)> {
    let mut sorted: Vec<_> = members.iter().collect();
    sorted.sort_by_key(|(name, _)| *name);
    sorted
}

/// Exact among integers, as near as a double comes otherwise.
pub(super) fn numbers(a: &Number, b: &Number) -> Ordering {
    match (integer(a), integer(b)) {
        (Some(a), Some(b)) => a.cmp(&b),
        _ => double(a).total_cmp(&double(b)),
    }
}

pub(super) fn is_multiple(number: &Number, of: &Number) -> bool {
    match (integer(number), integer(of)) {
        (Some(number), Some(of)) => of != 0 && number % of == 0,
        _ => {
            // 0.0075 is 75 times 0.0001, though no double can say so.
            let times = double(number) / double(of);
            times.is_finite() && (times - times.round()).abs() < 1e-9
        }
    }
}

fn integer(number: &Number) -> Option<i128> {
    number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from))
}

fn double(number: &Number) -> f64 {
    // Zero has a sign, and none in JSON.
    number.as_f64().unwrap_or_default() + 0.0
}
