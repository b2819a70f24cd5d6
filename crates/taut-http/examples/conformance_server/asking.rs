//! The tools of the fixture that ask back.

use serde::Deserialize;
use serde_json::{Value, json};
use taut::types::{
    BooleanField, Choice, CreateMessageParams, FormField, FormSchema, JsonObject, NumberField,
    NumberKind, SamplingMessage, TextField,
};
use taut::{AskError, Call, JsonSchema, NoArgs, Prompt, ServerBuilder, Tool, UserReply};

#[derive(Deserialize, JsonSchema)]
struct Question {
    /// What to ask the user.
    message: String,
}

fn described(name: &str, description: &str) -> Tool {
    Tool::new(name).description(description)
}

/// What the user did, in words.
fn told(reply: UserReply<JsonObject>) -> String {
    match reply {
        UserReply::Accepted(content) => {
            format!("User response: action=accept, content={}", json!(content))
        }
        UserReply::Declined => "User response: action=decline".to_owned(),
        _ => "User response: action=cancel".to_owned(),
    }
}

fn one_text(name: &str) -> FormSchema {
    FormSchema::new().required(name, FormField::text())
}

fn confirmation() -> FormSchema {
    FormSchema::new().required("ok", FormField::boolean())
}

fn greeting() -> CreateMessageParams {
    CreateMessageParams::new([SamplingMessage::user("Generate a greeting")], 50u64)
}

pub(crate) fn add(server: ServerBuilder) -> ServerBuilder {
    let server = server
        .tool(described("test_elicitation", "Ask the user."), async |Question { message }, call| {
            let form = FormSchema::new()
                .required("username", FormField::text())
                .required("email", FormField::text());
            call.ask_form(message, form).await.map(told)
        })
        .tool(
            described("test_elicitation_sep1034_defaults", "Ask with defaults."),
            async |_: NoArgs, call: Call| {
                call.ask_form("Please review these values", defaults()).await.map(told)
            },
        )
        .tool(
            described("test_elicitation_sep1330_enums", "Ask to choose."),
            async |_: NoArgs, call: Call| call.ask_form("Please choose", choices()).await.map(told),
        )
        .tool(
            described("test_streaming_elicitation", "Ask the user at once."),
            async |_: NoArgs, call: Call| {
                call.ask_form("Please confirm", confirmation()).await.map(told)
            },
        );
    rounds(server)
}

/// One of `values`, with one more member.
fn choice(values: [&str; 3], member: &str, value: Value) -> FormField {
    match FormField::one(values) {
        FormField::Choice(field) => FormField::Choice(field.with(member, value)),
        other => other,
    }
}

fn defaults() -> FormSchema {
    let status = choice(["active", "inactive", "pending"], "default", json!("active"));
    FormSchema::new()
        .optional("name", TextField::new().default("John Doe"))
        .optional("age", NumberField::new().kind(NumberKind::Integer).default(30.0))
        .optional("score", NumberField::new().default(95.5))
        .optional("status", status)
        .optional("verified", BooleanField::new().default(true))
}

fn choices() -> FormSchema {
    let plain = ["option1", "option2", "option3"];
    let titled = || {
        [
            Choice::titled("value1", "First Option"),
            Choice::titled("value2", "Second Option"),
            Choice::titled("value3", "Third Option"),
        ]
    };
    let names = json!(["Option One", "Option Two", "Option Three"]);
    let legacy = choice(["opt1", "opt2", "opt3"], "enumNames", names);
    FormSchema::new()
        .optional("untitledSingle", FormField::one(plain))
        .optional("titledSingle", FormField::one(titled()))
        .optional("legacyEnum", legacy)
        .optional("untitledMulti", FormField::several(plain))
        .optional("titledMulti", FormField::several(titled()))
}

fn rounds(server: ServerBuilder) -> ServerBuilder {
    let name = |rest: &str| described(&format!("test_input_required_result_{rest}"), "Ask back.");
    server
        .tool(name("elicitation"), async |_: NoArgs, call: Call| {
            call.ask_form_as("user_name", "What is your name?", one_text("name")).await.map(told)
        })
        .tool(name("sampling"), async |_: NoArgs, call: Call| {
            let answer = call.sample(greeting()).await?;
            Ok::<_, AskError>(format!("{:?}", answer.content))
        })
        .tool(name("list_roots"), async |_: NoArgs, call: Call| {
            let roots = call.roots().await?;
            let uris: Vec<String> = roots.into_iter().map(|root| root.uri).collect();
            Ok::<_, AskError>(uris.join("\n"))
        })
        .tool(name("request_state"), async |_: NoArgs, call: Call| {
            let reply = call.ask_form_as("confirm", "Please confirm", confirmation()).await?;
            Ok::<_, AskError>(format!("state-ok: {}", told(reply)))
        })
        .tool(name("multiple_inputs"), async |_: NoArgs, call: Call| {
            let (user, model, roots) = tokio::join!(
                call.ask_form_as("user_name", "What is your name?", one_text("name")),
                call.sample(greeting()),
                call.roots()
            );
            let (user, model, roots) = (user?, model?, roots?);
            Ok::<_, AskError>(format!("{} {:?} {}", told(user), model.content, roots.len()))
        })
        .tool(name("multi_round"), async |_: NoArgs, call: Call| {
            let first = call
                .ask_form_as("step1", "Step 1: What is your name?", one_text("name"))
                .await
                .map(told)?;
            let second = call
                .ask_form_as("step2", "Step 2: What is your favorite color?", one_text("color"))
                .await
                .map(told)?;
            Ok::<_, AskError>(format!("{first}; {second}"))
        })
        .tool(name("tampered_state"), async |_: NoArgs, call: Call| {
            call.ask_form_as("confirm", "Please confirm", confirmation()).await.map(told)
        })
        .tool(name("capabilities"), async |_: NoArgs, call: Call| {
            if call.client().capabilities().elicitation.is_some() {
                return call.ask_form("What is your name?", one_text("name")).await.map(told);
            }
            call.sample(greeting()).await.map(|answer| format!("{:?}", answer.content))
        })
        .prompt(
            Prompt::new("test_input_required_result_prompt").description("Ask back."),
            async |_: NoArgs, call: Call| {
                let question = "What context should the prompt use?";
                let form = one_text("context");
                call.ask_form_as("user_context", question, form).await.map(told)
            },
        )
}
