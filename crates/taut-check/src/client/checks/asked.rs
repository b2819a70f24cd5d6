//! What a client does when a server asks it something, and with pages.

use serde_json::{Value, json};

use super::each;
use crate::check::{Check, Revisions, Verdict};
use crate::client::record::{Life, Played};
use crate::seen::{is_request, is_response};

pub(super) fn checks() -> Vec<Check> {
    fn answer(played: &Played<'_>, judge: impl Fn(&Life) -> Option<String>) -> Verdict {
        // One that left at once may have had no time to answer: only what it did answer is judged.
        let judged = |life: &Life| {
            let said = life.said().any(|(_, value)| value["id"] == "ping-1");
            said && (life.stayed_after("ping-1") || life.answer(&json!("elicit-1")).is_some())
        };
        match played.lives().any(|(_, life)| judged(life)) {
            true => each(played, |_, life| judged(life).then(|| judge(life)).flatten()),
            false => Verdict::skip("the client ended before it could answer"),
        }
    }
    /// The code of the answer, where the capability was not declared.
    fn refused(life: &Life, id: &str, capability: &str) -> Option<String> {
        let declared =
            life.first("initialize")?.1["params"]["capabilities"].get(capability).is_some();
        let code = life.answer(&json!(id)).map(|reply| reply["error"]["code"].clone());
        match code {
            _ if declared => None,
            Some(code) if code == -32601 => None,
            Some(code) => {
                Some(format!("{capability} is not declared, and the answer has the code {code}"))
            }
            None => Some(format!("the request for {capability} was not answered")),
        }
    }
    vec![
        Check::must(
            "client-ping",
            &["PNG-01", "RPC-06", "STD-06", "STD-07"],
            Revisions::LEGACY,
            "The client answers `ping` with an empty result and the same id.",
        )
        .sent("pings with the ids \"ping-1\" and 0, after 400 KiB on stderr")
        .hosts("Servers that ping end the session.")
        .played(&["rude"], |played| {
            answer(played, |life| {
                [json!("ping-1"), json!(0)].iter().find_map(|id| {
                    let reply = life.answer(id);
                    let empty = reply
                        .and_then(|reply| reply["result"].as_object())
                        .is_some_and(|result| result.keys().all(|key| key == "_meta"));
                    (!empty).then(|| {
                        format!(
                            "ping {id} was answered with {}",
                            reply.map_or_else(|| "nothing".to_owned(), ToString::to_string)
                        )
                    })
                })
            })
        }),
        Check::must(
            "client-unknown-request",
            &["RPC-17"],
            Revisions::LEGACY,
            "The client refuses an unknown request with -32601.",
        )
        .sent("the request `taut-check/none`")
        .hosts("A server waits for the answer for ever.")
        .played(&["rude"], |played| {
            answer(played, |life| {
                let code =
                    life.answer(&json!("none-1")).map(|reply| reply["error"]["code"].clone());
                (code != Some(json!(-32601)))
                    .then(|| format!("the answer has the code {}", code.unwrap_or_default()))
            })
        }),
        Check::should(
            "client-roots-undeclared",
            &["ERR-16"],
            Revisions::LEGACY,
            "A client that does not declare roots refuses `roots/list` with -32601.",
        )
        .sent("`roots/list`")
        .hosts("A server takes an empty list for no access.")
        .played(&["rude"], |played| answer(played, |life| refused(life, "roots-1", "roots"))),
        Check::must(
            "client-roots",
            &["ROO-02"],
            Revisions::LEGACY,
            "A client that declares roots answers `roots/list` with file:// addresses.",
        )
        .sent("`roots/list`")
        .hosts("A server cannot tell where it may work.")
        .played(&["rude"], |played| {
            answer(played, |life| {
                life.first("initialize")?.1["params"]["capabilities"].get("roots")?;
                let roots = life
                    .answer(&json!("roots-1"))
                    .map(|reply| reply["result"]["roots"].clone())
                    .unwrap_or_default();
                let fits = roots.as_array().is_some_and(|list| {
                    list.iter().all(|root| {
                        root["uri"].as_str().is_some_and(|uri| uri.starts_with("file://"))
                    })
                });
                (!fits).then(|| format!("the roots are {roots}"))
            })
        }),
        Check::must(
            "client-silent",
            &["RPC-11", "RPC-21"],
            Revisions::LEGACY,
            "The client answers no notification and no answer.",
        )
        .sent("unknown notifications, a cancellation and an answer that belong to nothing")
        .hosts("A server gets answers that it never asked for.")
        .played(&["rude"], |played| {
            answer(played, |life| {
                let asked: Vec<&Value> = life
                    .said()
                    .filter(|(_, value)| is_request(value))
                    .filter_map(|(_, value)| value.get("id"))
                    .collect();
                let stray = life.heard().map(|(_, value)| value).find(|value| {
                    is_response(value) && value.get("id").is_none_or(|id| !asked.contains(&id))
                });
                stray.map(|stray| format!("it answered {stray}"))
            })
        }),
        Check::must(
            "client-cursor",
            &["PAG-01", "PAG-03", "PAG-06"],
            Revisions::ALL,
            "A client that reads further pages sends the cursor as it got it, also an empty one.",
        )
        .sent("a list of tools in three pages")
        .hosts("A server refuses a cursor that it did not give.")
        .played(&["pages"], |played| {
            each(played, |_, life| {
                let given: Vec<&Value> = life
                    .said()
                    .filter_map(|(_, value)| value["result"].get("nextCursor"))
                    .collect();
                let lists: Vec<&Value> = life
                    .requests()
                    .filter(|(_, value)| value["method"] == "tools/list")
                    .map(|(_, value)| value)
                    .collect();
                let odd = lists
                    .iter()
                    .filter_map(|value| value["params"].get("cursor"))
                    .find(|cursor| !given.contains(cursor));
                if let Some(odd) = odd {
                    return Some(format!("the cursor {odd} was never given"));
                }
                let pages =
                    lists.iter().filter(|value| value["params"].get("cursor").is_some()).count();
                let ended_early = pages == 1 && given.len() == 2 && given[1] == "";
                ended_early.then(|| "an empty cursor was taken for the end".to_owned())
            })
        }),
    ]
}
