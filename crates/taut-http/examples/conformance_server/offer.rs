//! What the fixture offers besides questions: tools, resources, prompts.

use std::time::Duration;

use serde::Deserialize;
use serde_json::json;
use taut::types::{
    CompletionReference, CreateMessageParams, PromptMessage, PromptReference, ResourceContents,
    SamplingMessage, Schema,
};
use taut::{
    AskError, Call, Content, JsonSchema, Level, NoArgs, Progress, Prompt, Resource,
    ResourceTemplate, Server, ServerBuilder, Tool,
};

/// One red pixel.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";

/// The same, as bytes.
const PNG_BYTES: &[u8] = &[
    0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0x00, 0x00, 0x00, 0x0d, 0x49, 0x48, 0x44, 0x52,
    0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x01, 0x08, 0x06, 0x00, 0x00, 0x00, 0x1f, 0x15, 0xc4,
    0x89, 0x00, 0x00, 0x00, 0x0d, 0x49, 0x44, 0x41, 0x54, 0x78, 0xda, 0x63, 0xfc, 0xcf, 0xc0, 0xf0,
    0x1f, 0x00, 0x05, 0x05, 0x02, 0x00, 0x5f, 0xc8, 0xf1, 0xd2, 0x00, 0x00, 0x00, 0x00, 0x49, 0x45,
    0x4e, 0x44, 0xae, 0x42, 0x60, 0x82,
];

/// A sound without samples.
const WAV: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=";

const STEP: Duration = Duration::from_millis(50);

/// Two arguments that the prompt repeats.
#[derive(Deserialize, JsonSchema)]
struct TwoArguments {
    /// The first.
    arg1: String,
    /// The second.
    arg2: String,
}

#[derive(Deserialize, JsonSchema)]
struct ResourceArgument {
    /// The resource to show.
    #[serde(rename = "resourceUri")]
    resource_uri: String,
}

#[derive(Deserialize, JsonSchema)]
struct Sampling {
    /// What to ask the model.
    prompt: String,
}

/// One parameter that HTTP repeats in a header.
#[derive(Deserialize, JsonSchema)]
struct Regional {
    /// Where.
    #[schemars(extend("x-mcp-header" = "Region"))]
    region: String,
}

#[derive(Deserialize)]
struct TemplateId {
    id: String,
}

fn described(name: &str, description: &str) -> Tool {
    Tool::new(name).description(description)
}

fn embedded(uri: &str) -> Content {
    let contents = ResourceContents::new(uri).mime_type("text/plain").text("An embedded resource");
    Content::resource(contents)
}

pub(crate) fn server() -> ServerBuilder {
    let server =
        Server::builder("taut-conformance", env!("CARGO_PKG_VERSION")).logging().changing();
    prompts(resources(more_tools(tools(server))))
}

fn tools(server: ServerBuilder) -> ServerBuilder {
    server
        .tool(
            described("test_simple_text", "Return a text."),
            async |_: NoArgs, _: Call| "This is a simple text response for testing.",
        )
        .tool(described("test_image_content", "Return a picture."), async |_: NoArgs, _: Call| {
            Content::image(PNG, "image/png")
        })
        .tool(described("test_audio_content", "Return a sound."), async |_: NoArgs, _: Call| {
            Content::audio(WAV, "audio/wav")
        })
        .tool(
            described("test_embedded_resource", "Return a resource."),
            async |_: NoArgs, _: Call| embedded("test://embedded-resource"),
        )
        .tool(
            described("test_multiple_content_types", "Return a text, a picture and a resource."),
            async |_: NoArgs, _: Call| {
                vec![
                    Content::text("Multiple content types test:"),
                    Content::image(PNG, "image/png"),
                    embedded("test://mixed-content-resource"),
                ]
            },
        )
        .tool(described("test_error_handling", "Fail."), async |_: NoArgs, _: Call| {
            Err::<(), _>("This tool intentionally returns an error for testing")
        })
        .tool(
            described("test_tool_with_progress", "Report progress."),
            async |_: NoArgs, call: Call| {
                for step in [0.0, 50.0, 100.0] {
                    call.progress(Progress::new(step).total(100.0));
                    tokio::time::sleep(STEP).await;
                }
                "done"
            },
        )
        .tool(
            described("test_tool_with_logging", "Write to the log."),
            async |_: NoArgs, call: Call| {
                for line in ["Tool execution started", "Tool processing data", "Tool finished"] {
                    call.log(Level::Info, line);
                    tokio::time::sleep(STEP).await;
                }
                "done"
            },
        )
        .tool(described("test_sampling", "Ask the model."), async |Sampling { prompt }, call| {
            let params = CreateMessageParams::new([SamplingMessage::user(prompt)], 100u64);
            let answer = call.sample(params).await?;
            Ok::<_, AskError>(format!("LLM response: {:?}", answer.content))
        })
}

fn more_tools(server: ServerBuilder) -> ServerBuilder {
    server
        .tool(
            described("test_missing_capability", "Need a model."),
            async |_: NoArgs, call: Call| {
                let params = CreateMessageParams::new([SamplingMessage::user("Hello")], 10u64);
                call.sample(params).await.map(|_| "asked")
            },
        )
        .tool(
            described("test_logging_tool", "Write one line to the log."),
            async |_: NoArgs, call: Call| {
                call.log(Level::Info, "a line");
                "logged"
            },
        )
        .tool(
            described("test_trigger_tool_change", "Change the list of tools."),
            async |_: NoArgs, call: Call| {
                let changes = call.changes();
                if !changes.remove_tool("test_dynamic_tool") {
                    let tool = described("test_dynamic_tool", "Comes and goes.");
                    changes.add_tool(tool, async |_: NoArgs, _: Call| "here")?;
                }
                Ok::<_, taut::Error>("changed")
            },
        )
        .tool(
            described("test_trigger_prompt_change", "Change the list of prompts."),
            async |_: NoArgs, call: Call| {
                let changes = call.changes();
                if !changes.remove_prompt("test_dynamic_prompt") {
                    let prompt = Prompt::new("test_dynamic_prompt").description("Comes and goes.");
                    changes.add_prompt(prompt, async |_: NoArgs, _: Call| "here");
                }
                "changed"
            },
        )
        .tool(
            described("test_reconnection", "Work for longer than its stream is open."),
            async |_: NoArgs, _: Call| {
                tokio::time::sleep(Duration::from_millis(1500)).await;
                "done after the client came back"
            },
        )
        .tool(
            described("test_custom_header", "Take a parameter that is repeated in a header."),
            async |Regional { region }, _: Call| region,
        )
        .raw_tool(schema_tool(), async |arguments, _: Call| arguments.text().to_owned())
}

fn schema_tool() -> Tool {
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": { "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": { "street": { "type": "string" }, "city": { "type": "string" } },
        }},
        "properties": {
            "name": { "type": "string" },
            "address": { "$ref": "#/$defs/address" },
            "contactMethod": { "type": "string", "enum": ["phone", "email"] },
            "phone": { "type": "string" },
            "email": { "type": "string" },
        },
        "allOf": [{ "anyOf": [{ "required": ["phone"] }, { "required": ["email"] }] }],
        "if": { "properties": { "contactMethod": { "const": "phone" } }, "required": ["contactMethod"] },
        "then": { "required": ["phone"] },
        "else": { "required": ["email"] },
        "additionalProperties": false,
    });
    let mut tool = described("json_schema_2020_12_tool", "Tool with JSON Schema 2020-12 features");
    tool.input_schema = Schema::from(schema);
    tool
}

fn resources(server: ServerBuilder) -> ServerBuilder {
    let described = |uri: &str, name: &str, kind: &str| {
        Resource::new(uri, name).description(name).mime_type(kind)
    };
    server
        .resource(
            described("test://static-text", "A text", "text/plain"),
            async |_: Call| "This is the content of the static text resource.",
        )
        .resource(described("test://static-binary", "A picture", "image/png"), async |_: Call| {
            PNG_BYTES
        })
        .resource(
            described("test://watched-resource", "Watched", "text/plain"),
            async |_: Call| "Watched resource content",
        )
        .resource_template(
            ResourceTemplate::new("test://template/{id}/data", "Data by id")
                .description("Data by id")
                .mime_type("application/json"),
            async |TemplateId { id }, _: Call| {
                json!({ "id": id, "templateTest": true, "data": format!("Data for ID: {id}") })
                    .to_string()
            },
        )
}

fn prompts(server: ServerBuilder) -> ServerBuilder {
    let described = |name: &str, description: &str| Prompt::new(name).description(description);
    server
        .prompt(
            described("test_simple_prompt", "A prompt."),
            async |_: NoArgs, _: Call| "This is a simple prompt for testing.",
        )
        .prompt(
            described("test_prompt_with_arguments", "A prompt with arguments."),
            async |TwoArguments { arg1, arg2 }, _: Call| {
                format!("Prompt with arguments: arg1='{arg1}', arg2='{arg2}'")
            },
        )
        .completion(
            CompletionReference::Prompt(PromptReference::new("test_prompt_with_arguments")),
            "arg1",
            async |_, _: Call| vec!["paris".to_owned(), "park".to_owned()],
        )
        .prompt(
            described("test_prompt_with_embedded_resource", "A prompt with a resource."),
            async |ResourceArgument { resource_uri }, _: Call| {
                vec![
                    PromptMessage::user(embedded(&resource_uri)),
                    PromptMessage::user(Content::text("Please process the embedded resource.")),
                ]
            },
        )
        .prompt(
            described("test_prompt_with_image", "A prompt with a picture."),
            async |_: NoArgs, _: Call| {
                vec![
                    PromptMessage::user(Content::image(PNG, "image/png")),
                    PromptMessage::user(Content::text("Please analyze the image above.")),
                ]
            },
        )
}
