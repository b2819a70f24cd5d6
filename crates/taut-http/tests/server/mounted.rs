//! The service inside another program's router.

use axum::Router;
use axum::routing::get;
use serde_json::json;
use taut_http::server::{HttpService, Options, ProtectedResource};
use tokio::net::{TcpListener, TcpStream};

use crate::support::{Wire, fixture, modern_post};

#[tokio::test]
async fn an_axum_router_serves_it_beside_other_routes() {
    let mcp = HttpService::new(fixture().0, Options::new());
    let app = Router::new().route("/health", get(|| async { "ok" })).route_service("/mcp", mcp);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = tokio::spawn(async move { axum::serve(listener, app).await });
    let mut wire = Wire::new(TcpStream::connect(address).await.unwrap());
    wire.send("GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    assert_eq!(wire.response().await, (200, "ok".to_owned()));
    wire.send(modern_post("tools/call", json!({ "name": "echo" }))).await;
    let (status, body) = wire.response().await;
    assert!(status == 200 && body.contains("echoed"), "{status} {body}");
    server.abort();
}

/// A clone for the metadata, as the guide has it, serves the metadata and no messages.
#[tokio::test]
async fn a_clone_at_the_path_of_the_metadata_serves_no_messages() {
    let resource = ProtectedResource::new("http://localhost/mcp", "https://login.example.com");
    let options = Options::new().token("s3cret").protected_resource(resource);
    let mcp = HttpService::new(fixture().0, options);
    let path = "/.well-known/oauth-protected-resource/mcp";
    let app = Router::new().route_service(path, mcp.clone()).route_service("/mcp", mcp);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = tokio::spawn(async move { axum::serve(listener, app).await });
    let mut wire = Wire::new(TcpStream::connect(address).await.unwrap());
    wire.send(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n")).await;
    let (status, body) = wire.response().await;
    assert!(status == 200 && body.contains("login.example.com"), "{status} {body}");
    let post = modern_post("tools/call", json!({ "name": "echo" }));
    let post = post.replacen("\r\n", "\r\nAuthorization: Bearer s3cret\r\n", 1);
    for (path, expected) in [(path, 404), ("/mcp", 200)] {
        wire.send(post.replace("POST /mcp", &format!("POST {path}"))).await;
        assert_eq!(wire.response().await.0, expected, "{path}");
    }
    server.abort();
}
