//! The line editor, in a thread of its own, for the shell and for questions of a server.
//!
//! Only one line is typed at a time. The editor cannot be interrupted: if the caller no longer waits for a
//! line, the next one waits until the person has finished it. Must not know what the lines mean.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};

use rustyline::completion::{Completer, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::Validator;
use rustyline::{
    Behavior, Cmd, CompletionType, ConditionalEventHandler, Config, Context, Editor, Event,
    EventContext, EventHandler, ExternalPrinter as _, Helper, KeyCode, KeyEvent, Modifiers,
};
use tokio::sync::{Mutex, MutexGuard, oneshot};

use crate::gate::Reader;
use crate::screen::{Question, Screen};
#[cfg(unix)]
use crate::signals::Signal;

/// Lines of history that are kept: a year of somebody who tries a server now and then.
const HISTORY: usize = 1_000;

/// Lines that wait to be shown beside the one that is typed at most: more than anybody reads.
const WAITING: usize = 1_024;

/// What stands in place of what was typed so far: from where on, and which words fit there.
pub(crate) type Complete = Arc<dyn Fn(&str, usize) -> (usize, Vec<String>) + Send + Sync>;

/// A line that somebody is to type.
#[derive(Clone, Default)]
pub(crate) struct Line {
    /// What stands before it, painted.
    pub(crate) prompt: String,
    pub(crate) complete: Option<Complete>,
    /// Whether it is remembered, and can be found again with the arrow keys.
    pub(crate) remembered: bool,
}

/// What came of it.
#[derive(Debug)]
pub(crate) enum Typed {
    Line(String),
    /// Ctrl-C.
    Interrupted,
    /// Ctrl-D, or the terminal is gone.
    End,
}

/// The way to the editor's thread.
pub(crate) struct Desk {
    screen: Arc<Screen>,
    wanted: Sender<Wanted>,
    turn: Mutex<()>,
}

struct Wanted {
    line: Line,
    reply: oneshot::Sender<Typed>,
}

/// The right to put a question, with all of its lines.
pub(crate) struct Turn<'a> {
    _turn: MutexGuard<'a, ()>,
    _question: Question<'a>,
}

impl Desk {
    /// Starts the editor. `history` is the file of lines that are remembered.
    pub(crate) fn open(screen: Arc<Screen>, history: Option<PathBuf>) -> Self {
        // As the editor judges it. Others have whole lines, and show them as they are typed.
        let term = std::env::var("TERM").unwrap_or_default();
        let edits = !["dumb", "cons25", "emacs"].contains(&term.to_lowercase().as_str());
        if edits {
            screen.take();
            #[cfg(unix)]
            follow_stops(screen.clone());
        }
        let (wanted, lines) = mpsc::channel();
        let shared = screen.clone();
        // It ends with the process: a read from a terminal cannot be called off.
        std::thread::spawn(move || edit(&shared, history, &lines));
        Self { screen, wanted, turn: Mutex::new(()) }
    }

    /// Waits until no other question is being asked.
    pub(crate) async fn turn(&self) -> Turn<'_> {
        let question = self.screen.question();
        Turn { _turn: self.turn.lock().await, _question: question }
    }

    pub(crate) async fn read(&self, line: Line) -> Typed {
        let (reply, typed) = oneshot::channel();
        // Before it is asked for, so that nothing is drawn in between.
        self.screen.set_typing(true);
        if self.wanted.send(Wanted { line, reply }).is_err() {
            self.screen.set_typing(false);
            return Typed::End;
        }
        typed.await.unwrap_or(Typed::End)
    }
}

/// Gives the terminal back while the process is stopped, and takes it when it goes on.
#[cfg(unix)]
fn follow_stops(screen: Arc<Screen>) {
    use signal_hook::consts::{SIGCONT, SIGTSTP};
    // Without, it stops as any other process does.
    let (Ok(stops), Ok(wakes)) = (Signal::new(SIGTSTP), Signal::new(SIGCONT)) else { return };
    tokio::spawn(async move {
        loop {
            tokio::select! {
                () = stops.next() => screen.stop(),
                () = wakes.next() => screen.go_on(),
            }
        }
    });
}

/// Ctrl-Z in the middle of a line. The editor would not wait for the stop, which comes when it likes
/// where there is more than one thread.
struct Stop;

impl ConditionalEventHandler for Stop {
    fn handle(&self, _: &Event, _: u16, _: bool, _: &EventContext<'_>) -> Option<Cmd> {
        // There is no harm in a signal that does not come.
        #[cfg(unix)]
        let _ = rustix::process::kill_current_process_group(rustix::process::Signal::TSTP);
        Some(Cmd::Noop)
    }
}

type Lines = Editor<Words, FileHistory>;

/// The editor's thread.
fn edit(screen: &Screen, path: Option<PathBuf>, wanted: &Receiver<Wanted>) {
    let Some(mut editor) = editor(screen) else {
        screen.line_is_typed();
        return;
    };
    if let Some(path) = &path {
        // There is none on the first day.
        let _ = editor.load_history(path);
    }
    let colours = Reader::of_stderr();
    while let Ok(Wanted { line, reply }) = wanted.recv() {
        let mut parked = FileHistory::new();
        if !line.remembered {
            // The arrow keys find no commands in the middle of a form.
            std::mem::swap(editor.history_mut(), &mut parked);
        }
        if let Some(words) = editor.helper_mut() {
            words.0 = line.complete;
        }
        // As it is measured, and as it is shown.
        let prompt = (PLAIN.pass(&line.prompt), colours.pass(&line.prompt));
        let typed = editor.readline(&(prompt.0.as_str(), prompt.1.as_str()));
        screen.line_is_typed();
        if !line.remembered {
            std::mem::swap(editor.history_mut(), &mut parked);
        }
        let typed = match typed {
            Ok(text) => Typed::Line(text),
            Err(ReadlineError::Interrupted) => Typed::Interrupted,
            Err(_) => Typed::End,
        };
        if let (Typed::Line(text), true) = (&typed, line.remembered) {
            remember(&mut editor, text, path.as_ref());
        }
        // The caller may have stopped waiting.
        let _ = reply.send(typed);
    }
}

fn editor(screen: &Screen) -> Option<Lines> {
    let config = Config::builder()
        .max_history_size(HISTORY)
        .ok()?
        .history_ignore_dups(true)
        .ok()?
        // A line that begins with a space is not remembered, as in other shells.
        .history_ignore_space(true)
        .completion_type(CompletionType::List)
        // A result may go elsewhere; who types sits at the terminal.
        .behavior(Behavior::PreferTerm)
        // Several lines that are pasted are several commands.
        .bracketed_paste(false)
        .build();
    let mut editor = Lines::with_config(config).ok()?;
    editor.set_helper(Some(Words(None)));
    editor.bind_sequence(KeyEvent::ctrl('Z'), EventHandler::Conditional(Box::new(Stop)));
    // From a terminal that was not asked for brackets: what is between them is typed as ever.
    for bracket in [KeyCode::BracketedPasteStart, KeyCode::BracketedPasteEnd] {
        editor.bind_sequence(KeyEvent(bracket, Modifiers::NONE), Cmd::Noop);
    }
    if let Ok(mut printer) = editor.create_external_printer() {
        let (tell, told) = mpsc::sync_channel::<String>(WAITING);
        screen.set_editor(tell);
        // In a thread of its own, because the editor takes a line only when it is ready.
        std::thread::spawn(move || {
            while let Ok(text) = told.recv() {
                let _ = printer.print(text);
            }
        });
    }
    Some(editor)
}

fn remember(editor: &mut Lines, text: &str, path: Option<&PathBuf>) {
    let text = text.trim_end();
    if text.trim().is_empty() || !editor.add_history_entry(text).unwrap_or(false) {
        return;
    }
    if let Some(path) = path {
        // A history that cannot be written does not stop the shell.
        let _ = editor.append_history(path);
    }
}

/// The editor's terminal without colours.
const PLAIN: Reader = Reader { terminal: true, colour: false };

/// The words that fit where the cursor stands.
struct Words(Option<Complete>);

impl Completer for Words {
    type Candidate = Pair;

    fn complete(
        &self,
        line: &str,
        pos: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<Pair>)> {
        let Some(complete) = &self.0 else { return Ok((pos, Vec::new())) };
        let (start, words) = complete(line, pos);
        // What a terminal cannot show as it is cannot be typed either.
        let words = words.into_iter().filter(|word| PLAIN.pass(word).as_str() == word);
        let pair = |word: String| Pair { display: word.trim_end().to_owned(), replacement: word };
        Ok((start, words.map(pair).collect()))
    }
}

impl Hinter for Words {
    type Hint = String;
}
impl Highlighter for Words {}
impl Validator for Words {}
impl Helper for Words {}
