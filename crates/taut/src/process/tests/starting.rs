//! What reaches the child: arguments, environment, directory; and from which runtime.

use super::*;

#[tokio::test]
async fn w9_arguments_arrive_as_they_were_given() {
    let nasty = [
        "",
        " ",
        "a b",
        "'",
        "\"",
        "\\",
        "\\\\",
        "$HOME",
        "`id`",
        "$(id)",
        "*",
        "~",
        ";",
        "&",
        "|",
        "\n",
        "\t",
        "-n",
        "ä€😀",
        "a'b\"c\\d e",
        "%PATH%",
        "^",
        "!x",
        "{a,b}",
    ];
    let command = sh("for a; do printf '%s\\0' \"$a\"; done").arg("sh").args(nasty);
    let (_child, mut stdout, _stdin) = start(command).await;
    let seen = String::from_utf8(read_all(&mut stdout).await).unwrap();
    assert_eq!(seen.split_terminator('\0').collect::<Vec<_>>(), nasty);
}

/// SEC-04.
#[tokio::test]
async fn p20_the_child_sees_the_effective_environment_and_nothing_else() {
    let base = Command::new("env").arg("-0").env("MINE", "1\n2");
    for command in [base.clone(), base.clone().inherit_env(), base.clear_env()] {
        let (_child, mut stdout, _stdin) = start(command.clone()).await;
        let seen = read_all(&mut stdout).await;
        let mut seen: Vec<_> = seen.strip_suffix(b"\0").unwrap().split(|b| *b == 0).collect();
        seen.sort_unstable();
        let expected = command.effective_env().into_iter().map(|(name, value)| {
            [name.as_encoded_bytes(), b"=", value.as_encoded_bytes()].concat()
        });
        let mut expected: Vec<_> = expected.collect();
        expected.sort_unstable();
        assert_eq!(seen, expected);
    }
}

#[tokio::test]
async fn the_program_is_looked_up_in_the_path_of_the_child() {
    let dir = Dir::new("lookup");
    dir.file("taut-only-here", b"#!/bin/sh\necho \"found $0\"\n", 0o755);
    let path = format!("/nowhere::{}", dir.0.display());
    let (_child, mut stdout, _stdin) =
        start(Command::new("taut-only-here").env("PATH", path)).await;
    assert!(lines(&mut stdout, 1).await[0].starts_with("found "));
}

#[tokio::test]
async fn w10_a_relative_program_counts_from_the_directory_of_the_child() {
    let dir = Dir::new("cwd");
    std::fs::create_dir_all(dir.0.join("bin")).unwrap();
    dir.file("bin/where", b"#!/bin/sh\npwd -P\n", 0o755);
    let real = dir.0.canonicalize().unwrap().display().to_string();
    for program in ["bin/where", "./bin/where", "./bin/../bin/where"] {
        let command = Command::new(program).current_dir(&dir.0);
        let (_child, mut stdout, _stdin) = start(command).await;
        assert_eq!(lines(&mut stdout, 1).await[0], real);
    }
    let by_path = Command::new("where").current_dir(&dir.0).env("PATH", "bin:/bin:/usr/bin");
    let (_child, mut stdout, _stdin) = start(by_path).await;
    assert_eq!(lines(&mut stdout, 1).await, [real]);
}

#[tokio::test]
async fn a_program_is_called_by_the_name_it_was_given() {
    let (_child, mut stdout, _stdin) = start(sh("cat /proc/$$/cmdline; echo")).await;
    assert!(lines(&mut stdout, 1).await[0].starts_with("sh\0-c\0"));
}

/// W8
#[test]
fn w8_any_runtime_will_do() {
    use tokio::runtime::Builder;
    for mut builder in [Builder::new_current_thread(), Builder::new_multi_thread()] {
        builder.enable_all().build().unwrap().block_on(async {
            let (child, mut stdout, mut stdin) = start(sh("read x; echo $x; cat")).await;
            write_all(&mut stdin, b"ping\n").await.unwrap();
            assert_eq!(lines(&mut stdout, 1).await, ["ping"]);
            drop(stdin);
            assert!(in_time(child.end(GracePeriods::default())).await.exit.success());
        });
    }
}

#[test]
fn without_a_runtime_spawning_is_an_error_not_a_panic() {
    let command = Command::new("true");
    let mut spawn = std::pin::pin!(Child::start(&command, ChildOptions::default()));
    let waker = std::task::Waker::noop();
    let std::task::Poll::Ready(Err(error)) =
        spawn.as_mut().poll(&mut std::task::Context::from_waker(waker))
    else {
        panic!("no runtime, and yet it went on")
    };
    assert!(error.to_string().contains("could not start \"true\""), "{error}");
}

/// If the second child had inherited our end of the first one's stdin, EOF would never come.
#[tokio::test]
async fn our_ends_of_the_pipes_do_not_leak_into_other_children() {
    let (one, _stdout, stdin) = start(Command::new("cat")).await;
    let (_two, _stdout2, _stdin2) = start(Command::new("cat")).await;
    drop(stdin);
    assert_eq!(in_time(one.end(grace(15_000, 10))).await.step, ShutdownStep::Eof);
}

/// As happens when a server was installed a moment ago and another thread forked meanwhile.
#[tokio::test]
async fn a_program_that_is_still_being_written_is_tried_again() {
    let dir = Dir::new("busy");
    let path = dir.file("busy", b"#!/bin/sh\nexit 6\n", 0o755);
    let command = Command::new(&path);
    for _ in 0..20 {
        let writer = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
        let mut spawn = std::pin::pin!(Child::start(&command, ChildOptions::default()));
        assert!(poll_fn(|cx| std::task::Poll::Ready(spawn.as_mut().poll(cx))).await.is_pending());
        std::thread::yield_now();
        drop(writer);
        let (child, _stdout, _stdin) = in_time(spawn).await.unwrap();
        assert_eq!(in_time(child.exited()).await.code, Some(6));
    }
}

/// Issue 19, A5: a descriptor that is not marked to be closed on exec, as this process may have been
/// given by its parent.
#[tokio::test]
async fn p26_a_descriptor_that_we_inherited_does_not_reach_the_child() {
    let dir = Dir::new("inherited");
    let file = std::fs::File::open(dir.file("secret", b"", 0o644)).unwrap();
    // A copy by `dup` is not marked, whatever the original is.
    let _inheritable = rustix::io::dup(&file).unwrap();
    let (_child, mut stdout, _stdin) = start(sh("ls -l /proc/$$/fd; cat")).await;
    let mut seen = Vec::new();
    // The three pipes, and a line with the total.
    seen.extend(lines(&mut stdout, 4).await);
    drop(_stdin);
    seen.push(String::from_utf8(read_all(&mut stdout).await).unwrap());
    assert!(!seen.iter().any(|line| line.contains("secret")), "{seen:#?}");
}
