//! What is hidden in a capture: the values that are hidden everywhere, and those that the user names.
//!
//! Knows the environment and the command line of the server. The masking itself is `taut::secrets`.

use std::ffi::OsString;

use taut::secrets::Masker;

use crate::{mask, secrets};

/// A masker for a server that gets these words, these variables by its entry, and our environment.
/// `named` are variables of our environment whose values are hidden too, whatever they are called.
pub(crate) fn masker(words: &[OsString], entry: &[(String, String)], named: &[String]) -> Masker {
    secrets::hide_ours();
    entry.iter().for_each(|(name, value)| secrets::hide(name, value));
    let words: Vec<String> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    secrets::hide_words(&words);
    for value in named.iter().filter_map(|name| std::env::var(name).ok()) {
        secrets::all().hide_always(&value);
    }
    Masker::new(secrets::all())
}

/// The command line as it may be kept.
pub(super) fn shown(words: &[String]) -> Vec<String> {
    mask::words(words.iter().map(String::as_str))
}
