//! What a server gets of our environment, what it is not given, and what is said of that.

use super::{Run, taut};

/// Runs `taut` with these words against a shell script, with these variables set here.
fn with(options: &str, script: &str, ours: &[(&str, &str)]) -> Run {
    let server = ["--", "sh", "-c", script];
    let mut command = taut(options.split_whitespace().chain(server));
    for name in ["NODE_EXTRA_CA_CERTS", "HTTPS_PROXY", "https_proxy", "npm_config_registry"] {
        command.env_remove(name);
    }
    let ca = |name: &String| ["CERT", "CA_BUNDLE", "CAINFO"].iter().any(|word| name.contains(word));
    for name in std::env::vars().map(|(name, _)| name).filter(ca) {
        command.env_remove(name);
    }
    command.envs(ours.iter().copied()).output().unwrap().into()
}

/// P20: what a server needs to reach the network is passed on, but no password.
#[test]
fn certificates_and_proxies_are_passed_on_and_passwords_are_not() {
    let script = r#"echo "ca=$NODE_EXTRA_CA_CERTS proxy=$HTTPS_PROXY key=$MY_KEY" >&2; exit 3"#;
    let ours = [("NODE_EXTRA_CA_CERTS", "/ca.pem"), ("HTTPS_PROXY", "http://p:1"), ("MY_KEY", "k")];
    for command in ["list", "smoke", "call x"] {
        let run = with(command, script, &ours).exits(4);
        assert!(run.err.contains("ca=/ca.pem proxy=http://p:1 key=\n"), "{}", run.err);
    }
    let ours = [("HTTPS_PROXY", "http://me:s3cret@p:1")];
    let run = with("list", script, &ours).exits(4);
    assert!(run.err.contains("ca= proxy= key=\n"), "{}", run.err);
    let hint = "HTTPS_PROXY is set here and was not passed on, because its value may have a password in it";
    assert!(run.err.contains(hint) && !run.err.contains("s3cret"), "{}", run.err);
    let run = with("list --inherit-env", script, &ours).exits(4);
    assert!(!run.err.contains("was not passed on"), "{}", run.err);
}

/// An npx behind a certificate of a company's own waits for ever where hosts pass on the short list.
#[test]
fn doctor_says_in_which_hosts_a_server_works_that_needs_the_environment() {
    let waits = r#"test -n "$NODE_EXTRA_CA_CERTS" || exec sleep 1000; exec taut serve"#;
    let ours = [("NODE_EXTRA_CA_CERTS", "/ca.pem")];
    let run = with("doctor --start-timeout 2s", waits, &ours).exits(4);
    assert!(run.out.contains("NODE_EXTRA_CA_CERTS"), "{}", run.out);
    let words = run.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("It works in claude, gemini, qwen, opencode"), "{}", run.out);
    assert!(words.contains("--env NODE_EXTRA_CA_CERTS="), "{}", run.out);
    assert!(!run.out.contains("none of them gets a connection"), "{}", run.out);
    assert!(run.out.contains("✗ only hosts that pass on the whole environment"), "{}", run.out);
}

/// The variable that a server asks for is named, also if it is set nowhere, and whatever it prints besides.
#[test]
fn a_variable_that_a_server_asks_for_is_named() {
    let script = r#"echo 'Weather server v1'
        printf "Traceback (most recent call last):\nKeyError: 'WEATHER_API_KEY'\n" >&2; exit 1"#;
    for command in ["list", "doctor", "smoke"] {
        let run = with(command, script, &[]).exits(4);
        let said = format!("{}{}", run.out, run.err);
        let words = said.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains("--env WEATHER_API_KEY=VALUE"), "{command}: {said}");
        assert!(!words.contains("do what it says there"), "{command}: {said}");
    }
    let run = with("list", script, &[("WEATHER_API_KEY", "x")]).exits(4);
    assert!(run.err.contains("--env WEATHER_API_KEY=\"$WEATHER_API_KEY\""), "{}", run.err);
}

/// Where a certificate is what is wrong, the variables that name one are named, also if they are set nowhere.
#[test]
fn a_certificate_that_a_server_does_not_trust_names_the_variable_to_set() {
    let script = "echo 'npm error code UNABLE_TO_VERIFY_LEAF_SIGNATURE' >&2; exit 1";
    for command in ["list", "doctor", "smoke", "list --inherit-env"] {
        let run = with(command, script, &[]).exits(4);
        let said = format!("{}{}", run.out, run.err);
        assert!(said.contains("NODE_EXTRA_CA_CERTS=FILE"), "{command}: {said}");
    }
}

#[test]
fn doctor_shows_a_few_names_of_a_long_environment() {
    let run = with("doctor --inherit-env --timeout 5s", "exec taut serve", &[("ABC_1", "x")]);
    let row = run.out.lines().find(|line| line.contains("· environment")).unwrap();
    assert!(row.len() < 300 && row.contains(" more"), "{row}");
}

/// A server that reads only headers is reached in seconds, and what is tried is said meanwhile.
#[test]
fn a_server_that_reads_only_headers_is_reached_in_seconds() {
    let server = super::server("2025-11-25 headers-only");
    for command in ["list", "smoke"] {
        let began = std::time::Instant::now();
        let run = super::run(command, &server).exits(0);
        assert!(began.elapsed() < std::time::Duration::from_secs(20), "55 s before");
        assert!(run.err.contains("also trying Content-Length headers"), "{}", run.err);
    }
    let json = super::run("doctor --json", &server).json();
    let found = json["findings"].as_array().unwrap();
    let slow = found.iter().any(|one| one["what"].as_str().unwrap().contains("until it is ready"));
    assert!(!slow, "that time was our own: {json:#}");
}
