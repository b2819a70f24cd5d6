//! The names of the protocol's HTTP headers, and how a value that is no plain text is written in one.
//!
//! Knows names and characters; must not know who sends what when.

/// The revision that a request is written in (HDR-01).
pub(crate) const PROTOCOL_VERSION: &str = "mcp-protocol-version";
/// The session of a legacy connection (SES-01).
pub(crate) const SESSION_ID: &str = "mcp-session-id";
/// The method of a modern request (HDR-04).
pub(crate) const METHOD: &str = "mcp-method";
/// What a modern request names: a tool, a prompt, a resource, a task (HDR-05).
pub(crate) const NAME: &str = "mcp-name";
/// The beginning of the header that repeats an argument of a tool (PAR-01).
pub(crate) const PARAM_PREFIX: &str = "mcp-param-";
/// Where a stream is taken up again (SSE-08).
pub(crate) const LAST_EVENT_ID: &str = "last-event-id";
