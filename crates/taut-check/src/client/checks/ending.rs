//! How a client ends its server.

use super::each;
use crate::check::{Check, Revisions, Verdict};
use crate::client::play::STUBBORN;
use crate::client::record::{Life, Note, Played};

pub(super) fn checks() -> Vec<Check> {
    vec![
        Check::should(
            "client-closes-first",
            &["STD-18"],
            Revisions::ALL,
            "The client closes the server's stdin, and waits, before it signals or kills.",
        )
        .sent("a server that does not end when its stdin ends, one that leaves calls unanswered, and good ones")
        .hosts("A server cannot write down what it has to keep.")
        .after(&["client-ends-server"])
        .played(&["stubborn", "stuck", "dual", "legacy", "legacy-0618"], |played| {
            // One that we had to end took the server with it.
            let ended: Vec<_> = played.scenes.iter().copied().filter(|scene| scene.ended.is_some()).collect();
            if ended.is_empty() {
                return Verdict::skip("the client was still at work when its time was over");
            }
            let played = &Played { scenes: ended, ended: Vec::new(), probed: Vec::new(), ..*played };
            each(played, |name, life| {
                let closed = life.closed();
                let lived = |closed: u64| {
                    let later = |note: &Note| matches!(note, Note::Alive { at } if *at >= closed + 20);
                    life.notes.iter().any(later)
                };
                // What is started and ended before it was of use may be ended in any way.
                let opening = ["initialize", "server/discover", "ping"];
                let mut requests = life.requests().filter(|(at, _)| life.reply(*at).is_some());
                let used = !life.cut && requests.any(|(_, value)| !opening.iter().any(|it| value["method"] == *it));
                match closed {
                    None if used => Some("the server was ended while its stdin was open".to_owned()),
                    Some(closed) if used && name == "stubborn" && !lived(closed) => {
                        Some("the server was ended as soon as its stdin was closed".to_owned())
                    }
                    _ => None,
                }
            })
        }),
        Check::should(
            "client-ends-server",
            &["STD-18"],
            Revisions::ALL,
            "The client ends the server when it ends: it closes stdin, then signals, then kills.",
        )
        .sent("a server that does not end when its stdin ends, one that also ignores SIGTERM, and one whose version nobody speaks")
        .hosts("Every session leaves a process behind.")
        .played(&["stubborn", "deaf", "legacy", "dual", "offer"], |played| {
            if played.scenes.iter().all(|scene| scene.ended.is_none()) {
                return Verdict::skip("the client was still at work when its time was over");
            }
            for scene in &played.scenes {
                let Some(ended) = scene.ended else { continue };
                let last = scene
                    .lives
                    .iter()
                    .flat_map(|life| &life.notes)
                    .filter_map(|note| match note {
                        Note::Alive { at } | Note::Heard { at, .. } | Note::Said { at, .. } => {
                            Some(*at)
                        }
                        _ => None,
                    })
                    .max()
                    .unwrap_or_default();
                let closed = scene.lives.iter().filter_map(Life::closed).max();
                if closed.is_some_and(|closed| last >= closed + STUBBORN) {
                    return Verdict::fail(format!("{}: nobody ended the server", scene.name));
                }
                if last > ended + 5_000 {
                    return Verdict::fail(format!(
                        "{}: the server was there {} ms after the client was gone",
                        scene.name,
                        last - ended
                    ));
                }
            }
            Verdict::Pass
        }),
        terminates(),
    ]
}

/// The shortest time that may be meant for the server to end in, in milliseconds.
const GRACE: u64 = 50;

/// Whether the client sends SIGTERM to a server that stays after its stdin was closed.
fn terminates() -> Check {
    Check::should(
        "client-terminates",
        &["STD-18"],
        Revisions::ALL,
        "A server that stays after its stdin was closed gets SIGTERM, and time, before it is killed.",
    )
    .sent("a server that ignores the end of its stdin, and SIGTERM; not on Windows, which has no such signal")
    .hosts("A server cannot write down what it has to keep.")
    .after(&["client-ends-server", "client-closes-first"])
    .played(&["deaf"], |played| {
        if cfg!(windows) {
            return Verdict::skip("Windows has no SIGTERM");
        }
        if played.scenes.iter().any(|scene| scene.ended.is_none()) {
            return Verdict::skip("the client was still at work when its time was over");
        }
        each(played, |_, life| {
            let told = life.notes.iter().find_map(|note| match note {
                Note::Term { at } => Some(*at),
                _ => None,
            });
            let gone = life.notes.iter().find_map(|note| match note {
                Note::Gone { at } => Some(*at),
                _ => None,
            });
            let used = life.said().count() > 1 && !life.cut && life.closed().is_some();
            match (told, gone) {
                (None, _) if used => Some("the server was killed, and got no SIGTERM before".to_owned()),
                (Some(told), Some(gone)) if used && gone < told + GRACE => {
                    Some("the server was killed as soon as it had got SIGTERM".to_owned())
                }
                _ => None,
            }
        })
    })
}
