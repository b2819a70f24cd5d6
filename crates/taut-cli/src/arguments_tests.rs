//! Tables for `arguments.rs`.

use serde_json::json;

use super::*;

fn schema() -> Value {
    json!({
        "type": "object",
        "required": ["text"],
        "properties": {
            "text": { "type": "string", "description": "What to say." },
            "count": { "type": "integer" },
            "ratio": { "type": "number" },
            "loud": { "type": "boolean" },
            "tags": { "type": "array", "items": { "type": "string" } },
            "sizes": { "type": "array", "items": { "type": "integer" } },
            "where": { "type": "object" },
            "unit": { "enum": ["metre", "mile", 3] },
            "maybe": { "anyOf": [{ "type": "integer" }, { "type": "null" }] },
            "either": { "type": ["integer", "string"] },
            "level": { "$ref": "#/$defs/Level" },
            "loop": { "$ref": "#/properties/loop" },
            "free": {},
        },
        "$defs": { "Level": { "oneOf": [{ "const": "low" }, { "const": "high" }] } },
    })
}

fn one(pair: &str) -> Result<Value, String> {
    let pairs = ["text=x".to_owned(), pair.to_owned()];
    let key = pair.split('=').next().unwrap();
    match read(&pairs, &schema()) {
        Ok(arguments) => Ok(arguments[key].clone()),
        Err(mistakes) => {
            Err(mistakes.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))
        }
    }
}

#[test]
fn a_value_is_what_the_schema_says() {
    let table = [
        ("count=3", json!(3)),
        ("count=-3", json!(-3)),
        ("ratio=3", json!(3)),
        ("ratio=2.5e3", json!(2500.0)),
        ("loud=true", json!(true)),
        ("tags=a,b", json!(["a,b"])),
        (r#"tags=["a","b"]"#, json!(["a", "b"])),
        ("sizes=3", json!([3])),
        (r#"where={"x":1}"#, json!({ "x": 1 })),
        ("unit=mile", json!("mile")),
        ("unit=3", json!(3)),
        ("maybe=3", json!(3)),
        ("maybe=null", json!(null)),
        ("either=3", json!(3)),
        ("either=three", json!("three")),
        ("level=low", json!("low")),
        ("free=[1]", json!([1])),
        ("free=a=b", json!("a=b")),
    ];
    for (pair, value) in table {
        assert_eq!(one(pair), Ok(value), "{pair}");
    }
    let text = read(&["text=".to_owned()], &schema()).unwrap();
    assert_eq!(text["text"], json!(""));
    let text = read(&["text=12".to_owned()], &schema()).unwrap();
    assert_eq!(text["text"], json!("12"), "a number stays text where text is wanted");
}

#[test]
fn a_wrong_value_is_named_with_what_is_wanted() {
    let table = [
        ("count=3.5", "count must be integer, not \"3.5\""),
        ("count=", "count must be integer, not \"\""),
        ("ratio=many", "ratio must be number, not \"many\""),
        ("loud=yes", "loud must be boolean, not \"yes\""),
        ("sizes=x", "sizes must be integer[], not \"x\""),
        ("where=x", "where must be object, not \"x\""),
        ("unit=inch", "unit must be metre|mile|3, not \"inch\""),
        ("maybe=x", "maybe must be integer, not \"x\""),
        ("level=mid", "level must be low|high, not \"mid\""),
        ("loop=x", "loop must be any, not \"x\""),
        ("cuont=3", "there is no argument cuont; did you mean count?"),
        ("zzz=3", "there is no argument zzz"),
        ("zzz", "\"zzz\" is no key=value"),
        ("text=y", "text takes one value"),
    ];
    for (pair, words) in table {
        assert_eq!(one(pair), Err(words.to_owned()), "{pair}");
    }
}

#[test]
fn a_missing_value_is_named_once() {
    assert_eq!(
        read(&[], &schema()),
        Err(vec![Mistake::Missing { key: "text".into(), wanted: "string".into() }])
    );
    let wrong = json!({ "required": ["n"], "properties": { "n": { "type": "integer" } } });
    assert_eq!(read(&["n=x".to_owned()], &wrong).unwrap_err().len(), 1);
}

#[test]
fn an_array_takes_its_key_several_times() {
    let pairs = ["text=x", "sizes=1", "sizes=2", "sizes=[3,4]"].map(str::to_owned);
    assert_eq!(read(&pairs, &schema()).unwrap()["sizes"], json!([1, 2, 3, 4]));
}

#[test]
fn a_schema_that_names_nothing_takes_anything() {
    for schema in [json!({ "type": "object" }), json!({}), json!(true), Value::Null] {
        let read = read(&["a=1".to_owned(), "b=x".to_owned()], &schema).unwrap();
        assert_eq!(Value::Object(read), json!({ "a": 1, "b": "x" }));
    }
    let typed = json!({ "additionalProperties": { "type": "integer" } });
    assert!(read(&["a=x".to_owned()], &typed).is_err());
    let closed = json!({ "additionalProperties": false });
    assert!(read(&["a=1".to_owned()], &closed).is_err());
}

#[test]
fn what_a_tool_takes_is_told_with_what_it_needs_first() {
    let all = parameters(&schema());
    assert_eq!((all[0].name.as_str(), all[0].required), ("text", true));
    assert_eq!(all[0].description, "What to say.");
    let kinds: Vec<_> = all.iter().map(|p| format!("{}:{}", p.name, p.kind)).collect();
    assert!(kinds.contains(&"sizes:integer[]".to_owned()), "{kinds:?}");
    assert!(kinds.contains(&"maybe:integer".to_owned()), "{kinds:?}");
}

#[test]
fn a_choice_that_is_misspelt_is_told_with_what_was_meant() {
    let told = |pair: &str| {
        let pairs = ["text=x".to_owned(), pair.to_owned()];
        read(&pairs, &schema()).unwrap_err()[0].to_string()
    };
    assert_eq!(told("unit=mtere"), "unit must be metre|mile|3, not \"mtere\"; did you mean metre?");
    assert_eq!(told("unit=inch"), "unit must be metre|mile|3, not \"inch\"");
}

/// A3: a hundred thousand of them took minutes.
#[test]
fn many_properties_are_read_in_the_time_that_they_take() {
    let names: Vec<String> = (0..100_000).map(|n| format!("p{n}")).collect();
    let properties: Map<String, Value> =
        names.iter().map(|name| (name.clone(), json!({ "type": "string" }))).collect();
    let schema = json!({ "type": "object", "properties": properties, "required": names });
    let began = std::time::Instant::now();
    assert_eq!(parameters(&schema).len(), 100_000);
    assert_eq!(read(&["p1=x".to_owned()], &schema).unwrap_err().len(), 99_999);
    assert!(began.elapsed().as_secs() < 20, "{:?}", began.elapsed());
}

/// Sixteen levels of ten ways each.
#[test]
fn alternatives_that_refer_to_each_other_end() {
    let way = json!({ "$ref": "#/$defs/a" });
    let ways = json!({ "anyOf": vec![way; 40] });
    let schema = json!({ "properties": { "x": ways }, "$defs": { "a": ways } });
    let began = std::time::Instant::now();
    assert_eq!(parameters(&schema).len(), 1);
    assert!(choices(&schema, "x").is_empty());
    assert!(read(&["x=1".to_owned()], &schema).is_err());
    assert!(began.elapsed().as_secs() < 20, "{:?}", began.elapsed());
}
