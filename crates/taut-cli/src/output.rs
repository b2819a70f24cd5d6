//! What is shown, and where: results on stdout or in a file, everything else on stderr.
//!
//! Knows terminals, colours and `--json`. Must not know what a result means. Text of a server passes
//! through `sanitize.rs` when a terminal reads it, and never otherwise.

use std::borrow::Cow;
use std::fmt::Display;
use std::fs::File;
use std::io::{self, IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};
use serde::Serialize;

use crate::args::Options;
use crate::problem::{Exit, Problem};
use crate::sanitize;
use crate::screen::Screen;
use crate::secrets;

pub(crate) const BOLD: Style = Style::new().bold();
pub(crate) const DIM: Style = Style::new().dimmed();
pub(crate) const GREEN: Style = AnsiColor::Green.on_default().bold();
pub(crate) const RED: Style = AnsiColor::Red.on_default().bold();
pub(crate) const YELLOW: Style = AnsiColor::Yellow.on_default().bold();
pub(crate) const CYAN: Style = AnsiColor::Cyan.on_default();

/// Lines of a server's stderr that are shown after a failure.
const LAST_LINES: usize = 20;

/// How wide a line may be where nobody says.
const WIDTH: usize = 100;

/// One of our two streams: who reads it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader {
    terminal: bool,
    colour: bool,
}

impl Reader {
    pub(crate) fn has_colour(self) -> bool {
        self.colour
    }

    pub(crate) fn paint(self, style: Style, text: impl Display) -> String {
        if self.colour {
            format!("{}{text}{}", style.render(), style.render_reset())
        } else {
            text.to_string()
        }
    }

    /// Text of a server as this reader may have it.
    pub(crate) fn text(self, text: &str) -> Cow<'_, str> {
        if self.terminal { sanitize::clean(text) } else { Cow::Borrowed(text) }
    }

    /// The same, on one line.
    pub(crate) fn line(self, text: &str) -> Cow<'_, str> {
        if self.terminal {
            return sanitize::line(text);
        }
        if text.contains(['\n', '\r', '\t']) {
            return text.split_whitespace().collect::<Vec<_>>().join(" ").into();
        }
        Cow::Borrowed(text)
    }
}

/// Where everything goes.
#[derive(Clone, Debug)]
pub(crate) struct Output {
    pub(crate) json: bool,
    pub(crate) verbose: bool,
    pub(crate) file: Option<PathBuf>,
    /// Whether secrets are masked in results too, as they are in all else: nobody asked for these.
    pub(crate) discreet: bool,
    /// Who reads results.
    pub(crate) out: Reader,
    /// Who reads everything else.
    pub(crate) err: Reader,
    /// What goes on on the terminal meanwhile.
    pub(crate) screen: Arc<Screen>,
}

impl Output {
    pub(crate) fn new(options: Option<&Options>) -> Self {
        let colour = |choice| choice != ColorChoice::Never;
        let file = options.and_then(|options| options.out.clone());
        let to_screen = file.is_none();
        Self {
            json: options.is_some_and(|options| options.json),
            verbose: options.is_some_and(|options| options.verbose),
            out: Reader {
                terminal: to_screen && io::stdout().is_terminal(),
                colour: to_screen && colour(AutoStream::choice(&io::stdout())),
            },
            err: Reader {
                terminal: io::stderr().is_terminal(),
                colour: colour(AutoStream::choice(&io::stderr())),
            },
            file,
            discreet: false,
            screen: Arc::default(),
        }
    }

    /// Whether a person reads the result.
    pub(crate) fn on_terminal(&self) -> bool {
        self.out.terminal
    }

    /// Whether something that moves may be shown on stderr.
    pub(crate) fn may_move(&self) -> bool {
        self.err.terminal && !self.verbose
    }

    /// How wide a line of a result may be; nothing if it need not end.
    pub(crate) fn width(&self) -> Option<usize> {
        if !self.out.terminal {
            return None;
        }
        #[cfg(unix)]
        return Some(columns(io::stdout()));
        #[cfg(not(unix))]
        Some(WIDTH)
    }

    /// How wide a line on stderr that is drawn again and again may be: one that is wider leaves its
    /// beginnings behind.
    pub(crate) fn moving_width() -> usize {
        #[cfg(unix)]
        return columns(io::stderr()).saturating_sub(1);
        #[cfg(not(unix))]
        return WIDTH - 1;
    }

    /// Prints a part of the result.
    pub(crate) fn print(&self, text: &str) -> Result<(), Problem> {
        self.write(self.told(text).as_bytes())
    }

    /// A part of the result as it may be told.
    fn told<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if self.discreet { secrets::masked(text) } else { Cow::Borrowed(text) }
    }

    /// The same, with bytes.
    pub(crate) fn write(&self, bytes: &[u8]) -> Result<(), Problem> {
        if let Some(path) = &self.file {
            let opened = File::options().create(true).append(true).open(path);
            let written = opened.and_then(|mut file| file.write_all(bytes));
            let what = || format!("writing {}", path.display());
            return written.map_err(|error| Problem::Unwritten { what: what(), error });
        }
        if self.out.terminal && self.may_move() {
            // What moves on stderr stands on the same line.
            let _ = write!(io::stderr().lock(), "\r\x1b[K");
        }
        let mut stdout = io::stdout().lock();
        stdout.write_all(bytes).and_then(|()| stdout.flush()).map_err(Problem::output)
    }

    /// Makes the file of `--out` empty, so that a mistake in its name costs no call.
    pub(crate) fn prepare(&self) -> Result<(), Problem> {
        let Some(path) = &self.file else { return Ok(()) };
        let what = || format!("cannot write {}", path.display());
        File::create(path).map(|_| ()).map_err(|error| Problem::File { what: what(), error })
    }

    /// Prints the one JSON document.
    pub(crate) fn document(&self, value: &impl Serialize) -> Result<(), Problem> {
        let mut text = serde_json::to_string_pretty(value).map_err(|error| Problem::File {
            what: "writing the result".to_owned(),
            error: error.into(),
        })?;
        text.push('\n');
        let shown = if self.out.terminal { sanitize::json(&text) } else { text.into() };
        self.print(&shown)
    }

    /// Prints one JSON document of several, on a line of its own.
    pub(crate) fn json_line(&self, value: &impl Serialize) -> Result<(), Problem> {
        let mut text = serde_json::to_string(value).map_err(|error| Problem::File {
            what: "writing the result".to_owned(),
            error: error.into(),
        })?;
        text.push('\n');
        let shown = if self.out.terminal { sanitize::json(&text) } else { text.into() };
        if self.out.terminal && self.screen.tell(self.told(shown.trim_end()).as_ref()) {
            return Ok(());
        }
        self.print(&shown)
    }

    /// Tells something beside the result. Nobody may be there to hear it.
    pub(crate) fn note(&self, text: &str) {
        let text = secrets::masked(text);
        if self.screen.tell(&text) {
            return;
        }
        // What moves on this line is wiped away first.
        let wipe = if self.may_move() { "\r\x1b[K" } else { "" };
        let _ = writeln!(io::stderr().lock(), "{wipe}{text}");
    }

    /// Says what went wrong and what to try, and how to end.
    pub(crate) fn report(&self, problem: &Problem) -> Exit {
        let exit = problem.exit();
        if matches!(problem, Problem::NobodyReads) {
            return exit;
        }
        if self.json && !matches!(problem, Problem::Unwritten { .. }) {
            // If this too cannot be written, the words below say why.
            let discreet = Self { discreet: true, ..self.clone() };
            let _ = discreet.document(&problem.json());
        }
        let label = self.err.paint(RED, "error:");
        self.note(&format!("{label} {}", self.err.text(&problem.to_string())));
        if !self.verbose {
            self.last_words(problem.stderr());
        }
        if let Some(next) = problem.next() {
            self.note(&format!("{} {next}", self.err.paint(CYAN, "  try:")));
        }
        exit
    }

    /// Shows the end of what a server wrote to stderr.
    pub(crate) fn last_words(&self, stderr: &str) {
        let lines: Vec<&str> = stderr.lines().filter(|line| !line.trim().is_empty()).collect();
        if lines.is_empty() {
            return;
        }
        self.note("the server's last words on stderr:");
        for line in &lines[lines.len().saturating_sub(LAST_LINES)..] {
            self.note(&self.err.paint(DIM, format!("  {}", self.err.line(line))));
        }
    }
}

/// How wide a terminal is.
#[cfg(unix)]
fn columns(of: impl std::os::fd::AsFd) -> usize {
    match rustix::termios::tcgetwinsize(of) {
        Ok(size) if size.ws_col > 0 => usize::from(size.ws_col),
        _ => WIDTH,
    }
}

/// A time as people read it: three digits at most.
pub(crate) fn time(time: Duration) -> String {
    let millis = time.as_secs_f64() * 1e3;
    match millis {
        _ if millis < 9.95 => format!("{millis:.1} ms"),
        _ if millis < 999.5 => format!("{millis:.0} ms"),
        _ if millis < 59_950.0 => format!("{:.1} s", millis / 1e3),
        _ => format!("{:.1} min", millis / 60e3),
    }
}

/// A size as people read it.
pub(crate) fn size(bytes: usize) -> String {
    match bytes {
        1 => "1 byte".to_owned(),
        0..10_000 => format!("{bytes} bytes"),
        10_000..10_000_000 => format!("{} KiB", bytes >> 10),
        _ => format!("{} MiB", bytes >> 20),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_few_digits() {
        let table = [
            (0, "0.0 ms"),
            (1_234, "1.2 ms"),
            (34_000, "34 ms"),
            (1_200_000, "1.2 s"),
            (90_000_000, "1.5 min"),
        ];
        for (micros, text) in table {
            assert_eq!(time(Duration::from_micros(micros)), text);
        }
    }
}
