//! What the terminal does with keys: as before us, kept for the next line, or as the editor wants it.
//!
//! Knows termios, and that a command can be stopped and go on (Ctrl-Z, `fg`). Must not know what is
//! typed nor what is shown. Switching never throws away what was typed: people paste, and type ahead.

use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::process::{Signal, getpid, kill_process};
use rustix::termios::{
    ControlModes, InputModes, LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr,
    tcgetpgrp, tcsetattr,
};

use crate::processes::place;

/// The terminal at stdin, once it is ours.
#[derive(Debug, Default)]
pub(crate) struct Modes {
    before: Mutex<Option<Termios>>,
}

impl Modes {
    /// Takes the terminal: from now on keys are kept for whoever reads the next line.
    pub(crate) fn take(&self) {
        let mut before = self.lock();
        if before.is_none() {
            *before = tcgetattr(io::stdin()).ok();
        }
        drop(before);
        self.keep_keys();
    }

    /// Nobody reads: keys are kept as they come, and not shown. Ctrl-C is a signal.
    pub(crate) fn keep_keys(&self) {
        self.set(quiet);
    }

    /// Makes the terminal as it was, for good.
    pub(crate) fn give_back(&self) {
        if let Some(before) = self.lock().take() {
            apply(&before);
        }
    }

    /// Stops the process, with the terminal as it was. It goes on with [`go_on`](Self::go_on).
    pub(crate) fn stop(&self) {
        // Without a shell in the same session nobody could wake it again.
        let ours = place(std::process::id());
        let parents = place(std::os::unix::process::parent_id());
        if ours.is_none() || ours.map(|p| p.session) != parents.map(|p| p.session) {
            return;
        }
        self.set(Termios::clone);
        // There is no harm in a signal that does not come.
        let _ = kill_process(getpid(), Signal::STOP);
    }

    /// Goes on after a stop; `typing` if the editor was reading. Says whether the terminal is ours.
    pub(crate) fn go_on(&self, typing: bool) -> bool {
        // In the background the terminal is somebody else's.
        if in_front() != Some(true) {
            return false;
        }
        self.set(if typing { raw } else { quiet })
    }

    fn set(&self, mode: fn(&Termios) -> Termios) -> bool {
        let before = self.lock();
        before.as_ref().map(|before| apply(&mode(before))).is_some()
    }

    fn lock(&self) -> MutexGuard<'_, Option<Termios>> {
        self.before.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether the terminal is for our process group; none if it does not tell.
fn in_front() -> Option<bool> {
    let front = u32::try_from(tcgetpgrp(io::stdin()).ok()?.as_raw_pid()).ok()?;
    Some(place(std::process::id())?.group == front)
}

fn apply(mode: &Termios) {
    // Whoever changes it from the background is stopped, perhaps on the way to the exit.
    if in_front() == Some(false) {
        return;
    }
    // Not Flush, which forgets what was typed. Nothing can be done about a terminal that is gone.
    let _ = tcsetattr(io::stdin(), OptionalActions::Drain, mode);
}

/// No lines, so that the editor gets every key that was pressed; Ctrl-C takes none of them away.
fn quiet(before: &Termios) -> Termios {
    let mut mode = before.clone();
    mode.local_modes.remove(LocalModes::ECHO | LocalModes::ICANON);
    mode.local_modes.insert(LocalModes::NOFLSH);
    one_by_one(&mut mode);
    mode
}

/// As the editor has it while a line is typed.
fn raw(before: &Termios) -> Termios {
    let mut mode = before.clone();
    mode.input_modes.remove(
        InputModes::BRKINT
            | InputModes::ICRNL
            | InputModes::INPCK
            | InputModes::ISTRIP
            | InputModes::IXON,
    );
    mode.control_modes.insert(ControlModes::CS8);
    mode.local_modes
        .remove(LocalModes::ECHO | LocalModes::ICANON | LocalModes::IEXTEN | LocalModes::ISIG);
    one_by_one(&mut mode);
    mode
}

fn one_by_one(mode: &mut Termios) {
    mode.special_codes[SpecialCodeIndex::VMIN] = 1;
    mode.special_codes[SpecialCodeIndex::VTIME] = 0;
}
