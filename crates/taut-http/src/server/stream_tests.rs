//! A stream by itself.
