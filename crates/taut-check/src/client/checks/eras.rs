//! How a client that speaks both eras finds out which one its server speaks.

use serde_json::Value;

use super::each;
use crate::check::{Check, Revisions, Verdict};
use crate::client::record::Life;
use crate::cx::VERSION;
use crate::ours::Revision;

pub(super) fn checks() -> Vec<Check> {
    vec![
        Check::should(
            "client-probe",
            &["PRB-01"],
            Revisions::ALL,
            "A client that speaks both eras first sends `server/discover`, with a version of the new era.",
        )
        .sent("servers of both eras, of 2026-07-28 only, and of the older revisions only")
        .hosts("A server of both eras is used as an older one for ever.")
        .after(&["client-batch", "client-clean", "client-first", "client-no-handshake"])
        .played(&["dual", "legacy", "modern"], |played| {
            if !played.both {
                return Verdict::skip("the client speaks one era only");
            }
            each(played, |name, life| {
                if !played.probed.contains(&name) {
                    let first = life.requests().find(|(_, value)| value["method"] != "ping")?.1;
                    return Some(format!("its first request is {}", first["method"]));
                }
                let named = &life.first("server/discover")?.1["params"]["_meta"][VERSION];
                let old = |version: &Value| version.as_str().and_then(Revision::parse).is_some_and(|it| !it.is_modern());
                old(named).then(|| format!("it asks for {named}"))
            })
        }),
        Check::should(
            "client-probe-modern",
            &["PRB-08"],
            Revisions::MODERN,
            "A client that speaks 2026-07-28 only sends `server/discover` first, too.",
        )
        .sent("servers of both eras, of 2026-07-28 only, and of the older revisions only")
        .hosts("A server of an older revision may carry out a call of a client that cannot read its answers.")
        .after(&["client-batch", "client-clean", "client-meta"])
        .played(&["dual", "legacy", "modern"], |played| {
            if !played.modern_only {
                return Verdict::skip("the client speaks the older revisions, too");
            }
            // It may ask in a process of its own.
            let first = |life: &Life| life.requests().next().map(|(_, value)| value["method"].clone());
            let asks = |life: &Life| first(life).is_some_and(|method| method == "server/discover");
            let silent = played.scenes.iter().filter(|scene| !scene.lives.iter().any(asks));
            let mut named = silent.filter_map(|scene| Some((scene.name, scene.lives.iter().find_map(first)?)));
            match named.next() {
                Some((name, method)) => Verdict::fail(format!("{name}: its first request is {method}")),
                None => Verdict::Pass,
            }
        }),
    ]
}
