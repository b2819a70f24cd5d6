//! The service inside another program's router.

use axum::Router;
use axum::routing::get;
use serde_json::json;
use taut_http::server::{HttpService, Options};
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
