//! Everything is queued, so when an output is polled never changes what is said.

use proptest::prelude::*;

use super::world::*;
use crate::rpc::Patience;

/// What happens to the peer. None of it depends on what was polled.
#[derive(Clone, Debug)]
enum Deed {
    Read(String),
    Answer,
    Call,
    Cancel,
    Wait,
    Notify,
}

/// What is looked at, whenever one likes.
#[derive(Clone, Copy, Debug)]
enum Look {
    Lost,
    Trouble,
    Output,
    Timeout,
}

fn deeds() -> impl Strategy<Value = Vec<Deed>> {
    let id = prop_oneof![Just("1"), Just("2"), Just("\"1\""), Just("3")];
    let line = (id, 0..9).prop_map(|(id, kind)| match kind {
        0..3 => request(id, "m"),
        3 => request(id, "ping"),
        4 => result(id),
        5 => note("notifications/cancelled", &format!(r#"{{"requestId":{id}}}"#)),
        6 => format!("[{},{},1]", request(id, "m"), note("n", "{}")),
        7 => "{\n junk".into(),
        _ => note("notifications/progress", &format!(r#"{{"progressToken":{id}}}"#)),
    });
    let deed = prop_oneof![
        4 => line.prop_map(Deed::Read),
        2 => Just(Deed::Answer),
        1 => Just(Deed::Call),
        1 => Just(Deed::Cancel),
        1 => Just(Deed::Wait),
        1 => Just(Deed::Notify),
    ];
    proptest::collection::vec(deed, 0..40)
}

fn looks() -> impl Strategy<Value = Vec<Look>> {
    let look =
        prop_oneof![Just(Look::Lost), Just(Look::Trouble), Just(Look::Output), Just(Look::Timeout)];
    proptest::collection::vec(look, 0..5)
}

/// All that came of it, by where it was seen.
#[derive(Debug, Default, PartialEq)]
struct Seen {
    wire: String,
    events: Vec<String>,
    lost: Vec<String>,
    troubles: Vec<String>,
}

impl Seen {
    fn look(&mut self, side: &mut Side, look: Look) {
        match look {
            Look::Lost => self.lost.extend(side.lost()),
            Look::Trouble => {
                self.troubles.extend(side.troubles().iter().map(|kind| format!("{kind:?}")));
            }
            Look::Output => self.wire.push_str(&side.bytes()),
            Look::Timeout => drop(side.peer.poll_timeout()),
        }
    }
}

fn play(deeds: &[Deed], looks: &[Vec<Look>]) -> Seen {
    let mut side = Side::with(MCP, true, |config| config.running = 2);
    let mut seen = Seen::default();
    for (n, deed) in deeds.iter().enumerate() {
        match deed {
            Deed::Read(line) => seen.events.extend(side.gets(line)),
            Deed::Answer if !side.tickets.is_empty() => {
                let ticket = side.tickets.remove(0);
                side.peer.answer(ticket, Ok(json("\"done\"")));
                // The driver fills a place that was freed.
                while let Some(request) = side.next() {
                    seen.events.push(request);
                }
            }
            Deed::Call => {
                side.call("c", Some(Patience::new(secs(2))));
            }
            Deed::Cancel => {
                let last = side.peer.calls_made;
                side.peer.cancel(crate::rpc::CallId(last), "no");
            }
            Deed::Wait => side.waits(secs(1)),
            Deed::Notify => side.peer.notify("n", None).unwrap(),
            Deed::Answer => {}
        }
        for look in looks.get(n).into_iter().flatten() {
            seen.look(&mut side, *look);
        }
    }
    for look in [Look::Timeout, Look::Trouble, Look::Lost, Look::Output] {
        seen.look(&mut side, look);
    }
    seen
}

proptest! {
    #[test]
    fn any_order_of_polling_gives_the_same_wire_and_the_same_events(
        deeds in deeds(),
        looks in proptest::collection::vec(looks(), 0..40),
    ) {
        prop_assert_eq!(play(&deeds, &looks), play(&deeds, &[]));
    }

    /// The promise at the top of the file, over everything that can happen: at most one answer for
    /// each time an id was asked, whatever the order.
    #[test]
    fn no_request_is_answered_twice(deeds in deeds()) {
        let asked = |id: &str| {
            let ask = format!("\"id\":{id},\"method\"");
            deeds.iter().filter(|deed| matches!(deed, Deed::Read(line) if line.contains(&ask))).count()
        };
        let wire = play(&deeds, &[]).wire;
        for id in ["1", "2", "\"1\"", "3"] {
            let answers = ["result", "error"]
                .map(|kind| wire.matches(&format!("\"id\":{id},\"{kind}\"")).count());
            prop_assert!(answers.iter().sum::<usize>() <= asked(id), "{} in {}", id, wire);
        }
    }
}
