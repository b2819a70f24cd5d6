//! The entry of a host's file that cures a server by `taut bridge`.
//!
//! Pure, but for looking which words are files. Masks secrets. Must not judge.

use std::path::Path;

use serde_json::{Value, json};

use super::facts::Facts;
use super::findings::{self, Finding};
use crate::args::Options;
use crate::hosts::WITHIN;
use crate::{mask, own};

/// The words after our name that cure something of what was found; none if nothing is.
pub(super) fn cure(facts: &Facts, found: &[Finding], server: &[String]) -> Vec<String> {
    if server.is_empty() || !found.iter().any(|finding| finding.bridged) {
        return Vec::new();
    }
    findings::bridge(facts).into_iter().chain(server.iter().cloned()).collect()
}

/// The whole entry of a host's file that starts the server with these words, under the name that it has there.
pub(super) fn entry(
    name: Option<&str>,
    cure: &[String],
    server: &[String],
    options: &Options,
) -> String {
    let (command, args) = started_with(cure);
    let mut members =
        vec![format!("\"command\": {}", json!(command)), format!("\"args\": {}", json!(args))];
    let mut env = options.env.iter().filter(|(name, _)| name != WITHIN).peekable();
    if env.peek().is_some() {
        let env = env.map(|(name, value)| {
            let shown = if taut::secrets::is_secret_name(name) {
                mask::env(value)
            } else {
                mask::one(value)
            };
            (name.clone(), Value::from(shown))
        });
        members.push(format!("\"env\": {}", Value::Object(env.collect())));
    }
    let name = name.map_or_else(|| name_of(server), str::to_owned);
    format!("{}: {{ {} }}", json!(name), members.join(", "))
}

/// The command and the arguments with which a host starts this program with these words.
pub(super) fn started_with(words: &[String]) -> (String, Vec<String>) {
    let mut all = own::entry();
    let command = all.remove(0);
    all.extend(words.iter().cloned());
    (command, all)
}

/// A name for an entry: of the script or package that is run, without its ending.
fn name_of(server: &[String]) -> String {
    const RUNNERS: [&str; 12] = [
        "node", "python", "python3", "npx", "uvx", "uv", "bun", "deno", "env", "sh", "run", "ruby",
    ];
    let stem = |word: &String| Some(Path::new(word).file_stem()?.to_str()?.to_owned());
    let is_plain = |word: &&String| !word.starts_with('-') && !word.contains(['=', ' ']);
    let stems = server.iter().filter(is_plain).filter_map(stem);
    let mut stems = stems.filter(|stem| !RUNNERS.contains(&stem.as_str()));
    stems.next().unwrap_or_else(|| "server".to_owned())
}

/// The words with the paths of files that are here in full: a host starts a server in another folder.
pub(super) fn in_full(words: &[String], cwd: Option<&Path>) -> Vec<String> {
    let here = |word: &String| {
        let path = Path::new(word);
        let is_path = word.contains(['/', '.']) && !word.starts_with('-') && path.is_relative();
        let base = std::env::current_dir().ok()?;
        let base = cwd.map_or_else(|| base.clone(), |cwd| base.join(cwd));
        let full = is_path.then(|| base.join(path)).filter(|full| full.exists())?;
        // `./x` is `x` in this folder.
        std::path::absolute(full.components().collect::<std::path::PathBuf>()).ok()
    };
    // A host that a desktop has started does not know the environment of Python that this shell is in.
    let of_this_shell = |word: &String| {
        let place = std::env::var_os("VIRTUAL_ENV")?;
        let path = taut::Command::new(word).find_program().ok()?;
        path.starts_with(place).then_some(path)
    };
    let full = |(at, word): (usize, &String)| match (at, here(word)) {
        (_, Some(full)) => full.display().to_string(),
        (0, None) => {
            of_this_shell(word).map_or_else(|| word.clone(), |full| full.display().to_string())
        }
        _ => word.clone(),
    };
    words.iter().enumerate().map(full).collect()
}
