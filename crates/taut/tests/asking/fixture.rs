//! The servers under test.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde::{Deserialize, Serialize};
use taut::types::{CompletionReference, CreateMessageParams, PromptReference, SamplingMessage};
use taut::{
    AskError, Call, JsonSchema, NoArgs, Prompt, Resource, Server, ServerBuilder, Tool, UserReply,
};

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Coffee {
    /// Which size?
    size: Size,
    #[serde(default = "yes")]
    milk: bool,
    name: Option<String>,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Size {
    Small,
    Large,
}

fn yes() -> bool {
    true
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Confirm {
    right: bool,
}

/// One line of text.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct Line {
    pub(crate) line: String,
}

/// Two rounds, as the demo's tool of this name: the first answer is needed for the second question.
pub(crate) async fn coffee<S: Send + Sync + 'static>(
    _: NoArgs,
    call: Call<S>,
) -> Result<String, AskError> {
    let UserReply::Accepted(coffee) = call.ask::<Coffee>("What would you like?").await? else {
        return Ok("no coffee then".to_owned());
    };
    let milk = if coffee.milk { "with milk" } else { "black" };
    let order = format!("one {} coffee, {milk}", format!("{:?}", coffee.size).to_lowercase());
    match call.ask::<Confirm>(format!("That is {order}.")).await? {
        UserReply::Accepted(Confirm { right: true }) => {
            Ok(format!("{order}, for {}", coffee.name.as_deref().unwrap_or("you")))
        }
        UserReply::Declined => Ok("declined".to_owned()),
        _ => Ok("no coffee then".to_owned()),
    }
}

/// Asks for a line, and gives it or what was done instead.
pub(crate) async fn line<S: Send + Sync + 'static>(
    call: &Call<S>,
    message: &str,
) -> Result<String, AskError> {
    Ok(match call.ask::<Line>(message).await? {
        UserReply::Accepted(Line { line }) => line,
        other => format!("{:?}", other.accepted().is_some()),
    })
}

/// A server with one of each thing that can ask.
pub(crate) fn asking() -> Server {
    Server::builder("asking", "1")
        .tool(("coffee", "Tool coffee."), coffee)
        .tool(("boxed", "Tool boxed."), async |_: NoArgs, call| {
            Ok::<_, Box<dyn std::error::Error + Send + Sync>>(line(&call, "who?").await?)
        })
        .tool(("page", "Tool page."), async |_: NoArgs, call: Call| {
            let asked = call.ask_at("https://example.com/pay", "pay there").await?;
            Ok::<_, AskError>(format!("{asked:?}"))
        })
        .tool(("sample", "Tool sample."), async |_: NoArgs, call: Call| {
            let params = CreateMessageParams::new([SamplingMessage::user("hi")], 10u64);
            let answer = call.sample(params).await?;
            Ok::<_, AskError>(answer.model)
        })
        .tool(("sample_tools", "Tool sample_tools."), async |_: NoArgs, call: Call| {
            let params = CreateMessageParams::new([SamplingMessage::user("hi")], 10u64)
                .tools([Tool::new("add")]);
            let answer = call.sample(params).await?;
            Ok::<_, AskError>(answer.model)
        })
        .tool(("roots", "Tool roots."), async |_: NoArgs, call: Call| {
            let roots = call.roots().await?;
            let uris: Vec<_> = roots.into_iter().map(|root| root.uri).collect();
            Ok::<_, AskError>(uris.join(" "))
        })
        .resource(Resource::new("ask://line", "line"), async |call: Call| {
            line(&call, "what is in it?").await
        })
        .prompt(Prompt::new("polite"), async |Line { line: subject }, call: Call| {
            line(&call, &format!("{subject}, from whom?")).await
        })
        .completion(
            CompletionReference::Prompt(PromptReference::new("polite")),
            "line",
            async |_, call: Call| vec![line(&call, "help?").await.unwrap_err().to_string()],
        )
        .build()
        .unwrap()
}

/// The server that a scene names.
pub(crate) fn named(name: &str) -> Server {
    if name == "asking" { asking() } else { changing(name).build().unwrap() }
}

/// A server that changes what it offers, called so.
pub(crate) fn changing(name: &str) -> ServerBuilder {
    let server = match name {
        "changing" => Server::builder("changing", "1").logging().changing(),
        "fixed" => Server::builder("fixed", "1").logging(),
        other => panic!("no such server: {other}"),
    };
    server
        .tool(("add", "Tool add."), async |_: NoArgs, call: Call| {
            call.log(taut::Level::Error, "adding");
            call.progress(1.0);
            call.changes().add_tool(("added", "Tool added."), async |_: NoArgs, _| "here")?;
            Ok::<_, taut::Error>("done")
        })
        .tool(("remove", "Tool remove."), async |_: NoArgs, call: Call| {
            call.changes().remove_tool("added")
        })
        .tool(("prompt", "Tool prompt."), async |_: NoArgs, call: Call| {
            call.changes().add_prompt("hello", async |_: NoArgs, _| "Hello.");
        })
        .tool(("resource", "Tool resource."), async |_: NoArgs, call: Call| {
            call.changes().add_resource(Resource::new("a:new", "new"), async |_| "new");
        })
        .tool("touch", async |Line { line }, call: Call| call.changes().resource_updated(&line))
        .resource(Resource::new("a:b", "b"), async |_| "b")
}

/// Counts what it does.
#[derive(Clone, Default)]
pub(crate) struct Counter(Arc<AtomicUsize>);

impl Counter {
    pub(crate) fn up(&self) -> usize {
        self.0.fetch_add(1, Ordering::SeqCst) + 1
    }

    pub(crate) fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }

    /// How many hold it, this one included.
    pub(crate) fn holders(&self) -> usize {
        Arc::strong_count(&self.0)
    }
}

/// Waits until something holds.
pub(crate) async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..10_000 {
        if holds() {
            return;
        }
        tokio::task::yield_now().await;
    }
    panic!("never: {what}");
}
