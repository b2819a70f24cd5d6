//! Configuration: command line, then environment, then file, then default.
//!
//! One table holds every key with its variable, its default and what it may be, so that reading,
//! refusing and showing are written once. Must not know what the values are for.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use serde_json::Value;
use taut::secrets::{MASK, Secrets};

const TEXT: &str = "a text";
const ADDRESS: &str = "http://… or https://…, without user and password";
const VARIABLE: &str = "the name of the variable that holds the key, not the key";
const DOMAINS: &str = "domains such as example.org";
const EFFORT: &str = "low, medium, high, xhigh";
const VERBOSITY: &str = "low, medium, high";
const FLAG: &str = "true, false";
const DEBUG: &str = "true, false, ./debug.log";

/// The key that switches debugging on; its variable is known to other programs, too.
const DEBUG_KEY: &str = "server.debug";

/// Key, environment variable, default, what it must be. A profile takes what it lacks from `answer`.
const SETTINGS: [(&str, &str, &str, &str); 25] = [
    ("openai.api_key_env", "", "OPENAI_API_KEY", VARIABLE),
    ("openai.base_url", "OPENAI_BASE_URL", "https://api.openai.com/v1", ADDRESS),
    ("model_profiles.answer.model", "MODEL_ANSWER", "gpt-5.5", TEXT),
    ("model_profiles.answer.reasoning_effort", "ANSWER_EFFORT", "medium", EFFORT),
    ("model_profiles.answer.verbosity", "ANSWER_VERBOSITY", "medium", VERBOSITY),
    ("model_profiles.answer_detailed.model", "", "", TEXT),
    ("model_profiles.answer_detailed.reasoning_effort", "", "", EFFORT),
    ("model_profiles.answer_detailed.verbosity", "", "", VERBOSITY),
    ("model_profiles.answer_quick.model", "", "", TEXT),
    ("model_profiles.answer_quick.reasoning_effort", "", "", EFFORT),
    ("model_profiles.answer_quick.verbosity", "", "", VERBOSITY),
    ("request.timeout_ms", "OPENAI_API_TIMEOUT", "300000", "1 to 86400000"),
    ("request.max_retries", "OPENAI_MAX_RETRIES", "3", "0 to 10"),
    ("policy.max_citations", "MAX_CITATIONS", "3", "1 to 10"),
    ("policy.system.source", "", "builtin", "builtin, file"),
    ("policy.system.path", "", "", TEXT),
    ("policy.system.merge", "", "replace", "replace, prepend, append"),
    ("search.defaults.recency_days", "SEARCH_RECENCY_DAYS", "60", "0 to 36500"),
    ("search.defaults.max_results", "SEARCH_MAX_RESULTS", "5", "1 to 10"),
    ("search.defaults.domains", "", "", DOMAINS),
    (DEBUG_KEY, "DEBUG", "false", DEBUG),
    ("server.debug_file", "", "", TEXT),
    ("server.show_config_on_start", "", "false", FLAG),
    ("server.drain_ms", "", "", "1 to 86400000"),
    ("server.max_message_bytes", "", "67108864", "1024 to 4294967295"),
];

/// Every value that is set, and where it came from. The key is not among them.
pub struct Config {
    values: BTreeMap<&'static str, (String, String)>,
    /// What is to be said about it on stderr.
    pub notes: Vec<String>,
    pub key: Secret,
}

impl Config {
    /// Reads everything once. An error names the key, the value and what it must be.
    pub fn load(file: Option<PathBuf>, options: Vec<(String, String)>) -> Result<Self, String> {
        let mut config =
            Self { values: BTreeMap::new(), notes: Vec::new(), key: Secret::default() };
        for (key, _, default, _) in SETTINGS.iter().filter(|setting| !setting.2.is_empty()) {
            config.set(key, default, "default")?;
        }
        config.read_file(file)?;
        // Hosts pass on variables that are set to nothing; those are not set.
        let variable = |name: &str| std::env::var(name).ok().filter(|text| !text.trim().is_empty());
        for (key, name, ..) in SETTINGS.iter().filter(|setting| !setting.1.is_empty()) {
            let Some(text) = variable(name) else { continue };
            match config.set(key, &text, &format!("environment {name}")) {
                // Other programs read this variable, too.
                Err(_) if *key == DEBUG_KEY => config.leave_debug_off(&text, DEBUG),
                set => set?,
            }
        }
        for (key, text) in options {
            config.set(&key, &text, "command line")?;
        }
        config.key = Secret::new(variable(config.text("openai.api_key_env")));
        Ok(config)
    }

    /// The variable that switches debugging on has a value that is not ours.
    pub fn leave_debug_off(&mut self, value: &str, why: &str) {
        self.values.insert(DEBUG_KEY, ("false".to_owned(), "environment DEBUG".to_owned()));
        self.notes
            .push(format!("DEBUG is {value:?}, which means nothing here ({why}): debug is off"));
    }

    /// Whether the value is that of a variable.
    pub fn is_from_environment(&self, key: &str) -> bool {
        self.values.get(key).is_some_and(|(_, from)| from.starts_with("environment "))
    }

    /// The value; empty if it is not set.
    pub fn text(&self, key: &str) -> &str {
        self.values.get(key).map_or("", |(value, _)| value)
    }

    pub fn number(&self, key: &str) -> u32 {
        self.text(key).parse().unwrap_or_default()
    }

    /// A path, with `~` written out; empty if it is not set.
    pub fn path(&self, key: &str) -> PathBuf {
        match self.text(key).strip_prefix("~/") {
            Some(rest) => std::env::home_dir().unwrap_or_default().join(rest),
            None => self.text(key).into(),
        }
    }

    fn set(&mut self, key: &str, text: &str, from: &str) -> Result<(), String> {
        let text = match text.trim() {
            "1" if key == DEBUG_KEY => "true",
            "0" if key == DEBUG_KEY => "false",
            // A path where a flag is expected says both: yes, and where.
            path if key == DEBUG_KEY && path.contains(['/', '\\']) && !path.contains('*') => {
                self.set("server.debug_file", path, from)?;
                "true"
            }
            text => text,
        };
        let Some((key, _, _, must)) = SETTINGS.iter().find(|setting| setting.0 == key) else {
            // Its value is not told: it may be a secret.
            let known = SETTINGS.map(|setting| setting.0).join(", ");
            return Err(format!("there is no key {key} (from {from}); there are {known}"));
        };
        if !fits(text, must) {
            // Where people put secrets by mistake, a refused value is not told either.
            let hidden = [ADDRESS, VARIABLE].contains(must);
            let shown = if hidden { MASK.to_owned() } else { format!("{text:?}") };
            return Err(format!("{key} is {shown} (from {from}) but must be: {must}"));
        }
        self.values.insert(key, (text.to_owned(), from.to_owned()));
        Ok(())
    }

    /// A file that was named must be there; the usual one may be missing.
    fn read_file(&mut self, named: Option<PathBuf>) -> Result<(), String> {
        let usual = std::env::home_dir().map(|home| home.join(".config/taut-answer/config.yaml"));
        let usual = usual.filter(|path| path.exists());
        let Some(path) = named.or(usual) else { return Ok(()) };
        let bad = |reason: String| format!("{}: {reason}", path.display());
        let text = std::fs::read_to_string(&path).map_err(|error| bad(error.to_string()))?;
        // Without the snippet: the line at fault may hold a secret.
        let tree: Value = serde_saphyr::from_str(&text)
            .map_err(|error| bad(error.without_snippet().to_string()))?;
        self.set_tree("", &tree, &format!("file {}", path.display()))
    }

    fn set_tree(&mut self, key: &str, value: &Value, from: &str) -> Result<(), String> {
        let plain = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        match value {
            Value::Null => Ok(()),
            Value::Object(tree) => tree.iter().try_for_each(|(name, value)| {
                let key = format!("{key}.{name}");
                self.set_tree(key.trim_start_matches('.'), value, from)
            }),
            Value::Array(list) => {
                self.set(key, &list.iter().map(plain).collect::<Vec<_>>().join(","), from)
            }
            value => self.set(key, &plain(value), from),
        }
    }
}

/// Every value and where it came from, as YAML with comments.
impl fmt::Display for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = if self.key.reveal().is_some() { MASK } else { "" };
        writeln!(f, "openai.api_key: {key:?}  # environment {}", self.text("openai.api_key_env"))?;
        for (key, ..) in &SETTINGS {
            let from = self.values.get(key).map_or("default", |(_, from)| from);
            writeln!(f, "{key}: {:?}  # {from}", self.text(key))?;
        }
        Ok(())
    }
}

fn fits(text: &str, must: &str) -> bool {
    match must {
        TEXT => !text.is_empty(),
        ADDRESS => {
            let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
            rest.is_some_and(|rest| !rest.is_empty() && !rest.contains(['@', '?', '#', ' ']))
        }
        VARIABLE => text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'),
        DOMAINS => text.is_empty() || text.split(',').all(is_domain),
        _ => match must.split_once(" to ").map(|(least, most)| (least.parse(), most.parse())) {
            Some((Ok(least), Ok(most))) => {
                text.parse().is_ok_and(|n: u32| (least..=most).contains(&n))
            }
            _ => must.split(", ").any(|word| word == text),
        },
    }
}

/// Whether this names a site as `example.org` does: no scheme, no path, no address in numbers.
pub fn is_domain(text: &str) -> bool {
    let label = |label: &str| {
        let plain = label.chars().all(|c| c.is_alphanumeric() || c == '-');
        plain && !label.is_empty() && !label.starts_with('-') && !label.ends_with('-')
    };
    let (names, top) = text.rsplit_once('.').unwrap_or_default();
    names.split('.').all(label) && label(top) && !top.chars().all(|c| c.is_ascii_digit())
}

/// The API key, if there is one: sent to the service, shown to nobody.
#[derive(Clone, Default)]
pub struct Secret {
    key: Option<String>,
    known: Secrets,
}

impl Secret {
    fn new(key: Option<String>) -> Self {
        let known = Secrets::new();
        key.iter().for_each(|key| known.hide_always(key.trim()));
        Self { key, known }
    }

    pub fn reveal(&self) -> Option<&str> {
        self.key.as_deref().map(str::trim)
    }

    /// A text without the key, which services repeat in their errors, in whichever spelling.
    pub fn hide_in(&self, text: &str) -> String {
        self.known.masked(text).into_owned()
    }

    /// The same for every text in a response.
    pub fn hide_in_json(&self, value: Value) -> Value {
        let hidden = |(name, value)| (name, self.hide_in_json(value));
        match value {
            Value::String(text) => self.hide_in(&text).into(),
            Value::Array(all) => all.into_iter().map(|each| self.hide_in_json(each)).collect(),
            Value::Object(all) => all.into_iter().map(hidden).collect(),
            other => other,
        }
    }
}
