//! What is hidden in a capture: which values are known to be secret, and which names sound like it.
//!
//! Knows the environment and the command line of the server. The masking itself is `taut_trace::Masker`.

use std::ffi::OsString;

use taut_trace::Masker;

use crate::mask;

/// What a shell keeps about folders has names that sound secret.
const FOLDERS: [&str; 2] = ["PWD", "OLDPWD"];

/// A masker for a server that gets these words, these variables by its entry, and our environment.
/// `named` are variables of our environment whose values are hidden too, whatever they are called.
pub(crate) fn masker(words: &[OsString], entry: &[(String, String)], named: &[String]) -> Masker {
    let mut masker = Masker::on();
    for (_, value) in entry {
        masker.hide(value);
    }
    for (name, value) in std::env::vars() {
        let secret = mask::is_secret_name(&name) && !FOLDERS.contains(&name.as_str());
        if secret || named.contains(&name) {
            masker.hide(&value);
        }
    }
    let words: Vec<String> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    for (word, shown) in words.iter().zip(shown(&words)) {
        // What was replaced, without what still stands around it.
        let (before, after) = shown.split_once(mask::HIDDEN).unwrap_or((&shown, ""));
        let inside = word.strip_prefix(before).and_then(|rest| rest.strip_suffix(after));
        if let Some(inside) = inside.filter(|_| *word != shown) {
            masker.hide(inside);
            masker.hide(word);
        }
    }
    masker
}

/// The command line as it may be kept.
pub(super) fn shown(words: &[String]) -> Vec<String> {
    mask::words(words.iter().map(String::as_str))
}
