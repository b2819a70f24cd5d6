//! A server with state: notes that tools write, that resources show and that a prompt is about.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use taut::types::{CompletionReference, ResourceReference, ToolAnnotations};
use taut::{Call, JsonSchema, NoArgs, Prompt, Reject, ResourceTemplate, Server};

#[derive(Default)]
struct Notes(Mutex<BTreeMap<String, String>>);

impl Notes {
    fn open(&self) -> MutexGuard<'_, BTreeMap<String, String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Keep a note.
#[derive(serde::Deserialize, JsonSchema)]
struct Keep {
    /// What it is called.
    name: String,
    /// What it says.
    text: String,
}

#[derive(serde::Deserialize)]
struct Which {
    name: String,
}

/// Tidy up a note.
#[derive(serde::Deserialize, JsonSchema)]
struct TidyUp {
    /// Which note.
    name: String,
}

async fn keep(Keep { name, text }: Keep, call: Call<Notes>) -> Result<String, &'static str> {
    if name.contains('/') {
        // The model reads this and tries another name.
        return Err("a name has no slash");
    }
    let mut notes = call.state().open();
    notes.insert(name, text);
    Ok(format!("{} notes", notes.len()))
}

async fn read(Which { name }: Which, call: Call<Notes>) -> Result<String, Reject> {
    let found = call.state().open().get(&name).cloned();
    found.ok_or_else(|| Reject::new(taut::types::RESOURCE_NOT_FOUND, format!("no note {name:?}")))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> taut::Result<()> {
    let address = "note://{name}";
    let lists = taut::Tool::new("list")
        .description("The names of all notes.")
        .annotations(ToolAnnotations::new().read_only_hint(true));
    Server::with_state("notes", "1.0", Notes::default())
        .tool("keep", keep)
        .tool(lists, async |_: NoArgs, call: Call<Notes>| {
            call.state().open().keys().cloned().collect::<Vec<_>>().join("\n")
        })
        .resource_template(ResourceTemplate::new(address, "note").mime_type("text/plain"), read)
        .completion(
            CompletionReference::Resource(ResourceReference::new(address)),
            "name",
            async |typed, call: Call<Notes>| {
                let notes = call.state().open();
                notes.keys().filter(|name| name.starts_with(&typed.value)).cloned().collect()
            },
        )
        .prompt(Prompt::new("tidy"), async |TidyUp { name }, _call: Call<Notes>| {
            format!(
                "Read note://{name}, rewrite it in plain words, and keep it under the same name."
            )
        })
        .serve_stdio()
        .await
}
