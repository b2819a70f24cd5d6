//! The schemas that types give: only what every host takes, in the order of the fields.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use taut::{Json, JsonSchema, NoArgs, Server, Tool};

use crate::wire::Wire;

/// The tools of a server, as they stand on the wire.
async fn listed(server: Server) -> Value {
    let mut wire = Wire::to(server);
    wire.ask(1, "tools/list", json!({})).await;
    wire.next().await["result"]["tools"].clone()
}

/// What a tool with arguments `A` publishes, as text: the order of members counts.
macro_rules! input {
    ($A:ty) => {{
        let tool = Tool::new("t").description("A tool.");
        let server = Server::builder("s", "1").tool(tool, async |_: $A, _call| "ok").build();
        let mut wire = Wire::to(server.unwrap());
        wire.ask(1, "tools/list", json!({})).await;
        let line = wire.line().await.unwrap();
        let start = line.find(r#""inputSchema":"#).unwrap() + r#""inputSchema":"#.len();
        let mut values = serde_json::Deserializer::from_str(&line[start..])
            .into_iter::<Box<serde_json::value::RawValue>>();
        values.next().unwrap().unwrap().get().to_owned()
    }};
}

#[derive(Deserialize, JsonSchema)]
#[allow(dead_code)]
struct Numbers {
    zebra: u8,
    middle: Option<u64>,
    apple: f32,
    #[serde(default)]
    signed: i64,
    size: usize,
    letter: char,
}

#[derive(Deserialize, JsonSchema)]
#[allow(dead_code)]
struct Inner {
    z: String,
    a: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[allow(dead_code)]
struct Nested {
    second: Inner,
    first: Option<Inner>,
    list: Vec<Inner>,
}

#[derive(Deserialize, JsonSchema)]
#[allow(dead_code)]
enum Plain {
    Red,
    Blue,
}

#[derive(Deserialize, JsonSchema)]
#[allow(dead_code)]
#[serde(rename_all = "lowercase")]
enum Rich {
    Nothing,
    Number(u16),
    Point { y: i32, x: Option<i32> },
}

#[derive(Deserialize, JsonSchema)]
#[allow(dead_code)]
struct Enums {
    rich: Rich,
    plain: Option<Plain>,
}

#[derive(Deserialize, JsonSchema)]
#[allow(dead_code)]
struct Lists {
    deep: Option<Vec<Option<u8>>>,
    counts: BTreeMap<String, u32>,
    pair: (u8, Option<String>),
}

#[derive(Deserialize, JsonSchema)]
#[allow(dead_code)]
struct Flat {
    top: String,
    #[serde(flatten)]
    inner: Inner,
}

#[derive(Deserialize, JsonSchema)]
#[allow(dead_code)]
struct Tree {
    value: i8,
    children: Vec<Self>,
    above: Option<Box<Self>>,
}

#[derive(Deserialize, JsonSchema)]
#[allow(dead_code)]
struct Opaque {
    anything: Value,
}

#[derive(Deserialize, JsonSchema)]
struct Empty {}

#[tokio::test(start_paused = true)]
async fn every_shape_of_arguments_has_a_schema_that_hosts_take() {
    let inner = r#"{"properties":{"z":{"type":"string"},"a":{"type":"string"}},"required":["z"],"type":"object"}"#;
    let cases = [
        (
            "numbers have no Rust format, options one type, and fields their order",
            input!(Numbers),
            r#"{"properties":{"zebra":{"maximum":255,"minimum":0,"type":"integer"},"middle":{"minimum":0,"type":"integer"},"apple":{"type":"number"},"signed":{"default":0,"type":"integer"},"size":{"minimum":0,"type":"integer"},"letter":{"maxLength":1,"minLength":1,"type":"string"}},"required":["zebra","apple","size","letter"],"type":"object"}"#.to_owned(),
        ),
        (
            "structs that are used several times are referred to, also where they may be left out",
            input!(Nested),
            format!(
                r##"{{"$defs":{{"Inner":{inner}}},"properties":{{"second":{{"$ref":"#/$defs/Inner"}},"first":{{"$ref":"#/$defs/Inner"}},"list":{{"items":{{"$ref":"#/$defs/Inner"}},"type":"array"}}}},"required":["second","list"],"type":"object"}}"##
            ),
        ),
        (
            "enums",
            input!(Enums),
            r#"{"properties":{"rich":{"oneOf":[{"enum":["nothing"],"type":"string"},{"additionalProperties":false,"properties":{"number":{"maximum":65535,"minimum":0,"type":"integer"}},"required":["number"],"type":"object"},{"additionalProperties":false,"properties":{"point":{"properties":{"y":{"type":"integer"},"x":{"type":"integer"}},"required":["y"],"type":"object"}},"required":["point"],"type":"object"}]},"plain":{"enum":["Red","Blue"],"type":"string"}},"required":["rich"],"type":"object"}"#.to_owned(),
        ),
        (
            "lists, maps and pairs",
            input!(Lists),
            r#"{"properties":{"deep":{"items":{"maximum":255,"minimum":0,"type":"integer"},"type":"array"},"counts":{"additionalProperties":{"minimum":0,"type":"integer"},"type":"object"},"pair":{"maxItems":2,"minItems":2,"prefixItems":[{"maximum":255,"minimum":0,"type":"integer"},{"type":"string"}],"type":"array"}},"required":["counts","pair"],"type":"object"}"#.to_owned(),
        ),
        (
            "flattened structs do not tell their order: required fields first",
            input!(Flat),
            r#"{"properties":{"top":{"type":"string"},"z":{"type":"string"},"a":{"type":"string"}},"required":["top","z"],"type":"object"}"#.to_owned(),
        ),
        (
            "recursive structs",
            input!(Tree),
            r##"{"properties":{"value":{"maximum":127,"minimum":-128,"type":"integer"},"children":{"items":{"$ref":"#"},"type":"array"},"above":{"$ref":"#"}},"required":["value","children"],"type":"object"}"##.to_owned(),
        ),
        (
            "anything",
            input!(Opaque),
            r#"{"properties":{"anything":{}},"required":["anything"],"type":"object"}"#.to_owned(),
        ),
        (
            "a struct without fields takes no arguments",
            input!(Empty),
            r#"{"additionalProperties":false,"properties":{},"type":"object"}"#.to_owned(),
        ),
        (
            "no arguments",
            input!(NoArgs),
            r#"{"additionalProperties":false,"properties":{},"type":"object"}"#.to_owned(),
        ),
    ];
    for (what, got, want) in cases {
        assert_eq!(got, want, "{what}");
    }
}

#[derive(Serialize, JsonSchema)]
struct Found {
    title: String,
    /// `null` is written where there is none, so the schema has to allow it.
    author: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    year: Option<u16>,
}

/// TOL-13: what is written fits the schema, so `null` stays where it is written.
#[tokio::test(start_paused = true)]
async fn tol_13_an_output_schema_allows_what_is_written() {
    let server = Server::builder("s", "1")
        .tool(("t", "A tool."), async |_: NoArgs, _call| {
            Json(Found { title: "x".into(), author: None, year: None })
        })
        .build()
        .unwrap();
    let tools = listed(server).await;
    assert_eq!(
        tools[0]["outputSchema"],
        json!({
            "type": "object",
            "properties": {
                "title": { "type": "string" },
                "author": {
                    "description": "`null` is written where there is none, so the schema has to allow it.",
                    "anyOf": [{ "type": "string" }, { "type": "null" }]
                },
                "year": {
                    "anyOf": [{ "type": "integer", "minimum": 0, "maximum": 65535 }, { "type": "null" }]
                },
            },
            "required": ["title", "author"],
        })
    );
}

#[derive(Deserialize, JsonSchema)]
struct Order {
    count: u8,
    note: Option<String>,
    #[serde(default = "one")]
    price: f64,
    to: Inner,
    color: Plain,
}

fn one() -> f64 {
    1.0
}

async fn order(order: Order, _: taut::Call) -> String {
    let Order { count, note, price, to: Inner { z, a }, color } = order;
    let color = if matches!(color, Plain::Red) { "red" } else { "blue" };
    format!("{count} {note:?} {price} {z} {a:?} {color}")
}

/// What a tool says to arguments that do not fit, and to those that fit after all.
#[tokio::test]
async fn arguments_are_read_as_they_were_meant_and_all_that_is_wrong_is_told_at_once() {
    let server = Server::builder("s", "1").tool(("order", "Order."), order).build().unwrap();
    let to = json!({ "z": "x" });
    let long = "y".repeat(5000);
    let cases = [
        (
            "as it should be",
            json!({ "count": 1, "to": to, "color": "Red" }),
            "1 None 1 x None red".to_owned(),
        ),
        (
            "whole numbers with a fraction of zero, and null for what may be left out",
            json!({ "count": 10.0, "note": null, "price": null, "to": { "z": "x", "a": null }, "color": "Blue" }),
            "10 None 1 x None blue".to_owned(),
        ),
        (
            "everything that is wrong, in the order of the arguments, then what is missing",
            json!({ "count": "many", "note": 5, "price": "much", "to": { "z": 1, "a": [] } }),
            "invalid arguments for order: `count`: must be a whole number from 0 to 255, not the string \"many\"; \
             `note`: must be a string, not the number 5; \
             `price`: must be a number, not the string \"much\"; \
             `to.a`: must be a string, not an array; \
             `to.z`: must be a string, not the number 1; \
             `color` is missing"
                .to_owned(),
        ),
        (
            "numbers out of range, fractions, objects and lists",
            json!({ "count": 300, "to": [], "color": 5 }),
            "invalid arguments for order: `color`: must be a string or an object, not the number 5; \
             `count`: must be a whole number from 0 to 255, not the number 300; \
             `to`: must be an object, not an array"
                .to_owned(),
        ),
        (
            "a fraction, and a word that is not known",
            json!({ "count": 1.5, "to": to, "color": "Green" }),
            "invalid arguments for order: `color`: must be `Red` or `Blue`, not `Green`; \
             `count`: must be a whole number from 0 to 255, not the number 1.5"
                .to_owned(),
        ),
        (
            "null where a value is needed",
            json!({ "count": null, "to": { "a": "x" }, "color": "Red" }),
            "invalid arguments for order: `count`: must be a whole number from 0 to 255, not null; \
             `to.z` is missing"
                .to_owned(),
        ),
        (
            "nothing at all",
            json!({}),
            "invalid arguments for order: `count` is missing; `to` is missing; `color` is missing"
                .to_owned(),
        ),
        (
            "long texts are cut",
            json!({ "count": long, "to": to, "color": "Red" }),
            format!(
                "invalid arguments for order: `count`: must be a whole number from 0 to 255, not the \
                 string \"{}…",
                "y".repeat(63)
            ),
        ),
    ];
    for (what, arguments, want) in cases {
        let result = server.call_tool("order", arguments).await.unwrap();
        let got = result.content[0].as_text().unwrap();
        assert_eq!(got, want, "{what}");
    }
}

/// A tool that nothing describes is refused before it is served.
#[test]
fn a_tool_without_arguments_and_description_is_told_at_build_time() {
    let built =
        |tool: Tool| Server::builder("s", "1").tool(tool, async |_: NoArgs, _call| ()).build();
    let error = built("touch".into()).err().unwrap().to_string();
    assert!(error.contains("tool \"touch\" has no arguments and no description"), "{error}");
    assert!(built(("touch", "Touch it.").into()).is_ok());
    /// Touch it.
    #[derive(Deserialize, JsonSchema)]
    struct Touch {}
    let described = Server::builder("s", "1").tool("touch", async |_: Touch, _call| ()).build();
    assert!(described.is_ok(), "a doc comment will do");
}
