//! Finds all servers in the hosts' files, in the order of precedence.
//!
//! A broken file is reported and does not stop the others. Of two servers with one name the first is used;
//! the other is shadowed.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use serde_json::{Value, json};

use super::expand::{Missing, Values, env_file};
use super::places::{Host, Place, Scope, Surroundings, all, given, same_variable};
use super::read::{Only, file, text_file};
use super::shape::{self, How, Stdio};
use super::tree::{self, Fault, Lines};

/// The largest file that is read. Claude Code keeps much else in its own, some MiB of it.
const LARGEST: u64 = 64 << 20;

/// One server, where it was found.
#[derive(Clone, Debug)]
pub(crate) struct Server {
    pub(crate) name: String,
    pub(crate) place: Place,
    pub(crate) line: usize,
    pub(crate) column: usize,
    pub(crate) how: How,
    /// Why its host would not start it.
    pub(crate) off: Option<String>,
    /// What is strange about it, though it can be used.
    pub(crate) notes: Vec<String>,
    /// The file whose server of the same name goes first.
    pub(crate) shadowed_by: Option<PathBuf>,
    inputs: Rc<BTreeMap<String, String>>,
}

/// A file that could not be used.
#[derive(Clone, Debug)]
pub(crate) struct Broken {
    pub(crate) path: PathBuf,
    pub(crate) why: Why,
}

#[derive(Clone, Debug)]
pub(crate) enum Why {
    Fault(Fault),
    Unreadable(String),
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fault(fault) => fault.fmt(f),
            Self::Unreadable(error) => f.write_str(error),
        }
    }
}

impl Broken {
    pub(crate) fn document(&self) -> Value {
        match &self.why {
            Why::Fault(Fault { line, column, what }) => {
                json!({ "file": self.path, "line": line, "column": column, "error": what })
            }
            Why::Unreadable(error) => json!({ "file": self.path, "error": error }),
        }
    }
}

/// What came of the search.
pub(crate) struct Found {
    pub(crate) around: Surroundings,
    pub(crate) servers: Vec<Server>,
    pub(crate) broken: Vec<Broken>,
    /// Where we looked, and whether there was a file.
    pub(crate) looked: Vec<(Place, bool)>,
    /// Of each name, where in `servers` the first is.
    first: HashMap<String, usize>,
}

/// Reads the given files, or else those of the hosts.
pub(crate) fn find(around: Surroundings, files: &[PathBuf]) -> Found {
    let places = match files {
        [] => all(&around),
        _ => files.iter().map(|path| given(path, &around)).collect(),
    };
    let mut found = Found {
        around,
        servers: Vec::new(),
        broken: Vec::new(),
        looked: Vec::new(),
        first: HashMap::new(),
    };
    for place in places {
        let there = match read(&place) {
            Ok(Some(servers)) => {
                servers.into_iter().for_each(|server| found.add(server));
                true
            }
            Ok(None) if files.is_empty() => false,
            Ok(None) => {
                let why = Why::Unreadable("there is no such file".to_owned());
                found.broken.push(Broken { path: place.path.clone(), why });
                false
            }
            Err(why) => {
                // Two kinds of servers may be in one file.
                if !found.broken.iter().any(|known| known.path == place.path) {
                    found.broken.push(Broken { path: place.path.clone(), why });
                }
                true
            }
        };
        found.looked.push((place, there));
    }
    found
}

impl Found {
    fn add(&mut self, mut server: Server) {
        match self.first.get(&server.name) {
            Some(first) => {
                server.shadowed_by = Some(self.servers[*first].place.path.clone());
            }
            None => drop(self.first.insert(server.name.clone(), self.servers.len())),
        }
        self.servers.push(server);
    }

    /// The server that counts of those with this name.
    pub(crate) fn named(&self, name: &str) -> Option<&Server> {
        self.servers.iter().find(|server| server.name == name)
    }

    /// Those that one of the same name does not hide.
    pub(crate) fn visible(&self) -> impl Iterator<Item = &Server> {
        self.servers.iter().filter(|server| server.shadowed_by.is_none())
    }

    pub(crate) fn shown(&self, path: &Path) -> String {
        self.around.shown(path)
    }
}

fn read(place: &Place) -> Result<Option<Vec<Server>>, Why> {
    let unreadable = |error: io::Error| Why::Unreadable(error.to_string());
    let text = match std::fs::metadata(&place.path) {
        // Something that is no file could keep us waiting for ever; who names a pipe means it.
        Ok(about) if !about.is_file() && place.scope != Scope::Given => return Ok(None),
        Ok(about) if about.len() > LARGEST => {
            return Err(Why::Unreadable(format!("it is larger than {} MiB", LARGEST >> 20)));
        }
        Ok(about) => {
            // Who names a pipe means it, and has as long as the command has.
            let kind = if about.is_file() { Only::Files } else { Only::Anything };
            file(&place.path, LARGEST, kind).map_err(unreadable)?
        }
        Err(error) if absent(&error) => return Ok(None),
        Err(error) => return Err(unreadable(error)),
    };
    let text = String::from_utf8(text).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let start = String::from_utf8_lossy(&error.as_bytes()[..valid]).into_owned();
        Why::Fault(tree::fault(&start, valid, "not UTF-8"))
    })?;
    servers(place, &text).map(Some).map_err(Why::Fault)
}

fn absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// The servers in the text of a file.
pub(crate) fn servers(place: &Place, text: &str) -> Result<Vec<Server>, Fault> {
    let toml = place.path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("toml"));
    let root = if toml { tree::toml(text) } else { tree::json(text) }?;
    let folder = place.folder.to_string_lossy();
    let content = shape::read(&root, place.scope, &folder)
        .map_err(|(at, what)| tree::fault(text, at, what))?;
    if !content.known && place.scope == Scope::Given {
        let what =
            "no servers here: expected \"mcpServers\", \"servers\", \"mcp\" or [mcp_servers]";
        return Err(tree::fault(text, root.at, what));
    }
    let inputs = Rc::new(content.inputs);
    let lines = Lines::new(text);
    let server = |entry: shape::Entry| {
        let (line, column) = lines.position(entry.at);
        Server {
            name: entry.name,
            place: place.clone(),
            line,
            column,
            how: entry.how,
            off: entry.off,
            notes: entry.notes,
            shadowed_by: None,
            inputs: inputs.clone(),
        }
    };
    Ok(content.entries.into_iter().map(server).collect())
}

/// VS Code knows `~/` in a command line, and puts a PATH behind its own.
fn as_in_vs_code(words: &mut [String], env: &mut [(String, String)], around: &Surroundings) {
    for word in words {
        if let (Some(rest), Some(home)) = (word.strip_prefix("~/"), &around.home) {
            *word = home.join(rest).display().to_string();
        }
    }
    let Some(ours) = around.var("PATH") else { return };
    for (_, value) in env.iter_mut().filter(|(name, _)| same_variable(name, "PATH")) {
        let both: Vec<PathBuf> =
            [ours.as_str(), value.as_str()].into_iter().flat_map(std::env::split_paths).collect();
        if let Some(both) = std::env::join_paths(both).ok().and_then(|both| both.into_string().ok())
        {
            *value = both;
        }
    }
}

/// A server at a URL, with all variables filled in: the address, and the headers to send.
pub(crate) type Remote = (String, Vec<(String, String)>);

/// A server ready to be started.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Start {
    pub(crate) words: Vec<String>,
    pub(crate) env: Vec<(String, String)>,
    pub(crate) cwd: Option<PathBuf>,
    pub(crate) inherit: bool,
}

impl Server {
    fn values<'a>(&'a self, around: &'a Surroundings) -> Values<'a> {
        let Place { host, folder, .. } = &self.place;
        Values { host: *host, folder, inputs: &self.inputs, around }
    }

    /// Fills in all variables of a server at a URL: its address and its headers.
    pub(crate) fn remote(
        &self,
        url: &str,
        headers: &[(String, String)],
        around: &Surroundings,
    ) -> Result<Remote, Vec<Missing>> {
        let values = self.values(around);
        let mut missing = Vec::new();
        let mut fill = |text: &str| {
            values.expand(text).unwrap_or_else(|what| {
                missing.push(what);
                String::new()
            })
        };
        let url = fill(url);
        let headers = headers.iter().map(|(name, value)| (name.clone(), fill(value))).collect();
        if missing.is_empty() { Ok((url, headers)) } else { Err(missing) }
    }

    /// Fills in all variables. What is in `set` needs no value from the file.
    pub(crate) fn start(
        &self,
        stdio: &Stdio,
        around: &Surroundings,
        set: &[(String, String)],
    ) -> Result<Start, Vec<Missing>> {
        let values = self.values(around);
        let (mut missing, mut told): (Vec<Missing>, HashSet<Missing>) = Default::default();
        let mut fill = |text: &String| match values.expand(text) {
            Ok(value) => value,
            Err(what) => {
                if told.insert(what.clone()) {
                    missing.push(what);
                }
                String::new()
            }
        };
        let mut words: Vec<String> = stdio.words.iter().map(&mut fill).collect();
        let set: HashSet<&String> = set.iter().map(|(given, _)| given).collect();
        let wanted = stdio.env.iter().filter(|(name, _)| !set.contains(name));
        let own: Vec<_> = wanted.map(|(name, value)| (name.clone(), fill(value))).collect();
        let cwd = stdio.cwd.as_ref().map(|cwd| values.path(&fill(cwd)));
        let file = stdio.env_file.as_ref().map(|path| values.path(&fill(path)));
        let mut env = Vec::new();
        if let Some(path) = file {
            match text_file(&path) {
                Ok(text) => env.extend(env_file(&text)),
                Err(error) => missing.push(Missing::File { path, why: error.to_string() }),
            }
        }
        let forwarded = stdio
            .forward
            .iter()
            .filter_map(|name| around.var(name).map(|value| (name.clone(), value.clone())));
        env.extend(forwarded);
        if self.place.host == Host::ClaudeCode {
            let folder = self.place.folder.display().to_string();
            env.push(("CLAUDE_PROJECT_DIR".to_owned(), folder));
        }
        env.extend(own);
        if self.place.host == Host::VsCode {
            as_in_vs_code(&mut words, &mut env, around);
        }
        // A project's file means the project's paths, wherever in it one is.
        let home = (self.place.scope != Scope::User).then(|| self.place.folder.clone());
        let inherit = self.place.host.inherits();
        if missing.is_empty() {
            Ok(Start { words, env, cwd: cwd.or(home), inherit })
        } else {
            Err(missing)
        }
    }

    /// What has to be there before it can be started, and is not.
    pub(crate) fn missing(&self, around: &Surroundings) -> Vec<Missing> {
        match &self.how {
            How::Stdio(stdio) => self.start(stdio, around, &[]).err().unwrap_or_default(),
            _ => Vec::new(),
        }
    }
}
