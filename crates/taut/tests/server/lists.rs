//! Lists: every item once, in order, the same bytes each time.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::fixture;
use crate::wire::Wire;

const LISTS: [(&str, &str); 4] = [
    ("tools/list", "tools"),
    ("resources/list", "resources"),
    ("resources/templates/list", "resourceTemplates"),
    ("prompts/list", "prompts"),
];

/// PAG-05, CAC-07: five items on three pages, in each of the four lists.
#[tokio::test(start_paused = true)]
async fn pag_05_all_four_lists_are_read_to_their_end_page_by_page() {
    let mut wire = Wire::to(fixture::paged());
    for (method, member) in LISTS {
        let (mut sizes, mut items, mut hints) = (Vec::new(), Vec::new(), Vec::new());
        let mut params = json!({});
        loop {
            wire.ask(1, method, params).await;
            let result = wire.next().await["result"].clone();
            let page = result[member].as_array().unwrap();
            sizes.push(page.len());
            items.extend(page.iter().map(|item| item["name"].as_str().unwrap().to_owned()));
            hints.push((result["ttlMs"].clone(), result["cacheScope"].clone()));
            match result.get("nextCursor") {
                Some(cursor) => params = json!({ "cursor": cursor }),
                None => break,
            }
        }
        assert_eq!(sizes, [2, 2, 1], "{method}");
        assert!(hints.iter().all(|hint| *hint == (json!(60_000), json!("public"))), "{hints:?}");
        let mut sorted = items.clone();
        sorted.sort();
        assert_eq!(items, sorted, "{method}: in the order of registration");
        assert_eq!(items.len(), 5);
    }
}

/// PAG-04: a cursor belongs to its list.
#[tokio::test(start_paused = true)]
async fn pag_04_a_cursor_of_one_list_is_refused_by_another() {
    let mut wire = Wire::to(fixture::paged());
    wire.ask(1, "tools/list", json!({})).await;
    let cursor = wire.next().await["result"]["nextCursor"].clone();
    wire.ask(2, "prompts/list", json!({ "cursor": cursor })).await;
    assert_eq!(wire.next().await["error"]["code"], -32602);
}

/// PAG-04: nobody can make a cursor but the server, so nobody can make it keep pages that it never
/// offered.
#[tokio::test(start_paused = true)]
async fn pag_04_a_cursor_that_was_made_up_is_refused() {
    let mut wire = Wire::to(fixture::paged());
    wire.ask(1, "tools/list", json!({})).await;
    let ours = wire.next().await["result"]["nextCursor"].as_str().unwrap().to_owned();
    let (_, code) = ours.split_once('-').unwrap();
    for start in [1, 3, 4] {
        wire.ask(2, "tools/list", json!({ "cursor": format!("{start:x}-{code}") })).await;
        assert_eq!(wire.next().await["error"]["code"], -32602, "{start}");
    }
    wire.ask(3, "tools/list", json!({ "cursor": ours })).await;
    assert!(wire.next().await["result"]["tools"].is_array());
}

/// TOL-22, TOL-23: on one connection, on another, whatever was called in between.
#[tokio::test(start_paused = true)]
async fn tol_22_a_list_has_the_same_bytes_on_every_connection() {
    let server = Arc::new(fixture::named("full"));
    for (method, _) in LISTS {
        let mut seen: Vec<String> = Vec::new();
        for _ in 0..2 {
            let mut wire = Wire::to_shared(&server);
            for _ in 0..2 {
                wire.ask(1, method, json!({})).await;
                seen.push(wire.line().await.unwrap());
                wire.call(2, "echo", json!({ "text": "x" })).await;
                wire.next().await;
            }
        }
        assert!(seen.windows(2).all(|pair| pair[0] == pair[1]), "{method}");
    }
}

/// The same server, built twice: nothing depends on a hash or an address.
#[tokio::test(start_paused = true)]
async fn tol_23_two_processes_would_list_the_same() {
    let mut lines = Vec::new();
    for _ in 0..2 {
        let mut wire = Wire::to(fixture::named("full"));
        wire.ask(1, "tools/list", json!({})).await;
        lines.push(wire.line().await.unwrap());
    }
    assert_eq!(lines[0], lines[1]);
}

/// LIF-19, TOL-15, TOL-16, TOL-17, TOL-19: which members of a tool each revision sees.
#[tokio::test(start_paused = true)]
async fn lif_19_each_revision_sees_the_members_it_knows() {
    let wanted: [(&str, &[&str]); 4] = [
        ("2024-11-05", &[]),
        ("2025-03-26", &["annotations"]),
        ("2025-06-18", &["_meta", "annotations", "title"]),
        ("2025-11-25", &["_meta", "annotations", "icons", "title"]),
    ];
    for (revision, extra) in wanted {
        let mut wire = Wire::to(fixture::named("full"));
        wire.shake_hands(revision).await;
        wire.send(json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" })).await;
        let list = wire.next().await;
        let decorated = members(&list, "decorated");
        let mut known = vec!["description", "inputSchema", "name"];
        known.extend(extra);
        known.sort_unstable();
        assert_eq!(decorated, known, "{revision}");
        let schema = |tool| members(&list, tool).contains(&"outputSchema");
        let structured = revision >= "2025-06-18";
        assert_eq!((schema("add"), schema("array")), (structured, false), "{revision}");
    }
    let mut wire = Wire::to(fixture::named("full"));
    wire.ask(1, "tools/list", json!({})).await;
    let list = wire.next().await;
    assert!(members(&list, "array").contains(&"outputSchema"), "any root in the modern one");
    assert!(members(&list, "decorated").contains(&"icons"));
}

fn members<'a>(list: &'a Value, tool: &str) -> Vec<&'a str> {
    let tools = list["result"]["tools"].as_array().unwrap();
    let found = tools.iter().find(|item| item["name"] == tool).unwrap();
    let mut names: Vec<&str> = found.as_object().unwrap().keys().map(String::as_str).collect();
    names.sort_unstable();
    names
}
