//! TLS with a given certificate.
//!
//! Knows certificates and the handshake; must not know what is spoken inside. rustls with ring, and
//! HTTP/1.1 as the only protocol that is offered.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;

use taut::transport::ByteStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{self, ServerConfig, crypto::ring};

/// A certificate and its key.
#[derive(Clone)]
pub struct Certificate(TlsAcceptor);

impl fmt::Debug for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Certificate")
    }
}

/// Why a certificate cannot be used.
#[derive(Debug)]
#[non_exhaustive]
pub enum CertificateError {
    /// A file cannot be read.
    File {
        /// Which.
        path: String,
        /// Why.
        reason: io::Error,
    },
    /// A file holds no certificate, or no key, in PEM form.
    NotPem {
        /// What is missing.
        what: &'static str,
    },
    /// Certificate and key do not fit, or are of a kind that is not supported.
    Unfit(rustls::Error),
}

impl fmt::Display for CertificateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, reason } => write!(f, "cannot read {path}: {reason}"),
            Self::NotPem { what } => write!(f, "no {what} in PEM form was found in the file"),
            Self::Unfit(reason) => write!(f, "certificate and key cannot be used: {reason}"),
        }
    }
}

impl std::error::Error for CertificateError {}

impl Certificate {
    /// Reads a chain of certificates and a private key from PEM files.
    ///
    /// # Errors
    /// A file cannot be read or holds something else, or the two do not fit.
    pub fn from_files(
        chain: impl AsRef<Path>,
        key: impl AsRef<Path>,
    ) -> Result<Self, CertificateError> {
        let read = |path: &Path| {
            let file = |reason| CertificateError::File { path: path.display().to_string(), reason };
            std::fs::read(path).map_err(file)
        };
        Self::from_pem(&read(chain.as_ref())?, &read(key.as_ref())?)
    }

    /// The same from bytes.
    ///
    /// # Errors
    /// They hold something else, or do not fit.
    pub fn from_pem(chain: &[u8], key: &[u8]) -> Result<Self, CertificateError> {
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(chain).collect();
        let chain = chain.ok().filter(|chain| !chain.is_empty());
        let chain = chain.ok_or(CertificateError::NotPem { what: "certificate" })?;
        let key = PrivateKeyDer::from_pem_slice(key)
            .map_err(|_| CertificateError::NotPem { what: "private key" })?;
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, key))
            .map_err(CertificateError::Unfit)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self(Arc::new(config).into()))
    }

    /// The connection inside `stream`.
    pub(super) async fn accept(&self, stream: impl ByteStream) -> io::Result<Box<dyn ByteStream>> {
        Ok(Box::new(self.0.accept(stream).await?))
    }
}
