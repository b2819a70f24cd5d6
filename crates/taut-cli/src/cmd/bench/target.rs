//! What can be called on a server, and how it is asked for: found out once, before anything is timed.
//!
//! `choose` is pure. Nothing is called thousands of times that does not say it only reads, unless the
//! user names it.

use serde_json::Value;

use super::fault::Fault;
use super::judge::{Expect, text};
use super::options::Era;
use super::request::{self, FIRST, payload};
use super::session::{Opened, Page, Session};
use super::wire::Ask;

/// The size of the payload wherever it is not what is measured.
pub(super) const SMALL: usize = 64;

/// What is called again and again.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Target {
    /// A tool that takes a text.
    Tool { name: String, argument: String, repeats: bool },
    /// A tool with the same arguments each time, an object as JSON.
    Fixed { name: String, arguments: String },
    /// Nothing can be called, so it is asked whether it lives.
    Ping,
    /// Not even that.
    List,
}

impl Target {
    /// What was called, in words.
    pub(super) fn words(&self) -> String {
        match self {
            Self::Tool { name, argument, .. } => {
                format!("called {name}({argument})")
            }
            Self::Fixed { name, .. } => format!("called {name} with --args"),
            Self::Ping => "pinged".to_owned(),
            Self::List => "asked for its list of tools".to_owned(),
        }
    }
}

/// The tool that the user names, and with what it is called: a text as this argument, or these arguments.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Wish {
    pub(super) tool: String,
    pub(super) argument: Option<String>,
    /// An object as JSON.
    pub(super) arguments: Option<String>,
}

/// What is known of a server.
#[derive(Clone, Debug)]
pub(super) struct Facts {
    pub(super) opened: Opened,
    pub(super) target: Target,
    /// The pages of its list of tools.
    pub(super) pages: Vec<Page>,
    /// What a reader of the figures should know.
    pub(super) notes: Vec<String>,
}

impl Facts {
    /// Asks the server.
    pub(super) fn find(session: &mut Session, wished: Option<&Wish>) -> Result<Self, Fault> {
        let opened = session.opened.clone();
        let mut facts = Self { opened, target: Target::Ping, pages: Vec::new(), notes: Vec::new() };
        if facts.opened.repeats {
            facts.notes.push("gives back what it gets: it is no server".to_owned());
            let (name, argument) = ("echo".to_owned(), "text".to_owned());
            facts.target = Target::Tool { name, argument, repeats: true };
            return Ok(facts);
        }
        let mut tools = Vec::new();
        match session.tools() {
            Ok((found, pages)) => (tools, facts.pages) = (found, pages),
            Err(Fault::Refused { .. }) => facts.notes.push("has no list of tools".to_owned()),
            Err(fault) => return Err(fault),
        }
        if let Some(Wish { tool, arguments: Some(arguments), .. }) = wished {
            let mut request = request::fixed(facts.opened.era, tool, arguments);
            let said = session.ask(&mut request)?;
            if said["isError"] == true {
                return Err(Fault::Failed(super::fault::excerpt(text(&said).as_bytes())));
            }
            facts
                .notes
                .push(format!("its tool {tool} has no text of ours to repeat: not compared"));
            let (name, arguments) = (tool.clone(), arguments.clone());
            facts.target = Target::Fixed { name, arguments };
            return Ok(facts);
        }
        match choose(&tools, wished)? {
            Some((name, argument)) => facts.try_tool(session, name, argument, wished.is_some())?,
            None => facts.notes.push("no tool takes just a text, so it is only pinged".to_owned()),
        }
        if facts.target == Target::Ping
            && let Err(fault) = session.ask(&mut request::ping(facts.opened.era))
        {
            if facts.pages.is_empty() || !matches!(fault, Fault::Refused { .. }) {
                return Err(fault);
            }
            facts.notes.push("refuses ping, so its list is asked for".to_owned());
            facts.target = Target::List;
        }
        Ok(facts)
    }

    /// Calls it once, and sees what comes back.
    fn try_tool(
        &mut self,
        session: &mut Session,
        name: String,
        argument: String,
        wished: bool,
    ) -> Result<(), Fault> {
        let mut request = request::call(self.opened.era, &name, &argument, SMALL);
        let result = match session.ask(&mut request) {
            Ok(result) if result["isError"] == true => Err(text(&result)),
            Err(Fault::Refused { message, .. }) => Err(message),
            Err(fault) => return Err(fault),
            Ok(result) => Ok(result),
        };
        let result = match result {
            Ok(result) => result,
            Err(why) if wished => return Err(Fault::Failed(super::fault::excerpt(why.as_bytes()))),
            Err(_) => {
                self.notes.push(format!("its tool {name} fails, so it is only pinged"));
                return Ok(());
            }
        };
        // The number in front differs from call to call; the rest is always the same.
        let sent = payload(FIRST, SMALL);
        let repeats = text(&result).contains(&sent[request::WIDTH..]);
        if !repeats && name == "echo" {
            let said = super::fault::excerpt(text(&result).as_bytes());
            return Err(Fault::Wrong(format!("its echo does not repeat its text: {said}")));
        }
        if !repeats {
            self.notes.push(format!("its tool {name} does not repeat its text: not compared"));
        }
        self.target = Target::Tool { name, argument, repeats };
        Ok(())
    }

    /// How many tools it lists.
    pub(super) fn tools(&self) -> usize {
        self.pages.iter().map(|page| page.tools).sum()
    }

    /// The request that is sent again and again.
    pub(super) fn small(&self) -> Ask {
        self.sized(SMALL)
    }

    /// The same with a payload of this size, where it has one.
    pub(super) fn sized(&self, size: usize) -> Ask {
        let era = self.opened.era;
        match &self.target {
            Target::Tool { name, argument, repeats } => {
                let expect = match (self.opened.repeats, repeats) {
                    (true, _) => Expect::Itself,
                    (false, true) => Expect::Payload(size),
                    (false, false) => Expect::Result,
                };
                Ask::new(request::call(era, name, argument, size), expect)
            }
            Target::Fixed { name, arguments } => {
                Ask::new(request::fixed(era, name, arguments), Expect::Result)
            }
            Target::Ping => Ask::new(request::ping(era), Expect::Result),
            Target::List => Ask::new(request::list(era, None), Expect::Result),
        }
    }

    /// One request for each page of its list.
    pub(super) fn list(&self) -> Vec<Ask> {
        let page = |page: &Page| {
            let request = request::list(self.opened.era, page.cursor.as_deref());
            Ask::new(request, Expect::Tools(page.tools))
        };
        self.pages.iter().map(page).collect()
    }

    pub(super) fn takes_text(&self) -> bool {
        matches!(self.target, Target::Tool { .. })
    }

    pub(super) fn era(&self) -> &'static str {
        if self.opened.era == Era::Modern { "modern" } else { "legacy" }
    }
}

/// Which tool to call, and the name of its text.
fn choose(tools: &[Value], wished: Option<&Wish>) -> Result<Option<(String, String)>, Fault> {
    let named = |tool: &Value, name: &str| tool["name"] == name;
    if let Some(Wish { tool: name, argument, .. }) = wished {
        let Some(tool) = tools.iter().find(|tool| named(tool, name)) else {
            return Err(Fault::Wrong(format!("it has no tool {name}")));
        };
        let argument = argument.clone().or_else(|| only_text(tool));
        let argument = argument.ok_or_else(|| {
            Fault::Wrong(format!(
                "the tool {name} takes more than a text; give its arguments with --args '{{…}}'"
            ))
        })?;
        return Ok(Some((name.clone(), argument)));
    }
    let harmless = |tool: &&Value| {
        tool["annotations"]["readOnlyHint"] == true
            || named(tool, "echo") && tool["annotations"]["destructiveHint"] != true
    };
    let found = |tool: &Value| Some((tool["name"].as_str()?.to_owned(), only_text(tool)?));
    let mut all: Vec<&Value> = tools.iter().filter(harmless).collect();
    all.sort_by_key(|tool| !named(tool, "echo"));
    Ok(all.into_iter().find_map(found))
}

/// The name of the one argument that a tool needs, if that is a text.
fn only_text(tool: &Value) -> Option<String> {
    let schema = &tool["inputSchema"];
    let properties = schema["properties"].as_object()?;
    let mut required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    if required.is_empty() && properties.len() == 1 {
        required = properties.keys().map(String::as_str).collect();
    }
    let [name] = required[..] else { return None };
    let kind = &properties.get(name)?["type"];
    let kinds = kind.as_array().map_or_else(|| std::slice::from_ref(kind), Vec::as_slice);
    kinds.iter().any(|kind| kind == "string").then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn tool(name: &str, required: &[&str], hints: Value) -> Value {
        let all: serde_json::Map<String, Value> =
            required.iter().map(|name| ((*name).to_owned(), json!({ "type": "string" }))).collect();
        json!({ "name": name, "annotations": hints,
            "inputSchema": { "type": "object", "properties": all, "required": required } })
    }

    #[test]
    fn only_what_is_harmless_is_called_a_hundred_thousand_times() {
        let reads = json!({ "readOnlyHint": true });
        let table = [
            (vec![], None),
            (vec![tool("delete", &["path"], json!(null))], None),
            (vec![tool("search", &["q"], reads.clone())], Some(("search", "q"))),
            (vec![tool("search", &["q", "n"], reads.clone())], None),
            (
                vec![tool("search", &["q"], reads), tool("echo", &["text"], json!(null))],
                Some(("echo", "text")),
            ),
            (vec![tool("echo", &["text"], json!({ "destructiveHint": true }))], None),
        ];
        for (tools, wants) in table {
            let wants = wants.map(|(name, argument)| (name.to_owned(), argument.to_owned()));
            assert_eq!(choose(&tools, None), Ok(wants), "{tools:?}");
        }
    }

    #[test]
    fn a_tool_that_is_named_is_called_whatever_it_does() {
        let tools = [tool("delete", &["path"], json!(null)), tool("two", &["a", "b"], json!(null))];
        let wish = |tool: &str, argument: Option<&str>| Wish {
            tool: tool.to_owned(),
            argument: argument.map(str::to_owned),
            arguments: None,
        };
        let choose = |wish: Wish| choose(&tools, Some(&wish));
        let found = |name: &str, argument: &str| Ok(Some((name.to_owned(), argument.to_owned())));
        assert_eq!(choose(wish("delete", None)), found("delete", "path"));
        assert_eq!(choose(wish("two", Some("b"))), found("two", "b"));
        assert!(choose(wish("two", None)).is_err());
        assert!(choose(wish("three", None)).is_err());
    }
}
