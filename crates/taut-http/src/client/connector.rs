//! How a TCP connection to a server comes about: straight or through a proxy, with TLS or without.
//!
//! Knows names, proxies and certificates; must not know what is said over the connection.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::Uri;
use hyper::header::HeaderValue;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tower_service::Service;

use super::error::{HttpError, causes};
use super::options::{HttpOptions, Proxies};
use super::url::is_loopback;

type BoxError = Box<dyn std::error::Error + Send + Sync>;
type Connecting<T> = Pin<Box<dyn Future<Output = Result<T, BoxError>> + Send>>;

/// Dead peers are found out within a few minutes, however long a stream is silent.
const KEEPALIVE: Duration = Duration::from_secs(60);

/// The TCP part: straight to the server, or through the proxy that the environment names.
#[derive(Clone)]
pub(crate) struct Dialer {
    http: HttpConnector,
    proxies: Option<Arc<Matcher>>,
    /// Whether requests to this machine pass a proxy as well.
    for_loopback: bool,
}

impl Dialer {
    fn new(options: &HttpOptions) -> Self {
        let mut http = HttpConnector::new();
        http.enforce_http(false);
        http.set_nodelay(true);
        http.set_keepalive(Some(KEEPALIVE));
        http.set_connect_timeout(Some(options.connect_timeout));
        let proxies = match &options.proxies {
            Proxies::Environment => Some(Matcher::from_env()),
            Proxies::Given(url) => Some(Matcher::builder().all(url.reveal()).build()),
            Proxies::None => None,
        };
        let proxies = proxies.map(Arc::new);
        // A proxy of the environment is for the network. It would get the tokens of servers on this
        // machine, and could not reach them.
        let for_loopback = matches!(options.proxies, Proxies::Given(_));
        Self { http, proxies, for_loopback }
    }

    /// The proxy that a request passes.
    fn proxy(&self, uri: &Uri) -> Option<Intercept> {
        let proxies = self.proxies.as_ref()?;
        if !self.for_loopback && uri.host().is_some_and(is_loopback) {
            return None;
        }
        proxies.intercept(uri)
    }

    /// What a proxy wants to see on each plain request that passes it.
    pub(crate) fn proxy_authorization(&self, uri: &Uri) -> Option<HeaderValue> {
        let plain = uri.scheme_str() == Some("http");
        self.proxy(uri).filter(|_| plain)?.basic_auth().cloned()
    }
}

impl Service<Uri> for Dialer {
    type Response = Dialed;
    type Error = BoxError;
    type Future = Connecting<Dialed>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.http.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let mut http = self.http.clone();
        let proxy = self.proxy(&uri);
        Box::pin(async move {
            let Some(proxy) = proxy else {
                return Ok(Dialed { stream: http.call(uri).await?, by_proxy: false });
            };
            if proxy.uri().scheme_str() != Some("http") {
                let host = proxy.uri().host().unwrap_or_default();
                return Err(format!("the proxy {host} has to be given as http://").into());
            }
            if uri.scheme_str() == Some("http") {
                let stream = http.call(proxy.uri().clone()).await?;
                return Ok(Dialed { stream, by_proxy: true });
            }
            let mut tunnel = Tunnel::new(proxy.uri().clone(), http);
            if let Some(value) = proxy.basic_auth() {
                tunnel = tunnel.with_auth(value.clone());
            }
            let stream = tunnel.call(uri).await;
            let stream = stream.map_err(|error| format!("the proxy: {}", causes(&error)))?;
            Ok(Dialed { stream, by_proxy: false })
        })
    }
}

/// A TCP connection, and whether requests on it have to name the whole address.
pub(crate) struct Dialed {
    stream: TokioIo<TcpStream>,
    by_proxy: bool,
}

impl Connection for Dialed {
    fn connected(&self) -> Connected {
        self.stream.connected().proxy(self.by_proxy)
    }
}

impl hyper::rt::Read for Dialed {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: hyper::rt::ReadBufCursor<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl hyper::rt::Write for Dialed {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(feature = "tls")]
type Secured = hyper_rustls::HttpsConnector<Dialer>;
#[cfg(not(feature = "tls"))]
type Secured = Dialer;

/// The whole: TCP and TLS, within a time.
#[derive(Clone)]
pub(crate) struct Connector {
    inner: Secured,
    timeout: Duration,
}

/// Whether TLS will be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tls {
    Never,
    /// Where an address that is not known yet asks for it.
    #[cfg_attr(not(feature = "login"), allow(dead_code, reason = "only logins lead elsewhere"))]
    Perhaps,
    Surely,
}

impl Connector {
    /// The dialer is given as well: requests through a proxy need it.
    pub(crate) fn new(options: &HttpOptions, tls: Tls) -> Result<(Self, Dialer), HttpError> {
        let dialer = Dialer::new(options);
        let inner = secure(options, dialer.clone(), tls)?;
        Ok((Self { inner, timeout: options.connect_timeout }, dialer))
    }
}

#[cfg(not(feature = "tls"))]
fn secure(_: &HttpOptions, dialer: Dialer, tls: Tls) -> Result<Secured, HttpError> {
    match tls {
        Tls::Never | Tls::Perhaps => Ok(dialer),
        Tls::Surely => {
            let why = "this program was built without TLS (the feature `tls` of taut-http)";
            Err(HttpError::Setting { why: why.to_owned() })
        }
    }
}

/// Why the file of certificates that a variable of the environment names cannot be read, if it cannot: a device or a
/// pipe may have no end.
#[cfg(feature = "tls")]
fn unfit_variable() -> Option<String> {
    const VARIABLE: &str = "SSL_CERT_FILE";
    let path =
        std::path::PathBuf::from(std::env::var_os(VARIABLE).filter(|path| !path.is_empty())?);
    let why = match path.metadata() {
        Ok(about) if about.is_file() => return None,
        Ok(_) => "it is not a regular file".to_owned(),
        Err(error) => error.to_string(),
    };
    let path = path.display();
    Some(format!(
        "the certificates in {path}, which {VARIABLE} names, cannot be read: {why}; correct the variable or unset it"
    ))
}

#[cfg(feature = "tls")]
fn secure(options: &HttpOptions, dialer: Dialer, tls: Tls) -> Result<Secured, HttpError> {
    let bad = |why: String| HttpError::Setting { why };
    let mut roots = rustls::RootCertStore::empty();
    if let Some(path) = &options.ca_file {
        use rustls::pki_types::CertificateDer;
        use rustls::pki_types::pem::PemObject as _;
        let unread = |why: &dyn std::fmt::Display| {
            bad(format!("the certificates in {} cannot be read: {why}", path.display()))
        };
        let found = CertificateDer::pem_file_iter(path).map_err(|error| unread(&error))?;
        let found: Result<Vec<_>, _> = found.collect();
        let (added, _) = roots.add_parsable_certificates(found.map_err(|error| unread(&error))?);
        if added == 0 {
            return Err(unread(&"there is no certificate in PEM form in it"));
        }
    } else if tls != Tls::Never {
        // Reading the system's certificates takes milliseconds, so it is done only where they are used.
        match unfit_variable() {
            Some(why) if tls == Tls::Surely => return Err(bad(why)),
            Some(_) => {}
            None => drop(
                roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs),
            ),
        }
    }
    if tls == Tls::Surely && roots.is_empty() {
        return Err(bad("this system has no list of trusted certificates; install its package \
                        (often named ca-certificates), or give a file of certificates"
            .to_owned()));
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| bad(format!("TLS cannot be used: {error}")))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(hyper_rustls::HttpsConnectorBuilder::new()
        .with_tls_config(config)
        .https_or_http()
        .enable_http1()
        .wrap_connector(dialer))
}

impl Service<Uri> for Connector {
    type Response = <Secured as Service<Uri>>::Response;
    type Error = BoxError;
    type Future = Connecting<Self::Response>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let connecting = self.inner.call(uri);
        let timeout = self.timeout;
        Box::pin(async move {
            match tokio::time::timeout(timeout, connecting).await {
                Ok(connected) => connected,
                Err(_) => Err(format!("no connection within {timeout:?}").into()),
            }
        })
    }
}
