//! Resources and templates (RES).

use serde_json::{Value, json};

use super::lists::{TRIED, has_list, is_contents, is_template, items, misfit, named};
use super::{alive, fail, needs, refused, result, short, verdict};
use crate::check::{Check, Revisions, Sends, Verdict};
use crate::cx::Cx;
use crate::seen::{Seen, Step, is_response};

pub(super) fn checks() -> Vec<Check> {
    vec![
        Check::must("resources-list", &["RES-02", "RES-13"], Revisions::ALL,
            "`resources/list` gives an array `resources`, each with uri and name; their other members have their types.")
            .hosts("The official SDKs refuse the whole list.")
            .scan(|cx, all| match has_list(all, "resources/list", "resources") {
                Verdict::Pass => items(all, "resources/list", "resources", |item| {
                    named(item, &["uri", "name"]).or_else(|| {
                        // What is no uri is told by `resources-uri`.
                        let mut item = item.clone();
                        item["uri"] = json!("taut-check://x");
                        misfit(cx, "Resource", &item)
                    })
                }),
                failed => failed,
            }),
        Check::must("resources-templates", &["RES-04"], Revisions::ALL,
            "`resources/templates/list` gives an array `resourceTemplates`, each with a uriTemplate by RFC 6570 and a name.")
            .sent("`resources/templates/list`")
            .hosts("Codex asks for it whenever resources are declared.")
            .scan(|cx, all| {
                // A page that cannot be read is judged by `page-next`.
                let first = cx.survey.templates.pages.is_empty();
                if let Some(error) = cx.survey.templates.error.as_ref().filter(|_| first) {
                    // A server without templates may not know the method; the capability does not say.
                    if error.pointer("/error/code").and_then(Value::as_i64) != Some(-32601) {
                        return Verdict::from_faults(vec![(format!("it was refused: {}", short(&error["error"])), error.to_string())]);
                    }
                }
                match has_list(all, "resources/templates/list", "resourceTemplates") {
                    Verdict::Pass => items(all, "resources/templates/list", "resourceTemplates", |item| named(item, &["uriTemplate", "name"]).or_else(|| {
                        let template = item["uriTemplate"].as_str()?;
                        if is_template(template) { misfit(cx, "ResourceTemplate", item) } else { Some(format!("{template:?} is no template by RFC 6570")) }
                    })),
                    failed => failed,
                }
            }),
        Check::must("resources-uri", &["RES-14"], Revisions::SINCE_0618,
            "A resource's uri is one by RFC 3986: a scheme, a colon, no spaces.")
            .hosts("Python hosts parse it as a URL and refuse the whole list.")
            .after(&["resources-list"])
            .scan(|_, all| items(all, "resources/list", "resources", |item| {
                let uri = item["uri"].as_str()?;
                (!is_uri(uri)).then(|| format!("{uri:?} is no uri"))
            })),
        Check::must("resources-read", &["RES-03"], Revisions::ALL,
            "`resources/read` gives an array `contents`, each with a uri and either text or blob.")
            .sent("`resources/read` for each listed resource, 20 at most")
            .hosts("The official SDKs refuse the answer.")
            .probe(
                |cx| {
                    needs(cx, "resources")?;
                    let uris = cx.survey.resources.items.iter().filter_map(|item| item["uri"].as_str()).take(TRIED);
                    let steps: Vec<Step> = uris.zip(0..).flat_map(|(uri, n)| [cx.request(n, "resources/read", json!({ "uri": uri })), Step::Await(cx.id(n))]).collect();
                    if steps.is_empty() { Err("the server lists no resource".to_owned()) } else { Ok(steps) }
                },
                |cx, seen| {
                    let mut read = 0;
                    for id in (0..).zip(0..TRIED).map(|(n, _)| cx.id(n)).take_while(|id| seen.own.contains(id)) {
                        // One that is not there at the moment says nothing of the others.
                        if seen.code(&id).is_some_and(|code| code != -32601) {
                            continue;
                        }
                        let result = match result(seen, &id) {
                            Ok(result) => result,
                            Err(verdict) => return verdict,
                        };
                        read += 1;
                        if result["resultType"] == "input_required" {
                            continue;
                        }
                        let Some(contents) = result["contents"].as_array() else { return fail(seen, "`contents` is no array") };
                        if let Some(item) = contents.iter().find(|item| !is_contents(item)) {
                            return fail(seen, format!("an item has no uri, or not exactly one of text and base64 blob: {}", short(item)));
                        }
                        let kind = |item: &Value| if item.get("blob").is_some() { "BlobResourceContents" } else { "TextResourceContents" };
                        if let Some(what) = contents.iter().find_map(|item| misfit(cx, kind(item), item)) {
                            return fail(seen, what);
                        }
                    }
                    if read == 0 { Verdict::skip("no resource could be read") } else { Verdict::Pass }
                },
            ),
        Check::advice("resources-request", &["RPC-18", "SEC-07"], Revisions::ALL,
            "`resources/read` without a uri, or with one that is no string, is refused with -32602.")
            .sent("`resources/read` with {}, with the uri 5 and with null")
            .hosts("No host sends it; a server that goes on reads something that nobody named.")
            .probe(
                |cx| {
                    needs(cx, "resources")?;
                    Ok(vec![cx.request(0, "resources/read", json!({})), cx.request(1, "resources/read", json!({ "uri": 5 })),
                        cx.request(2, "resources/read", json!({ "uri": null }))])
                },
                |cx, seen| verdict((0..3).try_for_each(|n| refused(seen, &cx.id(n), &[-32602]))),
            ),
        Check::should("resources-missing", &["RES-05", "ERR-02"], Revisions::LEGACY,
            "A resource that does not exist is refused with -32002, and has no empty contents.")
            .sent("`resources/read` for `taut-check://no-such-resource`, and for a listed uri with another last segment")
            .hosts("A host cannot tell a missing resource from a broken server.")
            .probe(
                missing_steps,
                |cx, seen| verdict(missing(cx, seen, -32002)),
            ),
        Check::must("resources-missing-modern", &["RES-06", "ERR-03"], Revisions::MODERN,
            "A resource that does not exist is refused with -32602, not with -32002 and not with empty contents.")
            .sent("`resources/read` for `taut-check://no-such-resource`, and for a listed uri with another last segment")
            .hosts("-32002 has no meaning any more; empty contents look like an empty file.")
            .probe(
                missing_steps,
                |cx, seen| verdict(missing(cx, seen, -32602)),
            ),
        Check::must("resources-traversal", &["RES-11", "SEC-07"], Revisions::ALL,
            "A uri that leads out of what is offered is refused.")
            .sent("`resources/read` for `file:///../../../../etc/passwd`, with its dots encoded, and in place of what templates and a listed resource have")
            .hosts("Every file of the user is open to any prompt that the model reads.")
            .probe(
                |cx| {
                    needs(cx, "resources")?;
                    Ok(ways_out(cx).into_iter().zip(0..).map(|(uri, n)| cx.request(n, "resources/read", json!({ "uri": uri }))).collect())
                },
                |_, seen| match seen.got().find(|value| is_response(value) && value.to_string().contains("root:x:0:0")) {
                    Some(_) => fail(seen, "it gave /etc/passwd"),
                    None => verdict(alive(seen)),
                },
            ),
        Check::advice("resources-subscribe", &["LIF-17", "RES-07", "RES-08"], Revisions::LEGACY,
            "A server that declares `resources.subscribe` answers subscribe and unsubscribe with a result.")
            .sent("`resources/subscribe` and `resources/unsubscribe` for the first listed resource")
            .hosts("A host that trusts the flag waits for updates that never come.")
            .probe(
                |cx| {
                    needs(cx, "resources/subscribe")?;
                    let first = cx.survey.resources.items.first().and_then(|item| item["uri"].as_str());
                    let uri = first.ok_or("the server lists no resource")?;
                    Ok(vec![cx.request(0, "resources/subscribe", json!({ "uri": uri })), Step::Await(cx.id(0)),
                        cx.request(1, "resources/unsubscribe", json!({ "uri": uri }))])
                },
                |cx, seen| verdict((0..2).try_for_each(|n| result(seen, &cx.id(n)).map(|_| ()))),
            ),
    ]
}

/// A listed uri with another last segment, which is not listed. Not one of the web: its answer is not the server's own.
fn unlisted(cx: &Cx<'_>) -> Option<String> {
    let listed: Vec<&str> =
        cx.survey.resources.items.iter().filter_map(|item| item["uri"].as_str()).collect();
    listed.iter().take(TRIED).find_map(|uri| {
        let path = uri.split(['?', '#']).next().unwrap_or_default().trim_end_matches('/');
        let (before, _) = path.split_at(path.rfind(['/', ':'])? + 1);
        let other = format!("{before}taut-check-no-such-resource");
        let web = ["http:", "https:"]
            .iter()
            .any(|scheme| before.to_ascii_lowercase().starts_with(scheme));
        (!web && !listed.contains(&other.as_str())).then_some(other)
    })
}

/// Whether a template may serve a uri: it has the same scheme, or any. A list that could not be read may have one.
fn templated(cx: &Cx<'_>, uri: &str) -> bool {
    let templates = &cx.survey.templates;
    let scheme = |text: &str| text.split(':').next().unwrap_or_default().to_ascii_lowercase();
    let fits = |template: &str| template.starts_with('{') || scheme(template) == scheme(uri);
    let unread = templates.lost
        || templates.error.as_ref().is_some_and(|error| error["error"]["code"] != -32601);
    unread || templates.items.iter().any(|item| item["uriTemplate"].as_str().is_none_or(fits))
}

fn missing_steps(cx: &Cx<'_>) -> Sends {
    needs(cx, "resources")?;
    let uris = [Some("taut-check://no-such-resource".to_owned()), unlisted(cx)];
    Ok(uris
        .into_iter()
        .flatten()
        .zip(0..)
        .map(|(uri, n)| cx.request(n, "resources/read", json!({ "uri": uri })))
        .collect())
}

/// Passes if what does not exist was refused with this code. What a template may serve need not be refused, and is not
/// empty.
fn missing(cx: &Cx<'_>, seen: &Seen<'_>, code: i64) -> Result<(), Verdict> {
    refused(seen, &cx.id(0), &[code])?;
    let Some(uri) = unlisted(cx) else { return Ok(()) };
    match seen.reply(&cx.id(1)) {
        None => Err(super::unanswered(seen, &cx.id(1))),
        Some(reply) if reply["result"]["contents"].as_array().is_some_and(Vec::is_empty) => {
            Err(fail(seen, format!("{uri} is not listed, and has empty contents")))
        }
        Some(reply) if reply["error"].is_object() && !templated(cx, &uri) => {
            refused(seen, &cx.id(1), &[code])
        }
        Some(_) => Ok(()),
    }
}

/// Addresses that lead to a file which no server offers, if it does not look at them.
fn ways_out(cx: &Cx<'_>) -> Vec<String> {
    const OUT: &str = "../../../../../../../../etc/passwd";
    let mut all =
        vec![format!("file:///{OUT}"), format!("file:///{}", OUT.replace("..", "%2e%2e"))];
    let templates =
        cx.survey.templates.items.iter().filter_map(|item| item["uriTemplate"].as_str());
    let encoded = OUT.replace('.', "%2e").replace('/', "%2f");
    for template in templates.take(5) {
        let Some((before, rest)) = template.split_once('{') else { continue };
        let Some((_, rest)) = rest.split_once('}') else { continue };
        let behind = rest.split('{').next().unwrap_or_default();
        // As one segment, and the whole path: some libraries let that replace the folder.
        let segment = OUT.replace('/', "%2f");
        all.extend([OUT, &encoded, &segment].map(|out| format!("{before}{out}{behind}")));
        // A whole path is what a template asks for that offers the whole disk.
        if !offers_all(before) {
            all.extend(
                ["/etc/passwd", "%2fetc%2fpasswd"].map(|out| format!("{before}{out}{behind}")),
            );
        }
    }
    let listed = cx.survey.resources.items.first().and_then(|item| item["uri"].as_str());
    all.extend(listed.map(|uri| format!("{}/{OUT}", uri.trim_end_matches('/'))));
    all
}

/// Whether what comes before the variable of a template names the root of a disk: `file:///{path}`, `fs://{+path}`.
fn offers_all(before: &str) -> bool {
    let (scheme, path) = before.split_once(':').unwrap_or(("", before));
    ["file", "fs"].contains(&scheme) && ["", "localhost"].contains(&path.trim_matches('/'))
}

/// Whether a text is an address with a scheme. Letters that are not ASCII are forgiven: most parsers take them.
fn is_uri(text: &str) -> bool {
    let Some((scheme, _)) = text.split_once(':') else { return false };
    let hex =
        |part: &str| part.get(..2).is_some_and(|two| two.chars().all(|c| c.is_ascii_hexdigit()));
    scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
        && !text.contains([' ', '<', '>', '"', '\\', '^', '`', '{', '|', '}'])
        && !text.contains(|c: char| c.is_ascii_control())
        && text.split('%').skip(1).all(hex)
}

#[cfg(test)]
mod tests {
    use super::{is_uri, offers_all};

    #[test]
    fn a_template_of_the_whole_disk_offers_every_path() {
        for before in ["file:///", "file://localhost/", "fs://", "file://"] {
            assert!(offers_all(before), "{before}");
        }
        for before in ["demo://", "file:///srv/", "notes:///", ""] {
            assert!(!offers_all(before), "{before}");
        }
    }

    #[test]
    fn addresses_are_told_from_what_is_none() {
        for uri in
            ["demo://one", "file:///a%20b", "urn:x:y", "x:", "file:///gr\u{fc}n", "a+b.c-d:[1]"]
        {
            assert!(is_uri(uri), "{uri}");
        }
        for odd in [
            "two.txt",
            "",
            "1a:b",
            "file:///a b",
            "file:///a%zz",
            "file:///100%",
            "file:///C:\\x",
            "x:{id}",
        ] {
            assert!(!is_uri(odd), "{odd}");
        }
    }
}
