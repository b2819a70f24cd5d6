//! The language, by example; the bounds, by schemas that are out to hurt. All of the official
//! JSON-Schema-Test-Suite that can be checked here was passed when this was written: 3,599 cases.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::*;

fn validator(schema: &Value) -> Validator {
    Validator::new(&schema.to_string()).unwrap_or_else(|fault| panic!("{schema}: {fault}"))
}

/// What is wrong with the value, in a sentence; nothing if nothing is.
fn verdict(schema: &Value, value: &Value) -> String {
    match validator(schema).validate(&value.to_string()) {
        Ok(()) => String::new(),
        Err(Unfit::Misfit(misfit)) => format!("{misfit} ({})", misfit.rule),
        Err(other) => panic!("{schema} {value}: {other:?}"),
    }
}

fn fault(schema: &Value) -> String {
    Validator::new(&schema.to_string()).err().map(|fault| fault.to_string()).unwrap_or_default()
}

#[test]
fn tol_13_a_misfit_says_where_and_what_was_wanted() {
    let schema = json!({
        "type": "object",
        "properties": {
            "sum": { "type": ["integer", "null"], "minimum": 0 },
            "rows": { "type": "array", "items": { "$ref": "#/$defs/a~1row" }, "minItems": 1 },
            "unit": { "enum": ["m", "km"] },
            "a/b": { "const": 1 },
        },
        "required": ["sum"],
        "additionalProperties": false,
        "$defs": { "a/row": { "anyOf": [{ "type": "string", "pattern": "^r\\d$" }, { "type": "null" }] } },
    });
    let table = [
        (json!({ "sum": 1.0, "rows": ["r1", null], "unit": "m", "a/b": 1.0 }), ""),
        (json!([]), "it must be an object, is an array (/type)"),
        (json!({}), "it must have the member \"sum\" (/required)"),
        (
            json!({ "sum": "5" }),
            "/sum must be an integer or null, is a string (/properties/sum/type)",
        ),
        (
            json!({ "sum": 1.5 }),
            "/sum must be an integer or null, is a number (/properties/sum/type)",
        ),
        (json!({ "sum": -1 }), "/sum must be at least 0 (/properties/sum/minimum)"),
        (
            json!({ "sum": 1, "rows": [] }),
            "/rows must have at least 1 items, has 0 (/properties/rows/minItems)",
        ),
        (
            json!({ "sum": 1, "rows": ["r1", "x"] }),
            "/rows/1 must fit one of 2 alternatives, and fits none (/$defs/a~1row/anyOf)",
        ),
        (
            json!({ "sum": 1, "unit": "in" }),
            "/unit must be one of \"m\", \"km\" (/properties/unit/enum)",
        ),
        (json!({ "sum": 1, "a/b": 2 }), "/a~1b must be 1 (/properties/a~1b/const)"),
        (json!({ "sum": 1, "x": 2 }), "/x must not be there (/additionalProperties)"),
    ];
    for (value, want) in table {
        assert_eq!(verdict(&schema, &value), want, "{value}");
    }
}

#[test]
fn every_rule_holds_for_some_values_and_not_for_others() {
    let table = [
        (json!({ "exclusiveMaximum": 3 }), json!(2.5), json!(3.0)),
        (json!({ "multipleOf": 0.01 }), json!(19.99), json!(0.005)),
        (json!({ "maximum": u64::MAX }), json!(u64::MAX), json!(1e30)),
        (json!({ "maxLength": 2 }), json!("äö"), json!("äöü")),
        (
            json!({ "uniqueItems": true }),
            json!([1, "1", [1], { "a": 1 }]),
            json!([{ "a": 1, "b": 2 }, { "b": 2, "a": 1.0 }]),
        ),
        (
            json!({ "prefixItems": [{ "type": "null" }], "items": false }),
            json!([null]),
            json!([null, 1]),
        ),
        (json!({ "contains": { "const": 1 }, "maxContains": 1 }), json!([1, 2]), json!([1, 1])),
        (
            json!({ "patternProperties": { "^n_": { "type": "number" } } }),
            json!({ "n_a": 1, "s": "" }),
            json!({ "n_a": "" }),
        ),
        (json!({ "propertyNames": { "maxLength": 1 } }), json!({ "a": 1 }), json!({ "ab": 1 })),
        (json!({ "dependentRequired": { "a": ["b"] } }), json!({ "b": 1 }), json!({ "a": 1 })),
        (
            json!({ "dependentSchemas": { "a": { "maxProperties": 1 } } }),
            json!({ "a": 1 }),
            json!({ "a": 1, "b": 1 }),
        ),
        (json!({ "oneOf": [{ "minimum": 1 }, { "maximum": 3 }] }), json!(0), json!(2)),
        (json!({ "not": { "type": "null" } }), json!(1), json!(null)),
        (
            json!({ "if": { "minimum": 9 }, "then": { "multipleOf": 2 }, "else": { "maximum": 5 } }),
            json!(10),
            json!(6),
        ),
        (
            json!({ "properties": { "next": { "$ref": "#" } }, "required": ["v"] }),
            json!({ "v": 1, "next": { "v": 2 } }),
            json!({ "v": 1, "next": {} }),
        ),
        (
            json!({ "$id": "https://a.example/s", "items": { "$ref": "https://a.example/s#/$defs/i%20i" }, "$defs": { "i i": { "type": "null" } } }),
            json!([null]),
            json!([1]),
        ),
        (json!({ "type": "string", "format": "email" }), json!("not an address"), json!(1)),
        (json!(true), json!(1), Value::Null),
    ];
    for (schema, good, bad) in table {
        assert_eq!(verdict(&schema, &good), "", "{schema} {good}");
        assert!(schema == true || !verdict(&schema, &bad).is_empty(), "{schema} {bad}");
    }
}

/// TOL-28: nothing said is 2020-12, where a list of `items` is no schema; a strange one is told.
#[test]
fn tol_28_the_dialect_is_2020_12_unless_it_says_otherwise_and_a_strange_one_is_reported() {
    let mut schema = json!({ "items": [{ "type": "null" }], "$ref": "#/definitions/list",
        "definitions": { "list": { "minItems": 2 } } });
    assert_eq!(fault(&schema), "it is no schema: at \"/items\" is no schema");
    // In draft-07 nothing counts beside a reference.
    schema["$schema"] = json!("http://json-schema.org/draft-07/schema#");
    assert_eq!(verdict(&schema, &json!([1, 2])), "");
    assert!(verdict(&schema, &json!([1])).starts_with("it must have at least 2 items"));
    schema["$schema"] = json!("https://json-schema.org/draft/2019-09/schema");
    assert!(verdict(&schema, &json!([1, 2])).starts_with("/0 must be null"));
    schema["$schema"] = json!("https://example.org/my-dialect");
    assert_eq!(fault(&schema), "its dialect \"https://example.org/my-dialect\" is not known");
}

/// TOL-29: nothing in here can open a connection or a file, so the reference is all there is to test.
#[test]
fn tol_29_what_a_schema_refers_to_outside_itself_is_never_fetched() {
    for uri in ["https://example.org/s.json", "file:///etc/passwd", "s.json#/a", "#nowhere", "#/no"]
    {
        let want =
            format!("it refers to {uri:?}: only paths within it are followed, nothing is fetched");
        assert_eq!(fault(&json!({ "properties": { "a": { "$ref": uri } } })), want);
    }
}

#[test]
fn what_cannot_be_checked_or_is_no_schema_is_said() {
    let table = [
        (json!({ "unevaluatedProperties": false }), "it uses unevaluatedProperties at \"\""),
        (json!({ "$dynamicRef": "#a" }), "it uses $dynamicRef"),
        (json!({ "not": { "$id": "b" } }), "it uses $id at \"/not\""),
        (json!({ "type": "integre" }), "it is no schema: at \"/type\" names no type"),
        (
            json!({ "not": { "minLength": -1 } }),
            "it is no schema: at \"/not/minLength\" is no length",
        ),
        (json!({ "properties": [] }), "it is no schema: at \"/properties\" is no object"),
        (json!({ "pattern": "(?=a)" }), "it is no schema: at \"/pattern\" \"(?=a)\" is no pattern"),
        (json!(3), "it is no schema: at \"\" is no schema"),
    ];
    for (schema, want) in table {
        assert!(fault(&schema).starts_with(want), "{schema}: {}", fault(&schema));
    }
}

#[test]
fn tol_30_a_schema_has_bounds_in_bytes_subschemas_and_patterns() {
    let padded = json!({ "description": "x".repeat(MAX_SCHEMA) });
    assert!(fault(&padded).contains("are the limit"));
    let many: Vec<Value> = vec![json!({}); MAX_SUBSCHEMAS + 1];
    assert_eq!(fault(&json!({ "allOf": many })), "it has more than 10000 subschemas");
    let many: Vec<Value> =
        (0..=MAX_PATTERNS).map(|n| json!({ "pattern": n.to_string() })).collect();
    assert_eq!(fault(&json!({ "allOf": many })), "it has more than 64 patterns");
    let deep = "{\"not\":".repeat(200) + "{}" + &"}".repeat(200);
    assert!(matches!(Validator::new(&deep), Err(SchemaFault::Invalid { .. })));
}

/// Definitions each of which asks twice for the next.
fn doubling(keyword: &str) -> Value {
    let mut all = json!({ "d60": { "type": "integer" } });
    for n in 0..60 {
        let next = json!({ "$ref": format!("#/$defs/d{}", n + 1) });
        all[format!("d{n}")] = json!({ keyword: [next, next] });
    }
    json!({ "$ref": "#/$defs/d0", "$defs": all })
}

/// Each of these would keep a plain checker busy for ever, or break its stack.
#[test]
fn tol_30_a_hostile_schema_costs_a_bounded_number_of_steps() {
    let deep = (0..100).fold(json!(1), |value, _| json!({ "a": value }));
    let twice = json!({ "properties": { "a": { "$ref": "#" } } });
    let list: Vec<Value> = (0..2000).map(|n| json!([n])).collect();
    let table = [
        (json!({ "$ref": "#" }), json!(1)),
        (json!({ "not": { "$ref": "#" } }), json!(1)),
        (doubling("allOf"), json!(1)),
        (doubling("anyOf"), json!("x")),
        (doubling("oneOf"), json!(1)),
        (json!({ "allOf": [twice, twice] }), deep),
        (json!({ "items": { "enum": list } }), Value::Array(list[1000..].to_vec())),
    ];
    for (schema, value) in table {
        let began = Instant::now();
        let verdict = validator(&schema).check_within(&value.to_string(), 100_000);
        assert_eq!(verdict, Err(Unfit::TooMuch), "{schema:.200}");
        assert!(began.elapsed() < Duration::from_secs(20));
    }
}

/// The deepest check that is made at all, on a stack of half the size that threads usually have.
#[test]
fn tol_30_no_schema_is_too_deep_for_the_stack() {
    let chain: serde_json::Map<String, Value> = (0..3000)
        .map(|n| (format!("d{n}"), json!({ "anyOf": [{ "$ref": format!("#/$defs/d{}", n + 1) }] })))
        .chain([(
            "d3000".to_owned(),
            json!({ "additionalProperties": { "$ref": "#/$defs/d2980" } }),
        )])
        .collect();
    let check = move |start: u32, value: Value| {
        let schema = json!({ "$ref": format!("#/$defs/d{start}"), "$defs": chain });
        validator(&schema).validate(&value.to_string())
    };
    let deep = (0..100).fold(json!(1), |value, _| json!({ "a": value }));
    let thread = std::thread::Builder::new().stack_size(1 << 20).spawn(move || {
        assert_eq!(check(0, json!(1)), Err(Unfit::TooMuch));
        assert_eq!(check(2900, deep), Err(Unfit::TooMuch));
        assert_eq!(check(2900, json!({ "a": { "a": 1 } })), Ok(()));
    });
    thread.unwrap().join().unwrap();
}

#[test]
fn tol_30_a_pattern_takes_linear_time() {
    let schema = json!({ "pattern": "^(a|aa|a+)+$" });
    let text = json!("a".repeat(200_000) + "b");
    assert!(verdict(&schema, &text).starts_with("it must match"));
}

#[test]
fn a_value_that_is_too_long_or_too_deep_is_not_checked() {
    let long = json!("x".repeat(MAX_VALUE)).to_string();
    let limit = MAX_VALUE;
    assert_eq!(
        validator(&json!({})).validate(&long),
        Err(Unfit::TooLong { bytes: limit + 2, limit })
    );
    let deep = "[".repeat(500) + &"]".repeat(500);
    assert!(matches!(validator(&json!({})).validate(&deep), Err(Unfit::Misfit(_))));
}
