//! What is shown, and where: results on stdout or in a file, everything else on stderr.
//!
//! Knows `--json`, `--out` and what a failure looks like. Must not know what a result means. Everything
//! passes the gate (`gate/`) on its way out.

use std::borrow::Cow;
use std::fs::File;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde::Serialize;

use crate::args::Options;
use crate::gate::{self, Reader, Shown, escape};
pub(crate) use crate::gate::{BOLD, CYAN, DIM, GREEN, RED, YELLOW};
use crate::heard::Heard;
use crate::problem::{Exit, Problem};
use crate::screen::Screen;
use crate::secrets;

/// Lines of a server's stderr that are shown after a failure.
const LAST_LINES: usize = 20;

/// The width of lines if the terminal does not say its own.
const WIDTH: usize = 100;

/// Where everything goes.
#[derive(Clone, Debug)]
pub(crate) struct Output {
    pub(crate) json: bool,
    /// Whether the one document has been printed.
    pub(crate) documented: Arc<AtomicBool>,
    pub(crate) verbose: bool,
    pub(crate) file: Option<PathBuf>,
    /// Whether content goes to stdout as it was sent: `--out -`.
    pub(crate) verbatim: bool,
    /// Whether secrets are masked in results too, not only in other output.
    pub(crate) discreet: bool,
    /// Who reads results.
    pub(crate) out: Reader,
    /// Who reads everything else.
    pub(crate) err: Reader,
    /// What goes on on the terminal meanwhile.
    pub(crate) screen: Arc<Screen>,
    /// What the server writes that is no message, while it is waited for.
    pub(crate) heard: Arc<Heard>,
}

impl Output {
    pub(crate) fn new(options: Option<&Options>) -> Self {
        let named = options.and_then(|options| options.out.clone());
        let verbatim = named.as_deref().is_some_and(|file| file == "-");
        let file = named.filter(|_| !verbatim);
        let out = if file.is_none() { Reader::of_stdout() } else { Reader::file() };
        Self {
            json: options.is_some_and(|options| options.json),
            documented: Arc::default(),
            verbose: options.is_some_and(|options| options.verbose),
            out,
            err: Reader::of_stderr(),
            file,
            verbatim,
            discreet: false,
            screen: Arc::default(),
            heard: Arc::default(),
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
        Some(gate::columns_of_stdout().unwrap_or(WIDTH))
    }

    /// How wide a line on stderr that is drawn again and again may be: one that is wider leaves its
    /// beginnings behind.
    pub(crate) fn moving_width() -> usize {
        gate::columns_of_stderr().unwrap_or(WIDTH).saturating_sub(1)
    }

    /// Draws a line on stderr over the one before it, where something may move.
    pub(crate) fn draw(&self, line: &str) {
        if !self.may_move() {
            return;
        }
        if line.is_empty() {
            // The last one of a spinner must not be left out.
            gate::tell(&Shown::wipe());
        } else {
            gate::draw(&self.err.pass(line).wiping());
        }
    }

    /// Prints a part of the result.
    pub(crate) fn print(&self, text: &str) -> Result<(), Problem> {
        let shown = self.out.pass(&self.told(text));
        if self.file.is_some() {
            return self.save(shown.as_str().as_bytes());
        }
        self.wipe();
        gate::result(&shown).map_err(Problem::output)
    }

    /// Prints content that the user asked for, as text that ends with a line end. If it has to be escaped in a pipe,
    /// the user is told so, once.
    pub(crate) fn print_content(&self, text: &str) -> Result<(), Problem> {
        static TOLD: AtomicBool = AtomicBool::new(false);
        let text = self.told(text);
        // It may be large, so it is not copied where nothing is escaped.
        let shown = self.out.content(&text);
        self.wipe();
        gate::raw(shown.as_bytes()).map_err(Problem::output)?;
        if !shown.ends_with('\n') {
            gate::raw(b"\n").map_err(Problem::output)?;
        }
        let changed = matches!(shown, Cow::Owned(_)) && !self.out.terminal;
        if changed && !TOLD.swap(true, Ordering::Relaxed) {
            let words = "control characters of the result are shown as \\u{…}; --out - gives them as they are";
            self.note(&self.err.paint(CYAN, words));
        }
        Ok(())
    }

    /// A part of the result as it may be told.
    fn told<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if self.discreet { secrets::masked(text) } else { Cow::Borrowed(text) }
    }

    /// Writes content as it was sent: to the file of `--out`, or to a pipe. A terminal gets it as text.
    pub(crate) fn write(&self, bytes: &[u8]) -> Result<(), Problem> {
        if self.file.is_some() {
            return self.save(bytes);
        }
        if self.out.terminal {
            return self.print(&String::from_utf8_lossy(bytes));
        }
        gate::raw(bytes).map_err(Problem::output)
    }

    /// Adds to the file of `--out`.
    fn save(&self, bytes: &[u8]) -> Result<(), Problem> {
        let Some(path) = &self.file else { return Ok(()) };
        let opened = File::options().create(true).append(true).open(path);
        let written = opened.and_then(|mut file| file.write_all(bytes));
        let what = || format!("writing {}", path.display());
        written.map_err(|error| Problem::Unwritten { what: what(), error })
    }

    /// What moves on stderr stands on the same line as a result on a terminal.
    fn wipe(&self) {
        if self.out.terminal && self.may_move() {
            gate::tell(&Shown::wipe());
        }
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
        self.print(&escape::json(&text))?;
        self.documented.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Prints one JSON document of several, on a line of its own.
    pub(crate) fn json_line(&self, value: &impl Serialize) -> Result<(), Problem> {
        let text = serde_json::to_string(value).map_err(|error| Problem::File {
            what: "writing the result".to_owned(),
            error: error.into(),
        })?;
        // A part that is as the server wrote it may have several lines.
        let text = escape::json(&text).replace('\n', " ");
        if self.out.terminal && self.screen.tell(&self.out.pass(&self.told(&text))) {
            return Ok(());
        }
        self.print(&format!("{text}\n"))
    }

    /// Writes a line to stderr, of which a server may have chosen any length. Never fails.
    pub(crate) fn note(&self, text: &str) {
        let shown = self.err.pass(&cut_middle(&secrets::masked(text)));
        if !self.screen.hold(&shown) {
            self.show(shown);
        }
    }

    /// Names the command that comes next. On stderr: the last line of stdout is the verdict.
    pub(crate) fn note_next(&self, line: &str) {
        let line = secrets::masked(line);
        self.note(&format!("{} {}", self.err.paint(CYAN, "  next:"), self.err.line(&line)));
    }

    /// Writes a line that a server has written to stderr. Never fails; our own lines give way to it.
    pub(crate) fn pass_on(&self, text: &str) {
        let shown = self.err.pass(&secrets::masked(text));
        if !self.screen.hold(&shown) && !self.screen.tell(&shown) {
            gate::pass_on(&shown.line());
        }
    }

    /// Tells a part of a question that is being put to somebody.
    pub(crate) fn ask(&self, text: &str) {
        self.show(self.err.pass(&cut_middle(&secrets::masked(text))));
    }

    fn show(&self, shown: Shown) {
        if self.screen.tell(&shown) {
            return;
        }
        // What moves on this line is wiped away first.
        let shown = if self.may_move() { shown.wiping() } else { shown };
        gate::tell(&shown.line());
    }

    /// Reports a problem and what to try, and returns the exit code.
    pub(crate) fn report(&self, problem: &Problem) -> Exit {
        let exit = problem.exit();
        if matches!(problem, Problem::NobodyReads) {
            return exit;
        }
        // There is one document: what goes wrong after the result is told on stderr only.
        if self.json && !self.documented.load(Ordering::Relaxed) {
            self.report_as_document(problem);
        }
        let label = self.err.paint(RED, "error:");
        self.note(&format!("{label} {}", self.err.text(&problem.to_string())));
        if let Some(data) = problem.data() {
            let data = self.err.line(&data).into_owned();
            self.note(&format!("{} {data}", self.err.paint(DIM, "  data:")));
        }
        if !self.verbose {
            self.last_words("stdout", problem.stdout());
            self.last_words("stderr", problem.stderr());
        }
        if let Some(next) = problem.next() {
            self.note(&format!("{} {}", self.err.paint(CYAN, "  try:"), next));
        }
        exit
    }

    /// Writes a problem where the result would have been, or to stdout if the file of `--out` cannot be written.
    fn report_as_document(&self, problem: &Problem) {
        let unwritten = matches!(problem, Problem::Unwritten { .. });
        let discreet = Self { discreet: true, ..self.clone() };
        if !unwritten && discreet.document(&problem.json()).is_ok() {
            return;
        }
        if self.file.is_some() {
            let discreet = Self { file: None, out: Reader::of_stdout(), ..discreet };
            // If this too cannot be written, the words on stderr say why.
            let _ = discreet.document(&problem.json());
        }
    }

    /// Shows what a server has written while it was waited for, until somebody stopped that: it may be why it hangs.
    pub(crate) fn overheard(&self) {
        let lines = self.heard.take();
        if self.verbose || lines.is_empty() {
            return;
        }
        self.note("the server wrote meanwhile:");
        for line in lines {
            self.note(&self.err.paint(DIM, format!("  {line}")));
        }
    }

    /// Shows the end of what a server wrote to stderr, or to stdout without being a message.
    pub(crate) fn last_words(&self, stream: &str, text: &str) {
        let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        if lines.is_empty() {
            return;
        }
        self.note(&format!("the server's {stream} ended with:"));
        for line in &lines[lines.len().saturating_sub(LAST_LINES)..] {
            self.note(&self.err.paint(DIM, format!("  {}", self.err.line(line))));
        }
    }
}

/// A text for people that is not without end: a server may have names of megabytes. Masked before it is cut, because no
/// one knows a secret by its half.
pub(crate) fn cut_middle(text: &str) -> Cow<'_, str> {
    /// Room for a long stack trace and a list of tools.
    const BYTES: usize = 32 << 10;
    /// What stands at the end is what to choose from, or the last lines of a server.
    const END: usize = 8 << 10;
    if text.len() <= BYTES {
        return Cow::Borrowed(text);
    }
    let text = secrets::masked(text);
    let (head, tail) =
        (text.floor_char_boundary(BYTES - END), text.ceil_char_boundary(text.len() - END));
    let left = size(tail.saturating_sub(head));
    Cow::Owned(format!("{} … {left} left out … {}", &text[..head], &text[tail..]))
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
