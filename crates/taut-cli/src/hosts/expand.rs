//! Variables in a host's file: `${VAR}`, `${VAR:-default}`, and what each host has beside them.
//!
//! Pure except for `{file:…}`: takes text and variables, returns text or what is missing. The first two
//! forms work in the files of all hosts. A variable that is not set and has no default is an error here;
//! hosts pass on the unexpanded text, or nothing, and the server fails later.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use super::places::{Host, Surroundings};
use super::read::text_file;

/// Something that a value needs and that is not there.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Missing {
    /// A variable of the environment.
    Variable(String),
    /// What VS Code would ask a person, and in which words.
    Input { id: String, asks: String },
    /// Something that only the editor knows.
    Editor(String),
    /// A file whose content should stand there.
    File { path: PathBuf, why: String },
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Variable(name) => write!(f, "the variable {name} is not set"),
            Self::Input { id, asks } if asks.is_empty() => {
                write!(f, "its host asks a person for {id}")
            }
            Self::Input { id, asks } => write!(f, "its host asks a person for {id} ({asks})"),
            Self::Editor(what) => write!(f, "only its host knows what {what} is"),
            Self::File { path, why } => write!(f, "{} cannot be read: {why}", path.display()),
        }
    }
}

/// What values are filled in with.
pub(crate) struct Values<'a> {
    pub(crate) host: Host,
    /// The project, for `${workspaceFolder}`.
    pub(crate) folder: &'a Path,
    pub(crate) inputs: &'a BTreeMap<String, String>,
    pub(crate) around: &'a Surroundings,
}

/// How deep a default may hold another variable: enough for people, too little to go in circles.
const DEPTH: usize = 4;

impl Values<'_> {
    pub(crate) fn expand(&self, text: &str) -> Result<String, Missing> {
        self.filled(text, DEPTH)
    }

    fn filled(&self, text: &str, depth: usize) -> Result<String, Missing> {
        let mut out = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(['$', '{']) {
            out.push_str(&rest[..at]);
            rest = &rest[at..];
            let taken = match self.first(rest, depth)? {
                Some((value, length)) => {
                    out.push_str(&value);
                    length
                }
                None => {
                    out.push_str(&rest[..1]);
                    1
                }
            };
            rest = &rest[taken..];
        }
        out.push_str(rest);
        Ok(out)
    }

    /// The value of the variable that a text begins with, and how long that is; nothing if it is none.
    fn first(&self, text: &str, depth: usize) -> Result<Option<(String, usize)>, Missing> {
        if let Some(inside) = text.strip_prefix("${").and_then(closed) {
            let value = self.braced(inside, depth)?;
            return Ok(value.map(|value| (value, inside.len() + 3)));
        }
        if self.host == Host::Gemini && text.starts_with('$') {
            let name = word(&text[1..]);
            return if name.is_empty() {
                Ok(None)
            } else {
                Ok(Some((self.variable(name)?, name.len() + 1)))
            };
        }
        if !matches!(self.host, Host::OpenCode | Host::Any) {
            return Ok(None);
        }
        let inside = text.strip_prefix('{').and_then(closed).unwrap_or_default();
        let value = match inside.split_once(':') {
            Some(("env", name)) => self.variable(name)?,
            Some(("file", path)) => self.file(path)?,
            _ => return Ok(None),
        };
        Ok(Some((value, inside.len() + 2)))
    }

    /// What stands between `${` and `}`.
    fn braced(&self, inside: &str, depth: usize) -> Result<Option<String>, Missing> {
        if let Some(value) = self.predefined(inside) {
            return Ok(Some(value));
        }
        if let Some(id) = inside.strip_prefix("input:") {
            let asks = self.inputs.get(id).cloned().unwrap_or_default();
            return Err(Missing::Input { id: id.to_owned(), asks });
        }
        if inside.starts_with("command:") || inside.starts_with("config:") {
            return Err(Missing::Editor(format!("${{{inside}}}")));
        }
        let plain = inside.strip_prefix("env:").unwrap_or(inside);
        let name = word(plain);
        let (Some(value), false) = (plain.strip_prefix(name), name.is_empty()) else {
            return Ok(None);
        };
        match (self.around.var(name), value.strip_prefix(":-")) {
            // The letters of a shell's own variable, such as ${1} or ${x%y}: not for us.
            (_, None) if !value.is_empty() => Ok(None),
            (Some(value), _) => Ok(Some(value.clone())),
            (None, Some(default)) if depth > 0 => self.filled(default, depth - 1).map(Some),
            (None, Some(default)) => Ok(Some(default.to_owned())),
            (None, None) => self.variable(name).map(Some),
        }
    }

    /// What the editors set by themselves, and Claude Code.
    fn predefined(&self, name: &str) -> Option<String> {
        let shown = |path: &Path| path.display().to_string();
        if name == "CLAUDE_PROJECT_DIR" && self.host == Host::ClaudeCode {
            return Some(shown(self.folder));
        }
        if !matches!(self.host, Host::Cursor | Host::VsCode | Host::Any) {
            return None;
        }
        Some(match name {
            "workspaceFolder" => shown(self.folder),
            "workspaceFolderBasename" => shown(Path::new(self.folder.file_name()?)),
            "userHome" => shown(self.around.home.as_ref()?),
            "cwd" => shown(&self.around.cwd),
            "pathSeparator" | "/" => std::path::MAIN_SEPARATOR.to_string(),
            _ => return None,
        })
    }

    fn variable(&self, name: &str) -> Result<String, Missing> {
        let value = self.around.var(name);
        value.cloned().ok_or_else(|| Missing::Variable(name.to_owned()))
    }

    /// The content of a file (opencode): for a secret that has one of its own.
    fn file(&self, path: &str) -> Result<String, Missing> {
        let path = self.path(path);
        match text_file(&path) {
            Ok(text) => Ok(text.trim_end_matches(['\r', '\n']).to_owned()),
            Err(error) => Err(Missing::File { path, why: error.to_string() }),
        }
    }

    /// A path that counts from the project, or from the home folder after `~/`.
    pub(crate) fn path(&self, path: &str) -> PathBuf {
        match (path.strip_prefix("~/"), &self.around.home) {
            (Some(rest), Some(home)) => home.join(rest),
            _ => self.folder.join(path),
        }
    }
}

/// Up to the brace that closes, past those that open another variable.
fn closed(text: &str) -> Option<&str> {
    let mut open = 0_usize;
    for (at, letter) in text.char_indices() {
        match letter {
            '{' => open += 1,
            '}' if open == 0 => return Some(&text[..at]),
            '}' => open -= 1,
            _ => {}
        }
    }
    None
}

/// The name of a variable that a text begins with.
fn word(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len());
    if text.starts_with(|c: char| c.is_ascii_digit()) { "" } else { &text[..end] }
}

/// `NAME=value` lines, as in a `.env` file: comments, `export` and quotes are taken off.
pub(crate) fn env_file(text: &str) -> Vec<(String, String)> {
    let line = |line: &str| {
        let line = line.trim();
        let line = line.strip_prefix("export ").unwrap_or(line);
        let (name, value) = line.split_once('=')?;
        let value = value.trim();
        let quoted = |mark| value.strip_prefix(mark).and_then(|rest| rest.strip_suffix(mark));
        let value = quoted('"').or_else(|| quoted('\'')).unwrap_or(value);
        (!line.starts_with('#')).then(|| (name.trim().to_owned(), value.to_owned()))
    };
    text.lines().filter_map(line).filter(|(name, _)| !name.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expand(host: Host, text: &str) -> Result<String, Missing> {
        let vars = [("A", "1"), ("EMPTY", ""), ("B", "${A}")];
        let around = Surroundings {
            home: Some("/home/me".into()),
            cwd: "/work".into(),
            vars: vars.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
        };
        let inputs = BTreeMap::from([("key".to_owned(), "A key".to_owned())]);
        Values { host, folder: Path::new("/p/q"), inputs: &inputs, around: &around }.expand(text)
    }

    #[test]
    fn variables_are_filled_in_as_each_host_writes_them() {
        use Host::{Any, ClaudeCode, Codex, Cursor, Gemini, OpenCode, VsCode};
        let table = [
            (ClaudeCode, "x${A}y${A}", "x1y1"),
            (ClaudeCode, "${NO:-d}/${A:-d}/${EMPTY:-d}", "d/1/"),
            (ClaudeCode, "${NO:-${A}}${NO:-}", "1"),
            (ClaudeCode, "${B}", "${A}"),
            (ClaudeCode, "${CLAUDE_PROJECT_DIR}/x", "/p/q/x"),
            (
                ClaudeCode,
                "$A $$ ${ ${} ${1} ${x%y} {env:A} é",
                "$A $$ ${ ${} ${1} ${x%y} {env:A} é",
            ),
            (Codex, "${A}", "1"),
            (Cursor, "${env:A} ${workspaceFolder}${/}x ${userHome}", "1 /p/q/x /home/me"),
            (VsCode, "${workspaceFolderBasename}${pathSeparator}${cwd}", "q//work"),
            (Gemini, "$A-${A}$ $1", "1-1$ $1"),
            (OpenCode, "{env:A}{x}{", "1{x}{"),
            (Any, "{env:A}${env:A}${A}${workspaceFolder}", "111/p/q"),
        ];
        for (host, text, value) in table {
            // Windows has another separator; the folders here are Unix's everywhere.
            let expanded = expand(host, text).map(|text| text.replace('\\', "/"));
            assert_eq!(expanded.as_deref(), Ok(value), "{host:?} {text}");
        }
    }

    #[test]
    fn what_is_missing_is_named() {
        let variable = |name: &str| Missing::Variable(name.to_owned());
        let table = [
            (Host::ClaudeCode, "a${NO}b", variable("NO")),
            (Host::Cursor, "${env:NO}", variable("NO")),
            (Host::Gemini, "$NO", variable("NO")),
            (Host::OpenCode, "{env:NO}", variable("NO")),
            (Host::ClaudeCode, "${NO:-${NO2}}", variable("NO2")),
            (
                Host::VsCode,
                "${input:key}",
                Missing::Input { id: "key".into(), asks: "A key".into() },
            ),
            (Host::VsCode, "${command:x.y}", Missing::Editor("${command:x.y}".into())),
        ];
        for (host, text, missing) in table {
            assert_eq!(expand(host, text), Err(missing), "{text}");
        }
        assert!(matches!(expand(Host::OpenCode, "{file:no}"), Err(Missing::File { .. })));
    }

    #[test]
    fn a_file_of_variables_is_read_line_by_line() {
        let text = "# no\n\nA=1\nexport B = \"two words\" \nC='3'\nD=x=y\nnonsense\n=4\n";
        let pairs = [("A", "1"), ("B", "two words"), ("C", "3"), ("D", "x=y")];
        assert_eq!(env_file(text), pairs.map(|(n, v)| (n.to_owned(), v.to_owned())));
    }
}
