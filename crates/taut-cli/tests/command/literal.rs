//! `taut serve` taken at its word: the exchange that clients written by hand send, and what is wrong with their frames.

use serde_json::json;

use super::*;

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{}}}"#;

fn framed(message: &str) -> String {
    format!("Content-Length: {}\r\n\r\n{message}", message.len())
}

/// What `taut serve` answers to these bytes and the end of the input, in the order of the answers.
fn answers_to(input: &str) -> Vec<Value> {
    let output = run_with("serve", &[], input).exits(0).out;
    let mut messages = Vec::new();
    let mut rest = output.as_str();
    while !rest.is_empty() {
        let (body, after) = match rest.strip_prefix("Content-Length: ") {
            Some(header) => {
                let (length, after) = header.split_once("\r\n\r\n").unwrap();
                after.split_at(length.parse().unwrap())
            }
            None => rest.split_once('\n').unwrap(),
        };
        messages.push(serde_json::from_str(body).unwrap());
        rest = after;
    }
    messages
}

/// LIF-02, LIF-15, L22.
#[test]
fn a_client_that_says_nothing_of_itself_is_served_in_both_framings() {
    let exchange = [
        INITIALIZE,
        r#"{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{}}"#,
        r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"echo","arguments":{"text":"x"}}}"#,
        r#"{"jsonrpc":"2.0","id":4,"method":"ping","params":{}}"#,
    ];
    for input in [exchange.map(framed).concat(), exchange.map(|line| format!("{line}\n")).concat()]
    {
        let answers = answers_to(&input);
        assert_eq!(answers.len(), 4, "{answers:?}");
        assert_eq!(answers[0]["result"]["protocolVersion"], "2025-06-18");
        assert!(answers[1]["result"]["tools"].as_array().unwrap().len() > 3);
        assert_eq!(answers[2]["result"]["content"][0]["text"], "x");
        assert_eq!(answers[3], json!({ "jsonrpc": "2.0", "id": 4, "result": {} }));
    }
}

/// Requests with these ids, each right behind the one before.
fn pings(ids: std::ops::Range<u64>) -> String {
    ids.map(|id| framed(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#))).collect()
}

/// The ids that have a result, and the errors.
fn outcomes(answers: &[Value]) -> (Vec<u64>, Vec<&Value>) {
    let served = answers.iter().filter(|answer| answer.get("result").is_some());
    let served = served.map(|answer| answer["id"].as_u64().unwrap()).collect();
    (served, answers.iter().filter_map(|answer| answer.get("error")).collect())
}

/// F28
#[test]
fn one_wrong_length_does_not_end_a_framed_conversation() {
    let ping = r#"{"jsonrpc":"2.0","id":99,"method":"ping"}"#;
    let umlauts = r#"{"jsonrpc":"2.0","id":99,"method":"ping","params":{"x":"äöü"}}"#;
    let characters = umlauts.chars().count();
    let no_blank_line = format!("Content-Length: 41\r\n{ping}");
    let misfit = |given: usize, found: usize| {
        format!("the length does not fit the payload: {given} given, {found} found")
    };
    for (broken, words) in [
        (format!("Content-Length: 40\r\n\r\n{ping}"), misfit(40, 41)),
        (format!("Content-Length: 42\r\n\r\n{ping}"), misfit(42, 41)),
        (format!("Content-Length: 1000000\r\n\r\n{ping}"), misfit(1_000_000, 41)),
        (
            format!("Content-Length: {characters}\r\n\r\n{umlauts}"),
            misfit(characters, umlauts.len()),
        ),
        (no_blank_line, "no empty line between header and body".to_owned()),
        (ping.to_owned(), "not JSON".to_owned()),
    ] {
        let input = framed(INITIALIZE) + &pings(2..52) + &broken + &pings(200..300);
        let answers = answers_to(&input);
        let (served, errors) = outcomes(&answers);
        let expected: Vec<u64> = (1..52).chain(200..300).collect();
        assert_eq!(served, expected, "{broken}");
        assert_eq!(errors.len(), 1, "{errors:?}");
        assert_eq!(errors[0]["code"], -32700);
        assert_eq!(errors[0]["message"], words.as_str());
    }
}

/// F3: the answer to a frame that does not count its byte-order mark has the id of the request.
#[test]
fn f3_a_byte_order_mark_that_was_not_counted_hides_no_id() {
    let ping = r#"{"jsonrpc":"2.0","id":99,"method":"ping"}"#;
    let broken = format!("Content-Length: {}\r\n\r\n\u{feff}{ping}", ping.len());
    let answers = answers_to(&(framed(INITIALIZE) + &broken + &pings(2..5)));
    let error = answers.iter().find(|answer| answer.get("error").is_some()).unwrap();
    assert_eq!(error["id"], 99, "{error}");
    assert_eq!(outcomes(&answers).0, [1, 2, 3, 4]);
}

/// A server that reads only headers, and whose own are wrong: the length is what is named, not its silence.
#[test]
// About Unix itself: a shell plays the server.
#[cfg(unix)]
fn a_server_with_a_wrong_length_is_told_so_and_not_that_it_is_silent() {
    let result = r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}"#;
    let (short, long) = (result.len() - 3, result.len() + 7);
    let wrong = [
        (
            format!(r"Content-Length: {short}\r\n\r\n"),
            format!("Content-Length {short}, but the message has {} bytes", result.len()),
        ),
        (
            format!(r"Content-Length: {long}\r\n\r\n"),
            format!("Content-Length {long}, but the message has {} bytes", result.len()),
        ),
        (
            format!(r"Content-Length: {}\r\n", result.len()),
            "stream ended inside a framed message".to_owned(),
        ),
    ];
    let one = |(header, words): &(String, String)| {
        let script = format!(
            "while read -r line; do case $line in Content-Length*) printf '{header}'; printf '%s' '{result}';; esac; done"
        );
        let server = ["sh", "-c", &script].map(str::to_owned);
        for line in ["list", "smoke", "doctor", "list --framing headers"] {
            let run = run(&format!("{line} --start-timeout 3s"), &server);
            let said = format!("{}{}", run.out, run.err);
            let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!([4, 5].contains(&run.code), "{line}: {run:?}");
            assert!(said.contains(words), "{line}, {header}: {said}");
            for other in
                ["it says nothing", "flushes", "did not answer either", "text instead of JSON"]
            {
                assert!(!said.contains(other), "{line}, {header}: {said}");
            }
        }
    };
    std::thread::scope(|scope| wrong.iter().for_each(|case| drop(scope.spawn(|| one(case)))));
}

/// The home of a service is often no folder; that it has no settings is no fault.
#[test]
// About Unix itself: a device is the home.
#[cfg(unix)]
fn a_home_that_is_no_folder_stops_nothing() {
    for variable in ["HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME"] {
        let mut command = taut(["list", "tools", "--", "taut", "serve"]);
        let run: Run =
            command.env(variable, "/dev/null").stdin(Stdio::null()).output().unwrap().into();
        assert!(run.exits(0).out.contains("echo"), "{variable}");
    }
}

/// F28
#[test]
fn a_hundred_wrong_lengths_among_good_frames_cost_a_hundred_messages() {
    let mut input = framed(INITIALIZE);
    for id in 2..152 {
        input += "Content-Length: 12\r\n\r\n{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"ping\"}";
        input += &pings(id..id + 1);
    }
    let answers = answers_to(&input);
    let (served, errors) = outcomes(&answers);
    assert_eq!((served.len(), errors.len()), (151, 150));
}

#[test]
fn f3_a_byte_order_mark_behind_a_bad_header_costs_no_request() {
    let input = format!(
        "{INITIALIZE}\nContent-Length: zz\r\n\r\n\u{feff}{{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\"}}\n"
    );
    let answers = answers_to(&input);
    let (served, errors) = outcomes(&answers);
    assert_eq!((served, errors.len()), (vec![1, 2], 1));
}

/// S21
#[test]
fn what_was_accepted_is_finished_at_the_end_of_input_and_a_limit_says_what_it_drops() {
    let call = |id: u64, steps: u64, ms: u64| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"slow","arguments":{{"steps":{steps},"step_ms":{ms}}}}}}}"#
        )
    };
    let input = format!("{INITIALIZE}\n{}\n", call(2, 2, 300));
    assert_eq!(answers_to(&input).len(), 2);
    let input = format!("{INITIALIZE}\n{}\n{}\n", call(2, 1, 1), call(3, 1000, 1000));
    let run = run_with("serve --drain 200ms", &[], &input).exits(6);
    assert_eq!(run.out.lines().count(), 2, "{}", run.out);
    assert!(run.err.contains("unanswered at the drain limit: dropped 3"), "{}", run.err);
}

#[test]
fn the_longest_message_is_a_setting() {
    let ping = r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#;
    let long = format!(
        r#"{{"jsonrpc":"2.0","id":3,"method":"ping","params":{{"x":"{}"}}}}"#,
        "x".repeat(500)
    );
    let input = format!("{INITIALIZE}\n{ping}\n{long}\n");
    let run = run_with("serve --max-message 400", &[], &input).exits(0);
    let refused = run.out.lines().find(|line| line.contains(r#""id":3"#)).unwrap();
    assert!(refused.contains("limit of 400 bytes"), "{refused}");
    assert!(run.out.contains(r#""id":2,"result":{}"#), "{}", run.out);
}

/// Also when the last part of a result went nowhere: Rust opens the null device in the place of a closed stdout.
// About Linux itself: elsewhere a closed stdout is not seen.
#[test]
#[cfg(all(target_os = "linux", not(taut_portable)))]
fn a_result_for_a_stdout_that_was_closed_is_not_written() {
    for line in ["call echo text=x", "call echo text=x --json", "list tools"] {
        let usual = taut(line.split_whitespace());
        let mut command = Command::new("sh");
        command
            .args(["-c", r#"exec "$0" "$@" >&-"#])
            .arg(usual.get_program())
            .args(usual.get_args());
        command.args(["--", "taut", "serve"]);
        for (name, value) in usual.get_envs() {
            command.env(name, value.unwrap_or_default());
        }
        let output: Run = command.stdin(Stdio::null()).output().unwrap().into();
        let run = output.exits(7);
        assert!(run.err.contains("writing the result"), "{}", run.err);
    }
    // One that nobody wants is another matter.
    let mut command = taut(["call", "echo", "text=x", "--", "taut", "serve"]);
    assert!(command.stdout(Stdio::null()).status().unwrap().success());
}

// About Unix itself: devices and pipes.
#[cfg(unix)]
mod files {
    use rustix::process::{Pid, Signal, kill_process};

    use super::*;

    /// Each option that names a file, with what stands around it.
    fn lines(file: &str) -> Vec<String> {
        let mut lines = vec![
            format!("list --settings {file}"),
            format!("call echo --args @{file}"),
            format!("call echo text=x --answer {file}"),
            format!("shell --script {file}"),
            format!("check --baseline {file}"),
        ];
        if cfg!(feature = "http") {
            lines.push(format!("bridge --listen 127.0.0.1:0 --token-file {file}"));
            lines.push(format!("bridge --listen 127.0.0.1:0 --certificate {file} --key {file}"));
            lines.push(format!("list --ca-file {file}"));
        }
        if cfg!(feature = "login") {
            lines.push(format!(
                "login --client-id x --client-secret-file {file} https://127.0.0.1:1/mcp"
            ));
        }
        lines
    }

    fn command(line: &str) -> Command {
        let server = if line.starts_with("login") { &[][..] } else { &["--", "taut", "serve"] };
        taut(line.split_whitespace().chain(server.iter().copied()))
    }

    /// Whether a process has this file open.
    fn reads(pid: u32, file: &std::path::Path) -> bool {
        let open = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        open.filter_map(|entry| std::fs::read_link(entry.path()).ok()).any(|to| to == file)
    }

    /// Nor does a variable that names the certificates to trust, whether they are needed or not.
    #[test]
    #[cfg(feature = "http")]
    fn no_variable_makes_it_read_a_device_without_an_end() {
        for (url, file, words) in [
            ("https://127.0.0.1:1/mcp", "/dev/zero", "SSL_CERT_FILE names, cannot be read"),
            ("https://127.0.0.1:1/mcp", "/nowhere/ca.pem", "SSL_CERT_FILE names, cannot be read"),
            ("http://127.0.0.1:1/mcp", "/dev/zero", "127.0.0.1"),
        ] {
            let usual = taut(["list", url]);
            let mut limited = Command::new("sh");
            limited.args(["-c", r#"ulimit -t 20; exec "$0" "$@""#]).arg(usual.get_program());
            limited.args(usual.get_args()).env("SSL_CERT_FILE", file).stdin(Stdio::null());
            let run: Run = limited.output().unwrap().into();
            assert!([2, 4].contains(&run.code), "{url} {file}: {run:?}");
            assert!(run.err.contains(words), "{url} {file}: {}", run.err);
        }
    }

    #[test]
    fn no_option_reads_a_device_without_an_end() {
        for line in lines("/dev/zero") {
            let run: Run = command(&line).output().unwrap().into();
            assert!([2, 3].contains(&run.code), "{line}: {run:?}");
            let refused = ["it is larger than", "longer than", "not a regular file"];
            assert!(refused.iter().any(|words| run.err.contains(words)), "{line}: {}", run.err);
            assert!(!run.err.contains("panicked"), "{line}: {}", run.err);
        }
    }

    #[test]
    fn a_pipe_that_sends_nothing_does_not_keep_a_signal_away() {
        let fifo = temporary().join(format!("fifo-{}", std::process::id()));
        assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        for line in lines(fifo.to_str().unwrap()) {
            let mut child = command(&line).spawn().unwrap();
            // Opens the other end, and sends nothing; where it is refused it ends by itself.
            let opened = std::fs::File::options().read(true).write(true).open(&fifo).unwrap();
            eventually(&line, || reads(child.id(), &fifo) || child.try_wait().unwrap().is_some());
            let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
            let _ = kill_process(pid, Signal::INT);
            let mut ended = None;
            eventually(&line, || {
                ended = child.try_wait().unwrap();
                ended.is_some()
            });
            drop(opened);
        }
        std::fs::remove_file(&fifo).unwrap();
    }
}

#[cfg(feature = "http")]
#[test]
fn hosts_and_origins_that_match_nothing_are_refused() {
    for (option, bad) in [
        ("--allow-origin", "*"),
        ("--allow-origin", "app.example"),
        ("--allow-origin", "https://*.example"),
        ("--allow-origin", "https://app.example/page"),
        ("--allow-origin", "null"),
        ("--allow-host", "*"),
        ("--allow-host", ""),
        ("--allow-host", "https://mcp.example"),
    ] {
        let words = ["bridge", "--listen", "127.0.0.1:0", option, bad, "--", "taut", "serve"];
        let run: Run = taut(words).output().unwrap().into();
        let run = run.exits(2);
        assert!(run.err.contains(option), "{option} {bad}: {}", run.err);
    }
}

#[test]
// About Unix itself: a shell plays the server.
#[cfg(unix)]
fn debug_tells_what_a_server_writes_to_stderr_when_it_starts_and_how_it_ends() {
    let server = ["sh", "-c", "echo hello >&2; exec taut serve"].map(str::to_owned);
    let run = run("list tools --debug", &server).exits(0);
    for step in ["[mcp] stderr: hello", "[taut::process] started pid=", "ended pid="] {
        assert!(run.err.contains(step), "{step} is not in {}", run.err);
    }
}
