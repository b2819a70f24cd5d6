//! Whether a server wants a login, asked as a client without a token asks it.
//!
//! Knows how a connection opens; must not know what follows from a refusal. AUC-02, AUC-11.

use hyper::header::AUTHORIZATION;
use taut::Client;

use crate::client::url::Url;
use crate::client::{Challenge, HttpError, HttpOptions, HttpTransport};

/// What a server says to a client that has no token.
#[derive(Debug)]
pub(super) enum Demand {
    /// It wants a token, and has perhaps said for what and from whom.
    Login(Option<Challenge>),
    /// It serves everyone.
    Nothing,
    /// It answers, and not as a server does: the path may be another, or it is not well.
    Unclear(HttpError),
}

/// Opens a connection without a token, and closes it again.
///
/// # Errors
/// The server cannot be reached.
pub(super) async fn demand(server: &Url, options: &HttpOptions) -> Result<Demand, HttpError> {
    let mut options = options.clone();
    options.authorize = None;
    options.headers.remove(AUTHORIZATION);
    let transport = HttpTransport::new(&server.to_string(), options)?;
    let error = match transport.connect(Client::builder()).await {
        Ok(client) => {
            let _ = client.close().await;
            return Ok(Demand::Nothing);
        }
        Err(error) => error,
    };
    match HttpError::of(&error) {
        Some(HttpError::Unauthorized { status, challenge, .. })
            if *status == 401 || challenge.is_some() =>
        {
            Ok(Demand::Login(challenge.clone()))
        }
        Some(error @ (HttpError::Unreachable { .. } | HttpError::Setting { .. })) => {
            Err(error.clone())
        }
        Some(error) => Ok(Demand::Unclear(error.clone())),
        None => Ok(Demand::Unclear(HttpError::Protocol { why: error.to_string() })),
    }
}
