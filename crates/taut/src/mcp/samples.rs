//! One value of each type with every member set: what the tests of the whole vocabulary run on.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::*;
use crate::rpc::Id;

/// A value whose type the tests need not know.
pub(super) struct Sample {
    pub(super) name: &'static str,
    pub(super) full: Value,
    at: Box<dyn Fn(Revision) -> Value>,
    reread: fn(Value) -> Result<Value, serde_json::Error>,
}

impl Sample {
    pub(super) fn at(&self, revision: Revision) -> Value {
        (self.at)(revision)
    }

    /// Like [`Sample::reread`], for a value that may be refused.
    pub(super) fn reread_or_none(&self, value: &Value) -> Option<Value> {
        (self.reread)(value.clone()).ok()
    }

    /// Reads `value` as this type and writes all of it again.
    pub(super) fn reread(&self, value: Value) -> Value {
        (self.reread)(value).unwrap_or_else(|error| panic!("{}: {error}", self.name))
    }
}

fn sample<T>(name: &'static str, value: T) -> Sample
where
    T: WriteJson + Serialize + DeserializeOwned + 'static,
{
    Sample {
        name,
        full: serde_json::to_value(&value).unwrap(),
        at: Box::new(move |revision| {
            let mut json = Vec::new();
            value.write_json(Target::of(revision), &mut json);
            serde_json::from_slice(&json).unwrap()
        }),
        reread: |value| serde_json::to_value(serde_json::from_value::<T>(value)?),
    }
}

fn object(value: Value) -> JsonObject {
    value.as_object().unwrap().clone()
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn pairs() -> BTreeMap<String, String> {
    BTreeMap::from([("k".to_owned(), "v".to_owned())])
}

/// All that any `_meta` may hold, so that each revision can pick what it knows.
fn meta() -> Meta {
    Meta::request(Revision::MODERN, json!({ "elicitation": {} }).into())
        .with(meta_keys::CLIENT_INFO, json!({ "name": "c", "version": "1" }))
        .with(meta_keys::SERVER_INFO, json!({ "name": "s", "version": "1" }))
        .with(meta_keys::LOG_LEVEL, json!("info"))
        .with(meta_keys::SUBSCRIPTION_ID, Id::from("l-1"))
        .with(meta_keys::RELATED_TASK, json!({ "taskId": "t" }))
        .with(meta_keys::PROGRESS_TOKEN, Id::from(7))
        .with("com.example/x", json!([1]))
}

fn icons() -> Vec<Icon> {
    let icon = Icon::new("https://example.com/i.png").mime_type("image/png").theme(IconTheme::Dark);
    vec![icon.sizes(words(&["48x48", "any"]))]
}

fn annotations() -> Annotations {
    let hints = Annotations::new().audience([Role::User, Role::Assistant]).priority(0.5);
    hints.last_modified("2025-01-12T15:00:58Z")
}

fn implementation() -> Implementation {
    let named = Implementation::new("n", "1").title("N").description("d").icons(icons());
    named.website_url("https://example.com")
}

fn tool() -> Tool {
    let hints = ToolAnnotations::new()
        .title("T")
        .read_only_hint(true)
        .destructive_hint(false)
        .idempotent_hint(true)
        .open_world_hint(false);
    Tool::new("t")
        .title("T")
        .description("d")
        .input_schema(json!({ "type": "object", "properties": { "a": { "type": "string" } } }))
        .output_schema(json!({ "type": "object", "required": ["b"] }))
        .annotations(hints)
        .icons(icons())
        .execution(ToolExecution::new().task_support(TaskSupport::Optional))
        .meta(meta())
}

fn contents() -> ResourceContents {
    ResourceContents::new("file:///a").mime_type("text/plain").text("x").meta(meta())
}

fn blocks() -> Vec<Content> {
    let text = TextContent::new("x").annotations(annotations()).meta(meta());
    let image = ImageContent::new("eA==", "image/png").annotations(annotations()).meta(meta());
    let audio = AudioContent::new("eA==", "audio/wav").annotations(annotations()).meta(meta());
    let link = ResourceLink::new("file:///a", "a")
        .title("A")
        .description("d")
        .mime_type("text/plain")
        .size(3)
        .icons(icons())
        .annotations(annotations())
        .meta(meta());
    let bytes = ResourceContents::new("file:///b").blob("eA==");
    let embedded = EmbeddedResource::new(contents()).annotations(annotations()).meta(meta());
    let plain = Content::resource(bytes);
    vec![text.into(), image.into(), audio.into(), link.into(), embedded.into(), plain]
}

fn resource() -> Resource {
    Resource::new("file:///a", "a")
        .title("A")
        .description("d")
        .mime_type("text/plain")
        .size(3)
        .icons(icons())
        .annotations(annotations())
        .meta(meta())
}

fn template() -> ResourceTemplate {
    ResourceTemplate::new("file:///{x}", "x")
        .title("X")
        .description("d")
        .mime_type("text/plain")
        .icons(icons())
        .annotations(annotations())
        .meta(meta())
}

fn prompt() -> Prompt {
    let blank = PromptArgument::new("a").title("A").description("d").required(true);
    Prompt::new("p").title("P").description("d").arguments([blank]).icons(icons()).meta(meta())
}

fn client_capabilities() -> ClientCapabilities {
    let elicitation = ElicitationCapability::new().form(object(json!({}))).url(object(json!({})));
    let sampling = SamplingCapability::new().tools(object(json!({}))).context(object(json!({})));
    ClientCapabilities::new()
        .roots(RootsCapability::new().list_changed(true))
        .sampling(sampling)
        .elicitation(elicitation)
        .tasks(json!({ "list": {}, "requests": { "elicitation": { "create": {} } } }))
        .experimental(object(json!({ "x": {} })))
        .extensions(object(json!({ "io.modelcontextprotocol/ui": { "mimeTypes": [] } })))
}

fn server_capabilities() -> ServerCapabilities {
    ServerCapabilities::new()
        .tools(ToolsCapability::new().list_changed(true))
        .resources(ResourcesCapability::new().list_changed(true).subscribe(true))
        .prompts(PromptsCapability::new().list_changed(true))
        .completions(object(json!({})))
        .logging(object(json!({})))
        .tasks(json!({ "list": {} }))
        .experimental(object(json!({ "x": {} })))
        .extensions(object(json!({ "com.example/y": {} })))
}

fn form() -> FormSchema {
    let text = TextField::new().title("T").description("d").min_length(1).max_length(9);
    let number = NumberField::new().title("T").description("d").minimum(1).maximum(9).default(2);
    let yes = BooleanField::new().title("T").description("d").default(true);
    FormSchema::new()
        .required("text", text.format("email").default("a@b.c"))
        .optional("number", number)
        .optional("whole", FormField::integer())
        .optional("yes", yes)
        .optional("one", FormField::one(["a", "b"]))
        .required("titled", FormField::one([Choice::titled("a", "A"), Choice::titled("b", "B")]))
        .required("several", FormField::several(["a", "b"]))
        .optional("many", FormField::several([Choice::titled("a", "A")]))
}

fn messages() -> Vec<SamplingMessage> {
    let call = ToolUse::new("1", "add", object(json!({ "a": 1 }))).meta(meta());
    let answer = ToolResult::new("1", [Content::text("2")])
        .structured_content(json!({ "sum": 2 }))
        .is_error(false)
        .meta(meta());
    let both = vec![SamplingContent::text("well"), call.into()];
    let sound = SamplingContent::from(AudioContent::new("eA==", "audio/wav"));
    vec![
        SamplingMessage::user("hi").meta(meta()),
        SamplingMessage::assistant(both),
        SamplingMessage::user(SamplingContent::from(answer)),
        SamplingMessage::user(sound),
        SamplingMessage::user(SamplingContent::from(ImageContent::new("eA==", "image/png"))),
    ]
}

fn create_message() -> CreateMessageParams {
    let preferences = ModelPreferences::new()
        .hints([ModelHint::new().name("m")])
        .cost_priority(0.1)
        .speed_priority(0.2)
        .intelligence_priority(0.3);
    CreateMessageParams::new(messages(), 100)
        .model_preferences(preferences)
        .system_prompt("s")
        .include_context(IncludeContext::None)
        .temperature(0.7)
        .stop_sequences(words(&["x"]))
        .metadata(object(json!({ "p": 1 })))
        .tools([tool()])
        .tool_choice(ToolChoice::new().mode(ToolChoiceMode::Auto))
        .task(json!({ "ttl": 5 }))
        .meta(meta())
}

fn filter() -> SubscriptionFilter {
    SubscriptionFilter::new()
        .tools_list_changed(true)
        .prompts_list_changed(true)
        .resources_list_changed(true)
        .resource_subscriptions(words(&["file:///a"]))
}

pub(super) fn opening() -> Vec<Sample> {
    let (ttl, public) = (Duration::from_secs(1), CacheScope::Public);
    let asked = InitializeParams::new("2025-11-25", client_capabilities(), implementation());
    let agreed = InitializeResult::new("2025-11-25", server_capabilities(), implementation());
    let found = DiscoverResult::new(words(&["2026-07-28"]), server_capabilities());
    let found = found.instructions("i").ttl(ttl).cache_scope(public).meta(meta());
    vec![
        sample("Implementation", implementation()),
        sample("ClientCapabilities", client_capabilities()),
        sample("ServerCapabilities", server_capabilities()),
        sample("InitializeParams", asked.meta(meta())),
        sample("InitializeResult", agreed.instructions("i").meta(meta())),
        sample("DiscoverResult", found),
        sample("EmptyResult", EmptyResult::new().meta(meta())),
    ]
}

pub(super) fn offers() -> Vec<Sample> {
    let (ttl, public) = (Duration::from_secs(1), CacheScope::Public);
    let tools = ListToolsResult::new([tool()]).next_cursor("c").ttl(ttl);
    let resources = ListResourcesResult::new([resource()]).next_cursor("c").ttl(ttl);
    let templates = ListResourceTemplatesResult::new([template()]).next_cursor("c").ttl(ttl);
    let prompts = ListPromptsResult::new([prompt()]).next_cursor("c").ttl(ttl);
    vec![
        sample("Tool", tool()),
        sample("Resource", resource()),
        sample("ResourceTemplate", template()),
        sample("Prompt", prompt()),
        sample("PageParams", PageParams::new().cursor("c").meta(meta())),
        sample("ListToolsResult", tools.cache_scope(public.clone()).meta(meta())),
        sample("ListResourcesResult", resources.cache_scope(public.clone()).meta(meta())),
        sample("ListResourceTemplatesResult", templates.cache_scope(public.clone()).meta(meta())),
        sample("ListPromptsResult", prompts.cache_scope(public).meta(meta())),
    ]
}

pub(super) fn calls() -> Vec<Sample> {
    let answers = json!({ "q": { "action": "accept" } });
    let call = CallToolParams::new("t").arguments(json!({ "a": 1 })).task(json!({ "ttl": 5 }));
    let called = CallToolResult::new(blocks()).structured_content(json!({ "b": 1 }));
    let said: Vec<_> = blocks().into_iter().map(PromptMessage::user).collect();
    let prompt = GetPromptParams::new("p").arguments(pairs()).input_responses(answers.clone());
    let read = ReadResourceParams::new("file:///a").input_responses(answers.clone());
    let found = ReadResourceResult::new([contents()]).ttl(Duration::from_secs(1));
    let complete = CompleteParams::new(
        PromptReference::new("p").title("P"),
        CompletionArgument::new("a", "v"),
    );
    let completed = CompleteResult::new(Completion::first_of(words(&["a", "b"])));
    vec![
        sample("CallToolParams", call.input_responses(answers).request_state("s").meta(meta())),
        sample("CallToolResult", called.is_error(false).meta(meta())),
        sample("GetPromptParams", prompt.request_state("s").meta(meta())),
        sample("GetPromptResult", GetPromptResult::new(said).description("d").meta(meta())),
        sample("ReadResourceParams", read.request_state("s").meta(meta())),
        sample("ReadResourceResult", found.cache_scope(CacheScope::Public).meta(meta())),
        sample("SubscribeParams", ResourceParams::new("file:///a").meta(meta())),
        sample("ResourceUpdatedParams", ResourceParams::new("file:///a").meta(meta())),
        sample(
            "CompleteParams",
            complete.context(CompletionContext::new().arguments(pairs())).meta(meta()),
        ),
        sample("CompleteResult", completed.meta(meta())),
    ]
}

pub(super) fn asking_and_telling() -> Vec<Sample> {
    let said = vec![SamplingContent::text("hi"), SamplingContent::text("there")];
    let message = CreateMessageResult::new(Role::Assistant, said, "m");
    let page = ElicitUrl::new("go", "https://example.com").elicitation_id("7");
    let asked = ElicitForm::new("who?", form()).mode("form").task(json!({ "ttl": 5 }));
    let filled = ElicitResult::new(ElicitAction::Accept);
    let progress = ProgressParams::new("t", 1).total(2).message("m").meta(meta());
    let log = LogParams::new(Level::Info, json!({ "a": 1 })).logger("l").meta(meta());
    vec![
        sample("CreateMessageParams", create_message()),
        sample("CreateMessageResult", message.stop_reason(StopReason::EndTurn).meta(meta())),
        sample("ElicitForm", ElicitParams::from(asked.meta(meta()))),
        sample("ElicitUrl", ElicitParams::from(page.task(json!({ "ttl": 5 })).meta(meta()))),
        sample("ElicitResult", filled.content(object(json!({ "a": "b" }))).meta(meta())),
        sample("ElicitationCompleteParams", ElicitationCompleteParams::new("7")),
        sample(
            "ListRootsResult",
            ListRootsResult::new([Root::new("file:///a").name("A").meta(meta())]).meta(meta()),
        ),
        sample("SetLevelParams", SetLevelParams::new(Level::Info).meta(meta())),
        sample("LogParams", log),
        sample("ProgressParams", progress),
        sample("CancelledParams", CancelledParams::new(7).reason("r").meta(meta())),
        sample("ListenParams", SubscriptionParams::new(filter()).meta(meta())),
        sample("AcknowledgedParams", SubscriptionParams::new(filter()).meta(meta())),
        sample("ListenResult", EmptyResult::end_of_subscription("l-1".into())),
        sample("BareParams", BareParams::new().meta(meta())),
        sample("UnsupportedVersion", UnsupportedVersion::new(words(&["a"]), "b")),
        sample("MissingCapability", MissingCapability::new(client_capabilities())),
    ]
}

pub(super) fn all() -> Vec<Sample> {
    let groups = [opening(), offers(), calls(), asking_and_telling()];
    groups.into_iter().flatten().collect()
}
