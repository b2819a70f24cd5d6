//! Nothing that passes is changed, lost or held up, whatever happens to the recording.

use std::collections::hash_map::DefaultHasher;
use std::hash::Hasher as _;
use std::os::unix::process::ExitStatusExt as _;

use taut_trace::{Capture, End, Event};

use super::*;

/// The same bytes each time: messages of mixed sizes in both framings, garbage and half lines.
#[derive(Clone, Copy)]
struct Noise {
    state: u64,
    left: usize,
    /// Messages in lines and nothing else.
    clean: bool,
}

impl Noise {
    fn new(messages: usize) -> Self {
        Self { state: 0x9e37_79b9_7f4a_7c15, left: messages, clean: false }
    }

    fn next(&mut self) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.state
    }

    /// The next piece; nothing at the end, which is in the middle of a line.
    fn piece(&mut self) -> Option<Vec<u8>> {
        self.left = self.left.checked_sub(1)?;
        let (kind, size) = (self.next() % 100, self.next());
        let long = match size % 20_000 {
            0 => 1 << 20,
            1..20 => 20_000,
            _ => size as usize % 120,
        };
        let text = "x".repeat(long);
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":{},"method":"m","params":{{"t":"{text}"}}}}"#,
            self.left
        );
        Some(match kind {
            _ if self.clean => format!("{body}\n").into_bytes(),
            _ if self.left == 0 => b"{\"jsonrpc\":\"2.0\",\"half".to_vec(),
            0..70 => format!("{body}\n").into_bytes(),
            70..80 => format!("{body}\r\n").into_bytes(),
            80..90 => format!("Content-Length: {}\r\n\r\n{body}", body.len()).into_bytes(),
            90..93 => format!("\u{feff}{body}\n").into_bytes(),
            93..95 => b"\n\r\n  \n".to_vec(),
            95..97 => format!("Starting up... {size}\n").into_bytes(),
            // Headers that are cut, or say nothing that can be read; the bytes after them are no frame.
            97 if size.is_multiple_of(2) => b"Content-L\n".to_vec(),
            97 => format!("Content-Length: minus {size}\r\n\r\n{body}\n").into_bytes(),
            98 => [&b"\xff\xfe\0garbage "[..], &size.to_le_bytes(), b"\n"].concat(),
            _ => format!("{{\"broken\": {text}\n").into_bytes(),
        })
    }
}

fn hashed(mut noise: Noise) -> (u64, usize) {
    let (mut hasher, mut bytes) = (DefaultHasher::new(), 0);
    while let Some(piece) = noise.piece() {
        hasher.write(&piece);
        bytes += piece.len();
    }
    (hasher.finish(), bytes)
}

/// Sends noise to `cat` behind `taut trace`, and sees that it comes back: once through each direction.
fn there_and_back(place: &Place, options: &[&str], noise: Noise) -> Child {
    let mut child = place
        .taut()
        .arg("trace")
        .args(options)
        .args(["--", "cat"])
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || {
        let mut noise = noise;
        let mut buffer = Vec::new();
        while let Some(piece) = noise.piece() {
            buffer.extend_from_slice(&piece);
            // Writes of all sizes.
            if !noise.state.is_multiple_of(7) {
                stdin.write_all(&buffer).unwrap();
                buffer.clear();
            }
        }
        stdin.write_all(&buffer).unwrap();
    });
    let mut stdout = child.stdout.take().unwrap();
    let (mut hasher, mut bytes) = (DefaultHasher::new(), 0);
    let mut buffer = vec![0; 1 << 16];
    // A hasher takes one byte after the other, however they are cut.
    loop {
        let read = stdout.read(&mut buffer).unwrap();
        if read == 0 {
            break;
        }
        hasher.write(&buffer[..read]);
        bytes += read;
    }
    writer.join().unwrap();
    let expected = hashed(noise);
    assert_eq!(bytes, expected.1, "{options:?}");
    assert_eq!(hasher.finish(), expected.0, "{options:?}");
    child
}

/// A capture of noise, in memory where the system has that: a busy disk may hold the recorder up for longer than the
/// end waits.
fn recorded(place: &Place, noise: Noise) -> Capture {
    let memory = Path::new("/dev/shm");
    let folder = if memory.is_dir() { memory.to_owned() } else { place.at("project") };
    let file = folder.join(format!("taut-trace-{}-{}.jsonl", std::process::id(), noise.clean));
    let file = file.to_str().unwrap();
    let mut child = there_and_back(place, &["--quiet", "--record", file], noise);
    assert!(ended(&mut child).success());
    let capture = place.capture(file);
    std::fs::remove_file(file).unwrap();
    assert_eq!(capture.damaged, 0);
    let Event::End(End::Code(0)) = capture.records.last().unwrap().event else { panic!("no end") };
    capture
}

/// T6
#[test]
fn four_hundred_thousand_messages_pass_byte_for_byte() {
    let capture = recorded(&Place::new(), Noise::new(400_000));
    assert!(capture.messages().count() > 0);
}

/// T6: also where the recorder is slower than what passes.
#[test]
fn what_is_not_in_a_capture_is_counted_there() {
    let capture = recorded(&Place::new(), Noise { clean: true, ..Noise::new(200_000) });
    let recorded = capture.messages().count() as u64;
    let gaps: u64 = capture
        .records
        .iter()
        .map(|record| if let Event::Gap(gap) = &record.event { gap.records } else { 0 })
        .sum();
    assert_eq!(recorded + gaps, 400_000, "{recorded} and {gaps} missing");
}

#[test]
fn a_full_disk_costs_records_and_no_byte() {
    let place = Place::new();
    let mut child =
        there_and_back(&place, &["--quiet", "--record", "/dev/full"], Noise::new(20_000));
    assert!(ended(&mut child).success());
}

#[test]
fn a_disk_that_hangs_costs_records_and_no_byte() {
    let place = Place::new();
    let pipe = place.at("project/slow");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    // Opened for both, so that the recorder finds a reader; nobody ever reads.
    let reader = std::fs::File::options().read(true).write(true).open(&pipe).unwrap();
    let mut child = there_and_back(&place, &["--quiet", "--record", "slow"], Noise::new(20_000));
    assert!(ended(&mut child).success());
    drop(reader);
}

#[test]
fn a_pipe_that_nobody_reads_is_refused_at_the_start() {
    let place = Place::new();
    assert!(Command::new("mkfifo").arg(place.at("project/slow")).status().unwrap().success());
    let (_, err) = place.exits(2, &["trace", "--record", "slow", "--", "cat"]);
    assert!(err.contains("making slow"), "{err}");
}

#[test]
fn a_viewer_that_stops_reading_costs_no_byte() {
    let place = Place::new();
    let mut child = place.taut().args(["trace", "--page", "--", "cat"]).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
    let (host, path) = line.trim().split_once("http://").unwrap().1.split_once('/').unwrap();
    let mut viewer = std::net::TcpStream::connect(host).unwrap();
    write!(viewer, "GET /{path}events HTTP/1.1\r\nHost: {host}\r\n\r\n").unwrap();
    let mut first = [0; 16];
    viewer.read_exact(&mut first).unwrap();
    assert_eq!(&first, b"HTTP/1.1 200 OK\r");
    // It reads no more, and megabytes are recorded.
    let text = format!("{{\"jsonrpc\":\"2.0\",\"method\":\"{}\"}}\n", "x".repeat(1000));
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    let reader = std::thread::spawn(move || {
        let mut all = Vec::new();
        stdout.read_to_end(&mut all).map(|_| all.len()).unwrap()
    });
    for _ in 0..20_000 {
        stdin.write_all(text.as_bytes()).unwrap();
    }
    drop(stdin);
    assert_eq!(reader.join().unwrap(), 20_000 * text.len());
    assert!(ended(&mut child).success());
    drop(viewer);
}

#[test]
fn a_recorder_that_is_killed_leaves_a_capture_that_can_be_read() {
    let place = Place::new();
    for round in 0..6 {
        let name = format!("killed-{round}.jsonl");
        let mut child = place
            .taut()
            .args(["trace", "--quiet", "--record", &name, "--", "cat"])
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let mut stdout = child.stdout.take().unwrap();
        let drain = std::thread::spawn(move || {
            let _ = std::io::copy(&mut stdout, &mut std::io::sink());
        });
        let path = place.at("project").join(&name);
        let enough = 1 + round * 200_000;
        let mut noise = Noise::new(400_000);
        while std::fs::metadata(&path).map_or(0, |about| about.len()) < enough {
            let Some(piece) = noise.piece() else { break };
            if stdin.write_all(&piece).is_err() {
                break;
            }
        }
        child.kill().unwrap();
        child.wait().unwrap();
        drain.join().unwrap();
        let capture = place.capture(&format!("project/{name}"));
        assert_eq!(capture.damaged, 0, "{name}");
        let (out, _) = place.exits(0, &["trace", "view", &name, "--stats"]);
        assert!(out.contains("messages"), "{out}");
    }
}

#[test]
fn the_exit_status_is_the_servers() {
    let place = Place::new();
    for code in [0, 1, 42, 255] {
        let output = place.run(&["trace", "-q", "--", "sh", "-c", &format!("exit {code}")]);
        assert_eq!(output.status.code(), Some(code));
    }
    for signal in [1, 2, 3, 6, 9, 11, 13, 15] {
        let script = format!("kill -{signal} $$");
        let output = place.run(&["trace", "-q", "--record", "x.jsonl", "--", "sh", "-c", &script]);
        assert_eq!(output.status.signal(), Some(signal), "{:?}", output.status);
        let last = place.capture("project/x.jsonl").records.pop().unwrap().event;
        assert!(matches!(last, Event::End(End::Signal(own)) if own == signal), "{last:?}");
    }
    let output = place.run(&["trace", "-q", "--", "no-such-program"]);
    assert_eq!(output.status.code(), Some(127));
    assert!(String::from_utf8_lossy(&output.stderr).contains("no-such-program"));
}

#[test]
fn signals_reach_the_server_once_and_only_the_server_decides() {
    let place = Place::new();
    for (signal, number) in [("TERM", 15), ("INT", 2), ("HUP", 1), ("USR1", 10), ("QUIT", 3)] {
        let script = format!(
            "trap 'echo got' {signal}; echo ready; while read -r line; do [ \"$line\" = end ] && exit 7; done; while :; do sleep 0.02; done"
        );
        let mut child =
            place.taut().args(["trace", "-q", "--", "bash", "-c", &script]).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert_eq!(lines.next().unwrap().unwrap(), "ready");
        let pid = rustix::process::Pid::from_raw(child.id().cast_signed()).unwrap();
        rustix::process::kill_process(
            pid,
            rustix::process::Signal::from_named_raw(number).unwrap(),
        )
        .unwrap();
        // bash runs a trap after its read, so that is ended with a line.
        child.stdin.as_mut().unwrap().write_all(b"more\n").unwrap();
        assert_eq!(lines.next().unwrap().unwrap(), "got", "{signal}");
        child.stdin.take().unwrap().write_all(b"end\n").unwrap();
        assert_eq!(lines.next().map(Result::unwrap), None, "{signal} came twice");
        assert_eq!(ended(&mut child).code(), Some(7), "{signal}");
    }
}

#[test]
fn a_server_does_not_outlive_a_trace_that_is_killed() {
    let place = Place::new();
    let script = "echo $$; trap '' TERM INT HUP PIPE; while :; do sleep 0.1; done";
    let mut child = place.taut().args(["trace", "-q", "--", "bash", "-c", script]).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let status = format!("/proc/{}/stat", line.trim());
    eventually("the server is gone", || {
        std::fs::read_to_string(&status).map_or(true, |stat| stat.contains(") Z "))
    });
}

/// What either side closes, the other notices, as without us.
#[test]
fn ends_of_streams_are_passed_on() {
    let place = Place::new();
    // The server closes its output and lives on: the host sees the end.
    let script = "echo one; exec 1>&-; read -r line; exit 5";
    let mut child = place.taut().args(["trace", "-q", "--", "sh", "-c", script]).spawn().unwrap();
    let mut all = String::new();
    child.stdout.take().unwrap().read_to_string(&mut all).unwrap();
    assert_eq!(all, "one\n");
    child.stdin.take().unwrap().write_all(b"go\n").unwrap();
    assert_eq!(ended(&mut child).code(), Some(5));
    // The server stops to read: the host's writes fail.
    let script = "exec 0<&-; echo closed; sleep 30";
    let mut child = place.taut().args(["trace", "-q", "--", "sh", "-c", script]).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let mut stdin = child.stdin.take().unwrap();
    eventually("a write fails", || stdin.write_all(b"x\n").is_err());
    child.kill().unwrap();
    child.wait().unwrap();
    // The host stops to read: the server's writes fail.
    let mut child = place.taut().args(["trace", "-q", "--", "yes"]).spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(ended(&mut child).signal(), Some(13));
}

#[test]
fn stderr_passes_and_is_recorded() {
    let place = Place::new();
    let script = "printf 'one\\ntwo' >&2; exit 0";
    let output = place.run(&["trace", "-q", "--record", "x.jsonl", "--", "sh", "-c", script]);
    assert_eq!(output.stderr, b"one\ntwo");
    let capture = place.capture("project/x.jsonl");
    let lines: Vec<String> = capture
        .records
        .iter()
        .filter_map(|record| match &record.event {
            Event::Stderr(body) => Some(body.text().into_owned()),
            _ => None,
        })
        .collect();
    assert_eq!(lines, ["one", "two"]);
}

/// P9: a process that the server leaves behind holds its output.
#[test]
fn a_process_left_behind_does_not_keep_the_host_waiting_once_it_closes() {
    let place = Place::new();
    let script = "sleep 60 & echo $!; exit 3";
    let mut child = place.taut().args(["trace", "-q", "--", "sh", "-c", script]).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    drop(child.stdin.take());
    assert_eq!(ended(&mut child).code(), Some(3));
    let pid = line.trim().parse().ok().and_then(rustix::process::Pid::from_raw).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}

#[test]
fn without_a_file_and_a_page_what_passes_is_shown_on_stderr() {
    let place = Place::new();
    let mut child = place.taut().args(["trace", "--", "taut", "serve"]).spawn().unwrap();
    let ping = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{},\"clientInfo\":{\"name\":\"x\",\"version\":\"1\"}}}\n";
    child.stdin.take().unwrap().write_all(ping).unwrap();
    let output = child.wait_with_output().unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert!(err.contains("→ initialize") && err.contains("← ✓ initialize"), "{err}");
    assert!(err.contains("the server ended with code 0"), "{err}");
}

/// What the server said last was lost where the host read after the end: our own lines had filled the pipe.
#[test]
fn our_own_lines_give_way_to_what_a_server_says_on_stderr() {
    let script = "cat; i=0; while [ $i -lt 600 ]; do echo \"last word $i of the server, with more\" >&2; i=$((i+1)); done";
    let place = Place::new();
    let mut child = place.taut().args(["trace", "--", "sh", "-c", script]).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut first = String::new();
    stderr.read_line(&mut first).unwrap();
    assert!(
        first.contains("started as process"),
        "our own lines are shown while there is room: {first}"
    );
    // Each of them is shown, with its answer: several times what a pipe holds.
    for id in 0..2_000 {
        writeln!(stdin, r#"{{"jsonrpc":"2.0","id":{id},"method":"m/{}"}}"#, "x".repeat(60))
            .unwrap();
        stdout.read_line(&mut String::new()).unwrap();
    }
    drop(stdin);
    let until = Instant::now() + DEADLINE;
    while child.try_wait().unwrap().is_none() {
        assert!(Instant::now() < until, "it does not end");
        std::thread::yield_now();
    }
    let mut err = String::new();
    stderr.read_to_string(&mut err).unwrap();
    let words = err.lines().filter(|line| line.starts_with("last word")).count();
    assert_eq!(words, 600, "{}", &err[err.len().saturating_sub(500)..]);
}
