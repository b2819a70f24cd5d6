//! Logging in where a server asks who it is: OAuth 2.1 as the Model Context Protocol uses it.
//!
//! [`Login`] is what [`HttpOptions::authorize`](super::HttpOptions::authorize) takes. It keeps tokens in a
//! [`TokenStore`], refreshes them, and when that does not help asks the user through [`AskUser`]: it gives an
//! address to open, and takes the address that the browser is sent back to, by the listener on this machine
//! or pasted by hand. [`Flow`] is one such login, step by step. A logout in another process
//! ([`TokenStore::forget`]) counts for a program that runs within a second.
//!
//! No token, code or verifier is shown by `Debug`, in a log or in an error. AUC-01 to AUC-12.

mod authorize;
mod client_id;
mod demand;
mod discovery;
mod flow;
mod form;
mod kept;
mod listener;
mod lock;
mod metadata;
mod options;
mod pkce;
mod renew;
mod requests;
mod store;
mod tokens;

pub use authorize::Login;
pub use flow::Flow;
pub use listener::Listener;
pub use options::{AskUser, LoginOptions, LoginRequest};
pub use store::{LoginSummary, StoreError, TokenStore};
