//! Nothing that a stranger wrote steers the terminal (issue 19, B1 and Must show 3).

use std::path::Path;

use super::hostile::Random;
use super::terminal::Terminal;
use super::*;

/// What our own output may contain besides text: colours, the wiping of a line, and what the line
/// editor draws.
fn allowed(sequence: &str) -> bool {
    let Some(rest) = sequence.strip_prefix("\x1b[") else { return false };
    let end = rest.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(0);
    let (numbers, letter) = (&rest[..end], &rest[end..=end]);
    match letter {
        "m" => ["", "0", "1", "2", "31", "32", "33", "36"].contains(&numbers),
        // Moves and wipes within a line, of the spinner and of the editor.
        "K" | "J" => ["", "0"].contains(&numbers),
        "A" | "B" | "C" | "D" | "G" => numbers.chars().all(|c| c.is_ascii_digit()),
        "h" | "l" => ["?2004", "?2026", "?25"].contains(&numbers),
        _ => false,
    }
}

/// The first thing in a text that would steer a terminal, or that nobody could see.
fn harmful(text: &str) -> Option<String> {
    text.char_indices().find_map(|(at, letter)| {
        let bad = match letter {
            '\n' | '\t' => false,
            // A line end of the terminal, or the wiping of a line.
            '\r' => !["\n", "\x1b[", "\r\n", "\r\x1b["]
                .iter()
                .any(|next| text[at + 1..].starts_with(next)),
            '\x1b' => !allowed(&text[at..]),
            '\u{2800}' | '\u{3164}' | '\u{115f}' | '\u{1160}' | '\u{200b}'..='\u{200f}' => true,
            '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{fe00}'..='\u{fe0f}' => true,
            '\u{e0000}'..='\u{e0fff}' => true,
            other => other.is_control(),
        };
        let around: String = text[at..].chars().take(40).collect();
        bad.then(|| format!("{:?}", around))
    })
}

/// Lines of the command that show what a server says, each in its own way.
const LINES: [&str; 18] = [
    "smoke",
    "smoke --call x --args {}",
    "list",
    "list --only x",
    "list tools --json",
    "call x",
    "call y",
    "call x --args {} -v",
    "call fails --args {}",
    "read a:b",
    "prompt p",
    "prompt free",
    "doctor --call x",
    "doctor --call fails --json",
    "complete p a=x",
    "watch --for 200ms",
    "check --only tools --call x --args {}",
    "bench --only start --rounds 1",
];

#[test]
fn sec_05_nothing_that_a_stranger_wrote_steers_the_terminal() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("hostile");
    std::fs::create_dir_all(&folder).unwrap();
    let out = folder.join("out");
    let save = format!("call x --args {{}} --out {}", out.display());
    for seed in 0..3 {
        let role = format!("hostile {seed}");
        for line in LINES.iter().copied().chain([save.as_str()]) {
            let server = server(&role);
            let words: Vec<&str> = line.split(' ').collect();
            let words = [&words[..], &["--"]].concat();
            let words: Vec<&str> =
                words.into_iter().chain(server.iter().map(String::as_str)).collect();
            let (text, code) = Terminal::start_with(&words, |_| ()).end();
            assert!(code.is_some_and(|code| code < 8), "{line}: {code:?} {text}");
            let found = harmful(&text);
            assert!(found.is_none(), "seed {seed}, {line}: {} in {text:?}", found.unwrap());
        }
    }
}

/// A pipe may lead to a terminal: `| tail`, `| less -R`, `2>&1 | tee`.
#[test]
fn sec_05_nor_does_it_through_a_pipe() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("hostile-pipe");
    std::fs::create_dir_all(&folder).unwrap();
    let capture = folder.join("capture.jsonl");
    let mut parts = 0;
    for seed in 20..23 {
        for line in LINES {
            let run = run(line, &server(&format!("hostile {seed}")));
            // Content that was asked for has what cannot be seen: it is a part of many texts.
            let is_content = ["call x", "prompt", "read"].iter().any(|of| line.starts_with(of));
            let out = if is_content { controls(&run.out) } else { harmful(&run.out) };
            for (found, text) in [(out, &run.out), (harmful(&run.err), &run.err)] {
                assert!(found.is_none(), "seed {seed}, {line}: {} in {text:?}", found.unwrap());
                assert!(!text.contains('\x1b'), "seed {seed}, {line}: {text:?}");
                parts += text.matches("\\u{").count();
            }
        }
        let script = "tools\nresources\nprompts\ninfo\nx {}\nread a:b\nprompt p\ntools x\n";
        let run = run_with("shell --keep-going -v", &server(&format!("hostile {seed}")), script);
        let found = controls(&run.out).or_else(|| harmful(&run.err));
        assert!(found.is_none(), "seed {seed}: {} in {run:?}", found.unwrap());
    }
    assert!(parts > 300, "they are shown: {parts}");

    let _ = std::fs::remove_file(&capture);
    let capture = capture.to_str().unwrap();
    let requests = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    run_with(&format!("trace --quiet --record {capture}"), &server("hostile 9"), requests);
    for line in ["view", "view --only 3", "view --stats"] {
        let run = run(&format!("trace {line} {capture}"), &[]).exits(0);
        let found = harmful(&run.out).or_else(|| harmful(&run.err));
        assert!(found.is_none(), "{line}: {} in {run:?}", found.unwrap());
    }
}

/// The first control character that is no line end and no tab.
fn controls(text: &str) -> Option<String> {
    let text = text.replace("\r\n", "\n");
    let is_bad = |letter: char| letter.is_control() && !matches!(letter, '\n' | '\t');
    text.find(is_bad).map(|at| format!("{:?}", text[at..].chars().take(40).collect::<String>()))
}

#[test]
fn sec_05_nor_does_it_in_a_session() {
    let server = server("hostile 7");
    let words: Vec<&str> =
        ["shell", "--"].into_iter().chain(server.iter().map(String::as_str)).collect();
    let mut terminal = Terminal::start_with(&words, |_| ());
    terminal.shows("help shows what to type");
    for line in
        ["tools", "resources", "prompts", "x", "tools x", "x {}", "read a:b", "prompt p", "info"]
    {
        terminal.shows("› ").types(line);
    }
    // Tab shows what could follow, and what cannot be typed is left out. Only at the prompt is Ctrl-C a key.
    terminal.shows("› ").press(b"x \t\t");
    terminal.press(b"\x03");
    terminal.shows("Ctrl-D or quit leaves").shows("› ").types("quit");
    let (text, _) = terminal.end();
    // The editor rings because nothing fits.
    let text = text.replacen("x \u{7}\u{7}", "x ", 1);
    let found = harmful(&text);
    assert!(found.is_none(), "{} in {text:?}", found.unwrap());
}

/// A person who starts a trace by hand sees what a host would get, and then the capture.
#[test]
fn sec_05_nor_does_what_trace_carries_and_shows() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("hostile-trace");
    std::fs::create_dir_all(&folder).unwrap();
    let capture = folder.join("capture.jsonl");
    let _ = std::fs::remove_file(&capture);
    let capture = capture.to_str().unwrap();
    let server = server("hostile 9");
    let words: Vec<&str> = ["trace", "--record", capture, "--"]
        .into_iter()
        .chain(server.iter().map(String::as_str))
        .collect();
    let mut terminal = Terminal::start_with(&words, |_| ());
    for (id, method) in
        ["initialize", "tools/list", "tools/call", "prompts/list"].iter().enumerate()
    {
        terminal
            .types(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{}}}}"#));
        terminal.shows(&format!(r#""id":{id},"#));
    }
    terminal.press(b"\x04");
    let (text, _) = terminal.end();
    let found = harmful(&text);
    assert!(found.is_none(), "{} in {text:?}", found.unwrap());
    assert!(text.contains("\\u{"), "it shows them: {text}");
    for words in [vec!["trace", "view", capture], vec!["trace", "diff", capture, capture]] {
        let (text, code) = Terminal::start_with(&words, |_| ()).end();
        assert!(code.is_some_and(|code| code < 2), "{words:?}: {code:?} {text}");
        let found = harmful(&text);
        assert!(found.is_none(), "{words:?}: {} in {text:?}", found.unwrap());
    }
}

#[test]
fn sec_05_nor_do_names_in_the_file_of_a_project() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("hostile-project");
    std::fs::create_dir_all(&folder).unwrap();
    let mut random = Random(5);
    let mut servers = serde_json::Map::new();
    for _ in 0..8 {
        let entry = serde_json::json!({
            "command": random.text(), "args": [random.text(), format!("${{{}}}", random.text())],
            "env": { random.text(): random.text() },
        });
        servers.insert(random.text(), entry);
    }
    servers
        .insert(random.text(), serde_json::json!({ "type": random.text(), "url": random.text() }));
    servers.insert(random.text(), serde_json::json!({ random.text(): 1 }));
    let text = serde_json::json!({ "mcpServers": servers }).to_string();
    std::fs::write(folder.join(".mcp.json"), text).unwrap();
    for line in [
        "servers",
        "servers -v",
        "servers --names",
        "servers --json",
        "smoke --all",
        "smoke nobody",
    ] {
        let words: Vec<&str> = line.split(' ').collect();
        let (text, _) = Terminal::start_with(&words, |command| {
            command.current_dir(&folder);
        })
        .end();
        let found = harmful(&text);
        assert!(found.is_none(), "{line}: {} in {text:?}", found.unwrap());
        assert!(text.contains("\\u{") || text.contains("\\u00"), "{line} shows them: {text}");
    }
}

/// The gate is the only file that writes to our streams.
#[test]
fn no_other_file_writes_to_our_streams() {
    let ways = [
        "io::stdout()",
        "io::stderr()",
        "stdout().lock",
        "stderr().lock",
        "stdout().write",
        "stderr().write",
        "rustix::stdio",
        "/dev/std",
        "/dev/tty",
        "Stdio::inherit",
        "print!(",
        "println!(",
    ];
    // Each asks only whether it is a terminal, or is the demo whose tool prints.
    let asks = ["IsTerminal", "is_terminal"];
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let name = path.strip_prefix(&root).unwrap().display().to_string();
            // `taut trace` carries a server's bytes, through the gate where its stream is a terminal (`pump.rs`).
            // `closed.rs` only looks whether stdout is open.
            let others = ["demo.rs", "cmd/trace/ends.rs", "closed.rs"];
            if name.starts_with("gate/") || others.contains(&name.as_str()) {
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            for (number, line) in text.lines().enumerate() {
                let writes = ways.iter().any(|way| line.contains(way));
                let harmless = asks.iter().any(|ask| line.contains(ask));
                assert!(!writes || harmless, "{name}:{}: {line}", number + 1);
            }
        }
    }
}
