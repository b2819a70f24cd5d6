//! What stands in a response: the text, whether the web was searched, and the sources, dated.
//!
//! Pure: JSON and today's date go in. Each form in which services give sources is read.

use std::collections::HashSet;

use serde_json::Value;

/// How many addresses are taken from a search call of unknown shape.
const MOST_FOUND: usize = 50;

/// Where a statement comes from.
#[derive(Debug, PartialEq, serde::Serialize, taut::JsonSchema)]
pub struct Citation {
    /// The page's address, or the name of a source that has none.
    pub url: String,
    /// The page's title.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// When it was published, or else read: YYYY-MM-DD.
    pub published_at: String,
}

/// The text, whether the web was searched, and the sources.
type Reading = (String, bool, Vec<Citation>);

/// Reads a response, or says why there is no answer in it.
pub fn read(response: &Value, today: &str, most: usize) -> Result<Reading, String> {
    let items = || list(&response["output"]);
    let contents = || items().flat_map(|item| list(&item["content"]));
    let parts: Vec<_> = contents().filter_map(|part| part["text"].as_str()).collect();
    let whole = response["output_text"].as_str().filter(|text| !text.is_empty());
    let mut text = whole.map_or_else(|| parts.join("\n\n"), str::to_owned);
    if text.trim().is_empty() {
        return Err(why_empty(response, contents().find_map(|part| part["refusal"].as_str())));
    }
    let notes = contents().flat_map(|part| list(&part["annotations"]));
    let notes: Vec<_> = notes.filter(|note| note["type"] == "url_citation").collect();
    let calls: Vec<_> = items().filter(|item| item["type"] == "web_search_call").collect();
    let used_search = !calls.is_empty() || !notes.is_empty();

    let mut citations: Vec<_> = notes.iter().filter_map(|note| noted(note, today)).collect();
    // A search lists every page it saw; where the text itself cites, those pages say no more.
    let cited = !citations.is_empty();
    let listed = calls.iter().flat_map(|call| sources(call, today));
    citations.extend(listed.filter(|source| !cited || !is_address(&source.url)));
    let mut seen = HashSet::new();
    citations.retain(|citation| seen.insert(citation.url.clone()));
    citations.truncate(most);
    if used_search {
        list_sources(&mut text, &citations);
    }
    Ok((text, used_search, citations))
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn is_address(text: &str) -> bool {
    text.starts_with("https://") || text.starts_with("http://")
}

fn why_empty(response: &Value, refusal: Option<&str>) -> String {
    let failed = response["error"]["message"].as_str();
    match (refusal, failed, response["incomplete_details"]["reason"].as_str()) {
        (Some(words), ..) => format!("the model declined to answer: {words}"),
        (_, Some(words), _) => format!("the service failed: {words}"),
        (.., Some(reason)) => format!("the model stopped before it said anything: {reason}"),
        _ => "the service sent a response without any text".to_owned(),
    }
}

/// The first of these members that is a text.
fn text_of(value: &Value, names: &[&str]) -> Option<String> {
    let mut texts = names.iter().filter_map(|name| value[name].as_str());
    texts.find(|text| !text.is_empty()).map(str::to_owned)
}

/// A citation in the text, flat or nested. It has no date of its own, so it gets the day it was read.
fn noted(note: &Value, today: &str) -> Option<Citation> {
    let note = if note["url_citation"].is_object() { &note["url_citation"] } else { note };
    let (url, title) = (text_of(note, &["url"])?, text_of(note, &["title"]));
    Some(Citation { url, title, published_at: today.to_owned() })
}

/// What a search call lists as its sources; if it has no list, every address in it.
fn sources(call: &Value, today: &str) -> Vec<Citation> {
    let plain =
        |url: &str| Citation { url: url.to_owned(), title: None, published_at: today.to_owned() };
    let read = |source: &Value| {
        if let Some(url) = source.as_str() {
            return Some(plain(url));
        }
        let date = text_of(source, &["published_at", "published_date", "date"]);
        let published_at = date.unwrap_or_else(|| today.to_owned());
        let (url, title) = match text_of(source, &["url", "link"]) {
            Some(url) => (url, text_of(source, &["title", "name"])),
            // A feed such as a weather service has a name and a kind instead.
            None => (text_of(source, &["name"])?, text_of(source, &["type"])),
        };
        Some(Citation { url, title, published_at })
    };
    if let Some(listed) = call["action"]["sources"].as_array() {
        return listed.iter().filter_map(read).collect();
    }
    let json = call.to_string();
    let words = json.split(['"', '\\', ' ']).filter(|word| is_address(word)).take(MOST_FOUND);
    words.map(|word| plain(word.trim_end_matches([')', ',', '.', ';']))).collect()
}

/// Ends the text with its dated sources, unless the model did so itself.
fn list_sources(text: &mut String, citations: &[Citation]) {
    let before = |line: &&str| !line.trim_start_matches([' ', '#', '*']).starts_with("Sources:");
    let mut listed = text.lines().skip_while(before).peekable();
    let heading = if listed.peek().is_none() { "\n\nSources:" } else { "" };
    if !listed.any(has_date) && !citations.is_empty() {
        *text += heading;
        citations.iter().for_each(|c| *text += &format!("\n- {} ({})", c.url, c.published_at));
    }
}

/// Whether YYYY-MM-DD stands somewhere in the line.
fn has_date(line: &str) -> bool {
    let mut words = line.split(|c: char| !c.is_ascii_digit() && c != '-').map(str::as_bytes);
    words.any(|word| matches!(word, [_, _, _, _, b'-', _, _, b'-', _, _]))
}
