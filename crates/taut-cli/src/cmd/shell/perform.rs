//! Runs one order of the shell and shows its result.
//!
//! Returns an exit code and, with `--json`, a document. Must not know whether the order was typed or came
//! from a script.

use std::fmt::Write as _;

use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use taut::Client;
use taut::types::WriteJson as _;

use super::order::{Given, Meaningless, Order, WORDS, meant};
use super::running::Running;
use crate::cells::pad;
use crate::cmd::call::{self, fit};
use crate::cmd::watch::tell_unlisted;
use crate::cmd::{complete, list, prompt, read};
use crate::content::{self, Piece};
use crate::events::Event;
use crate::output::{BOLD, CYAN, DIM, Output, RED};
use crate::own;
use crate::problem::{Exit, Problem};
use crate::session::with_words;
use crate::signals::{Interrupts, Stop};
use crate::spinner::Spinner;
use crate::word_order::SERVER;

/// What an order came to.
pub(super) struct Done {
    pub(super) exit: Exit,
    /// The result, if it is wanted as JSON.
    pub(super) document: Option<Box<RawValue>>,
    pub(super) leave: bool,
}

impl Done {
    fn well(document: Option<Box<RawValue>>) -> Self {
        Self { exit: Exit::Worked, document, leave: false }
    }
}

impl From<Meaningless> for Problem {
    fn from(Meaningless { what, next }: Meaningless) -> Self {
        Self::Usage { what, next: Some(next) }
    }
}

impl Running<'_> {
    /// Does it, until a signal says otherwise: then what was asked is withdrawn.
    pub(super) async fn perform(
        &mut self,
        order: Order,
        interrupts: &mut Interrupts,
    ) -> Result<Done, Problem> {
        if order == Order::Restart {
            self.close(interrupts).await?;
            self.start(interrupts).await?;
            self.greet();
            return Ok(Done::well(None));
        }
        let before = self.client.as_ref().map(Client::stderr).unwrap_or_default();
        let asked = tokio::select! {
            asked = self.ask(order) => asked,
            stop = interrupts.next_stop() => Err(match stop {
                Stop::Interrupt => Problem::Interrupted,
                Stop::End => Problem::Ended,
            }),
        };
        let done = asked.map_err(|problem| match &self.client {
            Some(client) => match with_words(problem, client, self.output) {
                Problem::Server { error, stdout, stderr } => {
                    // What it said before has nothing to do with this.
                    Problem::Server { error, stdout, stderr: since(&before, &stderr).into() }
                }
                other => other,
            },
            None => problem,
        })?;
        Ok(Done { exit: self.host.judge(done.exit), ..done })
    }

    async fn ask(&mut self, order: Order) -> Result<Done, Problem> {
        match order {
            Order::Help => self.help(),
            Order::Info => self.info(),
            Order::List(kind) => {
                let client = self.client()?;
                let offer = self.waiting("listing", list::ask(&client, kind)).await?;
                let document = self.document(|| offer.sent.clone())?;
                self.print(|output| offer.shown(output, kind))?;
                Ok(Done::well(document))
            }
            Order::Describe(tool) => self.describe(&tool).await,
            Order::Call { tool, given } => self.call(&tool, given).await,
            Order::Read(uri) => {
                let client = self.client()?;
                let reading = Spinner::start(self.output, "reading");
                let contents = match client.read(uri.as_str()).await {
                    Ok(contents) => contents,
                    Err(error) => {
                        let see = "resources and templates show what there is";
                        return Err(read::meant(&client, &uri, error, see).await);
                    }
                };
                drop(reading);
                let document = self.document(|| read::document(&contents, client.revision()))?;
                if !self.output.json {
                    let pieces: Vec<Piece> = contents.iter().map(Piece::of_resource).collect();
                    content::print(self.output, &pieces)?;
                }
                Ok(Done::well(document))
            }
            Order::Prompt { name, pairs } => self.prompt(&name, &pairs).await,
            Order::Complete { what, pairs } => {
                let client = self.client()?;
                let pairs = complete::pairs(&pairs)?;
                let asking = Spinner::start(self.output, "completing");
                let found = complete::ask(&client, &what, &pairs).await;
                let found = found.map_err(|problem| here(problem, &what))?;
                drop(asking);
                let document = self.document(|| found.clone())?;
                if !self.output.json {
                    complete::show(self.output, &found)?;
                }
                Ok(Done::well(document))
            }
            Order::Log(level) => {
                self.set_level(level).await?;
                Ok(Done::well(None))
            }
            Order::Subscribe(uri) => {
                self.watch(&uri).await?;
                self.confirm(&format!("changes of {uri} will be told"));
                tell_unlisted(self.output, &self.client()?, &[uri]).await;
                Ok(Done::well(None))
            }
            Order::Unsubscribe(uri) if self.unwatch(&uri) => {
                self.confirm(&format!("changes of {uri} are no longer told"));
                Ok(Done::well(None))
            }
            Order::Unsubscribe(uri) => Err(Problem::usage(format!("{uri} is not subscribed to"))),
            Order::Quit | Order::Restart => Ok(Done { leave: true, ..Done::well(None) }),
        }
    }

    async fn call(&mut self, tool: &str, given: Given) -> Result<Done, Problem> {
        let client = self.client()?;
        let arguments = match given {
            Given::Json(arguments) => arguments,
            Given::Pairs(pairs) => {
                let tools = client.tools().await?;
                if !tools.iter().any(|known| known.name == tool) {
                    let problem = here(call::unknown(tool, &tools), tool);
                    return Err(call::instead(problem, tool, &self.catalog.lock(), "", ""));
                }
                fit(&tools, tool, &pairs).map_err(|problem| here(problem, tool))?
            }
        };
        let spinner = Spinner::start(self.output, format!("calling {tool}"));
        let call = client.call(tool, Value::Object(arguments));
        let call = if self.output.json {
            let (output, of) = (self.output.clone(), tool.to_owned());
            call.progress(move |report| Event::Progress { of: of.clone(), report }.tell(&output))
        } else {
            call.progress(spinner.watcher(tool))
        };
        let answer = call.await?;
        drop(spinner);
        let document = self.document(|| answer.at(client.revision()))?;
        if !self.output.json {
            call::show(self.output, &answer)?;
        }
        if !answer.failed() {
            return Ok(Done::well(document));
        }
        if !self.output.json {
            let words = format!("the tool {tool} reported failure");
            self.output.note(&self.output.err.paint(RED, self.output.err.line(&words)));
        }
        Ok(Done { exit: Exit::ToolFailed, ..Done::well(document) })
    }

    async fn prompt(&mut self, name: &str, pairs: &[String]) -> Result<Done, Problem> {
        let client = self.client()?;
        let pairs = prompt::pairs(pairs)?;
        let prompts = client.prompts().await?;
        let is_tool = self.catalog.lock().tools.iter().flatten().any(|tool| tool.name == name);
        if is_tool && !prompts.iter().any(|prompt| prompt.name == name) {
            let what = format!("{name} is a tool, not a prompt");
            return Err(Problem::Usage { what, next: Some(format!("tools {name}")) });
        }
        prompt::check(name, &pairs, &prompts).map_err(|p| here(p, name))?;
        let filled = self.waiting("filling in", client.prompt(name, pairs)).await?;
        let document = self.document(|| filled.at(client.revision()))?;
        if !self.output.json {
            prompt::show(self.output, &filled)?;
        }
        Ok(Done::well(document))
    }

    /// One tool, with its whole description and each argument.
    async fn describe(&mut self, name: &str) -> Result<Done, Problem> {
        let client = self.client()?;
        let tools = client.tools().await?;
        let tool = tools.iter().find(|tool| tool.name == name);
        let tool = tool.ok_or_else(|| here(call::unknown(name, &tools), name))?;
        let document = self.document(|| tool.at(client.revision()))?;
        self.print(|output| {
            let out = output.out;
            let mut text = format!("{}\n", out.paint(BOLD, out.line(&tool.name)));
            let about = tool.description.as_deref().or(tool.title.as_deref()).unwrap_or_default();
            if !about.is_empty() {
                let _ = writeln!(text, "{}", out.text(about.trim_end()));
            }
            text += &out.text(&list::only::about_tool(tool));
            text
        })?;
        Ok(Done::well(document))
    }

    fn help(&self) -> Result<Done, Problem> {
        self.print(|output| {
            let mut text = String::new();
            for (name, takes, about) in WORDS {
                let what = format!("{name} {takes}");
                let pad = pad(&what, 34);
                let _ = writeln!(text, "  {}{pad}{about}", output.out.paint(CYAN, what));
            }
            text.push_str(
                "Tab completes. Ctrl-C withdraws the call that runs. Quotes as in a shell.\n",
            );
            text
        })?;
        let names: Vec<&str> = WORDS.iter().map(|(name, ..)| *name).collect();
        Ok(Done::well(self.document(|| json!({ "words": names }))?))
    }

    fn info(&self) -> Result<Done, Problem> {
        let client = self.client()?;
        let facts = facts(&client);
        self.print(|output| {
            let mut text = String::new();
            for (name, fact) in &facts {
                let fact = fact.as_str().map_or_else(|| fact.to_string(), str::to_owned);
                let fact = if fact.is_empty() { "nothing" } else { &fact };
                let _ = writeln!(text, "{:<13} {}", name, output.out.line(fact));
            }
            text
        })?;
        let facts: serde_json::Map<String, Value> = facts.into_iter().collect();
        Ok(Done::well(self.document(|| facts)?))
    }

    /// Who the server is, and how to begin.
    pub(super) fn greet(&self) {
        let Some(client) = self.client.as_ref().filter(|_| !self.output.json) else { return };
        let name = client.server_info().map_or_else(
            || "the server".to_owned(),
            |info| format!("{} {}", info.name, info.version).trim_end().to_owned(),
        );
        let err = self.output.err;
        let counts = self.catalog.lock().counts();
        let words = format!("{name}, {}: {counts}", client.revision());
        self.output.note(&err.paint(BOLD, err.line(&words)));
    }

    /// Says that it is done, where nothing else shows it.
    fn confirm(&self, words: &str) {
        if !self.output.json {
            self.output.note(&self.output.err.paint(DIM, self.output.err.line(words)));
        }
    }

    async fn waiting<T>(
        &self,
        what: &str,
        work: impl IntoFuture<Output = Result<T, taut::Error>>,
    ) -> Result<T, Problem> {
        let _spinner = Spinner::start(self.output, what);
        Ok(work.await?)
    }

    fn print(&self, text: impl FnOnce(&Output) -> String) -> Result<(), Problem> {
        if self.output.json { Ok(()) } else { self.output.print(&text(self.output)) }
    }

    /// The result as JSON, if it is wanted so.
    fn document<T: serde::Serialize>(
        &self,
        document: impl FnOnce() -> T,
    ) -> Result<Option<Box<RawValue>>, Problem> {
        if !self.output.json {
            return Ok(None);
        }
        to_raw_value(&document()).map(Some).map_err(|error| Problem::File {
            what: "writing the result".to_owned(),
            error: error.into(),
        })
    }
}

fn facts(client: &Client) -> Vec<(String, Value)> {
    let mut facts = Vec::new();
    let mut fact = |name: &str, value: Value| {
        if !value.is_null() {
            facts.push((name.to_owned(), value));
        }
    };
    if let Some(info) = client.server_info() {
        fact("server", json!(format!("{} {}", info.name, info.version).trim_end()));
        fact("title", json!(info.title));
    }
    fact("revision", json!(client.revision().as_str()));
    fact("framing", json!(client.framing().map(|framing| framing.to_string())));
    fact("offers", json!(crate::cmd::smoke::offers(client.capabilities()).join(", ")));
    fact("process", json!(client.pid()));
    fact("instructions", json!(client.instructions()));
    facts
}

/// What was written after `before`, of which `now` may have lost the beginning.
fn since<'a>(before: &str, now: &'a str) -> &'a str {
    let kept = before.char_indices().map(|(at, _)| &before[at..]);
    kept.into_iter().find_map(|kept| now.strip_prefix(kept)).unwrap_or(now)
}

/// What to try, as it is typed here and not on a command line.
fn here(problem: Problem, typed: &str) -> Problem {
    let Problem::Usage { mut what, next } = problem else { return problem };
    if what.starts_with("the server has no tool")
        && let Some(word) = meant(typed)
    {
        let _ = write!(what, "\ndid you mean {word}, a word of the shell?");
    }
    let typed_here = |next: &str| {
        let line = next.strip_prefix(own::name())?.strip_prefix(' ')?;
        match line.split_once(' ')? {
            ("call", rest) => Some(rest.to_owned()),
            ("prompt" | "complete", _) => Some(line.to_owned()),
            _ => None,
        }
    };
    let next = next.map(|next| match typed_here(&next) {
        Some(rest) => rest.trim_end_matches(SERVER).to_owned(),
        None => "tools and prompts show what there is, help what can be typed".to_owned(),
    });
    Problem::Usage { what, next }
}

#[cfg(test)]
mod tests {
    use super::since;

    #[test]
    fn only_what_came_since_is_told() {
        let table = [
            ("", "new\n", "new\n"),
            ("old\n", "old\n", ""),
            ("old\n", "old\nnew\n", "new\n"),
            // Only the end is kept, and the beginning may be lost in the middle of a letter or a line.
            ("älter\nold\n", "lter\nold\nnew\n", "new\n"),
            ("old\n", "something else", "something else"),
        ];
        for (before, now, told) in table {
            assert_eq!(since(before, now), told, "{before:?}");
        }
    }
}
