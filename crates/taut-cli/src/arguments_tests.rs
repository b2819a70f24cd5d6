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
        ("count=3.0", json!(3)),
        ("loop=x", json!("x")),
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
        ("count=3.5", "count must be a whole number, not \"3.5\""),
        ("count=", "count must be a whole number, not \"\""),
        ("ratio=many", "ratio must be a number, not \"many\""),
        ("loud=yes", "loud must be true or false, not \"yes\""),
        ("sizes=x", "sizes must be a list of whole numbers, not \"x\""),
        (
            "where={x:1}",
            "where is no JSON: key must be a string at line 1 column 2; a shell removes quotes that are not \
             quoted: where='{\"a\": 1}'",
        ),
        ("where=x", "where must be a JSON object, not \"x\""),
        ("unit=inch", "unit must be metre|mile|3, not \"inch\""),
        ("maybe=x", "maybe must be a whole number, not \"x\""),
        ("level=mid", "level must be low|high, not \"mid\""),
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
        Err(vec![Mistake::Unfit {
            at: "text".into(),
            fault: Fault::Missing { wanted: "text".into() }
        }])
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
    let schema = schema();
    let all = Schema::of(&schema).fields();
    assert_eq!((all[0].name, all[0].required), ("text", true));
    assert_eq!(all[0].schema.description(), Some("What to say."));
    let kinds: Vec<_> = all.iter().map(|f| format!("{}:{}", f.name, f.schema.kind())).collect();
    assert!(kinds.contains(&"sizes:integer[]".to_owned()), "{kinds:?}");
    assert!(kinds.contains(&"maybe:integer".to_owned()), "{kinds:?}");
}

/// F7: only the outermost value was looked at.
#[test]
fn what_is_inside_an_argument_is_checked_before_it_is_sent() {
    let schema = json!({ "properties": {
        "who": { "type": "object", "required": ["name"], "properties": { "name": { "type": "string" } } },
        "sizes": { "type": "array", "maxItems": 2, "items": { "type": "integer", "minimum": 1 } },
        "times": { "type": "integer", "maximum": 5 },
    } });
    let told = |pairs: &[&str]| {
        let pairs: Vec<String> = pairs.iter().map(|pair| (*pair).to_owned()).collect();
        let told = read(&pairs, &schema).err().unwrap_or_default();
        told.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
    };
    let table: [(&[&str], &str); 7] = [
        (&[r#"who={"name":"Ada"}"#, "sizes=1", "sizes=2", "times=5"], ""),
        (&[r#"who={"name":1}"#], "who.name must be text, not 1"),
        (&["who={}"], "who.name is missing: text"),
        (&[r#"who={"nmae":"x","name":"x"}"#], "there is no argument who.nmae; did you mean name?"),
        (&["sizes=[1,0]"], "sizes[1] must be 1 or more, not 0"),
        (&["sizes=1", "sizes=2", "sizes=3"], "sizes must have 2 items or fewer, and has 3"),
        (&["times=6"], "times must be 5 or less, not 6"),
    ];
    for (pairs, words) in table {
        assert_eq!(told(pairs), words, "{pairs:?}");
    }
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
    assert_eq!(Schema::of(&schema).fields().len(), 100_000);
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
    let x = Schema::of(&schema).field("x").unwrap();
    assert_eq!((x.kind().as_str(), x.values().len()), ("any", 0));
    // The server judges what it has written.
    assert!(read(&["x=1".to_owned()], &schema).is_ok());
    assert!(began.elapsed().as_secs() < 20, "{:?}", began.elapsed());
}

#[test]
fn a_slip_of_a_few_letters_is_found() {
    let names = ["rpc", "demo", "list", "echo", "read_file"];
    let table = [
        ("rcp", Some("rpc")),
        ("dmeo", Some("demo")),
        ("lsit", Some("list")),
        ("eco", Some("echo")),
        ("raed_flie", Some("read_file")),
        ("x", None),
        ("", None),
        ("nothing", None),
    ];
    for (typed, meant) in table {
        assert_eq!(closest(typed, names.into_iter()), meant, "{typed}");
    }
    assert_eq!(distance("ca", "abc"), 3);
    assert_eq!(distance("", "ab"), 2);
}
