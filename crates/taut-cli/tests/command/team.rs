//! One server for several people: `taut bridge --listen` with a token, with TLS, and who is let in; and the other
//! commands on the asking side, with tokens, certificates and proxies.

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Child;
use std::sync::{Arc, Mutex};

use serde_json::json;

use super::*;

const SECRET: &str = "k3y-of-the-team-7f2c91";
const WRONG: &str = "k3y-of-a-stranger-55aa";

/// A folder of its own for a test.
fn folder(name: &str) -> PathBuf {
    let folder = temporary().join(format!("team-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// A file with a token, with this mode.
fn token_file(folder: &Path, token: &str, mode: u32) -> String {
    let path = folder.join(format!("token-{mode:o}"));
    std::fs::write(&path, format!("{token}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    path.to_str().unwrap().to_owned()
}

/// `taut` in a folder, without the proxies and certificates of whoever runs the test.
fn taut_in(folder: &Path, words: &[&str]) -> Command {
    let mut command = taut(words);
    for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"] {
        command.env_remove(name).env_remove(name.to_lowercase());
    }
    command.env_remove("SSL_CERT_FILE").env_remove("SSL_CERT_DIR").current_dir(folder);
    command
}

fn run_in(folder: &Path, words: &[&str]) -> Run {
    taut_in(folder, words).output().unwrap().into()
}

/// A bridge to the demo that listens.
struct Served {
    child: Child,
    /// As it was printed.
    address: String,
}

impl Served {
    fn start(folder: &Path, listen: &str, options: &[&str]) -> Self {
        Self::start_with(folder, listen, options, &[])
    }

    fn start_with(folder: &Path, listen: &str, options: &[&str], env: &[(&str, &str)]) -> Self {
        let words = [&["bridge", "--listen", listen], options, &["--", "taut", "serve"]].concat();
        let mut child = taut_in(folder, &words).envs(env.iter().copied()).spawn().unwrap();
        let mut address = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut address).unwrap();
        let address = address.trim().to_owned();
        assert!(!address.is_empty(), "{:?}", child.wait_with_output());
        Self { child, address }
    }

    fn port(&self) -> &str {
        let address = self.address.trim_end_matches("/mcp");
        address.rsplit_once(':').unwrap().1
    }

    /// The status and the body of the answer to a POST of a modern request with these header lines.
    fn post(&self, headers: &str) -> (u16, String) {
        let meta = json!({ "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": { "name": "c", "version": "1" } });
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": { "_meta": meta } });
        let body = body.to_string();
        let mut stream = TcpStream::connect(format!("127.0.0.1:{}", self.port())).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        write!(
            stream,
            "POST /mcp HTTP/1.1\r\n{headers}Accept: application/json, text/event-stream\r\n\
             Content-Type: application/json\r\nConnection: close\r\nMCP-Protocol-Version: 2026-07-28\r\n\
             Mcp-Method: tools/list\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        (text.split(' ').nth(1).unwrap().parse().unwrap(), text)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Issue 21, build 3: a server of type http in a project's file, its headers included. The secret is used and never
/// shown.
#[test]
fn a_token_in_a_hosts_file_opens_a_bridge_and_is_never_shown() {
    let folder = folder("token");
    let file = token_file(&folder, SECRET, 0o600);
    let bridge = Served::start(&folder, "127.0.0.1:0", &["--token-file", &file]);
    let url = bridge.address.as_str();
    assert!(url.starts_with("http://127.0.0.1:") && url.ends_with("/mcp"), "{url}");
    let entry = |token: &str| {
        let headers = json!({ "Authorization": format!("Bearer {token}") });
        json!({ "type": "http", "url": url, "headers": headers })
    };
    let servers = json!({ "mcpServers": { "team": entry(SECRET), "stranger": entry(WRONG) } });
    std::fs::write(folder.join(".mcp.json"), servers.to_string()).unwrap();
    let header = format!("Authorization: Bearer {SECRET}");
    let used: [(&[&str], &str); 11] = [
        (&["servers"], "team"),
        (&["servers", "--json"], "team"),
        (&["list", "team"], "add"),
        (&["list", "team", "--json"], "add"),
        (&["list", "team", "--debug"], "add"),
        (&["list", "team", "--verbose"], "add"),
        (&["call", "add", "a=2", "b=3", "team"], "{\"sum\":5}"),
        (&["smoke", "team"], "works"),
        (&["doctor", "team"], "every host should get on with it"),
        (&["list", url, "--header", &header], "add"),
        (&["call", "add", "a=2", "b=3", url, "--header", &header, "--debug"], "{\"sum\":5}"),
    ];
    for (words, expected) in used {
        let run = run_in(&folder, words).exits(0);
        assert!(run.out.contains(expected), "{words:?}: {}", run.out);
        for text in [&run.out, &run.err] {
            assert!(!text.contains(SECRET) && !text.contains(WRONG), "{words:?}: {text}");
        }
    }
    let wrong = format!("Authorization: Bearer {WRONG}");
    let refused: [&[&str]; 4] = [
        &["list", "stranger"],
        &["call", "add", "a=2", "b=3", "stranger"],
        &["list", url, "--header", &wrong],
        &["list", url],
    ];
    for words in refused {
        let run = run_in(&folder, words).exits(4);
        assert!(
            run.err.contains("token") && run.err.contains("--header"),
            "{words:?}: {}",
            run.err
        );
        assert!(!run.err.contains(SECRET) && !run.err.contains(WRONG), "{words:?}: {}", run.err);
    }
    // Lines and headers have no place for it.
    run_in(&folder, &["list", &format!("tcp:127.0.0.1:{}", bridge.port())]).exits(4);
}

/// A token that is no secret: too short, with blanks, not there. A file that every user can read is told.
#[test]
fn a_bad_token_is_refused_before_anything_is_served() {
    let folder = folder("bad-token");
    let bridge = |options: &[&str]| {
        let words = ["bridge", "--listen", "127.0.0.1:0"];
        let words = [&words, options, &["--", "taut", "serve"]].concat();
        let mut command = taut_in(&folder, &words);
        command.env("TEAM_TOKEN", "too short").env("EMPTY_TOKEN", "").env_remove("NO_TOKEN");
        Run::from(command.output().unwrap())
    };
    for (mode, token) in [(0o600, "fifteen-chars-0"), (0o400, "two words of a token")] {
        let run = bridge(&["--token-file", &token_file(&folder, token, mode)]).exits(2);
        assert!(run.err.contains("at least 16 characters"), "{}", run.err);
        assert!(run.err.contains("openssl rand -hex 32"), "{}", run.err);
    }
    let run = bridge(&["--token-file", "/no/such/file"]);
    assert!(run.code != 0 && run.err.contains("/no/such/file"), "{}", run.err);
    for name in ["TEAM_TOKEN", "EMPTY_TOKEN"] {
        let run = bridge(&["--token-env", name]).exits(2);
        assert!(run.err.contains(name) && run.err.contains("at least 16"), "{}", run.err);
        assert!(!run.err.contains("too short"), "{}", run.err);
    }
    let run = bridge(&["--token-env", "NO_TOKEN"]).exits(2);
    assert!(run.err.contains("NO_TOKEN is not set"), "{}", run.err);
    bridge(&["--token-env", "TEAM_TOKEN", "--token-file", "x"]).exits(2);
    for option in ["--token-file", "--token-env"] {
        run_in(&folder, &["bridge", option, "X", "--", "taut", "serve"]).exits(2);
    }
    let open = token_file(&folder, SECRET, 0o644);
    let mut served = Served::start(&folder, "127.0.0.1:0", &["--token-file", &open]);
    let mut told = String::new();
    BufReader::new(served.child.stderr.as_mut().unwrap()).read_line(&mut told).unwrap();
    assert!(told.contains("every user of this machine can read the token"), "{told}");
    assert!(!told.contains(SECRET), "{told}");
}

/// beyond.md 4: a token comes from a file or from the environment. The server behind the bridge does not get it.
#[test]
fn a_token_from_the_environment_opens_a_bridge() {
    let folder = folder("token-env");
    let env = [("TEAM_TOKEN", SECRET), ("OTHER", "passed on")];
    let options = ["--token-env", "TEAM_TOKEN"];
    let bridge = Served::start_with(&folder, "127.0.0.1:0", &options, &env);
    let header = format!("Authorization: Bearer {SECRET}");
    run_in(&folder, &["list", &bridge.address, "--header", &header]).exits(0);
    run_in(&folder, &["list", &bridge.address]).exits(4);
    // A legacy session, whose server stays for as long as it is open.
    let mut child = taut_in(
        &folder,
        &["shell", &bridge.address, "--header", &header, "--revision", "2025-11-25"],
    )
    .stdin(Stdio::piped())
    .spawn()
    .unwrap();
    let mut servers = Vec::new();
    eventually("the session has a server", || {
        let pid = bridge.child.id();
        let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
        let lists =
            tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
        servers = lists.collect::<String>().split_whitespace().map(str::to_owned).collect();
        // Before it has begun, a child is a copy of its parent.
        servers.retain(|pid| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            line.ends_with(b"taut\0serve\0")
        });
        !servers.is_empty()
    });
    for pid in servers {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap();
        let environment = String::from_utf8_lossy(&environment).into_owned();
        assert!(environment.contains("OTHER=passed on"), "{environment}");
        assert!(!environment.contains(SECRET), "the server has the token");
    }
    drop(child.stdin.take());
    child.wait().unwrap();
}

/// beyond.md 4: safe by default, and each refusal says what to change.
#[test]
fn who_may_connect_is_what_the_options_say() {
    let folder = folder("who");
    let bridge = Served::start(
        &folder,
        "127.0.0.1:0",
        &["--allow-host", "mcp.example.com", "--allow-origin", "https://app.example.com"],
    );
    for (headers, status, words) in [
        ("Host: localhost\r\n", 200, "echo"),
        ("Host: mcp.example.com\r\n", 200, "echo"),
        ("Host: evil.example\r\n", 403, "--allow-host"),
        ("Host: localhost\r\nOrigin: https://app.example.com\r\n", 200, "echo"),
        ("Host: localhost\r\nOrigin: https://evil.example\r\n", 403, "--allow-origin"),
    ] {
        let answer = bridge.post(headers);
        assert_eq!(answer.0, status, "{headers}: {}", answer.1);
        assert!(answer.1.contains(words), "{headers}: {}", answer.1);
    }
    // Others can reach this address.
    let file = token_file(&folder, SECRET, 0o600);
    let everywhere = ["bridge", "--listen", "0.0.0.0:0", "--", "taut", "serve"];
    let run = run_in(&folder, &everywhere).exits(2);
    assert!(run.err.contains("0.0.0.0") && run.err.contains("--token-file"), "{}", run.err);
    for (options, expected) in
        [(vec!["--serve-everyone-unsafely"], 200), (vec!["--token-file", file.as_str()], 401)]
    {
        let bridge = Served::start(&folder, "0.0.0.0:0", &options);
        assert_eq!(bridge.post("Host: localhost\r\n").0, expected, "{options:?}");
    }
}

/// A certificate of the tests of taut-http.
fn certificate(of: &str, name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../taut-http/tests").join(of).join(name);
    path.canonicalize().unwrap().to_str().unwrap().to_owned()
}

/// TLS from command to command: what is trusted is the system's list, or the file that was given and nothing else.
#[test]
fn a_bridge_with_a_certificate_is_trusted_by_the_file_or_by_the_system() {
    let folder = folder("tls");
    let (chain, key) = (certificate("server", "cert.pem"), certificate("server", "key.pem"));
    let other = certificate("client", "cert.pem");
    let bridge = Served::start(&folder, "127.0.0.1:0", &["--certificate", &chain, "--key", &key]);
    let url = bridge.address.as_str();
    assert!(url.starts_with("https://127.0.0.1:"), "{url}");
    run_in(&folder, &["list", url, "--ca-file", &chain]).exits(0);
    let run = run_in(&folder, &["list", url]).exits(4);
    assert!(run.err.to_lowercase().contains("certificate"), "{}", run.err);
    let with_system = |words: &[&str]| {
        Run::from(taut_in(&folder, words).env("SSL_CERT_FILE", &chain).output().unwrap())
    };
    with_system(&["list", url]).exits(0);
    // The file replaces what the system trusts.
    let run = with_system(&["list", url, "--ca-file", &other]).exits(4);
    assert!(run.err.to_lowercase().contains("certificate"), "{}", run.err);
    let plain = url.replace("https", "http");
    let run = run_in(&folder, &["list", &plain]).exits(4);
    assert!(run.err.contains("https://"), "{}", run.err);
}

/// What would have no effect is refused.
#[test]
fn a_certificate_needs_its_key_and_a_socket() {
    let folder = folder("tls-options");
    let (chain, key) = (certificate("server", "cert.pem"), certificate("server", "key.pem"));
    let listen = ["--listen", "127.0.0.1:0"];
    for options in [
        vec!["--certificate", &chain, "--key", &key],
        [&listen[..], &["--certificate", &chain]].concat(),
        [&listen[..], &["--key", &key]].concat(),
    ] {
        let words = [&["bridge"], &options[..], &["--", "taut", "serve"]].concat();
        run_in(&folder, &words).exits(2);
    }
}

/// A proxy that lets nothing pass: the first line of each request that it got.
fn proxy() -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let lines: Arc<Mutex<Vec<String>>> = Arc::default();
    let kept = lines.clone();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut line = String::new();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let _ = reader.read_line(&mut line);
            kept.lock().unwrap().push(line.trim().to_owned());
            let _ = stream.write_all(
                b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
            );
        }
    });
    (address, lines)
}

/// beyond.md 4: proxies of the environment are used, except for this machine, whose servers no proxy should see a token
/// of.
#[test]
fn a_proxy_of_the_environment_gets_everything_but_this_machine() {
    let folder = folder("proxy");
    let file = token_file(&folder, SECRET, 0o600);
    let bridge = Served::start(&folder, "127.0.0.1:0", &["--token-file", &file]);
    let header = format!("Authorization: Bearer {SECRET}");
    let (proxy, seen) = proxy();
    let by_proxy = |url: &str, besides: &str| {
        let mut command = taut_in(&folder, &["list", url, "--header", &header]);
        command.env("HTTP_PROXY", &proxy).env("HTTPS_PROXY", &proxy).env("ALL_PROXY", &proxy);
        Run::from(command.env("NO_PROXY", besides).output().unwrap())
    };
    for host in ["127.0.0.1", "localhost"] {
        by_proxy(&bridge.address.replace("127.0.0.1", host), "").exits(0);
    }
    assert_eq!(*seen.lock().unwrap(), [""; 0], "the proxy saw requests to this machine");
    by_proxy("http://mcp.invalid/mcp", "").exits(4);
    assert_eq!(seen.lock().unwrap()[0], "POST http://mcp.invalid/mcp HTTP/1.1");
    seen.lock().unwrap().clear();
    by_proxy("https://mcp.invalid/mcp", "").exits(4);
    assert_eq!(seen.lock().unwrap()[0], "CONNECT mcp.invalid:443 HTTP/1.1");
    seen.lock().unwrap().clear();
    by_proxy("http://mcp.invalid/mcp", "mcp.invalid").exits(4);
    assert_eq!(*seen.lock().unwrap(), [""; 0]);
}
