//! Starts the client once per scenario, and hands what the played server wrote down to the judges.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use serde_json::Value;

use super::offers::{OFFERED, agreed};
use super::record::{Life, Played, Scene, read};
use super::scenarios::SCENARIOS;
use crate::check::{Check, Kind, Verdict};
use crate::cx::VERSION;
use crate::ours::Revision;
use crate::process::Process;
use crate::program::{Program, Stopper};
use crate::progress::Progress;
use crate::report::{Report, Row};
use crate::seen::messages;
use crate::server::pool::{CLIENTS, pool};

/// How long a client may take for one scenario.
const LIMIT: Duration = Duration::from_secs(45);

/// How long it may take where it gets no answer: most wait for longer than anybody has time for.
const MUTE: Duration = Duration::from_secs(15);

/// How many starts of the played server are looked at in one scenario, and how much of what they wrote down, in
/// bytes: a client may start it again and again, or write without end.
const MAX_LIVES: usize = 64;
const MAX_SCENE: u64 = 24 << 20;

/// How many scenarios are played once more at a time, and for how long.
const QUIET: usize = 2;
const AGAIN: Duration = Duration::from_secs(60);

/// How long a server may outlive its client.
const OUTLIVE: Duration = Duration::from_secs(15);

/// Checks a client: set it up, then [`run`](Self::run).
#[derive(Clone, Debug)]
pub struct ClientCheck {
    words: Vec<OsString>,
    player: Vec<OsString>,
    only: Vec<String>,
    revisions: Vec<Revision>,
    limit: Duration,
    strict: bool,
    stopper: Stopper,
    progress: Progress,
}

impl ClientCheck {
    /// Checks a client. `words` is its command, with `{server}` where the command of a server belongs:
    /// a word of its own becomes several words, within a word it becomes a line for a shell. `player`
    /// is a command that calls [`play`](crate::play) with the two words that are put after it.
    pub fn new<W: Into<OsString>, P: Into<OsString>>(
        words: impl IntoIterator<Item = W>,
        player: impl IntoIterator<Item = P>,
    ) -> Self {
        let words = words.into_iter().map(Into::into).collect();
        let player = player.into_iter().map(Into::into).collect();
        let (only, revisions) = (Vec::new(), Vec::new());
        let (stopper, progress) = (Stopper::default(), Progress::default());
        Self { words, player, only, revisions, limit: LIMIT, strict: false, stopper, progress }
    }

    /// Carries out this check, or those whose names begin with it and a dash; may be given again.
    #[must_use]
    pub fn only(mut self, id: impl Into<String>) -> Self {
        self.only.push(id.into());
        self
    }

    /// Reports this revision, and others only if they are given as well; all if not said. The client chooses what it
    /// speaks, so all scenarios are played.
    #[must_use]
    pub fn revision(mut self, revision: Revision) -> Self {
        self.revisions.push(revision);
        self
    }

    /// How long the client may take for one scenario. 45 seconds if not said.
    #[must_use]
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// A broken SHOULD fails the run as well. It is a warning if not said.
    #[must_use]
    pub fn strict(mut self) -> Self {
        self.strict = true;
        self
    }

    /// What the run does now.
    #[must_use]
    pub fn progress(&self) -> Progress {
        self.progress.clone()
    }

    /// What ends the run before its time.
    #[must_use]
    pub fn stopper(&self) -> Stopper {
        self.stopper.clone()
    }

    /// Carries out all checks for clients.
    #[must_use]
    pub fn run(&self) -> Report {
        let began = Instant::now();
        let folder = scratch();
        let checks: Vec<Check> =
            super::all().into_iter().filter(|check| self.wants(check)).collect();
        let needed = |name: &str| {
            let shows = |named: &[&str]| named.is_empty() || named.contains(&name);
            checks.iter().any(|check| shows(scenarios(check)))
        };
        let names: Vec<&'static str> =
            SCENARIOS.iter().map(|(name, _)| *name).filter(|name| needed(name)).collect();
        self.progress.begin("scenarios", names.len());
        let mut scenes: Vec<Scene> = pool(CLIENTS, names, |name| self.scene(name, &folder));
        let (mut rows, closed) = self.judged(&checks, &scenes);
        let again = self.again(&checks, &rows, &mut scenes, &folder);
        let starts = scenes.len() + again.len();
        let _ = std::fs::remove_dir_all(&folder);
        if !again.is_empty() {
            let tried = |check: &Check| again.iter().any(|name| scenarios(check).contains(name));
            let (second, _) = self.judged(&checks, &scenes);
            let passed = |row: &Row| {
                let same = |other: &&Row| other.id == row.id && other.revision == row.revision;
                second.iter().find(same).filter(|other| !other.verdict.failed()).cloned()
            };
            let ids: Vec<&str> = checks.iter().filter(|it| tried(it)).map(|it| it.id).collect();
            for row in rows.iter_mut().filter(|row| row.breaks() && ids.contains(&row.id)) {
                if let Some(other) = passed(row) {
                    *row = other;
                }
            }
        }
        crate::server::judge::explain(&checks, &mut rows);
        Report::new(self.words.clone(), rows, closed, starts, began.elapsed()).strict(self.strict)
    }

    /// Plays the scenarios of what failed once more, with little beside them, and puts them in place of the first ones: what
    /// only failed beside many others is the machine's fault. Says which ones. What looks at all messages is not tried again.
    fn again(
        &self,
        checks: &[Check],
        rows: &[Row],
        scenes: &mut [Scene],
        folder: &Path,
    ) -> Vec<&'static str> {
        let failed = |check: &&Check| rows.iter().any(|row| row.id == check.id && row.breaks());
        let suspects: Vec<&'static str> =
            checks.iter().filter(failed).flat_map(scenarios).copied().collect();
        let (folder, began) = (folder.join("again"), Instant::now());
        let play = |scene: &mut Scene| {
            let plays = began.elapsed() < AGAIN && !self.stopper.is_stopped();
            plays.then(|| {
                *scene = self.scene(scene.name, &folder);
                scene.name
            })
        };
        let scenes: Vec<&mut Scene> =
            scenes.iter_mut().filter(|scene| suspects.contains(&scene.name)).collect();
        self.progress.begin("once more", scenes.len());
        pool(QUIET, scenes, play).into_iter().flatten().collect()
    }

    /// Judges what was played, in each revision. Also says which ones the client did not speak.
    fn judged(&self, checks: &[Check], scenes: &[Scene]) -> (Vec<Row>, Vec<(Revision, String)>) {
        let lives = || scenes.iter().flat_map(|scene| &scene.lives);
        let modern_only = !lives().any(|life| opening(life).is_some());
        let both = lives().any(served_modern) && lives().any(opened_legacy);
        let probed: Vec<&'static str> =
            scenes.iter().filter(|it| it.lives.iter().any(probes)).map(|it| it.name).collect();
        let mut rows = Vec::new();
        let mut closed = Vec::new();
        let reported = |it: &Revision| self.revisions.is_empty() || self.revisions.contains(it);
        for revision in Revision::ALL.into_iter().filter(reported) {
            let spoken: Vec<Scene> =
                scenes.iter().filter_map(|scene| spoken(scene, revision)).collect();
            if spoken.is_empty() {
                closed.push((revision, "the client did not choose it in any scenario".to_owned()));
                continue;
            }
            for check in checks.iter().filter(|check| check.revisions.contains(revision)) {
                let Kind::Played(wanted, judge) = check.kind else { continue };
                let fitting: Vec<&Scene> = spoken
                    .iter()
                    .filter(|scene| wanted.is_empty() || wanted.contains(&scene.name))
                    .collect();
                let verdict = match fitting.is_empty() {
                    true => Verdict::skip(unseen(wanted, revision)),
                    false => {
                        let ended = scenes.iter().filter(|scene| scene.ended.is_some());
                        let ended = ended.map(|scene| scene.name).collect();
                        judge(&Played {
                            scenes: fitting.clone(),
                            ended,
                            both,
                            probed: probed.clone(),
                            modern_only,
                            revision,
                        })
                    }
                };
                let exchange = match &verdict {
                    Verdict::Fail { shown, .. } if shown.is_empty() => fitting
                        .iter()
                        .flat_map(|scene| &scene.lives)
                        .flat_map(Life::shown)
                        .collect(),
                    Verdict::Fail { shown, .. } => shown.clone(),
                    _ => Vec::new(),
                };
                rows.push(Row::new(check, revision, verdict, exchange));
            }
        }
        (rows, closed)
    }

    fn wants(&self, check: &Check) -> bool {
        let fits = |only: &String| check.id == only || check.id.starts_with(&format!("{only}-"));
        self.only.is_empty() || self.only.iter().any(fits)
    }

    /// Plays one scenario.
    fn scene(&self, name: &'static str, folder: &Path) -> Scene {
        self.progress.tries(format!("scenario {name}"));
        let folder = folder.join(name);
        let ended = std::fs::create_dir_all(&folder).ok().and_then(|()| {
            let mut process = Process::start(&self.program(name, &folder)).ok()?;
            let mute = ["mute", "stuck", "legacy-stuck", "stuck-list"].contains(&name);
            let limit = if mute { self.limit.min(MUTE) } else { self.limit };
            let gone = process.gone_within(limit);
            let at = gone.map(|_| millis());
            // What it started may still be there: that is looked at, too.
            if gone.is_some() {
                settle(&folder);
            }
            at
        });
        self.progress.step(1);
        Scene { name, lives: lives(&folder), ended }
    }

    /// The client's command with the player in it.
    fn program(&self, name: &str, folder: &Path) -> Program {
        let server: Vec<OsString> = self
            .player
            .iter()
            .cloned()
            .chain([name.into(), folder.as_os_str().to_owned()])
            .collect();
        let server = super::signals::command(name, folder, server);
        let line: Vec<String> = server.iter().map(|word| quoted(&word.to_string_lossy())).collect();
        let line = line.join(" ");
        let mut words = Vec::new();
        for word in &self.words {
            match word.to_str() {
                Some("{server}") => words.extend(server.iter().cloned()),
                Some(text) => words.push(text.replace("{server}", &line).into()),
                None => words.push(word.clone()),
            }
        }
        let mut program = Program::new(words);
        program.stopper = self.stopper.clone();
        program
    }
}

/// The scenarios that a check names.
fn scenarios(check: &Check) -> &'static [&'static str] {
    match check.kind {
        Kind::Played(names, _) => names,
        _ => &[],
    }
}

/// The lives of a scene in which the client spoke this revision.
fn spoken(scene: &Scene, revision: Revision) -> Option<Scene> {
    let speaks = |life: &&Life| {
        let agreed = life.said().find_map(|(_, value)| value["result"]["protocolVersion"].as_str());
        match (agreed, opening(life)) {
            (Some(agreed), _) if agreed == revision.as_str() => true,
            (Some(agreed), _) if !OFFERED.contains(&agreed) => false,
            // A handshake that came to nothing is one of the revision that it named. No handshake is modern.
            (_, Some(opened)) if !spoke_modern(life) => {
                let named = opened["params"]["protocolVersion"].as_str().and_then(Revision::parse);
                named.filter(|named| !named.is_modern()).unwrap_or(Revision::V2025_11_25)
                    == revision
            }
            _ => revision.is_modern() && life.heard().next().is_some(),
        }
    };
    let lives: Vec<Life> = scene.lives.iter().filter(speaks).cloned().collect();
    (!lives.is_empty()).then(|| Scene { lives, ..scene.clone() })
}

/// The handshake of a client, also one in a batch.
fn opening(life: &Life) -> Option<&Value> {
    let mut heard = life.heard().flat_map(|(_, value)| messages(value));
    heard.find(|value| value["method"] == "initialize")
}

/// Whether a request of 2026-07-28 got a result.
fn served_modern(life: &Life) -> bool {
    let modern = |value: &Value| value["params"]["_meta"].get(VERSION).is_some();
    let mut asked = life.requests().filter(|(_, value)| modern(value));
    asked.any(|(at, _)| life.reply(at).is_some_and(|(_, answer)| answer.get("result").is_some()))
}

/// Whether a handshake of an older revision was carried out by both sides.
fn opened_legacy(life: &Life) -> bool {
    life.first("notifications/initialized").is_some()
        && life.first("initialize").and_then(|(at, _)| life.reply(at)).is_some_and(|(_, answer)| {
            let version = answer["result"]["protocolVersion"].as_str();
            version.and_then(Revision::parse).is_some_and(|version| !version.is_modern())
        })
}

/// Whether the client asked what the server speaks before it sent `initialize`.
fn probes(life: &Life) -> bool {
    let begun = life.first("initialize").map_or(usize::MAX, |(at, _)| at);
    life.first("server/discover").is_some_and(|(at, _)| at < begun)
}

/// Why a check has no scenario in a revision.
fn unseen(wanted: &[&str], revision: Revision) -> &'static str {
    let fixed: Vec<_> = wanted.iter().map(|name| agreed(name)).collect();
    match fixed.iter().all(|it| it.is_some_and(|version| version != revision.as_str())) {
        true => "the scenarios of this check are played in other revisions only",
        false => "the client chose other revisions in the scenarios that show it",
    }
}

/// Whether a request of 2026-07-28 was taken as one: it got a result, or was told to name another version.
fn spoke_modern(life: &Life) -> bool {
    let modern = |value: &Value| value["params"]["_meta"].get(VERSION).is_some();
    life.requests()
        .filter(|(_, value)| modern(value))
        .filter_map(|(at, _)| life.reply(at))
        .any(|(_, answer)| answer.get("result").is_some() || answer["error"]["code"] == -32022)
}

/// Waits until no player writes any more, or long enough.
fn settle(folder: &Path) {
    let began = Instant::now();
    let size = || lives_size(folder);
    let mut last = (size(), Instant::now());
    while began.elapsed() < OUTLIVE && last.1.elapsed() < Duration::from_millis(600) {
        std::thread::sleep(Duration::from_millis(50));
        let now = size();
        if now != last.0 {
            last = (now, Instant::now());
        }
    }
}

fn lives_size(folder: &Path) -> u64 {
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    files.filter_map(|file| file.metadata().ok()).map(|meta| meta.len()).sum()
}

fn lives(folder: &Path) -> Vec<Life> {
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder).into_iter().flatten().flatten().map(|file| file.path()).collect();
    files.sort();
    let mut left = MAX_SCENE;
    let one = |path: &PathBuf| {
        let (life, rest) = read(path, left);
        left = rest;
        life
    };
    files.iter().take(MAX_LIVES).map(one).collect()
}

fn millis() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or_default()
}

/// A folder of our own for what the players write.
fn scratch() -> PathBuf {
    static RUNS: AtomicU64 = AtomicU64::new(0);
    let run = RUNS.fetch_add(1, Ordering::Relaxed);
    std::env::temp_dir().join(format!("taut-check-{}-{}-{run}", std::process::id(), millis()))
}

/// A word for a shell.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/-_.:=,+@%".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}
