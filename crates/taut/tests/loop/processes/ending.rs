//! A peer that vanishes, wholly or in part.

use std::process::Stdio;
use std::time::Duration;

use rustix::pipe::fcntl_setpipe_size;
use serde_json::json;

use crate::PATIENCE;
use crate::memory::request;
use crate::process::{Server, example, role};

/// S6: the reader goes while an answer is being made; and again while nothing is.
#[test]
fn s6_a_reader_that_left_ends_the_server_quietly() {
    for call in ["sleep", "echo"] {
        let (stdin, mut to) = std::io::pipe().unwrap();
        let (from, stdout) = std::io::pipe().unwrap();
        let mut command = example();
        command.stdin(stdin).stdout(stdout).stderr(Stdio::piped());
        let child = command.spawn().unwrap();
        drop(command);
        let line = request(1, call, &json!([200])) + "\n";
        std::io::Write::write_all(&mut to, line.as_bytes()).unwrap();
        drop(from);
        // The input stays open: the end is seen at the other side.
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", output.status);
        assert_eq!(String::from_utf8_lossy(&output.stderr), "");
        drop(to);
    }
}

/// S7, S8: with a call in flight, everything goes at once, stderr too.
#[test]
fn s7_a_host_that_vanishes_whole_leaves_nothing_behind() {
    let mut child = example()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let line = request(1, "sleep", &json!([600_000])) + "\nnot a message\n";
    std::io::Write::write_all(child.stdin.as_mut().unwrap(), line.as_bytes()).unwrap();
    let mut answer = [0; 8];
    std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut answer).unwrap();
    drop((child.stdin.take(), child.stdout.take(), child.stderr.take()));
    let deadline = std::time::Instant::now() + Duration::from_millis(1_500);
    while child.try_wait().unwrap().is_none() {
        if std::time::Instant::now() > deadline {
            child.kill().unwrap();
            panic!("it lives on");
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    assert!(child.wait().unwrap().success());
}

/// S11, W11: all the requests before the first answer is read, through pipes of one page.
#[test]
fn s11_w11_fifty_large_answers_wait_for_a_reader_that_comes_late() {
    let (stdin, to) = std::io::pipe().unwrap();
    let (from, stdout) = std::io::pipe().unwrap();
    fcntl_setpipe_size(&stdin, 4096).unwrap();
    fcntl_setpipe_size(&stdout, 4096).unwrap();
    let (start, started) = std::sync::mpsc::channel::<()>();
    let late = Late { from, started: Some(started) };
    let mut server = Server::over(role("server"), stdin.into(), stdout.into(), to, late);
    for n in 0..50 {
        server.send(request(n, "big", &json!([1 << 20])) + "\n");
    }
    start.send(()).unwrap();
    let mut seen = [false; 50];
    for _ in 0..50 {
        let answer = server.value();
        assert_eq!(answer["result"].as_str().unwrap().len(), 1 << 20);
        seen[answer["id"].as_u64().unwrap() as usize] = true;
    }
    assert_eq!(seen, [true; 50]);
    server.to = None;
    server.ends_well();
}

/// A reader that begins when it is told.
struct Late<R> {
    from: R,
    started: Option<std::sync::mpsc::Receiver<()>>,
}

impl<R: std::io::Read> std::io::Read for Late<R> {
    fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        if let Some(started) = self.started.take() {
            let _ = started.recv();
        }
        self.from.read(buf)
    }
}

/// E9: nobody reads our stderr, however much we have to complain about.
#[test]
fn e9_a_host_that_never_reads_stderr_is_served_all_the_same() {
    let (stderr, full) = std::io::pipe().unwrap();
    fcntl_setpipe_size(&full, 4096).unwrap();
    // Full before it starts, so that not one byte fits.
    rustix::io::ioctl_fionbio(&full, true).unwrap();
    while rustix::io::write(&full, &[b'x'; 512]).is_ok() {}
    rustix::io::ioctl_fionbio(&full, false).unwrap();
    let mut child =
        example().stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(full).spawn().unwrap();
    let mut to = child.stdin.take().unwrap();
    let from = child.stdout.take().unwrap();
    let (sender, lines) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for line in std::io::BufRead::lines(std::io::BufReader::new(from)) {
            if sender.send(line.unwrap()).is_err() {
                return;
            }
        }
    });
    let bad = "not a message\n{\n}\n{\"a\":1}\n[]\n";
    std::io::Write::write_all(&mut to, bad.as_bytes()).unwrap();
    std::io::Write::write_all(&mut to, (request(7, "echo", &json!([7])) + "\n").as_bytes())
        .unwrap();
    let served = std::iter::from_fn(|| lines.recv_timeout(PATIENCE).ok())
        .any(|line| line.contains("\"id\":7"));
    drop(to);
    if !served {
        child.kill().unwrap();
    }
    child.wait().unwrap();
    drop(stderr);
    assert!(served, "it stopped at its own complaint");
}

/// S12 with processes: answers of every size from many threads, each line whole.
#[test]
fn s12_answers_of_random_sizes_are_whole_lines() {
    let mut server = Server::start(role("threads"));
    let all: String =
        (0..500).map(|n| request(n, "big", &json!([(n * 977) % 20_000])) + "\n").collect();
    let mut to = server.to.take().unwrap();
    let writer = std::thread::spawn(move || to.write_all(all.as_bytes()).unwrap());
    let mut seen = vec![false; 500];
    for _ in 0..500 {
        let answer = server.value();
        let id = answer["id"].as_u64().unwrap();
        assert_eq!(answer["result"].as_str().unwrap().len() as u64, (id * 977) % 20_000);
        assert!(!std::mem::replace(&mut seen[id as usize], true));
    }
    writer.join().unwrap();
    server.ends_well();
}
