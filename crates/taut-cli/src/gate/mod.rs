//! The gate: the only way to our stdout and stderr, and to the line editor.
//!
//! All text is treated as foreign: names, descriptions, errors, anything that a server, a file or a person
//! wrote. [`Reader::pass`] turns text into [`Shown`], and only `Shown` can be written. It escapes characters that
//! control a terminal or cannot be seen (SEC-05), also for a pipe: behind `tail` or `tee` there is a terminal too.
//! Content that was asked for is written with [`raw`]: as text through [`Reader::content`], or as it was sent.
//! [`Reader::paint`] marks our own colours with a random number that is new in each process, so foreign
//! text cannot contain it. `tests/command/gate.rs` checks that no other file writes to these streams.

pub(crate) mod escape;
mod stream;

use std::borrow::Cow;
use std::fmt::{self, Display};
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, IsTerminal as _};
use std::sync::LazyLock;

use anstream::{AutoStream, ColorChoice};
use anstyle::AnsiColor;
pub(crate) use anstyle::Style;

use crate::own;
use crate::wrap::wrapped;

pub(crate) use stream::{draw, flush, give_way, hurry, pass_on, raw, result, tell};

pub(crate) const BOLD: Style = Style::new().bold();
pub(crate) const DIM: Style = Style::new().dimmed();
pub(crate) const GREEN: Style = AnsiColor::Green.on_default().bold();
pub(crate) const RED: Style = AnsiColor::Red.on_default().bold();
pub(crate) const YELLOW: Style = AnsiColor::Yellow.on_default().bold();
pub(crate) const CYAN: Style = AnsiColor::Cyan.on_default();

/// The styles that a mark can name.
const STYLES: [Style; 6] = [BOLD, DIM, GREEN, RED, YELLOW, CYAN];

/// Wipes the line that the cursor is on.
const WIPE: &str = "\r\x1b[K";

/// Text that has passed the gate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Shown(String);

impl Shown {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// The same on a line that is wiped first.
    pub(crate) fn wiping(&self) -> Self {
        Self(format!("{WIPE}{}", self.0))
    }

    /// Nothing but the wiping.
    pub(crate) fn wipe() -> Self {
        Self(WIPE.to_owned())
    }

    /// The same over so many lines that were shown before, which are wiped first.
    #[cfg(feature = "fleet")]
    pub(crate) fn over(self, lines: usize) -> Self {
        match lines {
            0 => self,
            _ => Self(format!("\x1b[{lines}A\x1b[J{}", self.0)),
        }
    }

    /// The same with a line end.
    pub(crate) fn line(mut self) -> Self {
        self.0.push('\n');
        self
    }
}

impl Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Who reads one of our two streams.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader {
    pub(crate) terminal: bool,
    pub(crate) colour: bool,
}

impl Reader {
    pub(crate) fn of_stdout() -> Self {
        let stdout = io::stdout();
        let colour = AutoStream::choice(&stdout) != ColorChoice::Never;
        Self { terminal: stdout.is_terminal(), colour }
    }

    pub(crate) fn of_stderr() -> Self {
        let stderr = io::stderr();
        let colour = AutoStream::choice(&stderr) != ColorChoice::Never;
        Self { terminal: stderr.is_terminal(), colour }
    }

    /// A reader that is a file.
    pub(crate) const fn file() -> Self {
        Self { terminal: false, colour: false }
    }

    /// The text in a style, marked for the gate.
    pub(crate) fn paint(self, style: Style, text: impl Display) -> String {
        let Some(at) = STYLES.iter().position(|known| *known == style).filter(|_| self.colour)
        else {
            return text.to_string();
        };
        let (mark, text) = (&*MARK, text.to_string());
        if text.is_empty() {
            return text;
        }
        format!("{mark}{}{text}{mark}{}", numbered(at), numbered(STYLES.len()))
    }

    /// Text as it may be shown, before it is measured or cut.
    pub(crate) fn text(self, text: &str) -> Cow<'_, str> {
        escape::clean(text)
    }

    /// The same, on one line.
    pub(crate) fn line(self, text: &str) -> Cow<'_, str> {
        escape::line(text)
    }

    /// Content that was asked for, as text. A pipe gets what cannot be seen as well, but no control characters.
    pub(crate) fn content(self, text: &str) -> Cow<'_, str> {
        if self.terminal { escape::clean(text) } else { escape::content(text) }
    }

    /// The help of the command: words and colours are all ours, and clap has put them together.
    pub(crate) fn help(self, help: &clap::Error, width: usize) -> Shown {
        let text = help.render();
        // A mistake, with what was typed in it.
        if help.use_stderr() {
            return self.pass(&wrapped(&text.to_string(), width));
        }
        let text = if self.colour { text.ansi().to_string() } else { text.to_string() };
        Shown(wrapped(&own::renamed(&text), width))
    }

    /// The gate itself: what would be harmful to a terminal is escaped, and marks become colours.
    pub(crate) fn pass(self, text: &str) -> Shown {
        let mut shown = String::with_capacity(text.len() + 16);
        let mut parts = text.split(MARK.as_str());
        if let Some(first) = parts.next() {
            shown.push_str(&self.text(first));
        }
        for part in parts {
            let mut rest = part.chars();
            match rest.next().and_then(number) {
                Some(_) if !self.colour => {}
                Some(at) if at < STYLES.len() => shown.push_str(&STYLES[at].render().to_string()),
                Some(_) => shown.push_str(&anstyle::Reset.render().to_string()),
                None => rest = part.chars(),
            }
            shown.push_str(&self.text(rest.as_str()));
        }
        Shown(shown)
    }
}

/// How wide the terminal at stdout is, if it is one that says so.
pub(crate) fn columns_of_stdout() -> Option<usize> {
    #[cfg(unix)]
    return columns(io::stdout());
    #[cfg(not(unix))]
    None
}

/// How many lines the terminal at stdout has, if it is one that says so.
#[cfg(feature = "fleet")]
pub(crate) fn rows_of_stdout() -> Option<usize> {
    #[cfg(unix)]
    return {
        let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
        (size.ws_row > 0).then(|| usize::from(size.ws_row))
    };
    #[cfg(not(unix))]
    None
}

/// How wide the terminal at stderr is.
pub(crate) fn columns_of_stderr() -> Option<usize> {
    #[cfg(unix)]
    return columns(io::stderr());
    #[cfg(not(unix))]
    None
}

#[cfg(unix)]
fn columns(of: impl std::os::fd::AsFd) -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(of).ok()?;
    (size.ws_col > 0).then(|| usize::from(size.ws_col))
}

/// What begins a mark: characters for private use, chosen at random in each process.
static MARK: LazyLock<String> = LazyLock::new(|| {
    let random = RandomState::new().hash_one(0);
    (0..5).map(|at| private(u32::try_from(random >> (12 * at) & 0xfff).unwrap_or(0))).collect()
});

fn private(number: u32) -> char {
    char::from_u32(0xF_0000 + number).unwrap_or('\u{F0000}')
}

fn numbered(at: usize) -> char {
    private(u32::try_from(at).unwrap_or(0))
}

fn number(mark: char) -> Option<usize> {
    let number = u32::from(mark).checked_sub(0xF_0000)? as usize;
    (number <= STYLES.len()).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TERMINAL: Reader = Reader { terminal: true, colour: true };

    #[test]
    fn sec_05_our_colours_pass_and_those_of_a_stranger_do_not() {
        let painted = TERMINAL.paint(RED, "a\x1b[31mb");
        let text = format!("\x1b[2J{painted}\u{202e}\u{9b}1m");
        let red = RED.render().to_string();
        assert_eq!(
            TERMINAL.pass(&text).as_str(),
            format!("\\u{{1b}}[2J{red}a\\u{{1b}}[31mb\x1b[0m\\u{{202e}}\\u{{9b}}1m")
        );
    }

    #[test]
    fn a_pipe_gets_no_colours_and_no_marks() {
        let pipe = Reader { terminal: false, colour: false };
        let text = format!("\x1b[2J{}", pipe.paint(RED, "x"));
        assert_eq!(pipe.pass(&text).as_str(), "\\u{1b}[2Jx");
        // Painted for another reader: the marks are ours and go all the same.
        assert_eq!(pipe.pass(&TERMINAL.paint(RED, "x")).as_str(), "x");
    }

    #[test]
    fn characters_for_private_use_are_no_marks() {
        let text = "\u{f0000}\u{f0001}\u{f0002}";
        assert_eq!(TERMINAL.pass(text).as_str(), text);
    }
}
