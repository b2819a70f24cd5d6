//! What taut accepts and others refuse: the official SDKs, and the interfaces of models.
//!
//! Knows what the TypeScript SDK (1.32, 2.4) and the Python SDK (1.30, 2.3) refuse, and which names of
//! tools models accept; for the rest it asks the official schemas that `taut check` has. Pure: takes what a
//! server sent, returns objections. Must not know where they are shown. TOL-03, TOL-21, LIF-03.

use std::collections::BTreeMap;

use taut_check::{Revision, schema};

use crate::own;
use crate::sent::Sent;

/// Who objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Who {
    /// Both official SDKs.
    Sdks,
    /// The TypeScript SDK; the Python SDK lets it pass.
    TypeScript,
    /// No SDK, but what hosts hand the tools to.
    Models,
}

impl Who {
    pub(crate) const fn words(self) -> &'static str {
        match self {
            Self::Sdks => "the official SDKs refuse it",
            Self::TypeScript => "the TypeScript SDK refuses it",
            Self::Models => "some hosts cannot use it",
        }
    }
}

/// Something that somebody refuses.
#[derive(Debug)]
pub(crate) struct Objection {
    pub(crate) who: Who,
    pub(crate) what: String,
    pub(crate) hurts: &'static str,
    pub(crate) change: String,
}

const NO_LIST: &str = "every host on the TypeScript or the Python SDK, which is nearly all of them: the SDK \
                       refuses the whole list, and no tools appear";
const NO_LIST_IN_NODE: &str = "every host on the TypeScript SDK, as are most that run on Node: it refuses the \
                               whole list, and no tools appear; the Python SDK lets it pass";
const NO_FIT: &str = "every host on the TypeScript SDK, as are most that run on Node: it refuses the whole list, and \
                      no tools appear";
const NO_HANDSHAKE: &str = "every host on the TypeScript or the Python SDK, which is nearly all of them: the \
                            SDK refuses the handshake, and there is no connection";

/// What is missing in the answer to `initialize`.
pub(crate) fn opening(missing: &[&str]) -> Option<Objection> {
    if missing.is_empty() {
        return None;
    }
    let all = missing.join(" and ");
    Some(Objection {
        who: Who::Sdks,
        what: format!("its answer to initialize has no {all}"),
        hurts: NO_HANDSHAKE,
        change: "answer with protocolVersion, capabilities (an object) and serverInfo, which has a name \
                 and a version"
            .to_owned(),
    })
}

/// What is wrong with a list of tools, of a server that speaks this revision.
pub(crate) fn tools(revision: Revision, tools: &[Sent]) -> Vec<Objection> {
    let schemas = [without_schema(tools), odd_schema(tools), odd_root(tools)];
    let known = schemas.iter().any(Option::is_some);
    let other = if known { None } else { misfit(revision, tools) };
    schemas.into_iter().chain([other, same(tools), odd(tools)]).flatten().collect()
}

/// What the official schema of the revision says against the tools. The TypeScript SDK reads by that schema.
fn misfit(revision: Revision, tools: &[Sent]) -> Option<Objection> {
    let fault = |tool: &Sent| schema::misfit(revision, "Tool", &serde_json::to_value(tool).ok()?);
    let (tool, fault) = tools.iter().find_map(|tool| Some((tool, fault(tool)?)))?;
    Some(Objection {
        who: Who::TypeScript,
        what: format!(
            "the tool {} does not fit the official schema: {fault}",
            name(tool).unwrap_or("?")
        ),
        hurts: NO_FIT,
        change: format!(
            "see `Tool` in the schema of {revision}; `{taut} check --only tools` has the rules",
            taut = own::name()
        ),
    })
}

fn without_schema(tools: &[Sent]) -> Option<Objection> {
    let bare = |tool: &&Sent| matches!(tool.member("inputSchema"), None | Some(Sent::Null));
    let (names, has) = named(tools, bare)?;
    let likely = ["input_schema", "parameters", "schema", "inputschema"];
    let wrong = tools
        .iter()
        .filter(bare)
        .find_map(|tool| likely.into_iter().find(|likely| tool.member(likely).is_some()));
    let change = match wrong {
        Some(wrong) => format!("it is called inputSchema, not {wrong}"),
        None => {
            r#"give every tool one; for a tool that takes nothing: {"type":"object"}"#.to_owned()
        }
    };
    let what = format!("{names} {has} no inputSchema");
    Some(Objection { who: Who::Sdks, what, hurts: NO_LIST, change })
}

fn odd_schema(tools: &[Sent]) -> Option<Objection> {
    let odd = |tool: &&Sent| {
        !matches!(tool.member("inputSchema"), None | Some(Sent::Null | Sent::Object(_)))
    };
    let (names, has) = named(tools, odd)?;
    let kind = tools.iter().find(odd).and_then(|tool| tool.member("inputSchema"));
    let kind = kind.map_or("nothing", Sent::kind);
    Some(Objection {
        who: Who::Sdks,
        what: format!("{names} {has} {kind} for an inputSchema, not an object"),
        hurts: NO_LIST,
        change: r#"write the schema itself there: {"type":"object","properties":{…}}"#.to_owned(),
    })
}

fn odd_root(tools: &[Sent]) -> Option<Objection> {
    let root = |tool: &Sent| match tool.member("inputSchema") {
        Some(schema @ Sent::Object(_)) => {
            let kind = schema.member("type");
            (kind.and_then(Sent::text) != Some("object")).then(|| {
                kind.map_or_else(
                    || "none".to_owned(),
                    |kind| serde_json::to_string(kind).unwrap_or_default(),
                )
            })
        }
        _ => None,
    };
    let (names, has) = named(tools, |tool| root(tool).is_some())?;
    let kind = tools.iter().find_map(root).unwrap_or_default();
    Some(Objection {
        who: Who::TypeScript,
        what: format!(r#"{names} {has} an inputSchema whose type is not "object" ({kind})"#),
        hurts: NO_LIST_IN_NODE,
        change: r#"arguments are always an object: say "type":"object" at the root of the schema"#
            .to_owned(),
    })
}

fn same(tools: &[Sent]) -> Option<Objection> {
    let mut counts = BTreeMap::<&str, usize>::new();
    for name in tools.iter().filter_map(name) {
        *counts.entry(name).or_default() += 1;
    }
    let (name, count) = counts.into_iter().find(|(_, count)| *count > 1)?;
    Some(Objection {
        who: Who::Models,
        what: format!("{count} tools have the same name: {name}"),
        hurts: "every host: only one of them can be called, and the interfaces of the models refuse a \
                list in which a name occurs twice",
        change: "give each tool a name of its own".to_owned(),
    })
}

/// TOL-21
fn odd(tools: &[Sent]) -> Option<Objection> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let bad = |tool: &&Sent| {
        name(tool)
            .is_some_and(|name| name.is_empty() || name.len() > 128 || !name.chars().all(fits))
    };
    let tool = tools.iter().find(bad)?;
    let name = name(tool)?;
    let why = match name.chars().find(|c| !fits(*c)) {
        Some(c) => format!("{c:?} may not stand in it"),
        None if name.is_empty() => "it is empty".to_owned(),
        None => format!("it has {} characters", name.len()),
    };
    let short: String = name.chars().take(40).collect();
    Some(Objection {
        who: Who::Models,
        what: format!("{short:?} is no good name for a tool: {why}"),
        hurts: "hosts that pass names on as they are: the interfaces of the models take letters, digits, _ \
                and - only, and refuse all tools for one; other hosts rename it or leave it out",
        change: "use 1 to 128 of the characters A-Z a-z 0-9 _ - . (without the dot, and up to 64, it is \
                 welcome everywhere); a title may have any"
            .to_owned(),
    })
}

fn name(tool: &Sent) -> Option<&str> {
    tool.member("name").and_then(Sent::text)
}

/// The tools of which something is true, in words, and the verb for so many.
fn named(tools: &[Sent], is: impl Fn(&&Sent) -> bool) -> Option<(String, &'static str)> {
    /// More names say no more.
    const SHOWN: usize = 3;
    let names: Vec<_> = tools.iter().filter(is).map(|tool| name(tool).unwrap_or("?")).collect();
    Some(match names.as_slice() {
        [] => return None,
        [one] => (format!("the tool {one}"), "has"),
        many => {
            let rest = match many.len().saturating_sub(SHOWN) {
                0 => String::new(),
                rest => format!(" and {rest} more"),
            };
            let shown = many.iter().take(SHOWN).copied().collect::<Vec<_>>().join(", ");
            (format!("the tools {shown}{rest}"), "have")
        }
    })
}

/// Tools whose `$defs` refer to what is defined after them. Only in the order in which they were sent can that be seen.
/// Half of the nested models of pydantic are written like this.
pub(crate) fn forward(tools: &[Sent]) -> Option<Objection> {
    let place = |tool: &Sent| {
        let Sent::Object(defs) = tool.member("inputSchema")?.member("$defs")? else { return None };
        defs.iter().enumerate().find_map(|(at, (name, schema))| {
            let later = |to: &str| defs.iter().skip(at + 1).any(|(name, _)| name == to);
            let to = refers(schema, &later)?;
            Some(format!("$defs/{name} refers to $defs/{to}"))
        })
    };
    let (names, _) = named(tools, |tool| place(tool).is_some())?;
    let first = tools.iter().find_map(place).unwrap_or_default();
    Some(Objection {
        who: Who::Models,
        what: format!("definitions that are used before they stand there, in {names}: {first}"),
        hurts: "AutoGen, which then loads no tool of the server at all",
        change: "put each definition before those that use it, or write it where it is used"
            .to_owned(),
    })
}

/// The first name of which `is` is true that something inside refers to.
fn refers<'a>(schema: &'a Sent, is: &dyn Fn(&str) -> bool) -> Option<&'a str> {
    match schema {
        Sent::Array(all) => all.iter().find_map(|each| refers(each, is)),
        Sent::Object(members) => members.iter().find_map(|(name, value)| match value {
            Sent::Text(to) if name == "$ref" => to.strip_prefix("#/$defs/").filter(|to| is(to)),
            value => refers(value, is),
        }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use taut_check::Revision;

    use super::{Sent, Who, opening};

    const NEWEST: Revision = Revision::V2025_11_25;

    fn tools(sent: &[Sent]) -> Vec<super::Objection> {
        super::tools(NEWEST, sent)
    }

    fn judged(text: &str) -> Vec<(Who, String)> {
        let sent: Vec<Sent> = serde_json::from_str(text).unwrap();
        tools(&sent).into_iter().map(|objection| (objection.who, objection.what)).collect()
    }

    #[track_caller]
    fn one(text: &str, who: Who, what: &str) {
        assert_eq!(judged(text), [(who, what.to_owned())], "{text}");
    }

    #[test]
    fn tol_03_every_tool_has_a_schema_of_an_object() {
        let fine = r#"[{"name":"a","inputSchema":{"type":"object"}},{"name":"b.c-d_1","inputSchema":{"type":"object"}}]"#;
        assert_eq!(judged(fine), []);
        one(r#"[{"name":"a"}]"#, Who::Sdks, "the tool a has no inputSchema");
        let many = r#"[{"name":"a"},{"name":"b"},{"name":"c"},{"name":"d","inputSchema":null}]"#;
        one(many, Who::Sdks, "the tools a, b, c and 1 more have no inputSchema");
        let text = r#"[{"name":"a","inputSchema":"none"}]"#;
        one(text, Who::Sdks, "the tool a has a string for an inputSchema, not an object");
        let text = r#"[{"name":"a","inputSchema":{"type":"string"}}]"#;
        let what = r#"the tool a has an inputSchema whose type is not "object" ("string")"#;
        one(text, Who::TypeScript, what);
        let text = r#"[{"name":"a","inputSchema":{}}]"#;
        one(
            text,
            Who::TypeScript,
            r#"the tool a has an inputSchema whose type is not "object" (none)"#,
        );
        let sent: Vec<Sent> = serde_json::from_str(r#"[{"name":"a","input_schema":{}}]"#).unwrap();
        assert_eq!(tools(&sent)[0].change, "it is called inputSchema, not input_schema");
    }

    #[test]
    fn tol_21_names_are_short_plain_and_unique() {
        let tool = |name: &str| format!(r#"{{"name":"{name}","inputSchema":{{"type":"object"}}}}"#);
        let list = format!("[{},{}]", tool("a"), tool("a"));
        one(&list, Who::Models, "2 tools have the same name: a");
        let list = format!("[{}]", tool("two words"));
        one(
            &list,
            Who::Models,
            r#""two words" is no good name for a tool: ' ' may not stand in it"#,
        );
        assert_eq!(judged(&format!("[{}]", tool(&"x".repeat(128)))), []);
        assert_eq!(judged(&format!("[{}]", tool(&"x".repeat(129)))).len(), 1);
        assert_eq!(judged(&format!("[{}]", tool(""))).len(), 1);
    }

    #[test]
    fn what_else_the_official_schema_says_against_a_tool_is_told() {
        let text =
            r#"[{"name":"a","inputSchema":{"type":"object"},"execution":{"taskSupport":"maybe"}}]"#;
        let [(who, what)] = judged(text).try_into().unwrap();
        assert_eq!(who, Who::TypeScript);
        assert!(what.starts_with("the tool a does not fit the official schema: "), "{what}");
        assert!(what.contains("/execution/taskSupport"), "{what}");
        // An older revision has no such member.
        let sent: Vec<Sent> = serde_json::from_str(text).unwrap();
        assert!(super::tools(Revision::V2025_06_18, &sent).is_empty());
    }

    #[test]
    fn a_definition_that_is_used_before_it_stands_there_is_told() {
        let found = |defs: &str| {
            let text = format!(
                r##"[{{"name":"a","inputSchema":{{"type":"object","$defs":{defs},"properties":{{"a":{{"$ref":"#/$defs/A"}}}}}}}}]"##
            );
            super::forward(&serde_json::from_str::<Vec<Sent>>(&text).unwrap())
        };
        let (a, b) = (
            r##""A":{"type":"object","properties":{"b":{"items":{"$ref":"#/$defs/B"}}}}"##,
            r#""B":{"type":"object"}"#,
        );
        let objection = found(&format!("{{{a},{b}}}")).unwrap();
        assert!(objection.what.contains("the tool a: $defs/A refers to $defs/B"), "{objection:?}");
        assert!(found(&format!("{{{b},{a}}}")).is_none());
        assert!(
            found(r##"{"A":{"properties":{"kids":{"items":{"$ref":"#/$defs/A"}}}}}"##).is_none()
        );
    }

    #[test]
    fn lif_03_the_answer_to_initialize_is_complete() {
        assert!(opening(&[]).is_none());
        let objection = opening(&["capabilities", "serverInfo"]).unwrap();
        assert_eq!(objection.what, "its answer to initialize has no capabilities and serverInfo");
    }
}
