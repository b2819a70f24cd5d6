//! Secrets: which values are secret, and hiding them in any text, however they are spelled and wherever it is cut.
//!
//! The one policy of the library, of the command and of captures. `names` and `looks` say what is secret, `known`
//! keeps the values that are, `spellings` finds them however they are written (`automaton` finds many at once), `named`
//! finds what was not named as secret before, and `masker` hides it all. Knows texts; must not know messages,
//! files or who reads. Pure.
//!
//! ```
//! use taut::secrets::Secrets;
//!
//! let secrets = Secrets::new();
//! secrets.hide("API_KEY", "salt&pepper/77");
//! let told = r#"{"text":"the key is salt\u0026pepper\/77"}"#;
//! assert_eq!(secrets.masked(told), r#"{"text":"the key is ***"}"#);
//! ```

mod automaton;
mod known;
mod looks;
mod masker;
mod named;
mod names;
mod spellings;

pub use known::Secrets;
pub use looks::{is_secret, looks_secret, user_info};
pub use masker::{MASK, Masker};
pub use names::is_secret_name;

/// A text for a log: as it is, but for values of names that sound secret, and tokens.
pub(crate) fn masked(bytes: &[u8]) -> String {
    let mut out = Vec::with_capacity(bytes.len());
    Masker::new(&Secrets::new()).apply(bytes, &mut out, &mut Vec::new());
    String::from_utf8_lossy(&out).into_owned()
}
