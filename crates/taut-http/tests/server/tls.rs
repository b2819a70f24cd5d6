//! A port that speaks TLS: all three kinds inside it, and nothing outside.
//!
//! `cert.pem` and `key.pem` are for `localhost` and for this test only; they were made with
//! `openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 36500`.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use taut_http::server::{Certificate, CertificateError, Options};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, crypto::ring};

use crate::support::{Running, modern_post, running, within};

const CERTIFICATE: &[u8] = include_bytes!("cert.pem");
const KEY: &[u8] = include_bytes!("key.pem");

async fn encrypted(server: &Running) -> TlsStream<TcpStream> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(CERTIFICATE).unwrap()).unwrap();
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let stream = TcpStream::connect(server.address).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    within(TlsConnector::from(Arc::new(config)).connect(name, stream)).await.unwrap()
}

#[tokio::test]
async fn with_a_certificate_the_whole_port_is_tls() {
    let certificate = Certificate::from_pem(CERTIFICATE, KEY).unwrap();
    // The last of the bad openings is half a handshake, which is given up after this.
    let limit = Duration::from_secs(5);
    let server = running(Options::new().certificate(certificate).header_timeout(limit)).await;
    let echo = modern_post("tools/call", json!({ "name": "echo" }));
    let ping = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n";
    for (bytes, answer) in [(echo.as_str(), "echoed"), (ping, "\"result\":{}")] {
        let mut stream = encrypted(&server).await;
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"http/1.1"[..]));
        stream.write_all(bytes.as_bytes()).await.unwrap();
        let mut read = Vec::new();
        within(async {
            while !String::from_utf8_lossy(&read).contains(answer) {
                assert!(stream.read_buf(&mut read).await.unwrap() > 0);
            }
        })
        .await;
    }
    // Without TLS: told what to use, or closed.
    let mut plain = server.connect().await;
    plain.send(&echo).await;
    let refused = plain.rest().await;
    assert!(refused.starts_with("HTTP/1.1 400 ") && refused.contains("https://"), "{refused}");
    for other in [ping, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "\u{16}\u{3}\u{1}\u{0}\u{2}{}"] {
        let mut wire = server.connect().await;
        wire.send(other).await;
        assert!(!wire.rest().await.contains("result"), "{other}");
    }
    server.stop().await;
}

#[test]
fn a_certificate_that_cannot_be_used_says_why() {
    let no_key = Certificate::from_pem(CERTIFICATE, CERTIFICATE).unwrap_err();
    assert!(no_key.to_string().contains("private key"), "{no_key}");
    let nothing = Certificate::from_pem(b"hello", KEY).unwrap_err();
    assert!(nothing.to_string().contains("certificate"), "{nothing}");
    let gone = Certificate::from_files("no/such/cert.pem", "no/such/key.pem").unwrap_err();
    assert!(matches!(gone, CertificateError::File { .. }));
    assert!(gone.to_string().contains("no/such/cert.pem"), "{gone}");
}
