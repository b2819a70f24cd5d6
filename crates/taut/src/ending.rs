//! How a connection ended: every ending has a reason that a person can read.

use std::io;
use std::sync::Arc;

worded! {
    /// Why a connection is over.
    #[derive(Clone, Debug)]
    #[non_exhaustive]
    pub enum Ending {
        /// The other side closed its end, and everything it had asked was answered.
        Eof = "the other side closed the connection",
        /// The other side closed its end; some of what it had asked took longer than the drain limit.
        DrainTimedOut {
            /// How many requests were left unanswered.
            unanswered: usize,
        } =
            "the other side closed the connection; {unanswered} requests were still unanswered at \
             the drain limit",
        /// Nobody reads what we write any more.
        ReaderGone = "nobody reads our output any more",
        /// A signal asked us to stop.
        Signal(signal: i32) = "stopped by signal {signal}",
        /// On a socket: what came is no message in the framing that the connection began with.
        Refused =
            "refused: what came is no JSON-RPC message, or is framed in another way than the \
             first",
        /// On a socket: a message had begun and did not end in time, or there was no room for it.
        Unfinished = "a message had begun and did not end in time, or there was no room for it",
        /// We closed it ourselves.
        Closed = "closed by this side",
        /// The other side has read nothing for so long that its answers filled their bound.
        Stuck {
            /// How many bytes were waiting.
            bytes: usize,
        } = "the other side reads nothing: {bytes} bytes of output were waiting",
        /// Reading or writing failed.
        Io {
            /// What was being done.
            during: &'static str,
            /// What the system said.
            error: Arc<io::Error>,
        } = "{during} failed: {error}",
    }
}
