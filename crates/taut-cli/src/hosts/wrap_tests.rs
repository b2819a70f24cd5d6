//! Files of every host, as people and programs write them, edited and edited back.

use super::super::places::Host;
use super::*;

fn place(path: &str, host: Host, scope: Scope) -> Place {
    Place { host, scope, path: path.into(), folder: "/p".into() }
}

/// Files as people and hosts write them: comments, odd blanks, tabs, CRLF, a byte-order mark.
fn files() -> Vec<(Place, &'static str)> {
    use Host::*;
    use Scope::*;
    vec![
        (
            place(".mcp.json", ClaudeCode, Project),
            "{\n  \"mcpServers\": {\n    \"x\": {\n      \"command\": \"npx\",\n      \"args\": [\n        \"-y\",\n        \"srv\"\n      ],\n      \"env\": { \"A\": \"1\" }\n    }\n  }\n}\n",
        ),
        (
            place(".claude.json", ClaudeCode, Local),
            "{\"numStartups\":7,\"projects\":{\"/p\":{\"mcpServers\":{\"x\":{\"type\":\"stdio\",\"command\":\"npx\",\"args\":[\"-y\",\"srv\"],\"env\":{}}}}}}",
        ),
        (
            place("claude_desktop_config.json", ClaudeDesktop, User),
            "\u{feff}{\r\n\t\"mcpServers\" : {\r\n\t\t\"x\" : { \"args\" : [ ] , \"command\" : \"C:\\\\srv\\\\x.exe\" }\r\n\t}\r\n}",
        ),
        (
            place(".cursor/mcp.json", Cursor, Project),
            "{ \"mcpServers\": { // mine\n \"x\": { \"command\": \"./srv \\u00e9\" /* no args */ }, \"y\": {\"command\":\"z\",\"args\":[\"--\"]} } }\n\n",
        ),
        (
            place(".vscode/mcp.json", VsCode, Project),
            "{\r\n  // servers\r\n  \"servers\": {\r\n    \"x\": {\r\n      \"type\": \"stdio\",\r\n      \"command\": \"uvx\",\r\n      \"args\": [\"srv\", /* which */ \"--port\", 80,],\r\n    },\r\n  },\r\n}\r\n",
        ),
        (
            place(".codex/config.toml", Codex, User),
            "# mine\nmodel = \"m\"\n\n[mcp_servers.x]   # a table\n  command = 'npx'  # literal\n  args = [ \"-y\",\n    \"srv\", # last\n  ]\n  env = { A = \"1\" }\n",
        ),
        (
            place("config.toml", Codex, User),
            "[mcp_servers.x]\r\ncommand = \"srv\" # no args\r\nenabled = true\r\n",
        ),
        (
            place("config.toml", Codex, User),
            "mcp_servers = { x = { command = \"srv\" }, y = { command = \"a\", args = [] } }\n",
        ),
        (
            place("config.toml", Codex, User),
            "[mcp_servers]\nx.command = \"\"\"srv\"\"\"\nx.args = []\n",
        ),
        (
            place("opencode.jsonc", OpenCode, Project),
            "{\n  \"mcp\": {\n    \"x\": { \"type\": \"local\", \"command\": [\"npx\", \"-y\", \"srv\"], \"enabled\": true },\n  }, // end\n}\n",
        ),
        (
            place("opencode.json", OpenCode, User),
            "{\"mcp\":{\"x\":{\"type\":\"local\",\"command\":[ \"srv\" ]}}}",
        ),
        (
            place(".gemini/settings.json", Gemini, User),
            "{\n    \"theme\": \"x\",\n    \"mcpServers\": { \"x\": { \"command\": \"node\", \"args\": [\"a.js\"], \"trust\": true } }\n}",
        ),
    ]
}

fn words<const N: usize>(words: [&str; N]) -> Vec<String> {
    words.map(str::to_owned).to_vec()
}

fn options() -> Vec<String> {
    ["--quiet", "--record", "/a \"b\"/c/", "--hide", "A"].map(str::to_owned).to_vec()
}

#[test]
fn every_hosts_file_is_byte_for_byte_what_it_was_afterwards() {
    for (place, text) in files() {
        let old = stdio_of(&place, text, "x").unwrap();
        let new = wrap(&place, text, "x", &words(["/opt/my tools/taut"]), &options())
            .unwrap_or_else(|error| panic!("{error}: {text}"));
        let stdio = stdio_of(&place, &new, "x").unwrap();
        assert_eq!(stdio.words[..2], ["/opt/my tools/taut", "trace"], "{new}");
        assert!(stdio.words.ends_with(&old.words), "{new}");
        assert!(any_traced(&place, &new) && !any_traced(&place, text));
        assert_eq!(unwrap(&place, &new, "x").unwrap(), text);
        assert!(
            wrap(&place, &new, "x", &words(["/opt/taut"]), &options())
                .unwrap_err()
                .contains("already")
        );
    }
}

/// What a package runner starts has no file that lasts, so the entry has the runner.
#[test]
fn a_package_runner_may_stand_before_our_name() {
    for taut in [words(["npx", "-y", "taut-cli"]), words(["uvx", "tautmcp"])] {
        for (place, text) in files() {
            let new = wrap(&place, text, "x", &taut, &options()).unwrap();
            let stdio = stdio_of(&place, &new, "x").unwrap();
            assert!(stdio.words.starts_with(&taut), "{new}");
            assert!(any_traced(&place, &new), "{new}");
            assert_eq!(unwrap(&place, &new, "x").unwrap(), text);
        }
    }
}

/// A release is called after its system, a package's program is behind another, a link leads anywhere.
#[test]
fn whatever_the_program_is_called_it_is_known_again() {
    for program in
        ["/opt/taut-1.2", "/opt/taut-x86_64-unknown-linux-musl", "/nix/.taut-wrapped", "C:\\t.exe"]
    {
        for (place, text) in files() {
            let new = wrap(&place, text, "x", &words([program]), &options()).unwrap();
            assert!(any_traced(&place, &new), "{program}");
            assert_eq!(unwrap(&place, &new, "x").unwrap(), text, "{program}");
            let again = wrap(&place, &new, "x", &words([program]), &options());
            assert!(again.unwrap_err().contains("already"), "{program}");
        }
    }
    // What cannot be known again is not written.
    let claude = place(".mcp.json", Host::ClaudeCode, Scope::Project);
    let text = r#"{"mcpServers":{"x":{"command":"a","args":["b"]}}}"#;
    assert!(wrap(&claude, text, "x", &words(["/opt/other"]), &[]).is_err());
    let perf = r#"{"mcpServers":{"x":{"command":"perf","args":["trace","-e","x","--","a"]}}}"#;
    assert!(!any_traced(&claude, perf));
    assert!(wrap(&claude, perf, "x", &words(["/opt/taut"]), &options()).is_ok());
}

#[test]
fn what_else_was_changed_meanwhile_stays() {
    for (place, text) in files() {
        let new = wrap(&place, text, "x", &words(["/opt/taut"]), &options()).unwrap();
        // Somebody adds a line at the end.
        let comment = if is_toml(&place) { "# more\n" } else { "// more\n" };
        assert_eq!(
            unwrap(&place, &format!("{new}\n{comment}"), "x").unwrap(),
            format!("{text}\n{comment}")
        );
    }
}

#[test]
fn what_cannot_be_done_safely_is_refused() {
    let codex = place("config.toml", Host::Codex, Scope::User);
    // A dotted key without arguments has no place for them that this knows.
    let dotted = "mcp_servers.x.command = \"srv\"\n";
    assert!(wrap(&codex, dotted, "x", &words(["/opt/taut"]), &[]).is_err());
    let claude = place(".mcp.json", Host::ClaudeCode, Scope::Project);
    for text in [
        r#"{"mcpServers":{"x":{"type":"http","url":"https://x"}}}"#,
        r#"{"mcpServers":{"x":{"args":[]}}}"#,
        r#"{"mcpServers":{}}"#,
        "{",
    ] {
        assert!(wrap(&claude, text, "x", &words(["/opt/taut"]), &[]).is_err(), "{text}");
        assert!(unwrap(&claude, text, "x").is_err(), "{text}");
    }
    let plain = r#"{"mcpServers":{"x":{"command":"srv"}}}"#;
    assert!(unwrap(&claude, plain, "x").unwrap_err().contains("not traced"));
    let traced = wrap(&claude, plain, "x", &words(["/opt/taut"]), &[]).unwrap();
    let changed = traced.replace("\"srv\"]", "\"srv\", \"more\"]");
    assert!(unwrap(&claude, &changed, "x").unwrap_err().contains("changed"), "{changed}");
}

#[test]
fn two_servers_in_one_file_are_independent() {
    let claude = place(".mcp.json", Host::ClaudeCode, Scope::Project);
    let text = r#"{"mcpServers":{"x":{"command":"a"},"y":{"command":"b","args":["1"]}}}"#;
    let one = wrap(&claude, text, "x", &words(["/opt/taut"]), &options()).unwrap();
    let both = wrap(&claude, &one, "y", &words(["/opt/taut"]), &options()).unwrap();
    let without_x = unwrap(&claude, &both, "x").unwrap();
    assert_eq!(unwrap(&claude, &without_x, "y").unwrap(), text);
}
