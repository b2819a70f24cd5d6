//! A server at a URL: how connections to it are opened.
//!
//! Knows when to log in and what is remembered between connections; must not know what is said (`carry`).

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};

use taut::transport::MessagePipe;
use taut::types::Era;
use taut::{Client, ClientBuilder};

use super::carry::{Carrier, Refusals};
use super::connector::Tls;
use super::error::HttpError;
use super::http::Http;
use super::options::{HttpOptions, TokenRefusal};
use super::url::Url;

/// How often a login is tried for one connection: once for a token, once for more rights, once more for a
/// server that has changed its mind.
const LOGINS: usize = 3;

/// A server at a URL.
pub struct HttpTransport {
    http: Http,
    url: Url,
    /// The era that the last connection has found (ERH-02).
    known: Mutex<Option<Era>>,
}

/// Opens a connection to the server at `url`.
///
/// # Errors
/// The address or an option cannot be used, or no connection comes of it. [`HttpError::of`] finds what
/// went wrong on HTTP.
pub async fn connect(url: &str, options: HttpOptions) -> taut::Result<Client> {
    let transport = HttpTransport::new(url, options).map_err(HttpError::into_taut)?;
    transport.connect(Client::builder()).await
}

impl HttpTransport {
    /// Prepares for connections to `url`. Nothing is sent yet.
    ///
    /// # Errors
    /// The address or an option cannot be used.
    pub fn new(url: &str, options: HttpOptions) -> Result<Self, HttpError> {
        let url = Url::parse(url)?;
        let tls = if url.is_https() { Tls::Surely } else { Tls::Never };
        let http = Http::new(options, tls)?;
        Ok(Self { http, url, known: Mutex::new(None) })
    }

    /// Opens a connection as `builder` says. If the server wants a login and the options know how, that
    /// happens first, and its time does not count as the server's.
    ///
    /// # Errors
    /// No connection comes of it. [`HttpError::of`] finds what went wrong on HTTP.
    pub async fn connect(&self, builder: ClientBuilder) -> taut::Result<Client> {
        let mut logins = 0;
        loop {
            let mut builder = builder.clone();
            if let Some(era) = *self.known.lock().unwrap_or_else(PoisonError::into_inner) {
                builder = builder.known(era);
            }
            let (pipe, opening) = builder.connect_messages();
            tokio::spawn(self.carry_with(pipe, Refusals::EndTheOpening));
            let error = match opening.await {
                Ok(client) => {
                    let era = client.revision().era();
                    *self.known.lock().unwrap_or_else(PoisonError::into_inner) = Some(era);
                    return Ok(client);
                }
                Err(error) => error,
            };
            logins += 1;
            let Some(authorize) = self.http.options.authorize.as_ref().filter(|_| logins <= LOGINS)
            else {
                return Err(error);
            };
            let Some(HttpError::Unauthorized { status, challenge, .. }) = HttpError::of(&error)
            else {
                return Err(error);
            };
            let token = authorize.token().await.map_err(HttpError::into_taut)?;
            let (status, challenge) = (*status, challenge.as_ref());
            let refusal = TokenRefusal { status, challenge, token: token.as_ref(), may_ask: true };
            let again = authorize.refused(refusal).await;
            if !again.map_err(HttpError::into_taut)? {
                return Err(error);
            }
        }
    }

    /// Carries the messages of `pipe` to the server and back, until the session behind the pipe is over
    /// or the server cannot be used any more. The session then learns why.
    pub fn carry(&self, pipe: MessagePipe) -> impl Future<Output = ()> + Send + 'static {
        self.carry_with(pipe, Refusals::AskAtOnce)
    }

    fn carry_with(
        &self,
        pipe: MessagePipe,
        refusals: Refusals,
    ) -> impl Future<Output = ()> + Send + 'static {
        let (sender, receiver) = pipe.split();
        let (carrier, failures) =
            Carrier::new(self.http.clone(), self.url.clone(), sender, refusals);
        Arc::new(carrier).run(receiver, failures)
    }
}

impl std::fmt::Debug for HttpTransport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpTransport")
            .field("origin", &self.url.origin().to_string())
            .field("options", &self.http.options)
            .finish_non_exhaustive()
    }
}
