//! An MCP server for users who log in elsewhere: each request needs a JWT of one issuer, checked by the keys that
//! the issuer publishes (JWKS).
//!
//! `cargo run -p taut-http --example jwt -- RESOURCE ISSUER JWKS_URL`, for instance
//! `https://mcp.example.com/mcp https://login.example.com https://login.example.com/jwks`. It listens on
//! `127.0.0.1:3000`, for a reverse proxy that has the public name.

mod keys;

use std::sync::Arc;

use taut::{Call, NoArgs, Server};
use taut_http::server::{Options, ProtectedResource, serve};

use keys::Keys;

/// The scope that a token needs for this server.
const SCOPE: &str = "mcp";

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [resource, issuer, jwks] = arguments.as_slice() else {
        return Err("usage: jwt RESOURCE ISSUER JWKS_URL".into());
    };
    let keys = Arc::new(Keys::new(issuer, resource, SCOPE, jwks)?);
    let about = ProtectedResource::new(resource, issuer).scopes([SCOPE]);
    let host = resource.parse::<http::Uri>()?.host().ok_or("RESOURCE needs a host")?.to_owned();
    let options = Options::new()
        .allow_host(&host)
        .protected_resource(about)
        .authenticate(move |head| keys.clone().principal(&head.headers));
    let server = Server::builder("who", "1.0")
        .tool(("who", "Tell who asks."), async |_: NoArgs, call: Call<()>| {
            call.principal().id().unwrap_or("nobody").to_owned()
        })
        .build()?;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:3000").await?;
    serve(listener, Arc::new(server), options).await?;
    Ok(())
}
