//! What a server looks like in each host's file.
//!
//! Pure: a tree goes in, servers come out, their text as it is written. One reader for all shapes, since
//! no key means two things: `command` is text or a list, `env` is also called `environment`. Must not
//! know where the file was, nor expand anything.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::places::Scope;
use super::tree::{Kind, Node};
use crate::arguments::closest;

/// How a server is reached, with variables still in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum How {
    /// A program that speaks on stdin and stdout.
    Stdio(Stdio),
    /// Over the network.
    Remote { kind: String, url: String, headers: Vec<(String, String)> },
    /// The entry makes no sense.
    Wrong(String),
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stdio {
    /// The program and its arguments.
    pub(crate) words: Vec<String>,
    pub(crate) env: Vec<(String, String)>,
    pub(crate) cwd: Option<String>,
    /// A file with more of the environment (VS Code, Cursor).
    pub(crate) env_file: Option<String>,
    /// Names that are passed on from our own environment (Codex).
    pub(crate) forward: Vec<String>,
}

/// One server, as a file has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) at: usize,
    pub(crate) how: How,
    /// Why the host would not start it, if it would not.
    pub(crate) off: Option<String>,
    /// What is strange about it.
    pub(crate) notes: Vec<String>,
}

/// What one file holds.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Content {
    pub(crate) entries: Vec<Entry>,
    /// What VS Code asks a person for, and in which words.
    pub(crate) inputs: BTreeMap<String, String>,
    /// Whether there is a place for servers at all.
    pub(crate) known: bool,
}

/// Finds the servers in a file.
pub(crate) fn read(root: &Node, scope: Scope, folder: &str) -> Result<Content, (usize, String)> {
    if scope == Scope::Local {
        return local(root, folder);
    }
    let mut content = Content::default();
    let mcp = root.member("mcp");
    let tables = [
        root.member("mcpServers"),
        root.member("mcp_servers"),
        root.member("servers"),
        mcp.and_then(|mcp| mcp.member("servers").or_else(|| is_map_of_servers(mcp).then_some(mcp))),
    ];
    for table in tables.into_iter().flatten() {
        content.known = true;
        content.entries.extend(entries(table)?);
    }
    let inputs = root.member("inputs").or_else(|| mcp?.member("inputs"));
    content.inputs = asked(inputs);
    gemini(mcp, &mut content.entries);
    Ok(content)
}

/// `projects` in `~/.claude.json`: the servers of one person in one project.
fn local(root: &Node, folder: &str) -> Result<Content, (usize, String)> {
    let project = root.member("projects").and_then(|all| all.member(folder));
    let table = project.and_then(|project| project.member("mcpServers"));
    let entries = table.map(entries).transpose()?.unwrap_or_default();
    Ok(Content { entries, known: true, ..Content::default() })
}

/// opencode has the servers right under `mcp`; Gemini has settings there.
fn is_map_of_servers(mcp: &Node) -> bool {
    mcp.members().iter().any(|(_, _, entry)| matches!(entry.kind, Kind::Table(_)))
        || matches!(&mcp.kind, Kind::Table(members) if members.is_empty())
}

/// `mcp.allowed` and `mcp.excluded`: Gemini's switches, beside the servers.
fn gemini(mcp: Option<&Node>, entries: &mut [Entry]) {
    let names = |key: &str| match mcp.and_then(|mcp| mcp.member(key)).map(|node| &node.kind) {
        Some(Kind::List(items)) => {
            Some(items.iter().filter_map(Node::text).map(str::to_owned).collect::<HashSet<_>>())
        }
        _ => None,
    };
    let (allowed, excluded) = (names("allowed"), names("excluded"));
    for entry in entries {
        if excluded.as_ref().is_some_and(|names| names.contains(&entry.name)) {
            entry.off = Some("in mcp.excluded".to_owned());
        } else if allowed.as_ref().is_some_and(|names| !names.contains(&entry.name)) {
            entry.off = Some("not in mcp.allowed".to_owned());
        }
    }
}

fn asked(inputs: Option<&Node>) -> BTreeMap<String, String> {
    let Some(Node { kind: Kind::List(items), .. }) = inputs else { return BTreeMap::new() };
    let text = |item: &Node, key| item.member(key).and_then(Node::text).map(str::to_owned);
    let pairs = items.iter().filter_map(|item| {
        Some((text(item, "id")?, text(item, "description").unwrap_or_default()))
    });
    pairs.collect()
}

fn entries(table: &Node) -> Result<Vec<Entry>, (usize, String)> {
    let Kind::Table(members) = &table.kind else {
        return Err((
            table.at,
            format!("expected servers by name, found {}", table.name_of_kind()),
        ));
    };
    // Of two with one name the last counts. One that only has a switch belongs to a server that is
    // described elsewhere, such as in what opencode gets from an organisation.
    let mut last: HashMap<&str, (usize, usize)> = HashMap::new();
    for (at, (name, ..)) in members.iter().enumerate() {
        let known = last.entry(name.as_str()).or_default();
        *known = (at, known.1 + 1);
    }
    let counts = |at: usize, name: &str, node: &Node| {
        let only_switch = matches!(node.members(), [(key, ..)] if key == "enabled");
        !only_switch && last.get(name).is_some_and(|(last, _)| *last == at)
    };
    let all = members.iter().enumerate().filter(|(at, (name, _, node))| counts(*at, name, node));
    let one = |(name, at, node): &(String, usize, Node)| {
        let mut entry = entry(name, *at, node);
        if last.get(name.as_str()).is_some_and(|(_, times)| *times > 1) {
            entry.notes.push("it is there twice; the last counts".to_owned());
        }
        entry.notes.extend(twice(node));
        entry
    };
    Ok(all.map(|(_, member)| one(member)).collect())
}

/// The keys of an entry that it has twice: no reader of JSON tells, and one of them has no effect.
fn twice(node: &Node) -> Vec<String> {
    let members = node.members();
    let mut seen = HashSet::new();
    let all = members.iter().filter(|(key, ..)| !seen.insert(key.as_str()));
    all.map(|(key, ..)| format!("it has {key:?} twice; the last counts")).collect()
}

fn entry(name: &str, at: usize, node: &Node) -> Entry {
    let off = match (node.member("enabled"), node.member("disabled")) {
        (Some(on), _) if on.bool() == Some(false) => Some("enabled is false".to_owned()),
        (_, Some(off)) if off.bool() == Some(true) => Some("disabled is true".to_owned()),
        _ => None,
    };
    match how(node) {
        Ok(how) => Entry { name: name.to_owned(), at, how, off, notes: Vec::new() },
        Err((place, what)) => {
            // The mistake itself, not the entry that it is in.
            Entry {
                name: name.to_owned(),
                at: place,
                how: How::Wrong(what),
                off,
                notes: Vec::new(),
            }
        }
    }
}

type Mistake = (usize, String);

fn how(node: &Node) -> Result<How, Mistake> {
    if !matches!(node.kind, Kind::Table(_)) {
        return Err((node.at, format!("expected an object, found {}", node.name_of_kind())));
    }
    let kind = optional(node, "type")?;
    let url = ["url", "httpUrl", "serverUrl"].into_iter().find(|key| node.member(key).is_some());
    let local = matches!(kind.as_deref(), None | Some("stdio" | "local"));
    if local && node.member("command").is_some() {
        return stdio(node).map(How::Stdio);
    }
    if let Some(key) = url {
        let kind = kind.unwrap_or_else(|| if key == "url" { "remote" } else { "http" }.to_owned());
        let url = optional(node, key)?.unwrap_or_default();
        return Ok(How::Remote { kind, url, headers: headers(node)? });
    }
    match kind {
        Some(kind) if !local => Ok(How::Remote { kind, url: String::new(), headers: Vec::new() }),
        _ => {
            let keys = node.members().iter().map(|(key, ..)| key.as_str());
            let meant = closest("command", keys);
            let meant = meant.map(|key| format!("; is {key:?} meant to be it?"));
            Err((node.at, format!("it has no \"command\"{}", meant.unwrap_or_default())))
        }
    }
}

/// The headers that a request to a server at a URL has. Codex calls them `http_headers`.
fn headers(node: &Node) -> Result<Vec<(String, String)>, Mistake> {
    let table = ["headers", "http_headers"].into_iter().find_map(|key| node.member(key));
    let members = table.into_iter().flat_map(Node::members);
    members.map(|(name, _, value)| Ok((name.clone(), text(value, name)?))).collect()
}

fn stdio(node: &Node) -> Result<Stdio, Mistake> {
    let mut words = match node.member("command") {
        Some(Node { kind: Kind::List(items), at }) if items.is_empty() => {
            return Err((*at, "\"command\" is empty".to_owned()));
        }
        Some(list @ Node { kind: Kind::List(_), .. }) => texts(list, "command")?,
        Some(node) => vec![text(node, "command")?],
        None => Vec::new(),
    };
    if let Some(args) = node.member("args") {
        words.extend(texts(args, "args")?);
    }
    let env = node.member("env").or_else(|| node.member("environment"));
    Ok(Stdio {
        words,
        env: env.map(pairs).transpose()?.unwrap_or_default(),
        cwd: optional(node, "cwd")?,
        env_file: optional(node, "envFile")?,
        forward: node.member("env_vars").map(names).transpose()?.unwrap_or_default(),
    })
}

fn optional(node: &Node, key: &str) -> Result<Option<String>, Mistake> {
    match node.member(key) {
        None | Some(Node { kind: Kind::Null, .. }) => Ok(None),
        Some(value) => text(value, key).map(Some),
    }
}

fn text(node: &Node, key: &str) -> Result<String, Mistake> {
    let found = node.text().map(str::to_owned);
    found.ok_or_else(|| (node.at, format!("{key:?} must be text, not {}", node.name_of_kind())))
}

/// A list of words; a number among them is taken as it is written, as the hosts do.
fn texts(node: &Node, key: &str) -> Result<Vec<String>, Mistake> {
    let Kind::List(items) = &node.kind else {
        return Err((node.at, format!("{key:?} must be a list, not {}", node.name_of_kind())));
    };
    let one = |item: &Node| match &item.kind {
        Kind::Other(number) => Ok(number.clone()),
        _ => text(item, key),
    };
    items.iter().map(one).collect()
}

fn pairs(node: &Node) -> Result<Vec<(String, String)>, Mistake> {
    let Kind::Table(members) = &node.kind else {
        return Err((node.at, format!("\"env\" must be an object, not {}", node.name_of_kind())));
    };
    let mut all = Vec::new();
    for (name, _, value) in members {
        all.push(match &value.kind {
            // VS Code: a variable that is taken away. It is not there to begin with.
            Kind::Null => continue,
            Kind::Other(number) => (name.clone(), number.clone()),
            Kind::Bool(value) => (name.clone(), value.to_string()),
            _ => (name.clone(), text(value, name)?),
        });
    }
    Ok(all)
}

/// Names, each as text or as an object that has one.
fn names(node: &Node) -> Result<Vec<String>, Mistake> {
    let Kind::List(items) = &node.kind else {
        return Err((node.at, format!("\"env_vars\" must be a list, not {}", node.name_of_kind())));
    };
    items.iter().map(|item| text(item.member("name").unwrap_or(item), "env_vars")).collect()
}

#[cfg(test)]
mod tests {
    use super::super::tree;
    use super::*;

    fn names(text: &str) -> Vec<String> {
        let content = read(&tree::json(text).unwrap(), Scope::Project, "/p").unwrap();
        content.entries.into_iter().map(|entry| entry.name).collect()
    }

    #[test]
    fn of_two_with_one_name_the_last_counts() {
        let text =
            r#"{ "mcpServers": { "a": { "command": "x" }, "b": {}, "a": { "command": "y" } } }"#;
        assert_eq!(names(text), ["b", "a"]);
    }

    #[test]
    fn a_switch_alone_is_no_server_and_settings_are_none() {
        assert_eq!(names(r#"{ "mcp": { "a": { "enabled": true } } }"#), Vec::<String>::new());
        assert_eq!(
            names(r#"{ "mcp": { "allowed": ["a"], "serverCommand": "x" } }"#),
            Vec::<String>::new()
        );
        assert_eq!(names(r#"{ "theme": "dark" }"#), Vec::<String>::new());
    }
}
