//! The schemas of a server that hosts refuse, through the doctor. Issue 19, must show 4.

use serde_json::json;

use super::*;

/// One tool whose schema breaks the rules of hosts.
fn fussy() -> Vec<String> {
    let properties = json!({ "n": { "type": "integer", "format": "uint64" },
        "label": { "type": ["string", "null"] }, "list": { "type": "array" } });
    answering(&json!({
        "ping": {},
        "tools/list": { "tools": [{ "name": "count", "description": "Counts.",
            "inputSchema": { "type": "object", "properties": properties, "required": ["m"] } }] },
    }))
}

/// What only makes a tool hard to use is told with `--lint`, and is no reason to fail; pages always are told.
#[test]
fn with_lint_the_doctor_also_tells_what_makes_tools_hard_to_use() {
    let server = fussy();
    let told = |options: &str, server: &[String]| -> Vec<String> {
        let document = run(options, server).json();
        let findings = document["findings"].as_array().unwrap().iter();
        findings.map(|f| format!("{} {}", f["level"], f["what"]).replace('"', "")).collect()
    };
    let names = ["open-arguments: count", "no-annotations: count"];
    let (without, with) = (told("doctor --json", &server), told("doctor --json --lint", &server));
    for name in names {
        assert!(!without.iter().any(|line| line.contains(name)), "{without:#?}");
        assert!(
            with.iter().any(|line| line.contains(name) && line.starts_with("note")),
            "{with:#?}"
        );
    }
    let paged = ["taut", "serve", "--page-size", "5"].map(str::to_owned);
    let told = told("doctor --json", &paged);
    let paged = told.iter().filter(|line| line.contains("list-in-pages: tools/list: 5 of 14"));
    assert_eq!(paged.count(), 1, "{told:#?}");
}

#[test]
fn a_schema_that_hosts_refuse_is_found_by_the_doctor() {
    let document = run("doctor --json", &fussy()).json();
    let findings = document["findings"].as_array().unwrap();
    let told: Vec<&str> = findings.iter().filter_map(|finding| finding["what"].as_str()).collect();
    for (rule, place) in [
        ("unknown-format: ", "count/properties/n"),
        ("type-list: ", "count/properties/label"),
        ("array-without-items: ", "count/properties/list"),
        ("required-unknown: ", "count"),
    ] {
        let found = told.iter().any(|what| what.starts_with(rule) && what.contains(place));
        assert!(found, "{rule} at {place}: {told:#?}");
    }
    let format =
        findings.iter().find(|f| f["what"].as_str().unwrap().starts_with("unknown-format"));
    assert!(format.unwrap()["hurts"].as_str().unwrap().contains("AutoGen"), "{findings:#?}");
}

/// What AutoGen 0.7 loads and does not load, as it was tried: references forward, formats, and no output schema.
#[test]
fn the_doctor_says_of_autogen_what_it_does() {
    let all = |tools: Value| {
        let run =
            run("doctor", &answering(&json!({ "ping": {}, "tools/list": { "tools": tools } })));
        run.out.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let nested = |first: &str, second: &str| {
        let refers = json!({ "type": "object", "properties": { "b": { "$ref": "#/$defs/M" } } });
        let defs = serde_json::Map::from_iter([
            (
                first.to_owned(),
                if first == "M" { json!({ "type": "object" }) } else { refers.clone() },
            ),
            (second.to_owned(), if second == "M" { json!({ "type": "object" }) } else { refers }),
        ]);
        json!({ "name": "nested", "description": "Nests.", "inputSchema": { "type": "object",
            "properties": { "a": { "$ref": format!("#/$defs/{}", if first == "M" { second } else { first }) } },
            "$defs": defs } })
    };
    // Members stand in the order of their names here.
    let forward = all(json!([nested("A", "M")]));
    assert!(forward.contains("$defs/A refers to $defs/M"), "{forward}");
    assert!(
        forward.contains("AutoGen, which then loads no tool of the server at all"),
        "{forward}"
    );
    let backward = all(json!([nested("M", "Z")]));
    assert!(!backward.contains("AutoGen"), "{backward}");
    let formats = ["json", "int64", "double", "uri", "date-time", "hostname"];
    let properties: serde_json::Map<_, _> = formats
        .map(|format| (format.to_owned(), json!({ "type": "string", "format": format })))
        .into_iter()
        .collect();
    let tool = json!({ "name": "formats", "description": "Has formats.",
        "inputSchema": { "type": "object", "properties": properties },
        "outputSchema": { "type": "object", "properties": { "x": { "type": "string", "format": "odd" } } } });
    let said = all(json!([tool]));
    assert!(!said.contains("AutoGen"), "{said}");
}

/// The first turn of `claude -p` goes without the tools of a server that takes two seconds.
#[test]
// About Unix itself: a shell plays the server.
#[cfg(unix)]
fn the_doctor_names_claude_where_a_server_takes_two_seconds() {
    let slow = ["sh", "-c", "sleep 2.3; exec taut serve"].map(str::to_owned);
    let said = run("doctor", &slow).out;
    assert!(said.contains("claude -p"), "{said}");
}
