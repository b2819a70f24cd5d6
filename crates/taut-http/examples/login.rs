//! Logs in to a server and lists its tools: `cargo run --example login --features login -- URL [FILE]`.
//!
//! Prints the address to open in a browser, and goes on when the browser comes back. Tokens are kept in FILE,
//! if one is given. The second run needs no browser.

#![allow(clippy::print_stdout, reason = "it is a program")]

use std::sync::Arc;

use taut::Client;
use taut_http::client::login::{AskUser, Login, LoginOptions, LoginRequest, TokenStore};
use taut_http::client::{AuthorizeFuture, HttpOptions, HttpTransport};

/// Prints the address; the user opens it.
struct Print;

impl AskUser for Print {
    fn ask<'a>(&'a self, request: LoginRequest<'a>) -> AuthorizeFuture<'a, String> {
        Box::pin(async move {
            println!("open {}", request.address());
            request.redirected().await
        })
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let url = arguments.next().ok_or("give the address of a server")?;
    let mut options = LoginOptions::new().client_name("taut example").ask(Arc::new(Print));
    if let Some(file) = arguments.next() {
        options = options.store(TokenStore::at(file));
    }
    let login = Arc::new(Login::new(&url, &HttpOptions::new(), options)?);
    let transport = HttpTransport::new(&url, HttpOptions::new().authorize(login))?;
    let client = transport.connect(Client::builder()).await?;
    for tool in client.tools().await? {
        println!("tool {}", tool.name);
    }
    client.close().await?;
    Ok(())
}
