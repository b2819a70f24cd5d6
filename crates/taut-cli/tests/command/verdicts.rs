//! The last line of `taut smoke`: what it says of a server can be relied on. And what an error of a server says.

use serde_json::{Value, json};

use super::{Run, answering, demo, run, server};

fn tool(name: &str, hints: &Value) -> Value {
    json!({ "name": name, "inputSchema": { "type": "object" }, "annotations": hints })
}

/// `taut smoke` of a server that has these tools and answers a call with this.
fn smoke(options: &str, tools: &[Value], called: &Value) -> Run {
    let results = json!({ "tools/list": { "tools": tools }, "tools/call": called });
    run(&format!("smoke {options}"), &answering(&results))
}

/// The last line, which is the verdict.
fn verdict(run: &Run) -> &str {
    run.out.lines().last().unwrap()
}

#[test]
fn smoke_fails_a_server_that_it_has_just_called_refused_by_the_sdks() {
    let run = run("smoke", &server("2025-11-25 no-schema")).exits(5);
    assert!(run.out.contains("  · hosts       the official SDKs refuse it: "), "{}", run.out);
    assert!(
        verdict(&run).starts_with("✗ it answers taut, but the official SDKs refuse it"),
        "{run:?}"
    );
    let last = run.out.lines().last().unwrap();
    assert!(last.starts_with('✗') && last.contains("taut doctor"), "{}", run.out);
    assert!(run.out.contains("\n  try: taut doctor -- "), "{}", run.out);
    let json = super::run("smoke --json", &server("2025-11-25 no-schema")).exits(5).json();
    assert_eq!((&json["ok"], &json["exit"]), (&json!(false), &json!(5)));
}

#[test]
fn smoke_gives_no_green_tick_to_a_server_that_one_sdk_refuses() {
    let text = json!({ "name": "get_x", "inputSchema": { "type": "string" } });
    let run = smoke("", &[text], &json!({ "content": [] })).exits(0);
    assert!(run.out.contains("the TypeScript SDK refuses it"), "{}", run.out);
    assert!(verdict(&run).starts_with("! it works here, but not everywhere: "), "{}", run.out);
    assert!(run.out.contains("\n  try: taut doctor -- "), "{}", run.out);
}

#[test]
fn a_tool_that_taut_chose_and_that_fails_politely_is_a_note() {
    let tools = [tool("get_pages", &json!({ "readOnlyHint": true }))];
    let polite = [
        json!({ "isError": true, "content": [{ "type": "text", "text": "no account" }] }),
        json!({ "error": { "code": -32602, "message": "no account", "data": { "need": "KEY" } } }),
    ];
    for answer in polite {
        let run = smoke("", &tools, &answer).exits(0);
        assert!(run.out.contains("  · called      get_pages {}"), "{}", run.out);
        assert!(run.out.contains("no account"), "{}", run.out);
        assert!(verdict(&run).contains("the tool get_pages, which taut chose, failed"), "{run:?}");
        let json = smoke("--json", &tools, &answer).exits(0).json();
        assert_eq!(json["called"]["failed"], true);
    }
    smoke("--call get_pages", &tools, &polite_failure()).exits(1);
    smoke("--call get_pages", &tools, &json!({ "error": { "code": -1, "message": "no" } }))
        .exits(3);
}

/// A tool that waits for ever, as without its network: that says nothing of the server if that answers meanwhile.
#[test]
// About Unix itself: a shell plays the servers.
#[cfg(unix)]
fn a_tool_that_taut_chose_and_that_does_not_answer_is_a_note_while_the_server_does() {
    let tools = r#""tools":[{"name":"get_x","inputSchema":{"type":"object"}}]"#;
    let opened = r#""protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}"#;
    let serving = |call: &str| {
        let script = format!(
            r#"say() {{ printf '{{"jsonrpc":"2.0","id":%s,%s}}\n' "$id" "$1"; }}
            while read -r line; do
            id=${{line#*\"id\":}}; id=${{id%%[!0-9]*}}
            case $line in
            *'"initialize"'*) say '"result":{{{opened}}}';;
            *tools/call*) {call};;
            *tools/list*) say '"result":{{{tools}}}';;
            *notifications*) ;;
            *) say '"error":{{"code":-32601,"message":"no"}}';;
            esac
            done; exit 3"#
        );
        ["sh", "-c", &script].map(str::to_owned)
    };
    let run = run("smoke --timeout 1s", &serving(":")).exits(0);
    assert!(verdict(&run).contains("the tool get_x, which taut chose, failed"), "{run:?}");
    assert!(verdict(&run).contains("it exited with code 3"), "how it ended is no success: {run:?}");
    assert!(run.out.contains("  · ended "), "{}", run.out);
    super::run("smoke --timeout 1s --call get_x", &serving(":")).exits(6);
    super::run("smoke --timeout 1s", &serving("read -r never </dev/zero")).exits(6);
}

fn polite_failure() -> Value {
    json!({ "isError": true, "content": [] })
}

#[test]
fn smoke_chooses_no_tool_that_starts_a_browser_or_needs_the_world() {
    let risky = [
        tool("browser_snapshot", &json!({ "readOnlyHint": true })),
        tool("list_pages", &json!({ "readOnlyHint": true, "openWorldHint": true })),
        tool("delete_all", &json!({ "readOnlyHint": true })),
        tool("get-env", &json!({ "readOnlyHint": true, "openWorldHint": false })),
    ];
    let json = smoke("--json", &risky, &json!({ "content": [] })).exits(0).json();
    assert_eq!(json["called"], Value::Null, "{json:#}");
}

#[test]
fn smoke_says_when_no_tool_was_called_and_how_to_call_one() {
    let schema = json!({ "type": "object", "required": ["question"],
        "properties": { "question": { "type": "string" } } });
    let tools = [json!({ "name": "answer", "inputSchema": schema })];
    let run = smoke("--env KEEP=it", &tools, &json!({ "content": [] })).exits(0);
    assert!(verdict(&run).starts_with("✓ it works: 1 tool, no tool was called"), "{}", run.out);
    #[cfg(unix)]
    let line = r#"  try: taut smoke --env KEEP=it --call answer --args '{"question":"…"}' -- "#;
    #[cfg(unix)]
    assert!(run.out.contains(line), "{}", run.out);
    assert!(demo("smoke").exits(0).out.contains("✓ it works: "));
}

/// What a server says of a refusal beside its message is what a person needs.
#[test]
// About Unix itself: an argument may have more than 32 KiB.
#[cfg(unix)]
fn the_data_of_an_error_is_shown_masked_and_bounded() {
    let refusing = |data: &Value| {
        let error = json!({ "code": -32602, "message": "bad request", "data": data });
        answering(&json!({ "tools/list": { "tools": [tool("x", &json!({}))] },
            "tools/call": { "error": error } }))
    };
    let told = refusing(&json!({ "reason": "query is required", "at": "\u{1b}[2J" }));
    for (line, code) in [("call x --args {}", 3), ("smoke --call x", 3)] {
        let run = run(line, &told).exits(code);
        let said = format!("{}{}", run.out, run.err);
        assert!(said.contains(r#""reason":"query is required"}"#), "{line}: {said}");
        assert!(!said.contains('\u{1b}'), "{line}: {said}");
        assert!(!said.contains("with -v"), "{line}: {said}");
    }
    let secret = json!({ "reason": "the key s3cr3t-of-mine is wrong" });
    let masked = run("call x --args {} --env MY_TOKEN=s3cr3t-of-mine", &refusing(&secret));
    let told = masked.err;
    assert!(told.contains("the key *** is wrong") && !told.contains("s3cr3t"), "{told}");
    let run = run("call x --args {}", &refusing(&json!("y".repeat(100_000)))).exits(3);
    assert!(run.err.len() < 5000 && run.err.contains("data: \"yyy"), "{}", run.err.len());
}
