//! A server that asks: every kind of field, a page, a model, and things that go wrong meanwhile.

use serde_json::json;
use taut::types::{
    Choice, CreateMessageParams, FormField, FormSchema, JsonObject, NumberField, NumberKind,
    SamplingMessage, TextField,
};
use taut::{AskError, Call, JsonSchema, NoArgs, Server, ServerBuilder, UserReply};

/// A second word of the role is a folder: whatever appears there is told of as a change.
pub(super) fn serve(role: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let server = server().build().unwrap();
    if let Some((_, folder)) = role.split_once(' ') {
        runtime.spawn(changing(server.changes(), folder.into()));
    }
    runtime.block_on(server.serve_stdio()).unwrap();
}

/// `tool` adds a tool, `resource` changes one, `exit` ends the process.
async fn changing(changes: taut::Changes<()>, folder: std::path::PathBuf) {
    loop {
        for entry in std::fs::read_dir(&folder).unwrap().flatten() {
            std::fs::remove_file(entry.path()).unwrap();
            match entry.file_name().to_str().unwrap() {
                "tool" => {
                    let tool = taut::Tool::new("fresh").description("Tool fresh.");
                    changes.add_tool(tool, async |_: NoArgs, _call| "new here").unwrap();
                }
                "resource" => changes.resource_updated("asker://note"),
                "exit" => std::process::exit(9),
                other => panic!("{other}"),
            }
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
}

fn server() -> ServerBuilder {
    Server::builder("asker", "1.0")
        .changing()
        .logging()
        .tool(("everything", "Tool everything."), async |_: NoArgs, call| {
            told(call.ask_form("All of it:", all()).await)
        })
        .tool(("number", "Tool number."), async |_: NoArgs, call| {
            let field = NumberField::new().kind(NumberKind::Integer).minimum(1).maximum(10);
            told(call.ask_form("How many?", FormSchema::new().required("count", field)).await)
        })
        .tool(("chatty", "Tool chatty."), async |_: NoArgs, call: Call<()>| {
            let field = NumberField::new().kind(NumberKind::Integer);
            let asked = call.ask_form("How many?", FormSchema::new().required("count", field));
            let talk = async {
                loop {
                    call.log(taut::Level::Info, "still here");
                    tokio::time::sleep(std::time::Duration::from_millis(2)).await;
                }
            };
            tokio::select! {
                reply = asked => told(reply),
                never = talk => never,
            }
        })
        .tool(("rude", "Tool rude."), async |_: NoArgs, call| {
            let name = TextField::new().title("na\u{1b}[31mme\u{202e}").default("a\u{7}b");
            let form = FormSchema::new().optional("name", name);
            told(call.ask_form("first\u{1b}]0;owned\u{7}\nsecond\u{200b}", form).await)
        })
        .tool(("page", "Tool page."), async |_: NoArgs, call| {
            let url = "https://good.example@evil.example/login?state=a%20b#end";
            call.ask_at(url, "Please log in").await.map(|asked| format!("{asked:?}"))
        })
        .tool(("model", "Tool model."), async |_: NoArgs, call| {
            let messages = [SamplingMessage::user("Say\u{1b}[2J something.")];
            let asked = CreateMessageParams::new(messages, 99u64).system_prompt("Be brief.");
            let answer = call.sample(asked).await?;
            Ok::<_, AskError>(json!(answer).to_string())
        })
        .resource(taut::Resource::new("asker://note", "note"), async |_call| "a note")
        .tool("paint", async |Paint { colour, coats }, _call| format!("{coats} {colour:?}"))
        .tool("later", later)
        .tool(("die", "Tool die."), async |_: NoArgs, call: Call<()>| -> String {
            // The question is on its way when the process ends.
            let form = FormSchema::new().required("x", FormField::text());
            tokio::select! {
                _ = call.ask_form("Never mind", form) => {}
                () = tokio::time::sleep(std::time::Duration::from_millis(300)) => {}
            }
            std::process::exit(9)
        })
}

#[derive(Debug, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Colour {
    Crimson,
    Cobalt,
}

/// Paint something.
#[derive(serde::Deserialize, JsonSchema)]
struct Paint {
    colour: Colour,
    #[serde(default)]
    coats: u32,
}

/// Have another tool, once there is such a file.
#[derive(serde::Deserialize, JsonSchema)]
struct Later {
    file: std::path::PathBuf,
}

async fn later(Later { file }: Later, call: Call<()>) -> &'static str {
    let changes = call.changes();
    tokio::spawn(async move {
        while !file.exists() {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        let tool = taut::Tool::new("fresh").description("Tool fresh.");
        changes.add_tool(tool, async |_: NoArgs, _call| "new here").unwrap();
    });
    "later, then"
}

fn all() -> FormSchema {
    let sizes = [Choice::titled("s", "Small"), Choice::titled("l", "Large, with care")];
    let FormField::Choice(tags) = FormField::several(["red", "green", "blue"]) else { panic!() };
    FormSchema::new()
        .required("mail", TextField::new().title("E-mail").format("email").max_length(30))
        .required("count", NumberField::new().kind(NumberKind::Integer).minimum(1).maximum(10))
        .optional("ratio", NumberField::new().maximum(1).default(0.5))
        .optional(
            "sure",
            taut::types::BooleanField::new().description("Are you sure?").default(true),
        )
        .required("size", FormField::one(sizes))
        .optional("tags", tags.with("maxItems", 2).with("title", "Colours"))
        .optional("note", TextField::new().description("Anything else?"))
}

fn told(asked: Result<UserReply<JsonObject>, AskError>) -> Result<String, AskError> {
    Ok(match asked? {
        UserReply::Accepted(content) => json!(content).to_string(),
        UserReply::Declined => "declined".to_owned(),
        UserReply::Cancelled => "cancelled".to_owned(),
        _ => "something else".to_owned(),
    })
}
