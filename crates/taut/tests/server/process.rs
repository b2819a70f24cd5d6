//! The same over a real pipe: this test binary, run again as a server on its stdin and stdout.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tokio::io::AsyncBufReadExt;
use tokio::net::UnixStream;

use crate::fixture;
use crate::transcript::{Clock, play};
use crate::transcripts::scenes;
use crate::wire::Wire;

const ROLE: &str = "TAUT_SERVER_TEST_ROLE";

/// The harness greets on stdout before a role begins; what comes after this line is the wire.
const MARK: &str = "--- the wire ---";

/// Far above what anything here needs, far below what a person would wait for.
const PATIENCE: Duration = Duration::from_secs(20);

/// Not a test: what the other process runs.
#[test]
#[allow(clippy::print_stdout, reason = "the mark, and then what must not reach the wire")]
fn role() {
    let Ok(role) = std::env::var(ROLE) else { return };
    println!("\n{MARK}");
    taut::claim_stdio().unwrap();
    println!("a banner at start-up");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(fixture::named(&role).serve_stdio()).unwrap();
    println!("a farewell");
    // Without the harness's last words.
    std::process::exit(0);
}

/// A process that serves; killed when dropped.
pub(crate) struct Served(Child);

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Served {
    /// Whether it ends by itself, and well. The host has closed its end.
    pub(crate) fn ends_well(mut self) -> bool {
        self.0.wait().unwrap().success()
    }
}

/// Starts a server behind socket pairs, as Node and Bun hosts do.
pub(crate) async fn start(server: &str) -> (Wire, Served) {
    let (ours_out, theirs_in) = StdStream::pair().unwrap();
    let (theirs_out, ours_in) = StdStream::pair().unwrap();
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "process::role", "--nocapture", "--test-threads=1"])
        .env(ROLE, server)
        .stdin(Stdio::from(OwnedFd::from(theirs_in)))
        .stdout(Stdio::from(OwnedFd::from(theirs_out)))
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let tokio_stream = |stream: StdStream| {
        stream.set_nonblocking(true).unwrap();
        UnixStream::from_std(stream).unwrap()
    };
    let mut reader = tokio::io::BufReader::new(tokio_stream(ours_in));
    let mut line = String::new();
    while line.trim_end() != MARK {
        line.clear();
        let read = tokio::time::timeout(PATIENCE, reader.read_line(&mut line)).await;
        assert!(read.expect("it does not start").unwrap() > 0, "it ended before it served");
    }
    (Wire::over(reader, tokio_stream(ours_out), PATIENCE), Served(child))
}

/// STD-03, S2: the same files, and a banner and a farewell that must not be on the wire.
/// Also STD-05.
#[tokio::test]
async fn std_03_transcripts_about_streams_hold_for_a_process_that_prints() {
    for file in ["streams.txt", "lifecycle.txt", "ids.txt", "eras.txt"] {
        for scene in scenes(file) {
            let (wire, served) = start(&scene.server).await;
            if let Err(fault) = play(&scene, wire, Clock::Real).await {
                panic!("{file}: {}: {fault}", scene.title);
            }
            assert!(served.ends_well(), "{file}: {}", scene.title);
        }
    }
}
