//! The command line as it was typed, and the same with a change: for hints that can be pasted.
//!
//! Masks secrets and quotes words as a shell needs it. Must not know what the words mean.

use serde_json::Value;

use crate::mask;
use crate::problem::Problem;
use crate::session::quoted;

/// The line that runs `instead` where `command` was typed, with these words more: before the two dashes, or at
/// the end.
pub(crate) fn again(command: &str, instead: &str, more: &[&str]) -> String {
    let words: Vec<String> =
        std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    line(&changed(&words, command, instead, more))
}

fn changed(typed: &[String], command: &str, instead: &str, more: &[&str]) -> Vec<String> {
    let mut words = vec!["taut".to_owned()];
    words.extend(typed.iter().skip(1).cloned());
    if let Some(word) = words.iter_mut().skip(1).find(|word| *word == command) {
        instead.clone_into(word);
    }
    let end = words.iter().position(|word| word == "--").unwrap_or(words.len());
    words.splice(end..end, more.iter().map(|&word| word.to_owned()));
    words
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
    let mut words = vec!["taut".to_owned()];
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
        what: format!("{command} takes the arguments of --call as one JSON object"),
        next: with_json_args(&typed).map(|words| line(&words)),
    }
}

/// Words as a line that can be pasted, with secrets masked.
pub(crate) fn line(words: &[String]) -> String {
    quoted(mask::words(words.iter().map(String::as_str)))
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
            r#"taut smoke --call forecast --args {"city":"Bern","days":3} --env A=b -- x y=z"#
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
            "taut doctor --env A=b --call t -- smoke --x"
        );
        assert_eq!(line("taut smoke demo", &["--call", "t"]), "taut doctor demo --call t");
    }
}
