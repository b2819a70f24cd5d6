//! Every check finds the server that breaks its rule, and only checks of the same rule find it.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;
use taut_check::{Check, ClientCheck, Level, Report, Revision, ServerCheck, Side};

const BROKEN: &str = env!("CARGO_BIN_EXE_taut-check-broken");
const PLAYER: &str = env!("CARGO_BIN_EXE_taut-check-player");

fn check(words: &[&str]) -> ServerCheck {
    taut_check::server([BROKEN].iter().chain(words).copied())
        .call("echo", json!({ "text": "hello" }))
        .call("slow", json!({}))
        .call("log", json!({}))
        .call("add", json!({}))
        .call("ask", json!({}))
        .fixture()
        .strict()
        // It starts and answers at once, also where many of it run.
        .start_timeout(Duration::from_secs(8))
        .request_timeout(Duration::from_secs(3))
}

/// The revision that a role is played in: the newest that the check applies to.
fn revisions(check: &Check) -> Vec<Revision> {
    let fitting: Vec<Revision> =
        Revision::ALL.into_iter().filter(|revision| check.revisions.contains(*revision)).collect();
    match check.id {
        // These compare revisions.
        "init-offer-holds" | "init-names-versions" => Revision::ALL.to_vec(),
        // Undeclared capabilities break another rule in 2026-07-28, and so does a request.
        "tools-declared"
        | "resources-declared"
        | "prompts-declared"
        | "log-declared"
        | "frame-quiet-notifications"
        | "cancel-by-server"
        | "rpc-params" => vec![Revision::V2025_11_25],
        "init-vocabulary" => vec![Revision::V2025_03_26],
        "rpc-result-object" | "rpc-params-array" | "cancel-race" => vec![Revision::V2025_11_25],
        "tools-bad-arguments-old" => vec![Revision::V2025_06_18],
        _ => fitting.last().copied().into_iter().collect(),
    }
}

fn play(check: &Check) -> Report {
    let era = if check.id == "init-names-versions" { "modern" } else { "both" };
    let setup = self::check(&["--role", check.id, "--era", era]);
    let setup = revisions(check).into_iter().fold(setup, ServerCheck::revision);
    narrowed(setup, check).run()
}

/// The check alone, if it sends something itself: one that looks at all messages needs those of the others. `WHOLE=1` has all
/// of them tried, which also shows whether another one fails; `.ci/run` does that.
fn narrowed(setup: ServerCheck, check: &Check) -> ServerCheck {
    if whole() || check.sent.contains("nothing of its own") { setup } else { setup.only(check.id) }
}

/// What is wrong with how a role was found; nothing if it was found and nothing else was.
fn wrong(check: &Check, report: &Report) -> Vec<String> {
    let mut wrong = Vec::new();
    let failed = |row: &&taut_check::Row| row.verdict.failed();
    if !report.rows.iter().filter(failed).any(|row| row.id == check.id) {
        let told: Vec<String> = report
            .rows
            .iter()
            .filter(|row| row.id == check.id)
            .map(|row| format!("{}: {} {}", row.revision.as_str(), row.verdict.word(), row.words()))
            .collect();
        wrong.push(format!("{}: not found ({})", check.id, told.join("; ")));
    }
    for row in report.failures().filter(|row| row.id != check.id) {
        let related = row.rules.iter().any(|rule| check.rules.contains(rule));
        if !related {
            wrong.push(format!(
                "{}: {} failed too: {}\n    {}",
                check.id,
                row.key(),
                row.words(),
                row.exchange.join("\n    ")
            ));
        }
    }
    wrong
}

/// Further ways to break a rule: the role, the check that finds it, and the revision that it is played in.
const MORE: &[(&str, &str, Revision)] = &[
    ("tasks-notified", "frame-kinds", Revision::MODERN),
    ("answers-notifications", "rpc-notification-silent", Revision::V2025_11_25),
    ("answers-notifications", "rpc-notification-silent", Revision::MODERN),
    ("bad-blob", "resources-read", Revision::V2025_11_25),
    ("text-and-blob", "resources-read", Revision::MODERN),
    ("bad-template", "resources-templates", Revision::V2025_11_25),
    ("bad-image", "prompts-get", Revision::MODERN),
    ("many-values", "complete-values", Revision::V2025_11_25),
    ("parse-invalid", "rpc-parse-error", Revision::V2025_11_25),
    ("invalid-unknown", "rpc-invalid-request", Revision::V2025_11_25),
    ("batch-dropped", "rpc-batch-empty", Revision::V2025_03_26),
    ("listen-refused", "listen-cancel", Revision::MODERN),
    ("early-note", "init-quiet", Revision::V2025_11_25),
    ("updated-other", "listen-unasked", Revision::MODERN),
    ("progress-falls", "progress-rises", Revision::V2025_11_25),
    ("progress-late", "progress-known", Revision::MODERN),
    ("token-text", "progress-known", Revision::V2025_11_25),
    ("log-cancelled", "cancel-silent-modern", Revision::MODERN),
    ("log-remembers", "log-unasked", Revision::MODERN),
    ("no-last-newline", "frame-line", Revision::V2025_11_25),
    ("meta-reserved", "meta-keys", Revision::MODERN),
    ("meta-nested", "meta-keys", Revision::MODERN),
    ("fresh-cursors", "page-ends", Revision::V2025_11_25),
    ("arguments-typeless", "tools-bad-arguments", Revision::MODERN),
    ("arguments-failed", "tools-arguments-code", Revision::V2025_11_25),
    ("schema-type", "tools-shape", Revision::V2025_11_25),
    ("schema-required", "tools-shape", Revision::MODERN),
    ("schema-ref", "tools-shape", Revision::V2025_06_18),
    ("id-cut", "rpc-id-forms", Revision::V2025_11_25),
    ("id-32", "rpc-id-forms", Revision::MODERN),
    ("code-text", "rpc-error-shape", Revision::V2025_11_25),
    ("two-in-a-line", "frame-line", Revision::V2025_11_25),
    ("error-unended", "frame-line", Revision::V2025_11_25),
    ("stays-called", "frame-exit", Revision::MODERN),
    ("calls-crossed", "frame-match", Revision::V2025_11_25),
    ("null-result", "rpc-one-of", Revision::V2025_11_25),
    ("error-zero-id", "rpc-error-id", Revision::MODERN),
    ("params-text", "rpc-params-array", Revision::V2025_11_25),
    ("batch-stops", "rpc-batch", Revision::V2025_03_26),
    ("batch-alone", "rpc-batch", Revision::V2025_03_26),
    ("name-begins", "tools-unknown", Revision::V2025_11_25),
    ("arguments-null", "tools-arguments-type", Revision::V2025_11_25),
    ("modern-refused", "init-modern", Revision::V2025_11_25),
    ("info-title", "init-result", Revision::V2025_11_25),
    ("description-number", "tools-shape", Revision::MODERN),
    ("hint-text", "tools-shape", Revision::V2025_11_25),
    ("icons-object", "tools-shape", Revision::V2025_11_25),
    ("size-text", "resources-list", Revision::V2025_11_25),
    ("required-text", "prompts-list", Revision::MODERN),
    ("priority-high", "tools-content-types", Revision::V2025_11_25),
    ("task-unasked", "tools-content", Revision::V2025_11_25),
    ("total-text", "progress-rises", Revision::V2025_11_25),
    ("log-below", "log-unasked", Revision::MODERN),
    ("client-call", "meta-client-info", Revision::MODERN),
    ("cancel-empty", "cancel-silent", Revision::V2025_11_25),
    ("cancel-logs", "cancel-silent-modern", Revision::MODERN),
    ("long-cut", "frame-clean", Revision::MODERN),
    ("cancel-all", "cancel-ids", Revision::V2025_11_25),
    ("sticky-token", "progress-known", Revision::MODERN),
    ("log-off-by-one", "log-threshold", Revision::V2025_11_25),
    ("traversal-template", "resources-traversal", Revision::V2025_11_25),
    ("traversal-encoded", "resources-traversal", Revision::MODERN),
    ("supported-differs", "version-unknown", Revision::MODERN),
    ("answers-initialized", "rpc-notification-silent", Revision::V2025_11_25),
    ("updated-undeclared", "init-undeclared", Revision::V2025_06_18),
    ("caps-list", "init-result", Revision::V2025_11_25),
    ("raw-newline", "frame-line", Revision::V2025_11_25),
    ("names-method", "rpc-one-of", Revision::V2025_11_25),
    ("error-text-id", "rpc-error-id", Revision::V2025_11_25),
    ("id-case", "rpc-id-forms", Revision::V2025_11_25),
    ("odd-id", "frame-once", Revision::V2025_11_25),
    ("batch-errors", "rpc-batch", Revision::V2025_03_26),
    ("half-escapes", "tools-text", Revision::V2025_11_25),
    ("prompt-list", "prompts-request", Revision::V2025_11_25),
    ("uri-null", "resources-request", Revision::V2025_11_25),
    ("uri-percent", "resources-uri", Revision::V2025_11_25),
    ("caps-call", "meta-required", Revision::MODERN),
    ("version-call", "version-unknown", Revision::MODERN),
    ("meta-list", "meta-version-required", Revision::MODERN),
    ("level-call", "log-bad-level-modern", Revision::MODERN),
    ("listen-zero", "listen-ack", Revision::MODERN),
    ("listen-note", "listen-cancel", Revision::MODERN),
    ("listen-text-kept", "listen-cancel-fixture", Revision::MODERN),
    ("changed-text", "listen-unasked", Revision::MODERN),
    ("needs-nothing", "capability-needed", Revision::MODERN),
    ("asks-anyway", "input-declared", Revision::MODERN),
    ("form-nested", "input-shape", Revision::MODERN),
    ("sampling-bare", "input-ask-legacy", Revision::V2025_11_25),
    ("nan-served", "rpc-invalid-request", Revision::V2025_11_25),
    ("cancel-opening", "cancel-unknown", Revision::V2025_11_25),
    ("token-alone", "meta-version-required", Revision::MODERN),
    ("version-empty", "meta-types", Revision::MODERN),
    ("html-escaped", "tools-text", Revision::V2025_11_25),
    ("cut-short", "cancel-silent", Revision::V2025_11_25),
    ("form-numbers", "input-forms", Revision::V2025_11_25),
    ("undeclared-get", "error-undeclared", Revision::MODERN),
    ("traversal-slashes", "resources-traversal", Revision::V2025_11_25),
    ("params-null", "rpc-params-array", Revision::V2025_11_25),
    ("listen-replaces", "listen-change-fixture", Revision::MODERN),
    ("form-anyway", "input-declared", Revision::MODERN),
    ("stray-second", "input-stray", Revision::MODERN),
    ("batch-one", "rpc-batch-refused", Revision::V2025_11_25),
    ("argument-true", "prompts-argument-type", Revision::MODERN),
    ("level-upper", "log-bad-level", Revision::V2025_11_25),
    ("complete-nameless", "complete-request", Revision::V2025_11_25),
    ("complete-noted", "rpc-notification-silent", Revision::V2025_11_25),
    ("params-prompts", "rpc-params-array", Revision::V2025_11_25),
    ("cancel-empty-id", "cancel-ids", Revision::V2025_11_25),
    ("progress-cancelled", "cancel-silent", Revision::V2025_11_25),
    ("filter-text", "schema-valid", Revision::MODERN),
    ("stays-two-listens", "listen-exit", Revision::MODERN),
    ("sampling-bare", "input-ask-legacy", Revision::V2024_11_05),
    ("progress-read", "progress-known", Revision::MODERN),
    ("get-positive", "rpc-id-methods", Revision::V2025_11_25),
    ("caps-get", "meta-required", Revision::MODERN),
    ("has-more", "complete-values", Revision::V2025_11_25),
    ("unknown-text", "rpc-unknown-method", Revision::MODERN),
    ("unknown-resources", "rpc-unknown-method", Revision::V2025_11_25),
    ("method-slash", "rpc-method-case", Revision::V2025_11_25),
    ("level-number", "log-bad-level", Revision::V2025_11_25),
    ("level-number", "log-bad-level-modern", Revision::MODERN),
    ("level-upper", "log-bad-level-modern", Revision::MODERN),
    ("call-zero", "rpc-id-call", Revision::V2025_11_25),
    ("call-zero", "rpc-id-call", Revision::MODERN),
    ("cancel-kept", "cancel-unknown", Revision::V2025_11_25),
    ("cancel-told", "cancel-silent-modern", Revision::MODERN),
    ("cancel-done", "cancel-silent-modern", Revision::MODERN),
    ("ping-list", "schema-valid", Revision::V2025_11_25),
    ("call-text-id", "rpc-id-methods", Revision::V2025_11_25),
    ("call-positions", "rpc-params-array", Revision::V2025_11_25),
    ("exit-noted", "rpc-removed", Revision::V2025_11_25),
    ("cancel-reason", "cancel-malformed", Revision::V2025_11_25),
    ("bare-prompt", "frame-stateless", Revision::MODERN),
    ("prompt-bare", "prompts-missing-argument", Revision::V2025_11_25),
    ("argument-null", "prompts-argument-type", Revision::MODERN),
    ("complete-untargeted", "complete-request", Revision::V2025_11_25),
    ("complete-null", "complete-request", Revision::MODERN),
    ("traversal-segment", "resources-traversal", Revision::MODERN),
    ("traversal-absolute", "resources-traversal", Revision::V2025_11_25),
    ("tools-read", "tools-steady", Revision::MODERN),
    ("input-context", "input-context", Revision::V2025_11_25),
    ("input-tool-results", "input-tool-results", Revision::V2025_11_25),
    ("task-ids", "tasks-created", Revision::V2025_11_25),
    ("task-submitted", "tasks-created", Revision::V2025_11_25),
    ("task-flat", "tasks-created", Revision::V2025_11_25),
    ("task-flickers", "tasks-polled", Revision::V2025_11_25),
    ("poll-ttl", "tasks-polled", Revision::V2025_11_25),
    ("result-early", "tasks-answered", Revision::V2025_11_25),
    ("result-task", "tasks-answered", Revision::V2025_11_25),
    ("error-completed", "tasks-failed", Revision::V2025_11_25),
    ("cancel-undone", "tasks-cancelled", Revision::V2025_11_25),
    ("cancel-ended", "tasks-cancelled", Revision::V2025_11_25),
    ("task-progress-late", "tasks-progress", Revision::V2025_11_25),
    ("cancel-lost", "tasks-unknown", Revision::V2025_11_25),
    ("handle-ttl", "tasks-handle", Revision::MODERN),
    ("handle-late", "tasks-handle", Revision::MODERN),
    ("handle-complete", "tasks-handle", Revision::MODERN),
    ("task-ids", "tasks-handle", Revision::MODERN),
    ("task-flickers", "tasks-state", Revision::MODERN),
    ("state-bare", "tasks-state", Revision::MODERN),
    ("error-completed", "tasks-outcome", Revision::MODERN),
    ("update-refused", "tasks-acknowledged", Revision::MODERN),
    ("level-warn", "log-bad-level", Revision::V2025_11_25),
    ("subscribe-number", "rpc-params", Revision::V2025_11_25),
    ("unsubscribe-bare", "rpc-params", Revision::V2025_06_18),
    ("arguments-text", "tools-arguments-type", Revision::V2025_11_25),
    ("stays-subscribed", "frame-exit", Revision::V2025_03_26),
    ("second-turned", "tools-order", Revision::MODERN),
    ("second-rotated", "tools-order", Revision::MODERN),
    ("second-logged", "tools-same", Revision::MODERN),
    ("second-extra", "tools-same", Revision::MODERN),
    ("batch-no-calls", "rpc-batch-mixed", Revision::V2025_03_26),
    ("batch-other-calls", "rpc-batch-mixed", Revision::V2025_03_26),
    ("batch-list-apart", "rpc-batch-mixed", Revision::V2025_03_26),
    ("batch-note-first", "rpc-batch-mixed", Revision::V2025_03_26),
    ("batch-empty-id", "rpc-batch-cancel", Revision::V2025_03_26),
    ("cancel-unknown-busy", "cancel-unknown-busy", Revision::V2025_06_18),
    ("cancel-past", "cancel-unknown-busy", Revision::V2025_06_18),
    ("cancel-past", "cancel-unknown-busy", Revision::MODERN),
    ("noted-request", "rpc-unknown-method", Revision::V2025_11_25),
    ("error-digits", "rpc-error-id", Revision::V2025_11_25),
    ("missing-empty", "resources-missing", Revision::V2025_11_25),
    ("missing-empty", "resources-missing-modern", Revision::MODERN),
    ("missing-code", "resources-missing", Revision::V2025_11_25),
    ("missing-code", "resources-missing-modern", Revision::MODERN),
    ("types-call", "meta-types", Revision::MODERN),
    ("types-read", "meta-types", Revision::MODERN),
    ("tagged-open", "progress-untagged", Revision::MODERN),
    ("progress-tagged", "progress-untagged", Revision::MODERN),
    ("listen-versionless", "meta-version-required", Revision::MODERN),
    ("bare-call", "frame-stateless", Revision::MODERN),
    ("level-read", "log-bad-level-modern", Revision::MODERN),
    ("level-get", "log-bad-level-modern", Revision::MODERN),
    ("client-listen", "meta-client-info", Revision::MODERN),
    ("meta-client-type", "meta-client-type", Revision::MODERN),
    ("complete-asks", "result-type-known", Revision::MODERN),
];

/// The same without the fixture: what a tool that `--call` allows shows by asking back.
const MORE_ASKING: &[(&str, &str, Revision)] = &[
    ("ask-code", "capability-needed", Revision::MODERN),
    ("ask-is-error", "capability-needed", Revision::MODERN),
    ("ask-remembers", "input-declared", Revision::MODERN),
    ("ask-nested", "input-ask-legacy", Revision::V2025_06_18),
    ("ask-nested", "input-ask-legacy", Revision::V2025_11_25),
    ("ask-formless", "input-ask-legacy", Revision::V2025_06_18),
    ("ask-formless", "input-ask-legacy", Revision::V2025_11_25),
    ("ask-phone", "input-ask-legacy", Revision::V2025_11_25),
    ("ask-page", "init-capabilities", Revision::V2025_11_25),
    ("ask-one", "rpc-own-ids", Revision::V2025_11_25),
    ("ask-sampling-endless", "input-ask-legacy", Revision::V2024_11_05),
    ("ask-sampling-text", "input-ask-legacy", Revision::V2025_11_25),
    ("ask-sampling-tools", "init-capabilities", Revision::V2025_11_25),
    ("ask-sampling-mixed", "input-tool-results", Revision::V2025_11_25),
    ("ask-sampling-context", "input-context", Revision::V2025_11_25),
    ("form-anyway", "input-declared", Revision::MODERN),
];

/// The same for clients.
const MORE_CLIENTS: &[(&str, &str)] = &[
    ("cancel-answered", "client-silent"),
    ("client-answers", "client-no-answers"),
    ("roots-true", "client-shape"),
    ("elicitation-list", "client-shape"),
    ("cancels-initialize", "client-cancel-own"),
    ("mode-needed", "client-declared"),
    ("no-answers", "client-ping"),
    ("baggage-object", "client-meta-fields"),
    ("key-reserved", "client-meta-fields"),
    ("tasks-declared", "client-meta-fields"),
    ("task-asked", "client-capabilities"),
    ("silence-ends", "client-fallback"),
    ("kills-at-once", "client-closes-first"),
    ("level-odd", "client-shape"),
    ("log-level-odd", "client-shape"),
    ("reference-odd", "client-shape"),
    ("prompt-number", "client-shape"),
    ("state-line", "client-state"),
    ("state-json", "client-state"),
    ("state-cut", "client-state"),
    ("state-stale", "client-state"),
    ("state-second", "client-state"),
    ("state-empty", "client-state"),
    ("state-kept", "client-state"),
    ("arguments-lost", "client-state"),
    ("meta-lost", "client-meta"),
    ("input-wrapped", "client-input"),
    ("input-action", "client-input"),
    ("page-filled", "client-elicited"),
    ("cursor-number", "client-cursor"),
    ("cursor-json", "client-cursor"),
    ("offer-newer", "client-offer"),
    ("offer-stays", "client-offer"),
    ("opens-twice", "client-first"),
    ("roots-changed", "client-capabilities"),
    ("cancels-late", "client-cancel-own"),
    ("progress-late", "client-progress"),
    ("progress-falls", "client-progress"),
    ("progress-text", "client-progress"),
    ("ping-early", "client-ping"),
    ("empty-page", "client-cursor"),
    ("id-after-error", "client-id-fresh"),
    ("answers-nameless", "client-once"),
    ("stray-object", "client-clean"),
    ("info-short", "client-info"),
    ("cancels-foreign", "client-vocabulary"),
    ("waits-on", "client-ends-server"),
    ("id-number", "client-id-forms"),
    ("token-outside", "client-progress-token"),
    ("ping-plain", "client-ping"),
    ("initialized-late", "client-initialized"),
    ("unlisted-method", "client-vocabulary"),
    ("completes", "client-vocabulary"),
    ("version-unlisted", "client-version-retry"),
    ("url-only", "client-mode"),
    ("url-refused", "client-declared"),
    ("sampling-old", "client-declared"),
    ("sampling-array", "client-shape"),
    ("baggage-spaces", "client-meta-fields"),
    ("key-notified", "client-meta-fields"),
    ("key-opening", "client-meta-keys"),
    ("key-reserved-old", "client-meta-keys"),
    ("cancels-before", "client-cancel-own"),
    ("cancels-refused", "client-cancel-own"),
    ("half-lines", "client-clean"),
    ("kills-stuck", "client-closes-first"),
    ("kills-0618", "client-closes-first"),
    ("timeout-tools", "client-timeout"),
    ("answers-cancelled", "client-cancelled"),
    ("old-silent", "client-ping"),
    ("id-text", "client-ping"),
    ("cursor-old", "client-cursor"),
    ("cursor-prompts", "client-cursor"),
    ("order", "client-cursor"),
    ("chunks", "client-cursor"),
    ("subscribes", "client-capabilities"),
    ("stderr-word", "client-stderr"),
    ("leaves-refused", "client-ends-server"),
    ("probe-old", "client-probe"),
    ("array-answered", "client-batch-refused"),
    ("task-made", "client-task-ignored"),
    ("form-mail", "client-form"),
    ("form-day", "client-form"),
    ("form-title", "client-form"),
    ("form-title-old", "client-form"),
    ("form-list", "client-form"),
    ("form-empty", "client-form"),
    ("ping-refused", "client-ping"),
    ("mode-silent", "client-mode"),
    ("batch-empty", "client-batch-received"),
    ("case-space", "client-unknown-request"),
    ("name-begins", "client-unknown-request"),
    ("tasks-known", "client-unknown-request"),
    ("undeclared-silent", "client-unknown-request"),
    ("stray-answered", "client-no-answers"),
    ("cursor-empty", "client-cursor"),
    ("page-again", "client-last-page"),
    ("timeout-list", "client-timeout"),
    ("type-cursor", "client-result-type"),
    ("type-state", "client-result-type"),
    ("version-future", "client-version-repeat"),
    ("zero-ends", "client-fallback"),
    ("internal-ends", "client-fallback"),
    ("url-accepted", "client-input-undeclared"),
    ("tasks-listed", "client-capabilities"),
    ("discovers-again", "client-vocabulary"),
    ("initialized-second", "client-initialized"),
    ("trace-state", "client-meta-fields"),
    ("state-next", "client-state-leak"),
    ("message-answered", "client-silent"),
    ("opens-unanswered", "client-waits"),
    ("roots-silent", "client-roots"),
    ("error-text", "client-unknown-request"),
    ("last-again-old", "client-last-page"),
    ("timeout-old", "client-timeout"),
    ("cursor-plus", "client-cursor"),
    ("cursor-padding", "client-cursor"),
    #[cfg(unix)]
    ("never-kills", "client-ends-server"),
    #[cfg(unix)]
    ("kills-after-term", "client-terminates"),
];

/// Servers that are different and right. Among them is one that writes numbers such as 3.0 where an integer belongs, one
/// that takes 250 ms for each request of a batch and serves others meanwhile, one in which nothing changes, so it ends a
/// subscription at once, one that takes 300 ms to acknowledge a subscription, one that refuses more than 40 calls, and one whose empty results
/// have members of its own.
const RIGHT: &[&str] = &[
    "tasks-kept",
    "experimental",
    "many-pages",
    "away",
    "long-list",
    "roots-followed",
    "big-id",
    "floats",
    "batch-late",
    "nothing-changes",
    "listen-late",
    "limits",
    "more-members",
    // Its limit of subscriptions is none at all (SUB-13).
    "listen-limit",
];

/// Whether roles are tried with all checks, which takes a minute more: `WHOLE=1 cargo test -p taut-check --test broken`.
fn whole() -> bool {
    std::env::var_os("WHOLE").is_some()
}

fn play_client(check: &Check) -> Report {
    let words = [BROKEN, "--role", check.id, "--", "{server}"];
    let setup = ClientCheck::new(words, [PLAYER]).strict();
    if whole() { setup.run() } else { setup.only(check.id).run() }
}

/// How many jobs are done at a time: they mostly wait, but with all checks each is many processes.
fn at_once() -> usize {
    if whole() { 8 } else { 32 }
}

/// How many jobs that found something are done once more. More than these, and it is not the machine.
const AGAIN: usize = 30;

/// Does all jobs, many at a time, and shows what they found wrong. What a job finds beside so many others may be the
/// machine's fault, so it is done once more, alone, and only that counts.
fn none_wrong<J: Sync>(jobs: impl Iterator<Item = J>, work: impl Fn(&J) -> Vec<String> + Sync) {
    let jobs: Vec<J> = jobs.collect();
    let narrowed = std::env::var("TAUT_CHECK_ROLE").is_ok();
    assert!(narrowed || !jobs.is_empty(), "nothing to do");
    let (next, suspects) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..at_once() {
            scope.spawn(|| {
                while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let wrong = work(job);
                    if !wrong.is_empty() {
                        suspects.lock().unwrap().push((job, wrong));
                    }
                }
            });
        }
    });
    let suspects = suspects.into_inner().unwrap();
    let alone = suspects.len() <= AGAIN;
    let again = |(job, wrong)| if alone { work(job) } else { wrong };
    let found: Vec<String> = suspects.into_iter().flat_map(again).collect();
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}

/// Whether this role is to be played: all are, unless `TAUT_CHECK_ROLE` names one.
fn wanted(role: &str) -> bool {
    std::env::var("TAUT_CHECK_ROLE").map_or(true, |only| only == role)
}

/// Advice that has a role of its own all the same.
const ADVICE: &[&str] = &[
    "client-batch-refused",
    "init-params",
    "listen-filter",
    "meta-removed-fields",
    "page-cursor-type",
    "page-ends",
    "resources-request",
    "resources-subscribe",
    "rpc-batch-refused",
    "rpc-id-null",
    "rpc-id-type",
    "rpc-params",
    "rpc-params-array",
    "tools-request",
    "tools-unknown",
];

fn all(side: Side, play: fn(&Check) -> Report) {
    let checks = taut_check::checks().into_iter();
    let played = |check: &Check| check.level != Level::Advice || ADVICE.contains(&check.id);
    let checks = checks.filter(|check| check.side == side && played(check));
    none_wrong(checks.filter(|check| wanted(check.id)), |check| wrong(check, &play(check)));
}

/// What failed, of a peer that is right.
fn blamed(role: &str, report: &Report) -> Vec<String> {
    report.failures().map(|row| format!("{role}: {} {}", row.key(), row.words())).collect()
}

#[test]
fn the_server_without_a_role_passes_in_all_revisions() {
    let report = check(&[]).run();
    report.assert_passed();
    assert_eq!(report.revisions(), Revision::ALL);
    assert!(report.starts <= taut_check::MAX_STARTS);
    let advice: Vec<String> =
        report.advice().map(|row| format!("{} {}", row.key(), row.words())).collect();
    assert!(advice.is_empty(), "{advice:?}");
}

#[test]
fn what_keeps_the_rules_and_some_hosts_cannot_use_is_advice() {
    let report = check(&["--role", "type-list"]).only("tools").run();
    report.assert_passed();
    let advice: Vec<_> = report.advice().collect();
    assert_eq!(advice.len(), Revision::ALL.len());
    let told = |row: &&taut_check::Row| {
        row.id == "tools-hosts" && row.words().starts_with("type-list: echo/properties/text")
    };
    assert!(advice.iter().all(told), "{advice:?}");
}

#[test]
fn every_check_finds_the_server_that_breaks_its_rule() {
    all(Side::Server, play);
}

#[test]
fn further_ways_to_break_a_rule_are_found() {
    none_wrong(MORE.iter().filter(|(role, ..)| wanted(role)), |(role, id, revision)| {
        let found = taut_check::find(id).unwrap();
        let report = narrowed(check(&["--role", role]).revision(*revision), &found).run();
        let told = wrong(&found, &report).into_iter();
        told.map(|what| format!("{role}: {what}")).collect()
    });
}

#[test]
fn further_ways_to_ask_back_wrongly_are_found_without_the_fixture() {
    none_wrong(MORE_ASKING.iter().filter(|(role, ..)| wanted(role)), |(role, id, revision)| {
        let found = taut_check::find(id).unwrap();
        let setup = taut_check::server([BROKEN, "--role", role]).call("ask", json!({})).strict();
        let report = narrowed(setup.revision(*revision), &found).run();
        let told = wrong(&found, &report).into_iter();
        told.map(|what| format!("{role}: {what}")).collect()
    });
}

#[test]
fn a_program_that_sends_back_what_it_is_sent_is_told_so() {
    let report = taut_check::server([BROKEN, "--role", "repeats"]).only("init-opens").run();
    let words: Vec<_> = report.failures().map(|row| row.words()).collect();
    assert_eq!(words.len(), Revision::ALL.len());
    assert!(words.iter().all(|words| words.contains("it sends back what it is sent")), "{words:?}");
}

#[test]
fn an_allowed_call_that_asks_back_is_looked_at_without_the_fixture() {
    for (role, id) in [("input-shape", "input-shape"), ("ask-failed", "input-again")] {
        let setup = taut_check::server([BROKEN, "--role", role]).call("ask", json!({})).strict();
        let report = setup.revision(Revision::MODERN).run();
        let found = wrong(&taut_check::find(id).unwrap(), &report);
        assert!(found.is_empty(), "\n{}", found.join("\n"));
    }
}

#[test]
fn further_ways_of_a_client_to_break_a_rule_are_found() {
    none_wrong(MORE_CLIENTS.iter().filter(|(role, _)| wanted(role)), |(role, id)| {
        let words = [BROKEN, "--role", role, "--", "{server}"];
        let setup = ClientCheck::new(words, [PLAYER]).strict();
        let report = if whole() { setup.run() } else { setup.only(*id).run() };
        let told = wrong(&taut_check::find(id).unwrap(), &report).into_iter();
        told.map(|what| format!("{role}: {what}")).collect()
    });
}

/// It knows no id in what it could not read.
#[test]
fn a_client_that_cannot_read_an_array_is_not_said_to_answer_what_nobody_asked() {
    let report = ClientCheck::new([BROKEN, "--role", "batch-unread", "--", "{server}"], [PLAYER])
        .strict()
        .run();
    let found = wrong(&taut_check::find("client-batch-received").unwrap(), &report);
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}

#[test]
fn servers_are_not_blamed_for_what_they_may_do() {
    none_wrong(RIGHT.iter(), |role| blamed(role, &check(&["--role", role]).run()));
}

#[test]
fn the_client_without_a_role_passes() {
    let report = ClientCheck::new([BROKEN, "--", "{server}"], [PLAYER]).strict().run();
    report.assert_passed();
    assert_eq!(report.revisions(), Revision::ALL);
}

#[test]
fn every_check_finds_the_client_that_breaks_its_rule() {
    all(Side::Client, play_client);
}

#[test]
fn a_client_is_not_blamed_for_long_messages_or_for_half_a_message_at_its_end() {
    let words = |role| [BROKEN, "--role", role, "--", "{server}"];
    let long = ClientCheck::new(words("long"), [PLAYER]);
    let report = long.only("client-clean").only("client-cancel-own").run();
    report.assert_passed();
    let report = ClientCheck::new(words("no-newline"), [PLAYER]).only("client-clean").run();
    let failed: Vec<_> = report.failures().map(|row| row.words()).collect();
    assert!(failed.iter().any(|words| words.contains("no newline")), "{failed:?}");
}

/// Clients that are different and right: one speaks the newest revision only and leaves where another is offered, one
/// cancels its probe after a time, one is ended before it reads the answer to its handshake, one pings before that, one
/// ends its server when it hears something odd, one calls a tool twice with other arguments, one never tries a call again,
/// one uses the ids of answered requests again in 2026-07-28, one the id of its probe for its handshake, and one the
/// token of a call that it cancelled. One waits 500 ms for an answer and cancels then, one cancels its call at once, and
/// one waits for 2.2 s before it calls again. One takes 2 s to tell its roots, and one
/// sends an array in 2025-03-26 and cancels what is not answered. One tries to listen while its call is under way.
#[test]
fn clients_are_not_blamed_for_what_they_may_do() {
    let roles = [
        "newest-only",
        "cancels-probe",
        "gives-up",
        "pings-early",
        "quits",
        "calls-twice",
        "no-rounds",
        "ids-again",
        "probe-id-again",
        "token-again",
        "impatient",
        "cancels-at-once",
        "pauses",
        "roots-late",
        "batches",
        "keeps-listening",
    ];
    none_wrong(roles.into_iter(), |role| {
        let words = [BROKEN, "--role", role, "--", "{server}"];
        blamed(role, &ClientCheck::new(words, [PLAYER]).strict().run())
    });
}

#[test]
fn only_the_revisions_that_are_asked_for_are_reported() {
    let setup = ClientCheck::new([BROKEN, "--", "{server}"], [PLAYER]).only("client-ping");
    let report = setup.revision(Revision::V2025_03_26).run();
    assert_eq!(report.revisions(), [Revision::V2025_03_26]);
}

#[test]
fn a_client_that_never_probes_is_judged_as_legacy_whatever_it_names() {
    let words = [BROKEN, "--role", "names-modern", "--", "{server}"];
    let report = ClientCheck::new(words, [PLAYER]).strict().run();
    report.assert_passed();
    assert!(!report.revisions().contains(&Revision::MODERN));
}
