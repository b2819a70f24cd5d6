//! The command line as it was typed, and the same with a change: for hints that can be pasted.
//!
//! Masks secrets and quotes words as a shell needs it. Must not know what the words mean.

use clap::CommandFactory as _;
use serde_json::Value;

use crate::args::Args;
use crate::mask;
use crate::own;
use crate::problem::Problem;
use crate::session::quoted;

/// The line that runs `instead` where `command` was typed, with these words more: before the two dashes, or at
/// the end.
pub(crate) fn again(command: &str, instead: &str, more: &[&str]) -> String {
    let words: Vec<String> =
        std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    line(&changed(&words, command, instead, more))
}

/// The line that was typed, with these options more, which are ours and have no secrets.
pub(crate) fn with_options(options: &[String]) -> String {
    let words: Vec<String> =
        std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    let end = words.iter().position(|word| word == "--").unwrap_or(words.len());
    let mut shown = mask::words(words.iter().map(String::as_str));
    shown.splice(end..end, options.iter().cloned());
    format!("{} {}", own::name(), quoted(shown))
}

/// The line that was typed, with another word in the place of this one.
pub(crate) fn with_word(word: &str, instead: &str) -> Option<String> {
    let mut words: Vec<String> =
        std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    let at = words.iter().rposition(|typed| typed == word)?;
    words[at] = instead.to_owned();
    Some(line(&words))
}

/// The line that was typed, with a command after two dashes in the place of a word.
pub(crate) fn with_command(word: &str, command: &[String]) -> Option<String> {
    let mut words: Vec<String> =
        std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    let at = words.iter().rposition(|typed| typed == word)?;
    words.remove(at);
    words.push("--".to_owned());
    words.extend_from_slice(command);
    Some(line(&words))
}

/// The line that tries the same server behind `taut bridge`.
pub(crate) fn bridged(command: &str) -> String {
    let words: Vec<String> =
        std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    let (ours, server) = apart(&words, command, "smoke");
    let taut = own::name();
    let bridge = line(&[vec!["bridge".to_owned()], server].concat());
    format!("{taut} {} -- {bridge}", quoted(mask::words(ours.iter().map(String::as_str))))
}

fn changed(typed: &[String], command: &str, instead: &str, more: &[&str]) -> Vec<String> {
    let (mut words, server) = apart(typed, command, instead);
    let dashed = server.first().is_some_and(|word| word == "--");
    let more = more.iter().map(|&word| word.to_owned());
    if dashed {
        words.extend(more);
        words.extend(server);
    } else {
        words.extend(server.into_iter().chain(more));
    }
    words
}

/// The words with another command and those of the options that it has too; apart, the words that name the server.
fn apart(typed: &[String], command: &str, instead: &str) -> (Vec<String>, Vec<String>) {
    let all = Args::command();
    let end = typed.iter().position(|word| word == "--").unwrap_or(typed.len());
    let (mut ours, mut server) = (Vec::new(), Vec::new());
    let mut found = false;
    let mut words = typed[..end].iter().skip(1);
    while let Some(word) = words.next() {
        if !word.starts_with('-') {
            match found || word != command {
                true => server.push(word.clone()),
                false => ours.push(instead.to_owned()),
            }
            found |= word == command;
            continue;
        }
        let is_this = |arg: &&clap::Arg| {
            let name = word.split('=').next().unwrap_or(word);
            let long = arg.get_long().is_some_and(|long| name.strip_prefix("--") == Some(long));
            let short = arg.get_short().is_some_and(|short| *name == format!("-{short}"));
            long || short
        };
        let option = |of: &str| all.find_subcommand(of)?.get_arguments().find(is_this);
        let known = option(command);
        let valued = known.is_some_and(|arg| arg.get_action().takes_values());
        let value = if valued && !word.contains('=') { words.next() } else { None };
        if known.is_none() || option(instead).is_some() {
            ours.push(word.clone());
            ours.extend(value.cloned());
        }
    }
    server.extend_from_slice(&typed[end..]);
    (ours, server)
}

/// Words `key=value` that were typed where arguments are one JSON object: the line that is meant. Nothing if there
/// are none.
pub(crate) fn with_json_args(typed: &[String]) -> Option<Vec<String>> {
    let end = typed.iter().position(|word| word == "--").unwrap_or(typed.len());
    let is_pair = |at: usize| {
        let before = typed[at - 1].as_str();
        let of_option = before.starts_with("--") && !before.contains('=');
        let key = typed[at].split_once('=').map_or("", |(key, _)| key);
        // The tool's name stands between `--call` and the pairs.
        (!of_option || before == "--json")
            && !key.is_empty()
            && !key.starts_with('-')
            && !key.contains(['/', ':'])
    };
    let pairs: Vec<usize> = (2..end).filter(|at| is_pair(*at)).collect();
    let first = *pairs.first()?;
    let arguments = pairs.iter().filter_map(|at| typed[*at].split_once('=')).map(|(key, text)| {
        let value = serde_json::from_str(text).unwrap_or_else(|_| Value::from(text));
        (key.to_owned(), value)
    });
    let arguments = Value::Object(arguments.collect()).to_string();
    let mut words = Vec::new();
    for (at, word) in typed.iter().enumerate().skip(1) {
        match pairs.contains(&at) {
            true if at == first => words.extend(["--args".to_owned(), arguments.clone()]),
            true => {}
            false => words.push(word.clone()),
        }
    }
    Some(words)
}

/// What to say where `key=value` was typed, and arguments are one JSON object.
pub(crate) fn json_args_wanted(command: &str) -> Problem {
    let typed: Vec<String> =
        std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    Problem::Usage {
        what: format!("{} {command} takes the arguments of --call as one JSON object", own::name()),
        next: with_json_args(&typed).map(|words| line(&words)),
    }
}

/// The words of a command of ours as a line that can be pasted, with secrets masked.
pub(crate) fn line(words: &[String]) -> String {
    format!("{} {}", own::name(), quoted(mask::words(words.iter().map(String::as_str))))
}

#[cfg(test)]
mod tests {
    use super::{changed, with_json_args};

    #[test]
    fn pairs_become_the_object_that_is_meant() {
        let line = |typed: &str| {
            let typed: Vec<String> = typed.split(' ').map(str::to_owned).collect();
            with_json_args(&typed).map(|words| words.join(" "))
        };
        assert_eq!(
            line("taut smoke --call forecast city=Bern days=3 --env A=b -- x y=z").unwrap(),
            r#"smoke --call forecast --args {"city":"Bern","days":3} --env A=b -- x y=z"#
        );
        assert_eq!(line("taut smoke --call forecast --env A=b -- x y=z"), None);
    }

    #[test]
    fn what_is_added_stands_before_the_servers_own_words() {
        let line = |typed: &str, more: &[&str]| {
            let typed: Vec<String> = typed.split(' ').map(str::to_owned).collect();
            changed(&typed, "smoke", "doctor", more).join(" ")
        };
        assert_eq!(
            line("/bin/taut smoke --env A=b -- smoke --x", &["--call", "t"]),
            "doctor --env A=b --call t -- smoke --x"
        );
        assert_eq!(line("taut smoke demo", &["--call", "t"]), "doctor demo --call t");
        // What the other command does not have is left out, with its value.
        assert_eq!(
            line("taut smoke --all --timeout 5s demo", &[]),
            "doctor --all --timeout 5s demo"
        );
        let typed = ["taut", "doctor", "--lint", "--call", "t", "-q", "--", "x", "--lint"];
        let typed = typed.map(str::to_owned);
        assert_eq!(changed(&typed, "doctor", "list", &[]).join(" "), "list -- x --lint");
    }
}
