//! TLS and proxies.

use std::path::Path;
use std::sync::{Arc, Mutex};

use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::json;
use taut_http::client::{HttpError, HttpOptions, connect};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ServerConfig, crypto};

use crate::server::*;

fn data(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/client").join(name)
}

/// A legacy server behind TLS, with a certificate that no system trusts.
async fn secured() -> u16 {
    secured_with(async |seen| {
        let reply = legacy(&seen, "2025-11-25");
        reply.unwrap_or_else(|| result(&seen, said("over TLS")))
    })
    .await
}

/// The same with other answers.
async fn secured_with<F, Fut>(answer: F) -> u16
where
    F: Fn(Seen) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = Reply> + Send,
{
    let cert = CertificateDer::from_pem_file(data("cert.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_file(data("key.pem")).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![cert], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (acceptor, answer) = (acceptor.clone(), answer.clone());
            tokio::spawn(async move {
                let Ok(stream) = acceptor.accept(stream).await else { return };
                let service = service_fn(move |request| {
                    let answer = answer.clone();
                    async move {
                        let reply = answer(read(request).await).await;
                        Ok::<_, std::convert::Infallible>(reply)
                    }
                });
                let served = hyper::server::conn::http1::Builder::new();
                let _ = served.serve_connection(TokioIo::new(stream), service).await;
            });
        }
    });
    port
}

#[tokio::test]
async fn a_certificate_is_trusted_if_the_given_file_has_it() {
    let url = format!("https://localhost:{}/mcp", secured().await);
    let options = || HttpOptions::new().no_proxy();
    let client = connect(&url, options().ca_file(data("cert.pem"))).await.unwrap();
    assert_eq!(client.call("t", json!({})).await.unwrap().text().unwrap(), "over TLS");

    let error = connect(&url, options()).await.unwrap_err();
    let words = error.to_string().to_lowercase();
    let known = matches!(
        HttpError::of(&error),
        Some(HttpError::Unreachable { .. } | HttpError::Setting { .. })
    );
    assert!(known && words.contains("certificate"), "{error}");
    let error = connect(&url, options().ca_file("/no/such/file")).await.unwrap_err().to_string();
    assert!(error.contains("the certificates in /no/such/file cannot be read"), "{error}");
    let options = options().ca_file(data("network.rs"));
    let error = connect(&url, options).await.unwrap_err().to_string();
    assert!(error.contains("there is no certificate in PEM form in it"), "{error}");
}

/// A redirect from https to http would show the token and the request to everybody on the way.
#[tokio::test]
async fn a_redirect_does_not_leave_tls() {
    let plain = TestServer::start(async |seen| {
        legacy(&seen, "2025-11-25").unwrap_or_else(|| result(&seen, said("in the clear")))
    })
    .await;
    let to = plain.url.replace("127.0.0.1", "localhost");
    for code in [307, 308, 301, 302, 303] {
        let location = to.clone();
        let port = secured_with(move |_| {
            let location = location.clone();
            async move { reply(code, &[("location", &location)], "") }
        })
        .await;
        let options =
            HttpOptions::new().no_proxy().ca_file(data("cert.pem")).bearer("token-secret");
        let url = format!("https://localhost:{port}/mcp");
        let error = connect(&url, options).await.unwrap_err().to_string();
        assert!(error.contains(&to) && error.contains("another origin"), "{code}: {error}");
        assert!(!error.contains("token-secret"), "{code}: {error}");
    }
    assert!(plain.all(|_| true).is_empty(), "nothing was sent there");
    // The same port is no reason either.
    let port = secured_with(async |seen| {
        let host = seen.header("host").unwrap().to_owned();
        reply(307, &[("location", &format!("http://{host}/mcp"))], "")
    })
    .await;
    let options = HttpOptions::new().no_proxy().ca_file(data("cert.pem")).bearer("token-secret");
    let error = connect(&format!("https://localhost:{port}/mcp"), options).await.unwrap_err();
    assert!(error.to_string().contains("another origin"), "{error}");
}

/// TLS bytes on a plain port, and the other way round: told as such, and at once.
#[tokio::test]
async fn the_wrong_scheme_is_told() {
    let port = secured().await;
    let plain = format!("http://localhost:{port}/mcp");
    let error = connect(&plain, HttpOptions::new().no_proxy()).await.unwrap_err();
    assert!(HttpError::of(&error).is_some(), "{error}");
    let server = TestServer::start(async |_| status(500)).await;
    let secure = server.url.replace("http://127.0.0.1", "https://localhost");
    let options = HttpOptions::new().no_proxy().ca_file(data("cert.pem"));
    let error = connect(&secure, options).await.unwrap_err();
    assert!(matches!(HttpError::of(&error), Some(HttpError::Unreachable { .. })), "{error}");
}

#[tokio::test]
async fn a_plain_request_names_the_whole_address_to_a_proxy() {
    let proxy = TestServer::start(async |seen| {
        legacy(&seen, "2025-11-25").unwrap_or_else(|| result(&seen, said("by the proxy")))
    })
    .await;
    let address = proxy.url.replace("http://", "http://me:proxy-secret@").replace("/mcp", "");
    let options = HttpOptions::new().proxy(&address);
    let shown = format!("{options:?}");
    let client = connect("http://mcp.invalid/mcp", options).await.unwrap();
    assert_eq!(client.call("t", json!({})).await.unwrap().text().unwrap(), "by the proxy");
    for seen in proxy.all(|_| true) {
        assert_eq!(seen.path, "http://mcp.invalid/mcp");
        assert_eq!(seen.header("host"), Some("mcp.invalid"));
        assert_eq!(seen.header("proxy-authorization"), Some("Basic bWU6cHJveHktc2VjcmV0"));
    }
    assert!(!shown.contains("proxy-secret"));
}

/// A proxy for tunnels: the head of each request that it got.
async fn tunnels(status: &'static str) -> (String, Arc<Mutex<Vec<String>>>) {
    let heads: Arc<Mutex<Vec<String>>> = Arc::default();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let kept = heads.clone();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let kept = kept.clone();
            tokio::spawn(async move {
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    head.push(stream.read_u8().await.unwrap());
                }
                let head = String::from_utf8(head).unwrap();
                let to = head.split(' ').nth(1).unwrap().to_owned();
                kept.lock().unwrap().push(head);
                let answer = format!("HTTP/1.1 {status}\r\n\r\n");
                stream.write_all(answer.as_bytes()).await.unwrap();
                if status.starts_with("200") {
                    let mut server = TcpStream::connect(to).await.unwrap();
                    let _ = tokio::io::copy_bidirectional(&mut stream, &mut server).await;
                }
            });
        }
    });
    (format!("http://me:proxy-secret@{address}"), heads)
}

#[tokio::test]
async fn https_passes_a_proxy_in_a_tunnel() {
    let port = secured().await;
    let (proxy, heads) = tunnels("200 OK").await;
    let options = HttpOptions::new().proxy(&proxy).ca_file(data("cert.pem")).bearer("token-secret");
    let url = format!("https://localhost:{port}/mcp");
    let client = connect(&url, options).await.unwrap();
    assert_eq!(client.call("t", json!({})).await.unwrap().text().unwrap(), "over TLS");
    let heads = heads.lock().unwrap().clone();
    assert!(heads[0].starts_with(&format!("CONNECT localhost:{port} HTTP/1.1\r\n")), "{heads:?}");
    assert!(heads[0].to_lowercase().contains("proxy-authorization: basic "), "{heads:?}");
    assert!(!heads.concat().contains("token-secret"), "the server's secret is not the proxy's");

    let (proxy, _) = tunnels("407 Proxy Authentication Required").await;
    let options = HttpOptions::new().proxy(&proxy).ca_file(data("cert.pem"));
    let error = connect(&url, options).await.unwrap_err().to_string();
    assert!(error.contains("the proxy") && !error.contains("proxy-secret"), "{error}");
}
