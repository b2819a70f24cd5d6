//! No secret is in a capture or on a page, however deep it stands, unless somebody wants it.

use super::*;

const VALUES: [&str; 6] = [
    "entry-value-0123",      // set by the entry, under a name that promises nothing
    "pa\"ss\\wörd/1",        // with everything that JSON escapes
    "inherited-key-42",      // of our own environment, under a name that sounds secret
    "hunter2hunter2",        // a value of a secret-looking name in a message
    "ghp_abcd1234",          // a token of a known service
    "on-the-command-line-7", // after --api-key
];

/// Says back what it was given, wrapped three times in JSON, and on stderr.
const SCRIPT: &str = r#"echo "SETTING is $SETTING" >&2; cat"#;

fn nested(value: &str) -> String {
    let mut text = serde_json::json!({ "password": VALUES[3], "text": value }).to_string();
    for _ in 0..3 {
        text = serde_json::json!({ "jsonrpc": "2.0", "method": "m", "params": { "text": text } })
            .to_string();
    }
    text
}

fn session(place: &Place, options: &[&str], name: &str) {
    let mut words = vec!["trace", "--quiet", "--record", name];
    words.extend(options);
    let entry = serde_json::json!({ "mcpServers": { "leak": {
        "command": "sh", "args": ["-c", SCRIPT, "sh", "--api-key", VALUES[5]],
        "env": { "SETTING": VALUES[0], "OTHER": VALUES[1], "MODE": "dev" } } } });
    place.put("project/.mcp.json", &entry.to_string());
    let mut child =
        place.taut().args(words).arg("leak").env("SOME_API_KEY", VALUES[2]).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // Under a name that promises nothing, the password is a word like any other.
    for value in VALUES.into_iter().filter(|value| *value != VALUES[3]) {
        writeln!(stdin, "{}", nested(value)).unwrap();
        // ASCII only, as Python writes it.
        let ascii: String = value
            .chars()
            .map(|c| if c.is_ascii() { c.to_string() } else { format!("\\u{:04x}", c as u32) })
            .collect();
        writeln!(
            stdin,
            "{{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"params\":{{\"t\":\"{}\"}}}}",
            ascii.replace("\\w", "\\\\w").replace('"', "\\\"")
        )
        .unwrap();
        writeln!(stdin, "not json: {value} token={}", VALUES[3]).unwrap();
    }
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    // The wire has everything.
    let out = String::from_utf8(output.stdout).unwrap();
    assert!(VALUES.iter().all(|value| out.contains(value)));
}

/// A secret in any of its spellings.
fn spellings(value: &str) -> Vec<String> {
    let mut all = vec![value.to_owned()];
    for _ in 0..5 {
        let quoted = serde_json::Value::from(all.last().unwrap().as_str()).to_string();
        all.push(quoted[1..quoted.len() - 1].to_owned());
    }
    all
}

/// T6
#[test]
fn no_secret_is_in_a_capture_nor_in_a_page() {
    let place = Place::new();
    session(&place, &[], "x.jsonl");
    place.exits(0, &["trace", "view", "x.jsonl", "--html", "x.html"]);
    let (shown, err) = place.exits(0, &["trace", "view", "x.jsonl"]);
    for name in ["project/x.jsonl", "project/x.html"] {
        let text = std::fs::read_to_string(place.at(name)).unwrap();
        for value in VALUES {
            for spelling in spellings(value) {
                assert!(!text.contains(&spelling), "{spelling} is in {name}");
                assert!(!shown.contains(&spelling) && !err.contains(&spelling));
            }
        }
        assert!(text.contains("***") && text.contains("SETTING is ***"), "{name}");
    }
    // What is masked is marked.
    let capture = place.capture("project/x.jsonl");
    let marks = capture.messages().filter(|(_, message)| !message.masked.is_empty());
    for (_, message) in marks {
        for place in &message.masked {
            assert_eq!(&message.body.bytes()[*place..*place + 3], b"***");
        }
    }
    assert!(capture.header.masked && capture.header.command.contains(&"***".to_owned()));
}

#[test]
fn with_unmasked_everything_is_kept() {
    let place = Place::new();
    session(&place, &["--unmasked"], "x.jsonl");
    let text = std::fs::read_to_string(place.at("project/x.jsonl")).unwrap();
    assert!(
        ["entry-value-0123", "inherited-key-42", "hunter2hunter2", "ghp_abcd1234"]
            .iter()
            .all(|v| text.contains(v))
    );
    assert!(!place.capture("project/x.jsonl").header.masked);
}

/// As `--into` writes it: the entry's variables are in our environment, and named.
#[test]
fn variables_that_are_named_are_masked() {
    let place = Place::new();
    let words = [
        "trace",
        "-q",
        "--record",
        "x.jsonl",
        "--hide",
        "PLAIN",
        "--",
        "sh",
        "-c",
        "echo \"$PLAIN\" >&2",
    ];
    let output = place
        .taut()
        .args(words)
        .env("PLAIN", "nothing-special")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(output.stderr, b"nothing-special\n");
    let text = std::fs::read_to_string(place.at("project/x.jsonl")).unwrap();
    assert!(!text.contains("nothing-special"), "{text}");
}
