//! What a second newcomer stumbled over (issue 19, F4 to F11).

#[cfg(unix)]
use super::terminal::{Terminal, plain};
use super::*;

fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

/// All words with one blank between: where lines are broken does not matter.
#[cfg(unix)]
fn flowed(text: &str) -> String {
    plain(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// What a command offers to a server, as the server heard it.
fn offered(command: &str) -> Value {
    let file = temporary().join(format!("offered-by-{command}.jsonl"));
    let _ = std::fs::remove_file(&file);
    let server = ["taut", "serve", "--transcript", file.to_str().unwrap()].map(str::to_owned);
    run(&format!("{command} --revision 2025-11-25"), &server).exits(0);
    let said = std::fs::read_to_string(&file).unwrap();
    let opening = said.lines().find(|line| line.contains("\"initialize\"")).unwrap();
    let start = opening.find("{\"jsonrpc\"").unwrap();
    let mut messages = serde_json::Deserializer::from_str(&opening[start..]).into_iter::<Value>();
    messages.next().unwrap().unwrap()["params"]["capabilities"].clone()
}

/// F4: `list` showed 15 tools of a server, `smoke` 14 and `doctor` 13, and nobody said why.
#[test]
fn list_and_smoke_offer_the_same_and_doctor_says_that_it_offers_nothing() {
    let listed = offered("list");
    assert!(listed.get("sampling").is_some(), "{listed}");
    assert!(listed["elicitation"].get("url").is_some(), "{listed}");
    assert_eq!(offered("smoke"), listed);
    assert_eq!(offered("doctor"), serde_json::json!({}));
    let run = demo("doctor").exits(0);
    let told = "offered       nothing: no sampling, elicitation or roots";
    assert!(run.out.contains(told), "{}", run.out);
}

/// F5: the end of the reason is what one needs.
#[test]
// About Unix itself: terminals.
#[cfg(unix)]
fn doctor_wraps_the_reason_of_a_failed_start() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = temporary().join("slow-runner");
    std::fs::create_dir_all(&folder).unwrap();
    let npx = folder.join("npx");
    std::fs::write(&npx, "#!/bin/sh\nexec sleep 60\n").unwrap();
    std::fs::set_permissions(&npx, std::fs::Permissions::from_mode(0o755)).unwrap();
    let words = ["doctor", "--start-timeout", "300ms", "--", npx.to_str().unwrap(), "server"];
    let (text, code) = Terminal::sized(80, &words, |_| ()).end();
    assert_eq!(code, Some(4), "{text}");
    let row = plain(&text)
        .lines()
        .skip_while(|line| !line.contains("✗ agreed"))
        .take(4)
        .collect::<Vec<_>>()
        .join(" ");
    let row = row.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        row.contains("npx may still be downloading the package: try again, or set a longer"),
        "{text}"
    );
    assert!(plain(&text).contains("NODE_EXTRA_CA_CERTS"), "{text}");
    let (narrow, _) = Terminal::sized(60, &["doctor", "demo"], |_| ()).end();
    let narrow = plain(&narrow);
    let mut after = narrow.lines().skip_while(|line| !line.contains("· environment")).skip(1);
    assert_eq!(after.next().map(str::trim), Some(""), "a long list is cut: {narrow}");
    for line in plain(&text).lines().filter(|line| !line.contains('/')) {
        assert!(line.trim_end().chars().count() <= 80, "{line:?}");
    }
}

/// F7: nested values were sent unread, and "it takes" did not show them.
#[test]
fn what_is_inside_an_argument_is_checked_and_shown() {
    let schema = serde_json::json!({ "type": "object", "required": ["who"], "properties": {
        "who": { "type": "object", "required": ["name"], "properties": {
            "name": { "type": "string", "description": "Her name." },
            "age": { "type": "integer", "minimum": 0 } } } } });
    let server = answering(&serde_json::json!({
        "tools/list": { "tools": [{ "name": "greet", "inputSchema": schema }] },
        "tools/call": { "content": [{ "type": "text", "text": "it was sent" }] } }));
    let ran = run(r#"call greet who={"nmae":"x","age":-1}"#, &server).exits(2);
    for line in [
        "  who.name is missing: text\n",
        "  who.age must be 0 or more, not -1\n",
        "  there is no argument who.nmae; did you mean name?\n",
        "it takes:\n  who: object\n    name: string  Her name.\n    age: integer (optional, 0 or more)\n",
        "  try: taut call greet who=… -- …\n",
    ] {
        assert!(ran.err.contains(line), "{line:?} in {}", ran.err);
    }
    let ran = run(r#"call greet who={"name":"Ada"}"#, &server).exits(0);
    assert_eq!(ran.out, "it was sent\n");
}

/// F8: Ctrl-C had one step only, and a server that ignored it ran on.
#[test]
// About Unix itself: signals.
#[cfg(unix)]
fn the_second_ctrl_c_of_trace_kills_the_server_and_says_so() {
    let server = "trap '' INT TERM; echo up >&2; while :; do sleep 1; done";
    let mut terminal = Terminal::start_with(&["trace", "--", "sh", "-c", server], |_| ());
    terminal.shows("up").press(b"\x03");
    terminal.shows("the server has got the signal; once more kills it").press(b"\x03");
    terminal.shows("the server is killed");
    let (text, code) = terminal.end();
    assert_eq!(code, Some(130), "{text}");
}

#[test]
// About Unix itself: signals.
#[cfg(unix)]
fn a_server_behind_trace_that_ignores_signals_is_killed_and_that_is_said() {
    let server = "trap '' INT TERM; echo up >&2; while :; do sleep 1; done";
    let mut terminal = Terminal::start_with(&["trace", "--", "sh", "-c", server], |_| ());
    terminal.shows("up").press(b"\x03");
    terminal.shows("the server ignored SIGINT and SIGTERM, and is killed");
    let (text, code) = terminal.end();
    assert_eq!(code, Some(130), "{text}");
    // One that heeds it ends as it likes, and nothing is said.
    let heeds = "trap 'exit 7' INT; echo up >&2; while :; do sleep 0.05; done";
    let mut terminal = Terminal::start_with(&["trace", "--", "sh", "-c", heeds], |_| ());
    terminal.shows("up").press(b"\x03");
    let (text, code) = terminal.end();
    assert_eq!(code, Some(7), "{text}");
    assert!(!text.contains("killed"), "{text}");
}

/// F9: the page promised options that some commands do not have.
#[test]
// About Linux itself: `taut bench`.
#[cfg(all(target_os = "linux", not(taut_portable)))]
fn the_table_of_options_is_true_for_every_command() {
    const TEN: [&str; 10] = [
        "smoke", "list", "call", "read", "prompt", "complete", "shell", "watch", "doctor", "check",
    ];
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/command.md");
    let text = std::fs::read_to_string(path).unwrap();
    let help = |command: &str| run(&format!("{command} --help"), &[]).exits(0).out;
    let has = |help: &str, option: &str| {
        let name = |word: &str| word.trim_end_matches(',') == option;
        let of_option = |line: &&str| line.trim_start().starts_with('-');
        help.lines().filter(of_option).any(|line| line.split_whitespace().take(2).any(name))
    };
    let ten: Vec<(&str, String)> = TEN.iter().map(|command| (*command, help(command))).collect();
    let others: Vec<(&str, String)> =
        ["trace", "bridge", "bench"].iter().map(|command| (*command, help(command))).collect();
    let mut rows = 0;
    let table = text.lines().skip_while(|line| !line.starts_with("| option |")).skip(2);
    for row in table.take_while(|line| line.starts_with('|')) {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        let [what, says @ ..] = cells.as_slice() else { panic!("{row}") };
        let options: Vec<&str> = what
            .split('`')
            .filter(|part| part.starts_with('-'))
            .map(|part| part.split_whitespace().next().unwrap())
            .collect();
        assert!(!options.is_empty() && says.len() == 4, "{row}");
        rows += 1;
        for option in options {
            let but = what.contains("not for `check`");
            for (command, help) in ten.iter().filter(|(command, _)| !but || *command != "check") {
                assert!(has(help, option), "{command} has no {option}");
            }
            for ((command, help), says) in others.iter().zip(&says[1..]) {
                assert_eq!(has(help, option), *says == "yes", "{command} {option}");
            }
        }
    }
    assert!(rows > 10, "{rows}");
}

/// F9: `trace` said nothing of a server that is not there.
#[test]
#[cfg(feature = "http")]
fn trace_says_at_once_that_nobody_listens() {
    let file = temporary().join("trace-nobody.txt");
    let to = std::fs::File::create(&file).unwrap();
    let mut command = taut(["trace", "http://127.0.0.1:9/mcp"]);
    let mut child = command.stdin(Stdio::piped()).stderr(to).spawn().unwrap();
    let told = "http://127.0.0.1:9/mcp: cannot be reached: nobody listens there";
    eventually("it is told", || std::fs::read_to_string(&file).unwrap().contains(told));
    drop(child.stdin.take());
    child.wait().unwrap();
}

/// F9: the timeout of a request does not bound the start; that is said when it matters.
#[test]
fn a_start_that_takes_longer_than_a_request_may_names_the_limit() {
    let server = server("2025-11-25 slow-start=1500");
    for command in ["list", "smoke", "watch --for 100ms"] {
        let ran = run(&format!("{command} --timeout 900ms"), &server);
        let told = "the server is not ready after 900 ms; it has 1.0 min (--start-timeout)";
        assert!(ran.err.contains(told), "{command}: {}", ran.err);
    }
    let ran = demo("list --timeout 50s").exits(0);
    assert_eq!(ran.err, "");
}

/// F11: small things, each with what it says now.
#[test]
fn hints_can_be_typed_as_they_are() {
    let table = [
        ("call echo demo", "try: taut call echo text=… demo\n"),
        ("call echo -s demo", "try: taut call echo text=… -s demo\n"),
        ("prompt greet demo", "try: taut prompt greet name=… demo\n"),
        ("call no_such demo", "try: `taut list tools demo`; with --args"),
        (
            "read demo",
            "error: demo is a server; the address comes first\n  try: taut read ADDRESS demo\n",
        ),
        ("call demo", "try: taut call TOOL demo\n"),
        ("prompt demo", "try: taut prompt PROMPT demo\n"),
        ("trace view nowhere", "try: name a file that exists\n"),
        ("trace veiw nowhere", "did you mean taut trace view?"),
        ("watch --count 0 demo", "invalid value '0' for '--count <N>': expected 1 or more\n"),
        ("check --only rcp demo", "there is no check \"rcp\"; did you mean rpc?\n"),
        #[cfg(all(target_os = "linux", not(taut_portable)))]
        ("bench --compare x demo", "expected NAME=COMMAND, such as cat=cat\n"),
        ("servers zz", "try: `taut servers` shows all of them, -v also where they may be"),
        ("list demo --debug=/no/such/file", "try: name a file in a folder that exists"),
        ("list demo --out /no/such/file", "try: name a file in a folder that exists"),
        ("call echo --args @/no/such/file demo", "try: name a file that exists"),
        ("call slow steps=x demo", "steps must be a whole number, not \"x\""),
    ];
    for (line, told) in table {
        let ran = run(line, &[]).exits(2);
        assert!(ran.err.contains(told), "{line}: {}", ran.err);
    }
    #[cfg(feature = "login")]
    {
        let ran = run("login http://127.0.0.1:9/mcp --no-browser", &[]).exits(4);
        assert!(ran.err.contains("\n  try: is it running"), "{}", ran.err);
    }
}

#[test]
fn the_shell_lists_and_completes_and_its_help_says_so() {
    let server = words("taut serve");
    let ran = run_with("shell", &server, "help\ncomplete greet language=D\nlist\n").exits(0);
    for line in ["  list  ", "  complete NAME", "\nDutch\n", "\nprompts 2\n"] {
        assert!(ran.out.contains(line), "{line:?} in {}", ran.out);
    }
    let ran = run_with("shell", &server, "complete gret language=D\n").exits(2);
    assert!(ran.err.contains("did you mean greet?"), "{}", ran.err);
    let ran = run_with("shell", &server, "complete greet\n").exits(2);
    assert!(ran.err.contains("try: complete greet KEY=BEGINNING\n"), "{}", ran.err);
    let ran = run_with("shell --json", &server, "complete greet language=D\n").exits(0);
    assert_eq!(ran.json()["result"]["values"], serde_json::json!(["Dutch"]));
}

/// What is wrong comes first, once.
#[test]
fn a_broken_file_is_the_first_thing_that_is_said() {
    let folder = temporary().join("broken-file");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join(".mcp.json"), "{\"mcpServers\": {\"a\": }").unwrap();
    for line in ["smoke a", "smoke --all", "list a", "call echo a", "servers a"] {
        let mut command = taut(words(line));
        let ran: Run = command.current_dir(&folder).output().unwrap().into();
        let ran = ran.exits(2);
        assert!(ran.err.starts_with("error: .mcp.json: line 1, column "), "{line}: {}", ran.err);
        assert_eq!(ran.err.matches(".mcp.json").count(), 1, "{line}: {}", ran.err);
        assert!(ran.err.contains("\n  try: "), "{line}: {}", ran.err);
    }
}

/// A bunch of changes is one line with -v, too.
#[test]
fn the_same_change_again_is_not_told_again() {
    let changed = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
    let script = format!(
        "read -r line; printf '%s\\n' '{changed}' '{changed}' '{changed}' \
         '{{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{{\"protocolVersion\":\"2025-11-25\",\
         \"capabilities\":{{}},\"serverInfo\":{{\"name\":\"x\",\"version\":\"1\"}}}}}}'; cat > /dev/null"
    );
    if cfg!(unix) {
        let server = ["sh", "-c", &script].map(str::to_owned);
        let ran = run("list -v --revision 2025-11-25", &server).exits(0);
        assert_eq!(ran.err.matches("tools/list_changed").count(), 1, "{}", ran.err);
    }
}

/// Interrupted is not worked.
#[test]
// About Unix itself: signals.
#[cfg(unix)]
fn smoke_of_all_has_no_tick_when_it_is_interrupted() {
    let folder = temporary().join("interrupted-all");
    std::fs::create_dir_all(&folder).unwrap();
    let file = serde_json::json!({ "mcpServers": {
        "quick": { "command": "taut", "args": ["serve"] },
        "slow": { "command": "sh", "args": ["-c", "sleep 60 # interrupted-all"] } } });
    std::fs::write(folder.join(".mcp.json"), file.to_string()).unwrap();
    let mut terminal = Terminal::start_with(&["smoke", "--all"], |command| {
        command.current_dir(&folder);
    });
    terminal.shows("1 of 2 tried").press(b"\x03");
    let (text, code) = terminal.end();
    assert_eq!(code, Some(130), "{text}");
    assert!(flowed(&text).contains("✗ interrupted: 1 of 1 work, 1 not tried"), "{text}");
}

/// A server that takes its time is told to end, and the person what else can be done.
#[test]
// About Unix itself: signals.
#[cfg(unix)]
fn a_start_that_is_interrupted_says_that_once_more_kills() {
    for command in ["doctor", "smoke", "list"] {
        let server = "trap '' TERM; echo up >&2; while :; do sleep 1; done";
        let mut terminal = Terminal::start_with(&[command, "-v", "--", "sh", "-c", server], |_| ());
        terminal.shows("stderr │ up").press(b"\x03");
        terminal.shows("closing the server; once more kills it").press(b"\x03");
        let (text, code) = terminal.end();
        assert_eq!(code, Some(130), "{command}: {text}");
    }
}

/// A build without optimisation measures itself; the release profile is one.
#[test]
// About Linux itself: `taut bench`.
#[cfg(all(target_os = "linux", not(taut_portable)))]
fn bench_of_a_build_that_is_not_optimised_says_so() {
    let ran = run("bench --quick --only list --cores one demo", &[]).exits(0);
    let slow = matches!(env!("TAUT_OPT_LEVEL"), "0" | "1");
    assert_eq!(ran.err.contains("this taut is not optimised"), slow, "{}", ran.err);
    assert!(ran.out.contains("list of 14 tools"), "{}", ran.out);
}

/// By hand it waits for a host that never comes.
#[test]
// About Unix itself: terminals.
#[cfg(unix)]
fn what_is_started_by_hand_says_what_it_waits_for() {
    let table = [
        ("trace demo", "passes on what a host says", "try: taut smoke -- taut trace demo"),
        ("trace mock session.jsonl", "answers what a host says", "taut trace mock session.jsonl"),
        ("serve", "serves MCP on stdin and stdout", "try: taut smoke"),
    ];
    for (line, told, next) in table {
        let words: Vec<&str> = line.split(' ').collect();
        let mut terminal = Terminal::start_with(&words, |_| ());
        terminal.shows(told).shows("type JSON and end with Ctrl-D").shows(next).press(b"\x04");
        let (text, code) = terminal.end();
        assert_eq!(code, Some(0), "{text}");
    }
    let ran = run("trace -q demo", &[]).exits(0);
    assert_eq!(ran.err, "");
}
