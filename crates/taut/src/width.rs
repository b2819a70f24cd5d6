//! How much a pipe holds, and how it comes to hold more.
//!
//! Knows pipes and nothing of what goes through them. A message that is longer than its pipe changes
//! hands in as many pieces, and each is a sleep and a wake-up on both sides: a megabyte through the
//! usual pipe takes longer to hand over than to read and to write. So a pipe is made wider when such a
//! message has shown, not before: the kernel counts what all pipes of a user may hold, and gives
//! who has used that up narrow ones.

use std::os::fd::AsFd;

/// How many bytes a pipe holds by default.
const USUAL: usize = 64 << 10;

/// How many bytes it holds once it is wide. A larger pipe would gain little, and would count towards the
/// user's limit.
#[cfg(all(any(target_os = "linux", target_os = "android"), not(taut_portable)))]
const WIDE: usize = 512 << 10;

/// One end of a pipe, as far as its width goes.
#[derive(Debug, PartialEq)]
pub(crate) enum Width {
    /// Nothing has shown that it is too narrow.
    Usual,
    /// Something has.
    Narrow,
    /// It stays as it is.
    Settled,
}

impl Width {
    /// So many bytes are moved at once, or are to be.
    #[inline]
    pub(crate) fn note(&mut self, bytes: usize) {
        if bytes >= USUAL && *self == Self::Usual {
            *self = Self::Narrow;
        }
    }

    /// Widens the pipe if it is too narrow.
    ///
    /// Must not be called while a writer may sleep because the pipe is full: kernels before 6.8 may wake it
    /// too early, while the pipe is still full, and then never again. So a reader calls this when there is
    /// nothing to read. A writer may call it at any time if it is the only writer.
    #[inline]
    pub(crate) fn settle(&mut self, pipe: impl AsFd) {
        if *self == Self::Narrow {
            *self = Self::Settled;
            widen(pipe);
        }
    }
}

#[cfg(all(any(target_os = "linux", target_os = "android"), not(taut_portable)))]
fn widen(pipe: impl AsFd) {
    use rustix::pipe::{fcntl_getpipe_size, fcntl_setpipe_size};
    // Another size was chosen by somebody on purpose. If the limit is reached, the pipe stays as it is.
    if fcntl_getpipe_size(&pipe) == Ok(USUAL) {
        let _ = fcntl_setpipe_size(&pipe, WIDE);
    }
}

/// Elsewhere the kernel decides by itself.
#[cfg(not(all(any(target_os = "linux", target_os = "android"), not(taut_portable))))]
fn widen(_: impl AsFd) {}

// About Linux itself: only its pipes can be widened.
#[cfg(all(test, target_os = "linux", not(taut_portable)))]
mod tests {
    use rustix::pipe::{fcntl_getpipe_size, fcntl_setpipe_size, pipe};

    use super::*;

    #[test]
    fn a_pipe_is_widened_once_something_did_not_fit_and_for_nothing_less() {
        let (reader, writer) = pipe().unwrap();
        let mut width = Width::Usual;
        width.note(USUAL - 1);
        width.settle(&writer);
        assert_eq!(fcntl_getpipe_size(&reader), Ok(USUAL));
        width.note(USUAL);
        assert_eq!(fcntl_getpipe_size(&reader), Ok(USUAL));
        width.settle(&writer);
        assert_eq!(fcntl_getpipe_size(&reader), Ok(WIDE));
    }

    #[test]
    fn a_width_that_somebody_has_chosen_stays() {
        for chosen in [4 << 10, 1 << 20] {
            let (reader, _writer) = pipe().unwrap();
            fcntl_setpipe_size(&reader, chosen).unwrap();
            Width::Narrow.settle(&reader);
            assert_eq!(fcntl_getpipe_size(&reader), Ok(chosen));
        }
    }
}
