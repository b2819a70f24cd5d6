//! The terminal that results, notes, the spinner and the line editor share.
//!
//! Knows whether a question is being asked and whether a line is being typed. Lines that come while a line
//! is typed go through the editor, which redraws its line. Must not know what the lines say.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::gate::{self, Shown};
#[cfg(unix)]
use crate::modes::Modes;

/// What goes on on the terminal.
#[derive(Debug, Default)]
pub(crate) struct Screen {
    /// How many questions are being put or wait for their turn.
    questions: AtomicUsize,
    typing: AtomicBool,
    editor: Mutex<Option<SyncSender<String>>>,
    /// Lines that came while a question was put.
    held: Mutex<Vec<Shown>>,
    /// Lines that the editor could not take, or that were too many to hold.
    lost: AtomicUsize,
    #[cfg(unix)]
    modes: Modes,
}

/// Up, and down again: the editor draws its line anew below what it is given, so this draws it where
/// it is.
#[cfg(unix)]
const AGAIN: &str = "\x1b[A\n";

/// Bytes of lines that are held at most: more than fits on a screen. Somebody may take a long time to answer.
const HELD: usize = 64 << 10;

impl Screen {
    /// Whether something that moves would be in somebody's way.
    pub(crate) fn is_busy(&self) -> bool {
        self.typing.load(Ordering::SeqCst) || self.questions.load(Ordering::SeqCst) > 0
    }

    /// A question is being put, until what is returned is dropped.
    pub(crate) fn question(&self) -> Question<'_> {
        self.questions.fetch_add(1, Ordering::SeqCst);
        Question(self)
    }

    /// A line is being typed from now on, or no longer.
    pub(crate) fn set_typing(&self, typing: bool) {
        self.typing.store(typing, Ordering::SeqCst);
    }

    /// Keeps a line that belongs to no question until all questions are answered: between a question and its
    /// prompt it would be taken for a part of it. Says whether it is kept.
    pub(crate) fn hold(&self, text: &Shown) -> bool {
        if self.questions.load(Ordering::SeqCst) == 0 {
            return false;
        }
        let mut held = lock(&self.held);
        let bytes: usize = held.iter().map(|text| text.as_str().len() + 1).sum();
        if bytes + text.as_str().len() < HELD {
            held.push(text.clone());
        } else {
            self.lost.fetch_add(text.as_str().lines().count(), Ordering::SeqCst);
        }
        true
    }

    /// Shows what was held.
    fn release(&self) {
        for text in std::mem::take(&mut *lock(&self.held)) {
            if !self.tell(&text) {
                gate::tell(&text.line());
            }
        }
    }

    /// Says whom to give lines to that are told while another is typed.
    pub(crate) fn set_editor(&self, editor: SyncSender<String>) {
        *lock(&self.editor) = Some(editor);
    }

    /// Tells something beside a line that is being typed. Says whether it was; if not, nobody types.
    pub(crate) fn tell(&self, text: &Shown) -> bool {
        if !self.typing.load(Ordering::SeqCst) {
            return false;
        }
        let editor = lock(&self.editor);
        let Some(editor) = editor.as_ref() else { return false };
        let lost = self.lost.swap(0, Ordering::SeqCst);
        let gap = if lost == 0 { String::new() } else { format!("({lost} lines left out)\n") };
        // The caller must not wait: it may be the thread of the connection.
        match editor.try_send(format!("{gap}{text}\n")) {
            Ok(()) => true,
            Err(TrySendError::Full(_)) => {
                self.lost.fetch_add(lost + text.as_str().lines().count(), Ordering::SeqCst);
                true
            }
            Err(TrySendError::Disconnected(_)) => false,
        }
    }

    /// Takes the terminal for whoever types, until it is given back: what is typed before anybody asks
    /// is kept, and not shown in the middle of something else.
    pub(crate) fn take(&self) {
        #[cfg(unix)]
        self.modes.take();
    }

    /// The editor has its line, and what follows is kept for the next.
    pub(crate) fn line_is_typed(&self) {
        self.set_typing(false);
        #[cfg(unix)]
        self.modes.keep_keys();
    }

    /// Ctrl-Z, or a signal like it: stops with the terminal as it was.
    #[cfg(unix)]
    pub(crate) fn stop(&self) {
        self.modes.stop();
    }

    /// It goes on: the keys are ours again, and the line that was being typed is drawn.
    #[cfg(unix)]
    pub(crate) fn go_on(&self) {
        let typing = self.typing.load(Ordering::SeqCst);
        if self.modes.go_on(typing)
            && typing
            && let Some(editor) = lock(&self.editor).as_ref()
        {
            // If it is full, the line is drawn anew for what is in it.
            let _ = editor.try_send(AGAIN.to_owned());
        }
    }

    /// Makes the terminal as it was: who typed may still be at it when the command ends.
    pub(crate) fn restore(&self) {
        #[cfg(unix)]
        self.modes.give_back();
        if self.typing.swap(false, Ordering::SeqCst) {
            // What comes next does not belong to the half of a line that stands there.
            gate::tell(&Shown::default().line());
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A question that is being put.
pub(crate) struct Question<'a>(&'a Screen);

impl Drop for Question<'_> {
    fn drop(&mut self) {
        if self.0.questions.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.0.release();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_tells_never_waits_and_what_was_left_out_is_counted() {
        let screen = Screen::default();
        let text = |text| gate::Reader::file().pass(text);
        assert!(!screen.tell(&text("nobody types")));
        let (editor, lines) = std::sync::mpsc::sync_channel(1);
        screen.set_editor(editor);
        screen.set_typing(true);
        let all = ["one", "two", "three\nfour", "five"];
        assert!(all.into_iter().all(|each| screen.tell(&text(each))));
        assert_eq!(lines.recv().unwrap(), "one\n");
        assert!(screen.tell(&text("six")));
        assert_eq!(lines.recv().unwrap(), "(4 lines left out)\nsix\n");
        drop(lines);
        assert!(!screen.tell(&text("the editor is gone")));
    }

    /// D4: a log line never stands between a question and its prompt.
    #[test]
    fn what_belongs_to_no_question_waits_for_its_answer() {
        let screen = Screen::default();
        let text = |text| gate::Reader::file().pass(text);
        assert!(!screen.hold(&text("nobody asks")));
        let (editor, lines) = std::sync::mpsc::sync_channel(4);
        screen.set_editor(editor);
        let question = screen.question();
        assert!(screen.hold(&text("a log line")));
        screen.set_typing(true);
        assert!(screen.hold(&text("another")));
        assert!(lines.try_recv().is_err());
        drop(question);
        assert_eq!(lines.recv().unwrap(), "a log line\n");
        assert_eq!(lines.recv().unwrap(), "another\n");
        assert!(!screen.hold(&text("shown by the editor")));

        // A server that logs and logs meanwhile.
        let _question = screen.question();
        for _ in 0..3 {
            assert!(screen.hold(&gate::Reader::file().pass(&"x".repeat(HELD / 2))));
        }
        assert_eq!((lock(&screen.held).len(), screen.lost.load(Ordering::SeqCst)), (1, 2));
    }
}
