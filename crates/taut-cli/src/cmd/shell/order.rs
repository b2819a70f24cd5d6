//! What a line means: one of the shell's own words, or a tool with its arguments.
//!
//! Pure. Must not know which tools there are, nor how anything is done.

use serde_json::{Map, Value};
use taut::Level;

use super::words::{Unclosed, split};
use crate::args::Kind;
use crate::arguments::closest;

/// Something to do.
#[derive(Debug, PartialEq)]
pub(super) enum Order {
    Help,
    Quit,
    Restart,
    Info,
    List(Option<Kind>),
    /// One tool, with all that is known of it.
    Describe(String),
    Call {
        tool: String,
        given: Given,
    },
    Read(String),
    Prompt {
        name: String,
        pairs: Vec<String>,
    },
    /// What the server suggests for the last of the pairs.
    Complete {
        what: String,
        pairs: Vec<String>,
    },
    Log(Level),
    Subscribe(String),
    Unsubscribe(String),
}

/// The arguments of a call, as they were typed.
#[derive(Debug, PartialEq)]
pub(super) enum Given {
    Pairs(Vec<String>),
    Json(Map<String, Value>),
}

/// The shell's own words: name, what follows it, what it does.
pub(super) const WORDS: [(&str, &str, &str); 17] = [
    ("list", "", "all that the server offers"),
    ("tools", "[TOOL]", "what can be called; one of them with its arguments"),
    ("resources", "", "what can be read"),
    ("templates", "", "families of what can be read"),
    ("prompts", "", "what can be filled in"),
    ("call", "TOOL [key=value … | JSON]", "call a tool; its name alone does the same"),
    ("read", "URI", "read a resource"),
    ("prompt", "NAME [key=value …]", "fill in a prompt"),
    ("complete", "NAME [key=value …] key=…", "what the server suggests for the last argument"),
    ("subscribe", "URI", "tell when a resource changes"),
    ("unsubscribe", "URI", "no longer"),
    ("log", "LEVEL", "show the server's log from this level on: debug, info, …"),
    ("info", "", "who the server is, and what it speaks"),
    ("restart", "", "start the server again"),
    ("help", "", "this"),
    ("quit", "", "leave; so do Ctrl-D and exit"),
    ("exit", "", "leave"),
];

/// The levels of a log.
pub(super) const LEVELS: [&str; 8] =
    ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

/// Why a line means nothing.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Meaningless {
    pub(super) what: String,
    pub(super) next: String,
}

/// Reads a line; nothing if there is nothing to do.
pub(super) fn read(line: &str) -> Result<Option<Order>, Meaningless> {
    if line.trim_start().starts_with('#') {
        return Ok(None);
    }
    let words = split(line).map_err(|Unclosed(quote)| Meaningless {
        what: format!("a {quote} is not closed"),
        next: "close it, or put a backslash before it".to_owned(),
    })?;
    let mut words: Vec<String> = words.into_iter().map(|word| word.text).collect();
    if words.is_empty() {
        return Ok(None);
    }
    let first = words.remove(0);
    let order = order(&first, words)?;
    if let Order::Call { tool, given: Given::Pairs(pairs) } = &order
        && pairs.first().is_some_and(|word| word.starts_with('{'))
    {
        return Err(no_object(tool, line));
    }
    Ok(Some(order))
}

fn order(first: &str, rest: Vec<String>) -> Result<Order, Meaningless> {
    // A tool may have the name of a word, and its arguments look like no other.
    let is_call = !rest.is_empty() && rest.iter().all(|word| word.contains('='));
    own(first, rest.clone()).or_else(|meaningless| {
        if is_call { call(first.to_owned(), rest) } else { Err(meaningless) }
    })
}

fn own(first: &str, mut rest: Vec<String>) -> Result<Order, Meaningless> {
    let one = |rest: &mut Vec<String>| match rest.as_slice() {
        [_] => Ok(rest.remove(0)),
        _ => Err(usage(first)),
    };
    let none = |order: Order, rest: &[String]| match rest {
        [] => Ok(order),
        _ => Err(usage(first)),
    };
    match first {
        "help" | "?" => none(Order::Help, &rest),
        "quit" | "exit" => none(Order::Quit, &rest),
        "restart" => none(Order::Restart, &rest),
        "info" => none(Order::Info, &rest),
        "tools" if !rest.is_empty() => one(&mut rest).map(Order::Describe),
        "tools" => Ok(Order::List(Some(Kind::Tools))),
        "resources" => none(Order::List(Some(Kind::Resources)), &rest),
        "templates" => none(Order::List(Some(Kind::Templates)), &rest),
        "prompts" => none(Order::List(Some(Kind::Prompts)), &rest),
        "list" => none(Order::List(None), &rest),
        "read" => one(&mut rest).map(Order::Read),
        "subscribe" => one(&mut rest).map(Order::Subscribe),
        "unsubscribe" => one(&mut rest).map(Order::Unsubscribe),
        "log" => {
            let level = Level::from(one(&mut rest)?.as_str());
            if level.is_known() { Ok(Order::Log(level)) } else { Err(usage(first)) }
        }
        "prompt" | "call" | "complete" if rest.is_empty() => Err(usage(first)),
        "complete" => Ok(Order::Complete { what: rest.remove(0), pairs: rest }),
        "prompt" => Ok(Order::Prompt { name: rest.remove(0), pairs: rest }),
        "call" => call(rest.remove(0), rest),
        tool => call(tool.to_owned(), rest),
    }
}

fn call(tool: String, rest: Vec<String>) -> Result<Order, Meaningless> {
    let given = match rest.as_slice() {
        [json] if json.starts_with('{') => serde_json::from_str(json).ok().map(Given::Json),
        _ => None,
    };
    Ok(Order::Call { tool, given: given.unwrap_or(Given::Pairs(rest)) })
}

/// What looks like JSON and is none was split into words; the line has it whole.
fn no_object(tool: &str, line: &str) -> Meaningless {
    let begun = line.find('{').map_or("", |at| &line[at..]);
    let why = serde_json::from_str::<Map<String, Value>>(begun).err();
    let why = why.map(|error| format!(": {error}")).unwrap_or_default();
    Meaningless {
        what: format!("the arguments are no JSON object{why}"),
        next: format!("{tool} {{\"key\": \"value\"}}, or {tool} key=value"),
    }
}

fn usage(word: &str) -> Meaningless {
    let takes = WORDS.iter().find(|(name, ..)| *name == word).map_or("", |(_, takes, _)| takes);
    let takes = if takes.is_empty() { "nothing".to_owned() } else { takes.to_owned() };
    let levels = if word == "log" { format!(": {}", LEVELS.join(", ")) } else { String::new() };
    Meaningless {
        what: format!("{word} takes {takes}{levels}"),
        next: "help shows all of them".to_owned(),
    }
}

/// The word of the shell's own that was meant, if one was.
pub(super) fn meant(typed: &str) -> Option<&'static str> {
    closest(typed, WORDS.iter().map(|(name, ..)| *name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_line_is_a_word_of_the_shell_or_a_tool() {
        let pairs = |words: &[&str]| Given::Pairs(words.iter().map(|w| (*w).to_owned()).collect());
        let call = |tool: &str, given| Some(Order::Call { tool: tool.to_owned(), given });
        let object = json!({ "a": [1] }).as_object().unwrap().clone();
        let table = [
            ("", None),
            ("   ", None),
            ("# call x", None),
            ("help", Some(Order::Help)),
            ("exit", Some(Order::Quit)),
            ("tools", Some(Order::List(Some(Kind::Tools)))),
            ("tools add", Some(Order::Describe("add".to_owned()))),
            ("list", Some(Order::List(None))),
            (
                "complete greet language=D",
                Some(Order::Complete {
                    what: "greet".to_owned(),
                    pairs: vec!["language=D".to_owned()],
                }),
            ),
            ("read demo://x", Some(Order::Read("demo://x".to_owned()))),
            ("log warning", Some(Order::Log(Level::Warning))),
            ("add a=1 b='2 3'", call("add", pairs(&["a=1", "b=2 3"]))),
            ("call read path=x", call("read", pairs(&["path=x"]))),
            ("log level=info message=x", call("log", pairs(&["level=info", "message=x"]))),
            ("quit now=true", call("quit", pairs(&["now=true"]))),
            ("call tools", call("tools", pairs(&[]))),
            (r#"add {"a": [1]}"#, call("add", Given::Json(object))),
            (
                "prompt greet name=Ada",
                Some(Order::Prompt {
                    name: "greet".to_owned(),
                    pairs: vec!["name=Ada".to_owned()],
                }),
            ),
        ];
        for (line, order) in table {
            assert_eq!(read(line), Ok(order), "{line}");
        }
    }

    #[test]
    fn what_a_word_cannot_take_is_said_with_what_it_can() {
        let table = [
            ("read", "read takes URI"),
            ("read a b", "read takes URI"),
            ("quit now", "quit takes nothing"),
            ("call", "call takes TOOL [key=value … | JSON]"),
            (
                "log loud",
                "log takes LEVEL: debug, info, notice, warning, error, critical, alert, emergency",
            ),
            ("add {\"a\": }", "the arguments are no JSON object: "),
            ("echo 'x", "a ' is not closed"),
        ];
        for (line, what) in table {
            let said = read(line).unwrap_err().what;
            assert!(said.starts_with(what), "{line}: {said}");
        }
        assert_eq!(meant("quti"), Some("quit"));
    }
}
