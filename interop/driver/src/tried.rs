//! What is tried in each feature, and what must come of it.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use taut::types::{PromptReference, ResourceReference, SubscriptionFilter};
use taut::{Change, Content, Level, client::Pages};
use tokio::sync::Notify;

use crate::drive::{Fault, Open, Typed};
use crate::feature::Feature;

/// Separators, marks, pairs of surrogates, joiners, and what JSON must escape.
const UNICODE: &str = "π ☕ 日本語 👩‍👩‍👧 e\u{301} \u{2028} \u{2029} \u{85} \u{0} \"\\ \t\r\n end";

type Tried = Result<(), Fault>;

fn wrong<T>(what: impl Into<String>) -> Result<T, Fault> {
    Err(Fault::Wrong(what.into()))
}

fn expect(holds: bool, what: impl Into<String>) -> Tried {
    if holds { Ok(()) } else { wrong(what) }
}

pub async fn feature(feature: Feature, open: &Open) -> Tried {
    match feature {
        Feature::Connect => Ok(()),
        Feature::List => list(open).await,
        Feature::Paging => paging(open).await,
        Feature::Call => echo(open, "hello").await,
        Feature::Structured => structured(open).await,
        Feature::Error => error(open).await,
        Feature::Progress => progress(open).await,
        Feature::Cancel => cancel(open).await,
        Feature::Log => log(open).await,
        Feature::Resources => resources(open).await,
        Feature::Template => template(open).await,
        Feature::Subscribe => subscribe(open).await,
        Feature::Prompts => prompts(open).await,
        Feature::Completion => completion(open).await,
        Feature::Ask => says(open, "ask", json!({}), "one large coffee, with milk, for Ada").await,
        Feature::Sample => {
            says(open, "sample", json!({ "prompt": "Capital of Portugal?" }), "Lisbon").await
        }
        Feature::Roots => says(open, "roots", json!({}), "file:///interop/project").await,
        Feature::Changed => changed(open).await,
        Feature::Unicode => echo(open, UNICODE).await,
        Feature::Mib1 => echo(open, &"0123456789abcdef".repeat(1 << 16)).await,
        Feature::Mib10 => echo(open, &"0123456789abcdef".repeat(10 << 16)).await,
        Feature::Hundred => hundred(open).await,
        Feature::InFlight | Feature::Kill => wrong("needs a connection of its own"),
    }
}

/// Calls a tool and wants exactly this text.
async fn says(open: &Open, tool: &str, arguments: Value, text: &str) -> Tried {
    let answer = open.client.call(tool, arguments).await?;
    let said = answer.text()?;
    let shown: String = said.chars().take(200).collect();
    expect(said == text, format!("{tool} answered {shown:?}"))
}

async fn echo(open: &Open, text: &str) -> Tried {
    says(open, "echo", json!({ "text": text }), text).await
}

async fn list(open: &Open) -> Tried {
    let tools = open.client.tools().await?;
    for name in ["echo", "add", "slow", "fail"] {
        expect(tools.iter().any(|tool| tool.name == name), format!("no tool {name:?}"))?;
    }
    Ok(())
}

/// How many pages a list has, and the keys of what stands in it.
async fn pages<T>(mut list: Pages<T>, key: impl Fn(&T) -> String) -> Result<usize, Fault> {
    let (mut pages, mut keys) = (0, HashSet::new());
    while let Some(page) = list.next_page().await? {
        pages += 1;
        for item in &page {
            expect(keys.insert(key(item)), format!("{:?} comes twice", key(item)))?;
        }
    }
    Ok(pages)
}

async fn paging(open: &Open) -> Tried {
    let tools = pages(open.client.tools(), |tool| tool.name.clone()).await?;
    let resources = pages(open.client.resources(), |resource| resource.uri.clone()).await?;
    let prompts = pages(open.client.prompts(), |prompt| prompt.name.clone()).await?;
    if tools.max(resources).max(prompts) > 1 {
        return Ok(());
    }
    Err(Fault::Absent("each list came as one page".into()))
}

async fn structured(open: &Open) -> Tried {
    let answer = open.client.call("add", json!({ "a": 2, "b": 3 })).await?;
    let content = answer.structured_content.as_ref().and_then(|json| json.parse::<Value>().ok());
    let sum = content.and_then(|content| content["sum"].as_f64());
    let shown = format!("{:?}", answer.structured_content);
    expect(sum == Some(5.0), format!("the structured content is {shown}"))?;
    let tools = open.client.tools().await?;
    let declared = tools.iter().any(|tool| tool.name == "add" && tool.output_schema.is_some());
    expect(declared, "add has no output schema")
}

async fn error(open: &Open) -> Tried {
    let answer = open.client.call("fail", json!({ "reason": "no beans" })).await?;
    expect(answer.failed(), "fail did not fail")?;
    let said = answer.content.iter().any(|c| c.as_text().is_some_and(|t| t.contains("no beans")));
    expect(said, "fail did not say why")?;
    match open.client.call("no_such_tool", json!({})).await {
        Ok(answer) => expect(answer.failed(), "a tool that does not exist answered")?,
        Err(taut::Error::Refused { .. }) => {}
        Err(error) => return Err(error.into()),
    }
    echo(open, "still there").await
}

async fn progress(open: &Open) -> Tried {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let sink = seen.clone();
    let call = open.client.call("slow", json!({ "steps": 5, "step_ms": 100 }));
    let answer = call
        .progress(move |report| {
            sink.lock().unwrap_or_else(PoisonError::into_inner).push(report.progress);
        })
        .await?;
    let seen = seen.lock().unwrap_or_else(PoisonError::into_inner).clone();
    expect(seen.len() >= 3, format!("{} reports", seen.len()))?;
    expect(seen.is_sorted_by(|a, b| a < b), format!("not rising: {seen:?}"))?;
    expect(answer.text()? == "done after 5 steps", "another answer")
}

async fn cancel(open: &Open) -> Tried {
    let moving = Arc::new(Notify::new());
    let bell = moving.clone();
    let call = open.client.call("slow", json!({ "steps": 200, "step_ms": 50 }));
    let call = async move { call.progress(move |_| bell.notify_one()).await };
    tokio::select! {
        answer = call => return wrong(format!("answered before it was cancelled: {answer:?}")),
        () = moving.notified() => {}
        // A server without progress is cancelled all the same.
        () = tokio::time::sleep(Duration::from_secs(3)) => {}
    }
    let deadline = Instant::now() + Duration::from_secs(8);
    while !open.heard.on_stderr("slow: cancelled") {
        expect(Instant::now() < deadline, "the server did not notice")?;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    echo(open, "still there").await?;
    // CAN-03: no answer is sent. It would come about now.
    let deadline = Instant::now() + Duration::from_secs(1);
    while Instant::now() < deadline {
        let late = open.client.diagnostics().late_answers;
        expect(late == 0, "the cancelled call was answered")?;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok(())
}

async fn log(open: &Open) -> Tried {
    open.client.set_level(Level::Debug).await?;
    let arguments = json!({ "level": "warning", "message": "careful" });
    open.client.call("log", arguments).await?.text()?;
    let deadline = Instant::now() + Duration::from_secs(5);
    while !open.heard.logged("careful") {
        expect(Instant::now() < deadline, "nothing was logged")?;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    expect(open.heard.logged("warning: "), "logged at another level")
}

async fn resources(open: &Open) -> Tried {
    let resources = open.client.resources().await?;
    let listed = resources.iter().any(|resource| resource.uri == "demo://readme");
    expect(listed, "demo://readme is not listed")?;
    read(open, "demo://readme", "").await?;
    let missing = open.client.read("demo://no-such-thing").await;
    expect(missing.is_err(), "what does not exist was read")
}

async fn read(open: &Open, uri: &str, text: &str) -> Tried {
    let contents = open.client.read(uri).await?;
    let found = contents.iter().filter_map(|content| content.text.as_deref());
    let found = found.collect::<String>();
    expect(!found.is_empty() && found.contains(text), format!("{uri} holds {found:?}"))
}

async fn template(open: &Open) -> Tried {
    let templates = open.client.resource_templates().await?;
    let listed = templates.iter().any(|template| template.uri_template == "weather://{city}/today");
    expect(listed, "weather://{city}/today is not listed")?;
    read(open, "weather://Lisbon/today", "Lisbon").await
}

async fn subscribe(open: &Open) -> Tried {
    let uri = "demo://touched";
    let filter = SubscriptionFilter::new().resource_subscriptions([uri.to_owned()]);
    let mut changes = open.client.listen(filter).await?;
    open.client.call("touch", json!({})).await?.text()?;
    let change = changes.next().await?;
    expect(change == Some(Change::Resource(uri.into())), format!("heard of {change:?}"))
}

async fn changed(open: &Open) -> Tried {
    let filter = SubscriptionFilter::new().tools_list_changed(true);
    let mut changes = open.client.listen(filter).await?;
    let arguments = json!({ "name": "later", "says": "here I am" });
    open.client.call("add_tool", arguments).await?.text()?;
    let change = changes.next().await?;
    expect(change == Some(Change::Tools), format!("heard of {change:?}"))?;
    let tools = open.client.tools().await?;
    expect(tools.iter().any(|tool| tool.name == "later"), "the new tool is not listed")?;
    says(open, "later", json!({}), "here I am").await
}

async fn prompts(open: &Open) -> Tried {
    let prompts = open.client.prompts().await?;
    for name in ["hello", "greet"] {
        expect(prompts.iter().any(|prompt| prompt.name == name), format!("no prompt {name:?}"))?;
    }
    let filled = open.client.prompt("greet", [("name", "Ada"), ("language", "German")]).await?;
    let first = filled.messages.first().and_then(|message| message.content.as_text());
    let greets = first.is_some_and(|text| text.contains("Ada") && text.contains("German"));
    expect(greets, format!("the prompt is {first:?}"))
}

async fn completion(open: &Open) -> Tried {
    let languages = open.client.complete(PromptReference::new("greet"), "language", "Ge").await?;
    expect(languages.values == ["German"], format!("languages: {:?}", languages.values))?;
    let weather = ResourceReference::new("weather://{city}/today");
    let cities = open.client.complete(weather, "city", "be").await?;
    expect(cities.values == ["Berlin", "Bern"], format!("cities: {:?}", cities.values))
}

async fn hundred(open: &Open) -> Tried {
    let mut calls = tokio::task::JoinSet::new();
    for n in 0..100 {
        let call = open.client.call("echo", json!({ "text": format!("call {n}") }));
        calls.spawn(async move { (n, call.await) });
    }
    while let Some(done) = calls.join_next().await {
        let (n, answer) = done.map_err(|e| Fault::Wrong(e.to_string()))?;
        let answer = answer?;
        expect(answer.text()? == format!("call {n}"), format!("call {n} got another's answer"))?;
    }
    Ok(())
}

/// Features that end a connection, each on one of its own.
pub async fn ending(feature: Feature, typed: &Typed) -> Tried {
    let open = typed.open().await?;
    let pending: Vec<_> = (0..3)
        .map(|_| open.client.call("slow", json!({ "steps": 600, "step_ms": 100 })))
        .map(|call| tokio::spawn(async move { call.without_timeout().await }))
        .collect();
    // So that they are under way: answered only after all three were taken in.
    echo(&open, "under way").await?;
    let started = Instant::now();
    if feature == Feature::Kill {
        let pid = open.client.pid().and_then(|pid| Pid::from_raw(pid.cast_signed()));
        let Some(pid) = pid else { return wrong("no process") };
        kill_process(pid, Signal::KILL).map_err(|e| Fault::Wrong(e.to_string()))?;
    } else {
        open.client.close().await?;
    }
    for call in pending {
        let answer = call.await.map_err(|e| Fault::Wrong(e.to_string()))?;
        // A server may finish what it has taken in; slow would take a minute for that.
        expect(answer.is_err(), "a call was answered by a server that is gone")?;
    }
    let took = started.elapsed();
    let limit = Duration::from_secs(if feature == Feature::Kill { 5 } else { 10 });
    expect(took < limit, format!("took {took:.1?}"))
}

/// A server that none of us wrote: what it has.
pub async fn real_list(open: &Open, real: &Value) -> Tried {
    let tools = open.client.tools().await?;
    let wanted = real["tool"].as_str().unwrap_or_default();
    let listed = tools.iter().any(|tool| tool.name == wanted);
    let names: Vec<_> = tools.iter().map(|tool| tool.name.as_str()).collect();
    expect(listed, format!("no {wanted:?} among {names:?}"))?;
    for list in [open.client.resources().await.err(), open.client.prompts().await.err()] {
        match list {
            None | Some(taut::Error::NotOffered { .. }) => {}
            Some(error) => return Err(error.into()),
        }
    }
    Ok(())
}

pub async fn real_call(open: &Open, real: &Value) -> Tried {
    let tool = real["tool"].as_str().unwrap_or_default();
    let answer = open.client.call(tool, real["arguments"].clone()).await?;
    let texts = answer.content.iter().filter_map(Content::as_text).collect::<Vec<_>>().join("\n");
    let wanted = real["expect"].as_str().unwrap_or_default();
    let shown: String = texts.chars().take(300).collect();
    expect(!answer.failed() && texts.contains(wanted), format!("it answered {shown:?}"))
}

/// Closed right after a call was sent.
pub async fn real_close(typed: &Typed, real: &Value) -> Tried {
    let open = typed.open().await?;
    let tool = real["tool"].as_str().unwrap_or_default().to_owned();
    let call = open.client.call(tool, real["arguments"].clone());
    let call = tokio::spawn(async move { call.await.map(|_| ()) });
    tokio::task::yield_now().await;
    let started = Instant::now();
    open.client.close().await?;
    let _ = call.await;
    let took = started.elapsed();
    expect(took < Duration::from_secs(10), format!("closing took {took:.1?}"))
}
