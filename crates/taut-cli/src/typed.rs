//! The command line as it was typed, and the same with a change: for hints that can be pasted.
//!
//! Masks secrets and quotes words as a shell needs it. Must not know what the words mean.

use crate::mask;
use crate::session::quoted;

/// The line that runs `instead` where `command` was typed, with these words more: before the two dashes, or at
/// the end.
pub(crate) fn again(command: &str, instead: &str, more: &[&str]) -> String {
    let words: Vec<String> =
        std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    quoted(mask::words(changed(&words, command, instead, more).iter().map(String::as_str)))
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

#[cfg(test)]
mod tests {
    use super::changed;

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
