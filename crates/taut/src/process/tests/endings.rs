//! Ways to end, and what is left afterwards.

use std::sync::{Arc, Mutex};

use super::*;

/// SEC-10.
#[tokio::test]
async fn p1_a_tree_that_ignores_eof_and_term_is_dead_after_close() {
    let nested = "trap '' TERM; sh -c \"$NEXT\" & echo $$; while :; do sleep 0.05; done";
    let command = sh(&nested.replace("$NEXT", "$MIDDLE"))
        .env("MIDDLE", nested.replace("$NEXT", "$LEAF"))
        .env("LEAF", STUBBORN);
    let (child, mut stdout, stdin) = start(command).await;
    let tree = pids(&mut stdout, 3).await;
    assert!(tree.iter().all(|pid| alive(*pid)) && tree.contains(&child.pid()));
    drop(stdin);
    let ended = in_time(child.end(grace(50, 50))).await;
    assert_eq!((ended.step, ended.exit.signal), (ShutdownStep::Kill, Some(9)));
    eventually("all three are dead", || !tree.iter().any(|pid| alive(*pid)));
}

#[tokio::test]
async fn p2_a_child_leads_its_own_session() {
    let (child, mut stdout, _stdin) = start(sh("cut -d' ' -f5,6 /proc/$$/stat; cat")).await;
    let pid = child.pid();
    assert_eq!(lines(&mut stdout, 1).await, [format!("{pid} {pid}")]);
}

#[tokio::test]
async fn p3_p12_what_a_polite_leader_leaves_behind_is_ended_by_default() {
    let script = "sh -c \"$LEFT\" & cat >/dev/null";
    let (child, mut stdout, stdin) = start(sh(script).env("LEFT", STUBBORN)).await;
    let left = pids(&mut stdout, 1).await[0];
    drop(stdin);
    let ended = in_time(child.end(GracePeriods::default())).await;
    assert_eq!((ended.step, ended.exit.code), (ShutdownStep::Eof, Some(0)));
    eventually("what it left is dead", || !alive(left));
}

#[tokio::test]
async fn p12_what_a_polite_leader_leaves_behind_is_left_alone_on_request() {
    let survivor = Survivor::new("left-alone");
    let options = ChildOptions { leave_group: true, ..ChildOptions::default() };
    let command = sh("sh -c \"$LEFT\" & cat >/dev/null").env("LEFT", survivor.script());
    let (child, _stdout, stdin) = Child::start(&command, options).await.unwrap();
    drop(stdin);
    assert_eq!(in_time(child.end(GracePeriods::default())).await.step, ShutdownStep::Eof);
    drop(child);
    survivor.answers().await;
}

#[tokio::test]
async fn p7_the_rung_says_what_it_took() {
    let deaf = "trap 'exit 5' TERM; echo ready; while :; do sleep 0.02; done";
    let (child, mut stdout, stdin) = start(sh(deaf)).await;
    lines(&mut stdout, 1).await;
    drop(stdin);
    let ended = in_time(child.end(grace(20, 10_000))).await;
    assert_eq!((ended.step, ended.exit.code), (ShutdownStep::Term, Some(5)));
}

#[tokio::test]
async fn p7_no_patience_at_all_is_possible_and_a_second_close_may_hurry_the_first() {
    let (child, mut stdout, stdin) = start(sh(STUBBORN)).await;
    lines(&mut stdout, 1).await;
    drop(stdin);
    let slow = child.end(grace(600_000, 600_000));
    let fast = async {
        tokio::task::yield_now().await;
        child.end(grace(0, 0)).await
    };
    let (slow, fast) = in_time(async { tokio::join!(slow, fast) }).await;
    assert_eq!((slow, slow.step), (fast, ShutdownStep::Kill));
}

#[tokio::test]
async fn p8_a_well_behaved_child_ends_at_once_and_sees_no_signal() {
    let polite = "trap 'echo signal >&2' TERM INT HUP; echo ready; read x; exit 0";
    let (child, mut stdout, stdin) = start(sh(polite)).await;
    lines(&mut stdout, 1).await;
    let closed = Instant::now();
    drop(stdin);
    let ended = in_time(child.end(grace(15_000, 10))).await;
    assert!(closed.elapsed() < ms(5_000), "it was waited for in vain");
    assert_eq!((ended.step, ended.exit.success()), (ShutdownStep::Eof, true));
    assert_eq!(child.tail(), "");
}

#[tokio::test]
async fn p9_an_exit_is_seen_although_a_descendant_holds_the_pipes() {
    for wait_in_thread in [false, true] {
        let options = ChildOptions { leave_group: true, wait_in_thread, ..ChildOptions::default() };
        let command = sh("sleep 600 & echo $!; echo bye >&2; exit 7");
        let (child, mut stdout, _stdin) = Child::start(&command, options).await.unwrap();
        let sleeper = pids(&mut stdout, 1).await[0];
        let exit = in_time(child.exited()).await;
        let held = alive(sleeper);
        kill(sleeper);
        assert!(held, "the pipes were to be held open");
        assert_eq!((exit.code, child.tail().as_str()), (Some(7), "bye\n"));
    }
}

#[tokio::test]
async fn p10_a_child_with_a_backlog_ends_by_itself_while_it_is_drained() {
    let (child, mut stdout, stdin) = start(sh("head -c 10485760 /dev/zero; exit 3")).await;
    drop(stdin);
    let both = async { tokio::join!(child.end(grace(15_000, 10)), read_all(&mut stdout)) };
    let (ended, output) = in_time(both).await;
    assert_eq!((ended.step.max(ShutdownStep::Eof), ended.exit.code), (ShutdownStep::Eof, Some(3)));
    assert_eq!(output.len(), 10 * 1024 * 1024);
}

/// P22, P25
#[tokio::test]
async fn p25_pid_and_exit_can_be_asked_by_many() {
    let (child, mut stdout, stdin) = start(sh("echo $$; read x; exit 42")).await;
    assert_eq!(pids(&mut stdout, 1).await, [child.pid()]);
    assert_eq!(child.exit(), None);
    let waiting = (child.exited(), child.exited());
    drop(stdin);
    let (one, two) = in_time(async { tokio::join!(waiting.0, waiting.1) }).await;
    assert_eq!((one.code, two.code), (Some(42), Some(42)));
    assert_eq!(child.exit(), Some(one));
    assert_eq!(in_time(child.exited()).await, one);
    let late = in_time(child.end(GracePeriods::default())).await;
    assert_eq!((late.step, late.exit), (ShutdownStep::Unasked, one));
}

#[tokio::test]
async fn the_ladder_works_where_a_thread_has_to_wait() {
    let options = ChildOptions { wait_in_thread: true, ..ChildOptions::default() };
    let (child, mut stdout, stdin) = Child::start(&sh(STUBBORN), options).await.unwrap();
    lines(&mut stdout, 1).await;
    drop(stdin);
    let ended = in_time(child.end(grace(10, 10))).await;
    assert_eq!((ended.step, ended.exit.signal), (ShutdownStep::Kill, Some(9)));
    eventually("it is reaped", || state_of(child.pid()).is_none());
}

/// P22: after that the number may be anybody's, so nothing is sent to it any more.
#[tokio::test]
async fn p22_a_status_that_somebody_else_collected_is_an_end_all_the_same() {
    let survivor = Survivor::new("not-ours");
    let command = sh("sh -c \"$LEFT\" & echo up; cat").env("LEFT", survivor.script());
    let (child, mut stdout, _stdin) = start(command).await;
    lines(&mut stdout, 1).await;
    kill(child.pid());
    // On this runtime the keeper cannot come first: nothing is awaited in between.
    let pid = rustix::process::Pid::from_raw(child.pid().try_into().unwrap());
    rustix::process::waitpid(pid, rustix::process::WaitOptions::empty()).unwrap();
    assert_eq!(in_time(child.exited()).await, ExitStatus::UNSEEN);
    drop(child);
    survivor.answers().await;
}

#[tokio::test]
async fn p13_a_container_client_that_minds_eof_is_not_signalled() {
    let warnings = warnings_while_ending("eof", "cat >/dev/null", ShutdownStep::Eof).await;
    assert_eq!(warnings, 0);
}

#[tokio::test]
async fn p13_a_container_client_that_has_to_be_signalled_earns_a_warning() {
    let warnings = warnings_while_ending("term", "exec sleep 600", ShutdownStep::Term).await;
    assert_eq!(warnings, 1);
}

async fn warnings_while_ending(name: &str, script: &str, step: ShutdownStep) -> usize {
    let dir = Dir::new(&format!("docker-{name}"));
    let docker = dir.file("docker", format!("#!/bin/sh\n{script}\n").as_bytes(), 0o755);
    let warnings = Arc::new(Mutex::new(0));
    // With a single subscriber `tracing` judges by the thread that happens to look, which may be
    // another test's; with two it asks both.
    let _second = tracing::Dispatch::new(Warnings(Arc::default()));
    let guard = tracing::subscriber::set_default(Warnings(Arc::clone(&warnings)));
    let (child, _stdout, stdin) = start(Command::new(docker).args(["run", "-i", "x"])).await;
    drop(stdin);
    let wait = if step == ShutdownStep::Eof { 10_000 } else { 200 };
    assert_eq!(in_time(child.end(grace(wait, 10_000))).await.step, step);
    drop(guard);
    *warnings.lock().unwrap()
}

/// The reference of stdio clients: a server's stderr at ERROR, its start and its end at DEBUG.
#[tokio::test]
async fn stderr_is_logged_at_error_and_start_and_end_at_debug() {
    let told = Arc::new(Mutex::new(Vec::new()));
    let _second = tracing::Dispatch::new(Told(Arc::default()));
    let guard = tracing::subscriber::set_default(Told(Arc::clone(&told)));
    let script = "echo one >&2; printf two >&2; exit 3";
    let (child, _stdout, stdin) = start(Command::new("sh").args(["-c", script])).await;
    drop(stdin);
    in_time(child.end(grace(10_000, 10_000))).await;
    drop(guard);
    let pid = child.pid();
    let told = told.lock().unwrap().join("\n");
    for line in [
        format!("DEBUG taut::process message=started pid={pid} program=\"sh\""),
        format!("ERROR taut::stderr message=stderr pid={pid} line=\"one\""),
        format!("ERROR taut::stderr message=stderr pid={pid} line=\"two\""),
        format!(
            "DEBUG taut::process::task message=ended pid={pid} exit=exited with code 3 step=Eof"
        ),
    ] {
        assert!(told.contains(&line), "{line} is not in\n{told}");
    }
}

/// Keeps events as lines.
struct Told(Arc<Mutex<Vec<String>>>);

impl tracing::Subscriber for Told {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }
    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }
    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
    fn event(&self, event: &tracing::Event<'_>) {
        struct Fields(String);
        impl tracing::field::Visit for Fields {
            fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
                use std::fmt::Write as _;
                let _ = write!(self.0, " {field}={value:?}");
            }
        }
        let about = event.metadata();
        let mut fields = Fields(format!("{} {}", about.level(), about.target()));
        event.record(&mut fields);
        self.0.lock().unwrap().push(fields.0);
    }
    fn enter(&self, _: &tracing::span::Id) {}
    fn exit(&self, _: &tracing::span::Id) {}
}

/// Counts warnings.
struct Warnings(Arc<Mutex<usize>>);

impl tracing::Subscriber for Warnings {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        *metadata.level() == tracing::Level::WARN
    }
    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }
    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
    fn event(&self, _: &tracing::Event<'_>) {
        *self.0.lock().unwrap() += 1;
    }
    fn enter(&self, _: &tracing::span::Id) {}
    fn exit(&self, _: &tracing::span::Id) {}
}
