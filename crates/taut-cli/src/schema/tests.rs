//! Tables for `schema/`: what is shown of a schema, and what of a value does not fit.

use serde_json::json;

use super::*;

#[test]
fn a_schema_is_shown_whole() {
    let schema = json!({
        "type": "object", "required": ["who"],
        "properties": {
            "who": { "$ref": "#/$defs/Person" },
            "times": { "type": "integer", "minimum": 1, "maximum": 9, "default": 3 },
            "tags": { "type": "array", "maxItems": 2, "items": { "type": "string", "pattern": "^[a-z]+$", "maxLength": 1 } },
            "some": { "type": "array", "minItems": 1, "items": { "type": "integer", "minimum": 0 } },
            "stops": { "type": "array", "items": { "type": "object", "properties": {
                "at": { "type": "string", "format": "date-time" } } } },
            "maybe": { "anyOf": [{ "$ref": "#/$defs/Person" }, { "type": "null" }] },
            "old": { "allOf": [{ "$ref": "#/$defs/Size" }], "default": "s" },
        },
        "$defs": {
            "Size": { "enum": ["s", "l"], "description": "How large." },
            "Person": { "type": "object", "required": ["name"], "description": "Who it is.",
                "properties": {
                    "name": { "type": "string", "minLength": 1, "description": "A\nname." },
                    "friend": { "$ref": "#/$defs/Person" },
                } },
        },
    });
    let text = fields(Schema::of(&schema));
    for line in [
        "  who: object  Who it is.\n    name: string (1 character or more)  A name.\n",
        "    friend: object (optional)  Who it is.\n      name: string",
        "  times: integer (optional, 1 to 9, default 3)\n",
        "  tags: string[] (optional, 2 items or fewer, each 1 character or fewer, each pattern ^[a-z]+$)\n",
        "  some: integer[] (optional, 1 item or more, each 0 or more)\n",
        "  stops: object[] (optional)\n    at: string (optional, format date-time)\n",
        "  maybe: object (optional)\n    name: string",
        "  old: s|l (optional, default \"s\")  How large.\n",
    ] {
        assert!(text.contains(line), "{line:?} in\n{text}");
    }
    // A person has a friend who has a friend.
    assert!(text.lines().count() < 40, "{text}");
}

fn faults(schema: &Value, value: &Value) -> Vec<String> {
    let all = Schema::of(schema).check(value).into_iter();
    all.map(|(place, fault)| format!("{place}: {fault}")).collect()
}

/// F7: what is inside a value was not looked at before it was sent.
#[test]
fn what_is_inside_a_value_is_checked_and_named_by_its_place() {
    let schema = json!({
        "type": "object", "required": ["name", "size"],
        "properties": {
            "name": { "type": "string", "maxLength": 5 },
            "size": { "$ref": "#/$defs/Size" },
            "age": { "type": ["integer", "null"], "minimum": 0 },
            "ratio": { "type": "number", "exclusiveMaximum": 1 },
            "friends": { "type": "array", "maxItems": 2, "items": { "$ref": "#" } },
            "where": { "anyOf": [
                { "type": "object", "required": ["x"], "properties": { "x": { "type": "number" } } },
                { "type": "string" }, { "type": "null" }] },
            "free": { "type": "object" },
        },
        "$defs": { "Size": { "enum": ["s", "l", 3] } },
    });
    let ok = json!({ "name": "Ada", "size": "s" });
    let with = |member: &str, value: Value| {
        let mut all = ok.clone();
        all[member] = value;
        all
    };
    let table: [(Value, &[&str]); 17] = [
        (ok.clone(), &[]),
        (with("age", json!(null)), &[]),
        (with("age", json!(7.0)), &[]),
        (with("size", json!(3.0)), &[]),
        (with("where", json!({ "x": 1 })), &[]),
        (with("where", json!("home")), &[]),
        (with("free", json!({ "any": ["thing"] })), &[]),
        (with("friends", json!([{ "name": "B", "size": "l" }])), &[]),
        (json!({ "name": 7 }), &[".size: be given: s|l|3", ".name: be text, not 7"]),
        (with("age", json!(-1)), &[".age: be 0 or more, not -1"]),
        (with("age", json!("x")), &[".age: be a whole number, not \"x\""]),
        (with("ratio", json!(1)), &[".ratio: be less than 1, not 1"]),
        (with("name", json!("Augusta")), &[".name: have 5 characters or fewer, and has 7"]),
        (with("siez", json!(1)), &[".siez: be left out"]),
        (
            with("friends", json!([ok, { "name": "B", "size": "m" }, ok])),
            &[
                ".friends: have 2 items or fewer, and has 3",
                ".friends[1].size: be s|l|3, not \"m\"",
            ],
        ),
        (with("where", json!({ "x": "1" })), &[".where.x: be a number, not \"1\""]),
        (with("where", json!(7)), &[".where: be a JSON object or text, not 7"]),
    ];
    for (value, told) in table {
        assert_eq!(faults(&schema, &value), told, "{value}");
    }
}

/// A hostile schema: each value costs forty looks, and so does each inside it.
#[test]
fn a_check_ends_whatever_the_schema_is() {
    let way = json!({ "$ref": "#/$defs/a" });
    let list = json!({ "type": "array", "items": { "anyOf": vec![way; 40] } });
    let schema = json!({ "$defs": { "a": list }, "$ref": "#/$defs/a" });
    let value = (0..50).fold(json!("x"), |inside, _| json!([inside]));
    let began = std::time::Instant::now();
    let _ = Schema::of(&schema).check(&value);
    let circle = json!({ "$ref": "#" });
    assert!(Schema::of(&circle).check(&value).is_empty());
    assert!(began.elapsed().as_secs() < 20, "{:?}", began.elapsed());
}
