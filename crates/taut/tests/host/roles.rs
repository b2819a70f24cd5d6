//! What the other processes do: the demo server with two tools more, or the example of a host.

use std::fs::File;
use std::io::Write as _;

use taut::types::ToolAnnotations;
use taut::{Command, NoArgs, Tool};

use super::system;

/// A place of a test's own, where its servers leave their marks. Removed with it.
pub(super) struct Place(pub(super) std::path::PathBuf);

impl Place {
    pub(super) fn new(name: &str) -> Self {
        let dir = std::env::temp_dir().join(format!("taut-host-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        Self(dir)
    }

    /// A command that plays a role.
    pub(super) fn server(&self, role: &str) -> Command {
        let (program, args) = system::player("");
        Command::new(program).args(args).env("TAUT_ROLE", role).env("TAUT_PLACE", &self.0)
    }

    /// The processes that have played here so far: the number of each and the time of its start. Windows soon
    /// gives a number again, so that alone does not tell two of them apart.
    pub(super) fn starts(&self) -> Vec<(u32, u128)> {
        let entries = std::fs::read_dir(&self.0).unwrap().flatten();
        let start = |entry: std::fs::DirEntry| {
            let name = entry.file_name();
            let (pid, time) = name.to_str()?.strip_prefix("pid-")?.split_once('-')?;
            Some((pid.parse().ok()?, time.parse().ok()?))
        };
        entries.filter_map(start).collect()
    }

    /// The numbers of these processes.
    pub(super) fn pids(&self) -> Vec<u32> {
        self.starts().into_iter().map(|(pid, _)| pid).collect()
    }

    /// How often the tools that count have run.
    pub(super) fn runs(&self) -> usize {
        std::fs::read_to_string(self.0.join("runs")).unwrap_or_default().lines().count()
    }

    /// Invariant 9
    pub(super) async fn assert_empty(&self) {
        super::eventually("all gone", || !self.pids().into_iter().any(super::alive)).await;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn place() -> std::path::PathBuf {
    std::env::var_os("TAUT_PLACE").unwrap().into()
}

pub(super) fn play() {
    let role = std::env::var("TAUT_ROLE").expect("a role to play");
    system::take_wire();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    match role.as_str() {
        "crash" => system::kill_self(),
        "crash-later" => {
            std::io::stdin().read_line(&mut String::new()).unwrap();
            eprintln!("oh no");
            system::kill_self();
        }
        #[cfg(unix)]
        "example" => {
            let programs = ["one", "two"].map(|name| place().join(name).display().to_string());
            runtime.block_on(super::example::host(programs)).unwrap();
        }
        _ => {
            let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos();
            File::create(place().join(format!("pid-{}-{now}", std::process::id()))).unwrap();
            runtime.block_on(serve()).unwrap();
        }
    }
    std::process::exit(0);
}

async fn serve() -> taut::Result<()> {
    let harmless = Tool::new("die_once_harmless")
        .description("Die once, and harm nothing.")
        .annotations(ToolAnnotations::new().read_only_hint(true));
    super::demo::server::server()
        .tool(("die_once", "Tool die_once."), async |_: NoArgs, _call| die_once())
        .tool(harmless, async |_: NoArgs, _call| die_once())
        .tool(("die", "Tool die."), async |_: NoArgs, _call| system::kill_self())
        .serve_stdio()
        .await
}

/// Leaves a mark, and does not live through the first.
fn die_once() -> String {
    let path = place().join("runs");
    writeln!(File::options().create(true).append(true).open(&path).unwrap(), "ran").unwrap();
    let runs = std::fs::read_to_string(&path).unwrap().lines().count();
    if runs == 1 {
        system::kill_self();
    }
    format!("ran {runs}")
}
