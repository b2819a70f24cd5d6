//! A small host: two servers that are kept alive, and a form that is filled in on the terminal. Try
//! it with two servers of this folder:
//!
//! ```sh
//! cargo build --examples && cd target/debug/examples && cargo run --example host ./demo ./notes
//! ```
//!
//! Then type, for instance, `demo ask {}`. Kill a server meanwhile, and call it again.

use std::io::{BufRead as _, Write as _};

use serde_json::Value;
use taut::types::{ElicitForm, ElicitResult, JsonObject};
use taut::{Client, Command, RestartPolicy, SupervisedClient};

#[tokio::main(flavor = "current_thread")]
#[allow(dead_code, reason = "the tests call host()")]
async fn main() -> taut::Result<()> {
    host(std::env::args().skip(1)).await
}

/// Starts the programs, then calls what is typed, line by line: `<server> <tool> <arguments>`.
pub(crate) async fn host(programs: impl IntoIterator<Item = String>) -> taut::Result<()> {
    let mut servers: Vec<(String, SupervisedClient)> = Vec::new();
    for program in programs {
        let name = program.rsplit('/').next().unwrap_or(&program).to_owned();
        let who = name.clone();
        let restart = RestartPolicy::new().on_event(move |event| say(&format!("[{who} {event}]")));
        let client = Client::builder().on_elicit(async |form, _asking| fill_in(form).await);
        servers.push((name, client.supervise(Command::new(program), restart)?));
    }
    while let Some(line) = type_in("> ").await {
        let mut words = line.trim().splitn(3, ' ');
        let (name, tool) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let Some((_, server)) = servers.iter().find(|(known, _)| known == name) else { continue };
        let arguments: Value = words.next().and_then(|w| w.parse().ok()).unwrap_or_default();
        match server.call(tool, arguments).retry_if_harmless().await {
            Ok(answer) => say(&answer.text().unwrap_or_else(|error| error.to_string().into())),
            Err(error) => say(&format!("error: {error}")),
        }
    }
    for (_, server) in &servers {
        server.close().await?;
    }
    Ok(())
}

/// Asks for each field in turn. An empty line means: leave it out; the end of the input: go away.
async fn fill_in(form: ElicitForm) -> ElicitResult {
    say(&form.message);
    let mut content = JsonObject::new();
    for (name, _) in &form.requested_schema.fields {
        let Some(typed) = type_in(&format!("{name}: ")).await else {
            return ElicitResult::cancel();
        };
        let typed = typed.trim();
        if !typed.is_empty() {
            // Numbers and booleans are typed as JSON, everything else is text.
            content.insert(name.clone(), typed.parse().unwrap_or_else(|_| typed.into()));
        }
    }
    ElicitResult::accept(content)
}

/// Reads a line in a thread of its own, so that the servers are looked after meanwhile.
async fn type_in(prompt: &str) -> Option<String> {
    print(prompt);
    let line = tokio::task::spawn_blocking(|| std::io::stdin().lock().lines().next());
    line.await.ok()??.ok()
}

fn say(line: &str) {
    print(&format!("{line}\n"));
}

fn print(text: &str) {
    let mut out = std::io::stdout().lock();
    // A host whose reader is gone has nobody to tell.
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}
