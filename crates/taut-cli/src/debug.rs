//! `--debug`: every step of every message, on stderr or in a file, with secrets masked.
//!
//! The command line decides, else `TAUT_DEBUG`, else `debug:` in the settings; once, when the command
//! starts. `taut::Steps` writes the lines, `secrets.rs` masks them.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::output::Output;
use crate::problem::Problem;
use crate::secrets::{self, masked};

/// Where the steps are told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum To {
    Nowhere,
    Stderr,
    File(PathBuf),
}

impl To {
    /// What a word means, wherever it stands: yes, no, or a file. A file has a `/` or a `.`, so that
    /// a slip (`onn`) does not become one.
    pub(crate) fn new(word: impl AsRef<OsStr>) -> Result<Self, String> {
        let word = word.as_ref();
        let is_file = |text: &str| text.contains(['/', '.', std::path::MAIN_SEPARATOR]);
        match word.to_str().map(str::to_ascii_lowercase).as_deref() {
            Some("1" | "true" | "yes" | "on") => Ok(Self::Stderr),
            Some("" | "0" | "false" | "no" | "off") => Ok(Self::Nowhere),
            Some(text) if !is_file(text) => {
                Err(format!("expected on, off, or a file, which has a / or a . in it: ./{text}"))
            }
            _ => Ok(Self::File(word.into())),
        }
    }

    /// The same, with a file counted from a folder.
    pub(crate) fn within(self, folder: &Path) -> Self {
        match self {
            Self::File(path) => Self::File(folder.join(path)),
            other => other,
        }
    }
}

/// The command line, else the environment, else the file of settings.
fn judge(typed: Option<To>, variable: Option<&OsStr>, settings: Option<To>) -> Result<To, Problem> {
    if let Some(typed) = typed {
        return Ok(typed);
    }
    match variable.filter(|value| !value.is_empty()) {
        Some(word) => To::new(word).map_err(|why| {
            Problem::usage(format!("TAUT_DEBUG is {:?}: {why}", word.to_string_lossy()))
        }),
        None => Ok(settings.unwrap_or(To::Nowhere)),
    }
}

/// Starts to write steps if that is switched on. `source` names the stream that bytes come from.
pub(crate) fn start(
    output: &Output,
    source: &'static str,
    typed: Option<To>,
    settings: Option<To>,
) -> Result<(), Problem> {
    match judge(typed, std::env::var_os("TAUT_DEBUG").as_deref(), settings)? {
        To::Nowhere => return Ok(()),
        To::Stderr => {
            let output = output.clone();
            // A bridge passes the server's stderr on, and -v shows it.
            let shown = output.verbose || source == BOTH;
            listen(source, move |line| {
                if !(shown && is_of_stderr(line)) {
                    output.note(&output.err.line(&cut(line)));
                }
            });
        }
        To::File(path) => {
            let file = open(&path).map_err(|error| Problem::File {
                what: format!("opening {} for --debug", path.display()),
                error,
            })?;
            listen(source, move |line| {
                // A full disk costs the lines, not the session.
                let _ = (&file).write_all(format!("{}\n", masked(line)).as_bytes());
            });
        }
    }
    secrets::hide_ours();
    Ok(())
}

/// Whether a step is a line of a server's stderr.
fn is_of_stderr(line: &str) -> bool {
    line.split_once("] ").is_some_and(|(_, step)| step.starts_with("stderr: "))
}

/// A line as people read it on a terminal. A file has it whole.
fn cut(line: &str) -> Cow<'_, str> {
    const LONGEST: usize = 4 << 10;
    if line.len() <= LONGEST {
        return line.into();
    }
    let mut end = LONGEST;
    while !line.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}…", &line[..end]).into()
}

/// A file that lines are added to, for its owner only: what is said may be private, even with secrets
/// masked.
pub(crate) fn open(path: &Path) -> std::io::Result<File> {
    let mut options = File::options();
    options.create(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// The source of a bridge: each step says which side it belongs to.
pub(crate) const BOTH: &str = "both";

type Sink = Box<dyn Fn(&str) + Send + Sync>;

/// All listeners for steps, because `tracing` allows only one subscriber in a process.
static SINKS: Mutex<Vec<Sink>> = Mutex::new(Vec::new());

/// Hands every step to one more listener.
pub(crate) fn listen(source: &'static str, sink: impl Fn(&str) + Send + Sync + 'static) {
    lock(&SINKS).push(Box::new(sink));
    subscribe(source);
}

/// Becomes the subscriber for everything, unless that was done before.
fn subscribe(source: &'static str) {
    let steps = taut::Steps::new(|line: &str| lock(&SINKS).iter().for_each(|sink| sink(line)));
    let steps = if source == BOTH { steps.sides() } else { steps.source(source) };
    // No other code sets one, and all of ours are the same.
    let _ = tracing::subscriber::set_global_default(Heard(steps));
}

/// Whether anybody hears of steps.
pub(crate) fn is_heard() -> bool {
    !lock(&SINKS).is_empty()
}

/// Hands every whole message to a listener, too. Only one can be set; a bridge does, for all its
/// connections.
pub(crate) fn on_message(hook: impl Fn(&Told) + Send + Sync + 'static) {
    let _ = MESSAGES.set(Box::new(hook));
    subscribe(BOTH);
}

type Hook = Box<dyn Fn(&Told) + Send + Sync>;

static MESSAGES: OnceLock<Hook> = OnceLock::new();

/// A message that passed on one of our connections, as the library tells of it.
#[derive(Debug, Default)]
pub(crate) struct Told {
    /// The number of the connection.
    pub(crate) link: u64,
    /// Whether the other end is a client.
    pub(crate) serving: bool,
    /// Whether we have sent it.
    pub(crate) sent: bool,
    /// Whether a header stood before it.
    pub(crate) headers: bool,
    /// The message, secrets masked by their names.
    pub(crate) json: Option<String>,
}

impl Visit for Told {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        if field.name() == "framing" {
            self.headers = format!("{value:?}") == "headers";
        }
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        if field.name() == "link" {
            self.link = value;
        }
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        if field.name() == "serving" {
            self.serving = value;
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "way" => self.sent = value == "send",
            "json" => self.json = Some(value.to_owned()),
            _ => {}
        }
    }
}

/// The one subscriber: steps for those who listen, and messages for a recorder.
struct Heard<F>(taut::Steps<F>);

impl<F: Fn(&str) + Send + Sync + 'static> Subscriber for Heard<F> {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        self.0.enabled(metadata)
    }

    fn event(&self, event: &Event<'_>) {
        if is_heard() {
            self.0.event(event);
        }
        // Only the event that has the JSON is a whole message.
        let is_message = || event.metadata().fields().field("json").is_some();
        if let Some(hook) = MESSAGES.get().filter(|_| is_message()) {
            let mut told = Told::default();
            event.record(&mut told);
            hook(&told);
        }
    }

    // Spans are passed over: a step stands for itself.
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str) -> To {
        To::File(name.into())
    }

    /// All eight.
    #[test]
    fn the_command_line_goes_before_the_variable_before_the_settings() {
        let table = [
            (None, None, None, To::Nowhere),
            (None, None, Some(file("s")), file("s")),
            (None, Some("./v"), None, file("./v")),
            (None, Some("./v"), Some(file("s")), file("./v")),
            (Some(file("t")), None, None, file("t")),
            (Some(file("t")), None, Some(file("s")), file("t")),
            (Some(file("t")), Some("./v"), None, file("t")),
            (Some(file("t")), Some("./v"), Some(file("s")), file("t")),
        ];
        for (typed, variable, settings, expected) in table {
            let told = format!("{typed:?} {variable:?} {settings:?}");
            let judged = judge(typed, variable.map(OsStr::new), settings).unwrap();
            assert_eq!(judged, expected, "{told}");
        }
    }

    #[test]
    fn no_goes_before_yes_where_it_stands_before_it() {
        let judged =
            |typed, variable, settings| judge(typed, Some(OsStr::new(variable)), settings).unwrap();
        assert_eq!(judged(Some(To::Nowhere), "1", None), To::Nowhere);
        assert_eq!(judged(None, "0", Some(To::Stderr)), To::Nowhere);
        // A variable that is empty says nothing.
        assert_eq!(judged(None, "", Some(To::Stderr)), To::Stderr);
    }

    #[test]
    fn a_word_is_yes_no_or_a_file() {
        for word in ["1", "true", "YES", "on"] {
            assert_eq!(To::new(word), Ok(To::Stderr), "{word}");
        }
        for word in ["", "0", "false", "No", "off"] {
            assert_eq!(To::new(word), Ok(To::Nowhere), "{word}");
        }
        assert_eq!(To::new("steps.log"), Ok(file("steps.log")));
        assert_eq!(file("steps.log").within(Path::new("/x")), file("/x/steps.log"));
        assert_eq!(file("/a/b").within(Path::new("/x")), file("/a/b"));
        for word in ["onn", "maybe?", "2", "steps"] {
            assert!(To::new(word).unwrap_err().contains(&format!("./{word}")), "{word}");
        }
    }
}
