//! Tests that need a process of their own: this test binary is run again in a role.

use std::io::{BufRead as _, BufReader};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Stdio;

use tokio::runtime::Runtime;

use super::*;

/// This binary, set to run one role.
fn role(name: &str) -> std::process::Command {
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    let path = format!("process::tests::hosts::{name}");
    command.args(["--exact", &path, "--ignored", "--nocapture", "--test-threads=1"]);
    command
}

fn alone(name: &str) {
    let output = role(name).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{text}\n{errors}");
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

/// The states of all children of this process.
fn children() -> Vec<char> {
    let me = std::process::id().to_string();
    let stats = std::fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let stat = std::fs::read_to_string(entry.ok()?.path().join("stat")).ok()?;
        let mut fields = stat.rsplit(") ").next()?.split(' ');
        let state = fields.next()?.chars().next()?;
        (fields.next()? == me).then_some(state)
    });
    stats.collect()
}

fn open_fds() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

#[test]
fn p6_two_hundred_children_leave_no_zombie_and_no_descriptor() {
    alone("role_many");
}

#[test]
#[ignore = "a role"]
fn role_many() {
    runtime().block_on(async {
        let cycle = async |script: &str| {
            let (child, stdout, stdin) = start(sh(script)).await;
            drop(stdin);
            in_time(child.end(grace(10_000, 10))).await;
            drop((child, stdout));
        };
        cycle("cat").await;
        let before = open_fds();
        for round in 0..200 {
            cycle(if round % 2 == 0 { "cat" } else { "exit 3" }).await;
            assert_eq!(children(), [], "after round {round}");
        }
        assert_eq!(open_fds(), before);
    });
}

#[test]
fn p4_p5_a_dropped_child_dies_without_a_runtime_and_while_unwinding() {
    alone("role_drop");
}

#[test]
#[ignore = "a role"]
fn role_drop() {
    // The runtime is gone before the child is dropped.
    let runtime_one = runtime();
    let (child, stdout, stdin) = runtime_one.block_on(start(sh(STUBBORN)));
    drop(runtime_one);
    drop((child, stdout, stdin));
    eventually("no child is left after the runtime went first", || children().is_empty());

    // Dropped in a panic.
    let runtime_two = runtime();
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let _all = runtime_two.block_on(start(sh(STUBBORN)));
        panic!("this panic is part of a test");
    }));
    assert!(panicked.is_err());
    eventually("no child is left after a panic", || children().is_empty());

    // Dropped on a thread that knows no runtime, while the runtime lives but is not driven.
    let all = runtime_two.block_on(start(sh(STUBBORN)));
    std::thread::spawn(move || drop(all)).join().unwrap();
    eventually("no child is left after a drop elsewhere", || children().is_empty());
}

#[test]
fn a_runtime_that_ends_takes_its_children_along_and_the_exit_is_still_told() {
    let dying = runtime();
    let (child, _stdout, _stdin) = dying.block_on(start(sh(STUBBORN)));
    drop((_stdout, _stdin, dying));
    let exit = runtime().block_on(in_time(child.exited()));
    assert_eq!(exit.signal, Some(9));
}

/// Starts a host whose child runs `script`, and gives back the pid that the script tells.
fn host(script: &str) -> (std::process::Child, u32) {
    let mut host =
        role("role_host").env("TAUT_ROLE_SCRIPT", script).stdout(Stdio::piped()).spawn().unwrap();
    let mut output = BufReader::new(host.stdout.take().unwrap()).lines();
    let pid = output.find_map(|line| line.ok()?.strip_prefix("child ")?.parse().ok());
    (host, pid.expect("the host tells a pid"))
}

#[test]
fn p14_a_host_killed_outright_leaves_no_direct_child() {
    let (mut host, child) = host(STUBBORN);
    assert!(alive(child));
    host.kill().unwrap();
    host.wait().unwrap();
    eventually("the child died with its host", || !alive(child));
}

/// P15: the parent-death signal does not reach it, EOF does.
#[test]
fn p15_a_server_under_a_wrapper_gets_eof_when_the_host_is_killed() {
    let (mut host, server) = host("sh -c 'echo $$; cat >/dev/null; exit'; true");
    assert!(alive(server));
    host.kill().unwrap();
    host.wait().unwrap();
    eventually("the server saw EOF", || !alive(server));
}

/// A host that starts a child and then waits to be killed.
#[test]
#[ignore = "a role"]
fn role_host() {
    let script = std::env::var("TAUT_ROLE_SCRIPT").unwrap();
    let many = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let (_child, mut stdout, _stdin) = many.block_on(start(sh(&script)));
    println!("\nchild {}", many.block_on(pids(&mut stdout, 1))[0]);
    many.block_on(std::future::pending::<()>());
}

/// P14: Linux sends the parent-death signal when the thread that forked ends.
#[test]
fn p14_a_child_outlives_the_thread_it_was_asked_for_from() {
    let keeps = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let handle = keeps.handle().clone();
    let spawner = move || handle.block_on(start(Command::new("cat")));
    let (child, mut stdout, mut stdin) = std::thread::spawn(spawner).join().unwrap();
    keeps.block_on(async {
        write_all(&mut stdin, b"alive\n").await.unwrap();
        assert_eq!(lines(&mut stdout, 1).await, ["alive"]);
    });
    assert_eq!(child.exit(), None);
}

#[test]
fn p19_a_spawn_given_up_at_any_point_leaves_nothing() {
    alone("role_give_up");
}

#[test]
#[ignore = "a role"]
fn role_give_up() {
    let runtime = runtime();
    let command = sh(STUBBORN);
    runtime.block_on(async {
        let baseline = open_fds_after_one(&command).await;
        for round in 0..1000_u64 {
            let spawn = Child::start(&command, ChildOptions::default());
            // From "not even asked" to "already running".
            let patience = Duration::from_micros(round * 3 % 2_000);
            let _ = tokio::time::timeout(patience, spawn).await;
        }
        eventually_async("nothing is left", || children().is_empty()).await;
        eventually_async("no descriptor is left", || open_fds() <= baseline).await;
    });
}

async fn open_fds_after_one(command: &Command) -> usize {
    let (child, _stdout, _stdin) = start(command.clone()).await;
    in_time(child.end(grace(0, 0))).await;
    drop((child, _stdout, _stdin));
    open_fds()
}

/// E5: what is closed or silent costs nothing. The one test that lets time pass, because that is
/// what it measures.
#[test]
fn e5_an_idle_child_costs_no_cpu() {
    alone("role_idle");
}

#[test]
#[ignore = "a role"]
fn role_idle() {
    runtime().block_on(async {
        let (_closed, mut one, _stdin) = start(sh("exec 2>&-; echo up; cat")).await;
        let (_silent, mut two, mut stdin) = start(sh("echo up; cat")).await;
        lines(&mut one, 1).await;
        lines(&mut two, 1).await;
        let before = ticks();
        let gone = poll_fn(|cx| stdin.poll_gone(cx));
        assert!(tokio::time::timeout(Duration::from_secs(2), gone).await.is_err());
        let used = ticks() - before;
        // A tick is 10 ms. A loop that spins would use 200.
        assert!(used <= 3, "{used} ticks");
    });
}

/// The processor time of this process so far.
fn ticks() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit(") ").next().unwrap().split(' ').collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}
