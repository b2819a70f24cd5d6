//! The wire where there are no Unix descriptors: Windows. UNTESTED: written without such a machine.
//!
//! Threads over copies of the two standard handles. The handles themselves stay where they are, so
//! a stray `print!` still reaches the wire here. No signals: the peer closes stdin, or ends us.

use std::convert::Infallible;
use std::fmt;
use std::fs::File;
use std::future::pending;
use std::io::{self, Write};
use std::os::windows::io::AsHandle;
use std::task::{Context, Poll};

use super::{ClaimError, Input, Output, Stdio, thread};

/// Copies of the two standard handles. `None`: there is none.
pub(super) struct Wire {
    input: Option<File>,
    output: Option<File>,
}

pub(super) fn move_wire() -> Result<Wire, ClaimError> {
    let input = io::stdin().as_handle().try_clone_to_owned().ok().map(File::from);
    let output = io::stdout().as_handle().try_clone_to_owned().ok().map(File::from);
    Ok(Wire { input, output })
}

impl Wire {
    pub(super) fn open(self) -> io::Result<Stdio> {
        let input = match self.input {
            Some(file) => Input::Thread(thread::ReadHalf::start(file)?),
            None => Input::Closed,
        };
        let output = match self.output {
            Some(file) => Output::Thread(thread::WriteHalf::start(file)?),
            None => Output::Closed,
        };
        Ok(Stdio { input, output })
    }
}

/// Says one line on stderr. A full pipe makes it wait here.
pub(crate) fn say(line: &str) {
    let _ = writeln!(io::stderr(), "taut: {line}");
}

/// No signal exists here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Signal(Infallible);

impl Signal {
    pub(crate) fn number(self) -> i32 {
        match self.0 {}
    }

    pub(crate) fn exit_code(self) -> i32 {
        match self.0 {}
    }
}

impl fmt::Display for Signal {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {}
    }
}

/// Never fires.
pub(crate) struct Signals(());

pub(crate) fn watch() -> io::Result<Signals> {
    Ok(Signals(()))
}

impl Signals {
    pub(crate) fn poll_stopped(&self, _: &mut Context<'_>) -> Poll<Signal> {
        Poll::Pending
    }

    pub(crate) async fn stopped(&self) -> Signal {
        pending().await
    }
}
