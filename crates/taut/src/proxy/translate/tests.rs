//! A row for each way a message changes between the eras, and the bytes that must not change.
