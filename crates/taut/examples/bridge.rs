//! Stands between a host and a server of any era: `bridge PROGRAM [ARGUMENT]…`.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "an example talks to a person")]

use taut::{ClientBuilder, Command, Proxy};

#[tokio::main(flavor = "current_thread")]
async fn main() -> taut::Result<()> {
    let mut words = std::env::args_os().skip(1);
    let Some(program) = words.next() else {
        eprintln!("usage: bridge PROGRAM [ARGUMENT]…");
        std::process::exit(2);
    };
    let command = Command::new(program).args(words);
    Proxy::builder(move |client: ClientBuilder| client.spawn(command.clone()))
        .build()
        .serve_stdio()
        .await
}
