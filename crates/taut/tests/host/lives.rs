//! Servers that die, and hosts that go on.

use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;
use taut::types::SubscriptionFilter;
use taut::{Change, Client, Command, Error, RestartPolicy, SupervisedClient};

use super::roles::Place;
use super::*;

/// Each way to die is tried so often. Less under Wine, where a start takes half a second.
const TIMES: usize = if cfg!(windows) { 25 } else { 100 };

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// Restarts at once, and never gives up.
fn tireless() -> RestartPolicy {
    RestartPolicy::new().first_delay(ms(1)).max_delay(ms(5)).max_restarts(u32::MAX)
}

fn supervise(place: &Place, restart: RestartPolicy) -> SupervisedClient {
    Client::builder().supervise(place.server("demo"), restart).unwrap()
}

/// Whether no thread of a process runs: they stop one by one. Gone is stopped, too.
#[cfg(unix)]
fn is_stopped(pid: u32) -> bool {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return true };
    threads.flatten().all(|thread| {
        let stat = std::fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
        stat.rsplit(") ").next().is_some_and(|rest| rest.is_empty() || rest.starts_with(['T', 'Z']))
    })
}

/// A moment below a limit: any will do, and a failure names its number.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: Duration) -> Duration {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        limit.mul_f64((self.0 >> 33) as f64 / (1u64 << 31) as f64)
    }
}

/// Calls, and may call again: whatever happens to the server, the answer is the right one.
async fn echo(server: &SupervisedClient, n: usize) {
    let text = format!("echo {n}");
    let answer = in_time(server.call("echo", json!({ "text": text })).retry()).await.unwrap();
    assert_eq!(answer.text().unwrap(), text);
}

/// P21, STD-20
#[tokio::test]
async fn p21_killed_between_calls_a_server_is_back_for_the_next() {
    let place = Place::new("between");
    let server = supervise(&place, tireless());
    let mut dice = Dice(1);
    for n in 0..TIMES {
        echo(&server, n).await;
        kill(server.pid().unwrap());
        // Sometimes the end has been noticed by the time of the call, sometimes not.
        tokio::time::sleep(dice.below(ms(4))).await;
    }
    echo(&server, TIMES).await;
    in_time(server.close()).await.unwrap();
    place.assert_empty().await;
}

/// P21: who waits is told at once, and no answer is another call's.
#[tokio::test]
async fn p21_killed_during_a_call_the_call_fails_at_once_or_has_its_answer() {
    let place = Place::new("during");
    let server = supervise(&place, tireless());
    let (mut dice, mut lost) = (Dice(2), 0);
    for n in 0..TIMES {
        let client = in_time(server.client()).await.unwrap();
        let pid = client.pid().unwrap();
        let slow = client.call("slow", json!({ "steps": 2, "step_ms": 5 })).into_future();
        let slow = tokio::spawn(slow);
        tokio::time::sleep(dice.below(ms(14))).await;
        kill(pid);
        let killed = Instant::now();
        match in_time(slow).await.unwrap() {
            Ok(answer) => assert_eq!(answer.text().unwrap(), "done after 2 steps"),
            Err(error) => {
                assert!(matches!(error, Error::Lost(_)), "{n}: {error}");
                assert!(error.to_string().contains(KILLED), "{n}: {error}");
                lost += 1;
            }
        }
        assert!(killed.elapsed() < Duration::from_secs(5), "{n}: {:?}", killed.elapsed());
    }
    assert!(lost > 0, "at least one call was hit");
    echo(&server, TIMES).await;
    drop(server);
    place.assert_empty().await;
}

/// Killed a moment after it was started, mostly before it has agreed on anything.
#[tokio::test]
async fn p21_killed_during_the_handshake_a_server_is_started_until_it_stays() {
    let place = Place::new("handshake");
    let server = supervise(&place, tireless());
    let done = Arc::new(AtomicBool::new(false));
    let killing = async {
        let (mut dice, mut killed) = (Dice(3), Vec::new());
        while killed.len() < TIMES {
            let fresh = || place.starts().into_iter().find(|start| !killed.contains(start));
            eventually("another process", || fresh().is_some()).await;
            let start = fresh().unwrap();
            tokio::time::sleep(dice.below(ms(20))).await;
            kill(start.0);
            killed.push(start);
        }
        done.store(true, Ordering::Relaxed);
    };
    let calling = async {
        let mut n = 0;
        while !done.load(Ordering::Relaxed) {
            echo(&server, n).await;
            n += 1;
        }
        echo(&server, n).await;
    };
    in_time(async { tokio::join!(killing, calling) }).await;
    in_time(server.close()).await.unwrap();
    place.assert_empty().await;
}

/// P21: a crash loop ends, and says how.
#[tokio::test]
async fn p21_a_server_that_never_stays_is_given_up_with_the_last_reason() {
    // Three processes each.
    for n in 0..TIMES / 4 {
        // Each dies at another moment: at once, or when it has read its first line.
        let place = Place::new(&format!("crashes-{n}"));
        let command = place.server(if n % 2 == 0 { "crash" } else { "crash-later" });
        let restart = RestartPolicy::new().first_delay(ms(1)).max_restarts(2);
        let server = Client::builder().supervise(command, restart).unwrap();
        let error = in_time(server.call("echo", ()).retry()).await.unwrap_err();
        let Error::GaveUp { restarts: 2, last } = &error else { panic!("{n}: {error}") };
        assert!(matches!(**last, Error::Connect(_)), "{n}: {last}");
        assert!(error.to_string().contains("after 2 restarts"), "{n}: {error}");
        assert!(in_time(server.client()).await.is_err(), "{n}");
    }
}

/// P21: what may have run is not run again, unless somebody said that it may.
#[tokio::test]
async fn p21_a_call_is_repeated_only_if_the_caller_said_so() {
    let cases = [
        ("die_once", "never", false),
        ("die_once_harmless", "never", false),
        ("die_once", "if harmless", false),
        ("die_once_harmless", "if harmless", true),
        ("die_once", "always", true),
    ];
    for (tool, again, repeated) in cases {
        let place = Place::new(&format!("{tool}-{}", again.replace(' ', "-")));
        let server = supervise(&place, tireless());
        let call = server.call(tool, ()).timeout(Duration::from_secs(30));
        let call = match again {
            "always" => call.retry(),
            "if harmless" => call.retry_if_harmless(),
            _ => call,
        };
        let answer = in_time(call).await;
        if repeated {
            assert_eq!(answer.unwrap().text().unwrap(), "ran 2", "{tool} {again}");
        } else {
            assert!(matches!(answer, Err(Error::Lost(_))), "{tool} {again}: {answer:?}");
            echo(&server, 0).await;
            assert_eq!(place.runs(), 1, "{tool} {again}");
        }
    }
}

/// A call that kills its server each time is not repeated for ever.
#[tokio::test]
async fn a_call_that_kills_its_server_each_time_is_given_up() {
    let place = Place::new("killer");
    let server =
        supervise(&place, RestartPolicy::new().first_delay(ms(1)).max_delay(ms(5)).max_restarts(3));
    let error = in_time(server.call("die", ()).retry()).await.unwrap_err();
    assert!(matches!(error, Error::Lost(_) | Error::GaveUp { .. }), "{error}");
    assert!(place.pids().len() <= 5, "{:?}", place.pids());
}

/// SUB-08: what was subscribed to is subscribed to again.
#[tokio::test]
async fn sub_08_a_stream_goes_on_after_a_crash() {
    for revision in [taut::Revision::LATEST_LEGACY, taut::Revision::MODERN] {
        let place = Place::new(&format!("stream-{revision}"));
        let builder = Client::builder().revision(revision);
        let server = builder.supervise(place.server("demo"), tireless()).unwrap();
        let filter =
            SubscriptionFilter::new().resource_subscriptions(["demo://touched".to_owned()]);
        let mut changes = in_time(server.listen(filter)).await.unwrap();
        let touched = Some(Change::Resource("demo://touched".to_owned()));
        for _ in 0..3 {
            in_time(server.call("touch", ()).retry()).await.unwrap();
            assert_eq!(in_time(changes.next()).await.unwrap(), touched, "{revision}");
            kill(server.pid().unwrap());
            assert_eq!(in_time(changes.next()).await.unwrap(), Some(Change::Anything));
        }
        in_time(server.close()).await.unwrap();
        assert_eq!(in_time(changes.next()).await.unwrap(), None);
    }
}

/// P23: a process that is stopped has not ended, and answers nobody.
/// Also PNG-04.
#[tokio::test]
// About Unix itself: a signal stops it.
#[cfg(unix)]
async fn p23_a_server_that_is_stopped_is_replaced() {
    for revision in [taut::Revision::LATEST_LEGACY, taut::Revision::MODERN] {
        let place = Place::new(&format!("stopped-{revision}"));
        let seen = Seen::default();
        let lives = seen.clone();
        let restart = tireless()
            .health_check(ms(20), Duration::from_secs(1))
            .on_event(move |event| lives.push(event.to_string()));
        let builder = Client::builder().revision(revision);
        let server = builder.supervise(place.server("demo"), restart).unwrap();
        echo(&server, 0).await;
        let pid = server.pid().unwrap();
        system::stop_other(pid);
        eventually("a stop of each thread", || is_stopped(pid)).await;
        // A call that waits for the stopped one is told, too; on a busy machine there may be another
        // server by the time of the call.
        match in_time(server.call("echo", json!({ "text": "x" }))).await {
            Err(error) => assert!(matches!(error, Error::Lost(_)), "{error}"),
            Ok(answer) => assert_eq!((answer.text().unwrap(), alive(pid)), ("x".into(), false)),
        }
        echo(&server, 1).await;
        assert_ne!(server.pid(), Some(pid));
        assert!(!alive(pid));
        let lost = seen.all().into_iter().find(|life| life.starts_with("lost")).unwrap();
        assert!(lost.contains("was not answered within 1s"), "{lost}");
    }
}

/// P24: one bad server takes nobody down.
#[tokio::test]
async fn p24_two_servers_work_beside_one_that_cannot_start() {
    let places = ["a", "c"].map(|name| Place::new(&format!("beside-{name}")));
    let [first, last] = [&places[0], &places[1]].map(|place| supervise(place, tireless()));
    let missing = Command::new("/nonexistent/taut-no-such-server");
    let bad = Client::builder().supervise(missing, tireless()).unwrap();
    echo(&first, 1).await;
    echo(&last, 2).await;
    let error = in_time(bad.call("echo", ())).await.unwrap_err();
    assert!(matches!(error, Error::GaveUp { restarts: 0, .. }), "{error}");
    assert!(error.to_string().contains("taut-no-such-server"), "{error}");
    echo(&first, 3).await;
}

#[tokio::test]
async fn a_life_is_told_from_its_start_to_its_end() {
    let place = Place::new("told");
    let seen = Seen::default();
    let lives = seen.clone();
    let restart = tireless().on_event(move |event| {
        lives.push(event.to_string());
        assert!(!event.to_string().starts_with("lost"), "a hook that panics ends nothing");
    });
    let server = supervise(&place, restart);
    echo(&server, 0).await;
    kill(server.pid().unwrap());
    echo(&server, 1).await;
    let starts =
        ["started", "ready: ", "lost: the server ", "restarting in 1ms", "started", "ready"];
    eventually("all of it", || seen.all().len() >= starts.len()).await;
    for (line, start) in seen.all().iter().zip(starts) {
        assert!(line.starts_with(start), "{:?}", seen.all());
    }
    in_time(server.close()).await.unwrap();
    in_time(server.close()).await.unwrap();
    assert!(in_time(server.client()).await.is_err());
    place.assert_empty().await;
    assert_eq!(seen.all().len(), starts.len(), "nothing is started after close");
}

/// Invariant 9: in each state.
#[tokio::test]
async fn dropped_a_supervised_server_leaves_nothing_behind() {
    let mut dice = Dice(4);
    let place = Place::new("dropped");
    for _ in 0..20 {
        let server = supervise(&place, tireless());
        tokio::time::sleep(dice.below(ms(60))).await;
        drop(server);
    }
    place.assert_empty().await;
}
