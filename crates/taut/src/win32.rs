//! The calls to Windows that have no safe wrapper in `std` or tokio: all of the `unsafe` for Windows.
//!
//! Knows handles, job objects and console events. Must not know what they are used for: `stdio`
//! decides what becomes of the standard handles, `process` what is started and when it ends.
//! Why by hand: docs/decisions/0013-windows.md.
#![allow(unsafe_code, reason = "docs/decisions/0013-windows.md")]

use std::io;
use std::os::windows::io::{AsRawHandle, BorrowedHandle, FromRawHandle, OwnedHandle, RawHandle};
use std::ptr::null_mut;
use std::sync::OnceLock;

use windows_sys::Win32::Foundation::{
    CloseHandle, CompareObjectHandles, DUPLICATE_SAME_ACCESS, DuplicateHandle, FALSE,
    INVALID_HANDLE_VALUE, TRUE,
};
use windows_sys::Win32::Storage::FileSystem::{FILE_TYPE_PIPE, GetFileType};
use windows_sys::Win32::System::Console::{
    CTRL_BREAK_EVENT, CTRL_C_EVENT, GetStdHandle, STD_ERROR_HANDLE, STD_INPUT_HANDLE,
    STD_OUTPUT_HANDLE, SetConsoleCtrlHandler, SetStdHandle,
};
use windows_sys::Win32::System::Threading::GetCurrentProcess;
use windows_sys::core::BOOL;

#[cfg(feature = "client")]
pub(crate) use start::{JobObject, Program, cancel, exit_code, start, wait};

#[cfg(feature = "client")]
mod start;

/// Turns the result of a call into an error if it failed.
fn check(done: BOOL) -> io::Result<()> {
    if done == FALSE { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// A second handle for what `handle` stands for.
fn duplicate(handle: RawHandle, inherit: bool) -> io::Result<OwnedHandle> {
    let mut copy = null_mut();
    let inherit = if inherit { TRUE } else { FALSE };
    // SAFETY: `copy` outlives the call, and a value that is no handle is an error, not more.
    unsafe {
        let us = GetCurrentProcess();
        check(DuplicateHandle(us, handle, us, &mut copy, 0, inherit, DUPLICATE_SAME_ACCESS))?;
        // SAFETY: the call has just made this handle, and nobody else knows it.
        Ok(OwnedHandle::from_raw_handle(copy))
    }
}

/// One of the three standard handles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standard {
    Input,
    Output,
    Error,
}

impl Standard {
    const fn number(self) -> u32 {
        match self {
            Self::Input => STD_INPUT_HANDLE,
            Self::Output => STD_OUTPUT_HANDLE,
            Self::Error => STD_ERROR_HANDLE,
        }
    }

    /// Its value, if there is one. That does not mean that it is open.
    fn value(self) -> Option<RawHandle> {
        // SAFETY: reads one field of the process.
        let value = unsafe { GetStdHandle(self.number()) };
        (!value.is_null() && value != INVALID_HANDLE_VALUE).then_some(value)
    }

    /// A private copy that no child inherits. `None`: it is not open.
    pub(crate) fn set_aside(self) -> Option<OwnedHandle> {
        self.value().and_then(|value| duplicate(value, false).ok())
    }
}

/// Whether both are the same pipe, under one number or two.
pub(crate) fn same_pipe(one: BorrowedHandle<'_>, other: BorrowedHandle<'_>) -> bool {
    let (one, other) = (one.as_raw_handle(), other.as_raw_handle());
    // SAFETY: both are open for as long as they are borrowed, and the calls only look.
    unsafe { GetFileType(one) == FILE_TYPE_PIPE && CompareObjectHandles(one, other) != FALSE }
}

/// How often a copy is made in the hope that it gets a certain number.
const TRIES: usize = 64;

/// Puts copies of other handles in the place of standard handles, for good.
///
/// Each copy gets the number of the handle that it replaces if the system gives it out again, as it
/// does unless another thread is quicker. Then also those are redirected that have noted the number:
/// every C runtime in the process has. If not, the number is left closed, and what is written there
/// goes nowhere. Handles of the slots that are not named stay open.
///
/// The caller has set aside what it still wants to use.
pub(crate) fn replace(stand_ins: &[(Standard, BorrowedHandle<'_>)]) -> io::Result<()> {
    let all = [Standard::Input, Standard::Output, Standard::Error];
    let stays = |slot: &Standard| !stand_ins.iter().any(|(named, _)| named == slot);
    let kept: Vec<_> = all.iter().filter(|slot| stays(slot)).filter_map(|s| s.value()).collect();
    // Copied before anything is closed: a stand-in may be one of those.
    let mut copies = Vec::new();
    for (slot, stand_in) in stand_ins {
        copies.push((*slot, slot.value(), stand_in.try_clone_to_owned()?));
    }
    let mut closed = Vec::new();
    for value in copies.iter().filter_map(|(_, value, _)| *value) {
        if !kept.contains(&value) && !closed.contains(&value) {
            // SAFETY: nobody owns a standard handle: std and the C runtimes only look it up or note its
            // number, and expect that it can be exchanged. A number that was not open is an error.
            unsafe { CloseHandle(value) };
            closed.push(value);
        }
    }
    for (slot, wanted, stand_in) in copies {
        let copy = duplicate_as(stand_in.as_raw_handle(), wanted)?;
        // SAFETY: sets one field of the process. The handle is open and stays so: it is let go of.
        check(unsafe { SetStdHandle(slot.number(), copy.as_raw_handle()) })?;
        std::mem::forget(copy);
    }
    Ok(())
}

/// A copy that children inherit, with the number `wanted` if that can be had.
fn duplicate_as(handle: RawHandle, wanted: Option<RawHandle>) -> io::Result<OwnedHandle> {
    // Kept until the right one is found: a copy that is closed would come again.
    let mut others = Vec::new();
    loop {
        let copy = duplicate(handle, true)?;
        if wanted.is_none_or(|wanted| wanted == copy.as_raw_handle()) {
            return Ok(copy);
        }
        others.push(copy);
        if others.len() == TRIES {
            return Ok(others.swap_remove(0));
        }
    }
}

/// What a console tells the processes that are attached to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConsoleEvent {
    /// Ctrl-C or Ctrl-Break.
    Interrupt,
    /// The window is closed, the user logs off, or the system shuts down. The process is ended when
    /// the handler returns.
    Close,
}

impl ConsoleEvent {
    const fn of(number: u32) -> Self {
        match number {
            CTRL_C_EVENT | CTRL_BREAK_EVENT => Self::Interrupt,
            _ => Self::Close,
        }
    }
}

/// Whether it took the event. If not, the system does what it does by default: it ends the process.
type ConsoleHandler = fn(ConsoleEvent) -> bool;

static HANDLER: OnceLock<ConsoleHandler> = OnceLock::new();

/// Calls `handler` for each console event, in a thread that the system starts for it.
///
/// There is one handler for the life of the process: the first.
pub(crate) fn on_console_event(handler: ConsoleHandler) -> io::Result<()> {
    if HANDLER.set(handler).is_err() {
        return Ok(());
    }
    // SAFETY: the function stays where it is for the life of the process, and does not unwind: a
    // panic that reaches its edge ends the process.
    check(unsafe { SetConsoleCtrlHandler(Some(dispatch), TRUE) })
}

extern "system" fn dispatch(event: u32) -> BOOL {
    let taken = HANDLER.get().is_some_and(|handler| handler(ConsoleEvent::of(event)));
    if taken { TRUE } else { FALSE }
}

/// What only tests do.
#[cfg(test)]
pub(crate) mod test {
    use super::*;
    use std::ffi::{CStr, c_char, c_int, c_void};
    use std::os::windows::io::AsHandle;

    use windows_sys::Win32::System::Console::{
        CTRL_CLOSE_EVENT, CTRL_LOGOFF_EVENT, CTRL_SHUTDOWN_EVENT, GenerateConsoleCtrlEvent,
    };

    unsafe extern "C" {
        fn puts(text: *const c_char) -> c_int;
        fn fflush(file: *mut c_void) -> c_int;
    }

    /// Prints a line as a C library does.
    pub(crate) fn print_from_c(text: &CStr) {
        // SAFETY: the text ends with a zero, and null means every open file.
        unsafe {
            puts(text.as_ptr());
            fflush(null_mut());
        }
    }

    /// Presses Ctrl-C on our own console.
    pub(crate) fn press_ctrl_c() {
        // SAFETY: takes two numbers.
        check(unsafe { GenerateConsoleCtrlEvent(CTRL_C_EVENT, 0) }).unwrap();
    }

    /// Wine can press Ctrl-C only, so the others are shown here and with the handler's own function.
    #[test]
    fn both_keys_are_an_interrupt_and_close_logoff_and_shutdown_are_an_end() {
        for key in [CTRL_C_EVENT, CTRL_BREAK_EVENT] {
            assert_eq!(ConsoleEvent::of(key), ConsoleEvent::Interrupt);
        }
        for end in [CTRL_CLOSE_EVENT, CTRL_LOGOFF_EVENT, CTRL_SHUTDOWN_EVENT] {
            assert_eq!(ConsoleEvent::of(end), ConsoleEvent::Close);
        }
    }

    #[test]
    fn a_copy_stands_for_the_same_thing_under_whatever_number_it_gets() {
        let (reader, writer) = io::pipe().unwrap();
        let wanted = duplicate(reader.as_raw_handle(), false).unwrap().as_raw_handle();
        // By now the number is free again, or another test has it.
        let copy = duplicate_as(writer.as_raw_handle(), Some(wanted)).unwrap();
        assert!(same_pipe(copy.as_handle(), writer.as_handle()));
        assert!(!same_pipe(copy.as_handle(), reader.as_handle()));
    }
}
