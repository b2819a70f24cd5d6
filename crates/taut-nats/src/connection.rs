//! How a broker is reached, and what to say if it is not.
//!
//! Knows options, the state of the connection and the words for its failures; must not know what travels.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_nats::client::PublishError;
use async_nats::{ConnectErrorKind, Event, Subject};
use bytes::Bytes;
use futures_util::FutureExt;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::frame::{Frame, part_size};

/// Where a broker is looked for unless told otherwise.
const DEFAULT_URL: &str = "nats://127.0.0.1:4222";

/// How many messages of a subscription may wait to be taken; the library drops more. It counts messages, not bytes: four
/// for each of the 16,384 calls that an edge may have under way.
const QUEUED: usize = 65_536;

/// Why something did not work, in words for a person that say what to do.
#[derive(Clone, Debug)]
pub struct NatsError(String);

impl NatsError {
    pub(crate) fn new(words: impl Into<String>) -> Self {
        Self(words.into())
    }
}

impl fmt::Display for NatsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for NatsError {}

/// How a broker is reached: addresses, credentials, certificates.
#[derive(Clone, Debug, Default)]
pub struct ConnectOptions {
    url: Option<String>,
    credentials: Option<PathBuf>,
    authorities: Option<PathBuf>,
    certificate: Option<(PathBuf, PathBuf)>,
    name: Option<String>,
}

impl ConnectOptions {
    /// The broker on this machine, without credentials.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the address: `nats://HOST:PORT` or `tls://HOST:PORT`, with `USER:PASSWORD@` before the host if
    /// the broker wants it. Several nodes of a cluster are separated by commas.
    #[must_use]
    pub fn url(mut self, url: impl Into<String>) -> Self {
        self.url = Some(url.into());
        self
    }

    /// Sets the file with the credentials, as `nsc` and `nats` write it.
    #[must_use]
    pub fn credentials(mut self, file: impl Into<PathBuf>) -> Self {
        self.credentials = Some(file.into());
        self
    }

    /// Trusts the authorities in this file of PEM as well.
    #[must_use]
    pub fn authorities(mut self, file: impl Into<PathBuf>) -> Self {
        self.authorities = Some(file.into());
        self
    }

    /// Shows the broker this certificate, with its key; both files of PEM.
    #[must_use]
    pub fn certificate(mut self, certificate: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        self.certificate = Some((certificate.into(), key.into()));
        self
    }

    /// Sets the name that the broker's own tools show for this connection.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Connects. A connection that is lost later is opened again, for as long as it takes.
    ///
    /// # Errors
    /// There is no connection; the words say why and what to try.
    pub async fn connect(self) -> Result<Connection, NatsError> {
        let url = self.url.unwrap_or_else(|| DEFAULT_URL.to_owned());
        let shown = without_secrets(&url);
        let addresses: Vec<async_nats::ServerAddr> = url
            .split(',')
            .map(|address| address.trim().parse())
            .collect::<Result<_, _>>()
            .map_err(|error| {
                NatsError(format!(
                    "{shown:?} is no address of a NATS broker: {error}; it looks like nats://HOST:4222"
                ))
            })?;
        // Nobody looks at it before the connection is there.
        let link = Link { connected: true, reopened: None, lost: None };
        let link = Arc::new(watch::Sender::new(link));
        let told = link.clone();
        let mut options = async_nats::ConnectOptions::new()
            .name(self.name.as_deref().unwrap_or("taut"))
            .max_reconnects(None)
            .subscription_capacity(QUEUED)
            // Subjects are made of words that were looked at, or came from the broker.
            .skip_subject_validation(true)
            .connection_timeout(Duration::from_secs(5))
            .ping_interval(Duration::from_secs(10))
            .reconnect_delay_callback(|attempt| {
                let attempt = u32::try_from(attempt).unwrap_or(u32::MAX).min(5);
                Duration::from_millis(50 << attempt)
            })
            .event_callback(move |event| {
                note(&told, &event);
                async {}
            });
        // async-nats does not read them from the address by itself.
        let named = addresses.iter().find_map(|one| Some((one.username()?, one.password())));
        if let Some((user, password)) = named {
            let user = user.to_owned();
            options = match password {
                Some(password) => options.user_and_password(user, password.to_owned()),
                // One word before the @ is a token.
                None => options.token(user),
            };
        }
        if let Some(file) = &self.credentials {
            options = options.credentials_file(file).await.map_err(|error| {
                NatsError(format!(
                    "the credentials in {} cannot be used: {error}; `nsc generate creds` writes such a file",
                    file.display()
                ))
            })?;
        }
        for file in self.authorities.iter().chain(self.certificate.iter().flat_map(|(c, k)| [c, k]))
        {
            // async-nats says only "TLS error" for a missing file.
            std::fs::File::open(file).map_err(|error| {
                NatsError(format!("{} cannot be read: {error}", file.display()))
            })?;
        }
        if let Some(file) = self.authorities {
            options = options.add_root_certificates(file);
        }
        if let Some((certificate, key)) = self.certificate {
            options = options.add_client_certificate(certificate, key);
        }
        let client = options.connect(addresses).await.map_err(|error| failed(&error, &shown))?;
        Ok(Connection { client, link, shown: shown.into() })
    }
}

/// What is known of the connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    pub(crate) connected: bool,
    /// When it was opened again for the last time.
    pub(crate) reopened: Option<Instant>,
    /// When it was lost for the last time.
    pub(crate) lost: Option<Instant>,
}

fn note(link: &watch::Sender<Link>, event: &Event) {
    match event {
        Event::Connected => link.send_modify(|link| {
            if !link.connected {
                link.reopened = Some(Instant::now());
            }
            link.connected = true;
        }),
        Event::Disconnected | Event::Closed => {
            tracing::warn!("lost the connection to the broker; it is opened again by itself");
            link.send_modify(|link| {
                if link.connected {
                    link.lost = Some(Instant::now());
                }
                link.connected = false;
            });
        }
        Event::SlowConsumer(_) => tracing::warn!("messages came faster than they were taken"),
        Event::ServerError(error) => tracing::warn!("the broker says: {error}"),
        Event::ClientError(error) => tracing::warn!("no connection to the broker: {error}"),
        Event::LameDuckMode | Event::Draining => {}
    }
}

/// A connection to a broker. Clones are the same connection.
#[derive(Clone)]
pub struct Connection {
    client: async_nats::Client,
    link: Arc<watch::Sender<Link>>,
    shown: Arc<str>,
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Connection").field(&self.shown).finish()
    }
}

impl Connection {
    /// The address of the broker, without secrets.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.shown
    }

    /// Whether there is a connection now. One that is lost is opened again by itself.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.link().connected
    }

    pub(crate) fn client(&self) -> &async_nats::Client {
        &self.client
    }

    /// How much of a message may travel at once.
    pub(crate) fn part_size(&self) -> usize {
        part_size(self.client.max_payload())
    }

    pub(crate) fn link(&self) -> Link {
        *self.link.borrow()
    }

    /// Waits until there is a connection.
    pub(crate) async fn connected(&self) {
        let mut link = self.link.subscribe();
        // The sender lives as long as this.
        let _ = link.wait_for(|link| link.connected).await;
    }

    /// Sends a message. It may be lost if the connection breaks; who sends waits for an answer.
    pub(crate) async fn send(&self, subject: &Subject, reply: Option<&Subject>, frame: Frame) {
        if frame.is_plain() {
            return self.publish(subject, reply, &frame.payload).await;
        }
        let (subject, headers) = (subject.clone(), frame.headers());
        noted(match reply.cloned() {
            Some(reply) => {
                let client = &self.client;
                client.publish_with_reply_and_headers(subject, reply, headers, frame.payload).await
            }
            None => self.client.publish_with_headers(subject, headers, frame.payload).await,
        });
    }

    /// Sends a message if it can be taken at once, and otherwise not.
    pub(crate) fn send_now(&self, subject: &Subject, reply: &Subject, frame: Frame) {
        // As in `publish_now`.
        let sent = tokio::task::unconstrained(self.send(subject, Some(reply), frame));
        let _ = sent.now_or_never();
    }

    /// Sends a message without headers if it can be taken at once. Says whether it was.
    pub(crate) fn publish_now(
        &self,
        subject: &Subject,
        reply: Option<&Subject>,
        json: &Bytes,
    ) -> bool {
        // Outside tokio's budget for tasks: with the budget spent there would seem to be no room.
        tokio::task::unconstrained(self.publish(subject, reply, json)).now_or_never().is_some()
    }

    /// Sends a message without headers.
    pub(crate) async fn publish(&self, subject: &Subject, reply: Option<&Subject>, json: &Bytes) {
        let (subject, json) = (subject.clone(), json.clone());
        noted(match reply.cloned() {
            Some(reply) => self.client.publish_with_reply(subject, reply, json).await,
            None => self.client.publish(subject, json).await,
        });
    }

    /// Waits until everything sent has left this process, at most for `limit`.
    pub(crate) async fn flush(&self, limit: Duration) {
        let _ = tokio::time::timeout(limit, self.client.flush()).await;
    }
}

/// A message that was not sent is missed by who waits for an answer.
fn noted(sent: Result<(), PublishError>) {
    if let Err(error) = sent {
        tracing::warn!("a message was not sent: {error}");
    }
}

/// An address as it may be shown.
fn without_secrets(url: &str) -> String {
    let one = |address: &str| match address.split_once("://") {
        Some((scheme, rest)) => {
            format!("{scheme}://{}", rest.rsplit_once('@').map_or(rest, |(_, host)| host))
        }
        None => address.rsplit_once('@').map_or(address, |(_, host)| host).to_owned(),
    };
    url.split(',').map(|address| one(address.trim())).collect::<Vec<_>>().join(",")
}

/// Whether a connection failed because of certificates. async-nats says so only if it could not even begin; the TLS library
/// tells everything else as bytes that are not valid.
fn is_tls(error: &async_nats::ConnectError) -> bool {
    let mut causes =
        std::iter::successors(std::error::Error::source(error), |cause| cause.source());
    let invalid = |cause: &std::io::Error| cause.kind() == std::io::ErrorKind::InvalidData;
    error.kind() == ConnectErrorKind::Tls
        || causes.any(|cause| cause.downcast_ref::<std::io::Error>().is_some_and(invalid))
}

fn failed(error: &async_nats::ConnectError, url: &str) -> NatsError {
    let cause = std::error::Error::source(error).map(ToString::to_string).unwrap_or_default();
    NatsError(match error.kind() {
        _ if is_tls(error) => format!(
            "no secure connection to {url} ({cause}); check that the broker speaks TLS, give its authority with --tls-ca FILE, and a certificate with --tls-cert FILE if it wants one"
        ),
        ConnectErrorKind::Authentication | ConnectErrorKind::AuthorizationViolation => format!(
            "the broker at {url} refuses these credentials; give others with --creds FILE or as nats://USER:PASSWORD@HOST"
        ),
        ConnectErrorKind::Dns | ConnectErrorKind::ServerParse => {
            format!("the address {url} leads nowhere ({error}); check the host in --nats URL")
        }
        ConnectErrorKind::TimedOut => {
            format!("no answer from {url} within 5 s; check that a NATS broker listens there")
        }
        _ => format!(
            "no NATS broker answers at {url} ({}); start one with `nats-server`, or give its address with --nats URL",
            if cause.is_empty() { error.to_string() } else { cause }
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::without_secrets;

    #[test]
    fn secrets_are_not_shown() {
        assert_eq!(without_secrets("nats://u:p@h:1, tls://t@g"), "nats://h:1,tls://g");
        assert_eq!(without_secrets("localhost:4222"), "localhost:4222");
        assert_eq!(without_secrets("u:p@h"), "h");
    }
}
