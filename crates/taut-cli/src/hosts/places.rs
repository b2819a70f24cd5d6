//! The paths of the hosts' files on each system, and their precedence.
//!
//! The paths come from the hosts' documentation (docs/guides/servers-by-name.md lists them). Looks for
//! `.git` and reads nothing else.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Whose file it is: that decides which variables it may use, and what a server inherits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Host {
    ClaudeCode,
    ClaudeDesktop,
    Cursor,
    VsCode,
    Codex,
    OpenCode,
    Gemini,
    /// Given with `--config`, and no file name of a known host.
    Any,
}

impl Host {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::ClaudeCode => "Claude Code",
            Self::ClaudeDesktop => "Claude Desktop",
            Self::Cursor => "Cursor",
            Self::VsCode => "VS Code",
            Self::Codex => "Codex",
            Self::OpenCode => "opencode",
            Self::Gemini => "Gemini CLI",
            Self::Any => "--config",
        }
    }

    /// Whether it gives its servers its whole environment; the others give a short list, or are not
    /// known to give more.
    pub(crate) fn inherits(self) -> bool {
        matches!(self, Self::ClaudeCode | Self::VsCode | Self::OpenCode | Self::Gemini)
    }
}

/// For whom the servers in a file are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// One person, in this project: `projects` in `~/.claude.json`.
    Local,
    /// Everybody who works in this folder.
    Project,
    /// One person, everywhere.
    User,
    /// A file that was given with `--config`.
    Given,
}

impl Scope {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Project => "project",
            Self::User => "user",
            Self::Given => "given",
        }
    }
}

/// A file that may be there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) host: Host,
    pub(crate) scope: Scope,
    pub(crate) path: PathBuf,
    /// The project's folder: what relative paths in it count from, and `${workspaceFolder}`.
    pub(crate) folder: PathBuf,
}

/// All that the search depends on.
#[derive(Clone, Debug)]
pub(crate) struct Surroundings {
    pub(crate) home: Option<PathBuf>,
    pub(crate) cwd: PathBuf,
    pub(crate) vars: BTreeMap<String, String>,
}

impl Surroundings {
    /// Those of this process.
    pub(crate) fn here() -> Self {
        let text = |word: std::ffi::OsString| word.into_string().ok();
        Self {
            home: std::env::home_dir().filter(|home| home.is_absolute()),
            cwd: std::env::current_dir().unwrap_or_else(|_| PathBuf::from(".")),
            vars: std::env::vars_os().filter_map(|(n, v)| Some((text(n)?, text(v)?))).collect(),
        }
    }

    /// The value of a variable. Windows does not tell upper case from lower: what is `PATH` elsewhere is `Path` there.
    pub(crate) fn var(&self, name: &str) -> Option<&String> {
        variable(&self.vars, name, cfg!(windows))
    }

    /// A folder that a variable names, if it is one.
    fn folder(&self, variable: &str) -> Option<PathBuf> {
        let folder = self.var(variable).map(PathBuf::from);
        folder.filter(|folder| folder.is_absolute())
    }

    /// Where programs of this user keep their settings.
    fn settings(&self) -> Option<PathBuf> {
        if cfg!(target_os = "macos") {
            return Some(self.home.as_ref()?.join("Library/Application Support"));
        }
        if cfg!(windows) {
            return self.folder("APPDATA");
        }
        self.folder("XDG_CONFIG_HOME").or_else(|| Some(self.home.as_ref()?.join(".config")))
    }

    /// The folders that a project's file may be in: from here up to the repository's root; without a
    /// repository up to the home folder, which is not part of it. Elsewhere, such as in /tmp, only this
    /// one: what lies above it may be anybody's.
    pub(crate) fn project(&self) -> Vec<PathBuf> {
        let home = self.home.as_deref();
        if home == Some(&*self.cwd) {
            return vec![self.cwd.clone()];
        }
        let up = self.cwd.ancestors().take_while(|folder| Some(*folder) != home);
        let up: Vec<PathBuf> = up.map(Path::to_owned).collect();
        if let Some(root) = up.iter().position(|folder| folder.join(".git").exists()) {
            return up[..=root].to_vec();
        }
        match home {
            Some(home) if self.cwd.starts_with(home) => up,
            _ => vec![self.cwd.clone()],
        }
    }

    /// The root of the project, for files that are not in one.
    pub(crate) fn root(&self) -> PathBuf {
        let found = self.project().into_iter().find(|folder| folder.join(".git").exists());
        found.unwrap_or_else(|| self.cwd.clone())
    }

    /// As people write it: from here, from the home folder, or in full.
    pub(crate) fn shown(&self, path: &Path) -> String {
        // The names of files above have slashes, and the folders of Windows backslashes.
        let path = &path.components().collect::<PathBuf>();
        let home = self.home.as_ref().and_then(|home| path.strip_prefix(home).ok());
        let above_home = self.home.as_ref().is_some_and(|home| home.starts_with(&self.cwd));
        match (path.strip_prefix(&self.cwd), home) {
            (Ok(rest), None) => rest.display().to_string(),
            (Ok(rest), Some(_)) if !above_home => rest.display().to_string(),
            (_, Some(rest)) => Path::new("~").join(rest).display().to_string(),
            (Err(_), None) => path.display().to_string(),
        }
    }
}

/// The value of a variable, with or without regard to case. The exact name goes first.
fn variable<'v>(
    vars: &'v BTreeMap<String, String>,
    name: &str,
    case_blind: bool,
) -> Option<&'v String> {
    let alike = || vars.iter().find(|(other, _)| other.eq_ignore_ascii_case(name));
    vars.get(name).or_else(|| alike().filter(|_| case_blind).map(|(_, value)| value))
}

/// Whether both are names of one variable on this system.
pub(crate) fn same_variable(one: &str, other: &str) -> bool {
    one == other || (cfg!(windows) && one.eq_ignore_ascii_case(other))
}

/// Every place, the one that wins first: this project before this user, and the hosts in this order
/// within each. What one host documents about its own files holds: Claude Code's local servers go before
/// the project's, those before the user's.
pub(crate) fn all(around: &Surroundings) -> Vec<Place> {
    let root = around.root();
    let user = |host, path: PathBuf| Place { host, scope: Scope::User, path, folder: root.clone() };
    let mut places = Vec::new();
    let claude = around.folder("CLAUDE_CONFIG_DIR").or_else(|| around.home.clone());
    let project = around.project();
    for folder in &project {
        // By the folder that it was started in, which may be any of these.
        let local = |path| Place {
            scope: Scope::Local,
            folder: folder.clone(),
            ..user(Host::ClaudeCode, path)
        };
        places.extend(claude.iter().map(|claude| local(claude.join(".claude.json"))));
    }
    let here = [
        (Host::ClaudeCode, &[".mcp.json"][..]),
        (Host::Cursor, &[".cursor/mcp.json"]),
        (Host::VsCode, &[".vscode/mcp.json"]),
        (Host::Codex, &[".codex/config.toml"]),
        (
            Host::OpenCode,
            &[
                ".opencode/opencode.jsonc",
                ".opencode/opencode.json",
                "opencode.jsonc",
                "opencode.json",
            ],
        ),
        (Host::Gemini, &[".gemini/settings.json"]),
    ];
    for (host, names) in here {
        let each = project.iter().flat_map(|folder| names.iter().map(move |name| (folder, name)));
        places.extend(each.map(|(folder, name)| Place {
            host,
            scope: Scope::Project,
            path: folder.join(name),
            folder: folder.clone(),
        }));
    }
    places.extend(claude.map(|folder| user(Host::ClaudeCode, folder.join(".claude.json"))));
    let settings = around.settings();
    if let Some(folder) = &settings {
        let path = folder.join("Claude/claude_desktop_config.json");
        places.push(user(Host::ClaudeDesktop, path));
    }
    if let Some(home) = &around.home {
        places.push(user(Host::Cursor, home.join(".cursor/mcp.json")));
    }
    places.extend(settings.map(|folder| user(Host::VsCode, folder.join("Code/User/mcp.json"))));
    let codex = around.folder("CODEX_HOME").or_else(|| Some(around.home.as_ref()?.join(".codex")));
    places.extend(codex.map(|folder| user(Host::Codex, folder.join("config.toml"))));
    let xdg =
        around.folder("XDG_CONFIG_HOME").or_else(|| Some(around.home.as_ref()?.join(".config")));
    for name in ["opencode/opencode.jsonc", "opencode/opencode.json"] {
        places.extend(xdg.iter().map(|folder| user(Host::OpenCode, folder.join(name))));
    }
    if let Some(home) = &around.home {
        places.push(user(Host::Gemini, home.join(".gemini/settings.json")));
    }
    once(places)
}

/// In the home folder a project's file and the user's are one; the first way to it counts.
fn once(places: Vec<Place>) -> Vec<Place> {
    let mut kept: Vec<Place> = Vec::new();
    for place in places {
        let is_local = |place: &Place| place.scope == Scope::Local;
        let known = |seen: &Place| seen.path == place.path && !is_local(seen);
        if is_local(&place) || !kept.iter().any(known) {
            kept.push(place);
        }
    }
    kept
}

/// A file that somebody names: one that we know, or one whose name tells whose it is.
pub(crate) fn given(path: &Path, around: &Surroundings) -> Place {
    let path = around.cwd.join(path);
    let mut known = all(around).into_iter().filter(|place| place.scope != Scope::Local);
    if let Some(place) = known.find(|place| place.path == path) {
        return place;
    }
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let parent = path.parent().unwrap_or_else(|| Path::new("/"));
    let within = parent.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let (host, inner) = match (within, name) {
        (_, ".mcp.json" | ".claude.json") => (Host::ClaudeCode, false),
        (_, "claude_desktop_config.json") => (Host::ClaudeDesktop, false),
        (".cursor", "mcp.json") => (Host::Cursor, true),
        (".vscode", "mcp.json") => (Host::VsCode, true),
        (".codex", "config.toml") => (Host::Codex, true),
        (".opencode", "opencode.json" | "opencode.jsonc") => (Host::OpenCode, true),
        (_, "opencode.json" | "opencode.jsonc") => (Host::OpenCode, false),
        (".gemini", "settings.json") => (Host::Gemini, true),
        _ => (Host::Any, false),
    };
    let folder = if inner { parent.parent().unwrap_or(parent) } else { parent }.to_owned();
    Place { host, scope: Scope::Given, path, folder }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn around(cwd: &str) -> Surroundings {
        Surroundings {
            home: Some("/no-such/me".into()),
            cwd: cwd.into(),
            vars: BTreeMap::from([("CODEX_HOME".to_owned(), "/no-such/codex".to_owned())]),
        }
    }

    /// Somebody else may write into /tmp, and a server is a program.
    #[test]
    fn folders_above_are_only_searched_where_they_are_ours() {
        let table: [(&str, &[&str]); 3] = [
            ("/no-such/tmp/x/y", &["/no-such/tmp/x/y"]),
            ("/no-such/me/x/y", &["/no-such/me/x/y", "/no-such/me/x"]),
            ("/no-such/me", &["/no-such/me"]),
        ];
        for (cwd, folders) in table {
            let folders: Vec<PathBuf> = folders.iter().map(PathBuf::from).collect();
            assert_eq!(around(cwd).project(), folders);
        }
    }

    // About Unix itself: its paths, which are not absolute elsewhere. `tests/windows.rs` has those of Windows.
    #[test]
    #[cfg(unix)]
    fn a_file_is_looked_for_once_and_where_its_host_was_told_to_keep_it() {
        let places = all(&around("/no-such/me"));
        let cursor = places.iter().filter(|place| place.host == Host::Cursor);
        assert_eq!(cursor.count(), 1, "the project's file and the user's are the same");
        assert!(places.iter().any(|place| place.path == Path::new("/no-such/codex/config.toml")));
    }

    #[test]
    fn variables_are_found_without_regard_to_case_where_the_system_has_none() {
        let vars = BTreeMap::from([
            ("Path".to_owned(), "1".to_owned()),
            ("token".to_owned(), "2".to_owned()),
            ("TOKEN".to_owned(), "3".to_owned()),
        ]);
        let table = [
            ("PATH", true, Some("1")),
            ("PATH", false, None),
            ("Path", false, Some("1")),
            ("token", true, Some("2")),
            ("NONE", true, None),
        ];
        for (name, case_blind, value) in table {
            let found = variable(&vars, name, case_blind).map(String::as_str);
            assert_eq!(found, value, "{name} {case_blind}");
        }
        assert_eq!(same_variable("Path", "PATH"), cfg!(windows));
    }

    #[test]
    fn paths_are_shown_as_people_write_them() {
        let here = around("/no-such/me/x");
        let table = [
            ("/no-such/me/x/.mcp.json", ".mcp.json"),
            ("/no-such/me/.claude.json", "~/.claude.json"),
            ("/no-such/me/.cursor/mcp.json", "~/.cursor/mcp.json"),
            ("/etc/x.json", "/etc/x.json"),
        ];
        // One kind of separator, and not both in one path.
        let own = |path: &str| path.replace('/', std::path::MAIN_SEPARATOR_STR);
        for (path, shown) in table {
            assert_eq!(here.shown(Path::new(path)), own(shown));
        }
        assert_eq!(around("/").shown(Path::new("/no-such/me/.mcp.json")), own("~/.mcp.json"));
    }
}
