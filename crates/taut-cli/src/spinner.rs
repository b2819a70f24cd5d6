//! A spinner on stderr, or a bar when progress is reported.
//!
//! Shown only on a terminal, and only after a short wait. Removed when it is dropped.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use taut::types::ProgressParams;

use crate::cells::cut;
use crate::gate::escape;
use crate::heard::Heard;
use crate::output::Output;
use crate::screen::Screen;

/// Shorter waits show no spinner.
const PATIENCE: Duration = Duration::from_millis(200);
/// After this time the last line of the server is shown as well: it may be why it does not answer.
const WORDS: Duration = Duration::from_secs(1);
const TURN: Duration = Duration::from_millis(80);
const FRAMES: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
const BAR: usize = 24;

/// Turns until it is dropped.
pub(crate) struct Spinner {
    /// Where progress is told line by line instead, with -v.
    told: Option<Output>,
    heard: Arc<Heard>,
    label: Arc<Mutex<String>>,
    task: Option<(Output, tokio::task::JoinHandle<()>)>,
}

impl Spinner {
    pub(crate) fn start(output: &Output, label: impl Into<String>) -> Self {
        let label = Arc::new(Mutex::new(label.into()));
        output.heard.clear();
        let task = output
            .may_move()
            .then(|| (output.clone(), tokio::spawn(turn(label.clone(), output.clone()))));
        Self {
            told: output.verbose.then(|| output.clone()),
            heard: output.heard.clone(),
            label,
            task,
        }
    }

    /// Says what is waited for now.
    pub(crate) fn say(&self, label: impl Into<String>) {
        self.heard.clear();
        *self.label.lock().unwrap_or_else(PoisonError::into_inner) = label.into();
    }

    /// Gets reports of progress of what is called `name`.
    pub(crate) fn watcher(&self, name: &str) -> impl FnMut(ProgressParams) + Send + 'static {
        let (told, label, name) = (self.told.clone(), self.label.clone(), name.to_owned());
        move |report| {
            let shown = bar(&name, report.progress, report.total, report.message.as_deref());
            if let Some(output) = &told {
                crate::session::tell(output, "server", &shown);
            }
            *label.lock().unwrap_or_else(PoisonError::into_inner) = shown;
        }
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        if let Some((output, task)) = self.task.take() {
            task.abort();
            output.draw("");
        }
    }
}

async fn turn(label: Arc<Mutex<String>>, output: Output) {
    let began = Instant::now();
    tokio::time::sleep(PATIENCE).await;
    for frame in FRAMES.iter().cycle() {
        let label = label.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let waited = began.elapsed();
        let words = output.heard.last().filter(|_| waited > WORDS);
        let line = Line { frame, label: &label, words: words.as_deref(), waited };
        if let Some(line) = line.drawn(&output.screen, Output::moving_width()) {
            output.draw(&line);
        }
        tokio::time::sleep(TURN).await;
    }
}

/// What is drawn.
struct Line<'a> {
    frame: &'a str,
    label: &'a str,
    words: Option<&'a str>,
    waited: Duration,
}

impl Line<'_> {
    /// The line as it is now; nothing while somebody is asked on the same one.
    fn drawn(&self, screen: &Screen, room: usize) -> Option<String> {
        let waited = format!(" ({} s)", self.waited.as_secs());
        let label = cut(self.label, room.saturating_sub(2 + waited.len()));
        let line = format!("{} {label}{waited}", self.frame);
        let line = match self.words.map(|words| format!("{line} · {words}")) {
            Some(both) => cut(&both, room).into_owned(),
            None => line,
        };
        (!screen.is_busy()).then_some(line)
    }
}

fn bar(name: &str, progress: f64, total: Option<f64>, message: Option<&str>) -> String {
    let done = match total.filter(|total| *total > 0.0) {
        Some(total) => {
            let part = (progress / total).clamp(0.0, 1.0);
            // In 0..=BAR, as part is in 0..=1.
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            let full = (part * BAR as f64).round() as usize;
            format!("{}{} {:3.0} %", "█".repeat(full), "░".repeat(BAR - full), part * 100.0)
        }
        None => format!("{progress}"),
    };
    let message = message.map(|message| format!(" · {message}")).unwrap_or_default();
    cut(&escape::line(&format!("{name} {done}{message}")), 100).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spinner_keeps_still_while_somebody_is_asked_or_types() {
        let screen = Screen::default();
        let line = Line { frame: "*", label: "x", words: None, waited: Duration::from_secs(1) };
        let drawn = || line.drawn(&screen, 79);
        assert_eq!(drawn().as_deref(), Some("* x (1 s)"));
        let question = screen.question();
        assert_eq!(drawn(), None);
        drop(question);
        screen.set_typing(true);
        assert_eq!(drawn(), None);
        screen.set_typing(false);
        assert!(drawn().is_some());
    }

    #[test]
    fn a_line_that_moves_is_never_wider_than_the_screen() {
        let screen = Screen::default();
        for room in [79, 39, 20, 12] {
            let (label, waited) = ("x".repeat(100), Duration::from_secs(100));
            let wide = |label, words| {
                let line = Line { frame: "*", label, words, waited };
                line.drawn(&screen, room).unwrap().chars().count()
            };
            assert_eq!(wide(&label, None), room);
            assert_eq!(wide(&label, Some("y")), room);
            assert_eq!(wide("x", Some(&label)), room);
        }
    }

    #[test]
    fn progress_is_a_bar_if_the_end_is_known_and_a_number_if_not() {
        let table = [
            (5.0, Some(10.0), Some("half"), "x ████████████░░░░░░░░░░░░  50 % · half"),
            (20.0, Some(10.0), None, "x ████████████████████████ 100 %"),
            (-1.0, Some(10.0), None, "x ░░░░░░░░░░░░░░░░░░░░░░░░   0 %"),
            (7.0, None, None, "x 7"),
            (7.0, Some(0.0), None, "x 7"),
            (f64::NAN, Some(1.0), Some("\x1b"), "x ░░░░░░░░░░░░░░░░░░░░░░░░ NaN % · \\u{1b}"),
        ];
        for (progress, total, message, shown) in table {
            assert_eq!(bar("x", progress, total, message), shown);
        }
    }
}
