//! JSON-RPC.
