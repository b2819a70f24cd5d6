//! What a stranger has to believe: causes are named, what follows from them is not judged, and silence costs no timeout.

#![allow(clippy::unwrap_used)]

use std::time::{Duration, Instant};

use serde_json::json;
use taut_check::{Report, Revision, ServerCheck, Verdict};

const BROKEN: &str = env!("CARGO_BIN_EXE_taut-check-broken");

fn role(role: &str) -> ServerCheck {
    taut_check::server([BROKEN, "--role", role]).call("echo", json!({ "text": "hello" }))
}

/// The checks that found something, advice too.
fn found(report: &Report) -> Vec<&'static str> {
    let mut ids: Vec<_> =
        report.rows.iter().filter(|row| row.verdict.failed()).map(|row| row.id).collect();
    ids.dedup();
    ids
}

#[test]
fn a_subscription_that_is_refused_for_a_limit_is_not_judged() {
    let report = role("listen-limit").revision(Revision::MODERN).only("listen").run();
    assert!(found(&report).is_empty(), "{:?}", found(&report));
    for id in ["listen-ack", "listen-filter"] {
        let row = report.rows.iter().find(|row| row.id == id).unwrap();
        assert!(matches!(row.verdict, Verdict::Skip(_)), "{id}: {:?}", row.verdict);
        assert!(row.words().contains("no more subscriptions"), "{id}: {}", row.words());
    }
}

#[test]
fn a_process_that_remembers_a_bare_request_is_blamed_for_that_and_nothing_else() {
    let report = role("pins-era").revision(Revision::MODERN).run();
    let failed: Vec<_> = report.failures().map(|row| row.id).collect();
    assert_eq!(failed, ["frame-stateless"], "{:?}", found(&report));
    let told = report.failures().next().unwrap().words();
    assert!(told.contains("answered as one of an older revision"), "{told}");
}

#[test]
fn what_stands_on_a_list_that_always_fails_is_not_judged() {
    let report = taut_check::server([BROKEN, "--role", "list-fails"]).run();
    assert_eq!(found(&report), ["tools-declared"]);
    let tokens = report.rows.iter().filter(|row| row.id == "progress-token");
    for row in tokens {
        assert!(matches!(row.verdict, Verdict::Blocked(_)), "{:?}", row.verdict);
        assert!(row.words().contains("fetch failed"), "{}", row.words());
    }
}

#[test]
fn a_server_that_has_tasks_in_older_revisions_is_not_said_to_have_none() {
    let report = role("tasks-early").only("tasks-absent").run();
    assert!(found(&report).is_empty(), "{:?}", found(&report));
}

#[test]
fn a_handshake_may_be_refused_after_a_full_answer_to_the_probe() {
    let report = role("modern-first").only("init-probe").run();
    assert!(found(&report).is_empty(), "{:?}", found(&report));
    assert_eq!(report.rows.iter().filter(|row| row.verdict == Verdict::Pass).count(), 1);
}

#[test]
fn a_filter_that_was_acknowledged_is_not_said_to_be_unanswered() {
    let report = role("filter-text").revision(Revision::MODERN).only("listen-filter").run();
    let row = report.rows.iter().find(|row| row.id == "listen-filter").unwrap();
    assert!(row.words().starts_with("it was acknowledged with the params"), "{}", row.words());
    assert!(row.rule.contains("members of another type"), "{}", row.rule);
}

/// The bound is generous: a run that waited for each answer would take ten minutes.
#[test]
fn what_is_dropped_is_certain_once_later_requests_were_answered() {
    let setup = role("batches-dropped").revision(Revision::V2025_03_26).only("rpc-batch");
    let began = Instant::now();
    let report = setup.request_timeout(Duration::from_secs(120)).run();
    assert!(began.elapsed() < Duration::from_secs(60), "it took {:?}", began.elapsed());
    assert!(found(&report).contains(&"rpc-batch"), "{:?}", found(&report));
    let mixed = report.rows.iter().find(|row| row.id == "rpc-batch-mixed").unwrap();
    assert_eq!(mixed.words(), "rpc-batch explains it");
}

#[test]
fn a_broken_should_is_a_warning_unless_the_run_is_strict() {
    let lax = role("log-bad-level").only("log-bad-level");
    let report = lax.run();
    report.assert_passed();
    assert_eq!(report.warnings().count(), 4);
    let strict = role("log-bad-level").only("log-bad-level").strict().run();
    assert!(!strict.passed());
    assert_eq!((strict.warnings().count(), strict.failures().count()), (0, 4));
}

#[test]
fn the_report_has_one_row_for_a_finding_and_ends_with_what_to_do() {
    let report = role("log-bad-level").only("log-bad-level").run();
    let text = taut_check::table(&report, Some("taut"), &taut_check::plain);
    let heads: Vec<&str> =
        text.lines().filter(|line| line.starts_with("! SHOULD log-bad-level")).collect();
    assert_eq!(heads.len(), 1, "{text}");
    assert!(heads[0].ends_with("2024-11-05 2025-03-26 2025-06-18 2025-11-25"), "{text}");
    assert!(text.contains(" 0 failed, 1 warnings,"), "{text}");
    assert!(text.contains("next: taut check --explain log-bad-level shows its sentence"), "{text}");
    assert!(text.contains("--strict makes a failure of each warning"), "{text}");

    let report = role("rpc-unknown-method").only("rpc-unknown-method").run();
    let text = taut_check::table(&report, Some("taut"), &taut_check::plain);
    assert!(text.contains("--baseline known.txt keeps what fails now"), "{text}");
    assert!(!report.junit().contains("time=\"0.000\""), "{}", report.junit());
}
