//! What somebody new to it stumbled over (issue 19, D).

#[cfg(unix)]
use super::terminal::{Terminal, plain};
use super::*;

#[cfg(unix)]
fn demo_words(line: &str) -> Vec<&str> {
    line.split(' ').chain(["--", "taut", "serve"]).collect()
}

#[test]
fn cmp_a_server_completes_arguments_of_prompts_and_templates() {
    assert_eq!(demo("complete greet language=D").exits(0).out, "Dutch\n");
    assert_eq!(demo("complete greet name=Ada language=").exits(0).out.lines().count(), 4);
    assert_eq!(demo("complete weather://{city}/today city=be").exits(0).out, "Berlin\nBern\n");
    let none = demo("complete greet language=x").exits(0);
    assert_eq!((none.out.as_str(), none.err.trim()), ("", "the server suggests nothing"));
    let document = demo("complete greet language=D --json").exits(0).json();
    assert_eq!(document["values"], serde_json::json!(["Dutch"]));
    let slip = demo("complete gret language=").exits(2);
    assert!(slip.err.contains("did you mean greet?"), "{}", slip.err);
    let which = demo("complete greet").exits(2);
    assert!(which.err.contains("which argument"), "{}", which.err);
    assert_eq!(run("complete greet language=D demo", &[]).exits(0).out, "Dutch\n");
}

#[test]
// About Unix itself: terminals.
#[cfg(unix)]
fn tab_asks_the_server_what_only_it_knows() {
    let mut terminal = Terminal::start_with(&demo_words("shell"), |_| ());
    terminal.shows("help shows what to type").shows("› ");
    terminal.press(b"prompt greet name=Ada language=d\t");
    terminal.shows("language=Dutch");
    terminal.types("").shows("Greet Ada in Dutch.").shows("› ");
    terminal.press(b"read weather://lis\t");
    terminal.shows("weather://Lisbon/today");
    terminal.types("").shows("Lisbon: sunny").shows("› ");
    terminal.types("quit");
    assert_eq!(terminal.end().1, Some(0));
}

#[test]
fn one_tool_is_shown_whole() {
    let shown = demo("list --only slow").exits(0).out;
    for part in ["steps: integer (optional, 0 or more", "default 10)", "only reads"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let shown = demo("list --only add").exits(0).out;
    assert!(shown.contains("it returns:\n  sum: number"), "{shown}");
}

/// A server may leave out what needs a model, and nobody here can be one.
#[test]
fn that_sampling_was_not_offered_is_said_where_a_tool_is_missing() {
    let run = demo("call no_such_tool x=1").exits(2);
    assert!(run.err.contains("sampling and elicitation by a page were not offered"), "{}", run.err);
    assert!(run.err.contains("--answer FILE and --root DIR offer more"), "{}", run.err);
    let run = demo("call echo text=x -v").exits(0);
    assert!(run.err.contains("sampling and elicitation by a page were not"), "{}", run.err);
    // A list is the same in a pipe as on a terminal: sampling is offered, because nothing is called.
    let run = demo("list tools -v").exits(0);
    assert!(!run.err.contains("not offered"), "{}", run.err);
    let file = temporary().join("listed-with-sampling.jsonl");
    let _ = std::fs::remove_file(&file);
    let words = ["taut", "serve", "--transcript", file.to_str().unwrap()].map(str::to_owned);
    run_in_a_pipe(&words);
    let said = std::fs::read_to_string(&file).unwrap();
    assert!(said.contains(r#""sampling":{"#), "{said}");
}

fn run_in_a_pipe(server: &[String]) {
    let run = run("list tools", server).exits(0);
    assert_eq!(run.err, "");
}

#[test]
// About Unix itself: a signal that is ignored.
#[cfg(unix)]
fn a_server_that_has_to_be_killed_gets_no_tick() {
    let server = ["sh", "-c", "trap '' TERM; taut serve; while :; do sleep 1; done"];
    let run = run("smoke", &server.map(str::to_owned)).exits(0);
    assert!(run.out.contains("✗ ended "), "{}", run.out);
    assert!(!run.out.contains("✓ ended "), "{}", run.out);
}

#[test]
fn an_answer_that_does_not_fit_says_one_thing() {
    let words = ["taut".to_owned(), "serve".to_owned()];
    let run = run_with("call ask --answer -", &words, r#"[{"size": "huge"}]"#).exits(3);
    let told: Vec<&str> = run.err.lines().collect();
    assert_eq!(told.len(), 2, "{}", run.err);
    assert!(
        told[0].contains("\"huge\" is not one of them; the question is declined"),
        "{}",
        run.err
    );
    assert!(told[1].contains("try: in the file: ["), "{}", run.err);
    assert!(!run.err.contains("nobody is here"), "{}", run.err);
}

#[test]
fn a_missing_program_names_the_folders_in_a_list_and_a_url_what_went_wrong() {
    let run = run("list", &["no-such-program".to_owned()]).exits(4);
    let lines: Vec<&str> = run.err.lines().collect();
    assert!(lines[0].ends_with("\"no-such-program\" was not found; looked in:"), "{}", run.err);
    let folder = if cfg!(windows) { "  Z:\\" } else { "  /" };
    assert!(lines[1].starts_with(folder), "{}", run.err);
    assert!(lines.last().unwrap().contains("try: install it"), "{}", run.err);
    let run = super::run("list http://127.0.0.1:9/mcp", &[]).exits(4);
    assert!(run.err.contains("http://127.0.0.1:9/mcp: cannot be reached"), "{}", run.err);
    assert!(run.err.contains("nobody listens there\n  try: is it running"), "{}", run.err);
    let run = super::run("doctor http://127.0.0.1:9/mcp", &[]).exits(4);
    let told = run.out.split_whitespace().collect::<Vec<_>>().join(" ");
    let finding = "1. broken http://127.0.0.1:9/mcp: cannot be reached: nobody listens there hurts";
    assert!(told.contains(finding), "{}", run.out);
    let run = super::run("list", &["http://127.0.0.1:9/mcp".to_owned()]).exits(4);
    assert!(run.err.contains("leave out the --"), "{}", run.err);
}

#[test]
// About Unix itself: terminals.
#[cfg(unix)]
fn structured_results_are_indented_and_coloured_on_a_terminal_only() {
    let (text, code) = Terminal::start_with(&demo_words("call add a=2 b=3"), |_| ()).end();
    assert_eq!(code, Some(0), "{text}");
    assert!(plain(&text).contains("{\r\n  \"sum\": 5\r\n}"), "{text:?}");
    assert!(text.contains("\x1b[36m\"sum\"\x1b[0m"), "{text:?}");
    assert_eq!(demo("call add a=2 b=3").exits(0).out, "{\"sum\":5}\n");
}

/// A wide terminal showed less than a pipe.
#[test]
// About Unix itself: terminals.
#[cfg(unix)]
fn a_wide_terminal_shows_more() {
    let long = "x".repeat(90);
    let script = format!("echo {long} >&2; exec taut serve");
    let words = ["doctor", "--", "sh", "-c", &script];
    let (wide, _) = Terminal::sized(200, &words, |_| ()).end();
    assert!(plain(&wide).contains(&format!("stderr        {long} ")), "{wide}");
    let (narrow, _) = Terminal::sized(80, &words, |_| ()).end();
    assert!(plain(&narrow).contains("xx…"), "{narrow}");
    let line = demo_words("list resources");
    let (shown, _) = Terminal::sized(160, &line, |_| ()).end();
    let starts: Vec<usize> = plain(&shown)
        .lines()
        .filter(|line| line.contains("demo://"))
        .map(|line| line.find("text/").or_else(|| line.find("image/")).unwrap())
        .collect();
    assert!(starts.windows(2).all(|two| two[0] == two[1]), "aligned: {shown}");
}

/// A bunch of changes is one line.
#[test]
// About Unix itself: terminals.
#[cfg(unix)]
fn changes_that_come_together_are_one_line() {
    let mut terminal = Terminal::start_with(&demo_words("shell --revision 2025-11-25"), |_| ());
    terminal.shows("help shows what to type").shows("› ");
    for n in 0..4 {
        terminal.press(format!("add_tool name=t{n} says=x\r").as_bytes());
    }
    terminal.shows("\"t3\" now").shows("have changed").shows("› ");
    terminal.types("quit");
    let (text, _) = terminal.end();
    let told = plain(&text).matches("the tools have changed").count();
    assert!((1..4).contains(&told), "{told} lines: {text}");
}

#[test]
// About Unix itself: `taut bench` measures with its system calls.
#[cfg(unix)]
fn bench_takes_a_server_by_name_and_names_the_tool_that_it_called() {
    let run = run("bench --quick --only sequential --cores one demo", &[]).exits(0);
    assert!(run.out.contains("\n  demo "), "{}", run.out);
    assert!(run.out.contains("demo: called echo(text)"), "{}", run.out);
    let run = super::run("bench --quick nobody", &[]).exits(2);
    assert!(run.err.contains("there is no server \"nobody\""), "{}", run.err);
}

#[test]
fn who_types_no_command_gets_the_help_and_no_error_in_it() {
    let run = run("", &[]).exits(2);
    assert!(run.err.starts_with("Try, check and debug"), "{}", run.err);
}

/// A server that ends because a variable is missing: the variable is set here, and was not given to it.
#[test]
// About Unix itself: a shell.
#[cfg(unix)]
fn a_variable_that_was_withheld_is_named() {
    let server = ["sh", "-c", "echo TAUT_TEST_TOKEN is required; exit 1"].map(str::to_owned);
    let words = |options: &[&str]| {
        let words: Vec<String> = options.iter().map(|word| (*word).to_owned()).collect();
        [words, vec!["--".to_owned()], server.to_vec()].concat()
    };
    let told = |options: &[&str], set: bool| {
        let mut command = taut(words(options));
        if set {
            command.env("TAUT_TEST_TOKEN", "abc");
        }
        Run::from(command.stdin(Stdio::null()).output().unwrap()).exits(4).err
    };
    let hint = "TAUT_TEST_TOKEN is set here";
    assert!(told(&["list"], true).contains(hint));
    assert!(!told(&["list"], false).contains(hint));
    assert!(!told(&["list", "--inherit-env"], true).contains(hint));
    assert!(!told(&["list", "--env", "TAUT_TEST_TOKEN=x"], true).contains(hint));
}

#[test]
// About Unix itself: signals.
#[cfg(unix)]
fn a_server_that_had_to_be_killed_gets_no_tick() {
    let run = run("smoke", &server("2025-11-25 ignore-eof ignore-term")).exits(0);
    let last = run.out.lines().last().unwrap_or_default();
    assert!(last.starts_with("! it works: "), "{}", run.out);
    assert!(last.contains("it had to be forced to end"), "{}", run.out);
}

/// A long address has a line of its own on a terminal, and all columns begin where they begin.
#[test]
// About Unix itself: terminals.
#[cfg(unix)]
fn a_table_with_long_addresses_is_aligned() {
    let long = format!("file:///home/ada/projects/{}.md", "notes-and-more/".repeat(4));
    let resource = |uri: &str, about: &str| {
        serde_json::json!({ "uri": uri, "name": "n", "mimeType": "text/markdown",
            "description": about })
    };
    let server = answering(&serde_json::json!({
        "initialize": { "protocolVersion": "2025-11-25", "capabilities": { "resources": {} },
            "serverInfo": { "name": "fixed", "version": "1" } },
        "resources/list": { "resources": [
            resource("file:///short.md", "about the short"), resource(&long, "about the long"),
        ] },
    }));
    let words: Vec<&str> =
        ["list", "resources", "--"].into_iter().chain(server.iter().map(String::as_str)).collect();
    for columns in [80, 100, 140] {
        let (text, code) = Terminal::sized(columns, &words, |_| ()).end();
        assert_eq!(code, Some(0), "{text}");
        let text = plain(&text);
        for part in ["text/markdown", "about the"] {
            let at: Vec<usize> = text.lines().filter_map(|line| line.find(part)).collect();
            assert!(at.len() == 2 && at[0] == at[1], "{columns}, {part}: {text}");
        }
    }
    // A pipe has each on one line.
    let piped = run("list resources", &server).exits(0).out;
    let line = piped.lines().find(|line| line.contains(&long)).unwrap();
    assert!(line.ends_with("about the long"), "{piped}");
}

/// D4: the description that was beside the arguments was cut where a narrow terminal had it on a line of its own.
// About Unix itself: terminals.
#[test]
#[cfg(unix)]
fn a_wider_terminal_never_shows_less() {
    let about =
        "Compresses one file, and says how much smaller it has become, for as long as it is there.";
    let server = answering(&serde_json::json!({
        "initialize": { "protocolVersion": "2025-11-25", "capabilities": { "tools": {} },
            "serverInfo": { "name": "fixed", "version": "1" } },
        "tools/list": { "tools": [{ "name": "compress-one-file", "description": about, "inputSchema":
            { "type": "object", "properties": { "name": { "type": "string" }, "level": { "type": "integer" } } } }] },
    }));
    let words: Vec<&str> =
        ["list", "tools", "--"].into_iter().chain(server.iter().map(String::as_str)).collect();
    let mut before = 0;
    for columns in [60, 80, 90, 100, 120, 140, 160] {
        let (text, _) = Terminal::sized(columns, &words, |_| ()).end();
        let text = plain(&text);
        let shown = (0..=about.len()).rev().find(|end| text.contains(&about[..*end])).unwrap();
        assert!(shown >= before, "{columns}: {text}");
        before = shown;
    }
    assert_eq!(before, about.len());
}

/// What is taken for a tool may be a prompt or a resource, and the other way round.
#[test]
fn a_prompt_that_is_typed_as_a_tool_is_named_as_what_it_is() {
    let run = demo("call greet name=Ada").exits(2);
    assert!(run.err.contains("greet is a prompt, not a tool"), "{}", run.err);
    assert!(run.err.contains("try: taut prompt greet name=… -- …"), "{}", run.err);
    let run = demo("call demo://readme").exits(2);
    assert!(run.err.contains("try: taut read demo://readme -- …"), "{}", run.err);
    let run = demo("prompt add a=1").exits(2);
    assert!(run.err.contains("add is a tool, not a prompt"), "{}", run.err);
    let words = ["taut".to_owned(), "serve".to_owned()];
    let run = run_with(
        "shell --keep-going",
        &words,
        "greet name=Ada\nprompt add\nread demo://readm\nprompt greet nme=x\nsubscribe demo://tuched\n",
    );
    let run = run.exits(2);
    for words in [
        "greet is a prompt, not a tool",
        "try: prompt greet name=…",
        "add is a tool, not a prompt",
        "try: tools add",
        "did you mean demo://readme?",
        "did you mean name?",
        "it agreed to it; did you mean demo://touched?",
    ] {
        assert!(run.err.contains(words), "{words}: {}", run.err);
    }
}

#[test]
fn a_slip_in_an_address_or_in_an_argument_to_complete_is_found() {
    let run = demo("read demo://readm").exits(3);
    assert!(run.err.contains("try: did you mean demo://readme?"), "{}", run.err);
    let run = demo("read demo://readm --json").exits(3);
    assert_eq!(run.json()["error"]["next"], "did you mean demo://readme?");
    let run = demo("read nothing://like/that").exits(3);
    assert!(run.err.contains("`taut list resources`"), "{}", run.err);
    let run = demo("complete greet langage=D").exits(2);
    assert!(run.err.contains("did you mean language?"), "{}", run.err);
    let run = demo("complete weather://{city}/today town=B").exits(2);
    assert!(run.err.contains("it has: city"), "{}", run.err);
}

#[test]
fn a_program_that_doctor_does_not_find_has_its_folders_in_a_list() {
    let server = ["no-such-program".to_owned()];
    let run = run("doctor", &server).exits(4);
    let lines: Vec<&str> = run.out.lines().collect();
    let at = lines.iter().position(|line| line.ends_with("not found; looked in:")).unwrap();
    let folder = if cfg!(windows) { "             Z:\\" } else { "             /" };
    assert!(lines[at + 1].starts_with(folder) && !lines[at + 1].contains(','), "{}", run.out);
    let document = super::run("doctor --json", &server).exits(4).json();
    assert!(document["findings"][0]["list"].as_array().is_some_and(|list| !list.is_empty()));
}

/// What is shown can be copied into a shell.
#[test]
// About Unix itself: a shell.
#[cfg(unix)]
fn a_command_is_shown_with_its_quotes() {
    let server = ["sh", "-c", "exec taut serve # it's"].map(str::to_owned);
    for line in ["smoke", "doctor"] {
        let run = run(line, &server).exits(0);
        let first = run.out.lines().next().unwrap();
        assert!(first.ends_with(r"$ sh -c 'exec taut serve # it'\''s'"), "{first}");
    }
}

#[test]
fn an_answer_that_is_missing_is_to_be_appended() {
    let words = ["taut".to_owned(), "serve".to_owned()];
    let run = run_with("call ask --answer -", &words, r#"[{"size": "large"}]"#).exits(3);
    let append = r#"try: append to the list in the file: {"right":true}"#;
    assert!(run.err.contains(append), "{}", run.err);
    let run = run_with("call ask --answer -", &words, r#"{"size": "large"}"#).exits(3);
    assert!(run.err.contains(r#"try: in the file: {"right":true}"#), "{}", run.err);
    let asks = serde_json::json!({ "jsonrpc": "2.0", "id": "s", "method": "sampling/createMessage",
        "params": { "messages": [], "maxTokens": 1 } });
    let server = answering(&serde_json::json!({ "ask": asks, "tools/call": { "content": [] } }));
    let run = run_with("call x --args {} --answer -", &server, r#"{"size": "large"}"#).exits(3);
    let add = r#"add to the map in the file: $sampling: "what the model says""#;
    assert!(run.err.contains(add), "{}", run.err);
    let run = demo("call ask").exits(3);
    assert!(run.err.contains(r#"--answer FILE and in it: [{"#), "{}", run.err);
}

/// Ctrl-C while a server starts: nothing is owed to it, and it is told to end at once.
#[test]
// About Unix itself: signals.
#[cfg(unix)]
fn an_interrupt_during_the_start_sends_sigterm_soon() {
    let number = format!("4000{}", std::process::id());
    let sleeps = format!("^sleep\x00{number}");
    // It took a second before SIGTERM was sent. A busy machine may be slow once, but not each time.
    let soon = (0..5).any(|_| {
        let script = format!("exec sleep {number}");
        let mut child = taut(["list", "--", "sh", "-c", &script]).spawn().unwrap();
        eventually("it sleeps", || processes_with(&sleeps).len() == 1);
        let began = Instant::now();
        let pid = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(130));
        let took = began.elapsed();
        assert!(processes_with(&sleeps).is_empty());
        took < Duration::from_millis(900)
    });
    assert!(soon);
}

/// The folder where one stands is not in the PATH.
#[test]
// About Unix itself: what stands before a name in the same folder.
#[cfg(unix)]
fn a_program_that_is_in_this_folder_is_found_with_a_hint() {
    let folder = temporary().join("beside");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("srv.py"), "").unwrap();
    let run: Run = taut(["list", "--", "srv.py"]).current_dir(&folder).output().unwrap().into();
    let hint = "try: srv.py is in this folder: -- ./srv.py, or its interpreter first, as in -- python3 srv.py\n";
    assert!(run.exits(4).err.contains(hint));
    let run: Run = taut(["list", "--", "other.py"]).current_dir(&folder).output().unwrap().into();
    assert!(run.exits(4).err.contains("try: install it"));
}

#[test]
// About Unix itself: terminals.
#[cfg(unix)]
fn no_line_of_a_narrow_list_ends_in_a_blank() {
    let (text, _) = Terminal::sized(60, &demo_words("list"), |_| ()).end();
    let bad = plain(&text)
        .lines()
        .find(|line| line.trim_end_matches('\r').ends_with(' '))
        .map(str::to_owned);
    assert_eq!(bad, None);
}
