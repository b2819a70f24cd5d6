//! `--json`: exactly one JSON document on stdout, whatever goes wrong (issue 19, F10).

use serde_json::Value;

use super::*;

/// Each command that has `--json`, with what it needs besides a server; `shell` and `watch` give one document
/// for each line, and one if nothing comes of it.
const WITH_SERVER: [&str; 10] = [
    "smoke",
    "list",
    "call echo text=x",
    "read demo://readme",
    "prompt hello",
    "complete greet language=",
    "shell",
    "watch --for 1s",
    "doctor",
    "check --only rpc --revision 2025-11-25",
];

/// The one document that a command line leads to, and its exit code.
#[track_caller]
fn document(line: &str, server: &[String]) -> (Value, i32) {
    let ran = run(line, server);
    let mut documents = serde_json::Deserializer::from_str(&ran.out).into_iter::<Value>();
    let first = documents.next();
    let Some(Ok(document)) = first else {
        panic!("{line}: {first:?}\nstdout:\n{}\nstderr:\n{}", ran.out, ran.err)
    };
    assert!(documents.next().is_none(), "{line}: more than one document:\n{}", ran.out);
    (document, ran.code)
}

#[track_caller]
fn fails(line: &str, server: &[String], code: i32) {
    let (document, exit) = document(line, server);
    let start: String = document.to_string().chars().take(500).collect();
    assert_eq!(exit, code, "{line}: {start}");
    // `doctor` and `smoke` report what they found, and have the code in it as well.
    assert_eq!(document["exit"], code, "{line}: {start}");
    let told = ["error", "findings"].iter().any(|member| document.get(member).is_some());
    assert!(told, "{line}: {start}");
}

#[test]
fn every_command_with_json_prints_one_document_also_if_it_fails() {
    let none: &[String] = &[];
    let demo = ["taut", "serve"].map(str::to_owned);
    let missing = ["no-such-program".to_owned()];
    let dies = server("ends 3");
    for command in WITH_SERVER {
        fails(&format!("{command} --json nobody"), none, 2);
        fails(&format!("{command} --json --config /no/such/file.json -s x"), none, 2);
        fails(&format!("{command} --json --settings /no/such/file"), &demo, 2);
        fails(&format!("{command} --json --debug=/no/such/file"), &demo, 2);
        fails(&format!("{command} --json --out /no/such/file"), &demo, 2);
        fails(&format!("{command} --json --no-such-option"), &demo, 2);
        fails(&format!("{command} --json --timeout never"), &demo, 2);
        if !command.starts_with("check") {
            fails(&format!("{command} --json"), &missing, 4);
            fails(&format!("{command} --json"), &dies, 4);
        }
    }
}

#[test]
fn a_server_that_is_silent_costs_no_document() {
    let silent = server("2025-11-25 slow-start=60000");
    for command in WITH_SERVER.iter().filter(|command| !command.starts_with("check")) {
        fails(&format!("{command} --json --start-timeout 300ms"), &silent, 4);
    }
    for command in ["list", "doctor", "call echo text=x"] {
        fails(&format!("{command} --json --max-time 400ms"), &silent, 6);
    }
}

#[test]
fn commands_without_a_server_print_one_document_also_if_they_fail() {
    let none: &[String] = &[];
    fails("servers --json nobody", none, 2);
    fails("servers --json --settings /no/such/file", none, 2);
    fails("trace diff --json /no/such/a /no/such/b", none, 2);
    fails("trace replay --json /no/such/a demo", none, 2);
    fails("check --json --explain nothing", none, 2);
    fails("check --json --baseline /no/such/folder/file demo", none, 2);
    #[cfg(all(target_os = "linux", not(taut_portable)))]
    {
        fails("bench --json dmeo", none, 2);
        fails("bench --json --plot /no/such/x.svg demo", none, 2);
        fails("bench --json --compare x='a demo", none, 2);
        fails("bench --json http://127.0.0.1:9/mcp", none, 4);
        fails("bench --json --quick --rounds never demo", none, 2);
    }
    let (list, code) = document("check --json --list", none);
    assert!(code == 0 && list.is_array());
}

/// The file of `--out` gets the document; stdout gets it if the file cannot be written.
#[test]
fn with_out_the_document_of_an_error_is_in_the_file() {
    let file = temporary().join("document-of-an-error.json");
    let ran = run(&format!("list --json --out {} nobody", file.display()), &[]).exits(2);
    assert_eq!(ran.out, "");
    let document: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!(document["exit"], 2);
}

#[test]
fn what_a_check_looks_at_is_a_document_too() {
    let none: &[String] = &[];
    let (document, exit) = document("check --json --explain rpc-unknown-method", none);
    assert_eq!((exit, document["id"].as_str()), (0, Some("rpc-unknown-method")));
    for member in ["rule", "level", "side", "revisions", "rules", "page", "sent", "suffers"] {
        assert!(!document[member].is_null(), "{member}: {document}");
    }
}
