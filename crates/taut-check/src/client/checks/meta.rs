//! What a client puts into `_meta`: keys, trace context and extensions.

use serde_json::Value;

use super::{each, every};
use crate::check::{Check, Revisions};
use crate::client::record::Life;
use crate::cx::{CAPABILITIES, VERSION};
use crate::ours::Revision;
use crate::seen::is_notification;

pub(super) fn checks() -> Vec<Check> {
    vec![
        Check::must(
            "client-meta-fields",
            &["MET-07", "MET-08", "TRC-02", "EXT-01", "EXT-03", "DEP-06"],
            Revisions::MODERN,
            "Keys of `_meta` are names, trace context is in its W3C form, and extensions are prefixed names with objects.",
        )
        .hosts("A server that validates refuses the request.")
        .played(&[], |played| each(played, |_, life| {
            modern_messages(life).find_map(|value| {
                let odd = odd_keys(value, played.revision);
                odd.or_else(|| odd_trace(&value["params"]["_meta"])).or_else(|| odd_capabilities(value))
            })
        })),
        Check::must(
            "client-meta-keys",
            &["MET-07"],
            Revisions::STRUCTURED_LEGACY,
            "Keys of `_meta` are names, and none has a prefix of the protocol's own.",
        )
        .hosts("A server that validates refuses the request; a later revision gives the key another meaning.")
        .played(&[], |played| every(played, |value| {
            // A probe is judged with the servers that understand it.
            let modern = value["params"]["_meta"].get(VERSION).is_some();
            odd_keys(value, played.revision).filter(|_| !modern)
        })),
    ]
}

/// The messages that belong to 2026-07-28: those before a handshake.
fn modern_messages(life: &Life) -> impl Iterator<Item = &Value> {
    let begun = life.first("initialize").map_or(usize::MAX, |(at, _)| at);
    let before = life.heard().filter(move |(at, _)| *at < begun).map(|(_, value)| value);
    before.filter(|value| is_notification(value) || value.get("id").is_some())
}

/// What is wrong with the keys of a message's `_meta`.
fn odd_keys(value: &Value, revision: Revision) -> Option<String> {
    let places = ["/params/_meta", "/result/_meta"];
    let meta = places.iter().find_map(|place| value.pointer(place)?.as_object())?;
    if let Some(key) = meta.keys().find(|key| !crate::server::is_key(key)) {
        return Some(format!("{key:?} is no key"));
    }
    // An extension may have keys of its own.
    let extended = value["params"]["_meta"][CAPABILITIES].get("extensions").is_some();
    let own = |key: &&String| !extended && crate::server::is_reserved(revision, key);
    let key = meta.keys().find(own)?;
    Some(format!("{key:?} has a prefix of the protocol's own"))
}

/// What is wrong with the trace context of a `_meta`.
fn odd_trace(meta: &Value) -> Option<String> {
    let baggage = meta["baggage"].as_str().filter(|list| !list.split(',').all(is_member));
    let state = meta["tracestate"].as_str().filter(|list| !list.split(',').all(is_state));
    let odd = || baggage.map(|list| format!("baggage is {list:?}"));
    let odd_state = || state.map(|list| format!("tracestate is {list:?}"));
    crate::server::odd_trace(meta).or_else(odd).or_else(odd_state)
}

/// Whether a text has the form of a member of W3C's tracestate: a key in lower case, an equals sign, and a value.
fn is_state(member: &str) -> bool {
    let Some((key, value)) = member.trim().split_once('=') else { return member.trim().is_empty() };
    let known = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_-*/@".contains(c);
    key.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit())
        && key.chars().all(known)
        && value.chars().all(|c| (' '..='~').contains(&c) && c != '=')
}

/// Whether a text has the form of a member of W3C's baggage: a token, an equals sign, and a value without spaces,
/// quotes, commas and backslashes. Properties may follow, which are not looked at.
fn is_member(member: &str) -> bool {
    let Some((key, value)) = member.split(';').next().unwrap_or_default().split_once('=') else {
        return member.trim().is_empty();
    };
    let (key, value) = (key.trim(), value.trim());
    let token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    let octet = |c: char| c.is_ascii_graphic() && !"\",\\".contains(c);
    !key.is_empty() && key.chars().all(token) && value.chars().all(octet)
}

/// What is wrong with the capabilities of a request.
fn odd_capabilities(value: &Value) -> Option<String> {
    let caps = value["params"]["_meta"].get(CAPABILITIES)?;
    if caps["roots"].get("listChanged").is_some() {
        return Some("roots.listChanged is gone".to_owned());
    }
    if caps.get("tasks").is_some() {
        return Some("the capability tasks is gone".to_owned());
    }
    let extensions = caps.get("extensions")?;
    let prefixed = |(name, value): (&String, &Value)| name.contains('/') && value.is_object();
    let fits = extensions.as_object().is_some_and(|all| all.iter().all(prefixed));
    (!fits).then(|| format!("the extensions are {extensions}"))
}
