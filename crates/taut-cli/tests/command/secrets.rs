//! What a host's file gives a server stays with the server: whatever it prints of it, no line of ours
//! shows it, unless somebody asked for just that.

use super::hosts::Place;
use super::*;

/// A server that tells its environment: on stderr at the start, and to whoever calls its one tool.
const LEAK: &str = r#"echo "key $API_KEY, tok $TOK, mode $MODE, word $2" >&2
[ -n "$DIES" ] && exit 3
while read -r line; do
  id=$(printf %s "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case $line in
    *'"initialize"'*) r='{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"leak","version":"1"}}';;
    *'"tools/list"'*) r='{"tools":[{"name":"env","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}]}';;
    *'"tools/call"'*) r='{"content":[{"type":"text","text":"API_KEY='$API_KEY' TOK='$TOK' MODE='$MODE'"}]}';;
    *) [ -n "$id" ] && printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}\n' "$id"; continue;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$r"
done"#;

const HUSHED: [&str; 3] = ["hush-api-key-1234567890", "hush-t0k-value", "hush-word"];

/// The project with that server, as it works and as it dies.
fn place() -> Place {
    let place = Place::empty();
    place.put("leak.sh", LEAK);
    let server = |dies: &str| {
        serde_json::json!({ "command": "sh", "args": ["leak.sh", "--token", HUSHED[2]],
            "env": { "API_KEY": HUSHED[0], "TOK": "${TOK}", "MODE": "production", "DIES": dies } })
    };
    let file = serde_json::json!({ "mcpServers": { "leak": server(""), "dies": server("yes") } });
    place.put(".mcp.json", &file.to_string());
    place
}

fn run_in(place: &Place, line: &str) -> Run {
    place.command(line).env("TOK", HUSHED[1]).output().unwrap().into()
}

/// T17: what is for showing around has no secret in it, however it came there.
/// Also SEC-11.
#[test]
fn what_a_server_repeats_of_its_environment_is_masked() {
    let place = place();
    for line in [
        "smoke leak",
        "smoke leak -v",
        "smoke leak --json",
        "smoke dies",
        "smoke dies --json",
        "smoke --all --json",
        "smoke --all",
        "doctor leak",
        "doctor leak --json --call env",
        "doctor dies",
        "doctor dies --json",
        "call env dies",
        "call env dies --json",
        "list leak -v",
        "call env leak -v --timeout 1ms",
    ] {
        let run = run_in(&place, &format!("{line} --revision 2025-11-25"));
        let all = format!("{}{}", run.out, run.err);
        assert!(HUSHED.iter().all(|secret| !all.contains(secret)), "{line}: {all}");
        if line.contains("dies") || line.contains("-v") {
            // Settings stay, or nobody could read it.
            assert!(all.contains("key ***, tok ***, mode production, word ***"), "{line}: {all}");
        }
    }
}

#[test]
fn what_somebody_asks_a_tool_for_is_shown() {
    let run = run_in(&place(), "call env leak --revision 2025-11-25").exits(0);
    assert_eq!(run.out, format!("API_KEY={} TOK={} MODE=production\n", HUSHED[0], HUSHED[1]));
}

/// What is cut to fit on a line is no less secret.
#[test]
fn the_beginning_of_a_secret_is_masked_where_a_line_is_cut() {
    let place = Place::empty();
    let long = format!("hush-{}", "0123456789".repeat(20));
    place.put("leak.sh", LEAK);
    let words = ["smoke", "--revision", "2025-11-25", "--env"];
    let mut command = place.command("");
    command.args(words).arg(format!("API_KEY={long}")).args(["--", "sh", "leak.sh"]);
    let run: Run = command.output().unwrap().into();
    let run = run.exits(0);
    assert!(run.out.contains("API_KEY=***") && !run.out.contains("hush"), "{}", run.out);
}

/// Lines are broken at blanks, and a secret may have some.
#[test]
fn a_secret_of_several_words_is_masked_where_a_line_is_broken() {
    let phrase =
        "hush alpha bravo charlie delta echo foxtrot golf hotel india juliett kilo lima mike";
    let place = Place::empty();
    let mut command = place.command("doctor --start-timeout 2s --env");
    command.arg(format!("PASSPHRASE={phrase}"));
    command.args(["--", "sh", "-c", "echo \"log in with $PASSPHRASE\"; cat > /dev/null"]);
    let run: Run = command.output().unwrap().into();
    assert!(run.out.contains("log in with ***"), "{}", run.out);
    assert!(["hush", "foxtrot", "mike"].iter().all(|word| !run.out.contains(word)), "{}", run.out);
}

#[test]
fn what_a_server_says_to_a_benchmark_is_masked() {
    let place = Place::empty();
    let mut command = place.command("bench --quick --env");
    command.arg(format!("API_KEY={}", HUSHED[0]));
    command.args(["--", "sh", "-c", "echo \"key $API_KEY\" >&2; exit 3"]);
    let run: Run = command.output().unwrap().into();
    let all = format!("{}{}", run.out, run.err);
    assert!(all.contains("key ***") && !all.contains("hush"), "{all}");
}

/// B2: a transcript is for its owner, and has no secret of the environment in it.
#[test]
fn a_transcript_is_for_its_owner_only() {
    let path = temporary().join("transcript-of-secrets");
    let _ = std::fs::remove_file(&path);
    let secret = r#"sec"ret\with-all"#;
    let server = format!("taut serve --transcript {}", path.display());
    let mut words: Vec<String> = ["call", "echo"].map(str::to_owned).into();
    words.push(format!("text={}", serde_json::json!({ "inner": secret })));
    words.extend(["--env".to_owned(), format!("DEMO_TOKEN={secret}"), "--".to_owned()]);
    words.extend(server.split(' ').map(str::to_owned));
    let run: Run = taut(words).output().unwrap().into();
    run.exits(0);
    let mode = std::os::unix::fs::MetadataExt::mode(&std::fs::metadata(&path).unwrap());
    assert_eq!(mode & 0o777, 0o600);
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.contains("***") && !text.contains("with-all"), "{text}");
}

/// What is typed after `--` may have a secret in it, as the entry of a host's file may.
#[test]
fn a_secret_in_the_typed_command_is_not_shown() {
    let script = "echo 'the token is swordfish-22' >&2; exec taut serve --token swordfish-22";
    let server = ["sh", "-c", script].map(str::to_owned);
    for line in ["smoke", "smoke --json", "doctor", "doctor --json", "smoke -v"] {
        let run = run(line, &server);
        let told = format!("{}{}", run.out, run.err);
        assert!(!told.contains("swordfish") && told.contains("***"), "{line}: {told}");
    }
}

/// What a server is given, and says back in every way that there is: `&`, `<`, `>`, `+`, `/`, quotes, and what is not
/// ASCII.
const SPELLED: &str = "salt&pepper<oyster>wälrus+carpenter/\"q\"-😀-walnut'7";

/// A server that says what stands in files.
const SAYS: &str = r#"cat stderr.txt >&2
while read -r line; do
  id=$(printf %s "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case $line in
    *'"initialize"'*) r='{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"leak","version":"1"}}';;
    *'"tools/list"'*) r='{"tools":[{"name":"env","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}]}';;
    *'"tools/call"'*) r=$(cat result.txt);;
    *) [ -n "$id" ] && { printf '{"jsonrpc":"2.0","id":%s,"error":' "$id"; cat error.txt; printf '}\n'; }; continue;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,"result":' "$id"; printf %s "$r"; printf '}\n'
done"#;

/// The secret as writers of JSON spell it in a string, and that string in others.
fn spelled() -> Vec<String> {
    let units = |c: char| c.encode_utf16(&mut [0; 2]).to_vec();
    let lower = |c: char| units(c).iter().map(|unit| format!("\\u{unit:04x}")).collect::<String>();
    let upper = |c: char| units(c).iter().map(|unit| format!("\\u{unit:04X}")).collect::<String>();
    let must = |c: char| if "\"\\".contains(c) { format!("\\{c}") } else { c.to_string() };
    let writers: [&dyn Fn(char) -> String; 6] = [
        &must,
        &|c| if "&<>".contains(c) { lower(c) } else { must(c) },
        &|c| if "&<>+'\"".contains(c) || !c.is_ascii() { upper(c) } else { must(c) },
        &|c| {
            if c == '/' {
                "\\/".to_owned()
            } else if c.is_ascii() {
                must(c)
            } else {
                lower(c)
            }
        },
        &lower,
        &upper,
    ];
    let mut all = Vec::new();
    for writer in writers {
        let mut text = SPELLED.to_owned();
        for _ in 0..3 {
            text = text.chars().map(writer).collect();
            all.push(text.clone());
        }
    }
    all
}

/// Every spelling, at three depths and across each cut, in every place that shows or keeps what a server says.
/// T27.
#[test]
fn a_secret_is_masked_in_every_spelling_and_in_every_place() {
    let place = Place::empty();
    place.put("says.sh", SAYS);
    let spelled = spelled();
    let mut stderr = String::new();
    for text in [SPELLED].into_iter().chain(spelled.iter().map(String::as_str)) {
        stderr += &format!("said {text} so\n");
    }
    // Lines are cut at 8 KiB, and those of captures at 16.
    for long in [8 << 10, 16 << 10] {
        for cut in (0..=SPELLED.len()).filter(|cut| SPELLED.is_char_boundary(*cut)).step_by(3) {
            stderr += &format!("{}{SPELLED} so\n", "x".repeat(long - cut));
        }
    }
    place.put("stderr.txt", &stderr);
    // What is in a string of JSON is one depth less there.
    let texts = spelled.join(" and ");
    let content = |text: &str| format!(r#"{{"content":[{{"type":"text","text":"{text}"}}]}}"#);
    place.put("result.txt", &content(&texts));
    place.put("error.txt", &format!(r#"{{"code":-32601,"message":"{texts}","data":"{texts}"}}"#));
    let server = serde_json::json!({ "mcpServers": { "leak": { "command": "sh", "args": ["says.sh"],
        "env": { "API_KEY": SPELLED } } } });
    place.put(".mcp.json", &server.to_string());
    let leaks = |text: &str| {
        ["oyster", "carpenter", "walnut", "0079\\u0073\\u0074"].map(|part| text.contains(part))
    };
    let kept = [
        "kept.jsonl",
        "bridge.jsonl",
        "steps.log",
        "steps.txt",
        "page.html",
        "junit.xml",
        "report.sarif",
    ];
    let revision = "--revision 2025-11-25";
    for line in [
        &format!("smoke leak --call env {revision}"),
        &format!("smoke leak --call env -v {revision}"),
        &format!("smoke leak --call env --json {revision}"),
        &format!("doctor leak --call env {revision}"),
        &format!("doctor leak --call env --json {revision}"),
        &format!("list leak -v {revision}"),
        &format!("list leak --debug {revision}"),
        &format!("prompt nothing leak {revision}"),
        &format!("prompt nothing leak --json {revision}"),
        &format!("smoke leak --call env --debug=./steps.log {revision}"),
        "check leak --only tools-declared --json --junit junit.xml --sarif report.sarif",
    ] {
        let run = run_in(&place, line);
        let all = format!("{}{}", run.out, run.err);
        assert_eq!(leaks(&all), [false; 4], "{line}: {all}");
    }
    // The bridge and the trace by themselves: what they write on stderr, and what they keep.
    let ask = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"env","arguments":{}}}
{"jsonrpc":"2.0","id":3,"method":"resources/list"}
"#;
    for line in [
        "bridge --record bridge.jsonl leak",
        "bridge -v --debug leak",
        "trace -q --record kept.jsonl leak",
    ] {
        let mut child = place.command(line).stdin(Stdio::piped()).spawn().unwrap();
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), ask.as_bytes()).unwrap();
        let run: Run = child.wait_with_output().unwrap().into();
        if line.starts_with("bridge") {
            assert_eq!(leaks(&run.err), [false; 4], "{line}: {}", run.err);
            assert!(run.err.contains("said *** so"), "{line}: {}", run.err);
        }
    }
    // Our own server keeps what it hears, and captures are shown.
    let said: Vec<String> = spelled
        .iter()
        .map(|text| {
            ask.replace(r#""arguments":{}"#, &format!(r#""arguments":{{"text":"{text}"}}"#))
        })
        .collect();
    let mut child = place.command("serve --transcript steps.txt");
    let mut child = child.env("API_KEY", SPELLED).stdin(Stdio::piped()).spawn().unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), said.concat().as_bytes()).unwrap();
    child.wait_with_output().unwrap();
    for line in [
        "trace view kept.jsonl",
        "trace view kept.jsonl --html page.html",
        "trace view bridge.jsonl --filter said",
        "trace diff kept.jsonl bridge.jsonl",
    ] {
        let run = run_in(&place, line);
        assert_eq!(leaks(&format!("{}{}", run.out, run.err)), [false; 4], "{line}: {}", run.out);
    }
    for name in kept {
        let text = std::fs::read_to_string(place.project().join(name)).unwrap();
        assert_eq!(leaks(&text), [false; 4], "{name}: {text}");
        assert!(text.contains("***") || name.starts_with(['j', 'r']), "{name}: {text}");
    }
}
