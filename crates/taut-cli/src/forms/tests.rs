//! Every kind of field: what is typed or given, and what comes of it.

use serde_json::{Value, json};
use taut::types::{ElicitForm, FormSchema};

use super::*;

fn form(properties: Value, required: &[&str]) -> Form {
    let schema = json!({ "type": "object", "properties": properties, "required": required });
    let asked: ElicitForm =
        serde_json::from_value(json!({ "message": "?", "requestedSchema": schema })).unwrap();
    Form::of(&asked.requested_schema)
}

fn field(schema: Value, required: bool) -> Field {
    let names: &[&str] = if required { &["f"] } else { &[] };
    form(json!({ "f": schema }), names).fields.remove(0)
}

/// What is typed into a field that has to be filled in.
fn read(schema: Value, typed: &str) -> Result<Value, String> {
    match field(schema, true).read(typed) {
        Ok(value) => Ok(value.unwrap()),
        Err(mistake) => Err(mistake.to_string()),
    }
}

#[test]
fn eli_10_what_is_typed_becomes_what_the_schema_wants() {
    let text = json!({ "type": "string" });
    let number = json!({ "type": "number", "minimum": 0.5, "maximum": 9 });
    let whole = json!({ "type": "integer", "minimum": 1, "maximum": 10 });
    let yes = json!({ "type": "boolean" });
    let one = json!({ "type": "string", "enum": ["small", "large", "3"] });
    let titled = json!({ "type": "string", "oneOf": [
        { "const": "s", "title": "Small, with care" }, { "const": "l", "title": "Large" }] });
    let older = json!({ "type": "string", "enum": ["s", "l"], "enumNames": ["Small", "Large"] });
    let table = [
        (&text, " Ada ", json!(" Ada ")),
        (&text, "\"\"", json!("")),
        (&text, "12", json!("12")),
        (&number, "1.5", json!(1.5)),
        (&number, " 2 ", json!(2)),
        (&number, "5e-1", json!(0.5)),
        (&whole, "7", json!(7)),
        (&whole, "7.0", json!(7)),
        (&yes, "y", json!(true)),
        (&yes, "FALSE", json!(false)),
        (&yes, "No", json!(false)),
        (&one, "large", json!("large")),
        (&one, "LARGE", json!("large")),
        (&one, "2", json!("large")),
        // Its value comes before its number.
        (&one, "3", json!("3")),
        (&titled, "Large", json!("l")),
        (&titled, "l", json!("l")),
        (&titled, "small, with care", json!("s")),
        (&older, "small", json!("s")),
    ];
    for (schema, typed, value) in table {
        assert_eq!(read(schema.clone(), typed), Ok(value), "{schema} {typed:?}");
    }
}

#[test]
fn what_does_not_fit_is_said_kindly() {
    let short = json!({ "type": "string", "minLength": 3, "maxLength": 5 });
    let number = json!({ "type": "number", "minimum": 0.5, "maximum": 9 });
    let whole = json!({ "type": "integer" });
    let one = json!({ "type": "string", "enum": ["small", "large"] });
    let several = json!({ "type": "array", "minItems": 2, "maxItems": 2, "items": { "type": "string", "enum": ["a", "b", "c"] } });
    let table = [
        (&short, "", "it has to be filled in"),
        (&short, "  ", "it has to be filled in"),
        (&short, "äö", "it has to have 3 characters or more, and has 2"),
        (&short, "abcdef", "it has to have 5 characters or fewer, and has 6"),
        (&number, "0", "it has to be 0.5 or more"),
        (&number, "9.01", "it has to be 9 or less"),
        (&number, "1,5", "it has to be a number, such as 12 or 1.5"),
        (&number, "NaN", "it has to be a number, such as 12 or 1.5"),
        (&whole, "1.5", "it has to be a whole number, such as 12"),
        (&whole, "many", "it has to be a whole number, such as 12"),
        (&json!({ "type": "boolean" }), "maybe", "it has to be yes or no"),
        (&one, "lagre", "\"lagre\" is not one of them; did you mean large?"),
        (&one, "3", "\"3\" is not one of them"),
        (&one, "0", "\"0\" is not one of them"),
        (&several, "a", "it has to have 2 choices or more, and has 1"),
        (&several, "a, b, c", "it has to have 2 choices or fewer, and has 3"),
        (&several, "a, x", "\"x\" is not one of them"),
        (
            &json!({ "type": "string", "format": "date" }),
            "tomorrow",
            "it has to be a date such as 2026-11-15",
        ),
    ];
    for (schema, typed, words) in table {
        assert_eq!(read(schema.clone(), typed), Err(words.to_owned()), "{schema} {typed:?}");
    }
}

#[test]
fn several_are_chosen_by_value_title_or_number_each_once() {
    let plain = json!({ "type": "array", "items": { "type": "string", "enum": ["a", "b", "c"] } });
    let titled = json!({ "type": "array", "items": { "anyOf": [
        { "const": "r", "title": "Red" }, { "const": "g", "title": "Green" }] } });
    let table = [
        (&plain, "a", json!(["a"])),
        (&plain, "c, a", json!(["c", "a"])),
        (&plain, "1,3,1", json!(["a", "c"])),
        (&titled, "green, Red", json!(["g", "r"])),
        (&titled, "2", json!(["g"])),
    ];
    for (schema, typed, value) in table {
        assert_eq!(read(schema.clone(), typed), Ok(value), "{schema} {typed:?}");
    }
    assert_eq!(field(plain, false).read("").unwrap(), None);
}

#[test]
fn a_default_stands_there_to_begin_with_unless_it_does_not_fit() {
    let table = [
        (json!({ "type": "string", "default": "x" }), Some("x")),
        (json!({ "type": "integer", "default": 5 }), Some("5")),
        (json!({ "type": "number", "default": 0.5 }), Some("0.5")),
        (json!({ "type": "boolean", "default": false }), Some("no")),
        (
            json!({ "type": "string", "oneOf": [{ "const": "a", "title": "A!" }], "default": "a" }),
            Some("A!"),
        ),
        (
            json!({ "type": "array", "items": { "type": "string", "enum": ["a", "b"] }, "default": ["b", "a"] }),
            Some("b, a"),
        ),
        (json!({ "type": "string", "enum": ["a"], "default": "z" }), None),
        (json!({ "type": "integer", "maximum": 3, "default": 5 }), None),
        (json!({ "type": "string" }), None),
    ];
    for (schema, shown) in table {
        let field = field(schema.clone(), false);
        let default = field.default.as_ref().map(|value| field.shown(value));
        assert_eq!(default.as_deref(), shown, "{schema}");
        if let Some(shown) = shown {
            // What is shown can be typed back.
            assert_eq!(field.read(shown).unwrap(), field.default, "{schema}");
        }
    }
}

fn coffee() -> Form {
    // Text, because a tree would lose the order of the fields.
    let schema = r#"{ "type": "object", "required": ["size", "shots"], "properties": {
        "size": { "type": "string", "enum": ["small", "large"], "description": "Which size?" },
        "milk": { "type": "boolean", "default": true },
        "name": { "type": "string", "title": "Name", "maxLength": 10 },
        "shots": { "type": "integer", "minimum": 1, "maximum": 4 }
    } }"#;
    Form::of(&serde_json::from_str(schema).unwrap())
}

#[test]
fn a_whole_form_is_filled_in_from_values() {
    let fill = |given: Value| {
        let filled = coffee().fill(given.as_object().unwrap(), true);
        filled.map(Value::Object).map_err(|mistakes| {
            mistakes.into_iter().map(|(name, why)| format!("{name}: {why}")).collect::<Vec<_>>()
        })
    };
    assert_eq!(
        fill(json!({ "size": "large", "shots": "2", "name": 7 })),
        Ok(json!({ "size": "large", "milk": true, "name": "7", "shots": 2 }))
    );
    assert_eq!(
        fill(json!({ "size": "small", "shots": 1, "milk": "no", "name": null })),
        Ok(json!({ "size": "small", "milk": false, "shots": 1 }))
    );
    assert_eq!(
        fill(json!({ "size": ["large"], "shots": 9, "sugar": true })),
        Err(vec![
            "size: it has to be text".to_owned(),
            "shots: it has to be 4 or less".to_owned(),
            "sugar: the form has no such field".to_owned(),
        ])
    );
    let more = json!({ "size": "small", "shots": 1, "sugar": true });
    assert!(coffee().fill(more.as_object().unwrap(), false).is_ok());
    let missing = coffee().fill(&Map::new(), true).unwrap_err();
    assert_eq!(
        missing,
        [("size".to_owned(), Mistake::Missing), ("shots".to_owned(), Mistake::Missing)]
    );
}

#[test]
fn a_form_says_what_it_wants_and_shows_an_answer_that_fits() {
    assert_eq!(
        coffee().lines(),
        [
            "size: small|large  Which size?",
            "milk: yes or no (default yes)",
            "name: text, 10 characters or fewer (optional)",
            "shots: a whole number, 1 to 4",
        ]
    );
    let example = coffee().example();
    assert_eq!(example, json!({ "size": "small", "milk": true, "shots": 1 }));
    assert!(coffee().fill(example.as_object().unwrap(), true).is_ok());
}

#[test]
fn a_kind_that_nobody_knows_takes_json_or_text() {
    let odd = json!({ "type": "object", "title": "Odd" });
    assert_eq!(read(odd.clone(), r#"{"a": 1}"#), Ok(json!({ "a": 1 })));
    assert_eq!(read(odd.clone(), "so so"), Ok(json!("so so")));
    assert_eq!(field(odd, true).label(), "Odd");
    assert!(Form::of(&FormSchema::new()).fields.is_empty());
}

/// A3: each of them was looked for among all the others.
#[test]
fn many_choices_are_read_in_the_time_that_they_take() {
    let names: Vec<String> = (0..20_000).map(|n| format!("c{n}")).collect();
    let titled: Vec<Value> =
        names.iter().map(|name| json!({ "const": name, "title": name.to_uppercase() })).collect();
    let schema = json!({ "type": "array", "items": { "anyOf": titled }, "default": names });
    let began = std::time::Instant::now();
    let field = field(schema, true);
    let default = field.default.as_ref().unwrap();
    assert_eq!(default.as_array().unwrap().len(), 20_000);
    assert!(field.shown(default).starts_with("C0, C1, "));
    assert_eq!(field.read(&names.join(",")), Ok(field.default.clone()));
    assert!(began.elapsed().as_secs() < 20, "{:?}", began.elapsed());
}
