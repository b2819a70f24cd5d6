//! The name of this program: `taut`, `taut-cli`, `tautmcp`, or what the file of a release is called.
//!
//! Every line that can be pasted and every entry for a host's file begins with it. Must not start anything, nor know
//! what a command does.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::path::{Component, MAIN_SEPARATOR, Path, PathBuf};
use std::sync::LazyLock;

use clap::CommandFactory as _;

use crate::args::Args;
use crate::arguments::closest;
use crate::session::quoted;

/// The name in all texts of ours.
const TAUT: &str = "taut";

static NAME: LazyLock<String> = LazyLock::new(|| match runner() {
    Some(words) => quoted(words),
    None => quoted([plain()]),
});

/// What starts this program from the shell that started it, quoted so that it can be pasted.
pub(crate) fn name() -> &'static str {
    &NAME
}

/// A text of ours in which each `taut COMMAND` has the name by which this program was started.
pub(crate) fn named(text: &'static str) -> String {
    renamed(text).into_owned()
}

/// The same of a help text: all of it is ours.
pub(crate) fn renamed(text: &str) -> Cow<'_, str> {
    if name() == TAUT {
        return Cow::Borrowed(text);
    }
    let commands = Args::command();
    let commands: Vec<&str> = commands.get_subcommands().map(clap::Command::get_name).collect();
    Cow::Owned(replaced(text, name(), &commands))
}

fn replaced(text: &str, name: &str, commands: &[&str]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(TAUT) {
        let (before, found) = rest.split_at(at);
        let after = &found[TAUT.len()..];
        let begins = !before.ends_with(|c: char| c.is_alphanumeric() || "-_/.".contains(c));
        let word = after.strip_prefix(' ').unwrap_or_default();
        let word = word.split(|c: char| !c.is_ascii_lowercase()).next().unwrap_or_default();
        out.push_str(before);
        out.push_str(if begins && commands.contains(&word) { name } else { TAUT });
        rest = after;
    }
    out + rest
}

/// Whether a word is a command of ours.
pub(crate) fn is_command(word: &str) -> bool {
    Args::command().find_subcommand(word).is_some()
}

/// The command of ours that a word with a slip of the keys means.
pub(crate) fn closest_command(word: &str) -> Option<String> {
    let commands = Args::command();
    closest(word, commands.get_subcommands().map(clap::Command::get_name)).map(str::to_owned)
}

/// The words that start this program in an entry of a host's file. A name is enough where it is on the PATH.
pub(crate) fn entry() -> Vec<String> {
    match (runner(), on_path()) {
        (Some(mut words), _) => {
            // A host cannot answer npm's question.
            if words[0] == "npx" {
                words.insert(1, "-y");
            }
            words.into_iter().map(str::to_owned).collect()
        }
        // Only this shell is in that environment of Python.
        (None, Some((_, path)))
            if std::env::var_os("VIRTUAL_ENV").is_some_and(|place| path.starts_with(place)) =>
        {
            vec![path.display().to_string()]
        }
        (None, Some((name, _))) => vec![name],
        (None, None) => vec![file()],
    }
}

/// The same for a file that we write ourselves: with a path, because a host that a desktop started has another PATH.
pub(crate) fn written() -> Vec<String> {
    match (runner(), on_path()) {
        (None, Some((_, path))) => vec![path.display().to_string()],
        _ => entry(),
    }
}

/// The name that a shell registers completions for: the last part of a path.
pub(crate) fn base() -> String {
    typed().as_deref().and_then(stem).unwrap_or_else(|| TAUT.to_owned())
}

/// The package runner that started this program from its cache: there, it has no name on the PATH of the user.
fn runner() -> Option<Vec<&'static str>> {
    runner_of(&std::env::current_exe().ok()?, &base())
}

fn runner_of(exe: &Path, name: &str) -> Option<Vec<&'static str>> {
    let has = |is: &dyn Fn(&str) -> bool| {
        exe.components().any(|part| match part {
            Component::Normal(part) => part.to_str().is_some_and(is),
            _ => false,
        })
    };
    let package = if name == "tautmcp" { "tautmcp" } else { "taut-cli" };
    if has(&|part| part == "_npx") {
        return Some(vec!["npx", package]);
    }
    has(&|part| part.starts_with("archive-v")).then(|| vec!["uvx", package])
}

/// One word: a name on the PATH, else the path that was typed, else the file.
fn plain() -> String {
    if let Some((name, _)) = on_path() {
        return name;
    }
    let typed = typed().and_then(|typed| typed.into_os_string().into_string().ok());
    let typed = typed.filter(|typed| typed.contains(['/', MAIN_SEPARATOR]));
    typed.filter(|typed| Path::new(typed).exists()).unwrap_or_else(file)
}

/// The name by which this program was started and the path where the PATH has it, if it has this program there.
fn on_path() -> Option<(String, PathBuf)> {
    let name = typed().as_deref().and_then(stem)?;
    let path = taut::Command::new(&name).find_program().ok()?;
    let own = std::env::current_exe().ok()?.canonicalize().ok()?;
    (path.canonicalize().ok()? == own).then_some((name, path))
}

fn typed() -> Option<PathBuf> {
    std::env::args_os().next().map(PathBuf::from)
}

fn stem(path: &Path) -> Option<String> {
    let name = path.file_name().and_then(OsStr::to_str)?;
    let name = if cfg!(windows) { name.strip_suffix(".exe").unwrap_or(name) } else { name };
    Some(name.to_owned())
}

fn file() -> String {
    std::env::current_exe().map_or_else(|_| TAUT.to_owned(), |path| path.display().to_string())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{replaced, runner_of};

    #[test]
    fn only_the_program_of_a_line_gets_another_name() {
        let named = |text| replaced(text, "npx taut-cli", &["smoke", "serve"]);
        assert_eq!(named("taut smoke -- taut serve"), "npx taut-cli smoke -- npx taut-cli serve");
        assert_eq!(named("see `taut smoke`; taut is"), "see `npx taut-cli smoke`; taut is");
        for other in ["~/.config/taut/taut.yaml", "docs/taut smoke", "taut-smoke", "taut smokes"] {
            assert_eq!(named(other), other);
        }
    }

    #[test]
    fn a_program_in_the_cache_of_a_package_runner_is_started_by_the_runner() {
        for (path, name, words) in [
            ("/h/.npm/_npx/1/node_modules/taut-cli/bin/taut", "taut", "npx taut-cli"),
            ("/h/.npm/_npx/1/node_modules/tautmcp/bin/tautmcp", "tautmcp", "npx tautmcp"),
            ("/h/.cache/uv/archive-v0/x/bin/taut-cli", "taut-cli", "uvx taut-cli"),
        ] {
            assert_eq!(runner_of(Path::new(path), name).unwrap().join(" "), words);
        }
        assert_eq!(runner_of(Path::new("/h/.local/bin/taut"), "taut"), None);
    }
}
