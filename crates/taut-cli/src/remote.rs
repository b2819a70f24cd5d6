//! Servers at a URL: how they are reached, with which headers and whose tokens.
//!
//! Knows what a build without HTTP says, and what to do where a server wants a login. Must not know what is
//! asked of a server.

use crate::args::Options;
use crate::problem::Problem;
use crate::reach::Reach;

/// Whether a word is a URL, of whatever kind.
pub(crate) fn is_url(word: &str) -> bool {
    word.contains("://")
}

/// The server at `url`. `headers` come from a host's file; those of the command line go before them.
#[cfg(not(feature = "http"))]
pub(crate) fn reach(
    url: &str,
    _headers: &[(String, String)],
    _options: &Options,
) -> Result<Reach, Problem> {
    Err(Problem::Usage {
        what: format!("{} is a URL, and this build has no HTTP", crate::mask::url(url)),
        next: Some("cargo install taut-cli --features http".to_owned()),
    })
}

#[cfg(feature = "http")]
pub(crate) use with_http::{Remote, reach};

#[cfg(feature = "http")]
mod with_http {
    use std::fmt;
    use std::io;
    use std::path::Path;
    use std::sync::Arc;

    use taut::{Client, ClientBuilder, Ending, Error, error::ConnectReason};
    use taut_http::client::{HttpError, HttpOptions, HttpTransport};

    use super::{Options, Problem, Reach};
    use crate::reach::CONNECTING;
    use crate::{mask, secrets};

    /// What the TLS library says of an answer that does not begin as TLS does.
    const NOT_TLS: &str = "InvalidContentType";

    /// Whether the system said that a connection was refused, by its numbers on Linux, macOS and Windows.
    fn is_refused(why: &str) -> bool {
        ["111", "61", "10061"].iter().any(|number| why.ends_with(&format!("(os error {number})")))
    }

    /// A server at a URL.
    #[derive(Clone)]
    pub(crate) struct Remote {
        transport: Arc<HttpTransport>,
        /// The address, without secrets.
        shown: String,
    }

    impl fmt::Debug for Remote {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(&self.shown)
        }
    }

    /// The server at `url`. `headers` come from a host's file; those of the command line go before them.
    pub(crate) fn reach(
        url: &str,
        headers: &[(String, String)],
        options: &Options,
    ) -> Result<Reach, Problem> {
        let http = http_options(headers, &options.header, options.ca_file.as_deref());
        #[cfg(feature = "login")]
        let http = crate::cmd::login::with_kept_tokens(url, http);
        let transport = HttpTransport::new(url, http).map_err(|error| Problem::Usage {
            what: error.to_string(),
            next: Some("an address such as https://example.com/mcp".to_owned()),
        })?;
        Ok(Reach::Http(Remote { transport: Arc::new(transport), shown: mask::url(url) }))
    }

    /// What is sent with each request.
    pub(crate) fn http_options(
        headers: &[(String, String)],
        typed: &[(String, String)],
        ca_file: Option<&Path>,
    ) -> HttpOptions {
        let mut http = HttpOptions::new();
        let is_typed = |name: &str| typed.iter().any(|(typed, _)| typed.eq_ignore_ascii_case(name));
        let kept = headers.iter().filter(|(name, _)| !is_typed(name));
        for (name, value) in kept.chain(typed) {
            secrets::hide(name, value);
            http = http.header(name, value);
        }
        if let Some(path) = ca_file {
            http = http.ca_file(path);
        }
        http
    }

    impl Remote {
        /// Opens a connection.
        pub(crate) async fn open(&self, builder: ClientBuilder) -> taut::Result<Client> {
            let error = match self.transport.connect(builder).await {
                Ok(client) => return Ok(client),
                Err(error) => error,
            };
            // What `taut bridge` says where nothing is.
            if let Error::Connect(failed) = &error
                && let ConnectReason::Refused(refused) = &failed.reason
                && let Some((_, path)) = refused.message.split_once("the endpoint is ")
            {
                let origin = self.shown.splitn(4, '/').take(3).collect::<Vec<_>>().join("/");
                return Err(self.says(&format!("nothing is served here; {origin}{path}")));
            }
            let Some(reason) = HttpError::of(&error) else { return Err(error) };
            #[cfg(feature = "login")]
            if let HttpError::Unauthorized { status: 401, .. } = reason
                && let Some(unusable) = crate::cmd::login::unusable().await
            {
                let reason = reason.to_string();
                let refused = reason.split("; ").next().unwrap_or_default();
                return Err(self.says(&format!("{refused}, and {unusable}")));
            }
            Err(self.failed(reason))
        }

        /// Why there is no connection, and what to do.
        fn failed(&self, reason: &HttpError) -> Error {
            if let HttpError::Unreachable { why, .. } = reason
                && let Some(rest) = self.shown.strip_prefix("https://")
                && why.contains(NOT_TLS)
            {
                return self.says(&format!("this port speaks plain HTTP; http://{rest}"));
            }
            let next = match reason {
                HttpError::Unauthorized { status: 401, .. } if cfg!(feature = "login") => {
                    format!(
                        "; {taut} login {}, or --header \"Authorization: Bearer …\"",
                        self.shown,
                        taut = crate::own::name()
                    )
                }
                HttpError::Unauthorized { .. } => {
                    "; --header \"Authorization: Bearer …\" with a token that may do it".to_owned()
                }
                HttpError::Unreachable { .. } => {
                    "; is it running, and is the address right?".to_owned()
                }
                HttpError::Status { status: 404 | 405, .. } => {
                    "; the path may be another: many servers use /mcp".to_owned()
                }
                HttpError::Login { .. } => {
                    format!("; {taut} login {}", self.shown, taut = crate::own::name())
                }
                _ => String::new(),
            };
            let reason = match reason {
                HttpError::Unreachable { why, .. } if is_refused(why) => {
                    "cannot be reached: nobody listens there".to_owned()
                }
                HttpError::Unreachable { why, .. } => format!("cannot be reached: {why}"),
                // What to do follows by itself.
                HttpError::Unauthorized { status, challenge, words, .. } => {
                    let (challenge, words) = (challenge.clone(), words.clone());
                    HttpError::Unauthorized { status: *status, challenge, words, advice: None }
                        .to_string()
                }
                reason => reason.to_string(),
            };
            self.says(&format!("{}{next}", reason.replace("; ", ", ")))
        }

        fn says(&self, words: &str) -> Error {
            let error = Arc::new(io::Error::other(format!("{}: {words}", self.shown)));
            Error::Ended(Ending::Io { during: CONNECTING, error })
        }
    }

    impl fmt::Display for Remote {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(&self.shown)
        }
    }
}

#[cfg(feature = "login")]
pub(crate) use with_http::http_options;
