//! `--into` and `--out-of` on the files of all seven hosts.

use super::*;

const CLAUDE_CODE: &str = "{\n  \"mcpServers\": {\n    \"s\": {\n      \"command\": \"taut\",\n      \"args\": [\n        \"serve\"\n      ],\n      \"env\": { \"LEVEL_NAME\": \"very-high-level\" }\n    }\n  }\n}\n";
const DESKTOP: &str = "{\r\n\t\"mcpServers\": {\r\n\t\t\"s\": { \"command\": \"taut\", \"args\": [ \"serve\" ] }\r\n\t},\r\n\t\"globalShortcut\": \"\"\r\n}\r\n";
const CURSOR: &str = "{ \"mcpServers\": { // mine\n \"s\": { \"args\": [\"serve\"], /* odd */ \"command\": \"taut\" } } }";
const VS_CODE: &str = "\u{feff}{\n  // comment\n  \"servers\": { \"s\": { \"type\": \"stdio\", \"command\": \"taut\", \"args\": [\"serve\", /* x */], }, },\n}\n";
const CODEX: &str = "# mine\nmodel = \"m\"\n\n[mcp_servers.s] # a server\n  command = 'taut'   # literal\n  args = [\n    \"serve\", # one\n  ]\n\n[other]\nx = 1\n";
const OPENCODE: &str = "{\n  \"mcp\": {\n    \"s\": { \"type\": \"local\", \"command\": [\"taut\",   \"serve\"], },\n  }, // end\n}\n";
const GEMINI: &str = "{\"theme\":\"x\",\"mcpServers\":{\"s\":{\"command\":\"taut\",\"args\":[\"serve\"],\"trust\":true}}}";

#[test]
fn every_hosts_file_is_afterwards_byte_for_byte_what_it_was() {
    let files = [
        ("project/.mcp.json", CLAUDE_CODE),
        ("home/.config/Claude/claude_desktop_config.json", DESKTOP),
        ("project/.cursor/mcp.json", CURSOR),
        ("project/.vscode/mcp.json", VS_CODE),
        ("home/.codex/config.toml", CODEX),
        ("project/opencode.jsonc", OPENCODE),
        ("home/.gemini/settings.json", GEMINI),
    ];
    // Each as it is, and as an editor on Windows leaves it.
    let windows = |text: &str| text.replace("\r\n", "\n").replace('\n', "\r\n");
    let both =
        files.iter().flat_map(|(name, text)| [(*name, (*text).to_owned()), (*name, windows(text))]);
    for (name, text) in both {
        let text = text.as_str();
        let place = Place::new();
        let file = place.put(name, text);
        let (_, err) = place.exits(0, &["trace", "--into", "s"]);
        assert!(err.contains("is traced from its next start on"), "{err}");
        let traced = std::fs::read_to_string(&file).unwrap();
        assert_ne!(traced, text);
        let backup = PathBuf::from(format!("{}.before-taut-trace", file.display()));
        assert_eq!(std::fs::read_to_string(&backup).unwrap(), text);
        // The server works as before, and is recorded.
        let (out, _) = place.exits(0, &["smoke", "s"]);
        assert!(out.contains("it works"), "{name}: {out}");
        let captures = std::fs::read_dir(place.at("home/.local/state/taut/traces")).unwrap();
        let captures: Vec<_> = captures.flatten().collect();
        assert_eq!(captures.len(), 1, "{name}");
        let capture = std::fs::read_to_string(captures[0].path()).unwrap();
        assert!(
            capture.contains("\"name\":\"s\"") && capture.contains("tools/list"),
            "{name}: {capture}"
        );
        assert!(!capture.contains("very-high-level"));
        let (_, err) = place.exits(2, &["trace", "--into", "s"]);
        assert!(err.contains("traced already"), "{err}");
        place.exits(0, &["trace", "--out-of", "s"]);
        assert_eq!(std::fs::read_to_string(&file).unwrap(), text, "{name}");
        assert!(!backup.exists());
        let (_, err) = place.exits(2, &["trace", "--out-of", "s"]);
        assert!(err.contains("is not traced"), "{err}");
    }
}

#[test]
fn links_and_permissions_stay_and_what_is_doubtful_is_refused() {
    use std::os::unix::fs::PermissionsExt as _;
    let place = Place::new();
    let real = place.put("home/dotfiles/mcp.json", CLAUDE_CODE);
    std::fs::set_permissions(&real, std::fs::Permissions::from_mode(0o640)).unwrap();
    let link = place.at("project/.mcp.json");
    std::os::unix::fs::symlink(&real, &link).unwrap();
    place.exits(0, &["trace", "--into", "s"]);
    assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(std::fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o640);
    place.exits(0, &["trace", "--out-of", "s"]);
    assert_eq!(std::fs::read_to_string(&real).unwrap(), CLAUDE_CODE);
    let place = Place::new();
    let dotted = "mcp_servers.s.command = \"taut\"\n";
    let file = place.put("home/.codex/config.toml", dotted);
    let (_, err) = place.exits(2, &["trace", "--into", "s"]);
    assert!(err.contains("stays as it is") && err.contains("by hand"), "{err}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), dotted);
    let (_, err) = place.exits(2, &["trace", "--into", "nobody"]);
    assert!(err.contains("there is no server"), "{err}");
}

/// The program of a release is called after its system, and current_exe is what a link leads to.
#[test]
fn a_program_of_any_name_is_taken_out_again() {
    let place = Place::new();
    let program = place.at("taut-x86_64-unknown-linux-musl");
    let own = env!("CARGO_BIN_EXE_taut");
    if std::fs::hard_link(own, &program).is_err() {
        std::fs::copy(own, &program).unwrap();
    }
    let file = place.put("project/.mcp.json", CLAUDE_CODE);
    let run = |option: &str| {
        let mut command = Command::new(&program);
        command.env_clear().env("HOME", place.at("home")).current_dir(place.at("project"));
        command.args(["trace", option, "s"]).output().unwrap().status.code()
    };
    assert_eq!(run("--into"), Some(0));
    assert!(std::fs::read_to_string(&file).unwrap().contains("linux-musl"));
    assert_eq!(run("--into"), Some(2), "it is traced already");
    assert_eq!(run("--out-of"), Some(0));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), CLAUDE_CODE);
}

/// The second overwrote the copy with a traced file, which then stayed for ever.
#[test]
fn the_first_copy_is_kept_and_removed_at_the_end() {
    let place = Place::new();
    let two =
        CLAUDE_CODE.replace("\"s\": {", "\"b\": {\"command\":\"b\",\"args\":[]},\n    \"s\": {");
    let file = place.put("project/.mcp.json", &two);
    let copy = place.at("project/.mcp.json.before-taut-trace");
    for name in ["s", "b"] {
        place.exits(0, &["trace", "--into", name]);
        assert_eq!(std::fs::read_to_string(&copy).unwrap(), two, "into {name}");
    }
    for name in ["s", "b"] {
        assert!(copy.exists());
        place.exits(0, &["trace", "--out-of", name]);
    }
    assert_eq!(std::fs::read_to_string(&file).unwrap(), two);
    assert!(!copy.exists());
}
