//! Questions of a server where nobody sits: `--answer`, `--root`, or a clear "no".

use super::*;

/// A file that is gone after the test.
struct Written(PathBuf);

impl Written {
    fn new(name: &str, text: &str) -> Self {
        let path = std::env::temp_dir().join(format!("taut-{name}-{}", std::process::id()));
        std::fs::write(&path, text).unwrap();
        Self(path)
    }
}

impl Drop for Written {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn asked(line: &str, file: &Written) -> Run {
    run(&format!("{line} --answer {}", file.0.display()), &server("asker"))
}

#[test]
fn answers_come_from_a_file_in_every_revision_that_knows_questions() {
    let list =
        Written::new("list.yaml", "- mail: a@b.c\n  count: 7\n  size: Small\n  tags: [red]\n");
    let map = Written::new(
        "map.json",
        r#"{ "mail": "a@b.c", "count": "7", "size": "s", "tags": ["red"], "x": 1 }"#,
    );
    let sent = r#"{"count":7,"mail":"a@b.c","ratio":0.5,"size":"s","sure":true,"tags":["red"]}"#;
    for era in ["2025-11-25", "2026-07-28"] {
        for file in [&list, &map] {
            let run = asked(&format!("call everything --revision {era}"), file).exits(0);
            assert_eq!((run.out.trim_end(), run.err.as_str()), (sent, ""));
        }
    }
    let file = Written::new("both.yaml", "- size: large\n  milk: no\n- right: yes\n");
    for era in ["2025-06-18", "2025-11-25", "2026-07-28"] {
        let line = format!("call ask --revision {era} --answer {}", file.0.display());
        assert_eq!(demo(&line).exits(0).out, "one large coffee, black, for you\n");
    }
}

/// SEC-09.
#[test]
fn a_file_can_speak_for_a_model_and_consent_to_a_page() {
    let file = Written::new("speech.yaml", "- {text: a poem, model: m}\n");
    let run = asked("call model", &file).exits(0);
    assert!(run.out.contains(r#""model":"m""#) && run.out.contains("a poem"), "{}", run.out);
    let file = Written::new("page.yaml", "$url: accept\n");
    assert_eq!(asked("call page", &file).exits(0).out, "Accepted(())\n");
    for (word, said) in [("decline", "declined\n"), ("cancel", "cancelled\n")] {
        let file = Written::new(word, &format!("[{word}]"));
        let run = asked("call number", &file).exits(0);
        assert_eq!((run.out.as_str(), run.err.as_str()), (said, ""));
    }
}

/// What was asked is told, with what would answer it; and it is no success.
#[test]
fn a_question_that_nobody_answers_is_declined_and_told() {
    for era in ["2025-11-25", "2026-07-28"] {
        let run = run(&format!("call number --revision {era}"), &server("asker")).exits(3);
        assert_eq!(run.out, "declined\n");
        assert_eq!(
            run.err,
            "asker asks: How many?\n  count: a whole number, 1 to 10\ndeclined: nobody is here to \
             answer\n  try: on a terminal, or with --answer FILE and in it: [{\"count\":1}]\n"
        );
    }
    let json = run("call number --json", &server("asker")).exits(3).json();
    assert_eq!(json["content"][0]["text"], "declined");
    let file = Written::new("wrong.yaml", "[{count: 12}]");
    let run = asked("call number", &file).exits(3);
    assert!(run.err.contains("does not fit: count: it has to be 10 or less"), "{}", run.err);
    let file = Written::new("empty.yaml", "");
    asked("call number", &file).exits(3);
    let run = demo("smoke --call ask").exits(3);
    assert!(run.out.contains("it asked something that nobody answered"), "{}", run.out);
}

/// Only what can be done is declared: a server is not led to ask what nobody can answer.
#[test]
fn what_nobody_can_do_is_not_declared() {
    for tool in ["model", "page"] {
        let run = run(&format!("call {tool}"), &server("asker")).exits(3);
        assert!(run.err.contains("(-32021)") && run.err.contains("--answer FILE"), "{}", run.err);
    }
    assert!(demo("call roots").exits(3).err.contains("--root DIR"));
}

#[test]
// About Unix itself: its paths.
#[cfg(unix)]
fn roots_are_shown_as_addresses() {
    let line = "call roots --root / --root /proc/self/..";
    for era in taut::Revision::ALL {
        let run = demo(&format!("{line} --revision {era}")).exits(0);
        assert_eq!(run.out, "file:///\nfile:///proc\n");
    }
    assert!(demo("list --root /nowhere").exits(2).err.contains("--root /nowhere: "));
}

#[test]
fn a_file_that_cannot_be_used_is_said_before_anything_is_started() {
    let broken = Written::new("broken.yaml", "a: [");
    let run = asked("call number", &broken).exits(2);
    assert!(run.err.contains("has no answers") && run.err.contains("try:"), "{}", run.err);
    assert!(demo("call ask --answer /nowhere").exits(2).err.contains("reading /nowhere"));
}

/// A server of old that asks for what was never offered, and lets its tool fail when it is refused.
fn presumptuous(method: &str, params: &str) -> Vec<String> {
    let params: Value = serde_json::from_str(params).unwrap();
    answering(&serde_json::json!({
        "tools/list": { "tools": [{ "name": "x", "inputSchema": { "type": "object" } }] },
        "ask": { "jsonrpc": "2.0", "id": "q", "method": method, "params": params },
        "tools/call": { "isError": true, "content": [{ "type": "text", "text": "nobody there" }] },
    }))
}

/// The tool fails, but not by its own fault: what would help is said, and the code is that of it.
#[test]
fn what_a_server_asks_although_nobody_offered_it_is_told_with_what_would_answer_it() {
    let page = r#"{"mode":"url","elicitationId":"1","url":"https://x.org/","message":"Log in"}"#;
    let words = r#"{"messages":[],"maxTokens":9}"#;
    for (method, params, example) in [
        ("elicitation/create", page, "--answer FILE and in it: [accept]\n"),
        ("sampling/createMessage", words, "in it: [\"what the model says\"]\n"),
    ] {
        let line = "call x --revision 2025-11-25";
        let run = run(line, &presumptuous(method, params)).exits(3);
        assert_eq!(run.out, "nobody there\n");
        assert!(run.err.contains("declined: nobody is here to answer\n"), "{}", run.err);
        assert!(run.err.contains(example), "{}", run.err);
    }
}

#[test]
fn one_word_is_an_answer_and_a_broken_file_is_told_in_one_line() {
    let run = run_with("call page --answer -", &server("asker"), "accept\n").exits(0);
    assert_eq!(run.out, "Accepted(())\n");
    let run = run_with("call page --answer -", &server("asker"), "- {a: 1\n").exits(2);
    assert!(run.err.starts_with("error: - has no answers: line "), "{}", run.err);
    assert!(!run.err.contains("-->") && !run.err.contains('|'), "{}", run.err);
}
