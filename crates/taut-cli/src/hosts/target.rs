//! From what was typed to the server that is meant: a command after `--`, or a name.
//!
//! Knows the words for every way in which a name leads nowhere. Starts nothing.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::PathBuf;

use super::expand::Missing;
use super::find::{Broken, Found, Server, Start, find};
use super::places::Surroundings;
use super::shape::{How, Stdio};
use crate::args::Options;
use crate::arguments::closest;
use crate::mask;
use crate::nats;
use crate::output::{DIM, Output, YELLOW};
use crate::own;
use crate::problem::Problem;
use crate::programs;
use crate::reach::{Address, Reach, host_and_port_of};
use crate::remote;
use crate::secrets;
use crate::session;
use crate::typed;

/// A server that can be reached.
pub(crate) struct Target {
    pub(crate) reach: Reach,
    /// Its command or address for people, with secrets masked.
    pub(crate) shown: String,
    /// The options, with the server's own variables and directory.
    pub(crate) options: Options,
}

/// Finds the server that is meant: `name` is one that stands where it may, `typed` is what followed
/// `--`, and the options have `--server` and `--config`. Tells of files that had to be left out.
///
/// # Errors
///
/// If there is no such server, or it cannot be started from here; in words that say what to do.
pub(crate) fn resolve(
    output: &Output,
    options: &Options,
    name: Option<&str>,
    typed: &[OsString],
) -> Result<Target, Problem> {
    let name = match (name, options.named.as_deref()) {
        (Some(one), Some(other)) if one != other => {
            return Err(Problem::usage(format!("two servers are named: {one} and {other}")));
        }
        (name, named) => name.or(named),
    };
    match (name, typed) {
        (None, [_, ..]) if options.config.is_empty() => {
            let words: Vec<String> =
                typed.iter().map(|word| word.to_string_lossy().into_owned()).collect();
            secrets::hide_words(&words);
            let reach = Reach::Start(session::command(typed, options));
            Ok(Target { reach, shown: session::shown(typed), options: options.clone() })
        }
        (None, [_, ..]) => {
            Err(Problem::usage("--config is for servers by name, not for a command"))
        }
        (Some(name), [_, ..]) => Err(Problem::Usage {
            what: format!(
                "a server is named, {name:?}, and a command is given: only one can be meant"
            ),
            next: Some(format!("leave out {name}, or the -- and what follows it")),
        }),
        (Some(word), []) if word.starts_with("tcp:") || word.starts_with("unix:") => {
            socket(word, options)
        }
        (Some(word), []) if nats::service(word).is_some() => fleet(word, options),
        (Some(url), []) if remote::is_url(url) => {
            let reach = remote::reach(url, &[], options)?;
            Ok(Target { reach, shown: mask::url(url), options: options.clone() })
        }
        (Some(name), []) => {
            let found = find(Surroundings::here(), &options.config);
            let server = found.named(name);
            // Who is served need not hear of it; where there is no server at all, the error says it.
            if output.verbose || (server.is_none() && !found.servers.is_empty()) {
                tell_broken(output, &found);
            }
            let server = server.ok_or_else(|| unknown(&found, name))?;
            tell_shadowed(output, &found, server);
            target_of(&found, server, options)
        }
        (None, []) => Err(none_named(&find(Surroundings::here(), &options.config))),
    }
}

/// The service that workers on a broker serve.
#[cfg(feature = "fleet")]
fn fleet(word: &str, options: &Options) -> Result<Target, Problem> {
    let name = nats::name(nats::service(word).unwrap_or_default())?;
    let reach = Reach::Nats(nats::Service::new(name, options.broker.clone()));
    Ok(Target { reach, shown: word.to_owned(), options: options.clone() })
}

#[cfg(not(feature = "fleet"))]
fn fleet(word: &str, _options: &Options) -> Result<Target, Problem> {
    Err(nats::left_out(word))
}

/// The server that listens on this address.
fn socket(word: &str, options: &Options) -> Result<Target, Problem> {
    let address = Address::read(word).unwrap_or_else(|| Err(Problem::usage(word)))?;
    let (shown, options) = (word.to_owned(), options.clone());
    Ok(Target { reach: Reach::Socket(address), shown, options })
}

/// How to start the server of this name: for what starts it without the library.
///
/// # Errors
///
/// As with [`resolve`].
pub(crate) fn start_of(
    output: &Output,
    name: &str,
    config: &[PathBuf],
    env: &[(String, String)],
) -> Result<Start, Problem> {
    let found = find(Surroundings::here(), config);
    let server = found.named(name).ok_or_else(|| unknown(&found, name))?;
    tell_shadowed(output, &found, server);
    let stdio = stdio_of(&found, server)?;
    let from = format!("{} in {}", server.name, found.shown(&server.place.path));
    let start = server.start(stdio, &found.around, env);
    let start = start.map_err(|missing| unfilled(&from, &missing, &stdio.env))?;
    hide(&stdio.words, &stdio.env, &found.around);
    secrets::hide_words(&start.words);
    let within = within(&found, server)?;
    Ok(Start { env: start.env.into_iter().chain([within]).collect(), ..start })
}

/// The entries within which a server was started, one a line.
pub(crate) const WITHIN: &str = "TAUT_WITHIN";

/// An entry that starts taut on its own name, perhaps by a shell or a script, would start itself without end. This
/// variable lets the next taut see that.
fn within(found: &Found, server: &Server) -> Result<(String, String), Problem> {
    let entry = format!("{} in {}", server.name, server.place.path.display());
    let outer = found.around.vars.iter().find(|(name, _)| name.as_str() == WITHIN);
    let outer = outer.map_or("", |(_, value)| value.as_str());
    if outer.lines().any(|line| line == entry) {
        let from = format!("{} in {}", server.name, found.shown(&server.place.path));
        return Err(Problem::Usage {
            what: format!(
                "{from} starts taut on {} again: it would start itself without end",
                server.name
            ),
            next: Some(format!(
                "in that entry write the server's own command after two dashes instead of its name: {} bridge -- …",
                own::name()
            )),
        });
    }
    Ok((WITHIN.to_owned(), format!("{outer}\n{entry}")))
}

/// Whether a word means a server that is not started here: an address, a URL, or the name of a server at a URL.
///
/// # Errors
///
/// If it is no good address.
pub(crate) fn listens(word: &str, config: &[PathBuf]) -> Result<bool, Problem> {
    if Address::read(word).transpose()?.is_some() || remote::is_url(word) {
        return Ok(true);
    }
    let found = find(Surroundings::here(), config);
    Ok(found.named(word).is_some_and(|server| matches!(server.how, How::Remote { .. })))
}

/// Whether a word is the name of a server.
pub(crate) fn is_known(name: &str, options: &Options) -> bool {
    find(Surroundings::here(), &options.config).named(name).is_some()
}

/// The way to start a server that was found.
pub(crate) fn target_of(
    found: &Found,
    server: &Server,
    options: &Options,
) -> Result<Target, Problem> {
    let from = || format!("{} in {}", server.name, found.shown(&server.place.path));
    if let How::Remote { url, headers, .. } = &server.how {
        let (url, headers) = server.remote(url, headers, &found.around).map_err(|missing| {
            let words: Vec<String> = missing.iter().map(ToString::to_string).collect();
            let given = headers.first().map(|(name, _)| format!("--header \"{name}: …\""));
            Problem::Usage {
                what: format!("cannot reach {}: {}", from(), words.join("; ")),
                next: given,
            }
        })?;
        let reach = remote::reach(&url, &headers, options)?;
        return Ok(Target { reach, shown: mask::url(&url), options: options.clone() });
    }
    let stdio = stdio_of(found, server)?;
    let start = server
        .start(stdio, &found.around, &options.env)
        .map_err(|missing| unfilled(&from(), &missing, &stdio.env))?;
    hide(&stdio.words, &stdio.env, &found.around);
    secrets::hide_words(&start.words);
    let within = within(found, server)?;
    let mut options = options.clone();
    // What is typed goes before what is written.
    options.env = start.env.into_iter().chain([within]).chain(options.env).collect();
    options.cwd = options.cwd.or(start.cwd);
    options.inherit_env |= start.inherit;
    let words: Vec<OsString> = start.words.into_iter().map(OsString::from).collect();
    Ok(Target {
        reach: Reach::Start(session::command(&words, &options)),
        shown: session::quoted(mask::words(stdio.words.iter().map(String::as_str))),
        options,
    })
}

/// What a server is started with, if it is one that can be.
fn stdio_of<'a>(found: &Found, server: &'a Server) -> Result<&'a Stdio, Problem> {
    let from = || format!("{} in {}", server.name, found.shown(&server.place.path));
    match &server.how {
        How::Stdio(stdio) => Ok(stdio),
        How::Remote { kind, url, .. } => {
            let also = found
                .servers
                .iter()
                .find(|other| other.name == server.name && matches!(other.how, How::Stdio(_)));
            Err(Problem::Usage {
                what: format!("{} is not a stdio server: {kind} {}", from(), mask::url(url)),
                next: Some(match also {
                    Some(other) => format!("--config {}", found.shown(&other.place.path)),
                    None => {
                        own::named("`taut servers` shows which servers are started with a command")
                    }
                }),
            })
        }
        How::Wrong(what) => {
            let (file, line, column) =
                (found.shown(&server.place.path), server.line, server.column);
            Err(Problem::usage(format!("{file}:{line}:{column}: {}: {what}", server.name)))
        }
    }
}

/// Values that are filled in are secrets by themselves, whatever stands around them.
fn hide(words: &[String], env: &[(String, String)], around: &Surroundings) {
    let texts: Vec<&String> = words.iter().chain(env.iter().map(|(_, value)| value)).collect();
    // Windows finds a variable by its name in either case, so it may be mentioned in either.
    let folded =
        |text: &str| if cfg!(windows) { text.to_ascii_uppercase() } else { text.to_owned() };
    let texts: Vec<String> = texts.into_iter().map(|text| folded(text)).collect();
    let mentions = |name: &str| {
        let forms = [format!("${{{name}"), format!("env:{name}"), format!("${name}")];
        let forms = forms.map(|form| folded(&form));
        forms.iter().any(|form| texts.iter().any(|text| text.contains(form.as_str())))
    };
    let used = around.vars.iter().filter(|(name, _)| mentions(name));
    used.for_each(|(name, value)| secrets::hide(name, value));
}

fn unfilled(from: &str, missing: &[Missing], env: &[(String, String)]) -> Problem {
    let words: Vec<String> = missing.iter().map(ToString::to_string).collect();
    let mut next: Vec<String> = Vec::new();
    for what in missing {
        let (Missing::Variable(word) | Missing::Input { id: word, .. }) = what else { continue };
        // A variable of the server that holds nothing else can be given instead.
        match env.iter().find(|(_, value)| value.contains(word.as_str())) {
            Some((name, _)) => next.push(format!("--env {name}=…")),
            None => next.push(format!("{word}=… {} …", own::name())),
        }
    }
    Problem::Usage {
        what: format!("cannot start {from}: {}", words.join("; ")),
        next: (!next.is_empty()).then(|| next.join(" ")),
    }
}

/// That there is no such server, with what was perhaps meant.
pub(crate) fn unknown(found: &Found, name: &str) -> Problem {
    if found.visible().next().is_none() && !found.broken.is_empty() {
        // What is wrong comes first, what follows from it after that.
        return Problem::Usage {
            what: format!("{}\nno other file has a server, so there is no {name:?}", known(found)),
            next: Some(format!(
                "correct the file, or name another one with --config FILE; if {name} is a program: -- {name}"
            )),
        };
    }
    let mut what = format!("there is no server {name:?}");
    let meant = closest(name, found.visible().map(|server| server.name.as_str()));
    if let Some(meant) = meant {
        let _ = write!(what, "; did you mean {meant}?");
    }
    let _ = write!(what, "\n{}", known(found));
    let (host, path) = name.find('/').map_or((name, "/mcp"), |at| name.split_at(at));
    let program = || {
        let command = match programs::is_runner(name) {
            true => vec![name.to_owned(), "…".to_owned()],
            false => programs::command(name, &[]),
        };
        typed::with_command(name, &command).filter(|_| programs::can_start(name))
    };
    let program = meant.and_then(|meant| typed::with_word(name, meant)).or_else(program);
    let next = match (host_and_port_of(host), program) {
        (Some(_), _) => format!("http://{host}{path}, or tcp:{host}"),
        (None, Some(line)) => line,
        (None, None) => {
            format!("`{taut} servers`; if {name} is a program: -- {name}", taut = own::name())
        }
    };
    Problem::Usage { what, next: Some(next) }
}

/// That there is no server at all.
pub(crate) fn none_found(found: &Found) -> Problem {
    let next = match found.broken.is_empty() {
        true => "--config FILE reads any file",
        false => "correct the file, or read another one with --config FILE",
    };
    Problem::Usage { what: known(found), next: Some(next.to_owned()) }
}

/// That no server is named, with what can be.
pub(crate) fn none_named(found: &Found) -> Problem {
    Problem::Usage {
        what: format!("which server?\n{}", known(found)),
        next: Some(own::named(
            "its command after two dashes: -- npx some-server; or its name, as `taut servers` shows it; or \
             its URL",
        )),
    }
}

/// Which names there are.
fn known(found: &Found) -> String {
    let names: Vec<&str> = found.visible().map(|server| server.name.as_str()).collect();
    let files = || {
        let mut files: Vec<String> = Vec::new();
        for (place, _) in found.looked.iter().filter(|(_, is)| *is) {
            let file = found.shown(&place.path);
            if !files.contains(&file) {
                files.push(file);
            }
        }
        files.join(", ")
    };
    if names.is_empty() && !found.broken.is_empty() {
        let why = |broken: &Broken| format!("{}: {}", found.shown(&broken.path), broken.why);
        return found.broken.iter().map(why).collect::<Vec<_>>().join("\n");
    }
    if names.is_empty() {
        return own::named(
            "no host's file here has a server; `taut servers -v` shows where they may be",
        );
    }
    format!("known are {}; from {}", names.join(", "), files())
}

/// Says which files had to be left out.
pub(crate) fn tell_broken(output: &Output, found: &Found) {
    for broken in &found.broken {
        let label = output.err.paint(YELLOW, "left out:");
        let file = found.shown(&broken.path);
        output.note(&format!("{label} {}", output.err.line(&format!("{file}: {}", broken.why))));
    }
}

/// Says that others have the same name, that it is given twice, and that a host would not start it.
fn tell_shadowed(output: &Output, found: &Found, server: &Server) {
    let tell = |words: String| output.note(&output.err.paint(DIM, output.err.line(&words)));
    let hidden = found.servers.iter().filter(|other| other.name == server.name).skip(1);
    let hidden: Vec<String> = hidden.map(|other| found.shown(&other.place.path)).collect();
    let file = found.shown(&server.place.path);
    if !hidden.is_empty() {
        let name = &server.name;
        tell(format!("{name} is the one in {file}; it shadows that in {}", hidden.join(", ")));
    }
    for note in &server.notes {
        tell(format!("{} in {file}: {note}", server.name));
    }
    if let Some(off) = &server.off {
        tell(format!("{} is switched off in {file}: {off}; started all the same", server.name));
    }
}
