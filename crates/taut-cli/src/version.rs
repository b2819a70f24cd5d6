//! `taut --version`: which program this is, what is in it, and how an installation of its kind is renewed.
//!
//! Knows where installers put programs. Must not ask anything outside of this machine, nor look for newer versions.

use std::path::{Component, Path};

use serde_json::json;

const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The commit of an optimised build; others are built from a checkout that changes all the time.
const COMMIT: &str = env!("TAUT_COMMIT");
const TARGET: &str = env!("TAUT_TARGET");

/// What `--version` prints: for people, or as JSON.
pub(crate) fn text(json: bool) -> String {
    let path = std::env::current_exe().ok();
    let path = path.as_deref().map(|path| path.canonicalize().unwrap_or_else(|_| path.to_owned()));
    let upgrade = path.as_deref().map_or(ARCHIVE, upgrade);
    let features = features();
    if json {
        let document = json!({
            "version": VERSION,
            "commit": (!COMMIT.is_empty()).then_some(COMMIT),
            "target": TARGET,
            "features": features,
            "upgrade": upgrade,
        });
        return format!("{document:#}\n");
    }
    let commit = if COMMIT.is_empty() { "unknown" } else { COMMIT };
    format!(
        "taut {VERSION}\ncommit    {commit}\ntarget    {TARGET}\nfeatures  {}\nupgrade   {upgrade}\n",
        if features.is_empty() { "none".to_owned() } else { features.join(", ") },
    )
}

/// What was built in, of what a build can leave out.
fn features() -> Vec<&'static str> {
    let all = [
        ("http", cfg!(feature = "http")),
        ("login", cfg!(feature = "login")),
        ("fleet", cfg!(feature = "fleet")),
    ];
    all.into_iter().filter_map(|(name, there)| there.then_some(name)).collect()
}

const ARCHIVE: &str = "replace this program by that of a newer archive";

/// The line that renews a program at this place. A place says who put the program there.
fn upgrade(path: &Path) -> &'static str {
    let parts: Vec<&str> = path
        .components()
        .filter_map(|part| match part {
            Component::Normal(part) => part.to_str(),
            _ => None,
        })
        .collect();
    let mcp =
        parts.last().is_some_and(|file| file.starts_with("tautmcp")) || parts.contains(&"tautmcp");
    let pick = |own: &'static str, other: &'static str| if mcp { other } else { own };
    let has = |name: &str| parts.contains(&name);
    let follow = |one: &str, two: &str| parts.windows(2).any(|pair| pair == [one, two]);
    if has("_npx") {
        pick("npx taut-cli@latest", "npx tautmcp@latest")
    } else if has("node_modules") {
        pick("npm install -g taut-cli@latest", "npm install -g tautmcp@latest")
    } else if follow("uv", "tools") {
        pick("uv tool upgrade taut-cli", "uv tool upgrade tautmcp")
    } else if has("uv") || parts.iter().any(|part| part.starts_with("archive-v")) {
        pick("uvx taut-cli@latest", "uvx tautmcp@latest")
    } else if follow("pipx", "venvs") {
        pick("pipx upgrade taut-cli", "pipx upgrade tautmcp")
    } else if follow(".cargo", "bin") {
        "cargo install taut-cli"
    } else if follow("target", "debug") || follow("target", "release") || follow("target", "dist") {
        "git pull, then build it again"
    } else if has_python(path) {
        pick("pip install --upgrade taut-cli", "pip install --upgrade tautmcp")
    } else {
        ARCHIVE
    }
}

/// Whether Python's programs are beside this one, as in an environment that pip fills.
fn has_python(path: &Path) -> bool {
    let Some(folder) = path.parent() else { return false };
    ["python", "python3", "python.exe"].iter().any(|name| folder.join(name).exists())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_of_the_program_says_how_it_is_renewed() {
        let home = |path: &str| upgrade(&Path::new("/home/ada").join(path));
        for (path, line) in [
            (".cargo/bin/taut", "cargo install taut-cli"),
            (".local/share/uv/tools/taut-cli/bin/taut", "uv tool upgrade taut-cli"),
            (".local/share/uv/tools/tautmcp/bin/tautmcp", "uv tool upgrade tautmcp"),
            (".cache/uv/archive-v0/x1/bin/taut", "uvx taut-cli@latest"),
            (".local/share/pipx/venvs/taut-cli/bin/taut", "pipx upgrade taut-cli"),
            (".npm/_npx/1/node_modules/taut-cli/bin/taut", "npx taut-cli@latest"),
            ("lib/node_modules/tautmcp/bin/tautmcp", "npm install -g tautmcp@latest"),
            ("taut/target/release/taut", "git pull, then build it again"),
            ("Downloads/taut", ARCHIVE),
        ] {
            assert_eq!(home(path), line, "{path}");
        }
    }

    #[test]
    fn the_version_is_the_first_line_and_one_json_document() {
        assert!(text(false).starts_with(concat!("taut ", env!("CARGO_PKG_VERSION"), "\n")));
        let document: serde_json::Value = serde_json::from_str(&text(true)).unwrap();
        assert_eq!(document["version"], VERSION);
        assert_eq!(document["target"], TARGET);
        assert!(document["features"].is_array() && document["upgrade"].is_string());
    }
}
