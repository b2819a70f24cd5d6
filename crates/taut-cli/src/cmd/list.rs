//! `taut list`: what a server offers.

pub(crate) mod only;

use std::borrow::Cow;
use std::fmt::Write as _;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use taut::{Client, Error, Prompt, Resource, ResourceTemplate, Tool};

use crate::args::{Kind, List, meant_kind};
use crate::cells::{cut, pad, wide};
use crate::hosts::{is_known, resolve};
use crate::output::{BOLD, CYAN, DIM, Output};
use crate::own;
use crate::problem::{Exit, Problem, without_place};
use crate::schema::Schema;
use crate::sent::Sent;
use crate::session::with_server;

/// What a server offers. What it does not offer at all is nothing, not an empty list.
#[derive(Default)]
pub(crate) struct Offer {
    pub(crate) tools: Option<Vec<Tool>>,
    pub(crate) resources: Option<Vec<Resource>>,
    pub(crate) templates: Option<Vec<ResourceTemplate>>,
    pub(crate) prompts: Option<Vec<Prompt>>,
    /// The same, as it came.
    pub(crate) sent: Document,
    /// How many tools were on the first page of their list, if there were more pages.
    pub(crate) first_page: Option<usize>,
}

/// What a server offers, as it sent it.
#[derive(Clone, Default, Serialize)]
pub(crate) struct Document {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tools: Option<Vec<Sent>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resources: Option<Vec<Sent>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    templates: Option<Vec<Sent>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompts: Option<Vec<Sent>>,
}

pub(crate) async fn run(output: &Output, args: &List) -> Result<Exit, Problem> {
    let (kind, name) = args.words()?;
    let started = resolve(output, &args.options, name, &args.server);
    let started = started.map_err(|problem| kind_meant(problem, name, args))?.reach;
    let work = async |client: &Client, spinner: &crate::spinner::Spinner| {
        spinner.say("listing");
        let mut offer = ask(client, kind).await?;
        if let Some(only) = &args.only {
            offer.keep(only)?;
        }
        if output.json {
            output.document(&offer.sent)?;
        } else if args.only.is_some() {
            output.print(&offer.whole(output))?;
        } else {
            output.print(&offer.shown(output, kind))?;
        }
        Ok(())
    };
    let mut options = args.options.clone();
    options.asked.offer_all = true;
    let ((), exit) = with_server(output, &options, started, work).await?;
    Ok(exit)
}

/// A name that is none may have been meant to say what is listed.
fn kind_meant(problem: Problem, name: Option<&str>, args: &List) -> Problem {
    let meant = name.and_then(meant_kind).filter(|_| args.options.named.is_none());
    match (problem, meant, name) {
        (Problem::Usage { what, next }, Some(kind), Some(name))
            if !is_known(name, &args.options) =>
        {
            let (said, rest) = what.split_once('\n').unwrap_or((&what, ""));
            let said = said.split("; did you mean").next().unwrap_or(said);
            let what = format!("{said}; did you mean {kind}?\n{rest}");
            Problem::Usage {
                what,
                next: next.map(|_| format!("{taut} list {kind} -- …", taut = own::name())),
            }
        }
        (problem, ..) => problem,
    }
}

/// Asks for all that the server says it has, or for one kind of it.
pub(crate) async fn ask(client: &Client, kind: Option<Kind>) -> Result<Offer, Error> {
    let wanted = |this| kind.is_none_or(|kind| kind == this);
    let has = client.capabilities();
    let mut offer = Offer::default();
    if wanted(Kind::Tools) && has.tools.is_some() {
        let Listed { items, sent, first_page } = listed(client, "tools/list", "tools").await?;
        (offer.tools, offer.sent.tools, offer.first_page) = (items, sent, first_page);
    }
    if wanted(Kind::Resources) && has.resources.is_some() {
        let Listed { items, sent, .. } = listed(client, "resources/list", "resources").await?;
        (offer.resources, offer.sent.resources) = (items, sent);
    }
    if wanted(Kind::Templates) && has.resources.is_some() {
        let Listed { items, sent, .. } = templates(client).await?;
        (offer.templates, offer.sent.templates) = (items, sent);
    }
    if wanted(Kind::Prompts) && has.prompts.is_some() {
        let Listed { items, sent, .. } = listed(client, "prompts/list", "prompts").await?;
        (offer.prompts, offer.sent.prompts) = (items, sent);
    }
    Ok(offer)
}

/// A list as it is read, and as it came.
struct Listed<T> {
    items: Option<Vec<T>>,
    sent: Option<Vec<Sent>>,
    /// How many were on the first page, if there were more pages.
    first_page: Option<usize>,
}

/// Many servers have resources and have never heard of templates.
async fn templates(client: &Client) -> Result<Listed<ResourceTemplate>, Error> {
    match listed(client, "resources/templates/list", "resourceTemplates").await {
        Err(Error::Refused { error, .. }) if error.code == METHOD_NOT_FOUND => {
            Ok(Listed { items: None, sent: None, first_page: None })
        }
        listed => listed,
    }
}

const METHOD_NOT_FOUND: i64 = -32601;

/// Pages of one list at most: only a server that goes round in circles has so many.
const MAX_PAGES: usize = 10_000;

/// What all pages of one list may take in memory, their cursors included: a hundred times the largest that was seen.
const MAX_BYTES: usize = 64 << 20;

/// All pages of a list. The library lists, too, but keeps nothing of how it was written.
async fn listed<T: DeserializeOwned>(
    client: &Client,
    method: &'static str,
    member: &str,
) -> Result<Listed<T>, Error> {
    let wrong = |what: String| Error::Violation { method: method.into(), what: what.into() };
    let (mut items, mut cursor) = (Vec::new(), None::<String>);
    let (mut bytes, mut first_page) = (0, None);
    for _ in 0..MAX_PAGES {
        let params =
            cursor.as_ref().map_or_else(|| json!({}), |cursor| json!({ "cursor": cursor }));
        let page: Sent = client.request(method, params).await?;
        match page.member(member) {
            Some(Sent::Array(page)) => {
                bytes += page.iter().map(Sent::size).sum::<usize>();
                items.extend_from_slice(page);
            }
            Some(other) => return Err(wrong(format!("`{member}` is {}", other.kind()))),
            None => return Err(wrong(format!("missing field `{member}`"))),
        }
        // PAG-02, PAG-03: only a cursor that is not there ends the list.
        let next = page.member("nextCursor").and_then(Sent::text).map(str::to_owned);
        if next.is_none() {
            let typed = items.iter().enumerate().map(|(at, item)| {
                let read = serde_json::to_string(item).and_then(|text| serde_json::from_str(&text));
                read.map_err(|error| wrong(format!("{member}[{at}]: {}", plain(&error))))
            });
            let typed = typed.collect::<Result<_, _>>()?;
            return Ok(Listed { items: Some(typed), sent: Some(items), first_page });
        }
        first_page.get_or_insert(items.len());
        if next == cursor {
            return Err(wrong("its list never ends: the next page is the one before".to_owned()));
        }
        bytes += next.as_ref().map_or(0, String::len);
        if bytes > MAX_BYTES {
            let most = MAX_BYTES >> 20;
            return Err(wrong(format!("its list has more than {most} MiB, and goes on")));
        }
        cursor = next;
    }
    Err(wrong(format!("its list never ends: it has more than {MAX_PAGES} pages")))
}

fn plain(error: &serde_json::Error) -> String {
    without_place(&error.to_string()).to_owned()
}

impl Offer {
    /// How much there is: "14 tools, 3 resources".
    pub(crate) fn counts(&self) -> String {
        let count = |items: Option<usize>, one: &str| {
            items.map(|n| format!("{n} {one}{}", if n == 1 { "" } else { "s" }))
        };
        let all = [
            count(self.tools.as_ref().map(Vec::len), "tool"),
            count(self.resources.as_ref().map(Vec::len), "resource"),
            count(self.templates.as_ref().map(Vec::len), "template"),
            count(self.prompts.as_ref().map(Vec::len), "prompt"),
        ];
        let all: Vec<_> = all.into_iter().flatten().collect();
        if all.is_empty() { "nothing".to_owned() } else { all.join(", ") }
    }

    pub(crate) fn shown(&self, output: &Output, kind: Option<Kind>) -> String {
        let mut sections = Vec::new();
        if let Some(tools) = &self.tools {
            sections.push(section(output, "tools", tools.iter().map(tool_row)));
        }
        if let Some(resources) = &self.resources {
            sections.push(section(output, "resources", resources.iter().map(resource_row)));
        }
        if let Some(templates) = &self.templates {
            sections.push(section(output, "templates", templates.iter().map(template_row)));
        }
        if let Some(prompts) = &self.prompts {
            sections.push(section(output, "prompts", prompts.iter().map(prompt_row)));
        }
        if sections.is_empty() {
            let what = kind.map_or("nothing", |kind| match kind {
                Kind::Tools => "no tools",
                Kind::Resources => "no resources",
                Kind::Templates => "no templates",
                Kind::Prompts => "no prompts",
            });
            return format!("the server offers {what}\n");
        }
        sections.join("\n")
    }
}

/// Name, what it takes, what it does.
struct Row(String, String, String);

fn tool_row(tool: &Tool) -> Row {
    let about = tool.description.as_deref().or(tool.title.as_deref());
    let about = about.unwrap_or_default().to_owned();
    Row(tool.name.clone(), signature(tool), about)
}

/// What a tool takes: `text: string, [count: integer]`.
pub(crate) fn signature(tool: &Tool) -> String {
    let schema = tool.input_schema.json().parse().unwrap_or(Value::Null);
    let all = Schema::of(&schema).fields().into_iter().map(|field| {
        let typed = format!("{}: {}", field.name, field.schema.kind());
        if field.required { typed } else { format!("[{typed}]") }
    });
    all.collect::<Vec<_>>().join(", ")
}

fn resource_row(resource: &Resource) -> Row {
    let about = resource.description.as_deref().or(resource.title.as_deref());
    let about = about.unwrap_or(&resource.name).to_owned();
    Row(resource.uri.clone(), resource.mime_type.clone().unwrap_or_default(), about)
}

fn template_row(template: &ResourceTemplate) -> Row {
    let about = template.description.as_deref().or(template.title.as_deref());
    let about = about.unwrap_or(&template.name).to_owned();
    Row(template.uri_template.clone(), template.mime_type.clone().unwrap_or_default(), about)
}

fn prompt_row(prompt: &Prompt) -> Row {
    let takes = prompt.arguments.iter().flatten().map(|argument| match argument.required {
        Some(true) => argument.name.clone(),
        _ => format!("[{}]", argument.name),
    });
    let about = prompt.description.as_deref().or(prompt.title.as_deref());
    let takes = takes.collect::<Vec<_>>().join(", ");
    Row(prompt.name.clone(), takes, about.unwrap_or_default().to_owned())
}

/// A column is no wider than this: one long name must not push all others aside. On a terminal a longer name has
/// a line of its own; in a pipe each item is one line.
const COLUMN: usize = 36;

/// How wide a column may be: on a wide terminal a share of it, so that more is shown.
fn widest_column(output: &Output) -> usize {
    output.width().map_or(2 * COLUMN, |width| COLUMN.max(width * 2 / 5))
}

fn section(output: &Output, title: &str, rows: impl Iterator<Item = Row>) -> String {
    let reader = output.out;
    let rows: Vec<Row> = rows
        .map(|Row(a, b, c)| {
            Row(reader.line(&a).into_owned(), reader.line(&b).into_owned(), reader.line(&c).into())
        })
        .collect();
    let widest = |column: fn(&Row) -> &str| {
        rows.iter().map(|row| wide(column(row))).max().unwrap_or(0).min(widest_column(output))
    };
    let (first, second) = (widest(|row| &row.0), widest(|row| &row.1));
    let mut text = format!("{} {}\n", reader.paint(BOLD, title), rows.len());
    for Row(name, takes, about) in &rows {
        let (mut takes, mut about) = (Cow::Borrowed(takes.as_str()), Cow::Borrowed(about.as_str()));
        let mut below = String::new();
        // A pipe has room for everything; a terminal shows the beginning of each.
        let mut alone = false;
        if let Some(width) = output.width() {
            alone = wide(name) > first && !(takes.is_empty() && about.is_empty());
            let beside = width.saturating_sub(first + 4);
            takes = cut(takes.as_ref(), second.min(beside)).into_owned().into();
            // What does not fit beside has a line of its own: so a wider terminal never shows less.
            if beside.saturating_sub(second + 2) < wide(&about) {
                below = format!("      {}\n", cut(&about, width.saturating_sub(6)));
                about = "".into();
            }
        }
        let gap = if alone { format!("\n  {}", pad("", first)) } else { pad(name, first) };
        let line = format!(
            "  {}{gap}  {}{}  {about}",
            reader.paint(CYAN, name),
            reader.paint(DIM, &takes),
            pad(&takes, second),
        );
        let _ = write!(text, "{}\n{below}", line.trim_end());
    }
    text
}
