//! `taut --version`: which program this is, what is in it, and how an installation of its kind is renewed.
//!
//! Knows where installers put programs. Must not ask anything outside of this machine, nor look for newer versions.

use std::path::{Component, Path, PathBuf};

use serde_json::json;

const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The commit of an optimised build; others are built from a checkout that changes all the time.
const COMMIT: &str = env!("TAUT_COMMIT");
const TARGET: &str = env!("TAUT_TARGET");
const OPTIMISED: bool = !matches!(env!("TAUT_OPT_LEVEL").as_bytes(), b"" | b"0" | b"1");

/// What `--version` prints: for people, or as JSON.
pub(crate) fn text(json: bool) -> String {
    let path = std::env::current_exe().ok();
    let path = path.as_deref().map(|path| path.canonicalize().unwrap_or_else(|_| path.to_owned()));
    let upgrade = path.as_deref().map_or(ARCHIVE, |path| upgrade(path, is_called_tautmcp()));
    let features = features();
    if json {
        let document = json!({
            "version": VERSION,
            "commit": (!COMMIT.is_empty()).then_some(COMMIT),
            "target": TARGET,
            "optimised": OPTIMISED,
            "features": features,
            "upgrade": upgrade,
        });
        return format!("{document:#}\n");
    }
    let commit = if COMMIT.is_empty() { "unknown" } else { COMMIT };
    let build = if OPTIMISED { "optimised" } else { "not optimised" };
    let features = if features.is_empty() { "none".to_owned() } else { features.join(", ") };
    format!(
        "taut {VERSION}\ncommit    {commit}\ntarget    {TARGET}\nbuild     {build}\n\
         features  {features}\nupgrade   {upgrade}\n",
    )
}

/// Whether this process was started by the name of the other package's command.
fn is_called_tautmcp() -> bool {
    let called = std::env::args_os().next();
    let stem = called.as_deref().map(Path::new).and_then(Path::file_stem);
    stem.is_some_and(|stem| stem == "tautmcp")
}

/// Version and commit in one line, for reports.
pub(crate) fn short() -> String {
    if COMMIT.is_empty() { format!("taut {VERSION}") } else { format!("taut {VERSION} ({COMMIT})") }
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

/// The line that renews a program at this place. A place says who put the program there. `mcp` says that it was started
/// as `tautmcp`: npm's packages share one program.
fn upgrade(path: &Path, mcp: bool) -> &'static str {
    let parts: Vec<&str> = path
        .components()
        .filter_map(|part| match part {
            Component::Normal(part) => part.to_str(),
            _ => None,
        })
        .collect();
    let is_named = |part: &&str| *part == "tautmcp" || *part == "tautmcp.exe";
    let mcp = mcp || parts.iter().any(is_named);
    let pick = |own: &'static str, other: &'static str| if mcp { other } else { own };
    let has = |name: &str| parts.contains(&name);
    let follow = |one: &str, two: &str| parts.windows(2).any(|pair| pair == [one, two]);
    if has("_npx") {
        pick("npx taut-cli@latest", "npx tautmcp@latest")
    } else if follow("lib", "node_modules") || follow("npm", "node_modules") {
        pick("npm install -g taut-cli@latest", "npm install -g tautmcp@latest")
    } else if has("node_modules") {
        pick("npm install taut-cli@latest", "npm install tautmcp@latest")
    } else if follow("uv", "tools") {
        pick("uv tool upgrade taut-cli", "uv tool upgrade tautmcp")
    } else if has("uv") || parts.iter().any(|part| part.starts_with("archive-v")) {
        pick("uvx taut-cli@latest", "uvx tautmcp@latest")
    } else if follow("pipx", "venvs") {
        pick("pipx upgrade taut-cli", "pipx upgrade tautmcp")
    } else if follow("target", "debug") || follow("target", "release") || follow("target", "dist") {
        "git pull, then build it again"
    } else if follow(".cargo", "bin") || has_beside(path, ".crates.toml") {
        "cargo install taut-cli"
    } else if is_of_pip(path) {
        pick("pip install --upgrade taut-cli", "pip install --upgrade tautmcp")
    } else {
        ARCHIVE
    }
}

/// Whether the folder above the program's has a file of this name, as what `cargo install --root` fills.
fn has_beside(path: &Path, name: &str) -> bool {
    path.parent().and_then(Path::parent).is_some_and(|root| root.join(name).is_file())
}

/// Whether Python's packages in the same root have one of ours. That a Python is beside the program would say nothing:
/// `/usr/local/bin` often has both.
fn is_of_pip(path: &Path) -> bool {
    let Some(root) = path.parent().and_then(Path::parent) else { return false };
    let versions = folders(&root.join("lib"));
    let mut places: Vec<PathBuf> = versions.iter().map(|one| one.join("site-packages")).collect();
    places.extend(versions.iter().map(|one| one.join("dist-packages")));
    places.push(root.join("Lib").join("site-packages"));
    places.iter().flat_map(|place| folders(place)).any(|one| {
        let name = one.file_name().unwrap_or_default().to_string_lossy();
        let ours = name.starts_with("taut_cli-") || name.starts_with("tautmcp-");
        ours && name.ends_with(".dist-info")
    })
}

fn folders(path: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_of_the_program_says_how_it_is_renewed() {
        let home = |path: &str| upgrade(&Path::new("/home/ada").join(path), false);
        for (path, line) in [
            (".cargo/bin/taut", "cargo install taut-cli"),
            (".local/share/uv/tools/taut-cli/bin/taut", "uv tool upgrade taut-cli"),
            (".local/share/uv/tools/tautmcp/bin/tautmcp", "uv tool upgrade tautmcp"),
            (".cache/uv/archive-v0/x1/bin/taut", "uvx taut-cli@latest"),
            (".local/share/pipx/venvs/taut-cli/bin/taut", "pipx upgrade taut-cli"),
            (".npm/_npx/1/node_modules/taut-cli/bin/taut", "npx taut-cli@latest"),
            ("lib/node_modules/tautmcp/bin/tautmcp", "npm install -g tautmcp@latest"),
            ("app/node_modules/taut-cli/bin/taut", "npm install taut-cli@latest"),
            ("taut/target/release/taut", "git pull, then build it again"),
            ("Downloads/taut", ARCHIVE),
        ] {
            assert_eq!(home(path), line, "{path}");
        }
    }

    #[test]
    fn one_program_of_npm_is_renewed_by_the_package_that_started_it() {
        let path = Path::new("/usr/lib/node_modules/taut-cli-linux-x64/bin/taut");
        assert_eq!(upgrade(path, false), "npm install -g taut-cli@latest");
        assert_eq!(upgrade(path, true), "npm install -g tautmcp@latest");
    }

    #[test]
    fn what_lies_beside_the_program_says_who_put_it_there() {
        let root = std::env::temp_dir().join(format!("taut-version-{}", std::process::id()));
        let bin = root.join("bin");
        std::fs::create_dir_all(&bin).unwrap();
        for python in ["python", "python3"] {
            std::fs::write(bin.join(python), "").unwrap();
        }
        // A Python alone does not mean that pip put the program there.
        assert_eq!(upgrade(&bin.join("taut"), false), ARCHIVE);
        let packages = root.join("lib/python3.11/site-packages");
        std::fs::create_dir_all(packages.join("tautmcp-0.1.0.dist-info")).unwrap();
        assert_eq!(upgrade(&bin.join("tautmcp"), false), "pip install --upgrade tautmcp");
        std::fs::write(root.join(".crates.toml"), "").unwrap();
        assert_eq!(upgrade(&bin.join("taut"), false), "cargo install taut-cli");
        std::fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn the_version_is_the_first_line_and_one_json_document() {
        assert!(text(false).starts_with(concat!("taut ", env!("CARGO_PKG_VERSION"), "\n")));
        let document: serde_json::Value = serde_json::from_str(&text(true)).unwrap();
        assert_eq!(document["version"], VERSION);
        assert_eq!(document["target"], TARGET);
        assert_eq!(document["optimised"], OPTIMISED);
        assert!(document["features"].is_array() && document["upgrade"].is_string());
    }
}
