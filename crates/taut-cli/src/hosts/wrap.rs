//! Puts `taut trace` before a server in the text of a host's file, and takes it out again.
//!
//! Pure: text in, text out. Only a few bytes are put in or taken out, and nothing else is touched, so
//! comments, blanks and line ends stay. Whatever was done is read again before it is given out: the server
//! must be started as meant, every other server as before, and taking out must give the very text that was
//! there. Otherwise it is refused.

use super::find::{Server, servers};
use super::places::{Place, Scope};
use super::shape::{How, Stdio};
use super::tree::{self, Kind, Node};

/// The word after which the server's own command line begins.
const END: &str = "--";

/// Says that the list of arguments is ours as a whole: the entry had none.
const NO_ARGS: &str = "--no-args";

/// The text with the words that start us, `trace` and these options before the server's command.
///
/// # Errors
///
/// If it cannot be done without a doubt, in words.
pub(crate) fn wrap(
    place: &Place,
    text: &str,
    name: &str,
    taut: &[String],
    options: &[String],
) -> Result<String, String> {
    let before = stdio_of(place, text, name)?;
    if traced(&before).is_some() {
        return Err(format!("{name} is traced already"));
    }
    let new = put_in(place, text, name, taut, options)?;
    let mut expected: Vec<String> = taut.to_vec();
    expected.push("trace".to_owned());
    expected.extend(options.iter().cloned());
    if new.contains(NO_ARGS) && !text.contains(NO_ARGS) {
        expected.push(NO_ARGS.to_owned());
    }
    expected.push(END.to_owned());
    expected.extend(before.words.iter().cloned());
    check(place, text, &new, name, &Stdio { words: expected, ..before })?;
    // By the very way that it is taken out, which has to know it again.
    match unwrap(place, &new, name) {
        Ok(back) if back == text => Ok(new),
        _ => Err("what was put in could not be taken out again".to_owned()),
    }
}

/// The text without what [`wrap`] put in.
///
/// # Errors
///
/// If the server is not traced, or its entry was changed so that it cannot be done without a doubt.
pub(crate) fn unwrap(place: &Place, text: &str, name: &str) -> Result<String, String> {
    let before = stdio_of(place, text, name)?;
    let Some(start) = traced(&before) else { return Err(format!("{name} is not traced")) };
    let new = take_out(place, text, name)?;
    let words = before.words[start..].to_vec();
    check(place, text, &new, name, &Stdio { words, ..before })?;
    Ok(new)
}

/// Whether any server in the text is traced.
pub(crate) fn any_traced(place: &Place, text: &str) -> bool {
    let all = servers(place, text).unwrap_or_default();
    all.iter().any(|server| matches!(&server.how, How::Stdio(stdio) if traced(stdio).is_some()))
}

/// How many words may start us: `npx -y taut-cli`.
const MOST_WORDS: usize = 3;

/// Options of `taut trace` without a value, and with one.
const PLAIN: [&str; 4] = ["--quiet", "-q", "--unmasked", NO_ARGS];
const VALUED: [&str; 6] = ["--as", "--record", "--hide", "--env", "--cwd", "--config"];

/// Where the server's own words begin, if it is traced. The program may be called anything, as the file of a release or
/// of a package is: the entry is known by what follows.
fn traced(stdio: &Stdio) -> Option<usize> {
    // `npx -y taut-cli` and `uvx taut-cli` are words before it, too.
    let before = stdio.words.iter().take(MOST_WORDS + 1).position(|word| word == "trace")?;
    let program = stdio.words[..before].last()?;
    let rest = &stdio.words[before + 1..];
    let end = rest.iter().position(|word| word == END)?;
    let (mut words, mut ours) = (rest[..end].iter().map(String::as_str), false);
    while let Some(word) = words.next() {
        let name = word.split('=').next().unwrap_or(word);
        let valued = VALUED.contains(&name);
        if valued && name == word {
            words.next()?;
        }
        if !valued && !PLAIN.contains(&word) {
            return None;
        }
        // No other program has one of these after the word `trace`.
        ours |= ["--as", "--record", NO_ARGS].contains(&name);
    }
    let program = program.rsplit(['/', '\\']).next().unwrap_or(program);
    (ours || program.contains("taut")).then_some(before + end + 2)
}

fn stdio_of(place: &Place, text: &str, name: &str) -> Result<Stdio, String> {
    let all = servers(place, text).map_err(|fault| fault.to_string())?;
    match all.into_iter().find(|server| server.name == name).map(|server| server.how) {
        Some(How::Stdio(stdio)) => Ok(stdio),
        Some(How::Remote { kind, .. }) => Err(format!("{name} is not a stdio server: {kind}")),
        Some(How::Wrong(what)) => Err(format!("{name}: {what}")),
        None => Err(format!("there is no server {name} any more")),
    }
}

/// Only the one server may be started in another way than before.
fn check(place: &Place, old: &str, new: &str, name: &str, wanted: &Stdio) -> Result<(), String> {
    let odd = || "its entry is written in a way that cannot be changed safely".to_owned();
    let read = |text: &str| servers(place, text).map_err(|_| odd());
    let (old, new) = (read(old)?, read(new)?);
    let same = |a: &Server, b: &Server| {
        let how = if a.name == name { &How::Stdio(wanted.clone()) } else { &a.how };
        (a.name.as_str(), how, &a.off) == (b.name.as_str(), &b.how, &b.off)
    };
    let all = old.len() == new.len() && old.iter().zip(&new).all(|(a, b)| same(a, b));
    all.then_some(()).ok_or_else(odd)
}

fn put_in(
    place: &Place,
    text: &str,
    name: &str,
    taut: &[String],
    options: &[String],
) -> Result<String, String> {
    let [program_of_ours, more @ ..] = taut else { return Err("we have no name".to_owned()) };
    let entry = entry(place, text, name)?;
    let command = entry.member("command").ok_or("it has no command")?;
    let mut ours: Vec<String> = more.to_vec();
    ours.push("trace".to_owned());
    ours.extend(options.iter().cloned());
    let list =
        |words: &[String]| words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(", ");
    if let Kind::List(_) = command.kind {
        // The list has the program and its arguments.
        ours.insert(0, program_of_ours.clone());
        ours.push(END.to_owned());
        let start = opening(text, command.at)?;
        return Ok(format!("{}{},{}", &text[..start], list(&ours), &text[start..]));
    }
    let end = token(text, command.at)?;
    let program = &text[command.at..end];
    match entry.member("args") {
        Some(Node { kind: Kind::List(items), at }) => {
            ours.push(END.to_owned());
            let start = opening(text, *at)?;
            let comma = if items.is_empty() { "" } else { "," };
            let added = format!("{}, {program}{comma}", list(&ours));
            Ok(replaced(text, (command.at, end), &quoted(program_of_ours), (start, start), &added))
        }
        Some(_) => Err("its arguments are no list".to_owned()),
        None => {
            ours.extend([NO_ARGS, END].map(str::to_owned));
            let added = format!("{}[{}, {program}]", glue(place, text, command.at), list(&ours));
            Ok(replaced(text, (command.at, end), &quoted(program_of_ours), (end, end), &added))
        }
    }
}

fn take_out(place: &Place, text: &str, name: &str) -> Result<String, String> {
    let entry = entry(place, text, name)?;
    let command = entry.member("command").ok_or("it has no command")?;
    if let Kind::List(items) = &command.kind {
        let at = after_end(items)?;
        let (start, last) = (opening(text, command.at)?, token(text, items[at - 1].at)?);
        let rest = text[last..].strip_prefix(',').ok_or("nothing follows the --")?;
        return Ok(format!("{}{rest}", &text[..start]));
    }
    let end = token(text, command.at)?;
    let Some(Node { kind: Kind::List(items), at: list }) = entry.member("args") else {
        return Err("its arguments are gone".to_owned());
    };
    let place = after_end(items)?;
    let program = items.get(place).ok_or("nothing follows the --")?.at;
    let last = token(text, program)?;
    let program = text[program..last].to_owned();
    let own_list = items[..place].iter().any(|item| item.text() == Some(NO_ARGS));
    let removed = if own_list {
        let closed = text[last..].strip_prefix(']').ok_or("its arguments were changed")?;
        (end, text.len() - closed.len())
    } else {
        let comma = usize::from(items.len() > place + 1);
        if comma == 1 && !text[last..].starts_with(',') {
            return Err("its arguments were changed".to_owned());
        }
        (opening(text, *list)?, last + comma)
    };
    if removed.0 < end && removed.1 > command.at {
        return Err("its arguments were changed".to_owned());
    }
    Ok(replaced(text, (command.at, end), &program, removed, ""))
}

/// The place after `--` among our words.
fn after_end(items: &[Node]) -> Result<usize, String> {
    let end = items.iter().position(|item| item.text() == Some(END));
    end.map(|at| at + 1).ok_or_else(|| "its arguments were changed".to_owned())
}

/// Two places of a text exchanged, whichever comes first.
fn replaced(
    text: &str,
    one: (usize, usize),
    with: &str,
    other: (usize, usize),
    by: &str,
) -> String {
    let mut edits = [(one, with), (other, by)];
    edits.sort_by_key(|(range, _)| *range);
    let [(first, a), (second, b)] = edits;
    format!("{}{a}{}{b}{}", &text[..first.0], &text[first.1..second.0], &text[second.1..])
}

/// What stands between a command and a list of arguments that is added after it.
fn glue(place: &Place, text: &str, command: usize) -> String {
    if !is_toml(place) {
        return ", \"args\": ".to_owned();
    }
    let line = text[..command].rfind('\n').map_or(0, |newline| newline + 1);
    let key = text[line..command].trim_start();
    // In a table each key has a line of its own; in an inline table keys stand side by side.
    if key.starts_with("command") {
        let end = if text.contains("\r\n") { "\r\n" } else { "\n" };
        let indent = &text[line..command - key.len()];
        format!("{end}{indent}args = ")
    } else {
        ", args = ".to_owned()
    }
}

fn is_toml(place: &Place) -> bool {
    place.path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("toml"))
}

/// A word as JSON and TOML both write it.
fn quoted(word: &str) -> String {
    serde_json::Value::from(word).to_string()
}

/// The place after the bracket that opens a list.
fn opening(text: &str, at: usize) -> Result<usize, String> {
    match text.as_bytes().get(at) {
        Some(b'[') => Ok(at + 1),
        _ => Err("its list is not where it should be".to_owned()),
    }
}

/// The place after a text with its quotes, of JSON or TOML.
fn token(text: &str, at: usize) -> Result<usize, String> {
    let rest = &text[at..];
    let long = ["\"\"\"", "'''"].into_iter().find(|quote| rest.starts_with(quote));
    let quote = long.or_else(|| ["\"", "'"].into_iter().find(|quote| rest.starts_with(quote)));
    let quote = quote.ok_or("its command is no text in quotes")?;
    let mut from = quote.len();
    while let Some(c) = rest[from..].chars().next() {
        if rest[from..].starts_with(quote) {
            // Quotes right before the end belong to the text.
            let more = rest[from + quote.len()..]
                .bytes()
                .take_while(|b| quote.len() == 3 && *b == quote.as_bytes()[0]);
            return Ok(at + from + quote.len() + more.take(2).count());
        }
        let escape = c == '\\' && quote.starts_with('"');
        from += c.len_utf8();
        if escape {
            from += rest[from..].chars().next().map_or(0, char::len_utf8);
        }
    }
    Err("its command does not end".to_owned())
}

/// The entry of a server in the tree of a file.
fn entry(place: &Place, text: &str, name: &str) -> Result<Node, String> {
    let root = if is_toml(place) { tree::toml(text) } else { tree::json(text) };
    let root = root.map_err(|fault| fault.to_string())?;
    let mcp = root.member("mcp");
    let folder = place.folder.to_string_lossy();
    let tables = if place.scope == Scope::Local {
        let project = root.member("projects").and_then(|all| all.member(&folder));
        vec![project.and_then(|project| project.member("mcpServers"))]
    } else {
        let inner = mcp.and_then(|mcp| mcp.member("servers").or(Some(mcp)));
        vec![root.member("mcpServers"), root.member("mcp_servers"), root.member("servers"), inner]
    };
    let found = tables.into_iter().flatten().find_map(|table| table.member(name));
    found.cloned().ok_or_else(|| format!("there is no server {name} any more"))
}

#[cfg(test)]
#[path = "wrap_tests.rs"]
mod tests;
