//! The one call of `taut smoke`: of a tool that `--call` names, or of one that taut chose.
//!
//! A tool that `--call` names has to work. Nobody asked for one that taut chose, so it is a note if that fails
//! politely. Must not know which tools may be chosen (`pick.rs`).

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use taut::{Answer, Client, Error, Tool};

use super::pick::{Pick, suggestion};
use super::transcript::{Transcript, millis};
use crate::cells::cut;
use crate::cmd::call::broken;
use crate::content::{self, Piece};
use crate::output::{DIM, GREEN, RED, YELLOW};
use crate::problem::{Exit, Problem};
use crate::typed;

/// Lines of a tool's answer that are shown.
const SHOWN: usize = 5;

/// How long a server whose tool is slow may take to say that it is well.
const SIGN_OF_LIFE: Duration = Duration::from_secs(5);

/// Whether the server answers another request. All revisions have lists; the newest has no ping.
async fn answers(client: &Client) -> bool {
    tokio::time::timeout(SIGN_OF_LIFE, client.tools()).await.is_ok_and(|tools| tools.is_ok())
}

/// The command line that calls a tool by name.
fn called_again(words: &[String]) -> String {
    typed::again("smoke", "smoke", &words.iter().map(String::as_str).collect::<Vec<_>>())
}

impl Transcript<'_> {
    pub(super) async fn call(
        &mut self,
        client: &Client,
        (picked, by_us): (Pick, bool),
        tools: &[Tool],
    ) -> Result<Exit, Problem> {
        let (tool, arguments) = match picked {
            Pick::Call(tool, arguments) => (tool, arguments),
            Pick::Nothing(why) => return self.not_called(&why, tools),
        };
        self.wait(&format!("calling {tool}"));
        let began = Instant::now();
        let called = client.call(tool.as_str(), arguments.clone()).await;
        let took = began.elapsed();
        match called {
            Ok(answer) => match broken(client, tools, &answer) {
                None => self.answered((&tool, by_us.then_some(tools)), &arguments, &answer, took),
                Some(error) => self.failed("call", &error, &client.stderr()),
            },
            Err(error @ (Error::Refused { .. } | Error::InputRequired { .. })) if by_us => {
                self.refused((&tool, tools), &arguments, &error, took)
            }
            // It may wait for a network that is not here. Only a server that still answers is well.
            Err(error @ Error::TimedOut { .. }) if by_us && answers(client).await => {
                self.refused((&tool, tools), &arguments, &error, took)
            }
            Err(error) => self.failed("call", &error, &client.stderr()),
        }
    }

    /// No tool was called, and why: a reader is told how to call one.
    fn not_called(&mut self, why: &str, tools: &[Tool]) -> Result<Exit, Problem> {
        self.report.insert("called".into(), Value::Null);
        self.report.insert("not_called".into(), json!(why));
        self.summary.push("no tool was called".to_owned());
        let words = suggestion(tools);
        let how = if words.is_some() { "; name one with --call" } else { "" };
        self.next = words.map(|words| called_again(&words));
        self.aside("called", &format!("nothing: {why}{how}"))?;
        Ok(Exit::Worked)
    }

    /// A tool that nobody asked for was refused with an error: a fact about the call that taut chose, not about
    /// the server.
    fn refused(
        &mut self,
        (tool, tools): (&str, &[Tool]),
        arguments: &Value,
        error: &Error,
        took: Duration,
    ) -> Result<Exit, Problem> {
        let mark = self.output.out.paint(YELLOW, "·");
        self.mark(mark, "called", &format!("{tool} {arguments}"), Some(took))?;
        let problem = Problem::from(error.clone());
        let said = [Some(problem.to_string()), problem.data()].into_iter().flatten();
        for line in said.collect::<Vec<_>>().join("\n").lines().take(SHOWN) {
            self.said(line)?;
        }
        let mut document = problem.json();
        self.report.insert(
            "called".into(),
            json!({ "tool": tool, "arguments": arguments, "failed": true,
                    "error": document["error"].take(), "ms": millis(took) }),
        );
        self.chosen_by_us(tool, tools)
    }

    /// Says of a call that failed that nobody asked for it.
    fn chosen_by_us(&mut self, tool: &str, tools: &[Tool]) -> Result<Exit, Problem> {
        self.summary.push(format!("the tool {tool}, which taut chose, failed"));
        self.aside("note", "taut chose this tool; it may lack arguments, a network or an account")?;
        let others: Vec<Tool> = tools.iter().filter(|other| other.name != tool).cloned().collect();
        self.next = suggestion(&others).map(|words| called_again(&words));
        Ok(Exit::Worked)
    }

    /// One line of what a tool said.
    fn said(&self, line: &str) -> Result<(), Problem> {
        let line = self.output.out.line(line);
        let line = self.output.out.paint(DIM, cut(&line, self.room(0)));
        self.line(&format!("                {line}\n"))
    }

    fn answered(
        &mut self,
        (tool, chosen_from): (&str, Option<&[Tool]>),
        arguments: &Value,
        answer: &Answer,
        took: Duration,
    ) -> Result<Exit, Problem> {
        let failed = answer.failed();
        let (colour, sign) = match failed {
            true if chosen_from.is_some() => (YELLOW, "·"),
            true => (RED, "✗"),
            false => (GREEN, "✓"),
        };
        let mark = self.output.out.paint(colour, sign);
        self.mark(mark, "called", &format!("{tool} {arguments}"), Some(took))?;
        let pieces: Vec<Piece> = answer.content.iter().map(Piece::of).collect();
        for line in pieces.iter().flat_map(|piece| content::lines(self.output, piece)).take(SHOWN) {
            let line = self.output.out.paint(DIM, cut(&line, self.room(0)));
            self.line(&format!("                {line}\n"))?;
        }
        self.report.insert(
            "called".into(),
            json!({ "tool": tool, "arguments": arguments, "failed": failed,
                    "text": answer.text().ok(), "ms": millis(took) }),
        );
        if let Some(tools) = chosen_from.filter(|_| failed) {
            return self.chosen_by_us(tool, tools);
        }
        if failed {
            self.summary = vec![format!("the tool {tool} reported failure")];
            return Ok(Exit::ToolFailed);
        }
        self.summary.push("one call".to_owned());
        Ok(Exit::Worked)
    }
}
