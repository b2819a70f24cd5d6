//! Taking the wire away from the standard handles of Windows.
//!
//! Knows what becomes of the three handles; `win32.rs` makes the calls. Each half of the wire is driven
//! by a thread: a pipe that the host made can only block. So a reader that vanished is found by the
//! next write (docs/decisions/0013-windows.md).

pub(super) mod watchdog;

use std::fs::{File, OpenOptions};
use std::io;
use std::os::windows::io::{AsHandle, OwnedHandle};

use super::{ClaimError, Input, Output, Stdio};
use crate::threaded;
use crate::win32::{self, Standard};

/// The two ends of the wire on private handles that no child inherits. `None`: it was not open.
pub(super) struct Wire {
    input: Option<OwnedHandle>,
    output: Option<OwnedHandle>,
}

/// Takes the wire away from the standard handles and leaves stand-ins there (S13, S14, S15).
pub(super) fn move_wire() -> Result<Wire, ClaimError> {
    let null = OpenOptions::new()
        .read(true)
        .write(true)
        .open("NUL")
        .map_err(|source| ClaimError::Null { source })?;
    let input = Standard::Input.set_aside();
    let output = Standard::Output.set_aside();
    // A host that merges stderr into stdout leaves no place for words at all.
    let stderr = Standard::Error.set_aside().filter(|stderr| {
        output.as_ref().is_none_or(|wire| !win32::same_pipe(wire.as_handle(), stderr.as_handle()))
    });
    let replaced = match &stderr {
        Some(stderr) => win32::replace(&[
            (Standard::Input, null.as_handle()),
            (Standard::Output, stderr.as_handle()),
        ]),
        None => win32::replace(&[
            (Standard::Input, null.as_handle()),
            (Standard::Output, null.as_handle()),
            (Standard::Error, null.as_handle()),
        ]),
    };
    // Which of them it was makes no difference to anybody: the wire is stdout.
    replaced.map_err(|source| ClaimError::Descriptor { fd: 1, source })?;
    Ok(Wire { input, output })
}

impl Wire {
    /// Starts a thread for each end.
    pub(super) fn open(self) -> io::Result<Stdio> {
        let (input, watched) = match self.input {
            Some(handle) => {
                let (input, ended) = watchdog::watched(File::from(handle));
                (Input::Thread(threaded::ReadHalf::start(input)?), Some(ended))
            }
            None => (Input::Closed, None),
        };
        let output = match self.output {
            Some(handle) => Output::Thread(threaded::WriteHalf::start(File::from(handle))?),
            None => Output::Closed,
        };
        Ok(Stdio { input, output, watched })
    }
}

#[cfg(test)]
mod tests;
