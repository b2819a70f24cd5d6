//! Hints that can be pasted: what was meant, with the words that were typed.

use serde_json::json;

#[cfg(unix)]
use super::demo;
use super::{answering, run, taut};

fn told(words: &[&str]) -> super::Run {
    taut(words).output().unwrap().into()
}

/// Arguments of --call are one JSON object, and the line with it is given.
#[test]
// About Unix itself: how its shells quote.
#[cfg(unix)]
fn pairs_after_call_are_answered_with_the_line_that_is_meant() {
    for (line, pairs) in [
        ("smoke --call echo text=hi", r#"taut smoke --call echo --args '{"text":"hi"}' -- "#),
        ("smoke --call add a=1 b=2", r#"taut smoke --call add --args '{"a":1,"b":2}' -- "#),
        ("doctor --call echo text=hi", r#"taut doctor --call echo --args '{"text":"hi"}' -- "#),
    ] {
        let run = demo(line).exits(2);
        assert!(run.err.contains(pairs), "{line}: {}", run.err);
        assert!(!run.err.contains("two dashes"), "{line}: {}", run.err);
    }
}

/// A server and its tool in one word, and a tool in the place of the command.
#[test]
fn a_tool_that_is_typed_as_hosts_write_it_is_understood() {
    let run = told(&["call", "demo.echo", "text=hi"]).exits(2);
    assert!(run.err.contains("taut call echo text=hi demo"), "{}", run.err);
    let run = told(&["echo", "text=hi"]).exits(2);
    assert!(run.err.contains("taut call echo text=hi"), "{}", run.err);
}

/// An argument that the tool does not have is in no example.
#[test]
fn an_argument_that_does_not_exist_is_not_suggested() {
    let tool = json!({ "name": "list_type", "inputSchema": { "type": "object",
        "properties": { "type": { "type": "string" } }, "required": ["type"],
        "additionalProperties": true } });
    let tools = answering(&json!({ "tools/list": { "tools": [tool] } }));
    let run = run("call list_type c=1", &tools).exits(2);
    assert!(run.err.contains("taut call list_type type=… -- "), "{}", run.err);
}

/// What a server that raised has written is a word away.
#[test]
// About Unix itself: a shell plays the server.
#[cfg(unix)]
fn a_tool_that_failed_says_where_its_traceback_is() {
    let script = &shell(r#"[{"name":"fail","inputSchema":{"type":"object"}}]"#);
    let words = ["call", "fail", "--", "sh", "-c", script];
    let run = told(&words).exits(1);
    assert!(
        run.err.contains("try: -v, which shows what the server wrote on stderr"),
        "{}",
        run.err
    );
    let run = told(&[&["call", "-v"], &words[1..]].concat()).exits(1);
    assert!(run.err.contains("Traceback") && !run.err.contains("try: -v"), "{}", run.err);
}

/// The cure is a whole entry, with the variables, and with paths that hold in any folder.
#[test]
// About Unix itself: a shell plays the server.
#[cfg(unix)]
fn the_cure_of_doctor_is_a_whole_entry() {
    let folder = super::temporary().join("entry");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("weather.sh"), "echo a banner\nexec taut serve\n").unwrap();
    let mut command = taut(["doctor", "--env", "UNIT=celsius", "--", "sh", "./weather.sh"]);
    let run: super::Run = command.current_dir(&folder).output().unwrap().into();
    let entry = format!(
        r#"   "weather": {{ "command": "taut", "args": ["bridge","--","sh","{}/weather.sh"], "env": {{"UNIT":"celsius"}} }}"#,
        folder.display()
    );
    assert!(run.out.contains(&entry), "{}\n{entry}", run.out);
}

/// Mcp-proxy and the Inspector's --cli eat the two dashes.
#[test]
// About Unix itself: a shell plays the server.
#[cfg(unix)]
fn a_command_without_its_two_dashes_is_understood_by_the_bridge() {
    let opening = r#"{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"x","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}"#;
    let ping = format!("{opening}\n");
    for line in ["bridge taut serve", "bridge --env A=b sh -c true", "bridge sh -c true"] {
        let run = super::run_with(line, &[], &ping);
        assert!(!run.err.contains("unexpected argument"), "{line}: {}", run.err);
        assert!(!run.err.contains("no server"), "{line}: {}", run.err);
    }
    let run = super::run_with("bridge taut serve", &[], &ping).exits(0);
    assert!(run.out.contains("supportedVersions"), "{run:?}");
    let run = super::run_with("bridge nothing", &[], "").exits(2);
    assert!(run.err.contains("nothing"), "a lone word is a server's name: {}", run.err);
}

/// A name of megabytes does not fill the screen, nor do a million choices.
#[test]
// About Unix itself: a shell plays the server.
#[cfg(unix)]
fn text_for_people_is_bounded() {
    let long = "$(head -c 200000 /dev/zero | tr '\\0' n)";
    let script = shell(&format!(r#"[{{"name":"{long}","inputSchema":{{"type":"object"}}}}]"#));
    for words in [&["doctor"][..], &["smoke"], &["call", "x", "a=1"]] {
        let run = told(&[words, &["--", "bash", "-c", &script]].concat());
        let all = run.out.len() + run.err.len();
        assert!(all < 60_000, "{words:?}: {all} bytes");
    }
    let many = "$(seq -s '\",\"' 1 100000)";
    let schema = r#"{"type":"object","required":["a"],"properties":{"a":{"enum":["#;
    let script = shell(&format!(r#"[{{"name":"x","inputSchema":{schema}"{many}"]}}}}}}}}]"#));
    let run = told(&["call", "x", "a=b", "--", "bash", "-c", &script]).exits(2);
    assert!(run.err.len() < 10_000, "{} bytes", run.err.len());
    assert!(run.err.contains(" more"), "{}", run.err);
}

/// Nor do a question and a log line of megabytes.
#[test]
// About Unix itself: a shell plays the server.
#[cfg(unix)]
fn a_question_and_a_log_line_for_people_are_bounded() {
    let opened = r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"logging":{}},"serverInfo":{"name":"s","version":"1"}}"#;
    let asked = r#"{"type":"object","properties":{}}"#;
    let script = format!(
        r#"long=$(head -c 300000 /dev/zero | tr '\0' n)
        say() {{ printf '{{"jsonrpc":"2.0",%s}}\n' "$1"; }}
        while read -r line; do
        id=${{line#*\"id\":}}; id=${{id%%[!0-9]*}}
        case $line in
        *'"initialize"'*) say "\"id\":$id,"'"result":{opened}';;
        *'"id":"q"'*) say "\"id\":$call,"'"result":{{"content":[]}}';;
        *tools/call*) call=$id
            say '"method":"notifications/message","params":{{"level":"error","data":"'$long'"}}'
            say '"id":"q","method":"elicitation/create","params":{{"message":"'$long'","requestedSchema":{asked}}}';;
        *notifications*) ;;
        *) say "\"id\":$id,"'"error":{{"code":-32601,"message":"no"}}';;
        esac
        done"#
    );
    let run = told(&["call", "x", "--args", "{}", "-v", "--", "bash", "-c", &script]).exits(3);
    assert!(run.err.contains(" asks: nnn"), "{}", run.err.len());
    assert!(run.err.len() > 60_000, "both are shown: {}", run.err);
    assert!(run.err.len() < 100_000, "{} bytes", run.err.len());
}

/// A server with these tools that answers a call with a failure, after it has written why. What stands in `$()` is
/// put in by the shell.
// About Unix itself: a shell.
#[cfg(unix)]
fn shell(tools: &str) -> String {
    let tools = tools.split_inclusive(')').map(|part| match part.split_once("$(") {
        Some((before, inside)) => format!("'{before}'\"$({inside}\""),
        None => format!("'{part}'"),
    });
    let tools: String = tools.collect();
    let opened = r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}"#;
    format!(
        r#"tools={tools}
        while read -r line; do
        id=${{line#*\"id\":}}; id=${{id%%[!0-9]*}}
        case $line in
        *'"initialize"'*) r='"result":{opened}';;
        *tools/call*) echo Traceback >&2; sleep 0.2; r='"result":{{"isError":true,"content":[]}}';;
        *tools/list*) r='"result":{{"tools":'$tools'}}';;
        *notifications*) continue;;
        *) r='"error":{{"code":-32601,"message":"no"}}';;
        esac
        printf '{{"jsonrpc":"2.0","id":%s,%s}}\n' "$id" "$r"
        done"#
    )
}

/// A list that is refused is no reason to list again, and one of 10,000 pages is called that.
#[test]
fn a_list_that_is_refused_or_never_ends_is_called_that() {
    let refused = json!({ "error": { "code": -32603, "message": "fetch failed" } });
    let run = run("list", &answering(&json!({ "tools/list": refused }))).exits(3);
    assert!(run.err.contains("fetch failed") && !run.err.contains("`taut list"), "{}", run.err);
    let run = super::run("list tools", &super::server("pages 1")).exits(5);
    assert!(run.err.contains("it has more than 10000 pages"), "{}", run.err);
}

/// The last words of a server that died at its start stand in the answer and, as its own, on stderr; no option is
/// advised against that was not typed.
#[test]
// About Unix itself: a shell plays the server.
#[cfg(unix)]
fn the_bridge_shows_a_traceback_at_the_start_once() {
    let server = ["sh", "-c", "echo Traceback-of-mine >&2; exit 1"].map(str::to_owned);
    let opening = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{}}}"#;
    let run = super::run_with("bridge", &server, &format!("{opening}\n"));
    for said in [&run.out, &run.err] {
        assert_eq!(said.matches("Traceback-of-mine").count(), 1, "{run:?}");
        assert!(!said.contains("--revision"), "{run:?}");
    }
}

/// A bridge says where it listens as hosts need it; a wrong token is refused in one sentence; nothing is called lines.
#[test]
// About Unix itself: a program without an ending in `PATH`.
#[cfg(all(unix, feature = "http"))]
fn over_http_it_is_told_as_http() {
    use std::io::BufRead as _;
    let file = super::temporary().join("token-of-http");
    std::fs::write(&file, "0123456789abcdef0123\n").unwrap();
    let words = ["bridge", "--listen", "127.0.0.1:0", "--token-file", file.to_str().unwrap()];
    let mut bridge = taut(words.into_iter().chain(["--", "taut", "serve"])).spawn().unwrap();
    let mut url = String::new();
    std::io::BufReader::new(bridge.stdout.take().unwrap()).read_line(&mut url).unwrap();
    let url = url.trim();
    let asked = |command: &str, token: &str| -> super::Run {
        let header = format!("Authorization: Bearer {token}");
        taut([command, url, "--header", &header]).output().unwrap().into()
    };
    let (wrong, right) = (asked("list", "wrong"), asked("smoke", "0123456789abcdef0123"));
    let doctor = asked("doctor", "0123456789abcdef0123");
    bridge.kill().unwrap();
    bridge.wait().unwrap();
    assert!(url.starts_with("http://127.0.0.1:") && url.ends_with("/mcp"), "{url}");
    assert_eq!(wrong.err.matches("is not accepted").count(), 1, "{}", wrong.err);
    assert_eq!(wrong.err.matches("401").count(), 1, "{}", wrong.err);
    for said in [&right.out, &doctor.out] {
        assert!(said.contains(", HTTP") && !said.contains("lines"), "{said}");
        assert!(!said.contains("0.0 ms"), "{said}");
    }
}

/// An error over HTTP, behind a token, goes to people who must not read the server's logs.
#[test]
// About Unix itself: a shell plays the server.
#[cfg(all(unix, feature = "http"))]
fn the_error_of_a_crash_has_no_stderr_of_the_server_behind_a_token() {
    use std::io::BufRead as _;
    let file = super::temporary().join("token-of-hints");
    std::fs::write(&file, "0123456789abcdef0123\n").unwrap();
    let script = "echo very-private-words >&2; exit 3";
    let said = |options: &[&str]| {
        let mut words = vec!["bridge", "--listen", "127.0.0.1:0"];
        words.extend(options);
        words.extend(["--", "sh", "-c", script]);
        let mut bridge = taut(words).spawn().unwrap();
        let mut line = String::new();
        std::io::BufReader::new(bridge.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let url = line.trim().replace("tcp:", "http://");
        let url = if url.ends_with("/mcp") { url } else { format!("{url}/mcp") };
        let header = "Authorization: Bearer 0123456789abcdef0123";
        let run: super::Run = taut(["list", &url, "--header", header]).output().unwrap().into();
        bridge.kill().unwrap();
        bridge.wait().unwrap();
        format!("{}{}", run.out, run.err)
    };
    let with_token = said(&["--token-file", file.to_str().unwrap()]);
    assert!(with_token.contains("exited with code 3"), "{with_token}");
    assert!(!with_token.contains("very-private-words"), "{with_token}");
    assert!(said(&[]).contains("very-private-words"), "the same user's own");
}

/// Bench takes --call and --args as its siblings do.
#[test]
// About Linux itself: only there is `taut bench`.
#[cfg(all(target_os = "linux", not(taut_portable)))]
fn bench_measures_a_call_with_fixed_arguments() {
    let words = [
        "bench",
        "--quick",
        "--only",
        "sequential",
        "--cores",
        "one",
        "--json",
        "--call",
        "add",
        "--args",
        r#"{"a":1,"b":2}"#,
        "--",
        "taut",
        "serve",
    ];
    let json = told(&words).exits(0).json();
    assert_eq!(json["servers"][0]["called"]["arguments"], json!({ "a": 1, "b": 2 }), "{json:#}");
    let old = "bench --quick --only sequential --cores one --json --tool echo --arg text";
    assert_eq!(demo(old).exits(0).json()["servers"][0]["called"]["argument"], "text");
}
