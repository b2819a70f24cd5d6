//! `taut.yaml`: settings that are not typed each time.
//!
//! Knows where the file is, its keys and their values. Every error names file, line and column. The
//! command line overrides it. Must not know what the options do.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::ValueHint;
use clap::builder::{OsStringValueParser, TypedValueParser as _};
use serde::{Deserialize, Deserializer};
use taut::Revision;
use taut::wire::Framing;

use crate::args::{self, Options};
use crate::debug::To;
use crate::files;
use crate::problem::{Problem, without_place};

/// Options of every command.
#[derive(clap::Args, Clone, Default)]
pub(crate) struct Common {
    /// Write each step of each message to stderr, or to a file; secrets are masked.
    #[arg(long, value_name = "FILE", global = true, help_heading = "Settings")]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = "on")]
    #[arg(value_parser = OsStringValueParser::new().try_map(To::new), value_hint = ValueHint::FilePath)]
    debug: Option<To>,
    /// Read settings from this file, not from taut/taut.yaml in your configuration folder.
    #[arg(long, value_name = "FILE", global = true, help_heading = "Settings")]
    settings: Option<PathBuf>,
}

impl Common {
    /// Where steps are told, if that was typed.
    pub(crate) fn debug(&self) -> Option<To> {
        self.debug.clone()
    }

    /// Whether somebody typed which file to read.
    pub(crate) fn names_settings(&self) -> bool {
        self.settings.is_some()
    }

    /// Reads the settings: the file that was named has to be there, the usual one may be missing.
    pub(crate) fn settings(&self) -> Result<Settings, Problem> {
        let Some(path) = self.settings.clone().or_else(usual) else {
            return Ok(Settings::default());
        };
        let text = match files::try_text(&path, files::SETTINGS)? {
            Ok(text) => text,
            // The home of a service is often a device, such as /dev/null: there are no settings in it.
            Err(error)
                if self.settings.is_none()
                    && matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) =>
            {
                return Ok(Settings::default());
            }
            Err(error) => {
                let what = format!("reading the settings in {}", path.display());
                return Err(Problem::File { what, error });
            }
        };
        let mut settings = read(&text).map_err(|fault| Problem::Usage {
            what: format!("{}:{fault}", path.display()),
            next: Some("correct it, or name another file with --settings".to_owned()),
        })?;
        let folder = path.parent().unwrap_or_else(|| Path::new(""));
        settings.debug = settings.debug.map(|to| to.within(folder));
        Ok(settings)
    }
}

/// `taut/taut.yaml` in the folder that the XDG rules say.
fn usual() -> Option<PathBuf> {
    let absolute =
        |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let folder = if cfg!(windows) {
        absolute("APPDATA")?
    } else {
        absolute("XDG_CONFIG_HOME").or_else(|| Some(absolute("HOME")?.join(".config")))?
    };
    Some(folder.join("taut/taut.yaml"))
}

/// What the file says. What it does not say is nothing.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Settings {
    #[serde(deserialize_with = "debug")]
    pub(crate) debug: Option<To>,
    #[serde(deserialize_with = "duration")]
    timeout: Option<Duration>,
    #[serde(deserialize_with = "duration")]
    start_timeout: Option<Duration>,
    #[serde(deserialize_with = "duration")]
    max_time: Option<Duration>,
    #[serde(deserialize_with = "revision")]
    revision: Option<Revision>,
    #[serde(deserialize_with = "framing")]
    framing: Option<Framing>,
    #[serde(deserialize_with = "yes_or_no")]
    inherit_env: Option<bool>,
    #[serde(deserialize_with = "yes_or_no")]
    verbose: Option<bool>,
}

impl Settings {
    /// Fills in what was not typed.
    pub(crate) fn fill(&self, options: &mut Options, typed: impl Fn(&str) -> bool) {
        if let Some(time) = self.timeout.filter(|_| !typed("timeout")) {
            options.timeout = time;
        }
        options.start_timeout = options.start_timeout.or(self.start_timeout);
        options.max_time = options.max_time.or(self.max_time);
        options.revision = options.revision.or(self.revision);
        options.framing = options.framing.or(self.framing);
        options.inherit_env |= self.inherit_env.unwrap_or_default();
        options.verbose |= self.verbose.unwrap_or_default();
    }
}

/// The settings in a text, or `LINE:COLUMN: what is wrong`.
fn read(text: &str) -> Result<Settings, String> {
    serde_saphyr::from_str(text).map_err(|error| {
        // Without the snippet: the line at fault may hold a secret.
        let words = error.without_snippet().to_string();
        let words = without_place(&words);
        // The words of the reader are for programmers.
        let words = match words.strip_prefix("duplicate mapping key: ") {
            Some(rest) => format!("{} is set twice", rest.split(',').next().unwrap_or_default()),
            None if words == "expected mapping start" => "expected KEY: VALUE".to_owned(),
            None if words == "expected string scalar" => "expected a word".to_owned(),
            None => words.replace("unknown field", "unknown setting").replace('`', "\""),
        };
        match error.location() {
            Some(at) => format!("{}:{}: {words}", at.line(), at.column()),
            None => format!(" {words}"),
        }
    })
}

/// A value in the words that the command line takes for it.
fn value<'de, D, T>(
    from: D,
    parse: impl Fn(&str) -> Result<T, String>,
) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
{
    let Some(text) = Option::<String>::deserialize(from)? else { return Ok(None) };
    parse(&text).map(Some).map_err(|why| serde::de::Error::custom(format!("{text:?}: {why}")))
}

fn debug<'de, D: Deserializer<'de>>(from: D) -> Result<Option<To>, D::Error> {
    value(from, |text| To::new(text))
}

fn duration<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
    value(from, args::duration)
}

fn revision<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Revision>, D::Error> {
    value(from, args::revision)
}

fn framing<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Framing>, D::Error> {
    value(from, args::framing)
}

fn yes_or_no<'de, D: Deserializer<'de>>(from: D) -> Result<Option<bool>, D::Error> {
    value(from, |text| match text {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err("expected true or false".to_owned()),
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::args::{Args, Sub};

    #[test]
    fn every_key_is_read_in_the_words_of_the_command_line() {
        let text = "debug: /tmp/steps.log\ntimeout: 5s\nstart-timeout: 500ms\nrevision: 2025-11-25\n\
                    framing: headers\ninherit-env: true\nverbose: false\n";
        let settings = read(text).unwrap();
        assert_eq!(settings.debug, Some(To::File("/tmp/steps.log".into())));
        assert_eq!(settings.timeout, Some(Duration::from_secs(5)));
        assert_eq!(settings.start_timeout, Some(Duration::from_millis(500)));
        assert_eq!(settings.revision, Some(Revision::V2025_11_25));
        assert_eq!(settings.framing, Some(Framing::Headers));
        assert_eq!((settings.inherit_env, settings.verbose), (Some(true), Some(false)));
        for text in ["", "# nothing\n", "timeout:\n", "debug: ~\n"] {
            assert!(read(text).unwrap().debug.is_none(), "{text:?}");
        }
        for (text, to) in [("true", To::Stderr), ("on", To::Stderr), ("off", To::Nowhere)] {
            assert_eq!(read(&format!("debug: {text}")).unwrap().debug, Some(to), "{text}");
        }
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place_and_with_what_is_allowed() {
        let table = [
            (
                "# mine\ntimout: 5s\n",
                "2:1: unknown setting \"timout\", expected one of debug, timeout, start-timeout, \
                 max-time, revision, framing, inherit-env, verbose",
            ),
            ("debug: on\ntimeout: soon\n", "2:10: \"soon\": expected a time such as 5s or 500ms"),
            ("start-timeout: 0\n", "1:16: \"0\": expected more than no time"),
            (
                "revision: 2023-01-01\n",
                "1:11: \"2023-01-01\": expected one of 2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25, \
                 2026-07-28",
            ),
            ("framing: frames\n", "1:10: \"frames\": expected lines or headers"),
            (
                "debug: maybe?\n",
                "1:8: \"maybe?\": expected on, off, or a file, which has a / or a . in it: ./maybe?",
            ),
            ("inherit-env: maybe\n", "1:14: \"maybe\": expected true or false"),
            ("timeout: [1s]\n", "1:10: expected a word"),
            ("timeout: 1s\ntimeout: 2s\n", "2:1: timeout is set twice"),
            ("- timeout\n", "1:1: expected KEY: VALUE"),
        ];
        for (text, told) in table {
            assert_eq!(read(text).unwrap_err(), told, "{text:?}");
        }
        let broken = read("debug: [\n").unwrap_err();
        assert!(broken.starts_with(|c: char| c.is_ascii_digit()), "{broken}");
    }

    #[test]
    fn what_is_typed_goes_before_what_is_set() {
        let settings = read("timeout: 1s\nstart-timeout: 2s\n").unwrap();
        let options = |words: &[&str]| {
            let typed: Vec<_> = ["taut", "list"].iter().chain(words).chain(&["--", "x"]).collect();
            let Sub::List(list) = Args::try_parse_from(typed).ok().unwrap().command else {
                panic!()
            };
            let mut options = list.options;
            settings.fill(&mut options, |name| words.contains(&format!("--{name}").as_str()));
            options
        };
        let plain = options(&[]);
        assert_eq!(plain.timeout, Duration::from_secs(1));
        assert_eq!(plain.start_timeout, Some(Duration::from_secs(2)));
        // Typed as it is by default, but typed.
        let typed = options(&["--timeout", "60s", "--start-timeout", "3s"]);
        assert_eq!(typed.timeout, Duration::from_secs(60));
        assert_eq!(typed.start_timeout, Some(Duration::from_secs(3)));
    }
}
